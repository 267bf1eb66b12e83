// SPDX-License-Identifier: Apache-2.0
// Files: limits, replacement that leaves the old content on every failure, a full disk (on a
// small tmpfs, where the test may mount one), folders, random text.
#include "sys/fs.h"

#include "check.h"
#include "sys/fault.h"
#include "sys/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/fs_test.XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[4][256];
	static size_t next;
	char *path = paths[next++ % 4];
	(void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static size_t count_files(const char *path)
{
	size_t count = 0;
	DIR *dir = opendir(path);
	ASSERT(dir != NULL);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
		count += e->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

static void test_read(struct check *c)
{
	AUTO(buf_done) struct buf content = { .limit = 0 };
	struct err err;
	const char *path = in_folder("ten");
	CHECK_INT(c, "write", fs_write_atomic(path, STR("0123456789"), 0600, &err), ERR_OK);
	CHECK_INT(c, "read at the limit", fs_read(path, 10, &content, &err), ERR_OK);
	CHECK_STR(c, "content", buf_str(&content), "0123456789");
	CHECK_INT(c, "above the limit", fs_read(path, 9, &content, &err), ERR_LIMIT);
	CHECK_STR(c, "untouched on failure", buf_str(&content), "0123456789");
	CHECK_INT(c, "absent", fs_read(in_folder("none"), 10, &content, &err), ERR_NOT_FOUND);
	CHECK_INT(c, "a folder", fs_read(folder, 10, &content, &err), ERR_IO);
	CHECK_INT(c, "a folder's errno", err.sys_errno, EISDIR);
	CHECK_INT(c, "limit 0 and an empty file", fs_write_atomic(path, STR(""), 0600, &err),
		  ERR_OK);
	CHECK_INT(c, "reads", fs_read(path, 0, &content, &err), ERR_OK);
	CHECK_STR(c, "as nothing", buf_str(&content), "");
}

static void test_replace(struct check *c)
{
	AUTO(buf_done) struct buf content = { .limit = 0 };
	struct err err;
	struct stat info;
	const char *path = in_folder("replaced");
	size_t before = count_files(folder);
	(void)umask(077);
	CHECK_INT(c, "first", fs_write_atomic(path, STR("old"), 0644, &err), ERR_OK);
	CHECK_INT(c, "second", fs_write_atomic(path, STR("new"), 0644, &err), ERR_OK);
	CHECK_INT(c, "read", fs_read(path, 10, &content, &err), ERR_OK);
	CHECK_STR(c, "new content", buf_str(&content), "new");
	CHECK(c, "mode in spite of the umask",
	      stat(path, &info) == 0 && (info.st_mode & 0777) == 0644);
	CHECK_INT(c, "no temporary file stays", count_files(folder), before + 1);
	CHECK_INT(c, "no folder", fs_write_atomic(in_folder("no/file"), STR("x"), 0644, &err),
		  ERR_IO);
	CHECK_INT(c, "its errno", err.sys_errno, ENOENT);
	CHECK_INT(c, "make a folder", fs_mkdirs(in_folder("full"), 0755, &err), ERR_OK);
	CHECK_INT(c, "over a folder", fs_write_atomic(in_folder("full"), STR("x"), 0644, &err),
		  ERR_IO);
	CHECK_INT(c, "nothing stays of that", count_files(folder), before + 2);
}

static void test_mkdirs(struct check *c)
{
	struct err err;
	CHECK_INT(c, "three levels", fs_mkdirs(in_folder("a/b//c/"), 0755, &err), ERR_OK);
	CHECK_INT(c, "again", fs_mkdirs(in_folder("a/b/c"), 0755, &err), ERR_OK);
	CHECK_INT(c, "a file is in the way", fs_write_atomic(in_folder("a/f"), STR(""), 0600, &err),
		  ERR_OK);
	CHECK_INT(c, "and refused", fs_mkdirs(in_folder("a/f"), 0755, &err), ERR_CONFLICT);
	CHECK_INT(c, "and below it", fs_mkdirs(in_folder("a/f/g"), 0755, &err), ERR_CONFLICT);
	CHECK_INT(c, "empty path", fs_mkdirs("", 0755, &err), ERR_INVALID);
}

static void test_write_fails(struct check *c)
{
	struct err err;
	AUTO(fs_closep) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CHECK_INT(c, "/dev/full", fs_write_all(full, STR("x"), &err), ERR_IO);
	CHECK_INT(c, "says no space", err.sys_errno, ENOSPC);
	CHECK_INT(c, "closed fd", fs_write_all(-1, STR("x"), &err), ERR_IO);
	CHECK_INT(c, "its errno", err.sys_errno, EBADF);
	CHECK_INT(c, "nothing to write", fs_write_all(-1, STR(""), &err), ERR_OK);
	CHECK_INT(c, "sync of an absent folder", fs_sync_folder_of("/nowhere/file", &err), ERR_IO);
	CHECK_INT(c, "no err wanted", fs_write_atomic("/nowhere/file", STR("x"), 0600, NULL),
		  ERR_IO);
}

// In a mount namespace of its own, so that nothing stays whatever happens.
static void test_full_disk(struct check *c)
{
	AUTO(buf_done) struct buf content = { .limit = 0 };
	static char big[256 * 1024];
	struct err err;
	const char *disk = in_folder("disk");
	CHECK_INT(c, "mount point", fs_mkdirs(disk, 0755, &err), ERR_OK);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", disk, "tmpfs", 0, "size=64k") != 0) {
		printf("full disk: not allowed to mount, left out\n");
		return;
	}
	const char *path = in_folder("disk/file");
	CHECK_INT(c, "small fits", fs_write_atomic(path, STR("kept"), 0600, &err), ERR_OK);
	CHECK_INT(c, "large does not",
		  fs_write_atomic(path, (struct str){ big, sizeof big }, 0600, &err), ERR_IO);
	CHECK_INT(c, "no space", err.sys_errno, ENOSPC);
	CHECK_INT(c, "old content can be read", fs_read(path, 100, &content, &err), ERR_OK);
	CHECK_STR(c, "and is whole", buf_str(&content), "kept");
	CHECK_INT(c, "half a file does not stay", count_files(disk), 1);
	(void)umount(disk);
}

// Every system call of a replacement fails once: the file is then the old or the new one, whole,
// and nothing else is in the folder.
static void test_every_fault(struct check *c)
{
	struct err err;
	size_t nth = 1;
	CHECK_INT(c, "folder", fs_mkdirs(in_folder("faults"), 0755, &err), ERR_OK);
	for (bool hit = true; hit; nth++) {
		AUTO(buf_done) struct buf content = { .limit = 0 };
		const char *path = in_folder("faults/file");
		CHECK_INT(c, "old", fs_write_atomic(path, STR("old"), 0600, &err), ERR_OK);
		fault_arm(nth, 1, EIO);
		err_status status = fs_write_atomic(path, STR("new"), 0600, &err);
		hit = fault_disarm();
		CHECK_INT(c, "fails when a call failed", status, hit ? ERR_IO : ERR_OK);
		CHECK(c, "says which", !hit || err.sys_errno == EIO);
		CHECK_INT(c, "readable", fs_read(path, 10, &content, &err), ERR_OK);
		CHECK(c, "whole",
		      str_eq_c(buf_str(&content), "old") || str_eq_c(buf_str(&content), "new"));
		CHECK(c, "new when it says so",
		      status != ERR_OK || str_eq_c(buf_str(&content), "new"));
		CHECK_INT(c, "alone", count_files(in_folder("faults")), 1);
		fault_arm(nth, 1, EIO);
		status = fs_write_atomic(path, STR("new"), 0600, NULL);
		(void)fault_disarm();
		CHECK_INT(c, "also when nobody wants the error", status, hit ? ERR_IO : ERR_OK);
	}
	CHECK(c, "open, mode, write, sync, rename, folder, its sync", nth - 2 >= 7);
	for (int sys_errno = 0; sys_errno <= 1; sys_errno++) {
		fault_arm(1, 2, sys_errno == 0 ? EINTR : EACCES);
		CHECK_INT(c, "interrupted writes go on, others do not",
			  fs_write_all(STDOUT_FILENO, STR("\n"), &err),
			  sys_errno == 0 ? ERR_OK : ERR_IO);
		CHECK(c, "hit", fault_disarm());
	}
}

static void test_random(struct check *c)
{
	char text[101], uuid[37], other[37];
	random_base62(text, 100);
	size_t good = 0;
	for (size_t i = 0; i < 100; i++)
		good += (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'A' && text[i] <= 'Z') ||
			(text[i] >= 'a' && text[i] <= 'z');
	CHECK_INT(c, "base62 digits", good, 100);
	CHECK_INT(c, "terminated", strlen(text), 100);
	random_uuid(uuid);
	random_uuid(other);
	CHECK_INT(c, "uuid length", strlen(uuid), 36);
	CHECK(c, "version and variant",
	      uuid[14] == '4' && strchr("89ab", uuid[19]) != NULL && uuid[8] == '-');
	CHECK(c, "no two alike", strcmp(uuid, other) != 0);
	static unsigned char many[1000];
	random_bytes(many, sizeof many);
	CHECK(c, "also the last bytes are filled", memcmp(many + 900, many + 800, 100) != 0);
}

int main(void)
{
	struct check c = { 0, 0 };
	const char *made = mkdtemp(folder);
	ASSERT(made != NULL);
	test_read(&c);
	test_replace(&c);
	test_mkdirs(&c);
	test_write_fails(&c);
	test_random(&c);
	test_every_fault(&c);
	test_full_disk(&c);
	char command[300];
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	CHECK_INT(&c, "clean up", system(command), 0);
	return check_done(&c);
}
