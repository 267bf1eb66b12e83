// SPDX-License-Identifier: Apache-2.0
// Opening: identity of the folder, last snapshot, files in order, the torn end cut.
#include "journal/segment.h"
#include "journal/state.h"
#include "sys/fs.h"
#include "sys/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { IDENTITY_LEN = 8 };

uint64_t journal_line_seq(struct str text)
{
	// Quotes inside JSON text are escaped, so this only matches the member itself.
	static const struct str key = { ",\"seq\":", 7 };
	for (size_t i = 0; i + key.len < text.len; i++) {
		if (!str_eq(str_slice(text, i, i + key.len), key))
			continue;
		size_t end = i + key.len;
		while (end < text.len && text.data[end] >= '0' && text.data[end] <= '9')
			end++;
		uint64_t seq = 0;
		return str_to_u64(str_slice(text, i + key.len, end), &seq) ? seq : 0;
	}
	return 0;
}

// A folder that was wiped and begun anew must not repeat identities within one boot of the
// kernel, so a random word of the folder is part of "boot".
static err_status load_identity(struct journal *journal, const char *boot_id, struct err *err)
{
	char path[PATH_MAX], word[IDENTITY_LEN + 1];
	AUTO(buf_done) struct buf content = { 0 };
	(void)snprintf(path, sizeof path, "%s/identity", journal->dir);
	err_status status = fs_read(path, 64, &content, err);
	if (status != ERR_OK && status != ERR_NOT_FOUND)
		return status;
	struct str old = str_trim(buf_str(&content));
	if (status == ERR_OK && old.len == IDENTITY_LEN && str_is_utf8(old)) {
		memcpy(word, old.data, IDENTITY_LEN);
		word[IDENTITY_LEN] = '\0';
	} else {
		random_base62(word, IDENTITY_LEN);
		int failure = journal_step(journal, "identity");
		if (failure != 0)
			return err_sys(err, failure, "writing %s", path);
		if (fs_write_atomic(path, str_of(word), 0600, err) != ERR_OK)
			return err_wrap(err, "identity of the journal");
	}
	int n = snprintf(journal->boot, sizeof journal->boot, "%s.%s", boot_id, word);
	if (n < 0 || (size_t)n >= sizeof journal->boot)
		return err_set(err, ERR_INVALID, "boot id is too long: %s", boot_id);
	return ERR_OK;
}

struct snapshot_load {
	struct journal *journal;
	const struct journal_replay *replay;
	bool is_headed;
};

static void on_snapshot_line(void *arg, struct str text, size_t at)
{
	struct snapshot_load *load = arg;
	if (at == 0) {
		load->journal->snapshot_seq = journal_line_seq(text);
		load->is_headed = true;
		return;
	}
	if (load->is_headed && load->replay->on_snapshot != NULL)
		load->replay->on_snapshot(load->replay->arg, text);
}

static err_status load_snapshot(struct journal *journal, const struct journal_replay *replay,
				struct err *err)
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf content = { 0 };
	struct snapshot_load load = { .journal = journal, .replay = replay };
	(void)snprintf(path, sizeof path, "%s/snapshot", journal->dir);
	err_status status = fs_read(path, JOURNAL_READ_MAX_BYTES, &content, err);
	if (status == ERR_NOT_FOUND)
		return ERR_OK;
	if (status != ERR_OK)
		return status;
	struct segment_scan scan = segment_read(buf_str(&content), on_snapshot_line, &load);
	journal->stats.damaged_lines += scan.damaged + (scan.good_bytes < content.len ? 1 : 0);
	journal->next_seq = journal->snapshot_seq + 1;
	journal->written_seq = journal->synced_seq = journal->snapshot_seq;
	return ERR_OK;
}

static int compare_files(const void *a, const void *b)
{
	const struct journal_file *left = a, *right = b;
	return left->first_seq < right->first_seq ? -1 : left->first_seq > right->first_seq;
}

static err_status list_files(struct journal *journal, struct err *err)
{
	DIR *dir = opendir(journal->dir);
	if (dir == NULL)
		return err_sys(err, errno, "opening folder %s", journal->dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct str name = str_of(entry->d_name);
		uint64_t first = 0;
		if (strstr(entry->d_name, ".tmp-") != NULL)
			(void)unlinkat(dirfd(dir), entry->d_name, 0); // of a killed replacement
		if (!str_ends(name, STR(".seg")) ||
		    !str_to_u64(str_slice(name, 0, name.len - 4), &first) || first == 0)
			continue;
		if (journal->file_count == JOURNAL_SEGMENTS_MAX) {
			(void)closedir(dir);
			return err_set(err, ERR_LIMIT, "more than %d files in %s",
				       JOURNAL_SEGMENTS_MAX, journal->dir);
		}
		journal->files[journal->file_count++] = (struct journal_file){ .first_seq = first };
	}
	(void)closedir(dir);
	qsort(journal->files, journal->file_count, sizeof journal->files[0], compare_files);
	return ERR_OK;
}

struct file_load {
	struct journal *journal;
	const struct journal_replay *replay;
	uint64_t damaged, last_seq;
};

static void on_event_line(void *arg, struct str text, size_t at)
{
	struct file_load *load = arg;
	struct usage_event event;
	(void)at;
	if (usage_event_decode(text, &event, NULL) != ERR_OK || event.seq == 0) {
		load->damaged++;
		return;
	}
	load->last_seq = event.seq > load->last_seq ? event.seq : load->last_seq;
	if (event.seq < load->journal->next_seq)
		return; // in the snapshot, or written twice after a failed sync
	load->journal->next_seq = event.seq + 1;
	if (load->replay->on_event != NULL)
		load->replay->on_event(load->replay->arg, &event);
}

static err_status cut_file(struct journal *journal, const char *path, size_t bytes, struct err *err)
{
	int failure = journal_step(journal, "cut");
	AUTO(fs_closep) int fd = failure != 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
	if (failure != 0 || fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || fdatasync(fd) != 0)
		return err_sys(err, failure != 0 ? failure : errno, "cutting the torn end of %s",
			       path);
	return ERR_OK;
}

static err_status load_file(struct journal *journal, size_t i, const struct journal_replay *replay,
			    struct err *err)
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf content = { .limit = JOURNAL_READ_MAX_BYTES };
	struct journal_file *file = &journal->files[i];
	struct file_load load = { .journal = journal,
				  .replay = replay,
				  .last_seq = file->first_seq - 1 };
	bool is_last = i + 1 == journal->file_count;
	journal_path(journal, file->first_seq, path);
	if (fs_read(path, JOURNAL_READ_MAX_BYTES, &content, err) != ERR_OK)
		return err_wrap(err, "journal");
	struct segment_scan scan = segment_read(buf_str(&content), on_event_line, &load);
	journal->stats.damaged_lines += scan.damaged + load.damaged;
	file->last_seq = load.last_seq;
	file->bytes = content.len;
	if (scan.good_bytes < content.len && is_last) {
		journal->stats.torn_bytes += content.len - scan.good_bytes;
		if (cut_file(journal, path, scan.good_bytes, err) != ERR_OK)
			return err->status;
		file->bytes = scan.good_bytes;
	} else if (scan.good_bytes < content.len) {
		journal->stats.damaged_lines++;
	}
	journal->file_bytes += file->bytes;
	return ERR_OK;
}

// Goes on in the last file if it has room. Its lines may have reached the kernel alone, so they
// count as durable only after this sync.
static err_status open_last(struct journal *journal, struct err *err)
{
	char path[PATH_MAX];
	if (journal->file_count == 0)
		return ERR_OK;
	struct journal_file *file = &journal->files[journal->file_count - 1];
	journal_path(journal, file->first_seq, path);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "opening %s", path);
	if (fdatasync(fd) != 0) {
		int saved_errno = errno;
		(void)close(fd);
		return err_sys(err, saved_errno, "syncing %s", path);
	}
	// A new file would take the name of one that holds nothing yet.
	bool is_empty = file->last_seq < file->first_seq;
	if (file->bytes >= journal->segment_bytes && !is_empty) {
		(void)close(fd);
		journal->snapshot_due = true;
		return ERR_OK;
	}
	journal->fd = fd;
	return ERR_OK;
}

err_status journal_load(struct journal *journal, const char *boot_id,
			const struct journal_replay *replay, struct err *err)
{
	static const struct journal_replay nothing = { 0 };
	replay = replay == NULL ? &nothing : replay;
	if (fs_mkdirs(journal->dir, 0700, err) != ERR_OK)
		return err_wrap(err, "state folder");
	if (load_identity(journal, boot_id, err) != ERR_OK ||
	    load_snapshot(journal, replay, err) != ERR_OK || list_files(journal, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < journal->file_count; i++) {
		if (load_file(journal, i, replay, err) != ERR_OK)
			return err->status;
	}
	if (open_last(journal, err) != ERR_OK)
		return err->status;
	journal->written_seq = journal->synced_seq = journal->next_seq - 1;
	return ERR_OK;
}
