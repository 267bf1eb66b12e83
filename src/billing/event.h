// SPDX-License-Identifier: Apache-2.0
// Usage events: one JSON object a line, the language of journal, ledger, import and export.
// Parsing is strict (known keys only, no duplicates, whole numbers, UTC) because the bytes come
// from other machines. Identity is (source, boot, seq); two events are the same when they are
// equal as JSON values, which is when event_format gives the same bytes for both.
// An event borrows its text from the line, or from the arena where an escape had to be decoded.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { EVENT_LINE_MAX_BYTES = 16384 };

typedef enum event_type {
	EVENT_BOUND,
	EVENT_RELEASED,
	EVENT_ENERGY,
	EVENT_SAMPLE,
	EVENT_UNEXPLAINED,
} event_type;

// Bits of event.present and event.null, in the order in which keys are written.
typedef enum event_field {
	EVENT_F_SOURCE,
	EVENT_F_BOOT,
	EVENT_F_SEQ,
	EVENT_F_T,
	EVENT_F_TYPE,
	EVENT_F_GPU,
	EVENT_F_PROFILE,
	EVENT_F_SHARE,
	EVENT_F_TENANT,
	EVENT_F_NAMESPACE,
	EVENT_F_POD,
	EVENT_F_POD_UID,
	EVENT_F_CONTAINER,
	EVENT_F_REQUEST,
	EVENT_F_EPOCH,
	EVENT_F_ENERGY_MJ,
	EVENT_F_UTIL_MILLI,
	EVENT_F_MEMORY_MIB,
	EVENT_F_PID,
	EVENT_FIELD_COUNT,
} event_field;

struct event {
	uint32_t present; // the key is there, with a value or null
	uint32_t null;    // the key is there with null: counts as absent, is kept for equality
	struct str source, boot;
	int64_t seq;
	int64_t t_s;       // seconds since 1970
	struct str t_text; // as it came, for equality; when empty, event_format writes t_s
	event_type type;
	struct str gpu, profile;
	int64_t share_num, share_den;
	struct str tenant, namespace, pod, pod_uid, container, request, epoch;
	uint64_t energy_mj;
	bool energy_is_number; // came as a JSON number instead of a string
	int64_t util_milli, memory_mib, pid;
};

// Parses one line without its newline. The error names the key or the column.
MUST_USE err_status event_parse(struct arena *arena, struct str line, struct event *ret_event,
				struct err *err);
// Writes the event with its keys in fixed order and without a newline.
void event_format(struct buf *out, const struct event *event);

bool event_has(const struct event *event, event_field field); // there and not null
const char *event_type_name(event_type type);

// 128 bits over the content, equal for equal events. Finds accidents, not forgeries.
struct event_digest {
	uint64_t high, low;
};
struct event_digest event_digest_of(const struct event *event);
