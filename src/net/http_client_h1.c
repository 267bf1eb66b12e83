// SPDX-License-Identifier: Apache-2.0
#include "net/http_client_inner.h"

static const uint64_t IDLE_NS = 30000000000; // shorter than servers keep theirs

void h1_start(struct client_conn *conn)
{
	// Not needed any more, perhaps: then it ends like any idle connection.
	loop_timer_set(conn->timer, IDLE_NS);
}

static bool has_header(const struct http_call *call, const char *name)
{
	for (size_t i = 0; i < call->request_header_count; i++)
		if (str_eq_nocase(call->request_headers[i].name, str_of(name)))
			return true;
	return false;
}

static bool is_framing(struct str name)
{
	return str_eq_nocase(name, STR("content-length")) ||
	       str_eq_nocase(name, STR("transfer-encoding")) ||
	       str_eq_nocase(name, STR("connection"));
}

void h1_send(struct client_conn *conn, struct http_call *call)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	struct err err;
	bool wants_length = call->body.len > 0 || str_eq_c(call->method, "POST") ||
			    str_eq_c(call->method, "PUT") || str_eq_c(call->method, "PATCH");
	ASSERT(conn->calls.first == call && conn->calls.count == 1);
	loop_timer_stop(conn->timer);
	conn->scan = (struct http1_scan){ 0 };
	conn->chunks = (struct http1_chunks){ 0 };
	buf_printf(&out, STR_FMT " " STR_FMT " HTTP/1.1\r\n", STR_ARG(call->method),
		   STR_ARG(call->path));
	if (!has_header(call, "host"))
		buf_printf(&out, "Host: %s\r\n", conn->client->authority);
	for (size_t i = 0; i < call->request_header_count; i++)
		if (!is_framing(call->request_headers[i].name))
			buf_printf(&out, STR_FMT ": " STR_FMT "\r\n",
				   STR_ARG(call->request_headers[i].name),
				   STR_ARG(call->request_headers[i].value));
	if (wants_length)
		buf_printf(&out, "Content-Length: %zu\r\n", call->body.len);
	buf_put_c(&out, "\r\n");
	buf_put(&out, call->body);
	if (buf_ok(&out)) {
		stream_write(conn->stream, buf_str(&out));
		return;
	}
	(void)err_set(&err, ERR_LIMIT, "the request is too large to send");
	call_fail(call, &err);
	loop_timer_set(conn->timer, IDLE_NS);
}

static void fail_protocol(struct client_conn *conn, const struct err *err)
{
	struct err full = *err;
	full.status = ERR_PROTOCOL;
	conn_close(conn, &full);
}

static void fail_text(struct client_conn *conn, const char *text)
{
	struct err err;
	(void)err_set(&err, ERR_PROTOCOL, "%s", text);
	conn_close(conn, &err);
}

// The answer is whole; the connection serves the next call or ends.
static void finish(struct client_conn *conn)
{
	struct http_call *call = conn->calls.first;
	struct err err;
	bool keep = conn->response.keep_alive && conn->in.len == 0 &&
		    stream_unsent_bytes(conn->stream) == 0;
	conn->used_before = true;
	call_succeed(call);
	if (conn->dead)
		return;
	if (keep) {
		loop_timer_set(conn->timer, IDLE_NS);
		return;
	}
	(void)err_set(&err, ERR_UNAVAILABLE, "the connection is used up");
	conn_close(conn, &err);
}

static bool store_headers(struct http_call *call, const struct http_headers *headers)
{
	for (size_t i = 0; i < headers->count; i++)
		if (!call_add_header(call, headers->items[i].name, headers->items[i].value))
			return false;
	return true;
}

// Takes a head out of the buffer; false when there is none yet, or the connection is dead.
static bool read_head(struct client_conn *conn)
{
	struct http_call *call = conn->calls.first;
	struct err err;
	size_t head_bytes = 0;
	switch (http1_scan_head(&conn->scan, buf_str(&conn->in), &head_bytes)) {
	case HTTP1_MORE: return false;
	case HTTP1_HEAD: break;
	case HTTP1_GARBAGE: fail_text(conn, "the answer is not HTTP/1.1"); return false;
	case HTTP1_TOO_LONG: fail_text(conn, "the head of the answer is too long"); return false;
	}
	struct str head = str_slice(buf_str(&conn->in), 0, head_bytes);
	bool to_head = str_eq_c(call->method, "HEAD");
	if (http1_parse_response(head, to_head, &conn->response, &err) != ERR_OK) {
		fail_protocol(conn, &err);
		return false;
	}
	conn->scan = (struct http1_scan){ 0 };
	if (conn->response.code == 101) {
		fail_text(conn, "the server changed the protocol unasked");
		return false;
	}
	if (conn->response.code >= 200) {
		call->code = conn->response.code;
		call->headers_done = true;
		conn->body_left = conn->response.length;
		if (!store_headers(call, &conn->response.headers)) {
			fail_text(conn, "the head of the answer is too large");
			return false;
		}
	}
	buf_consume(&conn->in, head_bytes);
	return true;
}

// One piece of a body that is told by its length or by the end of the connection.
static http1_step next_plain(struct client_conn *conn, struct str *rest, struct str *ret_data)
{
	if (conn->response.framing == HTTP1_NO_BODY)
		return HTTP1_STEP_END;
	if (conn->response.framing == HTTP1_LENGTH && conn->body_left == 0)
		return HTTP1_STEP_END;
	if (rest->len == 0)
		return HTTP1_STEP_MORE;
	size_t part = rest->len;
	if (conn->response.framing == HTTP1_LENGTH)
		part = conn->body_left < part ? (size_t)conn->body_left : part;
	*ret_data = str_slice(*rest, 0, part);
	*rest = str_slice(*rest, part, rest->len);
	conn->body_left -= conn->response.framing == HTTP1_LENGTH ? part : 0;
	return HTTP1_STEP_DATA;
}

static void read_body(struct client_conn *conn)
{
	struct str rest = buf_str(&conn->in), part;
	http1_step step = HTTP1_STEP_DATA;
	while (step == HTTP1_STEP_DATA) {
		step = conn->response.framing == HTTP1_CHUNKED
			       ? http1_chunks_next(&conn->chunks, &rest, &part)
			       : next_plain(conn, &rest, &part);
		// The call may go, and its connection with it.
		if (step == HTTP1_STEP_DATA && !call_receive(conn->calls.first, part))
			return;
	}
	buf_consume(&conn->in, conn->in.len - rest.len);
	if (step == HTTP1_STEP_END)
		finish(conn);
	else if (step == HTTP1_STEP_BAD)
		fail_text(conn, "the chunked body of the answer is malformed");
}

void h1_data(struct client_conn *conn, struct str data)
{
	if (conn->calls.count == 0) {
		fail_text(conn, "the server talks unasked");
		return;
	}
	buf_put(&conn->in, data);
	ASSERT(buf_ok(&conn->in));
	call_heard(conn->calls.first);
	while (!conn->calls.first->headers_done)
		if (!read_head(conn))
			return;
	read_body(conn);
}

void h1_ended(struct client_conn *conn)
{
	struct http_call *call = conn->calls.first;
	if (call != NULL && call->headers_done && conn->response.framing == HTTP1_UNTIL_CLOSE)
		call_succeed(call);
}
