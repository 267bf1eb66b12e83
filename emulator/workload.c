// SPDX-License-Identifier: Apache-2.0
// gpuaas-workload: stands for a job that uses GPUs. It knows no figure of its GPUs: it takes the
// sockets that were put into its container, asks each for memory and utilization, keeps them for
// the asked time and lets go. What it uses is what NVML shows of it. See README.md.
#include "emulator/wire.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_TERMINATED = 128 + SIGTERM, EXIT_INTERRUPTED = 128 + SIGINT };

struct options {
	const char *dir;
	unsigned long long duration_ms;
	unsigned gpu_count; // needed at least
	int term_code;
	struct wire_work work;
};

struct gpu {
	unsigned slot; // UINT_MAX: a MIG instance
	char name[64]; // of its socket
	int fd;
	struct wire_work_reply reply;
};

static struct gpu gpus[WIRE_GPU_MAX];
static unsigned gpu_count;

static const char USAGE[] =
	"usage: gpuaas-workload [--seconds S] [--memory-mib M] [--util-milli U]\n"
	"                       [--memory-util-milli U] [--gpus N] [--dir DIR] [--term-code C]\n"
	"\n"
	"Uses every GPU and MIG instance whose socket is in DIR (" WIRE_DEFAULT_DIR "): M MiB of\n"
	"memory and U thousandths of its time, for S seconds (0.5 is allowed), then exits 0.\n"
	"Exits 1 when there are fewer than N (default 1), when one refuses, or goes away.\n"
	"SIGTERM ends it at once with exit code 143 (or C): its work is not done.\n";

static bool number(const char *text, unsigned long long max, unsigned long long *ret)
{
	char *end = NULL;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == 0 && *ret <= max;
}

static bool seconds(const char *text, unsigned long long *ret_ms)
{
	unsigned long long whole = 0, part = 0;
	const char *point = strchr(text, '.');
	char head[16];

	if (point == NULL)
		point = text + strlen(text);
	if ((size_t)(point - text) >= sizeof(head))
		return false;
	memcpy(head, text, (size_t)(point - text));
	head[point - text] = 0;
	if (!number(head, 1000000000, &whole))
		return false;
	if (*point == '.') {
		size_t digits = strlen(point + 1);
		if (digits == 0 || digits > 3 || !number(point + 1, 999, &part))
			return false;
		for (; digits < 3; digits++)
			part *= 10;
	}
	*ret_ms = whole * 1000 + part;
	return true;
}

static bool take_option(int option, struct options *ret)
{
	unsigned long long value = 0;

	switch (option) {
	case 'd': ret->dir = optarg; return true;
	case 's': return seconds(optarg, &ret->duration_ms);
	case 'm':
		if (!number(optarg, UINT32_MAX, &value))
			return false;
		ret->work.memory_mib = (uint32_t)value;
		return true;
	case 'u':
		if (!number(optarg, 1000, &value))
			return false;
		ret->work.util_milli = (uint32_t)value;
		return true;
	case 'w':
		if (!number(optarg, 1000, &value))
			return false;
		ret->work.memory_util_milli = (uint32_t)value;
		return true;
	case 'g':
		if (!number(optarg, WIRE_GPU_MAX, &value))
			return false;
		ret->gpu_count = (unsigned)value;
		return true;
	case 't':
		if (!number(optarg, 255, &value))
			return false;
		ret->term_code = (int)value;
		return true;
	default: return false;
	}
}

static bool read_options(int argc, char **argv, struct options *ret)
{
	static const struct option LONG[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "memory-mib", required_argument, NULL, 'm' },
		{ "util-milli", required_argument, NULL, 'u' },
		{ "memory-util-milli", required_argument, NULL, 'w' },
		{ "gpus", required_argument, NULL, 'g' },
		{ "dir", required_argument, NULL, 'd' },
		{ "term-code", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool has_memory_util = false;

	*ret = (struct options){ .dir = WIRE_DEFAULT_DIR,
				 .duration_ms = 10000,
				 .gpu_count = 1,
				 .term_code = EXIT_TERMINATED,
				 .work = { WIRE_WORK_MAGIC, 1024, 500, 0 } };
	for (int option; (option = getopt_long(argc, argv, "", LONG, NULL)) != -1;) {
		if (option == 'h') {
			fputs(USAGE, stdout);
			exit(EXIT_SUCCESS);
		}
		if (!take_option(option, ret))
			return false;
		has_memory_util = has_memory_util || option == 'w';
	}
	if (!has_memory_util)
		ret->work.memory_util_milli = ret->work.util_milli / 2;
	return optind == argc;
}

static int by_name(const void *a, const void *b)
{
	const struct gpu *left = a, *right = b;

	if (left->slot != right->slot)
		return left->slot < right->slot ? -1 : 1;
	return strcmp(left->name, right->name);
}

static bool is_socket_name(const char *name, unsigned *ret_slot)
{
	int end = 0;

	if (sscanf(name, "gpu-%3u.sock%n", ret_slot, &end) == 1 && end > 0 && name[end] == 0)
		return true;
	*ret_slot = UINT_MAX;
	size_t len = strlen(name);
	return strncmp(name, "MIG-", 4) == 0 && len > 9 && strcmp(name + len - 5, ".sock") == 0 &&
	       len < sizeof(gpus[0].name);
}

// Fills gpus from the names in the current folder.
static bool find(void)
{
	DIR *dir = opendir(".");

	if (dir == NULL)
		return false;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct gpu gpu = { .fd = -1 };
		if (gpu_count == WIRE_GPU_MAX || !is_socket_name(entry->d_name, &gpu.slot))
			continue;
		snprintf(gpu.name, sizeof(gpu.name), "%s", entry->d_name);
		gpus[gpu_count++] = gpu;
	}
	closedir(dir);
	qsort(gpus, gpu_count, sizeof(gpus[0]), by_name);
	return true;
}

static const char *why(const struct wire_work_reply *reply)
{
	switch ((enum wire_work_status)reply->status) {
	case WIRE_WORK_OK: return "ok";
	case WIRE_WORK_BAD_REQUEST: return "the request is malformed";
	case WIRE_WORK_NO_MEMORY: return "out of memory";
	case WIRE_WORK_FULL: return "too many processes";
	case WIRE_WORK_LOST: return "the GPU is lost";
	case WIRE_WORK_MIG: return "the GPU is in MIG mode";
	}
	return "unknown answer";
}

static bool take(struct gpu *gpu, const struct wire_work *work)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", gpu->name);
	gpu->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (gpu->fd < 0 ||
	    connect(gpu->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    send(gpu->fd, work, sizeof(*work), MSG_NOSIGNAL) != (ssize_t)sizeof(*work)) {
		fprintf(stderr, "gpuaas-workload: cannot use %s: %s\n", address.sun_path,
			strerror(errno));
		return false;
	}
	if (recv(gpu->fd, &gpu->reply, sizeof(gpu->reply), 0) != (ssize_t)sizeof(gpu->reply) ||
	    gpu->reply.magic != WIRE_WORK_MAGIC) {
		fprintf(stderr, "gpuaas-workload: %s gave no answer\n", address.sun_path);
		return false;
	}
	gpu->reply.uuid[sizeof(gpu->reply.uuid) - 1] = 0;
	gpu->reply.name[sizeof(gpu->reply.name) - 1] = 0;
	if (gpu->reply.status != WIRE_WORK_OK) {
		fprintf(stderr, "gpuaas-workload: %s refuses %u MiB: %s, %u MiB are free\n",
			gpu->reply.uuid, work->memory_mib, why(&gpu->reply), gpu->reply.free_mib);
		return false;
	}
	return true;
}

static unsigned long long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
	return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

// Until the time is over (0), a signal comes, or a GPU closes its socket (-1).
static int hold(int signal_fd, unsigned long long until_ms)
{
	struct pollfd wait[WIRE_GPU_MAX + 1];

	for (unsigned i = 0; i < gpu_count; i++)
		wait[i] = (struct pollfd){ .fd = gpus[i].fd, .events = POLLIN };
	wait[gpu_count] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
	for (;;) {
		unsigned long long now = now_ms();
		if (now >= until_ms)
			return 0;
		unsigned long long rest_ms = until_ms - now;
		int count = poll(wait, gpu_count + 1, rest_ms > 60000 ? 60000 : (int)rest_ms);
		if (count <= 0)
			continue;
		struct signalfd_siginfo signal;
		if (wait[gpu_count].revents != 0 &&
		    read(signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
			return (int)signal.ssi_signo;
		for (unsigned i = 0; i < gpu_count; i++) {
			if (wait[i].revents == 0)
				continue;
			fprintf(stderr, "gpuaas-workload: %s went away\n", gpus[i].reply.uuid);
			return -1;
		}
	}
}

static void say(const struct options *options, const char *what)
{
	printf("%s: %u GPU%s", what, gpu_count, gpu_count == 1 ? "" : "s");
	for (unsigned i = 0; i < gpu_count; i++)
		printf("%s %s", i == 0 ? "" : ",", gpus[i].reply.uuid);
	printf(" (%s), %u MiB and %u/1000 each for %llu.%03llu s\n",
	       gpu_count == 0 ? "none" : gpus[0].reply.name, options->work.memory_mib,
	       options->work.util_milli, options->duration_ms / 1000, options->duration_ms % 1000);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options;
	sigset_t signals;

	if (!read_options(argc, argv, &options)) {
		fputs(USAGE, stderr);
		return EXIT_USAGE;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	// As process 1 of a container it would otherwise not see SIGTERM at all.
	int signal_fd = sigprocmask(SIG_BLOCK, &signals, NULL) == 0
				? signalfd(-1, &signals, SFD_CLOEXEC)
				: -1;
	if (signal_fd < 0) {
		perror("gpuaas-workload: signals");
		return EXIT_FAILURE;
	}
	if ((chdir(options.dir) != 0 || !find()) && options.gpu_count > 0)
		fprintf(stderr, "gpuaas-workload: %s: %s\n", options.dir, strerror(errno));
	if (gpu_count < options.gpu_count) {
		fprintf(stderr, "gpuaas-workload: found %u GPUs in %s, need %u\n", gpu_count,
			options.dir, options.gpu_count);
		return EXIT_FAILURE;
	}
	unsigned long long until_ms = now_ms() + options.duration_ms;
	for (unsigned i = 0; i < gpu_count; i++)
		if (!take(&gpus[i], &options.work))
			return EXIT_FAILURE;
	say(&options, "using");
	int end = hold(signal_fd, until_ms);
	if (end == SIGTERM || end == SIGINT)
		say(&options, "interrupted");
	// The kernel closes the sockets, which releases the GPUs, before the exit code is seen.
	if (end == SIGTERM)
		return options.term_code;
	if (end == SIGINT)
		return EXIT_INTERRUPTED;
	return end == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
