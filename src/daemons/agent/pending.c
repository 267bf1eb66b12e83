// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/pending.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

err_status pending_write(const char *path, struct str content, struct err *err)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof temp, "%s.tmp", path);
	if (n < 0 || (size_t)n >= sizeof temp)
		return err_set(err, ERR_INVALID, "path of %zu bytes is too long", strlen(path));
	AUTO(fs_closep) int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "creating %s", temp);
	err_status status = fs_write_all(fd, content, err);
	if (status != ERR_OK) {
		(void)unlink(temp); // what is half written helps nobody
		return status;
	}
	if (rename(temp, path) != 0)
		return err_sys(err, errno, "renaming to %s", path);
	return ERR_OK;
}
