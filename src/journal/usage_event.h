// SPDX-License-Identifier: Apache-2.0
// One usage event in memory of its own: who held which device from when to when, how busy it
// was, what energy it took. The text form is billing/event's, the language of journal, ledger,
// import and export; here all text is kept in the structure, so that an event can wait in
// tables. Decoding is as strict as billing's and refuses what does not fit.
#pragma once

#include "base/buf.h"
#include "billing/event.h"

enum {
	USAGE_NAME_BYTES = 64,
	USAGE_POD_BYTES = 254,
	USAGE_UID_BYTES = 320, // also "namespace/pod" where no UID is known
	USAGE_TEXT_MAX_BYTES = 4096,
};

struct usage_event {
	char source[USAGE_NAME_BYTES * 4]; // a node name
	char boot[USAGE_NAME_BYTES];
	uint64_t seq;
	int64_t t_s; // whole seconds, UTC
	event_type type;
	char gpu[USAGE_NAME_BYTES];
	char profile[USAGE_NAME_BYTES]; // empty: a whole GPU
	uint32_t share_num, share_den;  // 0/0: not told
	char tenant[USAGE_NAME_BYTES], namespace_[USAGE_NAME_BYTES];
	char pod[USAGE_POD_BYTES], pod_uid[USAGE_UID_BYTES], container[USAGE_NAME_BYTES];
	char request[USAGE_NAME_BYTES * 2];
	char epoch[USAGE_NAME_BYTES]; // of the energy counter
	uint64_t energy_mj;
	uint32_t util_milli;
	uint64_t memory_mib;
	uint32_t pid; // 0: not told
};

// Appends the object without a line feed; empty texts are left out.
void usage_event_encode(struct buf *out, const struct usage_event *event);
MUST_USE err_status usage_event_decode(struct str line, struct usage_event *ret, struct err *err);
// Copies text into a fixed member; false when it does not fit (the member stays empty).
MUST_USE bool usage_text(char *out, size_t out_bytes, struct str text);
