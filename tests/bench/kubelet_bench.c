// SPDX-License-Identifier: Apache-2.0
// Figures of a device plugin under a kubelet of our own. Starts the plugin itself, so that the
// time from exec to registration is true.
//   kubelet-bench --dir DIR [--pod-resources SOCKET] [--control FILE] [--metrics URL]
//                 [--allocate N] [--prefer N] [--scrape N] [--reborn N] [--idle MS]
//                 -- PLUGIN [ARGUMENT...]
// control is the emulator's: then XIDs are sent, one a GPU but the last.
#include "kubelet.h"
#include "measure.h"
#include "net/http_client.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	START_MS = 20000,
	ANSWER_MS = 15000,
	PIDS_MAX = 32,
	XID_FATAL = 79,
	STARTS = 7,
	SETTLE_MS = 1500
};

struct options {
	const char *dir, *pod_resources, *control, *metrics;
	int64_t allocate, prefer, scrape, reborn, idle;
	char **command;
};
struct family {
	long rss_kib, own_kib; // own: anonymous, belongs to nobody else
	uint64_t cpu_ns;       // of the threads that still run
	int processes;
};

static struct options read_options(int argc, char **argv)
{
	struct options o = { .allocate = 2000, .prefer = 2000, .scrape = 2000, .reborn = 5 };
	const struct {
		const char *name;
		const char **text;
		int64_t *number;
	} known[] = {
		{ "--dir", &o.dir, NULL },           { "--pod-resources", &o.pod_resources, NULL },
		{ "--control", &o.control, NULL },   { "--metrics", &o.metrics, NULL },
		{ "--allocate", NULL, &o.allocate }, { "--prefer", NULL, &o.prefer },
		{ "--scrape", NULL, &o.scrape },     { "--reborn", NULL, &o.reborn },
		{ "--idle", NULL, &o.idle },
	};
	int i = 1;
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		size_t k = 0;
		while (k < ARRAY_COUNT(known) && strcmp(argv[i], known[k].name) != 0)
			k++;
		if (k == ARRAY_COUNT(known))
			measure_fail("%s: no such option", argv[i]);
		if (known[k].text != NULL)
			*known[k].text = measure_value(argc, argv, &i);
		else
			*known[k].number = measure_number(argc, argv, &i);
	}
	if (o.dir == NULL || i + 1 >= argc)
		measure_fail("use: kubelet-bench --dir DIR [...] -- PLUGIN [ARGUMENT...]");
	o.command = argv + i + 1;
	return o;
}

static pid_t start_plugin(char **command)
{
	const pid_t pid = fork();
	if (pid < 0)
		measure_fail("cannot fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		execvp(command[0], command);
		measure_fail("%s cannot be started", command[0]);
	}
	return pid;
}

// The numbers in a file of /proc that begin with the key, or the whole file for an empty key.
static size_t read_numbers(const char *path, const char *key, long *ret, size_t max)
{
	char text[8192] = "";
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	const ssize_t size = read(fd, text, sizeof text - 1);
	(void)close(fd);
	struct str rest = { text, size > 0 ? (size_t)size : 0 }, line;
	size_t count = 0;
	while (str_split_next(&rest, '\n', &line)) {
		if (!str_starts(line, str_of(key)))
			continue;
		struct str words = str_slice(line, strlen(key), line.len), word;
		int64_t value;
		while (count < max && str_split_next(&words, ' ', &word))
			if (str_to_i64(str_trim(word), &value))
				ret[count++] = (long)value;
	}
	return count;
}

static uint64_t cpu_ns_of(long pid)
{
	char path[300];
	uint64_t cpu_ns = 0;
	(void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
	DIR *tasks = opendir(path);
	if (tasks == NULL)
		return 0;
	for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
		long ran_ns = 0;
		(void)snprintf(path, sizeof path, "/proc/%ld/task/%s/schedstat", pid, task->d_name);
		(void)read_numbers(path, "", &ran_ns, 1);
		cpu_ns += (uint64_t)ran_ns;
	}
	(void)closedir(tasks);
	return cpu_ns;
}

// The plugin and the processes that it has started.
static struct family measure_family(pid_t pid)
{
	long pids[PIDS_MAX] = { pid };
	struct family family = { 0 };
	size_t count = 1;
	for (size_t i = 0; i < count; i++) {
		char path[64];
		long rss_kib = 0, own_kib = 0;
		(void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pids[i], pids[i]);
		count += read_numbers(path, "", pids + count, PIDS_MAX - count);
		(void)snprintf(path, sizeof path, "/proc/%ld/status", pids[i]);
		(void)read_numbers(path, "VmRSS:", &rss_kib, 1);
		(void)read_numbers(path, "RssAnon:", &own_kib, 1);
		family.rss_kib += rss_kib;
		family.own_kib += own_kib;
		family.cpu_ns += cpu_ns_of(pids[i]);
		family.processes++;
	}
	return family;
}

static void put_memory(const char *name, pid_t pid, struct buf *out)
{
	const struct family family = measure_family(pid);
	buf_printf(out, ",\"%s_rss_kib\":%ld,\"%s_own_kib\":%ld,\"%s_processes\":%d", name,
		   family.rss_kib, name, family.own_kib, name, family.processes);
}

static bool never(const struct kubelet *kubelet, uint64_t end_ns)
{
	(void)kubelet;
	return clock_mono_ns() >= end_ns;
}

static void pass(struct kubelet *kubelet, uint64_t ms)
{
	kubelet_wait(kubelet, never, clock_mono_ns() + ms * UINT64_C(1000000), "time", 2 * ms);
}

static void settle(struct kubelet *kubelet) { pass(kubelet, SETTLE_MS); }

// What the plugin uses of one core while nobody asks it anything.
static void measure_idle(struct kubelet *kubelet, pid_t pid, int64_t idle_ms, struct buf *out)
{
	const uint64_t before_ns = measure_family(pid).cpu_ns, start_ns = clock_mono_ns();
	pass(kubelet, (uint64_t)idle_ms);
	buf_printf(out, ",\"idle_cpu_ns\":%llu,\"idle_ns\":%llu",
		   (unsigned long long)(measure_family(pid).cpu_ns - before_ns),
		   (unsigned long long)(clock_mono_ns() - start_ns));
}

static void measure_calls(struct kubelet *kubelet, const struct options *o, struct buf *out)
{
	struct samples allocate = { 0 }, prefer = { 0 };
	for (int64_t i = 0; i < o->allocate; i++)
		samples_add(&allocate, kubelet_allocate_ns(kubelet, (size_t)i, 1));
	for (int64_t i = 0; i < o->prefer; i++)
		samples_add(&prefer, kubelet_prefer_ns(kubelet, (size_t)1 << (i % 3)));
	samples_put(&allocate, "allocate", out);
	samples_put(&prefer, "prefer", out);
	samples_done(&allocate);
	samples_done(&prefer);
}

static void scrape_once(struct http_client *client, struct arena *arena, struct samples *samples,
			size_t *ret_bytes)
{
	const struct http_call_request request = { .method = "GET",
						   .path = STR("/metrics"),
						   .timeout_ns = UINT64_C(10000000000) };
	struct http_reply reply;
	struct err err = { 0 };
	const uint64_t start_ns = clock_mono_ns();
	if (http_call_wait(client, &request, arena, &reply, &err) != ERR_OK)
		measure_fail("scrape: %s", err.text);
	samples_add(samples, clock_mono_ns() - start_ns);
	if (reply.code != 200)
		measure_fail("scrape: HTTP %d", reply.code);
	*ret_bytes = reply.body.len;
}

static void measure_scrapes(struct kubelet *kubelet, const struct options *o, const char *name,
			    struct buf *out)
{
	struct http_client *client;
	struct err err = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(64 << 20);
	struct samples samples = { 0 };
	size_t bytes = 0;
	if (http_client_new(kubelet->loop, o->metrics, NULL, NULL, &client, &err) != ERR_OK)
		measure_fail("%s: %s", o->metrics, err.text);
	for (int64_t i = 0; i < o->scrape; i++) {
		scrape_once(client, arena, &samples, &bytes);
		arena_reset(arena);
	}
	samples_put(&samples, name, out);
	buf_printf(out, ",\"%s_bytes\":%zu", name, bytes);
	samples_done(&samples);
	http_client_free(client);
}

static void measure_reborn(struct kubelet *kubelet, const struct options *o, struct buf *out)
{
	struct samples samples = { 0 };
	for (int64_t i = 0; i < o->reborn; i++) {
		kubelet_close(kubelet);
		settle(kubelet);
		const uint64_t start_ns = clock_mono_ns();
		kubelet_open(kubelet);
		kubelet_wait(kubelet, kubelet_has_registrations, 1, "registered again", ANSWER_MS);
		samples_add(&samples, kubelet->registered_ns - start_ns);
		kubelet_watch(kubelet);
		kubelet_wait(kubelet, kubelet_has_lists, 1, "listed again", ANSWER_MS);
	}
	samples_put(&samples, "reborn", out);
	samples_done(&samples);
}

static void command(const char *control, const char *line)
{
	const int fd = open(control, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		measure_fail("%s cannot be written", control);
	(void)close(fd);
}

static void measure_xids(struct kubelet *kubelet, const char *control, struct buf *out)
{
	struct samples samples = { 0 };
	const size_t gpus = kubelet->device_count;
	for (size_t i = 0; i + 1 < gpus; i++) {
		char line[32];
		(void)snprintf(line, sizeof line, "xid %zu %d\n", i, XID_FATAL);
		const size_t bad = kubelet->unhealthy_count;
		const uint64_t start_ns = clock_mono_ns();
		command(control, line);
		kubelet_wait(kubelet, kubelet_has_unhealthy, bad + 1, "XID told", ANSWER_MS);
		samples_add(&samples, kubelet->listed_ns - start_ns);
	}
	samples_put(&samples, "xid", out);
	samples_done(&samples);
}

// The driver no longer answers for one GPU.
static void measure_hang(struct kubelet *kubelet, const struct options *o, struct buf *out)
{
	char line[32];
	(void)snprintf(line, sizeof line, "hang all %zu\n", kubelet->device_count - 1);
	command(o->control, line);
	settle(kubelet);
	measure_scrapes(kubelet, o, "hang", out);
}

static pid_t start_measured(struct kubelet *kubelet, const struct options *o,
			    struct samples *registers)
{
	kubelet_open(kubelet);
	const uint64_t start_ns = clock_mono_ns();
	const pid_t pid = start_plugin(o->command);
	kubelet_wait(kubelet, kubelet_has_registrations, 1, "registered", START_MS);
	samples_add(registers, kubelet->registered_ns - start_ns);
	kubelet_watch(kubelet);
	kubelet_wait(kubelet, kubelet_has_lists, 1, "listed", ANSWER_MS);
	return pid;
}

// Several starts, because one is a coin toss on a busy machine; the last one stays.
static pid_t measure_starts(struct kubelet *kubelet, const struct options *o, struct buf *out)
{
	struct samples registers = { 0 };
	pid_t pid = start_measured(kubelet, o, &registers);
	for (int i = 1; i < STARTS; i++) {
		int status;
		if (kill(pid, SIGTERM) != 0 || waitpid(pid, &status, 0) != pid)
			measure_fail("the plugin was gone");
		kubelet_close(kubelet);
		pid = start_measured(kubelet, o, &registers);
	}
	buf_printf(out, "{\"devices\":%zu", kubelet->device_count);
	samples_put(&registers, "register", out);
	samples_done(&registers);
	return pid;
}

static void measure_all(struct kubelet *kubelet, const struct options *o, struct buf *out)
{
	const pid_t pid = measure_starts(kubelet, o, out);
	settle(kubelet);
	put_memory("idle", pid, out);
	if (o->idle > 0)
		measure_idle(kubelet, pid, o->idle, out);
	measure_calls(kubelet, o, out);
	const uint64_t before_ns = measure_family(pid).cpu_ns;
	if (o->metrics != NULL)
		measure_scrapes(kubelet, o, "scrape", out);
	buf_printf(out, ",\"scrapes_cpu_ns\":%llu",
		   (unsigned long long)(measure_family(pid).cpu_ns - before_ns));
	put_memory("used", pid, out);
	measure_reborn(kubelet, o, out);
	if (o->control != NULL)
		measure_xids(kubelet, o->control, out);
	if (o->control != NULL && o->metrics != NULL)
		measure_hang(kubelet, o, out);
	put_memory("end", pid, out);
	int status;
	struct rusage usage;
	if (kill(pid, SIGTERM) != 0 || wait4(pid, &status, 0, &usage) != pid)
		measure_fail("the plugin was gone");
	const long long cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
				 usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	buf_printf(out, ",\"cpu_ns\":%lld}", cpu_us * 1000);
}

int main(int argc, char **argv)
{
	const struct options options = read_options(argc, argv);
	AUTO(buf_done) struct buf out = { 0 };
	static struct kubelet kubelet;
	(void)signal(SIGPIPE, SIG_IGN);
	kubelet_init(&kubelet, options.dir, options.pod_resources);
	measure_all(&kubelet, &options, &out);
	kubelet_done(&kubelet);
	measure_print(&out);
	return 0;
}
