// SPDX-License-Identifier: Apache-2.0
// The HTTP client over HTTP/1.1: against our server (plain and unix socket) and against one that
// answers with any bytes; time-outs, cancellation, callbacks that free what calls them, memory.
#include "check.h"
#include "fetch.h"
#include "rude.h"
#include "web.h"

#include "sys/random.h"

#include <stdlib.h>

// gcc and clang tell of the address sanitizer in two ways.
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_CHECKED 1
#endif
#endif

static const uint64_t MS = 1000000;

static struct loop *make_loop(void)
{
	struct loop *loop = NULL;
	err_status status = loop_new(&loop, NULL);
	ASSERT(status == ERR_OK);
	return loop;
}

static struct http_client *make_client(struct loop *loop, const char *base)
{
	struct http_client *client = NULL;
	struct err err;
	err_status status = http_client_new(loop, base, NULL, NULL, &client, &err);
	ASSERT(status == ERR_OK);
	return client;
}

static void test_requests(struct check *c, struct loop *loop, struct web *web)
{
	static const struct http_header headers[] = { { { "X-Test", 6 }, { "t", 1 } } };
	struct http_client *client = make_client(loop, web->base);
	struct fetch get = { .loop = loop, .collect = true };
	get.request.headers = headers;
	get.request.header_count = 1;
	CHECK(c, "get ends", fetch_get(&get, client, "/echo?a=b"));
	CHECK_INT(c, "get", get.status, ERR_OK);
	CHECK_INT(c, "get", get.code, 200);
	CHECK_STR(c, "get", str_of(get.body), "GET /echo?a=b |t|");
	CHECK_STR(c, "header", str_of(get.header), "yes");

	struct fetch post = { .loop = loop, .collect = true };
	post.request.method = "POST";
	post.request.body = STR("hello");
	CHECK(c, "post", fetch_get(&post, client, "/echo"));
	CHECK_STR(c, "post", str_of(post.body), "POST /echo? hello||");

	struct fetch head = { .loop = loop, .collect = true };
	head.request.method = "HEAD";
	CHECK(c, "head", fetch_get(&head, client, "/echo") && head.code == 200);
	CHECK_INT(c, "head", head.body_bytes, 0);
	struct fetch empty = { .loop = loop, .collect = true };
	CHECK(c, "204", fetch_get(&empty, client, "/empty") && empty.code == 204);
	struct fetch none = { .loop = loop, .collect = true };
	CHECK(c, "404 is an answer", fetch_get(&none, client, "/none") && none.code == 404);
	CHECK_INT(c, "404", none.status, ERR_OK);

	struct fetch stream = { .loop = loop };
	CHECK(c, "stream", fetch_get(&stream, client, "/stream"));
	CHECK_STR(c, "stream", str_of(stream.body), "tick tick tick ");
	CHECK_INT(c, "as it came", stream.pieces, 3);
	CHECK_INT(c, "one connection for all", http_server_connection_count(web->server), 1);
	http_client_free(client);
	fetch_turn(loop, 20);
}

static void test_large(struct check *c, struct loop *loop, struct web *web)
{
	enum { COUNT = 5000000 };
	struct http_client *client = make_client(loop, web->base);
	struct fetch large = { .loop = loop, .collect = true };
	CHECK(c, "5 MB", fetch_get(&large, client, "/size?n=5000000"));
	CHECK_INT(c, "5 MB", large.body_bytes, COUNT);
	struct fetch limited = { .loop = loop, .collect = true };
	limited.request.body_max_bytes = COUNT - 1;
	CHECK(c, "limit", fetch_get(&limited, client, "/size?n=5000000"));
	CHECK_INT(c, "limit", limited.status, ERR_LIMIT);
	struct fetch exact = { .loop = loop };
	exact.request.body_max_bytes = COUNT;
	CHECK(c, "just the limit, streamed", fetch_get(&exact, client, "/size?n=5000000"));
	CHECK_INT(c, "all", exact.body_bytes, COUNT);

	char *body = malloc(COUNT);
	ASSERT(body != NULL);
	memset(body, 'b', COUNT);
	struct fetch upload = { .loop = loop, .collect = true };
	upload.request.method = "PUT";
	upload.request.body = (struct str){ body, 4000000 };
	CHECK(c, "upload", fetch_get(&upload, client, "/size?n=3") && upload.code == 200);
	struct fetch refused = { .loop = loop, .collect = true };
	refused.request.method = "PUT";
	refused.request.body = (struct str){ body, COUNT };
	CHECK(c, "an early answer is seen", fetch_get(&refused, client, "/size?n=3"));
	CHECK_INT(c, "413", refused.code, 413);
	free(body);
	http_client_free(client);
}

static void test_timeouts(struct check *c, struct loop *loop, struct web *web)
{
	struct http_client *client = make_client(loop, web->base);
	struct fetch whole = { .loop = loop, .collect = true };
	whole.request.timeout_ns = 50 * MS;
	CHECK(c, "ends", fetch_get(&whole, client, "/endless"));
	CHECK_INT(c, "whole call", whole.status, ERR_TIMEOUT);
	CHECK(c, "text names it",
	      strstr(whole.error, "GET http") != NULL || strstr(whole.error, "GET unix") != NULL);
	CHECK(c, "and the limit", strstr(whole.error, "50 ms") != NULL);
	fetch_turn(loop, 20);
	CHECK_INT(c, "the server's stream has ended", web->closed, 1);
	struct fetch idle = { .loop = loop, .collect = true };
	idle.request.idle_timeout_ns = 60 * MS;
	CHECK(c, "never idle long", fetch_get(&idle, client, "/stream") && idle.status == ERR_OK);
	struct fetch hold = { .loop = loop, .collect = true };
	hold.request.idle_timeout_ns = 60 * MS;
	CHECK(c, "idle", fetch_get(&hold, client, "/hold?secret=x"));
	CHECK_INT(c, "idle", hold.status, ERR_TIMEOUT);
	CHECK(c, "no query in texts", strstr(hold.error, "secret") == NULL);
	fetch_turn(loop, 20);
	http_respond(TAKE(web->held), 200, NULL, NULL, STR(""));
	http_client_free(client);
}

static void test_cancel(struct check *c, struct loop *loop, struct web *web)
{
	struct http_client *client = make_client(loop, web->base);
	struct fetch early = { .loop = loop }, flying = { .loop = loop }, inside = { .loop = loop };
	int requests = web->requests, closed = web->closed;
	fetch_start(&early, client, "/echo");
	http_call_cancel(early.call);
	fetch_turn(loop, 20);
	CHECK_INT(c, "never sent", web->requests, requests);
	fetch_start(&flying, client, "/endless");
	while (flying.pieces == 0)
		loop_run_once(loop, 10);
	http_call_cancel(flying.call);
	fetch_turn(loop, 30);
	CHECK_INT(c, "the server sees it", web->closed, closed + 1);
	inside.deed = FETCH_CANCEL_IN_DATA;
	fetch_start(&inside, client, "/endless");
	fetch_turn(loop, 40);
	CHECK_INT(c, "one piece, then none", inside.pieces, 1);
	CHECK_INT(c, "not called any more",
		  early.done_count + flying.done_count + inside.done_count, 0);
	struct fetch after = { .loop = loop, .collect = true };
	CHECK(c, "the client goes on", fetch_get(&after, client, "/echo") && after.code == 200);
	http_client_free(client);
}

static void test_free_inside(struct check *c, struct loop *loop, struct web *web)
{
	static const fetch_deed deeds[] = { FETCH_FREE_CLIENT_IN_DATA, FETCH_FREE_CLIENT_IN_DONE };
	for (size_t i = 0; i < ARRAY_COUNT(deeds); i++) {
		struct http_client *client = make_client(loop, web->base);
		struct fetch fetch = { .loop = loop, .deed = deeds[i] };
		struct fetch others[6];
		fetch_start(&fetch, client, "/stream");
		for (size_t k = 0; k < ARRAY_COUNT(others); k++) {
			others[k] = (struct fetch){ .loop = loop, .collect = true };
			fetch_start(&others[k], client, k % 2 == 0 ? "/later" : "/echo");
			others[k].client = NULL;
		}
		CHECK(c, "ends", fetch_wait(&fetch, 2000));
		CHECK(c, "client is gone", fetch.client == NULL);
		for (size_t k = 0; k < ARRAY_COUNT(others); k++)
			CHECK_INT(c, "each call ends once", others[k].done_count, 1);
		fetch_turn(loop, 50);
	}
	struct http_client *client = make_client(loop, web->base);
	struct fetch second = { .loop = loop, .collect = true };
	struct fetch first = {
		.loop = loop, .collect = true, .deed = FETCH_START_IN_DONE, .next = &second
	};
	CHECK(c, "first", fetch_get(&first, client, "/echo"));
	CHECK(c, "started inside the end of another", fetch_wait(&second, 2000));
	struct fetch open = { .loop = loop, .collect = true };
	fetch_start(&open, client, "/hold");
	fetch_turn(loop, 20);
	http_client_free(client);
	CHECK_INT(c, "freed from outside", open.done_count, 1);
	CHECK_INT(c, "ends open calls", open.status, ERR_UNAVAILABLE);
	fetch_turn(loop, 20);
	http_respond(TAKE(web->held), 200, NULL, NULL, STR(""));
}

static void test_many(struct check *c, struct loop *loop, struct web *web)
{
	enum { COUNT = 40 };
	static struct fetch fetches[COUNT];
	struct http_client *client = make_client(loop, web->base);
	size_t most = 0, good = 0;
	for (size_t i = 0; i < COUNT; i++) {
		fetches[i] = (struct fetch){ .loop = loop, .collect = true };
		fetch_start(&fetches[i], client, "/echo");
	}
	for (size_t i = 0; i < COUNT; i++) {
		while (fetches[i].done_count == 0) {
			loop_run_once(loop, 10);
			most = max_size(most, http_server_connection_count(web->server));
		}
		good += fetches[i].code == 200;
	}
	CHECK_INT(c, "all answered", good, COUNT);
	CHECK(c, "at most four connections", most <= 4 && most >= 2);
	http_client_free(client);
	fetch_turn(loop, 20);
}

static size_t resident_pages(void)
{
	size_t total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	ASSERT(file != NULL);
	int got = fscanf(file, "%zu %zu", &total, &resident);
	ASSERT(got == 2);
	(void)fclose(file);
	return resident;
}

static void test_memory(struct check *c, struct loop *loop, struct web *web)
{
	enum { COUNT = 10000, WARM = 2000 };
	struct http_client *client = make_client(loop, web->base);
	size_t before = 0, good = 0;
	for (size_t i = 0; i < COUNT + WARM; i++) {
		struct fetch fetch = { .loop = loop, .collect = true };
		if (i == WARM)
			before = resident_pages();
		good += fetch_get(&fetch, client, i % 10 == 0 ? "/size?n=50000" : "/echo");
	}
	CHECK_INT(c, "all answered", good, COUNT + WARM);
	size_t grown = resident_pages() - before;
#ifdef MEMORY_IS_CHECKED
	(void)grown; // its quarantine keeps what is freed
#else
	CHECK(c, "10,000 requests take less than 64 pages", grown < 64 || grown > SIZE_MAX / 2);
#endif
	http_client_free(client);
	fetch_turn(loop, 20);
}

static const struct {
	const char *name, *answer;
	rude_end end;
	err_status status;
	const char *body;
} rude_cases[] = {
	{ "until close", "HTTP/1.1 200 OK\r\n\r\nabc", RUDE_CLOSE, ERR_OK, "abc" },
	{ "until reset", "HTTP/1.1 200 OK\r\n\r\nabc", RUDE_RESET, ERR_UNAVAILABLE, NULL },
	{ "interim",
	  "HTTP/1.1 103 x\r\nLink: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
	  RUDE_KEEP, ERR_OK, "a" },
	{ "closing", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
	  RUDE_KEEP, ERR_OK, "a" },
	{ "more than the length", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", RUDE_KEEP,
	  ERR_OK, "a" },
	{ "cut in the head", "HTTP/1.1 200 OK\r\nConte", RUDE_CLOSE, ERR_UNAVAILABLE, NULL },
	{ "cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", RUDE_CLOSE,
	  ERR_UNAVAILABLE, NULL },
	{ "reset in the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", RUDE_RESET,
	  ERR_UNAVAILABLE, NULL },
	{ "cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
	  RUDE_CLOSE, ERR_UNAVAILABLE, NULL },
	{ "cut before the last chunk",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", RUDE_CLOSE,
	  ERR_UNAVAILABLE, NULL },
	{ "bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", RUDE_KEEP,
	  ERR_PROTOCOL, NULL },
	{ "both lengths",
	  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
	  RUDE_KEEP, ERR_PROTOCOL, NULL },
	{ "not HTTP", "SSH-2.0-OpenSSH\r\n\r\n", RUDE_KEEP, ERR_PROTOCOL, NULL },
	{ "binary", "\x15\x03\x01", RUDE_KEEP, ERR_PROTOCOL, NULL },
	{ "another protocol", "HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n", RUDE_KEEP, ERR_PROTOCOL,
	  NULL },
	{ "nothing", "", RUDE_CLOSE, ERR_UNAVAILABLE, NULL },
	{ "silence", "", RUDE_KEEP, ERR_TIMEOUT, NULL },
	{ "endless interims", "HTTP/1.1 100 x\r\n\r\n", RUDE_KEEP, ERR_TIMEOUT, NULL },
};

static void test_rude(struct check *c, struct loop *loop)
{
	for (size_t i = 0; i < ARRAY_COUNT(rude_cases); i++) {
		struct rude rude;
		rude_start(&rude, loop);
		rude.answer = str_of(rude_cases[i].answer);
		rude.end = rude_cases[i].end;
		struct http_client *client = make_client(loop, rude.base);
		struct fetch fetch = { .loop = loop, .collect = true };
		fetch.request.timeout_ns = 200 * MS;
		CHECK(c, rude_cases[i].name, fetch_get(&fetch, client, "/x"));
		CHECK_INT(c, rude_cases[i].name, fetch.status, rude_cases[i].status);
		if (rude_cases[i].body != NULL)
			CHECK_STR(c, rude_cases[i].name, str_of(fetch.body), rude_cases[i].body);
		http_client_free(client);
		rude_stop(&rude);
	}
}

// A kept connection that the server closes just when the next request comes.
static void test_stale(struct check *c, struct loop *loop)
{
	static const struct {
		const char *method;
		int silent_count;
		err_status status;
		int requests;
	} cases[] = {
		{ "GET", 1, ERR_OK, 3 },
		{ "HEAD", 1, ERR_OK, 3 },
		{ "GET", 2, ERR_UNAVAILABLE, 3 },  // the new connection dies too: no more tries
		{ "POST", 1, ERR_UNAVAILABLE, 2 }, // may have been acted on
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct rude rude;
		rude_start(&rude, loop);
		rude.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		rude.silent_after = 1;
		rude.silent_count = cases[i].silent_count;
		struct http_client *client = make_client(loop, rude.base);
		struct fetch first = { .loop = loop, .collect = true };
		struct fetch second = { .loop = loop, .collect = true };
		CHECK(c, "first", fetch_get(&first, client, "/") && first.status == ERR_OK);
		second.request.method = cases[i].method;
		CHECK(c, "second", fetch_get(&second, client, "/"));
		CHECK_INT(c, cases[i].method, second.status, cases[i].status);
		CHECK_INT(c, cases[i].method, rude.requests, cases[i].requests);
		http_client_free(client);
		rude_stop(&rude);
	}
}

static void test_unreachable(struct check *c, struct loop *loop)
{
	static const char *const bad_bases[] = { "ftp://x",    "127.0.0.1:80",
						 "http://",    "http://a/b",
						 "http://u@a", "http://a:x",
						 "http://a b", "" };
	static const char *const bad_paths[] = { "",          "x",   "/a b", "/a\r\nX: y",
						 "/\xc3\xa4", "/%0", "/.." };
	struct err err;
	for (size_t i = 0; i < ARRAY_COUNT(bad_bases); i++) {
		struct http_client *client = NULL;
		CHECK_INT(c, bad_bases[i],
			  http_client_new(loop, bad_bases[i], NULL, NULL, &client, &err),
			  ERR_INVALID);
		CHECK(c, bad_bases[i], client == NULL);
	}
	static const char *const away[] = { "http://127.0.0.1:1", "unix:/tmp/nobody-is-here.sock",
					    "http://no-such-host.invalid" };
	for (size_t i = 0; i < ARRAY_COUNT(away); i++) {
		struct http_client *client = make_client(loop, away[i]);
		struct fetch a = { .loop = loop }, b = { .loop = loop };
		fetch_start(&a, client, "/");
		fetch_start(&b, client, "/");
		CHECK(c, away[i], fetch_wait(&a, 10000) && a.status == ERR_UNAVAILABLE);
		CHECK(c, away[i], fetch_wait(&b, 10000) && b.status == ERR_UNAVAILABLE);
		CHECK(c, away[i], a.error[0] != '\0');
		http_client_free(client);
	}
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .listen = NULL });
	struct http_client *client = make_client(loop, web.base);
	for (size_t i = 0; i < ARRAY_COUNT(bad_paths); i++) {
		struct fetch fetch = { .loop = loop };
		CHECK(c, bad_paths[i], fetch_get(&fetch, client, bad_paths[i]));
		CHECK_INT(c, bad_paths[i], fetch.status, ERR_INVALID);
	}
	CHECK_INT(c, "none was sent", web.requests, 0);
	http_client_free(client);
	web_stop(&web);
}

static void stop_loop(void *arg) { loop_stop(arg); }

static void test_wait(struct check *c, struct loop *loop, struct web *web)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct http_client *client = make_client(loop, web->base);
	struct http_call_request request = { .method = "GET", .path = STR("/echo") };
	struct http_reply reply = { .code = 77 };
	struct err err;
	CHECK_INT(c, "wait", http_call_wait(client, &request, arena, &reply, &err), ERR_OK);
	CHECK_STR(c, "body", reply.body, "GET /echo? ||");
	CHECK_STR(c, "header", http_header_find(&reply.headers, "X-ANSWER"), "yes");
	reply.code = 77;
	request.path = STR("/hold");
	request.timeout_ns = 30 * MS;
	CHECK_INT(c, "time-out", http_call_wait(client, &request, arena, &reply, &err),
		  ERR_TIMEOUT);
	CHECK_INT(c, "untouched", reply.code, 77);
	fetch_turn(loop, 20);
	http_respond(TAKE(web->held), 200, NULL, NULL, STR(""));
	request.timeout_ns = 0;
	loop_defer(loop, stop_loop, loop);
	CHECK_INT(c, "interrupted", http_call_wait(client, &request, arena, &reply, &err),
		  ERR_UNAVAILABLE);
	loop_run(loop); // takes the stop
	fetch_turn(loop, 20);
	CHECK(c, "cancelled before it was sent", web->held == NULL);
	request.path = STR("/size?n=2000000");
	CHECK_INT(c, "too large for the arena",
		  http_call_wait(client, &request, arena, &reply, &err), ERR_LIMIT);
	http_client_free(client);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct loop *loop = make_loop();
	char suffix[9], unix_path[64];
	random_base62(suffix, 8);
	(void)snprintf(unix_path, sizeof unix_path, "unix:/tmp/http_client_test.%s", suffix);
	const char *const listens[] = { NULL, unix_path };
	for (size_t i = 0; i < ARRAY_COUNT(listens); i++) {
		struct web web;
		web_start(&web, loop, (struct http_server_config){ .listen = listens[i] });
		test_requests(&c, loop, &web);
		test_large(&c, loop, &web);
		test_timeouts(&c, loop, &web);
		test_cancel(&c, loop, &web);
		test_free_inside(&c, loop, &web);
		test_many(&c, loop, &web);
		test_wait(&c, loop, &web);
		test_memory(&c, loop, &web);
		web_stop(&web);
	}
	test_rude(&c, loop);
	test_stale(&c, loop);
	test_unreachable(&c, loop);
	loop_free(loop);
	return check_done(&c);
}
