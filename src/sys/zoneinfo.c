// SPDX-License-Identifier: Apache-2.0
#include "sys/zoneinfo.h"

#include "sys/fs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX_BYTES = 256 * 1024 };

err_status zoneinfo_read(struct str name, struct buf *ret_tzif, struct err *err)
{
	char path[PATH_MAX];
	const char *folder = getenv("TZDIR");
	if (folder == NULL || folder[0] == '\0')
		folder = "/usr/share/zoneinfo";
	int length = snprintf(path, sizeof path, "%s/" STR_FMT, folder, STR_ARG(name));
	if (length < 0 || (size_t)length >= sizeof path)
		return err_set(err, ERR_INVALID, "name of the time zone is too long");
	err_status status = fs_read(path, FILE_MAX_BYTES, ret_tzif, err);
	if (status == ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no time zone \"" STR_FMT "\" in %s; is tzdata installed?",
			       STR_ARG(name), folder);
	return status;
}
