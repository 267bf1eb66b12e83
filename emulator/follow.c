// SPDX-License-Identifier: Apache-2.0
#include "emulator/follow.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLLOW_NAME "control"

void follow_init(struct follow *follow, int dir_fd)
{
	*follow = (struct follow){ .dir_fd = dir_fd, .fd = -1 };
}

void follow_done(struct follow *follow)
{
	if (follow->fd >= 0)
		close(follow->fd);
	follow->fd = -1;
}

static void start_over(struct follow *follow)
{
	follow->offset = 0;
	follow->rest = (struct str){ 0 };
	control_lines_reset(&follow->lines);
}

// Opens the file that has the name now; keeps the old one while there is none.
static void reopen(struct follow *follow)
{
	struct stat named, open_one;

	if (fstatat(follow->dir_fd, FOLLOW_NAME, &named, 0) != 0 || !S_ISREG(named.st_mode))
		return;
	if (follow->fd >= 0 && named.st_ino == follow->inode) {
		if (named.st_size < follow->offset)
			start_over(follow);
		return;
	}
	int fd = openat(follow->dir_fd, FOLLOW_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &open_one) != 0) {
		close(fd);
		return;
	}
	follow_done(follow);
	follow->fd = fd;
	follow->inode = open_one.st_ino;
	start_over(follow);
}

bool follow_next(struct follow *follow, struct str *ret_line, bool *ret_too_long)
{
	for (;;) {
		if (follow->rest.len > 0 &&
		    control_lines_next(&follow->lines, &follow->rest, ret_line, ret_too_long))
			return true;
		reopen(follow);
		if (follow->fd < 0)
			return false;
		ssize_t got =
			pread(follow->fd, follow->chunk, sizeof(follow->chunk), follow->offset);
		if (got <= 0)
			return false;
		follow->offset += got;
		follow->rest = (struct str){ follow->chunk, (size_t)got };
	}
}
