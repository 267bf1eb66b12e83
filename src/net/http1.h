// SPDX-License-Identifier: Apache-2.0
// Strict parser of HTTP/1.1 messages (RFC 9110, 9112), pure: bytes in, structs out, no I/O, no
// memory of its own. Where two readers could understand a message differently it is refused:
// both lengths, repeated framing headers, folded lines, bare CR or LF, NUL, blanks before a
// colon, dot segments, chunk sizes that are not plain hex. Results borrow from the bytes given.
#pragma once

#include "net/http.h"

enum { HTTP1_HEAD_MAX_BYTES = 16 * 1024, HTTP1_METHOD_MAX_BYTES = 32 };

// Looks for the end of a head (the empty line) without rereading: start zeroed, call again with
// the same bytes and more. Garbage is noticed at its first byte, not at a time-out.
struct http1_scan {
	size_t seen_bytes;
};

typedef enum http1_found {
	HTTP1_MORE,    // no end yet
	HTTP1_HEAD,    // *ret_head_bytes is the length with the empty line
	HTTP1_GARBAGE, // bare CR or LF, control byte, or an empty first line
	HTTP1_TOO_LONG,
} http1_found;

MUST_USE http1_found http1_scan_head(struct http1_scan *scan, struct str bytes,
				     size_t *ret_head_bytes);

typedef enum http1_framing {
	HTTP1_NO_BODY,
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE, // responses only
} http1_framing;

struct http1_request {
	struct str method, path, query;
	struct http_headers headers;
	http1_framing framing;
	uint64_t length; // of HTTP1_LENGTH, > 0
	bool is_1_0;
	bool keep_alive;
	bool expects_continue;
};

struct http1_response {
	int code; // 100..599
	struct http_headers headers;
	http1_framing framing;
	uint64_t length; // of HTTP1_LENGTH; of HTTP1_NO_BODY too where a length was told (HEAD)
	bool keep_alive;
};

// 0, or the status to refuse with: 400, 414, 417, 431, 501, 505; err says why.
MUST_USE int http1_parse_request(struct str head, struct http1_request *ret_request,
				 struct err *err);
// to_head: the answer to a HEAD request, which has no body whatever its headers tell.
MUST_USE err_status http1_parse_response(struct str head, bool to_head,
					 struct http1_response *ret_response, struct err *err);

// Decoder of a chunked body: start zeroed and feed what arrives, in pieces of any size.
struct http1_chunks {
	int state;
	uint64_t left;      // bytes of this chunk not seen yet
	size_t digits;      // of the size being read
	size_t extra_bytes; // extensions and trailers so far
	size_t line_bytes;  // of the trailer line being read
	bool colon;         // that line has one
};

typedef enum http1_step {
	HTTP1_STEP_DATA, // *ret_data holds a piece (maybe empty); feed the rest
	HTTP1_STEP_MORE, // all was used, the body goes on
	HTTP1_STEP_END,  // the body is complete; what was not used is the next message
	HTTP1_STEP_BAD,
} http1_step;

// Uses up bytes from the front of *bytes.
MUST_USE http1_step http1_chunks_next(struct http1_chunks *chunks, struct str *bytes,
				      struct str *ret_data);

// Capital letters, as all registered methods but two are; others read less than a whole token.
bool http1_is_method(struct str text);
// Of header names: RFC 9110 token. Of values: no control bytes but tab.
bool http1_is_token(struct str text);
bool http1_is_value(struct str text);
// Path and query as a request line may hold them.
bool http1_is_target(struct str text);
