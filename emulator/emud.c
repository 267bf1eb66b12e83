// SPDX-License-Identifier: Apache-2.0
// gpuaas-emud: plays the GPUs of one machine. See README.md.
#include "emulator/follow.h"
#include "emulator/server.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	EXIT_USAGE = 2,
	FOLLOW_PERIOD_MS = 250, // in case the file system tells no changes
	ERRORS_MAX_BYTES = 1 << 20,
};

struct options {
	const char *dir, *boards;
	struct machine_plan plan;
};

struct emud {
	struct machine machine;
	struct server server;
	struct follow follow;
	int dir_fd, inotify_fd, signal_fd;
	char board_dir[512];
};

static const char USAGE[] =
	"usage: gpuaas-emud --dir DIR [--boards FOLDER]\n"
	"       gpuaas-emud --make BOARDFILE --count N --seed NAME [--driver VERSION]\n"
	"                   [--cuda VERSION] [--cpus N]      (prints a boards.json)\n"
	"\n"
	"Plays the GPUs that DIR/boards.json describes. Follows DIR/control for commands, reports\n"
	"wrong ones in DIR/control.errors, serves the NVML library at DIR/emu.sock and workloads\n"
	"at DIR/gpu-N.sock. Boards that boards.json does not hold come from FOLDER (DIR/boards).\n"
	"Commands: lost I; xid I CODE [GI CI]; initfail on|off; wait-error on|off; slow CALL US;\n"
	"hang CALL I; error CALL CODE [I]; add BOARD; remove I; driver VERSION [CUDA];\n"
	"restore I; recovery I ACTION; process I PID MIB [GI CI]; mig I on|off;\n"
	"mig I create PROFILE [START]; mig I destroy GI|all; temp I C;\n"
	"throttle I MASK; ecc I on|off;\n"
	"ecc I corrected|uncorrected N; pages I SINGLE DOUBLE PENDING;\n"
	"rows I CORRECTABLE UNCORRECTABLE PENDING FAILED.\n";

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// Taken once: samples keep their instants when somebody sets the clock.
static int64_t wall_offset_us(void)
{
	struct timespec wall;

	(void)clock_gettime(CLOCK_REALTIME, &wall); // cannot fail for this clock
	return (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000 - (int64_t)(now_ns() / 1000);
}

// The file is outside's text: unprintable bytes do not reach a terminal.
static void report(const struct emud *emud, struct str line, const char *why)
{
	char text[CONTROL_LINE_MAX + 1];
	struct stat info;

	for (size_t i = 0; i < line.len; i++)
		text[i] = line.data[i] >= ' ' && line.data[i] <= '~' ? line.data[i] : '?';
	text[line.len] = 0;
	fprintf(stderr, "gpuaas-emud: control line %llu: %s: %s\n",
		(unsigned long long)emud->follow.lines.line_number, text, why);
	int fd = openat(emud->dir_fd, "control.errors",
			O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return;
	if (fstat(fd, &info) == 0 && info.st_size < ERRORS_MAX_BYTES)
		dprintf(fd, "line %llu: %s: %s\n",
			(unsigned long long)emud->follow.lines.line_number, text, why);
	close(fd);
}

static void follow_control(struct emud *emud)
{
	struct str line = { 0 };
	bool is_too_long = false;

	while (follow_next(&emud->follow, &line, &is_too_long)) {
		struct control_command command;
		struct err err = { 0 };
		if (is_too_long) {
			report(emud, line, "the line is longer than 255 bytes");
			continue;
		}
		if (control_parse(line, &command, &err) != ERR_OK ||
		    server_command(&emud->server, &command, emud->board_dir, now_ns(), &err) !=
			    ERR_OK)
			report(emud, line, err.text);
	}
}

// Nanoseconds, so that a call slowed by some microseconds is not slowed by a millisecond.
static struct timespec wait_time(const struct emud *emud)
{
	const uint64_t max_ns = FOLLOW_PERIOD_MS * UINT64_C(1000000);
	uint64_t deadline_ns = server_deadline_ns(&emud->server), now = now_ns();
	uint64_t wait_ns = deadline_ns <= now ? 0 : deadline_ns - now;

	return (struct timespec){ .tv_nsec = (long)(wait_ns < max_ns ? wait_ns : max_ns) };
}

static void run(struct emud *emud)
{
	struct pollfd wait[] = {
		{ .fd = emud->server.epoll_fd, .events = POLLIN },
		{ .fd = emud->inotify_fd, .events = POLLIN },
		{ .fd = emud->signal_fd, .events = POLLIN },
	};
	char drain[4096];

	uint64_t followed_ns = now_ns();
	follow_control(emud);
	for (;;) {
		struct timespec timeout = wait_time(emud);
		int count = ppoll(wait, ARRAY_COUNT(wait), &timeout, NULL);
		if (count > 0 && wait[2].revents != 0)
			return;
		if (count > 0 && wait[1].revents != 0)
			while (read(emud->inotify_fd, drain, sizeof(drain)) > 0)
				continue; // which file it was does not matter
		if (wait[1].revents != 0 ||
		    now_ns() - followed_ns >= FOLLOW_PERIOD_MS * UINT64_C(1000000)) {
			followed_ns = now_ns();
			follow_control(emud);
		}
		server_step(&emud->server, now_ns());
	}
}

static err_status take_dir(struct emud *emud, const struct options *options, struct err *err)
{
	if (options->boards != NULL) {
		char *full = realpath(options->boards, NULL);
		if (full == NULL)
			return err_sys(err, errno, "cannot use boards folder %s", options->boards);
		snprintf(emud->board_dir, sizeof(emud->board_dir), "%s", full);
		free(full);
	} else {
		snprintf(emud->board_dir, sizeof(emud->board_dir), "boards");
	}
	emud->dir_fd = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (emud->dir_fd < 0 || fchdir(emud->dir_fd) != 0)
		return err_sys(err, errno, "cannot use folder %s", options->dir);
	// The lock is held until the process ends, whatever ends it.
	int lock_fd = open("emud.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (lock_fd < 0)
		return err_sys(err, errno, "cannot write to folder %s", options->dir);
	if (flock(lock_fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(err, ERR_CONFLICT, "another gpuaas-emud runs in %s", options->dir);
	return ERR_OK;
}

static err_status take_system(struct emud *emud, struct err *err)
{
	sigset_t signals;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max < SERVER_CONN_MAX + 64 ? files.rlim_max
								       : SERVER_CONN_MAX + 64;
		(void)setrlimit(RLIMIT_NOFILE, &files); // fewer connections then
	}
	// A reader of our messages that goes away must not take the hardware with it.
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
		return err_sys(err, errno, "cannot block signals");
	emud->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	emud->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (emud->signal_fd < 0 || emud->inotify_fd < 0)
		return err_sys(err, errno, "cannot watch signals and files");
	// Without a watch (limit of the system) the period finds changes too.
	(void)inotify_add_watch(emud->inotify_fd, ".",
				IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE);
	return ERR_OK;
}

static err_status play(const struct options *options, struct err *err)
{
	static struct emud emud;

	err_status status = take_dir(&emud, options, err);
	if (status == ERR_OK)
		status = take_system(&emud, err);
	if (status == ERR_OK)
		status = machine_read("boards.json", emud.board_dir, now_ns(), &emud.machine, err);
	if (status != ERR_OK)
		return status;
	emud.machine.wall_offset_us = wall_offset_us();
	follow_init(&emud.follow, emud.dir_fd);
	status = server_open(&emud.server, &emud.machine, err);
	if (status == ERR_OK) {
		fprintf(stderr, "gpuaas-emud: %u GPUs in %s\n", machine_gpu_count(&emud.machine),
			options->dir);
		run(&emud);
	}
	server_close(&emud.server);
	follow_done(&emud.follow);
	return status;
}

static err_status make(const struct options *options, struct err *err)
{
	AUTO(buf_done) struct buf out = { 0 };

	err_status status = machine_make(&options->plan, &out, err);
	if (status != ERR_OK)
		return status;
	if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return err_sys(err, errno, "cannot write");
	return ERR_OK;
}

static bool count_of(const char *text, uint32_t *ret_count)
{
	uint64_t value = 0;

	if (!str_to_u64(str_of(text), &value) || value == 0 || value > 1024)
		return false;
	*ret_count = (uint32_t)value;
	return true;
}

static bool read_options(int argc, char **argv, struct options *ret)
{
	static const struct option LONG[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ "boards", required_argument, NULL, 'b' },
		{ "make", required_argument, NULL, 'm' },
		{ "count", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "driver", required_argument, NULL, 'v' },
		{ "cuda", required_argument, NULL, 'c' },
		{ "cpus", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};

	*ret = (struct options){ .plan = {
					 .driver = "570.86.15", .cuda = "12.8", .cpu_count = 96 } };
	for (int option; (option = getopt_long(argc, argv, "", LONG, NULL)) != -1;) {
		if (option == 'd')
			ret->dir = optarg;
		else if (option == 'b')
			ret->boards = optarg;
		else if (option == 'm')
			ret->plan.board_path = optarg;
		else if (option == 's')
			ret->plan.seed = optarg;
		else if (option == 'v')
			ret->plan.driver = optarg;
		else if (option == 'c')
			ret->plan.cuda = optarg;
		else if (option == 'h') {
			fputs(USAGE, stdout);
			exit(EXIT_SUCCESS);
		} else if ((option != 'n' || !count_of(optarg, &ret->plan.gpu_count)) &&
			   (option != 'p' || !count_of(optarg, &ret->plan.cpu_count)))
			return false;
	}
	bool is_make = ret->plan.board_path != NULL;
	if (is_make && (ret->plan.seed == NULL || ret->plan.gpu_count == 0))
		return false;
	return optind == argc && is_make != (ret->dir != NULL);
}

int main(int argc, char **argv)
{
	struct options options;
	struct err err = { 0 };

	if (!read_options(argc, argv, &options)) {
		fputs(USAGE, stderr);
		return EXIT_USAGE;
	}
	err_status status = options.dir != NULL ? play(&options, &err) : make(&options, &err);
	if (status == ERR_OK)
		return EXIT_SUCCESS;
	fprintf(stderr, "gpuaas-emud: %s\n", err.text);
	return err_exit_code(status);
}
