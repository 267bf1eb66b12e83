// SPDX-License-Identifier: Apache-2.0
// One usage event: who held which device from when to when, how busy it was, what energy it
// took. The text form is one JSON object a line, the same in journal, push, import and export.
// Identity is (source, boot, seq). All text is kept in the structure. Decoding refuses what is
// malformed or does not fit; unknown members are ignored, so that later fields do no harm.
#pragma once

#include "base/buf.h"

typedef enum event_type {
	EVENT_BOUND,
	EVENT_RELEASED,
	EVENT_ENERGY,
	EVENT_SAMPLE,
	EVENT_UNEXPLAINED, // use of a device that nobody holds
} event_type;

enum {
	EVENT_NAME_BYTES = 64,
	EVENT_POD_BYTES = 254,
	EVENT_TEXT_MAX_BYTES = 4096,
};

struct usage_event {
	char source[EVENT_NAME_BYTES * 4]; // a node name
	char boot[EVENT_NAME_BYTES];
	uint64_t seq;
	int64_t t_s; // whole seconds, UTC
	event_type type;
	char gpu[EVENT_NAME_BYTES];
	char profile[EVENT_NAME_BYTES]; // empty: a whole GPU
	uint32_t share_num, share_den;  // 0/0: not told
	char tenant[EVENT_NAME_BYTES], namespace_[EVENT_NAME_BYTES];
	char pod[EVENT_POD_BYTES], pod_uid[EVENT_NAME_BYTES], container[EVENT_NAME_BYTES];
	char request[EVENT_NAME_BYTES * 2];
	char epoch[EVENT_NAME_BYTES]; // of the energy counter
	uint64_t energy_mj;
	uint32_t util_milli;
	uint64_t memory_mib;
	uint32_t pid;
	bool estimated; // t is the best that was known, not what the pod said
};

const char *event_type_name(event_type type);
// Appends the object without a line feed.
void event_encode(struct buf *out, const struct usage_event *event);
MUST_USE err_status event_decode(struct str line, struct usage_event *ret, struct err *err);
// Copies text into a fixed member; false when it does not fit (the member stays empty).
MUST_USE bool event_text(char *out, size_t out_bytes, struct str text);
