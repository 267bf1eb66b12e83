// SPDX-License-Identifier: Apache-2.0
// First byte: encoding and how the rest is cut. Frames do not depend on the cut, and the state
// machine takes whatever comes as stream, as page and as refusal.
#include "k8s/watch_core.h"
#include "k8s/watch_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t digest(struct str bytes, size_t step, bool is_protobuf)
{
	struct watch_framer framer;
	struct watch_message message;
	struct str frame;
	uint64_t sum = 1469598103934665603U;
	watch_framer_init(&framer, is_protobuf);
	for (size_t at = 0; at < bytes.len; at += step) {
		struct str piece = str_slice(bytes, at, at + step);
		while (watch_framer_next(&framer, &piece, &frame)) {
			bool is_event = watch_message_parse(frame, is_protobuf, &message);
			sum = (sum ^ frame.len ^ (is_event ? 1U << 31 : 0U)) * 1099511628211U;
		}
	}
	sum ^= framer.failed ? 1 : 0;
	watch_framer_done(&framer);
	return sum;
}

static void on_item(void *arg, const struct watch_item *item)
{
	int *is_listing = arg;
	ASSERT(item->event != WATCH_SYNCED || *is_listing == 1);
	if (item->event == WATCH_RESYNC)
		*is_listing = 1;
	if (item->event == WATCH_SYNCED)
		*is_listing = 0;
}

static void drive(struct str bytes, size_t step_bytes, bool is_protobuf, bool as_pages)
{
	int is_listing = 0;
	struct watch_config config = {
		.path = "/x", .protobuf = is_protobuf, .fn = on_item, .arg = &is_listing
	};
	struct watch_core *core = watch_core_new(&config, 1);
	struct watch_step step;
	for (int i = 0; i < 8; i++) {
		watch_core_step(core, &step);
		bool is_whole = true;
		struct watch_end end = { .code = as_pages && i == 0 ? 422 : 200, .body = bytes };
		if (step.kind == WATCH_STEP_WAIT)
			continue;
		for (size_t at = 0; step.kind == WATCH_STEP_WATCH && at < bytes.len && is_whole;
		     at += step_bytes)
			is_whole = watch_core_data(core, end.code,
						   str_slice(bytes, at, at + step_bytes));
		if (is_whole)
			watch_core_end(core, &end);
	}
	watch_core_free(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct str bytes = { (const char *)data + 1, size - 1 };
	bool is_protobuf = (data[0] & 1) != 0;
	size_t step_bytes = (size_t)(data[0] >> 2) + 1;
	ASSERT(digest(bytes, step_bytes, is_protobuf) ==
	       digest(bytes, max_size(bytes.len, 1), is_protobuf));
	drive(bytes, step_bytes, is_protobuf, (data[0] & 2) != 0);
	return 0;
}
