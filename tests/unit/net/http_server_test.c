// SPDX-License-Identifier: Apache-2.0
// The HTTP server against raw bytes: what it refuses and how, limits, time-outs, connections that
// are kept or closed, clients that leave at bad moments, streams, memory over many requests.
#include "check.h"
#include "sys/random.h"
#include "web.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAFETY_MS = 30000 };
static const uint64_t MS = 1000000;

#define HOST "Host: a\r\n"
#define CLOSE "Connection: close\r\n"

static struct loop *make_loop(void)
{
	struct loop *loop = NULL;
	err_status status = loop_new(&loop, NULL);
	ASSERT(status == ERR_OK);
	return loop;
}

// Status code of the first answer in the bytes; 0 when there is none.
static int code_of(struct str answer)
{
	uint64_t code = 0;
	if (!str_starts(answer, STR("HTTP/1.1 ")) || !str_to_u64(str_slice(answer, 9, 12), &code))
		return 0;
	return (int)code;
}

static size_t count_of(struct str answer, const char *needle)
{
	size_t count = 0, length = strlen(needle);
	for (size_t i = 0; i + length <= answer.len; i++)
		count += memcmp(answer.data + i, needle, length) == 0;
	return count;
}

static struct str body_of(struct str answer)
{
	for (size_t i = 0; i + 4 <= answer.len; i++)
		if (memcmp(answer.data + i, "\r\n\r\n", 4) == 0)
			return str_slice(answer, i + 4, answer.len);
	return STR("");
}

static const struct {
	const char *name, *bytes;
	int code;
	bool closes;
	const char *body; // NULL: not looked at
} cases[] = {
	{ "get", "GET /echo?a=b HTTP/1.1\r\n" HOST "X-Test: t\r\n\r\n", 200, false,
	  "GET /echo?a=b |t|" },
	{ "close", "GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n", 200, true, "GET /echo? ||" },
	{ "http/1.0 closes", "GET /echo HTTP/1.0\r\n\r\n", 200, true, "GET /echo? ||" },
	{ "http/1.0 kept", "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, false,
	  NULL },
	{ "post", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, false,
	  "POST /echo? hello||" },
	{ "chunked post",
	  "POST /echo HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	  200, false, "POST /echo? abcde||" },
	{ "head has no body", "HEAD /echo HTTP/1.1\r\n" HOST "\r\n", 200, false, "" },
	{ "204 has no body", "GET /empty HTTP/1.1\r\n" HOST "\r\n", 204, false, "" },
	{ "not found", "GET /none HTTP/1.1\r\n" HOST "\r\n", 404, false, "no such path" },
	{ "stream", "GET /stream HTTP/1.1\r\n" HOST "\r\n", 200, false,
	  "5\r\ntick \r\n5\r\ntick \r\n5\r\ntick \r\n0\r\n\r\n" },
	{ "stream to 1.0", "GET /stream HTTP/1.0\r\n\r\n", 200, true, "tick tick tick " },
	{ "head of a stream", "HEAD /stream HTTP/1.1\r\n" HOST "\r\n", 200, false, "" },
	{ "answered later", "GET /later HTTP/1.1\r\n" HOST "\r\n", 200, false, "later" },

	{ "garbage", "hello\n", 400, true, NULL },
	{ "TLS on a plain port", "\x16\x03\x01\x02", 400, true, NULL },
	{ "bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400, true, NULL },
	{ "both lengths",
	  "POST /echo HTTP/1.1\r\n" HOST
	  "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  400, true, NULL },
	{ "bad chunk", "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	  400, true, NULL },
	{ "unknown coding", "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501,
	  true, NULL },
	{ "http/2 unasked", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, true, NULL },
	{ "http/1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", 505, true, NULL },
	{ "expectation", "GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n", 417, true, NULL },
	{ "body over the limit", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", 413,
	  true, NULL },
	{ "over the limit, with expect",
	  "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
	  413, true, NULL },
};

static void test_cases(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .body_max_bytes = 1000 });
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		// Whole, and byte by byte.
		for (size_t step = 0; step <= 1; step++) {
			struct str bytes = str_of(cases[i].bytes);
			struct str got = web_raw(&web, bytes, step, cases[i].closes ? 1000 : 40);
			CHECK_INT(c, cases[i].name, code_of(got), cases[i].code);
			CHECK(c, cases[i].name, (count_of(got, CLOSE) == 1) == cases[i].closes);
			if (cases[i].body != NULL)
				CHECK_STR(c, cases[i].name, body_of(got), cases[i].body);
		}
	}
	web_stop(&web);
	loop_free(loop);
}

static void put_many(struct buf *out, const char *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_put_c(out, text);
}

static void test_limits(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	AUTO(buf_done) struct buf bytes = { .limit = 0 };
	web_start(&web, loop, (struct http_server_config){ .body_max_bytes = 1000 });

	buf_put_c(&bytes, "GET /echo HTTP/1.1\r\n" HOST "X: ");
	put_many(&bytes, "0123456789", 1700);
	buf_put_c(&bytes, "\r\n\r\n");
	CHECK_INT(c, "head of 17 kB", code_of(web_raw(&web, buf_str(&bytes), 0, 1000)), 431);

	buf_clear(&bytes);
	buf_put_c(&bytes, "GET /echo HTTP/1.1\r\n" HOST);
	put_many(&bytes, "X: y\r\n", 64);
	buf_put_c(&bytes, "\r\n");
	CHECK_INT(c, "65 headers", code_of(web_raw(&web, buf_str(&bytes), 0, 1000)), 431);

	buf_clear(&bytes);
	buf_put_c(&bytes, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	put_many(&bytes, "a\r\n0123456789\r\n", 101);
	CHECK_INT(c, "chunks over the limit", code_of(web_raw(&web, buf_str(&bytes), 0, 1000)),
		  413);

	// The answer must arrive although megabytes of the body are not read.
	buf_clear(&bytes);
	buf_put_c(&bytes, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 900000\r\n\r\n");
	put_many(&bytes, "0123456789", 90000);
	CHECK_INT(c, "answer before the body ends",
		  code_of(web_raw(&web, buf_str(&bytes), 0, 1000)), 413);
	CHECK_INT(c, "no handler saw any of them", web.requests, 0);
	web_stop(&web);
	loop_free(loop);
}

static void test_headers(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .body_max_bytes = 0 });
	struct str got = web_raw(&web, STR("GET /echo HTTP/1.1\r\n" HOST "\r\n"), 0, 40);
	CHECK_INT(c, "own header", count_of(got, "X-Answer: yes\r\n"), 1);
	CHECK_INT(c, "date", count_of(got, "\r\nDate: "), 1);
	CHECK_INT(c, "in GMT", count_of(got, " GMT\r\n"), 1);
	CHECK_INT(c, "no header can be smuggled in", count_of(got, "Set-Cookie"), 0);
	CHECK_INT(c, "one length", count_of(got, "Content-Length"), 1);
	got = web_raw(&web, STR("HEAD /echo HTTP/1.1\r\n" HOST "\r\n"), 0, 40);
	CHECK_INT(c, "HEAD tells the length", count_of(got, "Content-Length: 14\r\n"), 1);
	got = web_raw(&web, STR("GET /none HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n"), 0,
		      40);
	CHECK_INT(c, "nothing to continue", count_of(got, "100 Continue"), 0);
	got = web_raw(&web,
		      STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"
			  "Expect: 100-continue\r\n\r\n"),
		      0, 40);
	CHECK_STR(c, "go on", got, "HTTP/1.1 100 Continue\r\n\r\n");
	CHECK_INT(c, "a refusal is JSON",
		  count_of(web_raw(&web, STR("x\n"), 0, 1000), "application/problem+json"), 1);
	web_stop(&web);
	loop_free(loop);
}

static void test_sequence(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .body_max_bytes = 0 });
	struct str got = web_raw(&web,
				 STR("GET /later HTTP/1.1\r\n" HOST "\r\n"
				     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\na"
				     "GET /empty HTTP/1.1\r\n" HOST "\r\n"
				     "GET /echo/last HTTP/1.1\r\n" HOST CLOSE "\r\n"),
				 0, 1000);
	CHECK_INT(c, "sent together, answered one after the other", count_of(got, "HTTP/1.1 20"),
		  4);
	CHECK_INT(c, "the last is whole", count_of(got, "GET /echo/last? ||"), 1);
	got = web_raw(&web,
		      STR("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"
			  "GET /echo HTTP/1.1\r\n" HOST "\r\n"),
		      0, 1000);
	CHECK_INT(c, "nothing after close", count_of(got, "HTTP/1.1 200"), 1);
	got = web_raw(&web, STR("x\nGET /echo HTTP/1.1\r\n" HOST "\r\n"), 0, 1000);
	CHECK_INT(c, "nothing after a refusal", count_of(got, "HTTP/1.1 "), 1);
	web_stop(&web);
	loop_free(loop);
}

static void test_timeouts(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop,
		  (struct http_server_config){ .idle_timeout_ns = 100 * MS,
					       .request_timeout_ns = 150 * MS });
	struct str got = web_raw(&web, STR(""), 0, SAFETY_MS);
	CHECK_INT(c, "an idle connection ends without a word", got.len, 0);
	CHECK(c, "but it ends", web.raw_ended);
	got = web_raw(&web, STR("GET /echo HTTP/1.1\r\nHost"), 0, SAFETY_MS);
	CHECK_INT(c, "half a head", code_of(got), 408);
	got = web_raw(&web, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab"), 0,
		      SAFETY_MS);
	CHECK_INT(c, "half a body", code_of(got), 408);

	// A byte every few milliseconds must not keep the connection for ever.
	AUTO(buf_done) struct buf bytes = { .limit = 0 };
	buf_put_c(&bytes, "GET /echo HTTP/1.1\r\n" HOST "X: ");
	put_many(&bytes, "slowly ", 2000);
	got = web_raw(&web, buf_str(&bytes), 1, SAFETY_MS);
	CHECK_INT(c, "slow loris", code_of(got), 408);
	for (int i = 0; i < 100 && http_server_connection_count(web.server) > 0; i++)
		loop_run_once(loop, 30);
	CHECK_INT(c, "nothing is left", http_server_connection_count(web.server), 0);
	CHECK_INT(c, "no handler saw them", web.requests, 0);
	web_stop(&web);
	loop_free(loop);
}

static void count_call(void *arg) { ++*(int *)arg; }

static void test_clients_leave(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .body_max_bytes = 0 });
	(void)web_raw(&web, STR("GET /endless HTTP/1.1\r\n" HOST "\r\n"), 0, 40);
	for (int i = 0; i < 100 && web.closed == 0; i++)
		loop_run_once(loop, 10);
	CHECK_INT(c, "a stream learns that its client left", web.closed, 1);

	(void)web_raw(&web, STR("GET /hold HTTP/1.1\r\n" HOST "\r\n"), 0, 30);
	for (int i = 0; i < 5; i++)
		loop_run_once(loop, 10);
	CHECK(c, "held", web.held != NULL);
	http_respond(TAKE(web.held), 200, NULL, NULL, STR("to nobody"));

	// Left before the stream began: with and without somebody who wants to know, and with
	// and without the server having noticed.
	for (int i = 0; i < 8; i++) {
		int closed = 0;
		web.raw_resets = i % 2 == 0;
		(void)web_raw(&web, STR("GET /hold HTTP/1.1\r\n" HOST "\r\n"), 0, 30);
		for (int k = 0; k < 5; k++)
			loop_run_once(loop, 10);
		struct http_exchange *exchange = TAKE(web.held);
		bool told = (i & 2) != 0, ends = !told || (i & 4) != 0;
		http_respond_start(exchange, 200, NULL, told ? count_call : NULL, &closed);
		http_respond_chunk(exchange, STR("to nobody"));
		if (ends)
			http_respond_end(exchange);
		for (int k = 0; k < 5; k++)
			loop_run_once(loop, 10);
		CHECK_INT(c, "told once unless ended", closed, ends ? 0 : 1);
	}
	web.raw_resets = false;

	struct str got = web_raw(
		&web, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab"), 0, 30);
	CHECK_INT(c, "left within a body", got.len, 0);
	web_stop(&web);
	loop_free(loop);
}

static void test_too_many(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .connections_max = 1 });
	// The first connection stays while the second comes: /hold is not answered yet.
	(void)web_raw(&web, STR("GET /hold HTTP/1.1\r\n" HOST "\r\n"), 0, 20);
	struct str got = web_raw(&web, STR("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), 0, 1000);
	CHECK_INT(c, "one too many", code_of(got), 503);
	http_respond(TAKE(web.held), 200, NULL, NULL, STR(""));
	for (int i = 0; i < 100 && http_server_connection_count(web.server) > 0; i++)
		loop_run_once(loop, 30);
	got = web_raw(&web, STR("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), 0, 1000);
	CHECK_INT(c, "and then again", code_of(got), 200);
	web_stop(&web);
	loop_free(loop);
}

static void turn(struct loop *loop)
{
	for (int i = 0; i < 10; i++)
		loop_run_once(loop, 5);
}

// Status of what came, 0: nothing; -1: the server has ended the connection without a word.
static int heard(int fd)
{
	char answer[4096];
	ssize_t got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
	if (got <= 0)
		return got < 0 && errno == EAGAIN ? 0 : -1;
	return code_of((struct str){ answer, (size_t)got });
}

static int say(struct loop *loop, int fd, const char *text)
{
	ssize_t sent = send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)sent;
	turn(loop);
	return heard(fd);
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)close(fds[i]);
}

#define ECHO "GET /echo HTTP/1.1\r\n" HOST "\r\n"

static void test_one_peer(struct check *c)
{
	static const struct {
		const char *name;
		size_t max, per_peer, allowed;
	} limits[] = { { "a quarter", 16, 0, 4 },
		       { "at least one", 2, 0, 1 },
		       { "as configured", 16, 7, 7 } };
	for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
		struct loop *loop = make_loop();
		struct web web;
		int fds[8];
		size_t allowed = limits[i].allowed;
		web_start(&web, loop,
			  (struct http_server_config){ .connections_max = limits[i].max,
						       .connections_per_peer_max =
							       limits[i].per_peer });
		for (size_t k = 0; k < allowed; k++)
			fds[k] = web_dial(&web, "127.0.0.1");
		turn(loop);
		struct str got = web_raw(&web, STR(ECHO), 0, 1000);
		CHECK_INT(c, limits[i].name, code_of(got), 503);
		CHECK(c, "and it closes", web.raw_ended);
		for (size_t k = 0; k < allowed; k++)
			CHECK_INT(c, "those that are there stay", say(loop, fds[k], ECHO), 200);
		int other = web_dial(&web, "127.0.0.2");
		CHECK_INT(c, "others get in", say(loop, other, ECHO), 200);
		(void)close(fds[0]);
		turn(loop);
		fds[0] = web_dial(&web, "127.0.0.1");
		CHECK_INT(c, "one left, one comes", say(loop, fds[0], ECHO), 200);
		close_all(fds, allowed);
		(void)close(other);
		web_stop(&web);
		loop_free(loop);
	}
}

static void test_room_is_made(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(
		&web, loop,
		(struct http_server_config){ .connections_max = 4, .connections_per_peer_max = 4 });
	int fds[6];
	fds[0] = web_dial(&web, "127.0.0.1");
	CHECK_INT(c, "at work", say(loop, fds[0], "GET /hold HTTP/1.1\r\n" HOST "\r\n"), 0);
	fds[1] = web_dial(&web, "127.0.0.1");
	CHECK_INT(c, "half a head", say(loop, fds[1], "GET /ec"), 0);
	fds[2] = web_dial(&web, "127.0.0.1");
	CHECK_INT(c, "idle after an answer", say(loop, fds[2], ECHO), 200);
	fds[3] = web_dial(&web, "127.0.0.1");
	CHECK_INT(c, "half a body",
		  say(loop, fds[3], "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\na"),
		  0);
	fds[4] = web_dial(&web, "127.0.0.2");
	CHECK_INT(c, "another gets in", say(loop, fds[4], ECHO), 200);
	CHECK_INT(c, "the longest waited for makes room", heard(fds[1]), -1);
	CHECK_INT(c, "the idle one is still there", heard(fds[2]), 0);
	fds[5] = web_dial(&web, "127.0.0.3");
	CHECK_INT(c, "and another", say(loop, fds[5], ECHO), 200);
	CHECK_INT(c, "then the idle one", heard(fds[2]), -1);
	CHECK_INT(c, "no more than the total", http_server_connection_count(web.server), 4);
	CHECK_INT(c, "the body is read on", say(loop, fds[3], "b"), 200);
	http_respond(TAKE(web.held), 200, NULL, NULL, STR(""));
	turn(loop);
	CHECK_INT(c, "the one at work is answered", heard(fds[0]), 200);
	close_all(fds, ARRAY_COUNT(fds));
	web_stop(&web);
	loop_free(loop);
}

// A client that sends nothing, a byte now and then, or a second head slowly.
static void test_head_timeout(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .head_timeout_ns = 100 * MS });
	struct str got = web_raw(&web, STR(""), 0, SAFETY_MS);
	CHECK_INT(c, "nothing is answered with nothing", got.len, 0);
	CHECK(c, "but it ends", web.raw_ended);
	AUTO(buf_done) struct buf bytes = { .limit = 0 };
	buf_put_c(&bytes, "GET /echo HTTP/1.1\r\n" HOST "X: ");
	put_many(&bytes, "slowly ", 2000);
	got = web_raw(&web, buf_str(&bytes), 1, SAFETY_MS);
	CHECK_INT(c, "byte by byte", code_of(got), 408);
	got = web_raw(&web, STR(ECHO "GET /echo HT"), 0, SAFETY_MS);
	CHECK_INT(c, "the second head", count_of(got, "HTTP/1.1 408"), 1);
	CHECK_INT(c, "the first was whole", code_of(got), 200);
	got = web_raw(&web, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n"), 0,
		      300);
	CHECK_INT(c, "a body has the request's time", got.len, 0);
	CHECK(c, "and is waited for", !web.raw_ended);
	web_stop(&web);
	loop_free(loop);
}

static void never_called(void *arg, struct http_exchange *exchange,
			 const struct http_request *request)
{
	(void)arg;
	(void)exchange;
	(void)request;
	ASSERT(false);
}

static void test_listen(struct check *c)
{
	struct loop *loop = make_loop();
	struct web web;
	struct err err;
	struct stat info;
	char path[64], suffix[9];
	random_base62(suffix, 8);
	(void)snprintf(path, sizeof path, "unix:/tmp/http_server_test.%s", suffix);
	web_start(&web, loop, (struct http_server_config){ .listen = path });
	CHECK(c, "socket of mode 0600",
	      stat(path + 5, &info) == 0 && (info.st_mode & 0777) == 0600);
	web_stop(&web);
	CHECK(c, "removed at the end", stat(path + 5, &info) != 0);

	static const char *const bad[] = { "nonsense", "127.0.0.1",     "127.0.0.1:70000",
					   "::1:80",   "unix:relative", "unix:/proc/none/x" };
	web_start(&web, loop, (struct http_server_config){ .listen = "[::1]:0" });
	CHECK(c, "a port was chosen", http_server_port(web.server) > 0);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct http_server *none = NULL;
		struct http_server_config config = { .listen = bad[i], .handler = never_called };
		CHECK(c, bad[i], http_server_new(loop, &config, &none, &err) != ERR_OK);
		CHECK(c, bad[i], none == NULL);
	}
	web_stop(&web);
	loop_free(loop);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_cases(&c);
	test_limits(&c);
	test_headers(&c);
	test_sequence(&c);
	test_timeouts(&c);
	test_clients_leave(&c);
	test_too_many(&c);
	test_one_peer(&c);
	test_room_is_made(&c);
	test_head_timeout(&c);
	test_listen(&c);
	return check_done(&c);
}
