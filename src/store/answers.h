// SPDX-License-Identifier: Apache-2.0
// Idempotency keys: the first call with a key runs, later ones with the same content get the
// same answer, others are refused. Kept for a day. A call that was under way when the process
// died is forgotten at the start: what it did is found by its own name when it is repeated.
#pragma once

#include "store/store.h"

typedef enum answer_state {
	ANSWER_NEW,      // the key was not known; it is marked as running now
	ANSWER_RUNNING,  // the same call is under way
	ANSWER_KEPT,     // status and body are what was answered
	ANSWER_MISMATCH, // the key was used for another call
} answer_state;

struct kept_answer {
	answer_state state;
	int status;
	struct str body; // in the arena; empty when it held a secret
};

// key_hash: of caller and key; call_hash: of method, path and body.
MUST_USE err_status answers_begin(struct sql *sql, struct arena *arena, struct str key_hash,
				  struct str call_hash, int64_t now_s,
				  struct kept_answer *ret_answer, struct err *err);
MUST_USE err_status answers_finish(struct sql *sql, struct str key_hash, int status,
				   struct str body, struct err *err);
// Of calls that are marked as running, at most max_count; *ret_hashes in the arena.
MUST_USE err_status answers_running(struct sql *sql, struct arena *arena, size_t max_count,
				    struct str **ret_hashes, size_t *ret_count, struct err *err);
// For calls that failed in a way that a repetition may mend.
MUST_USE err_status answers_forget(struct sql *sql, struct str key_hash, struct err *err);
// Forgets what is older, and with is_start also what was under way.
MUST_USE err_status answers_sweep(struct sql *sql, int64_t older_than_s, bool is_start,
				  struct err *err);
