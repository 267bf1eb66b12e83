// SPDX-License-Identifier: Apache-2.0
#include "net/http_server_conn.h"

static const uint64_t LINGER_NS = 2000000000;

enum {
	READ_AHEAD_BYTES = HTTP1_HEAD_MAX_BYTES, // while a request is being answered
	// While lingering: what a client had sent before it could read that its body is refused.
	DROP_MAX_BYTES = 8 * 1024 * 1024,
};

static void conn_process(struct conn *conn);

// ---- ends

void conn_cut(struct conn *conn)
{
	struct http_exchange *exchange = TAKE(conn->exchange);
	conn_free(conn);
	if (exchange != NULL)
		exchange_lose_client(exchange);
}

void conn_linger(struct conn *conn)
{
	ASSERT(conn->exchange == NULL);
	conn->state = CONN_LINGER;
	buf_done(&conn->in);
	if (stream_unsent_bytes(conn->stream) == 0 && conn->peer_ended) {
		// Nobody is there who could still send: over.
		conn->cut_due = true;
		loop_timer_set(conn->kick, 0);
		return;
	}
	// Closing with unread bytes would reset the connection and take the answer with it.
	stream_shutdown(conn->stream);
	stream_pause(conn->stream, false);
	loop_timer_set(conn->timer, LINGER_NS);
}

void conn_answer_sent(struct conn *conn)
{
	struct http_exchange *exchange = conn->exchange;
	bool goes_on = exchange->keep_alive && !conn->peer_ended;
	ASSERT(conn->state == CONN_HANDLING && exchange->state == EXCHANGE_DONE);
	if (exchange->in_handler)
		return; // comes again when the handler returns
	conn->exchange = NULL;
	exchange_free(exchange);
	if (!goes_on) {
		conn_linger(conn);
		return;
	}
	conn->state = CONN_HEAD;
	conn->scan = (struct http1_scan){ 0 };
	conn->waits_since_ns = loop_now_ns(conn->server->loop);
	conn->head_until_ns = 0;
	loop_timer_set(conn->timer, conn->server->idle_timeout_ns);
	stream_pause(conn->stream, false);
	if (conn->in.len > 0)
		loop_timer_set(conn->kick, 0);
}

// ---- requests

static void run_handler(struct conn *conn)
{
	struct http_exchange *exchange = conn->exchange;
	struct http_server *server = conn->server;
	exchange->request.body = buf_str(&exchange->body);
	exchange->state = EXCHANGE_HANDLING;
	conn->state = CONN_HANDLING;
	loop_timer_stop(conn->timer);
	exchange->in_handler = true;
	server->handlers_running++;
	server->handler(server->arg, exchange, &exchange->request);
	server->handlers_running--;
	exchange->in_handler = false;
	if (exchange->state == EXCHANGE_DONE && stream_unsent_bytes(conn->stream) == 0)
		conn_answer_sent(conn);
}

// False when the request was refused.
static bool check_body(struct conn *conn, const struct http1_request *parsed)
{
	if (parsed->framing == HTTP1_LENGTH && parsed->length > conn->server->body_max_bytes) {
		conn_refuse(conn, 413, "the body is larger than this server takes");
		return false;
	}
	if (parsed->framing != HTTP1_NO_BODY && parsed->expects_continue && conn->in.len == 0)
		stream_write(conn->stream, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	return true;
}

static void start_request(struct conn *conn, size_t head_bytes)
{
	struct http1_request parsed;
	struct err err;
	struct http_exchange *exchange = exchange_new(conn);
	if (exchange == NULL) {
		conn_refuse(conn, 503, "out of memory");
		return;
	}
	struct str head =
		arena_dup(exchange->request.arena, str_slice(buf_str(&conn->in), 0, head_bytes));
	buf_consume(&conn->in, head_bytes);
	conn->exchange = exchange;
	int refused = http1_parse_request(head, &parsed, &err);
	if (refused != 0) {
		conn_refuse(conn, refused, err.text);
		return;
	}
	exchange->request.method = parsed.method;
	exchange->request.path = parsed.path;
	exchange->request.query = parsed.query;
	exchange->request.headers = parsed.headers;
	exchange->is_head = str_eq_c(parsed.method, "HEAD");
	exchange->is_1_0 = parsed.is_1_0;
	exchange->keep_alive = parsed.keep_alive;
	exchange->framing = parsed.framing;
	exchange->body_left = parsed.length;
	exchange->body.limit = conn->server->body_max_bytes;
	if (!check_body(conn, &parsed))
		return;
	conn->state = CONN_BODY;
	if (parsed.framing == HTTP1_NO_BODY)
		run_handler(conn);
	else
		loop_timer_set(conn->timer, conn_left_ns(loop_now_ns(conn->server->loop),
							 conn->request_until_ns));
}

// The first byte of a request has come.
static void begin_head(struct conn *conn)
{
	const struct http_server *server = conn->server;
	const uint64_t now_ns = loop_now_ns(server->loop);
	conn->request_until_ns = now_ns + server->request_timeout_ns;
	if (conn->head_until_ns == 0)
		conn->head_until_ns = now_ns + server->head_timeout_ns;
	loop_timer_set(conn->timer, min_u64(conn_left_ns(now_ns, conn->head_until_ns),
					    server->request_timeout_ns));
}

static void read_head(struct conn *conn)
{
	size_t head_bytes = 0;
	if (conn->scan.seen_bytes == 0)
		begin_head(conn);
	switch (http1_scan_head(&conn->scan, buf_str(&conn->in), &head_bytes)) {
	case HTTP1_MORE: break;
	case HTTP1_HEAD: start_request(conn, head_bytes); break;
	case HTTP1_GARBAGE: conn_refuse(conn, 400, "this is not HTTP/1.1"); break;
	case HTTP1_TOO_LONG: conn_refuse(conn, 431, "the head is longer than 16 KiB"); break;
	}
}

// Takes what belongs to the body out of conn->in.
static http1_step take_body(struct conn *conn)
{
	struct http_exchange *exchange = conn->exchange;
	struct str rest = buf_str(&conn->in), part;
	http1_step step = HTTP1_STEP_MORE;
	if (exchange->framing == HTTP1_CHUNKED) {
		while ((step = http1_chunks_next(&exchange->chunks, &rest, &part)) ==
		       HTTP1_STEP_DATA)
			buf_put(&exchange->body, part);
	} else {
		part = str_slice(rest, 0, min_size(rest.len, exchange->body_left));
		rest = str_slice(rest, part.len, rest.len);
		buf_put(&exchange->body, part);
		exchange->body_left -= part.len;
		step = exchange->body_left == 0 ? HTTP1_STEP_END : HTTP1_STEP_MORE;
	}
	buf_consume(&conn->in, conn->in.len - rest.len);
	return step;
}

static void read_body(struct conn *conn)
{
	http1_step step = take_body(conn);
	ASSERT(step != HTTP1_STEP_DATA);
	if (!buf_ok(&conn->exchange->body))
		conn_refuse(conn, 413, "the body is larger than this server takes");
	else if (step == HTTP1_STEP_BAD)
		conn_refuse(conn, 400, "the chunked body is malformed");
	else if (step == HTTP1_STEP_END)
		run_handler(conn);
}

// Goes on as long as buffered bytes change the state.
static void conn_process(struct conn *conn)
{
	while (conn->in.len > 0 && (conn->state == CONN_HEAD || conn->state == CONN_BODY)) {
		conn_state before = conn->state;
		if (conn->state == CONN_HEAD)
			read_head(conn);
		else
			read_body(conn);
		if (conn->state == before)
			break;
	}
	if (conn->state == CONN_HANDLING && conn->in.len >= READ_AHEAD_BYTES)
		stream_pause(conn->stream, true);
}

void conn_on_kick(void *arg)
{
	struct conn *conn = arg;
	if (conn->cut_due)
		conn_cut(conn);
	else
		conn_process(conn);
}

void conn_on_timer(void *arg)
{
	struct conn *conn = arg;
	switch (conn->state) {
	case CONN_HEAD:
		if (conn->in.len > 0)
			conn_refuse(conn, 408, "the request did not arrive in time");
		else
			conn_cut(conn);
		return;
	case CONN_BODY: conn_refuse(conn, 408, "the request did not arrive in time"); return;
	case CONN_HANDLING:
		// Armed while bytes wait: cut a client that took none of them.
		if (stream_unsent_bytes(conn->stream) == 0)
			return;
		if (stream_sent_total(conn->stream) == conn->sent_mark) {
			conn_cut(conn);
			return;
		}
		conn->sent_mark = stream_sent_total(conn->stream);
		loop_timer_set(conn->timer, conn->server->idle_timeout_ns);
		return;
	case CONN_OPENING:
	case CONN_LINGER: break;
	}
	conn_cut(conn);
}

// ---- events of the stream

static void on_opened(void *arg)
{
	struct conn *conn = arg;
	conn->state = CONN_HEAD;
	if (conn->over_limit) {
		conn_refuse(conn, 503, "too many connections, try again later");
		return;
	}
	if (conn->server->tls != NULL)
		tls_conn_peer_name(stream_tls(conn->stream), conn->cert_name,
				   sizeof conn->cert_name);
	loop_timer_set(conn->timer,
		       min_u64(conn_left_ns(loop_now_ns(conn->server->loop), conn->head_until_ns),
			       conn->server->idle_timeout_ns));
}

static void on_data(void *arg, struct str data)
{
	struct conn *conn = arg;
	if (conn->state == CONN_LINGER) {
		conn->dropped_bytes += data.len;
		if (conn->dropped_bytes > DROP_MAX_BYTES)
			conn_cut(conn);
		return;
	}
	buf_put(&conn->in, data);
	ASSERT(buf_ok(&conn->in));
	conn_process(conn);
}

static void on_drained(void *arg)
{
	struct conn *conn = arg;
	if (conn->state == CONN_HANDLING && conn->exchange->state == EXCHANGE_DONE)
		conn_answer_sent(conn);
}

static void on_ended(void *arg)
{
	struct conn *conn = arg;
	conn->peer_ended = true;
	// A client may end its side after the request and still wait for the answer; a follower of
	// a stream that ends its side has left.
	if (conn->state == CONN_HANDLING && conn->exchange->state != EXCHANGE_STREAMING)
		return;
	if (conn->state == CONN_LINGER && stream_unsent_bytes(conn->stream) > 0)
		return;
	conn_cut(conn);
}

static void on_failed(void *arg, const struct err *err)
{
	(void)err; // a client that left is nobody's fault
	conn_cut(arg);
}

const struct stream_handler conn_handler = {
	.opened = on_opened,
	.data = on_data,
	.drained = on_drained,
	.ended = on_ended,
	.failed = on_failed,
};
