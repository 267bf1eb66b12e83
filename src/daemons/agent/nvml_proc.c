// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_proc.h"

#include "daemons/agent/nvml_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// Between fork and exec only calls that are safe in a signal handler.
NORETURN static void become_child(const char *program, const struct nvml_libraries *libraries,
				  int fd)
{
	const char *address = libraries->dcgm_address == NULL ? "" : libraries->dcgm_address;
	char *const argv[] = { (char *)(uintptr_t) "gpuaas-agent",
			       (char *)(uintptr_t) "--nvml-child",
			       (char *)(uintptr_t)libraries->nvml,
			       (char *)(uintptr_t)libraries->dcgm, // NULL: the last
			       (char *)(uintptr_t)address,
			       NULL };
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	bool is_placed = fd == NVML_WIRE_FD ? fcntl(fd, F_SETFD, 0) == 0
					    : dup2(fd, NVML_WIRE_FD) == NVML_WIRE_FD;
	if (is_placed && close_range(NVML_WIRE_FD + 1, ~0U, 0) == 0)
		(void)execv(program, argv);
	_exit(127);
}

err_status nvml_spawn(const char *program, const struct nvml_libraries *libraries,
		      struct nvml_spawned *ret, struct err *err)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_sys(err, errno, "socket for the driver's child");
	pid_t pid = fork();
	if (pid == 0)
		become_child(program, libraries, fds[1]);
	int saved_errno = errno;
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return err_sys(err, saved_errno, "starting the driver's child");
	}
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
		saved_errno = errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0); // it has not called the driver yet
		(void)close(fds[0]);
		if (pidfd >= 0)
			(void)close(pidfd);
		return err_sys(err, saved_errno, "watching the driver's child");
	}
	*ret = (struct nvml_spawned){ .pid = pid, .pidfd = pidfd, .fd = fds[0] };
	return ERR_OK;
}

static void reap(void *arg, unsigned events)
{
	struct nvml_body *body = arg;
	(void)events;
	if (waitpid(body->pid, NULL, WNOHANG) == 0)
		return;
	loop_fd_free(body->watch);
	(void)close(body->pidfd);
	*body = (struct nvml_body){ 0 };
}

void nvml_bodies_add(struct nvml_bodies *bodies, const struct nvml_spawned *child, uint32_t owner)
{
	ASSERT(nvml_bodies_of(bodies, UINT32_MAX) < NVML_BODIES_MAX);
	(void)kill(child->pid, SIGKILL);
	for (size_t i = 0; i < NVML_BODIES_MAX; i++) {
		struct nvml_body *body = &bodies->items[i];
		if (body->pid != 0)
			continue;
		*body = (struct nvml_body){ .pid = child->pid,
					    .pidfd = child->pidfd,
					    .owner = owner };
		if (loop_fd_new(bodies->loop, child->pidfd, LOOP_READ, reap, body, &body->watch,
				NULL) != ERR_OK)
			body->watch = NULL; // it stays on the list; no harm but a lost place
		return;
	}
}

uint32_t nvml_bodies_of(const struct nvml_bodies *bodies, uint32_t owner)
{
	uint32_t count = 0;
	for (size_t i = 0; i < NVML_BODIES_MAX; i++) {
		const struct nvml_body *body = &bodies->items[i];
		if (body->pid != 0 && (owner == UINT32_MAX || body->owner == owner))
			count++;
	}
	return count;
}

void nvml_bodies_done(struct nvml_bodies *bodies)
{
	for (size_t i = 0; i < NVML_BODIES_MAX; i++) {
		struct nvml_body *body = &bodies->items[i];
		if (body->pid == 0)
			continue;
		loop_fd_free(body->watch);
		(void)waitpid(body->pid, NULL, WNOHANG); // else init does it
		(void)close(body->pidfd);
	}
}
