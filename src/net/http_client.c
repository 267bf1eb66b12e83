// SPDX-License-Identifier: Apache-2.0
#include "net/http_client_inner.h"

#include <stdlib.h>

static const uint64_t PING_EVERY_NS = 15000000000, PING_ANSWER_NS = 10000000000;

enum { BODY_DEFAULT_MAX_BYTES = 64 * 1024 * 1024, CALL_ARENA_MAX_BYTES = 256 * 1024 * 1024 };

// ---- lists

void call_list_add(struct call_list *list, struct http_call *call)
{
	ASSERT(call->list == NULL);
	call->list = list;
	call->prev = list->last;
	if (list->last != NULL)
		list->last->next = call;
	else
		list->first = call;
	list->last = call;
	list->count++;
}

void call_unlist(struct http_call *call)
{
	struct call_list *list = call->list;
	call->conn = NULL;
	if (list == NULL)
		return;
	ASSERT(list->count > 0);
	if (call->prev != NULL)
		call->prev->next = call->next;
	else
		list->first = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	else
		list->last = call->prev;
	call->prev = call->next = NULL;
	call->list = NULL;
	list->count--;
}

// ---- ends of calls

static void call_free(struct http_call *call)
{
	ASSERT(!call->in_data);
	loop_timer_free(call->timer);
	loop_timer_free(call->idle_timer);
	buf_done(&call->received);
	arena_free(call->arena);
	free(call);
}

static void call_end(struct http_call *call, const struct http_call_result *result)
{
	ASSERT(!call->in_done && !call->gone);
	call_unlist(call);
	call->gone = true;
	call->in_done = true;
	call->on_done(call->arg, result);
	call->in_done = false;
	// Inside on_data, call_receive frees it.
	if (!call->in_data)
		call_free(call);
}

void call_succeed(struct http_call *call)
{
	struct http_call_result result = { .status = ERR_OK,
					   .code = call->code,
					   .headers = &call->headers,
					   .body = buf_str(&call->received) };
	ASSERT(call->headers_done);
	call_end(call, &result);
}

void call_fail(struct http_call *call, const struct err *err)
{
	struct err full = *err;
	struct http_call_result result = { .status = err->status, .err = &full };
	// Without the query, which may hold what logs should not.
	struct str path = str_slice(call->path, 0, str_find_byte(call->path, '?', 0));
	(void)err_wrap(&full, STR_FMT " %s" STR_FMT, STR_ARG(call->method), call->client->base,
		       STR_ARG(path));
	call_end(call, &result);
}

static void wait_again(struct http_call *call)
{
	struct http_client *client = call->client;
	call_unlist(call);
	call->retries++;
	call->stream_id = 0;
	call->body_sent = 0;
	call_list_add(&client->waiting, call);
	client_kick(client);
}

void call_lost(struct http_call *call, bool certainly_unseen, const struct err *err)
{
	bool harmless = str_eq_c(call->method, "GET") || str_eq_c(call->method, "HEAD");
	bool stale = harmless && call->conn->used_before && call->retries == 0;
	bool again = !call->heard && !call->client->freed &&
		     ((certainly_unseen && call->retries < CALL_RETRIES_MAX) || stale);
	if (again)
		wait_again(call);
	else
		call_fail(call, err);
}

// ---- answers

void call_heard(struct http_call *call)
{
	call->heard = true;
	if (call->idle_timer != NULL)
		loop_timer_set(call->idle_timer, call->idle_timeout_ns);
}

bool call_add_header(struct http_call *call, struct str name, struct str value)
{
	struct str own_name = arena_dup(call->arena, name);
	struct str own_value = arena_dup(call->arena, value);
	return own_name.data != NULL && own_value.data != NULL &&
	       http_header_add(&call->headers, own_name, own_value);
}

// Takes the call off its connection, which goes on or closes as its protocol needs. Nobody is
// called back: the connection has no other call, or stays.
static void detach(struct http_call *call)
{
	struct client_conn *conn = call->conn;
	call_unlist(call);
	if (conn == NULL || conn->dead)
		return;
	if (conn->protocol == PROTOCOL_HTTP2) {
		h2_cancel(conn, call->stream_id);
		return;
	}
	// HTTP/1.1 cannot skip an answer: its connection goes with the call.
	struct err err;
	err_status status = err_set(&err, ERR_UNAVAILABLE, "cancelled");
	ASSERT(status == ERR_UNAVAILABLE);
	conn_close(conn, &err);
}

static void give_up(struct http_call *call, const struct err *err)
{
	detach(call);
	call_fail(call, err);
}

bool call_receive(struct http_call *call, struct str data)
{
	struct err err;
	call->received_bytes += data.len;
	if (call->body_max_bytes != 0 && call->received_bytes > call->body_max_bytes) {
		(void)err_set(&err, ERR_LIMIT, "the answer is larger than %zu bytes",
			      call->body_max_bytes);
		give_up(call, &err);
		return false;
	}
	if (call->on_data == NULL) {
		buf_put(&call->received, data);
		if (buf_ok(&call->received))
			return true;
		(void)err_set(&err, ERR_LIMIT, "no memory for the answer");
		give_up(call, &err);
		return false;
	}
	if (data.len == 0)
		return true;
	call->in_data = true;
	call->on_data(call->arg, call->code, data);
	call->in_data = false;
	if (!call->gone)
		return true;
	call_free(call);
	return false;
}

void http_call_cancel(struct http_call *call)
{
	struct http_client *client = call->client;
	ASSERT(!call->in_done && !call->gone);
	client_enter(client);
	detach(call);
	call->gone = true;
	if (!call->in_data)
		call_free(call);
	client_leave(client);
}

static void on_call_timer(void *arg)
{
	struct http_call *call = arg;
	struct http_client *client = call->client;
	struct err err;
	(void)err_set(&err, ERR_TIMEOUT, "no whole answer within %llu ms",
		      (unsigned long long)(call->timeout_ns / 1000000));
	client_enter(client);
	give_up(call, &err);
	client_leave(client);
}

static void on_idle_timer(void *arg)
{
	struct http_call *call = arg;
	struct http_client *client = call->client;
	struct err err;
	(void)err_set(&err, ERR_TIMEOUT, "nothing heard for %llu ms",
		      (unsigned long long)(call->idle_timeout_ns / 1000000));
	client_enter(client);
	give_up(call, &err);
	client_leave(client);
}

// ---- starting

static void copy_request(struct http_call *call, const struct http_call_request *request)
{
	struct arena *arena = call->arena;
	call->method = arena_dup(arena, str_of(request->method));
	call->path = arena_dup(arena, request->path);
	call->body = arena_dup(arena, request->body);
	call->request_headers = ARENA_ARRAY(arena, struct http_header, request->header_count + 1);
	ASSERT(call->body.data != NULL && call->request_headers != NULL);
	for (size_t i = 0; i < request->header_count; i++) {
		call->request_headers[i].name = arena_dup(arena, request->headers[i].name);
		call->request_headers[i].value = arena_dup(arena, request->headers[i].value);
	}
	call->request_header_count = request->header_count;
	call->timeout_ns = request->timeout_ns;
	call->idle_timeout_ns = request->idle_timeout_ns;
	call->on_data = request->on_data;
	call->on_done = request->on_done;
	call->arg = request->arg;
	call->body_max_bytes = request->body_max_bytes;
	if (call->body_max_bytes == 0 && call->on_data == NULL)
		call->body_max_bytes = BODY_DEFAULT_MAX_BYTES;
	call->received.limit = call->body_max_bytes;
}

struct http_call *http_call_start(struct http_client *client,
				  const struct http_call_request *request)
{
	struct http_call *call = calloc(1, sizeof *call);
	ASSERT(call != NULL && request->on_done != NULL && !client->freed);
	call->client = client;
	call->arena = arena_new(CALL_ARENA_MAX_BYTES);
	ASSERT(call->arena != NULL);
	copy_request(call, request);
	if (call->timeout_ns > 0) {
		call->timer = loop_timer_new(client->loop, on_call_timer, call);
		loop_timer_set(call->timer, call->timeout_ns);
	}
	if (call->idle_timeout_ns > 0) {
		call->idle_timer = loop_timer_new(client->loop, on_idle_timer, call);
		loop_timer_set(call->idle_timer, call->idle_timeout_ns);
	}
	call_list_add(&client->waiting, call);
	client_kick(client);
	return call;
}

static bool is_sendable(const struct http_call *call)
{
	if (!http1_is_method(call->method) || !http1_is_target(call->path))
		return false;
	for (size_t i = 0; i < call->request_header_count; i++)
		if (!http1_is_token(call->request_headers[i].name) ||
		    !http1_is_value(call->request_headers[i].value))
			return false;
	return true;
}

// A connection that takes a call now; *ret_connecting counts those that may soon.
static struct client_conn *find_conn(const struct http_client *client, size_t *ret_connecting,
				     size_t *ret_count)
{
	struct client_conn *found = NULL;
	*ret_connecting = *ret_count = 0;
	for (struct client_conn *conn = client->conns; conn != NULL; conn = conn->next) {
		*ret_count += 1;
		*ret_connecting += conn->protocol == PROTOCOL_UNKNOWN;
		bool free_now = (conn->protocol == PROTOCOL_HTTP1 && conn->calls.count == 0) ||
				(conn->protocol == PROTOCOL_HTTP2 && h2_can_send(conn));
		if (free_now)
			found = conn;
	}
	return found;
}

static void send_call(struct client_conn *conn, struct http_call *call)
{
	struct err err;
	if (!is_sendable(call)) {
		(void)err_set(&err, ERR_INVALID, "method, path or headers cannot be sent");
		call_fail(call, &err);
		return;
	}
	call_unlist(call);
	call->conn = conn;
	call_list_add(&conn->calls, call);
	if (conn->protocol == PROTOCOL_HTTP2)
		h2_send(conn, call);
	else
		h1_send(conn, call);
}

// One write for all that was handed to a connection in this turn.
static void flush_conns(struct http_client *client)
{
	for (struct client_conn *conn = client->conns; conn != NULL;) {
		struct client_conn *next = conn->next;
		if (conn->flush_due)
			h2_flush(conn);
		// Whoever was called back may have changed the list.
		conn = conn->dead ? client->conns : next;
	}
}

static void hand_out(struct http_client *client)
{
	while (client->waiting.first != NULL && !client->freed) {
		size_t connecting = 0, count = 0;
		struct client_conn *conn = find_conn(client, &connecting, &count);
		if (conn != NULL) {
			send_call(conn, client->waiting.first);
			continue;
		}
		size_t connecting_max = client->protocol == PROTOCOL_HTTP1 ? client->waiting.count
									   : 1;
		// Draining HTTP/2 connections do not count against the next.
		if (connecting >= connecting_max ||
		    (client->dial_failed && client_has_open(client)) ||
		    (client->protocol == PROTOCOL_HTTP1 && count >= HTTP1_CONNECTIONS_MAX))
			return;
		if (!conn_dial(client))
			return;
	}
}

void client_dispatch(struct http_client *client)
{
	ASSERT(client->busy > 0);
	hand_out(client);
	flush_conns(client);
}

void client_kick(struct http_client *client)
{
	if (!client->freed)
		loop_timer_set(client->kick, 0);
}

static void on_client_kick(void *arg)
{
	struct http_client *client = arg;
	client_enter(client);
	client_dispatch(client);
	client_leave(client);
}

// ---- the client

void client_enter(struct http_client *client) { client->busy++; }

void client_leave(struct http_client *client)
{
	ASSERT(client->busy > 0);
	if (--client->busy > 0)
		return;
	while (client->dead_conns != NULL) {
		struct client_conn *conn = client->dead_conns;
		client->dead_conns = conn->next;
		conn_release(conn);
	}
	if (!client->freed)
		return;
	ASSERT(client->conns == NULL && client->waiting.count == 0);
	free(client->target);
	free(client->authority);
	free(client->server_name);
	free(client->base);
	free(client);
}

static char *dup_str(struct str text)
{
	char *copy = strndup(text.data, text.len);
	ASSERT(copy != NULL);
	return copy;
}

// Splits base into what to connect to and what to call it.
static bool parse_base(struct http_client *client, const char *base, bool *ret_is_tls)
{
	struct str rest = str_of(base), host, port;
	char *target = NULL;
	client->base = dup_str(rest);
	if (str_starts(rest, STR("unix:"))) {
		client->target = dup_str(rest);
		client->authority = dup_str(STR("localhost"));
		client->server_name = dup_str(STR("localhost"));
		*ret_is_tls = false;
		return true;
	}
	*ret_is_tls = str_starts(rest, STR("https://"));
	if (!*ret_is_tls && !str_starts(rest, STR("http://")))
		return false;
	rest = str_slice(rest, *ret_is_tls ? 8 : 7, rest.len);
	if (str_ends(rest, STR("/")))
		rest.len--;
	client->base[strlen(client->base) - (str_ends(str_of(base), STR("/")) ? 1 : 0)] = '\0';
	client->authority = dup_str(rest);
	if (!sock_split(rest, &host, &port)) {
		AUTO(buf_done) struct buf with_port = { .limit = 0 };
		buf_put(&with_port, rest);
		buf_put_c(&with_port, *ret_is_tls ? ":443" : ":80");
		if (!sock_split(buf_str(&with_port), &host, &port))
			return false;
		client->server_name = dup_str(host);
		target = dup_str(buf_str(&with_port));
	} else {
		client->server_name = dup_str(host);
		target = dup_str(rest);
	}
	client->target = target;
	return host.len > 0 && http1_is_value(rest) && str_find_byte(rest, '/', 0) == SIZE_MAX &&
	       str_find_byte(rest, '@', 0) == SIZE_MAX && str_find_byte(rest, ' ', 0) == SIZE_MAX;
}

err_status http_client_new(struct loop *loop, const char *base, struct tls_ctx *tls,
			   const char *server_name, struct http_client **ret, struct err *err)
{
	struct http_client *client = calloc(1, sizeof *client);
	bool is_tls = false;
	ASSERT(client != NULL && base != NULL);
	client->loop = loop;
	client->kick = loop_timer_new(loop, on_client_kick, client);
	bool good = parse_base(client, base, &is_tls);
	ASSERT(!is_tls || tls != NULL);
	if (!good) {
		http_client_free(client);
		return err_set(err, ERR_INVALID,
			       "%s is not https://HOST[:PORT], http://HOST[:PORT] or unix:/PATH",
			       base);
	}
	http_client_set_ping(client, PING_EVERY_NS, PING_ANSWER_NS);
	client->tls = is_tls ? tls : NULL;
	client->protocol = is_tls ? PROTOCOL_UNKNOWN : PROTOCOL_HTTP1;
	if (server_name != NULL) {
		free(client->server_name);
		client->server_name = dup_str(str_of(server_name));
	}
	*ret = client;
	return ERR_OK;
}

void http_client_set_ping(struct http_client *client, uint64_t every_ns, uint64_t answer_ns)
{
	ASSERT(every_ns > 0 && answer_ns > 0);
	client->ping_every_ns = every_ns;
	client->ping_answer_ns = answer_ns;
}

void http_client_free(struct http_client *client)
{
	struct err err;
	if (client == NULL)
		return;
	ASSERT(!client->freed);
	(void)err_set(&err, ERR_UNAVAILABLE, "the client was closed");
	client_enter(client);
	client->freed = true;
	loop_timer_free(client->kick);
	while (client->conns != NULL)
		conn_close(client->conns, &err);
	while (client->waiting.first != NULL)
		call_fail(client->waiting.first, &err);
	client_leave(client);
}
