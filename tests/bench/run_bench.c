// SPDX-License-Identifier: Apache-2.0
// Runs a command several times and tells CPU, wall time and peak memory. It is small itself,
// because the kernel counts the starter's memory as the peak of what it starts.
//   run-bench [--repeat N] [--output FILE] -- COMMAND [ARGUMENT...]
#include "measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static NORETURN void become(char **command, const char *output)
{
	const int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		measure_fail("%s cannot be written", output);
	execvp(command[0], command);
	measure_fail("%s cannot be started", command[0]);
}

int main(int argc, char **argv)
{
	int64_t repeat = 1;
	const char *output = "/dev/null";
	int i = 1;
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--repeat") == 0)
			repeat = measure_number(argc, argv, &i);
		else if (strcmp(argv[i], "--output") == 0)
			output = measure_value(argc, argv, &i);
		else
			measure_fail("%s: no such option", argv[i]);
	}
	if (i + 1 >= argc)
		measure_fail(
			"use: run-bench [--repeat N] [--output FILE] -- COMMAND [ARGUMENT...]");
	struct samples wall = { 0 }, cpu = { 0 };
	long rss_kib = 0;
	for (int64_t k = 0; k < repeat; k++) {
		const uint64_t start_ns = clock_mono_ns();
		const pid_t pid = fork();
		if (pid == 0)
			become(argv + i + 1, output);
		int status;
		struct rusage usage;
		if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
			measure_fail("cannot start or wait");
		samples_add(&wall, clock_mono_ns() - start_ns);
		samples_add(&cpu, time_ns(usage.ru_utime) + time_ns(usage.ru_stime));
		rss_kib = usage.ru_maxrss > rss_kib ? usage.ru_maxrss : rss_kib;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			measure_fail("%s: status %#x", argv[i + 1], (unsigned)status);
	}
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out, "{\"rss_kib\":%ld", rss_kib);
	samples_put(&wall, "wall", &out);
	samples_put(&cpu, "cpu", &out);
	buf_put_byte(&out, '}');
	measure_print(&out);
	samples_done(&wall);
	samples_done(&cpu);
	return 0;
}
