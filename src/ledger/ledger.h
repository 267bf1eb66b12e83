// SPDX-License-Identifier: Apache-2.0
// The ledger: every usage event exactly once, and the dated documents (assets, prices, pools)
// that rate it, in SQL. Append-only: nothing is changed or deleted; a document is replaced by a
// newer version. A batch is one transaction: it is there whole or not at all.
// The connection is the caller's and outlives the ledger; one thread.
#pragma once

#include "billing/event.h"
#include "sql/sql.h"

struct ledger;

enum {
	LEDGER_BOOT_MAX_BYTES = 63,
	LEDGER_BATCH_MAX_BYTES = 4 * 1024 * 1024,
	LEDGER_AHEAD_MAX_S = 300, // of a source's clock
};

struct ledger_cursor {
	char boot[LEDGER_BOOT_MAX_BYTES + 1]; // empty: nothing came from this source yet
	int64_t seq;
};

struct ledger_counts {
	uint64_t events;     // taken in since the start
	uint64_t duplicates; // seen before, same content
	uint64_t disputed;   // set aside: contradicts what was told about the allocation before
};

typedef enum ledger_document {
	LEDGER_ASSETS,
	LEDGER_PRICES,
	LEDGER_POOLS,
} ledger_document;

MUST_USE err_status ledger_open(struct sql *sql, struct ledger **ret_ledger, struct err *err);
void ledger_free(struct ledger *ledger); // NULL allowed

// Whether a source may speak of a GPU that it never named before: ERR_OK; ERR_NOT_FOUND when the
// GPU is not its own; ERR_UNAVAILABLE when that cannot be said yet. Without one all may.
typedef err_status ledger_owner_fn(void *arg, struct str source, struct str gpu, struct err *err);
void ledger_owner_set(struct ledger *ledger, ledger_owner_fn *fn, void *arg);

// Takes in a batch of lines of one source; an empty source is an import of several, whose owners
// are not asked about. A malformed line, or one from more than LEDGER_AHEAD_MAX_S after now_s,
// refuses the batch with its number (ERR_INVALID); an event of another source ERR_DENIED; one of a
// GPU that is not the source's what ledger_owner_fn says; the same identity with another content
// ERR_CONFLICT; a full disk ERR_IO. A GPU that the source named before stays allowed, so that one
// that was taken out of a node is still released. Repeated events change
// nothing. An event that contradicts what was told about its allocation is kept apart and counted:
// it never reaches a bill. *ret_cursor is the last event of the batch, or for an empty batch what
// is stored.
MUST_USE err_status ledger_append(struct ledger *ledger, struct str source, struct str lines,
				  int64_t now_s, struct ledger_cursor *ret_cursor, struct err *err);
struct ledger_counts ledger_counts_get(const struct ledger *ledger);

// Checks the document whole and makes it the current one.
MUST_USE err_status ledger_document_put(struct ledger *ledger, ledger_document kind,
					struct str json, struct str user, int64_t now_s,
					struct err *err);
// The current one in the arena; ERR_NOT_FOUND when none was put.
MUST_USE err_status ledger_document_get(struct ledger *ledger, ledger_document kind,
					struct arena *arena, struct str *ret_json, struct err *err);
const char *ledger_document_name(ledger_document kind); // "assets", "prices", "pools"

// Events in order of time, source, boot and number; fn returns false to stop. An empty tenant
// means all. Disputed events are left out.
typedef bool ledger_line_fn(void *arg, struct str line);
MUST_USE err_status ledger_export(struct ledger *ledger, int64_t from_s, int64_t to_s,
				  struct str tenant, ledger_line_fn *fn, void *arg,
				  struct err *err);
