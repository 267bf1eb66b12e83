// SPDX-License-Identifier: Apache-2.0
// Checks an audit log: every record's own hash, the chain from record to record and from file to
// file, and, against a signed checkpoint, that neither head nor tail was cut. Names the first
// record that is wrong. Reads files line by line; needs no server.
#pragma once

#include "audit/checkpoint.h"

typedef enum audit_fault {
	AUDIT_GOOD,
	AUDIT_EDITED,   // the content does not match its hash, or is no record
	AUDIT_INSERTED, // number or chain of a record that does not belong here
	AUDIT_REORDERED,
	AUDIT_REMOVED, // records in the middle are missing
	AUDIT_HEAD_CUT,
	AUDIT_TAIL_CUT,   // fewer records than the checkpoint covers, or a torn last line
	AUDIT_CHECKPOINT, // of another chain, history or key, or not signed rightly
} audit_fault;

struct audit_report {
	int64_t records;  // good ones before the first fault
	int64_t bad_seq;  // number that the first bad record should have; 0: none is bad
	int64_t bad_line; // line in the input, from 1
	audit_fault fault;
	bool is_covered;                    // a checkpoint was given and holds
	struct audit_place place;           // after the last good record
	unsigned char key[AUDIT_KEY_BYTES]; // of the checkpoint, if one was given and holds
	char text[300];                     // for people
};

const char *audit_fault_name(audit_fault fault);

// What a checkpoint must be; path NULL: none. Without a key the one that the checkpoint brings
// along is used, and whoever can write the checkpoint can replace it.
struct audit_trust {
	const char *checkpoint_path;
	const unsigned char *key; // AUDIT_KEY_BYTES, or NULL
};

// Files in the order of the chain. ERR_OK: the log is whole.
// ERR_INTERNAL: it is not, ret_report says where. Others: a file could not be read.
MUST_USE err_status audit_verify(const char *const *paths, size_t path_count,
				 const struct audit_trust *trust, struct audit_report *ret_report,
				 struct err *err);

// The same, step by step.
struct audit_verifier {
	struct audit_report report;
	char chain[AUDIT_CHAIN_CHARS + 1];
	int64_t line;
	bool has_checkpoint, has_met; // met: the checkpoint's record was seen with its hash
	struct audit_checkpoint checkpoint;
};
void audit_verifier_init(struct audit_verifier *verifier,
			 const struct audit_checkpoint *checkpoint); // NULL: none
// False after the first fault.
bool audit_verifier_line(struct audit_verifier *verifier, struct str line);
bool audit_verifier_end(struct audit_verifier *verifier);
