// SPDX-License-Identifier: Apache-2.0
// The usage journal of one node: append-only files in one folder, an event a line with its
// checksum, numbered without a gap or a repeat. Events queue in memory, journal_write hands them
// to the kernel, a sync makes them durable; only durable events are read for the push. Files go
// when the server has them and a snapshot of the caller's state covers them. Survives a kill at
// any step (a torn end is cut) and a full disk (the queue waits; journal_write is repeated).
// One thread; the sync itself may run in another (journal_sync_begin, journal_sync_end).
#pragma once

#include "journal/usage_event.h"

struct journal;

// Tests: called before each step that changes a file; not 0 is an errno to fail with.
typedef int journal_hook_fn(void *arg, const char *step);

struct journal_config {
	const char *dir;
	const char *source;    // of each event: the node
	const char *boot_id;   // of the kernel
	size_t segment_bytes;  // a file is closed above it; 0: 1 MiB
	size_t limit_bytes;    // of all files and the queue; 0: 64 MiB
	journal_hook_fn *hook; // NULL outside tests
	void *hook_arg;
};

// What was found at opening, in the order: lines of the last snapshot, then later events.
struct journal_replay {
	void (*on_snapshot)(void *arg, struct str line);
	void (*on_event)(void *arg, const struct usage_event *event);
	void *arg;
};

struct journal_stats {
	uint64_t last_seq, written_seq, synced_seq, durable_seq, snapshot_seq;
	size_t files, bytes, queued_bytes, limit_bytes;
	uint64_t torn_bytes;    // cut at opening
	uint64_t damaged_lines; // skipped at opening
	uint64_t refused[5];    // by event_type: no room
	uint64_t failures;      // of write and sync
	bool is_failing;        // the last write or sync failed
};

MUST_USE err_status journal_open(const struct journal_config *config,
				 const struct journal_replay *replay, struct journal **ret,
				 struct err *err);
void journal_close(struct journal *journal); // writes and syncs what it can; NULL allowed

// Fills source, boot and seq and queues the event. ERR_LIMIT when there is no room: samples are
// refused first (70 %), energy rows next (85 %), bound and released last; the caller repeats.
MUST_USE err_status journal_append(struct journal *journal, struct usage_event *event,
				   struct err *err);
// Hands the queue to the kernel. On failure nothing is lost; repeat it later.
MUST_USE err_status journal_write(struct journal *journal, struct err *err);
bool journal_needs_write(const struct journal *journal);
bool journal_needs_sync(const struct journal *journal);

// A sync in another thread: begin gives a descriptor to fdatasync and close, end says how it
// went (0 or errno). One at a time; false when there is nothing to do.
bool journal_sync_begin(struct journal *journal, int *ret_fd);
void journal_sync_end(struct journal *journal, int sync_errno);
MUST_USE err_status journal_sync(struct journal *journal, struct err *err); // both at once

// A snapshot is due when a file was closed; text holds the caller's lines, each with its LF.
bool journal_wants_snapshot(const struct journal *journal);
MUST_USE err_status journal_snapshot(struct journal *journal, struct str text, struct err *err);

// Lines of durable events after that number, at least one if any, else up to max_bytes.
MUST_USE err_status journal_read(struct journal *journal, uint64_t after_seq, size_t max_bytes,
				 struct buf *ret_lines, uint64_t *ret_last_seq, struct err *err);
// The server has all up to seq; deletes files that nobody needs any more.
void journal_acknowledge(struct journal *journal, uint64_t seq);
const char *journal_boot(const struct journal *journal); // the "boot" of new events
void journal_stats(const struct journal *journal, struct journal_stats *ret);

// Prints the events of a file or of a folder's files, one a line; for the command line.
MUST_USE err_status journal_print(const char *path, struct buf *out, struct err *err);
