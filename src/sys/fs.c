// SPDX-License-Identifier: Apache-2.0
#include "sys/fs.h"

#include "sys/fault.h"
#include "sys/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void fs_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

err_status fs_read(const char *path, size_t limit_bytes, struct buf *ret_content, struct err *err)
{
	AUTO(fs_closep) int fd = fault_due() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	AUTO(buf_done) struct buf content = { .limit = limit_bytes + 1 };
	if (fd < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s does not exist", path)
				       : err_sys(err, errno, "opening %s", path);
	for (;;) {
		// One byte above the limit shows that there is more.
		size_t want = min_size(64 * 1024, limit_bytes + 1 - content.len);
		char *room = buf_reserve(&content, want);
		if (room == NULL)
			return err_set(err, ERR_LIMIT, "no memory to read %s", path);
		ssize_t got = fault_due() ? -1 : read(fd, room, want);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, errno, "reading %s", path);
		if (got == 0)
			break;
		buf_commit(&content, (size_t)got);
		if (content.len > limit_bytes)
			return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", path,
				       limit_bytes);
	}
	buf_clear(ret_content);
	buf_put(ret_content, buf_str(&content));
	if (!buf_ok(ret_content))
		return err_set(err, ERR_LIMIT, "%s does not fit the buffer", path);
	return ERR_OK;
}

err_status fs_write_all(int fd, struct str content, struct err *err)
{
	while (content.len > 0) {
		ssize_t done = fault_due() ? -1 : write(fd, content.data, content.len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(err, errno, "writing %zu bytes", content.len);
		content = str_slice(content, (size_t)done, content.len);
	}
	return ERR_OK;
}

static struct str folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash == NULL)
		return STR(".");
	return slash == path ? STR("/") : (struct str){ path, (size_t)(slash - path) };
}

err_status fs_sync_folder_of(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	int n = snprintf(folder, sizeof folder, STR_FMT, STR_ARG(folder_of(path)));
	if (n < 0 || (size_t)n >= sizeof folder)
		return err_set(err, ERR_INVALID, "path of %zu bytes is too long", strlen(path));
	AUTO(fs_closep)
	int fd = fault_due() ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "opening folder %s", folder);
	if (fault_due() || fsync(fd) != 0)
		return err_sys(err, errno, "syncing folder %s", folder);
	return ERR_OK;
}

static err_status write_new(const char *temp, struct str content, unsigned mode, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	AUTO(fs_closep) int fd = fault_due() ? -1 : open(temp, flags, (mode_t)mode);
	if (fd < 0)
		return err_sys(err, errno, "creating %s", temp);
	// The mode is part of the contract; the umask must not narrow it.
	if (fault_due() || fchmod(fd, (mode_t)mode) != 0)
		return err_sys(err, errno, "setting the mode of %s", temp);
	if (fs_write_all(fd, content, err) != ERR_OK)
		return err == NULL ? ERR_IO : err_wrap(err, "%s", temp);
	if (fault_due() || fsync(fd) != 0)
		return err_sys(err, errno, "syncing %s", temp);
	return ERR_OK;
}

err_status fs_write_atomic(const char *path, struct str content, unsigned mode, struct err *err)
{
	char temp[PATH_MAX], suffix[13];
	ASSERT((mode & ~07777U) == 0);
	random_base62(suffix, sizeof suffix - 1);
	int n = snprintf(temp, sizeof temp, "%s.tmp-%s", path, suffix);
	if (n < 0 || (size_t)n >= sizeof temp)
		return err_set(err, ERR_INVALID, "path of %zu bytes is too long", strlen(path));
	err_status status = write_new(temp, content, mode, err);
	if (status != ERR_OK) {
		(void)unlink(temp); // what is half written helps nobody
		return status;
	}
	if (fault_due() || rename(temp, path) != 0) {
		int saved_errno = errno;
		(void)unlink(temp);
		return err_sys(err, saved_errno, "renaming to %s", path);
	}
	return fs_sync_folder_of(path, err);
}

static err_status make_folder(const char *path, unsigned mode, struct err *err)
{
	struct stat info;
	if (!fault_due() && mkdir(path, (mode_t)mode) == 0)
		return ERR_OK;
	if (errno != EEXIST)
		return err_sys(err, errno, "making folder %s", path);
	if (stat(path, &info) != 0)
		return err_sys(err, errno, "looking at %s", path);
	if (!S_ISDIR(info.st_mode))
		return err_set(err, ERR_CONFLICT, "%s exists and is not a folder", path);
	return ERR_OK;
}

err_status fs_mkdirs(const char *path, unsigned mode, struct err *err)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof part)
		return err_set(err, ERR_INVALID, "path of %zu bytes cannot be made", length);
	for (size_t i = 0; i <= length; i++) {
		if (i > 0 && (path[i] == '/' || path[i] == '\0') && path[i - 1] != '/') {
			part[i] = '\0';
			err_status status = make_folder(part, mode, err);
			if (status != ERR_OK)
				return status;
		}
		part[i] = path[i];
	}
	return ERR_OK;
}
