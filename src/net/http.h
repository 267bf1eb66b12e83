// SPDX-License-Identifier: Apache-2.0
// What a HTTP request and response are, for server and client alike. Header names are kept as
// received and compared without case. All text is borrowed from the arena of its message.
#pragma once

#include "base/arena.h"

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
// Percent-decoding into the arena; false when malformed or holding a NUL.
MUST_USE bool http_unescape(struct arena *arena, struct str text, struct str *ret_text);
// Escapes everything but unreserved characters (RFC 3986); terminated text in the arena.
struct str http_escape(struct arena *arena, struct str text);
// Value of a query parameter, unescaped ('+' is a blank, as browsers and Python write it); data
// NULL when absent.
struct str http_query_get(struct arena *arena, struct str query, const char *name);
