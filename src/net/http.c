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

static bool unescape(struct arena *arena, struct str text, bool plus_is_blank, struct str *ret_text)
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
		} else if (c == '+' && plus_is_blank) {
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

bool http_unescape(struct arena *arena, struct str text, struct str *ret_text)
{
	return unescape(arena, text, false, ret_text);
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

struct str http_escape(struct arena *arena, struct str text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *out = text.len > SIZE_MAX / 4 ? NULL : arena_alloc(arena, text.len * 3 + 1);
	size_t count = 0;
	if (out == NULL)
		return (struct str){ NULL, 0 };
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (is_unreserved((char)c)) {
			out[count++] = (char)c;
			continue;
		}
		out[count++] = '%';
		out[count++] = digits[c >> 4];
		out[count++] = digits[c & 15];
	}
	out[count] = '\0';
	return (struct str){ out, count };
}

struct str http_query_get(struct arena *arena, struct str query, const char *name)
{
	struct str pair, wanted = str_of(name), value;
	while (str_split_next(&query, '&', &pair)) {
		size_t at = str_find_byte(pair, '=', 0);
		struct str key = str_slice(pair, 0, at);
		struct str raw = at == SIZE_MAX ? STR("") : str_slice(pair, at + 1, pair.len);
		if (!unescape(arena, key, true, &key) || !str_eq(key, wanted))
			continue;
		return unescape(arena, raw, true, &value) ? value : (struct str){ NULL, 0 };
	}
	return (struct str){ NULL, 0 };
}
