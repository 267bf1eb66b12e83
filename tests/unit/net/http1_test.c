// SPDX-License-Identifier: Apache-2.0
// The HTTP/1.1 parser by tables of what is accepted and what is refused with which status, and
// the chunk decoder fed in pieces of every size; and the small helpers of http.h.
#include "net/http1.h"

#include "base/buf.h"
#include "check.h"

#define HOST "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n"

static const struct {
	const char *name, *head;
	int refused;
} requests[] = {
	{ "plain", GET HOST "\r\n", 0 },
	{ "http/1.0 needs no host", "GET / HTTP/1.0\r\n\r\n", 0 },
	{ "blanks around a value", GET "Host:   a  \r\n\r\n", 0 },
	{ "empty value", GET HOST "X:\r\n\r\n", 0 },
	{ "bytes above 127 in a value", GET HOST "X: \xc3\xa4\r\n\r\n", 0 },
	{ "host with a dot at the end", GET "Host: a.b.\r\n\r\n", 0 },
	{ "tab within a value", GET HOST "X: a\tb\r\n\r\n", 0 },
	{ "host with port", GET "Host: [::1]:8443\r\n\r\n", 0 },
	{ "escaped target", "GET /a%20b/%2Fc?x=%41&y HTTP/1.1\r\n" HOST "\r\n", 0 },
	{ "dots inside segments", "GET /a..b/.c/d./... HTTP/1.1\r\n" HOST "\r\n", 0 },
	{ "unknown method", "BREW / HTTP/1.1\r\n" HOST "\r\n", 0 },
	{ "length", GET HOST "Content-Length: 5\r\n\r\n", 0 },
	{ "chunked", GET HOST "Transfer-Encoding: Chunked\r\n\r\n", 0 },
	{ "continue", GET HOST "Expect: 100-Continue\r\n\r\n", 0 },

	{ "both lengths", GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "two lengths", GET HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400 },
	{ "length list", GET HOST "Content-Length: 5, 5\r\n\r\n", 400 },
	{ "length with sign", GET HOST "Content-Length: +5\r\n\r\n", 400 },
	{ "negative length", GET HOST "Content-Length: -5\r\n\r\n", 400 },
	{ "hex length", GET HOST "Content-Length: 0x5\r\n\r\n", 400 },
	{ "empty length", GET HOST "Content-Length:\r\n\r\n", 400 },
	{ "length past 2^64", GET HOST "Content-Length: 18446744073709551621\r\n\r\n", 400 },
	{ "19 digits", GET HOST "Content-Length: 1000000000000000000\r\n\r\n", 400 },
	{ "two codings", GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ "other coding", GET HOST "Transfer-Encoding: identity\r\n\r\n", 501 },
	{ "disguised coding", GET HOST "Transfer-Encoding: xchunked\r\n\r\n", 501 },
	{ "coding twice", GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
	  400 },
	{ "coding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "no host", GET "\r\n", 400 },
	{ "two hosts", GET HOST HOST "\r\n", 400 },
	{ "tab before a value", GET "Host: \ta\r\n\r\n", 400 },
	{ "tab after a value", GET "Host: a\t \r\n\r\n", 400 },
	{ "tab for a value", GET HOST "X:\t\r\n\r\n", 400 },
	{ "host of a port", GET "Host: :80\r\n\r\n", 400 },
	{ "host without its port", GET "Host: a:\r\n\r\n", 400 },
	{ "port of six digits", GET "Host: a:123456\r\n\r\n", 400 },
	{ "two ports", GET "Host: a:1:2\r\n\r\n", 400 },
	{ "host of a dot", GET "Host: .\r\n\r\n", 400 },
	{ "host with an empty label", GET "Host: a..b\r\n\r\n", 400 },
	{ "open bracket", GET "Host: [::1\r\n\r\n", 400 },
	{ "empty host", GET "Host:\r\n\r\n", 400 },
	{ "host with a path", GET "Host: a/b\r\n\r\n", 400 },
	{ "host with a user", GET "Host: u@a\r\n\r\n", 400 },
	{ "two authorizations", GET HOST "Authorization: a\r\nauthorization: b\r\n\r\n", 400 },
	{ "folded", GET HOST "X: a\r\n b\r\n\r\n", 400 },
	{ "folded by tab", GET HOST "X: a\r\n\tb\r\n\r\n", 400 },
	{ "first line folded", GET " X: a\r\n" HOST "\r\n", 400 },
	{ "blank before the colon", GET "Host : a\r\n\r\n", 400 },
	{ "no colon", GET HOST "X\r\n\r\n", 400 },
	{ "no name", GET HOST ": x\r\n\r\n", 400 },
	{ "name with a slash", GET HOST "X/Y: x\r\n\r\n", 400 },
	{ "name with bytes above 127", GET HOST "X\xc3\xa4: x\r\n\r\n", 400 },
	{ "delete in a value", GET HOST "X: \x7f\r\n\r\n", 400 },
	{ "other expectation", GET HOST "Expect: tea\r\n\r\n", 417 },

	{ "no target", "GET HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "two blanks", "GET  / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "blank at the end", "GET / HTTP/1.1 \r\n" HOST "\r\n", 400 },
	{ "tab for blank", "GET\t/\tHTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "leading blank", " GET / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "http/0.9", "GET /\r\n\r\n", 400 },
	{ "http/1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", 505 },
	{ "http/2.0", "PRI * HTTP/2.0\r\n\r\n", 400 },
	{ "http/3.0 with a path", "GET / HTTP/3.0\r\n\r\n", 505 },
	{ "long version", "GET / HTTP/1.10\r\n\r\n", 400 },
	{ "lower case version", "GET / http/1.1\r\n" HOST "\r\n", 400 },
	{ "lower case method", "get / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "method with a bracket", "GE(T / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "absolute form", "GET http://a/ HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "authority form", "CONNECT a:443 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "asterisk form", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "fragment", "GET /a#b HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "backslash", "GET /a\\b HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "quote", "GET /\" HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "bytes above 127 in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "short escape", "GET /%2 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "bad escape", "GET /%2x HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "escaped NUL", "GET /a?b=%00 HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "dot segment", "GET /a/./b HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "dot dot segment", "GET /a/.. HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "escaped dot dot", "GET /a/%2e%2E/b HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "half escaped dot dot", "GET /a/.%2e HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "two empty lines", GET HOST "\r\n\r\n", 400 },
	{ "no empty line", GET HOST, 400 },
	{ "nothing", "", 400 },
};

static void test_requests(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
		struct http1_request request = { .length = 77 };
		struct err err = { .status = ERR_OK };
		int got = http1_parse_request(str_of(requests[i].head), &request, &err);
		CHECK_INT(c, requests[i].name, got, requests[i].refused);
		CHECK(c, requests[i].name, (got == 0) == (err.text[0] == '\0'));
		CHECK(c, requests[i].name, got == 0 || request.length == 77);
	}
}

static void test_request_fields(struct check *c)
{
	struct http1_request r;
	const char *name = "fields";
	CHECK_INT(c, name,
		  http1_parse_request(STR("POST /a/b?c=d&e HTTP/1.1\r\nhOST: x:1\r\n"
					  "Content-Length: 12\r\nConnection: a, Close\r\n"
					  "Expect: 100-continue\r\n\r\n"),
				      &r, NULL),
		  0);
	CHECK_STR(c, name, r.method, "POST");
	CHECK_STR(c, name, r.path, "/a/b");
	CHECK_STR(c, name, r.query, "c=d&e");
	CHECK_STR(c, name, http_header_find(&r.headers, "Host"), "x:1");
	CHECK(c, name, http_header_find(&r.headers, "none").data == NULL);
	CHECK(c, name, r.framing == HTTP1_LENGTH && r.length == 12);
	CHECK(c, name, r.expects_continue && !r.keep_alive && !r.is_1_0);

	CHECK_INT(c, "1.0", http1_parse_request(STR("GET / HTTP/1.0\r\n\r\n"), &r, NULL), 0);
	CHECK(c, "1.0 closes", !r.keep_alive && r.is_1_0 && r.framing == HTTP1_NO_BODY);
	CHECK_INT(c, "1.0",
		  http1_parse_request(STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), &r,
				      NULL),
		  0);
	CHECK(c, "1.0 kept on request", r.keep_alive);
}

static void test_header_count(struct check *c)
{
	for (size_t count = HTTP_HEADERS_MAX; count <= HTTP_HEADERS_MAX + 1; count++) {
		AUTO(buf_done) struct buf head = { .limit = 0 };
		struct http1_request request;
		buf_put_c(&head, GET HOST);
		for (size_t i = 1; i < count; i++)
			buf_printf(&head, "X-%zu: y\r\n", i);
		buf_put_c(&head, "\r\n");
		CHECK_INT(c, "header count", http1_parse_request(buf_str(&head), &request, NULL),
			  count > HTTP_HEADERS_MAX ? 431 : 0);
	}
}

static const struct {
	const char *name;
	struct str bytes;
	http1_found found;
	size_t head_bytes;
} scans[] = {
	{ "head and more", { "A\r\n\r\nB", 6 }, HTTP1_HEAD, 5 },
	{ "head with a line", { "A\r\nB: c\r\n\r\n", 11 }, HTTP1_HEAD, 11 },
	{ "not yet", { "A\r\nB\r\n", 6 }, HTTP1_MORE, 0 },
	{ "ends with CR", { "A\r\n\r", 4 }, HTTP1_MORE, 0 },
	{ "bare LF", { "A\nB", 3 }, HTTP1_GARBAGE, 0 },
	{ "bare LF first", { "\n", 1 }, HTTP1_GARBAGE, 0 },
	{ "bare CR", { "A\rB", 3 }, HTTP1_GARBAGE, 0 },
	{ "CR CR LF", { "A\r\r\n", 4 }, HTTP1_GARBAGE, 0 },
	{ "LF LF", { "A\r\n\n", 4 }, HTTP1_GARBAGE, 0 },
	{ "NUL", { "A\0", 2 }, HTTP1_GARBAGE, 0 },
	{ "escape byte", { "A\x1b", 2 }, HTTP1_GARBAGE, 0 },
	{ "empty first line", { "\r\n", 2 }, HTTP1_GARBAGE, 0 },
	{ "TLS hello", { "\x16\x03\x01", 3 }, HTTP1_GARBAGE, 0 },
	{ "nothing", { "", 0 }, HTTP1_MORE, 0 },
};

static void test_scan(struct check *c)
{
	static char large[HTTP1_HEAD_MAX_BYTES];
	for (size_t i = 0; i < ARRAY_COUNT(scans); i++) {
		// At once, and byte by byte as a slow sender would.
		for (size_t step = 1; step <= scans[i].bytes.len; step += scans[i].bytes.len) {
			struct http1_scan scan = { 0 };
			size_t head_bytes = 0;
			http1_found found = HTTP1_MORE;
			size_t first = step == 1 ? 1 : scans[i].bytes.len;
			for (size_t n = first; n <= scans[i].bytes.len && found == HTTP1_MORE; n++)
				found = http1_scan_head(&scan, str_slice(scans[i].bytes, 0, n),
							&head_bytes);
			CHECK_INT(c, scans[i].name, found, scans[i].found);
			CHECK_INT(c, scans[i].name, head_bytes, scans[i].head_bytes);
		}
	}
	struct http1_scan scan = { 0 };
	size_t head_bytes;
	memset(large, 'a', sizeof large);
	CHECK_INT(c, "one byte less than the limit",
		  http1_scan_head(&scan, (struct str){ large, sizeof large - 1 }, &head_bytes),
		  HTTP1_MORE);
	CHECK_INT(c, "the limit without an end",
		  http1_scan_head(&scan, (struct str){ large, sizeof large }, &head_bytes),
		  HTTP1_TOO_LONG);
	memcpy(large + sizeof large - 4, "\r\n\r\n", 4);
	scan.seen_bytes = 0;
	CHECK_INT(c, "a head of just the limit",
		  http1_scan_head(&scan, (struct str){ large, sizeof large }, &head_bytes),
		  HTTP1_HEAD);
}

static const struct {
	const char *name, *head;
	bool to_head;
	int code; // 0: refused
	http1_framing framing;
	uint64_t length;
	bool keep_alive;
} responses[] = {
	{ "length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, 200, HTTP1_LENGTH, 3,
	  true },
	{ "length 0", "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", false, 404, HTTP1_NO_BODY, 0,
	  true },
	{ "no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, 200, HTTP1_NO_BODY, 0,
	  true },
	{ "chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 200,
	  HTTP1_CHUNKED, 0, true },
	{ "until close", "HTTP/1.1 200 OK\r\n\r\n", false, 200, HTTP1_UNTIL_CLOSE, 0, false },
	{ "to HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, 200, HTTP1_NO_BODY, 3,
	  true },
	{ "204", "HTTP/1.1 204 No Content\r\n\r\n", false, 204, HTTP1_NO_BODY, 0, true },
	{ "304", "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", false, 304, HTTP1_NO_BODY, 9,
	  true },
	{ "100", "HTTP/1.1 100 Continue\r\n\r\n", false, 100, HTTP1_NO_BODY, 0, true },
	{ "close", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n", false, 200,
	  HTTP1_LENGTH, 3, false },
	{ "1.0", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", false, 200, HTTP1_LENGTH, 3,
	  false },
	{ "both lengths",
	  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false, 0,
	  HTTP1_NO_BODY, 0, false },
	{ "other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false, 0,
	  HTTP1_NO_BODY, 0, false },
	{ "code 600", "HTTP/1.1 600 x\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
	{ "code of two digits", "HTTP/1.1 20 OK\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
	{ "code of four digits", "HTTP/1.1 2000 OK\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
	{ "http/2", "HTTP/2 200 OK\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
	{ "folded", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
	{ "not http", "SSH-2.0-x\r\n\r\n", false, 0, HTTP1_NO_BODY, 0, false },
};

static void test_responses(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(responses); i++) {
		struct http1_response r = { .code = 0 };
		struct err err = { .status = ERR_OK };
		err_status status = http1_parse_response(str_of(responses[i].head),
							 responses[i].to_head, &r, &err);
		CHECK_INT(c, responses[i].name, status,
			  responses[i].code == 0 ? ERR_PROTOCOL : ERR_OK);
		CHECK_INT(c, responses[i].name, err.status, status);
		CHECK_INT(c, responses[i].name, r.code, responses[i].code);
		CHECK_INT(c, responses[i].name, r.framing, responses[i].framing);
		CHECK_INT(c, responses[i].name, r.length, responses[i].length);
		CHECK(c, responses[i].name, r.keep_alive == responses[i].keep_alive);
	}
}

static const struct {
	const char *name, *body;
	const char *data; // NULL: refused
	const char *rest;
} bodies[] = {
	{ "two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nNEXT", "abcde", "NEXT" },
	{ "empty", "0\r\n\r\n", "", "" },
	{ "upper and lower hex", "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
	  "01234567890123456789", "" },
	{ "leading zeros", "003\r\nabc\r\n000\r\n\r\n", "abc", "" },
	{ "extension", "3;a=\"b\"\r\nabc\r\n0;x\r\n\r\n", "abc", "" },
	{ "trailer", "0\r\nA: b\r\nC:\r\n\r\nR", "", "R" },
	{ "no size", "\r\nabc\r\n", NULL, NULL },
	{ "blank after the size", "3 \r\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "blank before the size", " 3\r\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "sign", "+3\r\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "0x", "0x3\r\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "not hex", "g\r\n", NULL, NULL },
	{ "16 digits", "0000000000000003\r\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "bare LF after the size", "3\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "bare CR after the size", "3\rabc\r\n0\r\n\r\n", NULL, NULL },
	{ "bare LF in an extension", "3;a\nabc\r\n0\r\n\r\n", NULL, NULL },
	{ "data too long", "3\r\nabcd\r\n0\r\n\r\n", NULL, NULL },
	{ "data too short", "3\r\nab\r\n0\r\n\r\n", NULL, NULL },
	{ "bare LF after data", "3\r\nabc\n0\r\n\r\n", NULL, NULL },
	{ "bare LF at the end", "0\r\n\n", NULL, NULL },
	{ "trailer without a colon", "0\r\nA\r\n\r\n", NULL, NULL },
	{ "folded trailer", "0\r\nA: b\r\n c\r\n\r\n", NULL, NULL },
	{ "trailer without a name", "0\r\n: b\r\n\r\n", NULL, NULL },
};

// Feeds the body in pieces of step bytes; what is left of it when the end came is in *ret_rest.
static http1_step decode(struct str body, size_t step, struct buf *data, struct str *ret_rest)
{
	struct http1_chunks chunks = { .state = 0 };
	http1_step got = HTTP1_STEP_MORE;
	for (size_t at = 0; at < body.len && got == HTTP1_STEP_MORE; at += step) {
		struct str piece = str_slice(body, at, at + step), part;
		while ((got = http1_chunks_next(&chunks, &piece, &part)) == HTTP1_STEP_DATA)
			buf_put(data, part);
		*ret_rest = (struct str){ piece.data, (size_t)(body.data + body.len - piece.data) };
	}
	return got;
}

static void test_chunks(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
		struct str body = str_of(bodies[i].body);
		for (size_t step = 1; step <= body.len; step++) {
			AUTO(buf_done) struct buf data = { .limit = 0 };
			struct str rest = STR("");
			http1_step got = decode(body, step, &data, &rest);
			CHECK_INT(c, bodies[i].name, got,
				  bodies[i].data == NULL ? HTTP1_STEP_BAD : HTTP1_STEP_END);
			if (got != HTTP1_STEP_END)
				continue;
			CHECK_STR(c, bodies[i].name, buf_str(&data), bodies[i].data);
			CHECK_STR(c, bodies[i].name, rest, bodies[i].rest);
		}
	}
	AUTO(buf_done) struct buf text = { .limit = 0 };
	struct str rest;
	buf_put_c(&text, "1;");
	for (size_t i = 0; i < 5000; i++)
		buf_put_c(&text, "x");
	buf_put_c(&text, "\r\n");
	CHECK_INT(c, "endless extension", decode(buf_str(&text), 100, &text, &rest),
		  HTTP1_STEP_BAD);
}

static void test_escapes(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	CHECK_STR(c, "unescaped", http_query_get(arena, STR("v=a%2Fb%2bc"), "v"), "a/b+c");
	CHECK(c, "short", http_query_get(arena, STR("v=a%2"), "v").data == NULL);
	CHECK(c, "not hex", http_query_get(arena, STR("v=%gg"), "v").data == NULL);
	CHECK(c, "NUL", http_query_get(arena, STR("v=%00"), "v").data == NULL);
	CHECK_STR(c, "a bad name hides no other", http_query_get(arena, STR("%=1&v=2"), "v"), "2");
	CHECK_STR(c, "escape", http_escape(arena, STR("a b/\xc3\xa4~")), "a%20b%2F%C3%A4~");
	CHECK_STR(c, "escape nothing", http_escape(arena, STR("")), "");
	struct str query = STR("a=1&b=x%26y&c&=e&b=2&d%20d=+p");
	CHECK_STR(c, "first", http_query_get(arena, query, "a"), "1");
	CHECK_STR(c, "escaped, the first of two", http_query_get(arena, query, "b"), "x&y");
	CHECK_STR(c, "no value", http_query_get(arena, query, "c"), "");
	CHECK_STR(c, "escaped name, plus", http_query_get(arena, query, "d d"), " p");
	CHECK(c, "absent", http_query_get(arena, query, "z").data == NULL);
	CHECK(c, "no query", http_query_get(arena, (struct str){ NULL, 0 }, "a").data == NULL);
	CHECK_STR(c, "status text", str_of(http_status_text(404)), "Not Found");
}

int main(void)
{
	struct check c = { 0, 0 };
	test_requests(&c);
	test_request_fields(&c);
	test_header_count(&c);
	test_scan(&c);
	test_responses(&c);
	test_chunks(&c);
	test_escapes(&c);
	return check_done(&c);
}
