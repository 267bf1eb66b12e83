// SPDX-License-Identifier: Apache-2.0
// The first process of every pod: it holds the pod's namespaces, reaps what is left to it, and
// ends when told to. Built static, it is the only file of its image.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(int number)
{
	if (number != SIGCHLD)
		_exit(0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

int main(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGCHLD };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NOCLDSTOP };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		if (sigaction(numbers[i], &action, NULL) != 0)
			return 1;
	}
	for (;;)
		(void)pause();
}
