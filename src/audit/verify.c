// SPDX-License-Identifier: Apache-2.0
#include "audit/verify.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const fault_names[] = { "good",    "edited",   "inserted", "reordered",
					   "removed", "head_cut", "tail_cut", "checkpoint" };

const char *audit_fault_name(audit_fault fault)
{
	ASSERT(fault < ARRAY_COUNT(fault_names));
	return fault_names[fault];
}

PRINTF_LIKE(3, 4)
static bool fault_found(struct audit_verifier *verifier, audit_fault fault, const char *fmt, ...)
{
	struct audit_report *report = &verifier->report;
	report->fault = fault;
	report->bad_seq = report->place.seq + 1;
	report->bad_line = verifier->line;
	report->is_covered = false;
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(report->text, sizeof report->text, fmt, args);
	va_end(args);
	return false;
}

void audit_verifier_init(struct audit_verifier *verifier, const struct audit_checkpoint *checkpoint)
{
	*verifier = (struct audit_verifier){ .has_checkpoint = checkpoint != NULL };
	if (checkpoint != NULL)
		verifier->checkpoint = *checkpoint;
}

static bool check_first(struct audit_verifier *verifier, const struct audit_line *line)
{
	memcpy(verifier->chain, line->chain, sizeof verifier->chain);
	verifier->report.place.head = audit_genesis(str_of(verifier->chain));
	if (verifier->has_checkpoint && strcmp(verifier->checkpoint.chain, verifier->chain) != 0)
		return fault_found(verifier, AUDIT_CHECKPOINT,
				   "the checkpoint is of chain %s, the log of chain %s",
				   verifier->checkpoint.chain, verifier->chain);
	if (line->seq != 1)
		return fault_found(verifier, AUDIT_HEAD_CUT,
				   "the log begins with record %" PRId64
				   "; those before it are missing",
				   line->seq);
	return true;
}

static bool check_link(struct audit_verifier *verifier, const struct audit_line *line)
{
	int64_t want = verifier->report.place.seq + 1;
	if (strcmp(line->chain, verifier->chain) != 0)
		return fault_found(verifier, AUDIT_INSERTED,
				   "record %" PRId64 " is of another chain, %s", want, line->chain);
	if (line->seq < want)
		return fault_found(verifier, AUDIT_REORDERED,
				   "record %" PRId64 " stands where %" PRId64
				   " belongs: repeated or moved",
				   line->seq, want);
	if (line->seq > want)
		return fault_found(verifier, AUDIT_REMOVED,
				   "record %" PRId64 " is missing: %" PRId64 " stands in its place",
				   want, line->seq);
	if (!audit_hash_eq(&line->prev, &verifier->report.place.head))
		return fault_found(verifier, AUDIT_INSERTED,
				   "record %" PRId64 " does not follow from the one before it",
				   want);
	return true;
}

static bool check_covered(struct audit_verifier *verifier)
{
	const struct audit_checkpoint *checkpoint = &verifier->checkpoint;
	struct audit_place *place = &verifier->report.place;
	if (!verifier->has_checkpoint || place->seq != checkpoint->place.seq)
		return true;
	verifier->has_met = audit_hash_eq(&place->head, &checkpoint->place.head);
	if (verifier->has_met)
		return true;
	place->seq--;
	verifier->report.records--;
	return fault_found(verifier, AUDIT_CHECKPOINT,
			   "record %" PRId64
			   " has another hash than the signed checkpoint says: the log was "
			   "rewritten",
			   checkpoint->place.seq);
}

bool audit_verifier_line(struct audit_verifier *verifier, struct str text)
{
	struct audit_line line;
	struct err err = { 0 };
	if (verifier->report.fault != AUDIT_GOOD)
		return false;
	verifier->line++;
	if (audit_decode(text, &line, &err) != ERR_OK)
		return fault_found(verifier, AUDIT_EDITED, "record %" PRId64 ": %s",
				   verifier->report.place.seq + 1, err.text);
	if (verifier->line == 1 && !check_first(verifier, &line))
		return false;
	if (!check_link(verifier, &line))
		return false;
	verifier->report.place = (struct audit_place){ line.seq, line.hash };
	verifier->report.records++;
	return check_covered(verifier);
}

bool audit_verifier_end(struct audit_verifier *verifier)
{
	struct audit_report *report = &verifier->report;
	if (report->fault != AUDIT_GOOD)
		return false;
	if (verifier->has_checkpoint && report->place.seq < verifier->checkpoint.place.seq) {
		verifier->line++;
		return fault_found(verifier, AUDIT_TAIL_CUT,
				   "the log ends after record %" PRId64
				   ", the checkpoint covers %" PRId64 ": the tail was cut",
				   report->place.seq, verifier->checkpoint.place.seq);
	}
	report->is_covered = verifier->has_checkpoint;
	memcpy(report->key, verifier->checkpoint.public_, sizeof report->key);
	(void)snprintf(report->text, sizeof report->text, "%" PRId64 " records, chain whole%s",
		       report->records, report->is_covered ? ", checkpoint holds" : "");
	return true;
}

// Feeds whole lines; rest is what has no newline yet.
static bool feed(struct audit_verifier *verifier, struct buf *pending)
{
	size_t begin = 0, end;
	struct str text = buf_str(pending);
	while ((end = str_find_byte(text, '\n', begin)) != SIZE_MAX) {
		if (!audit_verifier_line(verifier, str_slice(text, begin, end)))
			return false;
		begin = end + 1;
	}
	buf_consume(pending, begin);
	if (pending->len > 4 * AUDIT_LINE_MAX_BYTES) {
		verifier->line++;
		return fault_found(verifier, AUDIT_EDITED, "record %" PRId64 ": line too long",
				   verifier->report.place.seq + 1);
	}
	return true;
}

static err_status feed_file(struct audit_verifier *verifier, const char *path, struct err *err)
{
	enum { PIECE_BYTES = 65536 };
	AUTO(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(buf_done) struct buf pending = { .limit = 4 * PIECE_BYTES };
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	for (;;) {
		char *room = buf_reserve(&pending, PIECE_BYTES);
		if (room == NULL)
			return err_set(err, ERR_LIMIT, "no memory to read %s", path);
		ssize_t got = read(fd, room, PIECE_BYTES);
		if (got < 0)
			return err_sys(err, errno, "read %s", path);
		if (got == 0)
			break;
		buf_commit(&pending, (size_t)got);
		if (!feed(verifier, &pending))
			return ERR_INTERNAL;
	}
	if (pending.len == 0)
		return ERR_OK;
	verifier->line++;
	(void)fault_found(verifier, AUDIT_TAIL_CUT,
			  "the last line of %.100s is torn after record %" PRId64, path,
			  verifier->report.place.seq);
	return ERR_INTERNAL;
}

static err_status load_checkpoint(const struct audit_trust *trust, struct audit_verifier *verifier,
				  struct err *err)
{
	const char *path = trust->checkpoint_path;
	AUTO(buf_done) struct buf content = { .limit = AUDIT_LINE_MAX_BYTES };
	struct audit_checkpoint checkpoint;
	err_status status = fs_read(path, AUDIT_LINE_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	struct err why = { 0 };
	status = audit_checkpoint_decode(buf_str(&content), &checkpoint, &why);
	if (status == ERR_OK && trust->key != NULL &&
	    memcmp(trust->key, checkpoint.public_, AUDIT_KEY_BYTES) != 0) {
		char key[2 * AUDIT_KEY_BYTES + 1];
		audit_public_format(checkpoint.public_, key);
		status = err_set(&why, ERR_INTERNAL, "signed by another key, %s", key);
	}
	if (status == ERR_OK) {
		audit_verifier_init(verifier, &checkpoint);
		return ERR_OK;
	}
	(void)fault_found(verifier, AUDIT_CHECKPOINT, "%.150s: %s", path, why.text);
	return err_set(err, status, "%s: %s", path, why.text);
}

err_status audit_verify(const char *const *paths, size_t path_count,
			const struct audit_trust *trust, struct audit_report *ret_report,
			struct err *err)
{
	struct audit_verifier verifier;
	err_status status = ERR_OK;
	if (sodium_init() < 0)
		return err_set(err, ERR_INTERNAL, "libsodium does not start");
	audit_verifier_init(&verifier, NULL);
	if (trust->checkpoint_path != NULL)
		status = load_checkpoint(trust, &verifier, err);
	for (size_t i = 0; i < path_count && status == ERR_OK; i++)
		status = feed_file(&verifier, paths[i], err);
	if (status == ERR_OK && !audit_verifier_end(&verifier))
		status = ERR_INTERNAL;
	*ret_report = verifier.report;
	if (verifier.report.fault != AUDIT_GOOD)
		status = err_set(err, ERR_INTERNAL, "%s", verifier.report.text);
	return status;
}
