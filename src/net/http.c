// SPDX-License-Identifier: Apache-2.0
#include "net/http.h"

struct str http_header_find(const struct http_headers *headers, const char *name)
{
	struct str wanted = str_of(name);
	for (size_t i = 0; i < headers->count; i++)
		if (str_eq_nocase(headers->items[i].name, wanted))
			return headers->items[i].value;
	return (struct str){ NULL, 0 };
}

bool http_header_add(struct http_headers *headers, struct str name, struct str value)
{
	ASSERT(headers->count <= HTTP_HEADERS_MAX);
	if (headers->count == HTTP_HEADERS_MAX)
		return false;
	headers->items[headers->count++] = (struct http_header){ name, value };
	return true;
}

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{ 100, "Continue" },
		{ 101, "Switching Protocols" },
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 402, "Payment Required" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(table); i++)
		if (table[i].status == status)
			return table[i].text;
	return "Unknown";
}

// False when malformed or holding a NUL.
static bool unescape(struct arena *arena, struct str text, struct str *ret_text)
{
	char *out = arena_alloc(arena, text.len + 1);
	size_t count = 0;
	if (out == NULL)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '%') {
			if (text.len - i < 3)
				return false;
			int high = str_hex_value(text.data[i + 1]),
			    low = str_hex_value(text.data[i + 2]);
			if (high < 0 || low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (c == '\0')
			return false;
		out[count++] = c;
	}
	ASSERT(count <= text.len);
	*ret_text = (struct str){ out, count };
	return true;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void http_put_escaped(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (is_unreserved(text.data[i]))
			buf_put_byte(out, text.data[i]);
		else
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.data[i]);
	}
}

struct str http_escape(struct arena *arena, struct str text)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	http_put_escaped(&out, text);
	return buf_ok(&out) ? arena_dup(arena, buf_str(&out)) : (struct str){ NULL, 0 };
}

struct str http_query_get(struct arena *arena, struct str query, const char *name)
{
	struct str pair, wanted = str_of(name), value;
	while (str_split_next(&query, '&', &pair)) {
		size_t at = str_find_byte(pair, '=', 0);
		struct str key = str_slice(pair, 0, at);
		struct str raw = at == SIZE_MAX ? STR("") : str_slice(pair, at + 1, pair.len);
		if (!unescape(arena, key, &key) || !str_eq(key, wanted))
			continue;
		return unescape(arena, raw, &value) ? value : (struct str){ NULL, 0 };
	}
	return (struct str){ NULL, 0 };
}
