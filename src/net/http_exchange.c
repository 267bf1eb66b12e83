// SPDX-License-Identifier: Apache-2.0
#include "net/http_server_conn.h"

#include "base/timefmt.h"

#include <stdlib.h>

// ---- life

struct http_exchange *exchange_new(struct conn *conn)
{
	struct http_exchange *exchange = calloc(1, sizeof *exchange);
	struct arena *arena = arena_new(HTTP_ARENA_MAX_BYTES);
	if (exchange == NULL || arena == NULL) {
		free(exchange);
		arena_free(arena);
		return NULL;
	}
	exchange->loop = conn->server->loop;
	exchange->conn = conn;
	exchange->request.arena = arena;
	// Copies: the exchange may outlive the connection.
	exchange->request.peer_address = arena_dup(arena, str_of(conn->peer));
	exchange->request.peer_cert_name = arena_dup(arena, str_of(conn->cert_name));
	return exchange;
}

void exchange_free(struct http_exchange *exchange)
{
	ASSERT(!exchange->in_handler);
	arena_free(exchange->request.arena);
	buf_done(&exchange->body);
	free(exchange);
}

void exchange_lose_client(struct http_exchange *exchange)
{
	exchange->conn = NULL;
	switch (exchange->state) {
	case EXCHANGE_READING:
	case EXCHANGE_DONE: exchange_free(exchange); break;
	case EXCHANGE_HANDLING: break; // until it is answered
	case EXCHANGE_STREAMING:
		if (exchange->closed == NULL)
			break;
		exchange->closed(exchange->closed_arg);
		exchange_free(exchange);
		break;
	}
}

// ---- heads of answers

static bool has_no_body(int status) { return status == 204 || status == 304; }

// IMF-fixdate of RFC 9110; without the C library's calendar, which has hidden state.
static void put_date(struct buf *out, int64_t unix_s)
{
	static const char *const days[] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct civil t = time_to_civil(unix_s);
	ASSERT(t.month >= 1 && t.month <= 12);
	buf_printf(out, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[unix_s / 86400 % 7],
		   t.day, months[t.month - 1], t.year, t.hour, t.minute, t.second);
}

static bool is_ours(struct str name)
{
	static const char *const ours[] = { "content-length", "transfer-encoding", "connection",
					    "date",           "keep-alive",        "upgrade" };
	for (size_t i = 0; i < ARRAY_COUNT(ours); i++)
		if (str_eq_nocase(name, str_of(ours[i])))
			return true;
	return false;
}

static void put_header(struct buf *out, struct str name, struct str value)
{
	// Whatever a handler passes on from outside, it cannot begin a header of its own.
	if (is_ours(name) || !http1_is_token(name) || !http1_is_value(value))
		return;
	buf_put(out, name);
	buf_put_c(out, ": ");
	buf_put(out, value);
	buf_put_c(out, "\r\n");
}

static void put_head(struct buf *out, const struct http_exchange *exchange, int status,
		     const char *content_type, const struct http_headers *extra)
{
	const struct world *world = loop_world(exchange->loop);
	ASSERT(status >= 200 && status <= 599);
	buf_printf(out, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
	put_date(out, world_wall_s(world));
	if (content_type != NULL)
		put_header(out, STR("Content-Type"), str_of(content_type));
	for (size_t i = 0; extra != NULL && i < extra->count; i++)
		put_header(out, extra->items[i].name, extra->items[i].value);
	if (!exchange->keep_alive)
		buf_put_c(out, "Connection: close\r\n");
	else if (exchange->is_1_0)
		buf_put_c(out, "Connection: keep-alive\r\n");
}

// ---- sending

// While bytes wait, somebody must look whether the client takes them.
static void watch_sending(struct conn *conn)
{
	if (stream_unsent_bytes(conn->stream) == 0)
		return;
	conn->sent_mark = stream_sent_total(conn->stream);
	loop_timer_set(conn->timer, conn->server->idle_timeout_ns);
}

static void send_last(struct http_exchange *exchange, const struct buf *out)
{
	struct conn *conn = exchange->conn;
	exchange->state = EXCHANGE_DONE;
	stream_write(conn->stream, buf_str(out));
	watch_sending(conn);
	if (stream_unsent_bytes(conn->stream) == 0)
		conn_answer_sent(conn);
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type,
		  const struct http_headers *extra_headers, struct str body)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	ASSERT(exchange->state == EXCHANGE_HANDLING);
	if (exchange->conn == NULL) {
		exchange_free(exchange);
		return;
	}
	put_head(&out, exchange, status, content_type, extra_headers);
	if (has_no_body(status))
		body = STR("");
	else
		buf_printf(&out, "Content-Length: %zu\r\n", body.len);
	buf_put_c(&out, "\r\n");
	if (!exchange->is_head)
		buf_put(&out, body);
	if (!buf_ok(&out)) {
		// A handler's answer larger than 64 MiB; the client must not take it for whole.
		exchange->keep_alive = false;
		buf_clear(&out);
		put_head(&out, exchange, 500, NULL, NULL);
		buf_put_c(&out, "Content-Length: 0\r\n\r\n");
	}
	send_last(exchange, &out);
}

static void on_lost_before_start(void *arg)
{
	struct http_exchange *exchange = arg;
	// http_respond_end may have come first.
	if (exchange->closed != NULL)
		exchange->closed(exchange->closed_arg);
	exchange_free(exchange);
}

void http_respond_start(struct http_exchange *exchange, int status, const char *content_type,
			loop_fn *closed, void *arg)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	ASSERT(exchange->state == EXCHANGE_HANDLING && !has_no_body(status));
	exchange->state = EXCHANGE_STREAMING;
	exchange->closed = closed;
	exchange->closed_arg = arg;
	if (exchange->conn == NULL) {
		// It left before the start: told like a later leave, but not from inside.
		exchange->lost_due = closed != NULL;
		if (exchange->lost_due)
			loop_defer(exchange->loop, on_lost_before_start, exchange);
		return;
	}
	if (exchange->is_1_0)
		exchange->keep_alive = false; // the end of the connection ends the body
	put_head(&out, exchange, status, content_type, NULL);
	if (!exchange->is_1_0)
		buf_put_c(&out, "Transfer-Encoding: chunked\r\n");
	buf_put_c(&out, "\r\n");
	stream_write(exchange->conn->stream, buf_str(&out));
	watch_sending(exchange->conn);
	if (exchange->conn->peer_ended) {
		exchange->conn->cut_due = true;
		loop_timer_set(exchange->conn->kick, 0);
	}
}

void http_respond_chunk(struct http_exchange *exchange, struct str data)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	struct conn *conn = exchange->conn;
	ASSERT(exchange->state == EXCHANGE_STREAMING);
	// An empty chunk would end the body.
	if (conn == NULL || conn->cut_due || data.len == 0 || exchange->is_head)
		return;
	if (stream_unsent_bytes(conn->stream) + data.len > HTTP_STREAM_UNSENT_MAX_BYTES) {
		conn->cut_due = true;
		loop_timer_set(conn->kick, 0);
		return;
	}
	bool was_empty = stream_unsent_bytes(conn->stream) == 0;
	if (!exchange->is_1_0)
		buf_printf(&out, "%zx\r\n", data.len);
	buf_put(&out, data);
	if (!exchange->is_1_0)
		buf_put_c(&out, "\r\n");
	stream_write(conn->stream, buf_str(&out));
	if (was_empty)
		watch_sending(conn);
}

void http_respond_end(struct http_exchange *exchange)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	ASSERT(exchange->state == EXCHANGE_STREAMING);
	exchange->closed = NULL;
	if (exchange->conn == NULL) {
		if (!exchange->lost_due)
			exchange_free(exchange);
		return;
	}
	if (!exchange->is_1_0 && !exchange->is_head)
		buf_put_c(&out, "0\r\n\r\n");
	send_last(exchange, &out);
}

size_t http_exchange_unsent_bytes(const struct http_exchange *exchange)
{
	return exchange->conn == NULL ? 0 : stream_unsent_bytes(exchange->conn->stream);
}

void conn_refuse(struct conn *conn, int status, const char *detail)
{
	AUTO(buf_done) struct buf body = { .limit = 0 };
	AUTO(buf_done) struct buf out = { .limit = 0 };
	struct http_exchange *old = TAKE(conn->exchange);
	struct http_exchange refusal = { .loop = conn->server->loop, .conn = conn };
	ASSERT(old == NULL || old->state == EXCHANGE_READING);
	if (old != NULL) {
		refusal.is_head = old->is_head;
		exchange_free(old);
	}
	buf_printf(&body, "{\"status\":%d,\"title\":", status);
	buf_put_json(&body, str_of(http_status_text(status)));
	buf_put_c(&body, ",\"detail\":");
	buf_put_json(&body, str_of(detail));
	buf_put_c(&body, "}\n");
	put_head(&out, &refusal, status, "application/problem+json", NULL);
	buf_printf(&out, "Content-Length: %zu\r\n\r\n", body.len);
	if (!refusal.is_head)
		buf_put(&out, buf_str(&body));
	stream_write(conn->stream, buf_str(&out));
	conn_linger(conn);
}
