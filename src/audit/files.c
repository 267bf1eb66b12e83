// SPDX-License-Identifier: Apache-2.0
#include "audit/files.h"

#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES_MAX = 100000, TAIL_READ_MAX_BYTES = 1024 * 1024 * 1024 };

static int is_log_file(const struct dirent *entry)
{
	struct str name = str_of(entry->d_name), prefix = STR("audit-"), suffix = STR(".jsonl");
	int64_t seq = 0;
	if (!str_starts(name, prefix) || !str_ends(name, suffix))
		return 0;
	struct str digits = str_slice(name, prefix.len, name.len - suffix.len);
	return digits.len == 15 && str_to_i64(digits, &seq) && seq > 0;
}

static void free_names(struct dirent **names, int count)
{
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

err_status audit_list_files(struct arena *arena, const char *dir, const char *const **ret_paths,
			    size_t *ret_count, struct err *err)
{
	struct dirent **names = NULL;
	int count = scandir(dir, &names, is_log_file, alphasort);
	if (count < 0)
		return err_sys(err, errno, "read folder %s", dir);
	const char **paths = ARENA_ARRAY(arena, const char *, (size_t)count + 1);
	bool is_good = paths != NULL && count <= FILES_MAX;
	for (int i = 0; i < count && is_good; i++) {
		paths[i] = arena_printf(arena, "%s/%s", dir, names[i]->d_name);
		is_good = paths[i] != NULL;
	}
	free_names(names, count);
	if (!is_good)
		return err_set(err, ERR_LIMIT, "too many files in %s", dir);
	*ret_paths = paths;
	*ret_count = (size_t)count;
	return ERR_OK;
}

static err_status damaged(const struct audit_tail *tail, const struct err *why, struct err *err)
{
	return err_set(err, ERR_INTERNAL,
		       "the audit log is damaged in %s after record %" PRId64
		       " (%s); run `gpuaas audit verify`, keep the folder as evidence, and start "
		       "with an empty one",
		       tail->path, tail->place.seq,
		       why->text[0] == '\0' ? "chain broken" : why->text);
}

// Walks the lines; stops at what a crash can leave: a last line that is not whole.
static err_status walk(struct str text, struct audit_tail *tail, struct err *err)
{
	size_t begin = 0, end;
	while ((end = str_find_byte(text, '\n', begin)) != SIZE_MAX) {
		struct audit_line line;
		struct err why = { 0 };
		bool is_last = str_find_byte(text, '\n', end + 1) == SIZE_MAX;
		err_status status = audit_decode(str_slice(text, begin, end), &line, &why);
		if (status != ERR_OK && !is_last)
			return damaged(tail, &why, err);
		if (status != ERR_OK)
			break;
		bool is_linked = tail->place.seq == 0 ||
				 (line.seq == tail->place.seq + 1 &&
				  audit_hash_eq(&line.prev, &tail->place.head));
		if (!is_linked)
			return damaged(tail, &why, err);
		tail->place = (struct audit_place){ line.seq, line.hash };
		memcpy(tail->chain, line.chain, sizeof tail->chain);
		begin = end + 1;
	}
	tail->size_bytes = (int64_t)begin;
	tail->torn_bytes = (int64_t)(text.len - begin);
	return ERR_OK;
}

static err_status tail_of_file(const char *path, struct audit_tail *ret_tail, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = TAIL_READ_MAX_BYTES };
	err_status status = fs_read(path, TAIL_READ_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	struct audit_tail tail = { 0 };
	(void)snprintf(tail.path, sizeof tail.path, "%s", path);
	status = walk(buf_str(&content), &tail, err);
	if (status == ERR_OK)
		*ret_tail = tail;
	return status;
}

err_status audit_files_find_tail(const char *dir, struct audit_tail *ret_tail, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024 * 1024);
	const char *const *paths = NULL;
	size_t count = 0;
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory");
	err_status status = audit_list_files(arena, dir, &paths, &count, err);
	*ret_tail = (struct audit_tail){ 0 };
	while (status == ERR_OK && count > 0) {
		status = tail_of_file(paths[count - 1], ret_tail, err);
		if (status != ERR_OK || ret_tail->place.seq > 0)
			return status;
		// A file without one whole record is what a crash right after rotation leaves.
		if (unlink(paths[count - 1]) != 0)
			return err_sys(err, errno, "remove %s", paths[count - 1]);
		*ret_tail = (struct audit_tail){ .torn_bytes = ret_tail->torn_bytes };
		count--;
	}
	return status;
}

err_status audit_files_create(const char *dir, int64_t first_seq, int *ret_fd, struct err *err)
{
	char path[AUDIT_PATH_BYTES];
	int len = snprintf(path, sizeof path, "%s/audit-%015" PRId64 ".jsonl", dir, first_seq);
	if (len < 0 || (size_t)len >= sizeof path)
		return err_set(err, ERR_INVALID, "the folder's name is too long: %s", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "create %s", path);
	err_status status = fs_sync_folder_of(path, err);
	if (status != ERR_OK) {
		(void)close(fd);
		(void)unlink(path); // or the name would stay taken for the next try
		return status;
	}
	*ret_fd = fd;
	return ERR_OK;
}

err_status audit_files_reserve(int fd, int64_t from_bytes, int64_t size_bytes, struct err *err)
{
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, from_bytes, size_bytes) == 0)
		return ERR_OK;
	if (errno == EOPNOTSUPP || errno == ENOSYS)
		return ERR_OK;
	return err_sys(err, errno, "reserve %" PRId64 " bytes for the audit log", size_bytes);
}
