// SPDX-License-Identifier: Apache-2.0
// One line of the audit log. The hash of a record covers, each with its length before it, the
// version of the form, the hash of the record before, and the whole text of the line up to its
// own hash: no byte can change, and no record can be added, moved or taken out, without breaking
// the chain. Records hold no secrets and no bodies, only who, what, on what, and how it ended.
#pragma once

#include "base/buf.h"

enum {
	AUDIT_HASH_BYTES = 32,
	AUDIT_HASH_HEX = 2 * AUDIT_HASH_BYTES,
	AUDIT_CHAIN_CHARS = 36,
	AUDIT_LINE_MAX_BYTES = 4096,
	AUDIT_FIELD_MAX_BYTES = 300, // longer texts are cut
};

struct audit_record {
	const char *stage; // "begin" before the act, "end" after it, "denied", "system"
	struct str request_id;
	struct str actor; // whom the token speaks for
	struct str role;
	struct str token_id; // not secret
	struct str tenant;   // of the object
	const char *resource, *verb;
	struct str object; // path of the call
	struct str peer;   // address
	int status;        // HTTP status; 0 when it has not ended
	struct str code;   // of the problem, or empty
	struct str detail;
};

struct audit_hash {
	unsigned char bytes[AUDIT_HASH_BYTES];
};

struct audit_place {
	int64_t seq;            // of the last record; 0: none
	struct audit_hash head; // its hash
};

// The head of an empty chain, derived from the chain's id.
struct audit_hash audit_genesis(struct str chain);
// Appends the line with its newline and moves place on. time_text is RFC 3339.
void audit_encode(struct buf *out, struct str chain, const char *time_text,
		  const struct audit_record *record, struct audit_place *place);

struct audit_line {
	int64_t seq;
	struct audit_hash prev, hash; // hash is recomputed, and equal to the one in the line
	char chain[AUDIT_CHAIN_CHARS + 1];
};
// Checks the line (without its newline) alone: form, version, hash.
MUST_USE err_status audit_decode(struct str line, struct audit_line *ret_line, struct err *err);

void audit_hash_format(const struct audit_hash *hash, char out[AUDIT_HASH_HEX + 1]);
MUST_USE bool audit_hash_parse(struct str hex, struct audit_hash *ret_hash);
bool audit_hash_eq(const struct audit_hash *a, const struct audit_hash *b);
