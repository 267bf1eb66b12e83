// SPDX-License-Identifier: Apache-2.0
// Bytes of the gRPC wire format, without any socket: length-prefixed messages, the two header
// encodings (grpc-message, grpc-timeout) and status codes. Pure, so that tests and fuzzing feed
// it directly. A deframer owns the bytes of the message it collects until grpc_deframer_done.
// Source of the format: github.com/grpc/grpc doc/PROTOCOL-HTTP2.md.
#pragma once

#include "base/buf.h"
#include "net/grpc.h"

enum { GRPC_PREFIX_BYTES = 5, GRPC_TIMEOUT_TEXT_BYTES = 16 };

enum grpc_frame_state {
	GRPC_FRAME_PARTIAL,    // more bytes are needed
	GRPC_FRAME_MESSAGE,    // body holds one whole message; go on with grpc_deframer_next
	GRPC_FRAME_COMPRESSED, // the peer compressed without being asked
	GRPC_FRAME_TOO_LARGE,  // longer than the limit; nothing was allocated for it
	GRPC_FRAME_BROKEN,     // the flag byte is neither 0 nor 1
};

struct grpc_deframer {
	struct buf body;
	size_t limit_bytes; // of one message
	uint8_t prefix[GRPC_PREFIX_BYTES];
	size_t prefix_len;
	enum grpc_frame_state state;
};

void grpc_deframer_init(struct grpc_deframer *deframer, size_t limit_bytes);
void grpc_deframer_done(struct grpc_deframer *deframer);
// Takes bytes off data until a message is whole or the bytes are used up. A state other than
// PARTIAL and MESSAGE is final.
enum grpc_frame_state grpc_deframer_feed(struct grpc_deframer *deframer, struct str *data);
// Forgets the message that was handed out and waits for the next prefix.
void grpc_deframer_next(struct grpc_deframer *deframer);
// True between messages: the peer may end the stream here.
bool grpc_deframer_is_idle(const struct grpc_deframer *deframer);

void grpc_frame_put(struct buf *out, struct str message);

// grpc-message: printable ASCII but '%', the rest as %XX. Unescaping keeps malformed escapes as
// they are, as the format asks of receivers.
void grpc_message_escape(struct buf *out, struct str text);
void grpc_message_unescape(struct buf *out, struct str text);

// "100m" and so on: one to eight digits and a unit of H M S m u n. False when malformed.
MUST_USE bool grpc_timeout_parse(struct str text, uint64_t *ret_ns);
// Rounds up to the finest unit that eight digits can hold. Returns out.
char *grpc_timeout_format(uint64_t timeout_ns, char out[GRPC_TIMEOUT_TEXT_BYTES]);

// Code of a response that has no grpc-status, by its HTTP status.
enum grpc_code grpc_code_of_http(int http_status);
