// SPDX-License-Identifier: Apache-2.0
// First byte: how the rest is cut into pieces. Whatever the cut, the same messages come out.
#include "net/grpc_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t digest(struct str bytes, size_t step, enum grpc_frame_state *ret_state)
{
	struct grpc_deframer deframer;
	uint64_t sum = 1469598103934665603U;
	grpc_deframer_init(&deframer, 64 * 1024);
	for (size_t at = 0; at < bytes.len; at += step) {
		struct str piece = str_slice(bytes, at, at + step);
		while (grpc_deframer_feed(&deframer, &piece) == GRPC_FRAME_MESSAGE) {
			for (size_t i = 0; i < deframer.body.len; i++)
				sum = (sum ^ (uint8_t)deframer.body.data[i]) * 1099511628211U;
			sum = (sum ^ deframer.body.len) * 1099511628211U;
			grpc_deframer_next(&deframer);
		}
	}
	*ret_state = deframer.state;
	grpc_deframer_done(&deframer);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct str bytes = { (const char *)data + 1, size - 1 };
	enum grpc_frame_state whole, pieces;
	uint64_t first = digest(bytes, max_size(bytes.len, 1), &whole);
	uint64_t second = digest(bytes, (size_t)data[0] + 1, &pieces);
	ASSERT(first == second && whole == pieces);

	struct buf escaped = { 0 }, plain = { 0 };
	grpc_message_escape(&escaped, bytes);
	grpc_message_unescape(&plain, buf_str(&escaped));
	ASSERT(str_eq(buf_str(&plain), bytes));
	buf_clear(&plain);
	grpc_message_unescape(&plain, bytes);
	buf_done(&escaped);
	buf_done(&plain);

	uint64_t ns = 0;
	char text[GRPC_TIMEOUT_TEXT_BYTES];
	if (grpc_timeout_parse(bytes, &ns))
		(void)grpc_timeout_format(ns, text);
	return 0;
}
