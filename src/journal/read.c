// SPDX-License-Identifier: Apache-2.0
// What leaves the journal: snapshots, lines for the push, files that nobody needs, print.
#include "journal/segment.h"
#include "journal/state.h"
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool journal_wants_snapshot(const struct journal *journal) { return journal->snapshot_due; }

err_status journal_snapshot(struct journal *journal, struct str text, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	char path[PATH_MAX], head[64];
	AUTO(buf_done) struct buf out = { .limit = JOURNAL_READ_MAX_BYTES };
	struct str line;
	(void)snprintf(path, sizeof path, "%s/snapshot", journal->dir);
	(void)snprintf(head, sizeof head, "{\"snapshot\":1,\"seq\":%" PRIu64 "}",
		       journal->next_seq - 1);
	segment_put(&out, str_of(head));
	while (str_split_next(&text, '\n', &line)) {
		if (line.len > 0)
			segment_put(&out, line);
	}
	if (!buf_ok(&out))
		return err_set(err, ERR_LIMIT, "snapshot of the journal is too large");
	// It speaks for all events up to next_seq - 1: those must be on disk before it is.
	if (journal_write(journal, err) != ERR_OK || journal_sync(journal, err) != ERR_OK)
		return err->status;
	if (journal->synced_seq != journal->next_seq - 1)
		return err_set(err, ERR_UNAVAILABLE, "a sync of the journal is still running");
	int failure = journal_step(journal, "snapshot");
	if (failure != 0)
		return err_sys(err, failure, "writing %s", path);
	if (fs_write_atomic(path, buf_str(&out), 0600, err) != ERR_OK)
		return err_wrap(err, "snapshot of the journal");
	(void)journal_step(journal, "snapshot-done");
	journal->snapshot_seq = journal->next_seq - 1;
	journal->snapshot_due = false;
	journal_drop_files(journal);
	return ERR_OK;
}

void journal_drop_files(struct journal *journal)
{
	uint64_t limit = journal->durable_seq < journal->snapshot_seq ? journal->durable_seq
								      : journal->snapshot_seq;
	size_t gone = 0;
	// The active file stays: its name keeps the number where the next start goes on.
	size_t candidates = journal->file_count - (journal->fd >= 0 && journal->file_count > 0);
	for (; gone < candidates && journal->files[gone].last_seq <= limit; gone++) {
		char path[PATH_MAX];
		if (journal_step(journal, "unlink") != 0)
			break;
		journal_path(journal, journal->files[gone].first_seq, path);
		if (unlink(path) != 0 && errno != ENOENT)
			break; // tried again with the next acknowledgement
		ASSERT(journal->file_bytes >= journal->files[gone].bytes);
		journal->file_bytes -= journal->files[gone].bytes;
	}
	journal->file_count -= gone;
	memmove(journal->files, journal->files + gone,
		journal->file_count * sizeof journal->files[0]);
}

void journal_acknowledge(struct journal *journal, uint64_t seq)
{
	ASSERT(seq < journal->next_seq);
	if (seq > journal->durable_seq)
		journal->durable_seq = seq;
	journal_drop_files(journal);
}

struct line_read {
	struct journal *journal;
	struct buf *out;
	size_t max_bytes, end; // end: of the last line taken, in the part that was read
	uint64_t last_seq;
	bool is_full;
};

static void on_line(void *arg, struct str text, size_t at)
{
	struct line_read *read = arg;
	uint64_t seq = journal_line_seq(text);
	if (read->is_full || seq > read->journal->synced_seq) {
		read->is_full = true;
		return;
	}
	if (seq > read->last_seq) {
		if (read->out->len > 0 && read->out->len + text.len + 1 > read->max_bytes) {
			read->is_full = true;
			return;
		}
		buf_put(read->out, text);
		buf_put_byte(read->out, '\n');
		read->last_seq = seq;
	}
	read->end = at + text.len + SEGMENT_FRAME_BYTES;
}

static err_status read_part(struct journal *journal, const struct journal_file *file,
			    struct line_read *read, struct err *err)
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf part = { .limit = JOURNAL_READ_MAX_BYTES };
	size_t offset = 0;
	journal_path(journal, file->first_seq, path);
	if (journal->cursor.first_seq == file->first_seq && journal->cursor.seq <= read->last_seq)
		offset = journal->cursor.offset;
	FILE *stream = fopen(path, "re");
	if (stream == NULL)
		return err_sys(err, errno, "opening %s", path);
	size_t want = min_size(file->bytes - min_size(offset, file->bytes),
			       read->max_bytes + USAGE_TEXT_MAX_BYTES);
	char *room = buf_reserve(&part, want + 1);
	if (room != NULL && fseek(stream, (long)offset, SEEK_SET) == 0)
		buf_commit(&part, fread(room, 1, want, stream));
	(void)fclose(stream);
	if (!buf_ok(&part))
		return err_set(err, ERR_LIMIT, "no memory to read %s", path);
	(void)segment_read(buf_str(&part), on_line, read);
	journal->cursor.first_seq = file->first_seq;
	journal->cursor.seq = read->last_seq;
	journal->cursor.offset = offset + read->end;
	// A part without one whole good line would stop the push for ever: pass over it.
	if (read->end == 0 && !read->is_full && part.len == want)
		journal->cursor.offset = offset + want;
	return ERR_OK;
}

err_status journal_read(struct journal *journal, uint64_t after_seq, size_t max_bytes,
			struct buf *ret_lines, uint64_t *ret_last_seq, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct line_read read = {
		.journal = journal, .out = ret_lines, .max_bytes = max_bytes, .last_seq = after_seq
	};
	buf_clear(ret_lines);
	for (size_t i = 0; i < journal->file_count && ret_lines->len == 0; i++) {
		const struct journal_file *file = &journal->files[i];
		if (file->last_seq <= after_seq)
			continue;
		size_t before = SIZE_MAX;
		// The part at the cursor may hold only lines that the caller has.
		while (ret_lines->len == 0 && !read.is_full && before != journal->cursor.offset) {
			before = journal->cursor.first_seq == file->first_seq
					 ? journal->cursor.offset
					 : SIZE_MAX;
			read.end = 0;
			if (read_part(journal, file, &read, err) != ERR_OK)
				return err->status;
		}
	}
	if (!buf_ok(ret_lines))
		return err_set(err, ERR_LIMIT, "lines of the journal do not fit the buffer");
	*ret_last_seq = read.last_seq;
	return ERR_OK;
}

static void print_line(void *arg, struct str text, size_t at)
{
	struct buf *out = arg;
	(void)at;
	buf_put(out, text);
	buf_put_byte(out, '\n');
}

static err_status print_file(const char *path, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = JOURNAL_READ_MAX_BYTES };
	if (fs_read(path, JOURNAL_READ_MAX_BYTES, &content, err) != ERR_OK)
		return err->status;
	struct segment_scan scan = segment_read(buf_str(&content), print_line, out);
	if (scan.lines == 0 && content.len > 0)
		return err_set(err, ERR_INVALID, "%s holds no line of a journal", path);
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "%s is too large", path);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_segment(const struct dirent *entry)
{
	return str_ends(str_of(entry->d_name), STR(".seg")) ? 1 : 0;
}

err_status journal_print(const char *path, struct buf *out, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct stat info;
	struct dirent **names = NULL;
	err_status status = ERR_OK;
	if (stat(path, &info) != 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s does not exist", path)
				       : err_sys(err, errno, "looking at %s", path);
	if (!S_ISDIR(info.st_mode))
		return print_file(path, out, err);
	int count = scandir(path, &names, is_segment, compare_names);
	if (count < 0)
		return err_sys(err, errno, "opening folder %s", path);
	for (int i = 0; i < count; i++) {
		char file[PATH_MAX];
		int n = snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
		if (status == ERR_OK && n > 0 && (size_t)n < sizeof file)
			status = print_file(file, out, err);
		free(names[i]);
	}
	free(names);
	return status;
}
