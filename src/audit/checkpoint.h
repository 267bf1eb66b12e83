// SPDX-License-Identifier: Apache-2.0
// Signed statements of an audit chain's length and head (ed25519). Kept outside the machine they
// show later that nothing before them was cut or rewritten. The key is made on first use in a
// file with mode 0600; keep it away from the log where that matters (a mounted Secret). A
// checkpoint brings its public key along: it proves something only to who knows that key already.
#pragma once

#include "audit/record.h"
#include "base/arena.h"

enum { AUDIT_KEY_BYTES = 32, AUDIT_SIGNATURE_BYTES = 64 };

struct audit_key {
	unsigned char secret[64];
	unsigned char public_[AUDIT_KEY_BYTES];
};

struct audit_checkpoint {
	char chain[AUDIT_CHAIN_CHARS + 1];
	struct audit_place place; // records it covers, and the hash of the last
	char time[40];
	unsigned char public_[AUDIT_KEY_BYTES];
	unsigned char signature[AUDIT_SIGNATURE_BYTES];
};

MUST_USE err_status audit_key_load(const char *path, struct audit_key *ret_key, struct err *err);
// The public key as hexadecimal text.
MUST_USE bool audit_public_parse(struct str hex, unsigned char ret_public[AUDIT_KEY_BYTES]);
void audit_public_format(const unsigned char public_[AUDIT_KEY_BYTES],
			 char out[2 * AUDIT_KEY_BYTES + 1]);
void audit_key_wipe(struct audit_key *key); // for AUTO
void audit_checkpoint_sign(const struct audit_key *key, struct audit_checkpoint *checkpoint);
// One JSON object, without a newline.
void audit_checkpoint_encode(const struct audit_checkpoint *checkpoint, struct buf *out);
// Form and signature; ERR_INTERNAL when the signature does not fit the content.
MUST_USE err_status audit_checkpoint_decode(struct str text, struct audit_checkpoint *ret,
					    struct err *err);
