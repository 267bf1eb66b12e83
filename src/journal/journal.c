// SPDX-License-Identifier: Apache-2.0
#include "journal/journal.h"

#include "journal/segment.h"
#include "journal/state.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	SEGMENT_DEFAULT_BYTES = 1024 * 1024,
	LIMIT_DEFAULT_BYTES = 64 * 1024 * 1024,
	QUEUE_MAX_BYTES = 8 * 1024 * 1024,
};

void journal_path(const struct journal *journal, uint64_t first_seq, char out[PATH_MAX])
{
	(void)snprintf(out, PATH_MAX, "%s/%020" PRIu64 ".seg", journal->dir, first_seq);
}

int journal_step(const struct journal *journal, const char *step)
{
	return journal->hook == NULL ? 0 : journal->hook(journal->hook_arg, step);
}

err_status journal_open(const struct journal_config *config, const struct journal_replay *replay,
			struct journal **ret, struct err *err)
{
	struct journal *journal = calloc(1, sizeof *journal);
	struct err local;
	err = err == NULL ? &local : err;
	if (journal == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the journal");
	journal->fd = -1;
	journal->next_seq = 1;
	journal->segment_bytes = config->segment_bytes == 0 ? SEGMENT_DEFAULT_BYTES
							    : config->segment_bytes;
	journal->limit_bytes = config->limit_bytes == 0 ? LIMIT_DEFAULT_BYTES : config->limit_bytes;
	journal->hook = config->hook;
	journal->hook_arg = config->hook_arg;
	journal->queue.limit = QUEUE_MAX_BYTES + USAGE_TEXT_MAX_BYTES;
	err_status status = ERR_OK;
	if (!usage_text(journal->dir, sizeof journal->dir, str_of(config->dir)) ||
	    !usage_text(journal->source, sizeof journal->source, str_of(config->source)))
		status = err_set(err, ERR_INVALID, "folder or node name is too long");
	if (status == ERR_OK)
		status = journal_load(journal, config->boot_id, replay, err);
	if (status != ERR_OK) {
		journal_close(journal);
		return err_wrap(err, "journal %s", config->dir);
	}
	*ret = journal;
	return ERR_OK;
}

void journal_close(struct journal *journal)
{
	if (journal == NULL)
		return;
	// Best effort: what cannot be written now is rebuilt from the pods at the next start.
	err_status flushed = journal_write(journal, NULL);
	if (flushed == ERR_OK)
		flushed = journal_sync(journal, NULL);
	(void)flushed;
	if (journal->fd >= 0)
		(void)close(journal->fd);
	buf_done(&journal->queue);
	free(journal);
}

static size_t unwritten_bytes(const struct journal *journal)
{
	return journal->queue.len - journal->written_bytes;
}

// Share of the limit, in percent, up to which an event of that type is taken.
static size_t percent_of(event_type type)
{
	switch (type) {
	case EVENT_SAMPLE:
	case EVENT_UNEXPLAINED: return 70;
	case EVENT_ENERGY: return 85;
	case EVENT_BOUND:
	case EVENT_RELEASED: return 100;
	}
	return 100;
}

static bool has_room(const struct journal *journal, event_type type, size_t bytes)
{
	size_t percent = percent_of(type);
	size_t queued = unwritten_bytes(journal);
	if (queued + bytes > (size_t)QUEUE_MAX_BYTES / 100 * percent)
		return false;
	return journal->file_bytes + queued + bytes <= journal->limit_bytes / 100 * percent;
}

err_status journal_append(struct journal *journal, struct usage_event *event, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = USAGE_TEXT_MAX_BYTES };
	event->seq = journal->next_seq;
	_Static_assert(sizeof event->source == sizeof journal->source, "copied whole");
	_Static_assert(sizeof event->boot == sizeof journal->boot, "copied whole");
	memcpy(event->source, journal->source, sizeof event->source);
	memcpy(event->boot, journal->boot, sizeof event->boot);
	usage_event_encode(&text, event);
	if (!buf_ok(&text))
		return err_set(err, ERR_INVALID, "event is longer than %d bytes",
			       USAGE_TEXT_MAX_BYTES);
	if (!has_room(journal, event->type, text.len + SEGMENT_FRAME_BYTES)) {
		journal->stats.refused[event->type]++;
		return err_set(err, ERR_LIMIT, "journal is full: %zu of %zu bytes in %zu files",
			       journal->file_bytes, journal->limit_bytes, journal->file_count);
	}
	segment_put(&journal->queue, buf_str(&text));
	ASSERT(buf_ok(&journal->queue));
	journal->next_seq++;
	return ERR_OK;
}

static err_status open_file(struct journal *journal, struct err *err)
{
	char path[PATH_MAX];
	uint64_t first = journal->written_seq + 1;
	int failure = journal_step(journal, "create");
	if (journal->file_count == JOURNAL_SEGMENTS_MAX)
		return err_set(err, ERR_LIMIT, "journal has %d files already",
			       JOURNAL_SEGMENTS_MAX);
	journal_path(journal, first, path);
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC;
	int fd = failure != 0 ? -1 : open(path, flags, 0600);
	if (fd < 0)
		return err_sys(err, failure != 0 ? failure : errno, "creating %s", path);
	if (fs_sync_folder_of(path, err) != ERR_OK) {
		(void)close(fd);
		return err_wrap(err, "journal");
	}
	journal->fd = fd;
	journal->files[journal->file_count++] =
		(struct journal_file){ .first_seq = first, .last_seq = first - 1 };
	return ERR_OK;
}

static err_status write_part(struct journal *journal, const char *data, size_t bytes,
			     struct err *err)
{
	int failure = journal_step(journal, "write");
	if (failure != 0)
		return err_sys(err, failure, "writing the journal");
	return fs_write_all(journal->fd, (struct str){ data, bytes }, err);
}

err_status journal_write(struct journal *journal, struct err *err)
{
	size_t bytes = unwritten_bytes(journal);
	struct err local;
	err = err == NULL ? &local : err;
	if (bytes == 0)
		return ERR_OK;
	if (journal->fd < 0 && open_file(journal, err) != ERR_OK) {
		journal->stats.failures++;
		journal->stats.is_failing = true;
		return err->status;
	}
	ASSERT(journal->file_count > 0);
	struct journal_file *file = &journal->files[journal->file_count - 1];
	const char *data = journal->queue.data + journal->written_bytes;
	// Two parts under a hook, so that tests can end the process with a torn line on disk.
	size_t half = journal->hook == NULL ? bytes : bytes / 2;
	err_status status = write_part(journal, data, half, err);
	if (status == ERR_OK && half < bytes)
		status = write_part(journal, data + half, bytes - half, err);
	if (status != ERR_OK) {
		// A part of a line may be there; the next attempt must not follow it.
		if (ftruncate(journal->fd, (off_t)file->bytes) != 0) {
			(void)close(journal->fd);
			journal->fd = -1;
		}
		journal->stats.failures++;
		journal->stats.is_failing = true;
		return err_wrap(err, "journal");
	}
	file->bytes += bytes;
	file->last_seq = journal->next_seq - 1;
	journal->file_bytes += bytes;
	journal->written_bytes = journal->queue.len;
	journal->written_seq = journal->next_seq - 1;
	(void)journal_step(journal, "written");
	return ERR_OK;
}

bool journal_needs_write(const struct journal *journal) { return unwritten_bytes(journal) > 0; }

bool journal_needs_sync(const struct journal *journal)
{
	return journal->written_bytes > 0 && journal->syncing_bytes == 0 && journal->fd >= 0;
}

bool journal_sync_begin(struct journal *journal, int *ret_fd)
{
	if (!journal_needs_sync(journal))
		return false;
	int fd = fcntl(journal->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return false;
	journal->syncing_bytes = journal->written_bytes;
	journal->syncing_seq = journal->written_seq;
	*ret_fd = fd;
	return true;
}

static void close_file(struct journal *journal)
{
	if (journal->fd >= 0)
		(void)close(journal->fd);
	journal->fd = -1;
	journal->snapshot_due = true;
}

// After a failed sync the kernel may have dropped pages that it calls clean: what was not synced
// is written again, into a new file; readers skip numbers that they have.
static void start_over(struct journal *journal)
{
	journal->written_bytes = 0;
	journal->written_seq = journal->synced_seq;
	close_file(journal);
	if (journal->file_count > 0) {
		struct journal_file *file = &journal->files[journal->file_count - 1];
		if (file->first_seq == journal->written_seq + 1) {
			// The new file will have the same name and replaces this one.
			journal->file_bytes -= file->bytes;
			journal->file_count--;
		} else {
			file->last_seq = journal->synced_seq;
		}
	}
}

void journal_sync_end(struct journal *journal, int sync_errno)
{
	ASSERT(journal->syncing_bytes > 0 && journal->syncing_bytes <= journal->written_bytes);
	size_t bytes = journal->syncing_bytes;
	journal->syncing_bytes = 0;
	if (sync_errno != 0) {
		journal->stats.failures++;
		journal->stats.is_failing = true;
		start_over(journal);
		return;
	}
	journal->stats.is_failing = false;
	buf_consume(&journal->queue, bytes);
	journal->written_bytes -= bytes;
	journal->synced_seq = journal->syncing_seq;
	ASSERT(journal->file_count > 0);
	const struct journal_file *file = &journal->files[journal->file_count - 1];
	if (journal->written_bytes == 0 && file->bytes >= journal->segment_bytes)
		close_file(journal);
}

err_status journal_sync(struct journal *journal, struct err *err)
{
	int fd = -1;
	if (!journal_sync_begin(journal, &fd))
		return ERR_OK;
	int failure = journal_step(journal, "sync");
	if (failure == 0 && fdatasync(fd) != 0)
		failure = errno;
	(void)close(fd);
	journal_sync_end(journal, failure);
	return failure == 0 ? ERR_OK : err_sys(err, failure, "syncing the journal");
}

const char *journal_boot(const struct journal *journal) { return journal->boot; }

void journal_stats(const struct journal *journal, struct journal_stats *ret)
{
	*ret = journal->stats;
	ret->last_seq = journal->next_seq - 1;
	ret->written_seq = journal->written_seq;
	ret->synced_seq = journal->synced_seq;
	ret->durable_seq = journal->durable_seq;
	ret->snapshot_seq = journal->snapshot_seq;
	ret->files = journal->file_count;
	ret->bytes = journal->file_bytes;
	ret->queued_bytes = unwritten_bytes(journal);
	ret->limit_bytes = journal->limit_bytes;
}
