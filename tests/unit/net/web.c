// SPDX-License-Identifier: Apache-2.0
#include "web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t MS = 1000000;

// An answer that is given by a timer: at once, or in pieces.
struct timed {
	struct web *web;
	struct timed *prev, *next;
	struct http_exchange *exchange;
	struct loop_timer *timer;
	int chunks_left; // -1: not a stream
};

static void timed_free(struct timed *timed)
{
	if (timed->prev != NULL)
		timed->prev->next = timed->next;
	else
		timed->web->timed = timed->next;
	if (timed->next != NULL)
		timed->next->prev = timed->prev;
	loop_timer_free(timed->timer);
	free(timed);
}

static void on_closed(void *arg)
{
	struct timed *timed = arg;
	timed->web->closed++;
	timed_free(timed);
}

static void on_timer(void *arg)
{
	struct timed *timed = arg;
	struct http_exchange *exchange = timed->exchange;
	if (timed->chunks_left > 0) {
		timed->chunks_left--;
		http_respond_chunk(exchange, STR("tick "));
		loop_timer_set(timed->timer, 5 * MS);
		return;
	}
	bool is_stream = timed->chunks_left == 0;
	timed_free(timed);
	if (is_stream)
		http_respond_end(exchange);
	else
		http_respond(exchange, 200, "text/plain", NULL, STR("later"));
}

static void timed_new(struct web *web, struct http_exchange *exchange, int chunks)
{
	struct timed *timed = calloc(1, sizeof *timed);
	ASSERT(timed != NULL);
	*timed = (struct timed){
		.web = web, .next = web->timed, .exchange = exchange, .chunks_left = chunks
	};
	if (timed->next != NULL)
		timed->next->prev = timed;
	web->timed = timed;
	timed->timer = loop_timer_new(web->loop, on_timer, timed);
	if (chunks >= 0)
		http_respond_start(exchange, 200, "text/plain", on_closed, timed);
	loop_timer_set(timed->timer, chunks >= 0 ? 0 : 20 * MS);
}

static void echo(struct http_exchange *exchange, const struct http_request *request)
{
	struct http_headers extra = { .count = 0 };
	char *text = arena_printf(
		request->arena, STR_FMT " " STR_FMT "?" STR_FMT " " STR_FMT "|" STR_FMT "|" STR_FMT,
		STR_ARG(request->method), STR_ARG(request->path), STR_ARG(request->query),
		STR_ARG(request->body), STR_ARG(http_header_find(&request->headers, "x-test")),
		STR_ARG(request->peer_cert_name));
	bool added = http_header_add(&extra, STR("X-Answer"), STR("yes")) &&
		     http_header_add(&extra, STR("X-Evil"), STR("a\r\nSet-Cookie: b")) &&
		     http_header_add(&extra, STR("Content-Length"), STR("1"));
	ASSERT(added && text != NULL);
	http_respond(exchange, 200, "text/plain", &extra, str_of(text));
}

static void answer_size(struct http_exchange *exchange, const struct http_request *request)
{
	uint64_t count = 0;
	bool good = str_to_u64(http_query_get(request->arena, request->query, "n"), &count);
	char *bytes = good ? arena_alloc(request->arena, count + 1) : NULL;
	if (bytes == NULL) {
		http_respond(exchange, 400, NULL, NULL, STR(""));
		return;
	}
	memset(bytes, 'x', count);
	http_respond(exchange, 200, "text/plain", NULL, (struct str){ bytes, count });
}

static void handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct web *web = arg;
	web->requests++;
	if (str_starts(request->path, STR("/echo"))) {
		echo(exchange, request);
	} else if (str_eq_c(request->path, "/size")) {
		answer_size(exchange, request);
	} else if (str_eq_c(request->path, "/hold")) {
		web->held = exchange;
	} else if (str_eq_c(request->path, "/later")) {
		timed_new(web, exchange, -1);
	} else if (str_eq_c(request->path, "/stream")) {
		timed_new(web, exchange, 3);
	} else if (str_eq_c(request->path, "/endless")) {
		timed_new(web, exchange, 1000000);
	} else if (str_eq_c(request->path, "/empty")) {
		http_respond(exchange, 204, NULL, NULL, STR("not sent"));
	} else {
		http_respond(exchange, 404, "text/plain", NULL, STR("no such path"));
	}
}

void web_start(struct web *web, struct loop *loop, struct http_server_config config)
{
	struct err err;
	*web = (struct web){ .loop = loop };
	if (config.listen == NULL)
		config.listen = "127.0.0.1:0";
	config.handler = handle;
	config.arg = web;
	err_status status = http_server_new(loop, &config, &web->server, &err);
	if (status != ERR_OK)
		printf("%s\n", err.text);
	ASSERT(status == ERR_OK);
	if (str_starts(str_of(config.listen), STR("unix:")))
		(void)snprintf(web->base, sizeof web->base, "%s", config.listen);
	else
		(void)snprintf(web->base, sizeof web->base, "%s://127.0.0.1:%u",
			       config.tls == NULL ? "http" : "https",
			       (unsigned)http_server_port(web->server));
}

void web_stop(struct web *web)
{
	http_server_free(web->server);
	if (web->held != NULL)
		http_respond(web->held, 200, NULL, NULL, STR(""));
	while (web->timed != NULL)
		on_timer(web->timed);
}

int web_dial(const struct web *web, const char *from)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(http_server_port(web->server)),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT(fd >= 0 && inet_pton(AF_INET, from, &own.sin_addr) == 1);
	int rc = bind(fd, (struct sockaddr *)&own, sizeof own);
	ASSERT(rc == 0);
	rc = connect(fd, (struct sockaddr *)&to, sizeof to);
	ASSERT(rc == 0);
	return fd;
}

struct str web_raw(struct web *web, struct str bytes, size_t step, int quiet_ms)
{
	static char answer[64 * 1024];
	size_t count = 0, sent = 0;
	int fd = web_dial(web, "127.0.0.1");
	web->raw_ended = false;
	web->raw_sent = 0;
	const struct world *world = loop_world(web->loop);
	uint64_t heard_ns = world_mono_ns(world);
	uint64_t end_ns = heard_ns + (uint64_t)quiet_ms * 10 * MS;
	while (world_mono_ns(world) - heard_ns < (uint64_t)quiet_ms * MS &&
	       world_mono_ns(world) < end_ns) {
		if (sent < bytes.len) {
			struct str piece =
				str_slice(bytes, sent, step == 0 ? bytes.len : sent + step);
			ssize_t done = send(fd, piece.data, piece.len, MSG_NOSIGNAL | MSG_DONTWAIT);
			web->raw_sent += done > 0 ? (size_t)done : 0;
			sent = done > 0 ? sent + (size_t)done : errno == EAGAIN ? sent : bytes.len;
		}
		loop_run_once(web->loop, 1);
		ssize_t got = recv(fd, answer + count, sizeof answer - count, MSG_DONTWAIT);
		web->raw_ended = got == 0 || (got < 0 && errno != EAGAIN);
		if (web->raw_ended)
			break;
		if (got > 0 || sent < bytes.len)
			heard_ns = world_mono_ns(world);
		count += got > 0 ? (size_t)got : 0;
	}
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	if (web->raw_resets)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	(void)close(fd);
	return (struct str){ answer, count };
}
