// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_MAX = 20000, PAGE_BYTES = 256 * 1024 };
#define MS UINT64_C(1000000)
#define ARG(text) (char *)(uintptr_t)(text)

struct rig rig;

void rig_write(const char *name, const char *mode, const char *text)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/%s", rig.root, name);
	FILE *file = fopen(path, mode);
	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

void rig_write_kubeconfig(const char *address, char *path, size_t path_bytes)
{
	char text[600];
	(void)snprintf(text, sizeof text,
		       "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
		       "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
		       "clusters: [{name: x, cluster: {server: 'http://%s'}}]\n"
		       "users: [{name: x, user: {token: t}}]\n",
		       address);
	rig_write("kubeconfig", "w", text);
	(void)snprintf(path, path_bytes, "%s/kubeconfig", rig.root);
}

void rig_control(const char *command) { rig_write("emu/control", "a", command); }

// As on a node whose limit of inotify instances is reached.
static void deny_inotify(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_inotify_init1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_COUNT(steps), steps };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		_exit(127);
}

static pid_t start(char *const argv[], const char *log)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/%s", rig.root, log);
	(void)fflush(stdout);
	const pid_t test = getpid();
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	// Whatever ends the test; it may have ended before the kernel was asked.
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != test)
		_exit(127);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, 2) < 0 || dup2(fd, 1) < 0)
		_exit(127);
	if (rig.has_no_inotify)
		deny_inotify();
	(void)execv(argv[0], argv);
	_exit(127);
}

void rig_start_agent(const char *kubeconfig)
{
	static const char *const options[] = {
		"--device-plugin-dir=%s/dp", "--pod-resources-socket=%s/dp/pods.sock",
		"--cdi-dir=%s/cdi",          "--state-dir=%s/state",
		"--driver-root=%s/driver",   "--config=%s/agent.yaml",
		"--plugins-dir=%s/plugins",  "--plugin-registry-dir=%s/registry",
		"--listen=unix:%s/http.sock"
	};
	char texts[ARRAY_COUNT(options)][200];
	char *argv[ARRAY_COUNT(options) + 7] = { ARG(rig.agent), ARG("--node-name=node1") };
	size_t count = 2;
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		AUTO(buf_done) struct buf text = { 0 };
		const char *place = strstr(options[i], "%s");
		buf_put(&text, (struct str){ options[i], (size_t)(place - options[i]) });
		buf_put_c(&text, rig.root);
		buf_put_c(&text, place + 2);
		if (!usage_text(texts[i], sizeof texts[i], buf_str(&text)))
			abort();
		argv[count++] = texts[i];
	}
	argv[count++] = ARG("--nvml-library");
	argv[count++] = ARG(rig.library);
	argv[count++] = ARG("--kubeconfig");
	argv[count++] = ARG(kubeconfig);
	ASSERT(count < ARRAY_COUNT(argv));
	rig.agent_pid = start(argv, "agent.log");
}

static int stop(pid_t pid, int sig)
{
	int status = 0;
	if (kill(pid, sig) != 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int rig_stop_agent(int sig)
{
	int code = stop(rig.agent_pid, sig);
	rig.agent_pid = 0;
	return code;
}

uint64_t rig_now_ns(void) { return world_mono_ns(loop_world(rig.loop)); }

uint64_t rig_wait_for(bool (*is_true)(void), unsigned limit_ms)
{
	uint64_t start_ns = rig_now_ns();
	while (!is_true()) {
		if (rig_now_ns() - start_ns > limit_ms * MS)
			return UINT64_MAX;
		loop_run_once(rig.loop, 2);
	}
	return rig_now_ns() - start_ns;
}

static bool never(void) { return false; }

void rig_wait(unsigned ms)
{
	uint64_t took_ns = rig_wait_for(never, ms);
	ASSERT(took_ns == UINT64_MAX);
}

bool rig_has_stream(void)
{
	return rig.kubelet.stream != NULL && rig.kubelet.registrations > 0 &&
	       rig.kubelet.device_count > 0;
}

const struct fake_plugin *rig_plugin(const char *resource)
{
	return fake_kubelet_other(&rig.kubelet, resource);
}

size_t rig_offered(const char *resource)
{
	const struct fake_plugin *plugin = rig_plugin(resource);
	return plugin == NULL ? 0 : plugin->device_count;
}

size_t rig_unhealthy(const char *resource)
{
	size_t bad = 0;
	for (size_t i = 0; i < rig_offered(resource); i++)
		bad += rig_plugin(resource)->devices[i].is_healthy ? 0 : 1;
	return bad;
}

size_t rig_events(struct usage_event *ret, size_t max)
{
	char command[400], line[USAGE_TEXT_MAX_BYTES];
	size_t count = 0;
	(void)snprintf(command, sizeof command, "'%s' journal '%s/state/journal'", rig.agent,
		       rig.root);
	FILE *pipe = popen(command, "re");
	if (pipe == NULL)
		abort();
	while (count < max && fgets(line, sizeof line, pipe) != NULL) {
		struct err err = { 0 };
		if (usage_event_decode(str_trim(str_of(line)), &ret[count], &err) == ERR_OK)
			count++;
		else
			printf("journal: %s: %s\n", err.text, line);
	}
	(void)pclose(pipe);
	return count;
}

size_t rig_count(event_type type)
{
	static struct usage_event events[EVENTS_MAX];
	size_t count = rig_events(events, EVENTS_MAX), found = 0;
	for (size_t i = 0; i < count; i++)
		found += events[i].type == type ? 1 : 0;
	return found;
}

const char *rig_page(void)
{
	static char text[PAGE_BYTES];
	char command[400];
	(void)snprintf(command, sizeof command,
		       "curl -s --unix-socket '%s/http.sock' http://x/metrics", rig.root);
	FILE *pipe = popen(command, "re");
	if (pipe == NULL)
		abort();
	text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
	(void)pclose(pipe);
	return text;
}

double rig_figure(const char *name)
{
	const char *page = rig_page();
	size_t name_len = strlen(name);
	for (const char *at = strstr(page, name); at != NULL; at = strstr(at + 1, name)) {
		if ((at == page || at[-1] == '\n') && at[name_len] == ' ')
			return strtod(at + name_len, NULL);
	}
	return -1;
}

bool rig_watches_events(void) { return rig_figure("gpuaas_agent_nvml_events_up") == 1; }

void rig_set_up(char **argv, unsigned gpus, const char *config)
{
	static char path[300];
	char command[1000];
	struct err err = { 0 };
	rig = (struct rig){
		.agent = argv[1], .emud = argv[2], .library = argv[3], .board = argv[4]
	};
	(void)snprintf(rig.root, sizeof rig.root, "/tmp/agent-test-XXXXXX");
	if (mkdtemp(rig.root) == NULL || loop_new(&rig.loop, &err) != ERR_OK)
		abort();
	(void)snprintf(command, sizeof command,
		       "cd '%s' && mkdir emu dp state driver plugins registry && '%s' --make '%s' "
		       "--count %u --seed test > emu/boards.json && touch emu/control",
		       rig.root, rig.emud, rig.board, gpus);
	if (system(command) != 0)
		abort();
	rig_write("agent.yaml", "w", config);
	(void)snprintf(path, sizeof path, "%s/emu", rig.root);
	if (setenv("GPUAAS_EMU", path, 1) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		abort();
	char *const emud[] = { ARG(rig.emud), ARG("--dir"), path, NULL };
	rig.emud_pid = start(emud, "emud.log");
	(void)snprintf(command, sizeof command, "%s/dp", rig.root);
	fake_kubelet_init(&rig.kubelet, rig.loop, command);
	fake_kubelet_up(&rig.kubelet);
}

void rig_clean_up(bool keep_files)
{
	char command[200];
	(void)stop(rig.emud_pid, SIGTERM);
	fake_kubelet_down(&rig.kubelet);
	loop_free(rig.loop);
	(void)snprintf(command, sizeof command, "%s rm -rf '%s'", keep_files ? "echo kept:" : "",
		       rig.root);
	if (system(command) != 0)
		abort();
}
