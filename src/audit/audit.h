// SPDX-License-Identifier: Apache-2.0
// The audit log of one server: append-only files in one folder, one hash chain through all of
// them. Records put in one turn of the loop are written and synced together, then their
// callbacks run: who answers a call only after its callback never acknowledges what the log
// does not hold. When the disk takes no more, records are refused (ERR_UNAVAILABLE) and the next
// one tries again; room for the "end" of every call that has begun is reserved beforehand.
// A line torn by a crash is cut off on opening and stated as a record of its own.
#pragma once

#include "audit/checkpoint.h"
#include "sys/loop.h"

struct audit;

// err is NULL when the record is durable.
typedef void audit_done_fn(void *arg, const struct err *err);
// Each new checkpoint as one JSON line, so that it can be sent off the machine.
typedef void audit_checkpoint_fn(void *arg, struct str json);

struct audit_config {
	const char *dir;
	const char *key_file;               // NULL: DIR/signing.key
	size_t rotate_bytes;                // 0: 64 MiB
	int64_t checkpoint_records;         // 0: 1000
	uint64_t checkpoint_interval_ns;    // 0: 60 s
	audit_checkpoint_fn *on_checkpoint; // may be NULL
	void *arg;
};

struct audit_stats {
	int64_t records;  // of the chain
	uint64_t written; // since the start
	uint64_t syncs;
	uint64_t refused;
	int64_t covered; // records under the newest checkpoint
	uint64_t checkpoint_failures;
	bool is_available;
};

MUST_USE err_status audit_open(struct loop *loop, const struct audit_config *config,
			       struct audit **ret, struct err *err);
// Writes what is queued and a last checkpoint. NULL allowed.
void audit_close(struct audit *audit);

// Queues a copy. on_done (may be NULL) is called exactly once, not from inside the call.
// Stage "begin" reserves room for one more record; "end" uses it.
void audit_put(struct audit *audit, const struct audit_record *record, audit_done_fn *on_done,
	       void *arg);
struct audit_stats audit_stats(const struct audit *audit);
// Signs what is durable now; written to DIR/checkpoint.json too.
MUST_USE err_status audit_checkpoint_now(struct audit *audit, struct buf *ret_json,
					 struct err *err);

// The files of a folder in the order of the chain; paths live in the arena.
MUST_USE err_status audit_list_files(struct arena *arena, const char *dir,
				     const char *const **ret_paths, size_t *ret_count,
				     struct err *err);
const char *audit_dir(const struct audit *audit);
