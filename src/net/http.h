// SPDX-License-Identifier: Apache-2.0
// What a HTTP request and response are, for server and client alike. Header names are kept as
// received and compared without case. All text is borrowed from the arena of its message.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { HTTP_HEADERS_MAX = 64, HTTP_BODY_DEFAULT_MAX_BYTES = 4 * 1024 * 1024 };

struct http_header {
	struct str name;
	struct str value;
};

struct http_headers {
	struct http_header items[HTTP_HEADERS_MAX];
	size_t count;
};

// First value of that name, or empty with data NULL.
struct str http_header_find(const struct http_headers *headers, const char *name);
MUST_USE bool http_header_add(struct http_headers *headers, struct str name, struct str value);
const char *http_status_text(int status);
// Escapes everything but unreserved characters (RFC 3986).
void http_put_escaped(struct buf *out, struct str text);
// The same as terminated text in the arena; data NULL at its limit.
struct str http_escape(struct arena *arena, struct str text);
// Value of a query parameter, unescaped ('+' is a blank, as browsers and Python write it); data
// NULL when absent, malformed or holding a NUL.
struct str http_query_get(struct arena *arena, struct str query, const char *name);
