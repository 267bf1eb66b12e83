// SPDX-License-Identifier: Apache-2.0
// Heads of requests and responses and chunked bodies of any bytes; and that pieces of any size
// are understood like the whole.
#include "base/buf.h"
#include "net/http1.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_head(struct str bytes)
{
	struct http1_scan scan = { 0 };
	struct http1_request request;
	struct http1_response response;
	size_t head_bytes = 0;
	if (http1_scan_head(&scan, bytes, &head_bytes) == HTTP1_HEAD) {
		struct str head = str_slice(bytes, 0, head_bytes);
		ASSERT(head.len <= HTTP1_HEAD_MAX_BYTES);
		if (http1_parse_request(head, &request, NULL) == 0) {
			ASSERT(request.path.len > 0 && request.path.data[0] == '/');
			ASSERT(request.headers.count <= HTTP_HEADERS_MAX);
			ASSERT(request.framing != HTTP1_LENGTH || request.length > 0);
		}
	}
	// The parsers must stand bytes that no scan has seen, too.
	int refused = http1_parse_request(bytes, &request, NULL);
	err_status status = http1_parse_response(bytes, false, &response, NULL);
	ASSERT(refused != 0 || status != ERR_OK);
}

static http1_step decode(struct str bytes, size_t step, struct buf *out)
{
	struct http1_chunks chunks = { .state = 0 };
	http1_step got = HTTP1_STEP_MORE;
	for (size_t at = 0; at < bytes.len && got == HTTP1_STEP_MORE; at += step) {
		struct str piece = str_slice(bytes, at, at + step), part;
		while ((got = http1_chunks_next(&chunks, &piece, &part)) == HTTP1_STEP_DATA)
			buf_put(out, part);
	}
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	AUTO(buf_done) struct buf whole = { .limit = 0 };
	AUTO(buf_done) struct buf pieces = { .limit = 0 };
	fuzz_head(bytes);
	http1_step a = decode(bytes, size == 0 ? 1 : size, &whole);
	http1_step b = decode(bytes, 1, &pieces);
	ASSERT(a == b && str_eq(buf_str(&whole), buf_str(&pieces)));
	return 0;
}
