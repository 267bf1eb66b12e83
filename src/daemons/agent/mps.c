// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/mps.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Both are refused at once when nobody is there.
static bool has_listener(const char *path, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (S_ISFIFO(mode)) {
		AUTO(fs_closep) int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		return fd >= 0;
	}
	int n = snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (!S_ISSOCK(mode) || n < 0 || (size_t)n >= sizeof address.sun_path)
		return false;
	AUTO(fs_closep)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	// Another type of socket is one that somebody listens on.
	return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
	       errno == EPROTOTYPE || errno == EAGAIN;
}

bool mps_is_ready(const char *root, const char *resource)
{
	char path[512];
	struct stat info;
	int n = snprintf(path, sizeof path, "%s/%s/pipe/control", root, resource);
	return n > 0 && (size_t)n < sizeof path && stat(path, &info) == 0 &&
	       has_listener(path, info.st_mode);
}
