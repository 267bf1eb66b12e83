// SPDX-License-Identifier: Apache-2.0
#include "audit/audit.h"

#include "audit/files.h"
#include "base/timefmt.h"
#include "sys/fs.h"
#include "sys/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	ROTATE_DEFAULT_BYTES = 64 * 1024 * 1024,
	CHECKPOINT_RECORDS_DEFAULT = 1000,
	QUEUE_MAX = 4096,
	ENTRY_BYTES = 2 * AUDIT_LINE_MAX_BYTES,
};
#define CHECKPOINT_INTERVAL_DEFAULT_NS UINT64_C(60000000000)

struct entry {
	struct entry *next;
	audit_done_fn *on_done;
	void *arg;
	bool begins; // needs room for one more record
	bool ends;   // gives that room back
	bool is_refused;
	struct audit_record record; // texts point into text
	size_t text_bytes;
	char text[];
};

struct audit {
	struct loop *loop;
	struct loop_timer *checkpoint_timer;
	struct audit_config config;
	char dir[AUDIT_PATH_BYTES];
	char chain[AUDIT_CHAIN_CHARS + 1];
	struct audit_key key;
	int fd;
	int64_t size_bytes;         // durable length of the file
	struct audit_place place;   // durable
	struct entry *head, **tail; // queued
	size_t queued;
	int64_t open_calls; // begun and not ended
	bool is_flush_due;
	bool is_closing;
	struct audit_stats stats;
	struct buf batch;
};

const char *audit_dir(const struct audit *audit) { return audit->dir; }

struct audit_stats audit_stats(const struct audit *audit)
{
	struct audit_stats stats = audit->stats;
	stats.records = audit->place.seq;
	return stats;
}

static err_status rotate_if_due(struct audit *audit, struct err *err)
{
	if (audit->fd >= 0 && audit->size_bytes < (int64_t)audit->config.rotate_bytes)
		return ERR_OK;
	int fd = -1;
	err_status status = audit_files_create(audit->dir, audit->place.seq + 1, &fd, err);
	// The room for the ends of calls that have begun is in the old file, which may grow.
	if (status != ERR_OK)
		return audit->fd >= 0 ? ERR_OK : status;
	if (audit->fd >= 0) {
		(void)ftruncate(audit->fd, audit->size_bytes); // gives reserved blocks back
		(void)close(audit->fd);
	}
	audit->fd = fd;
	audit->size_bytes = 0;
	return ERR_OK;
}

// What was written after the durable part goes, so that the file never holds half a batch.
static void undo_write(struct audit *audit) { (void)ftruncate(audit->fd, audit->size_bytes); }

static err_status write_batch(struct audit *audit, const struct audit_place *place, struct err *err)
{
	if (!buf_ok(&audit->batch))
		return err_set(err, ERR_LIMIT, "no memory for the audit batch");
	if (lseek(audit->fd, (off_t)audit->size_bytes, SEEK_SET) < 0)
		return err_sys(err, errno, "seek in the audit log");
	err_status status = fs_write_all(audit->fd, buf_str(&audit->batch), err);
	if (status == ERR_OK && fdatasync(audit->fd) != 0)
		status = err_sys(err, errno, "sync the audit log");
	if (status != ERR_OK) {
		undo_write(audit);
		return err_wrap(err, "audit log");
	}
	audit->size_bytes += (int64_t)audit->batch.len;
	audit->place = *place;
	audit->stats.syncs++;
	return ERR_OK;
}

static struct audit_place encode_batch(struct audit *audit, struct entry *entries)
{
	char now[TIME_TEXT_BYTES];
	const struct world *world = loop_world(audit->loop);
	(void)time_format(world_wall_s(world), now);
	buf_clear(&audit->batch);
	struct audit_place place = audit->place;
	for (struct entry *entry = entries; entry != NULL; entry = entry->next) {
		if (entry->is_refused)
			continue;
		audit_encode(&audit->batch, str_of(audit->chain), now, &entry->record, &place);
	}
	return place;
}

// Room for this batch and for the ends of all calls that have begun. If it is not to be had, the
// calls that begin are refused and those that end may still use what was reserved for them.
static void reserve_or_refuse(struct audit *audit, struct entry *entries, struct err *err)
{
	int64_t begins = 0, others = 0;
	for (struct entry *entry = entries; entry != NULL; entry = entry->next) {
		begins += entry->begins ? 1 : 0;
		others += entry->begins ? 0 : 1;
	}
	int64_t records = 2 * begins + others + audit->open_calls;
	if (begins == 0 || audit_files_reserve(audit->fd, audit->size_bytes,
					       records * AUDIT_LINE_MAX_BYTES / 2, err) == ERR_OK)
		return;
	for (struct entry *entry = entries; entry != NULL; entry = entry->next)
		entry->is_refused = entry->begins;
}

static err_status write_entries(struct audit *audit, struct entry *entries, struct err *err)
{
	err_status status = rotate_if_due(audit, err);
	if (status != ERR_OK)
		return status;
	reserve_or_refuse(audit, entries, err);
	struct audit_place place = encode_batch(audit, entries);
	if (audit->batch.len == 0 && buf_ok(&audit->batch))
		return ERR_OK; // all refused
	return write_batch(audit, &place, err);
}

static void finish_entries(struct audit *audit, struct entry *entries, err_status status,
			   struct err *why)
{
	why->status = ERR_UNAVAILABLE;
	audit->stats.is_available = true;
	while (entries != NULL) {
		struct entry *entry = entries;
		entries = entry->next;
		bool is_durable = status == ERR_OK && !entry->is_refused;
		audit->stats.written += is_durable ? 1 : 0;
		audit->stats.refused += is_durable ? 0 : 1;
		audit->stats.is_available = audit->stats.is_available && is_durable;
		if (entry->begins && is_durable)
			audit->open_calls++;
		if (entry->ends && audit->open_calls > 0)
			audit->open_calls--;
		if (entry->on_done != NULL)
			entry->on_done(entry->arg, is_durable ? NULL : why);
		free(entry);
	}
}

// Signs when at least so many records came since; a failure is tried again after the next one.
static void checkpoint_if_due(struct audit *audit, int64_t records)
{
	AUTO(buf_done) struct buf json = { .limit = AUDIT_LINE_MAX_BYTES };
	struct err err;
	if (audit->place.seq - audit->stats.covered < records)
		return;
	if (audit_checkpoint_now(audit, &json, &err) != ERR_OK)
		audit->stats.checkpoint_failures++;
}

static void flush(void *arg)
{
	struct audit *audit = arg;
	struct entry *entries = audit->head;
	audit->is_flush_due = false;
	audit->head = NULL;
	audit->tail = &audit->head;
	audit->queued = 0;
	if (entries == NULL)
		return;
	struct err err = { 0 };
	err_status status = write_entries(audit, entries, &err);
	finish_entries(audit, entries, status, &err);
	checkpoint_if_due(audit, audit->config.checkpoint_records);
}

static size_t copy_text(struct entry *entry, struct str *text)
{
	size_t len = min_size(text->len, AUDIT_FIELD_MAX_BYTES);
	char *to = entry->text + entry->text_bytes;
	if (len > 0)
		memcpy(to, text->data, len);
	*text = (struct str){ to, len };
	return len;
}

static struct entry *entry_new(const struct audit_record *record)
{
	struct entry *entry = calloc(1, sizeof *entry + ENTRY_BYTES);
	if (entry == NULL)
		return NULL;
	entry->record = *record;
	struct str *texts[] = { &entry->record.request_id, &entry->record.actor,
				&entry->record.role,       &entry->record.token_id,
				&entry->record.tenant,     &entry->record.object,
				&entry->record.peer,       &entry->record.code,
				&entry->record.detail };
	_Static_assert(ARRAY_COUNT(texts) * AUDIT_FIELD_MAX_BYTES <= ENTRY_BYTES, "room");
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		entry->text_bytes += copy_text(entry, texts[i]);
	entry->begins = strcmp(record->stage, "begin") == 0;
	entry->ends = strcmp(record->stage, "end") == 0;
	return entry;
}

void audit_put(struct audit *audit, const struct audit_record *record, audit_done_fn *on_done,
	       void *arg)
{
	ASSERT(record->stage != NULL);
	struct entry *entry = entry_new(record);
	ASSERT(entry != NULL); // 8 KiB: without it the server cannot go on truthfully
	entry->on_done = on_done;
	entry->arg = arg;
	entry->is_refused = audit->queued >= QUEUE_MAX && entry->begins;
	*audit->tail = entry;
	audit->tail = &entry->next;
	audit->queued++;
	if (audit->is_flush_due || audit->is_closing)
		return;
	audit->is_flush_due = true;
	loop_defer(audit->loop, flush, audit);
}

err_status audit_checkpoint_now(struct audit *audit, struct buf *ret_json, struct err *err)
{
	struct audit_checkpoint checkpoint = { .place = audit->place };
	char path[AUDIT_PATH_BYTES + 32];
	memcpy(checkpoint.chain, audit->chain, sizeof checkpoint.chain);
	(void)time_format(world_wall_s(loop_world(audit->loop)), checkpoint.time);
	audit_checkpoint_sign(&audit->key, &checkpoint);
	audit_checkpoint_encode(&checkpoint, ret_json);
	if (!buf_ok(ret_json))
		return err_set(err, ERR_LIMIT, "no memory for a checkpoint");
	(void)snprintf(path, sizeof path, "%s/checkpoint.json", audit->dir);
	err_status status = fs_write_atomic(path, buf_str(ret_json), 0644, err);
	if (status != ERR_OK)
		return err_wrap(err, "audit checkpoint");
	audit->stats.covered = checkpoint.place.seq;
	if (audit->config.on_checkpoint != NULL)
		audit->config.on_checkpoint(audit->config.arg, buf_str(ret_json));
	return ERR_OK;
}

static void on_checkpoint_time(void *arg)
{
	struct audit *audit = arg;
	checkpoint_if_due(audit, 1);
	loop_timer_set(audit->checkpoint_timer, audit->config.checkpoint_interval_ns);
}

static err_status cut_torn_end(struct audit *audit, const struct audit_tail *tail, struct err *err)
{
	if (tail->torn_bytes == 0)
		return ERR_OK;
	if (audit->fd >= 0 &&
	    (ftruncate(audit->fd, (off_t)tail->size_bytes) != 0 || fdatasync(audit->fd) != 0))
		return err_sys(err, errno, "cut the torn end off %s", tail->path);
	char detail[100];
	(void)snprintf(detail, sizeof detail,
		       "%" PRId64 " bytes of a line torn by a crash were cut off",
		       tail->torn_bytes);
	struct audit_record record = {
		.stage = "system", .resource = "audit", .verb = "repair", .detail = str_of(detail)
	};
	audit_put(audit, &record, NULL, NULL);
	return ERR_OK;
}

static err_status open_tail(struct audit *audit, struct err *err)
{
	struct audit_tail tail;
	err_status status = audit_files_find_tail(audit->dir, &tail, err);
	if (status != ERR_OK)
		return status;
	if (tail.place.seq == 0) {
		random_uuid(audit->chain);
		audit->place = (struct audit_place){ 0, audit_genesis(str_of(audit->chain)) };
	} else {
		memcpy(audit->chain, tail.chain, sizeof audit->chain);
		audit->place = tail.place;
		audit->size_bytes = tail.size_bytes;
		audit->fd = open(tail.path, O_WRONLY | O_CLOEXEC);
		if (audit->fd < 0)
			return err_sys(err, errno, "open %s", tail.path);
	}
	return cut_torn_end(audit, &tail, err);
}

static err_status open_parts(struct audit *audit, struct err *err)
{
	char key_path[AUDIT_PATH_BYTES + 32];
	err_status status = fs_mkdirs(audit->dir, 0700, err);
	if (status != ERR_OK)
		return status;
	(void)snprintf(key_path, sizeof key_path, "%s/signing.key", audit->dir);
	status = audit_key_load(audit->config.key_file != NULL ? audit->config.key_file : key_path,
				&audit->key, err);
	if (status != ERR_OK)
		return status;
	status = open_tail(audit, err);
	if (status != ERR_OK)
		return status;
	audit->checkpoint_timer = loop_timer_new(audit->loop, on_checkpoint_time, audit);
	loop_timer_set(audit->checkpoint_timer, audit->config.checkpoint_interval_ns);
	return ERR_OK;
}

err_status audit_open(struct loop *loop, const struct audit_config *config, struct audit **ret,
		      struct err *err)
{
	ASSERT(loop != NULL && config->dir != NULL);
	struct audit *audit = calloc(1, sizeof *audit);
	if (audit == NULL)
		return err_set(err, ERR_LIMIT, "no memory");
	audit->loop = loop;
	audit->fd = -1;
	audit->tail = &audit->head;
	audit->config = *config;
	audit->stats.is_available = true;
	if (audit->config.rotate_bytes == 0)
		audit->config.rotate_bytes = ROTATE_DEFAULT_BYTES;
	if (audit->config.checkpoint_records == 0)
		audit->config.checkpoint_records = CHECKPOINT_RECORDS_DEFAULT;
	if (audit->config.checkpoint_interval_ns == 0)
		audit->config.checkpoint_interval_ns = CHECKPOINT_INTERVAL_DEFAULT_NS;
	(void)snprintf(audit->dir, sizeof audit->dir, "%s", config->dir);
	err_status status = open_parts(audit, err);
	if (status != ERR_OK) {
		audit_close(audit);
		return err_wrap(err, "audit log in %s", config->dir);
	}
	*ret = audit;
	return ERR_OK;
}

void audit_close(struct audit *audit)
{
	if (audit == NULL)
		return;
	bool is_open = audit->checkpoint_timer != NULL;
	audit->is_closing = true;
	flush(audit);
	if (is_open)
		checkpoint_if_due(audit, 1);
	loop_timer_free(audit->checkpoint_timer);
	if (audit->fd >= 0) {
		(void)ftruncate(audit->fd, (off_t)audit->size_bytes);
		(void)close(audit->fd);
	}
	buf_done(&audit->batch);
	audit_key_wipe(&audit->key);
	free(audit);
}
