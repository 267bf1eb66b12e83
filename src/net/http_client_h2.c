// SPDX-License-Identifier: Apache-2.0
#include "net/http_client_inner.h"

#include <stdlib.h>

// A connection so long unheard is asked before it is trusted with the first of new calls.
static const uint64_t QUIET_NS = 5000000000;

enum {
	STREAM_WINDOW_BYTES = 4 * 1024 * 1024,
	CONNECTION_WINDOW_BYTES = 32 * 1024 * 1024,
	UNSENT_MAX_BYTES = 1024 * 1024, // more waits in nghttp2
	HEADERS_SENT_MAX = HTTP_HEADERS_MAX + 8,
};

static struct http_call *call_of(struct client_conn *conn, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(conn->session, stream_id);
}

// ---- sending

static void fail_session(struct client_conn *conn, const char *what, int code)
{
	struct err err;
	(void)err_set(&err, ERR_PROTOCOL, "HTTP/2: %s: %s", what, nghttp2_strerror(code));
	conn_close(conn, &err);
}

// What nghttp2 has to send now, joined: a record of TLS for each small frame would cost more than
// the frames.
static void gather(struct client_conn *conn, struct buf *out)
{
	while (!conn->dead && stream_unsent_bytes(conn->stream) + out->len < UNSENT_MAX_BYTES) {
		const uint8_t *bytes = NULL;
		conn->in_session = true;
		ssize_t count = nghttp2_session_mem_send(conn->session, &bytes);
		conn->in_session = false;
		if (conn->dead || count == 0)
			return;
		if (count < 0) {
			fail_session(conn, "sending", (int)count);
			return;
		}
		buf_put_bytes(out, bytes, (size_t)count);
	}
}

void h2_flush(struct client_conn *conn)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	if (conn->dead || conn->in_session)
		return;
	conn->flush_due = false;
	gather(conn, &out);
	if (conn->dead)
		return;
	ASSERT(buf_ok(&out));
	stream_write(conn->stream, buf_str(&out));
	bool over = !nghttp2_session_want_read(conn->session) &&
		    !nghttp2_session_want_write(conn->session);
	if (over || (conn->draining && conn->calls.count == 0)) {
		struct err err;
		(void)err_set(&err, ERR_UNAVAILABLE, "the server ended the connection");
		conn_close(conn, &err);
	}
}

static ssize_t on_body_wanted(nghttp2_session *session, int32_t stream_id, uint8_t *out,
			      size_t out_bytes, uint32_t *flags, nghttp2_data_source *source,
			      void *arg)
{
	struct http_call *call = call_of(arg, stream_id);
	(void)session;
	(void)source;
	if (call == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	size_t count = min_size(out_bytes, call->body.len - call->body_sent);
	memcpy(out, call->body.data + call->body_sent, count);
	call->body_sent += count;
	if (call->body_sent == call->body.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)count;
}

struct header_list {
	nghttp2_nv items[HEADERS_SENT_MAX];
	size_t count;
};

static void add_header(struct header_list *list, struct str name, struct str value)
{
	ASSERT(list->count < HEADERS_SENT_MAX);
	// nghttp2 copies both before the submitting call returns; its struct lacks the const.
	union {
		const char *in;
		uint8_t *out;
	} n = { .in = name.data }, v = { .in = value.data };
	list->items[list->count++] =
		(nghttp2_nv){ n.out, v.out, name.len, value.len, NGHTTP2_NV_FLAG_NONE };
}

static bool is_connection_header(struct str name)
{
	static const char *const names[] = { "connection", "host",    "transfer-encoding",
					     "keep-alive", "upgrade", "content-length" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq_nocase(name, str_of(names[i])))
			return true;
	return false;
}

static struct str lower(struct arena *arena, struct str text)
{
	char *copy = arena_cstr(arena, text);
	ASSERT(copy != NULL);
	for (size_t i = 0; i < text.len; i++)
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] - 'A' + 'a');
	return (struct str){ copy, text.len };
}

static void list_headers(struct http_call *call, struct header_list *list)
{
	struct str authority = str_of(call->client->authority);
	for (size_t i = 0; i < call->request_header_count; i++)
		if (str_eq_nocase(call->request_headers[i].name, STR("host")))
			authority = call->request_headers[i].value;
	add_header(list, STR(":method"), call->method);
	add_header(list, STR(":scheme"), STR("https"));
	add_header(list, STR(":authority"), authority);
	add_header(list, STR(":path"), call->path);
	for (size_t i = 0; i < call->request_header_count; i++)
		if (!is_connection_header(call->request_headers[i].name))
			add_header(list, lower(call->arena, call->request_headers[i].name),
				   call->request_headers[i].value);
	if (call->body.len > 0)
		add_header(list, STR("content-length"),
			   str_of(arena_printf(call->arena, "%zu", call->body.len)));
}

static void ask(struct client_conn *conn)
{
	int rc = nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
	if (rc != 0)
		return; // no memory: the next timer tries again
	conn->ping_open = true;
	loop_timer_set(conn->timer, conn->client->ping_answer_ns);
}

bool h2_can_send(const struct client_conn *conn)
{
	return !conn->draining && nghttp2_session_check_request_allowed(conn->session) != 0;
}

void h2_send(struct client_conn *conn, struct http_call *call)
{
	struct header_list list = { .count = 0 };
	nghttp2_data_provider body = { .read_callback = on_body_wanted };
	struct err err;
	if (call->request_header_count > HTTP_HEADERS_MAX) {
		(void)err_set(&err, ERR_LIMIT, "more than %d headers", HTTP_HEADERS_MAX);
		call_fail(call, &err);
		return;
	}
	list_headers(call, &list);
	call->stream_id = nghttp2_submit_request(conn->session, NULL, list.items, list.count,
						 call->body.len > 0 ? &body : NULL, call);
	if (call->stream_id < 0) {
		(void)err_set(&err, ERR_UNAVAILABLE, "HTTP/2: %s",
			      nghttp2_strerror(call->stream_id));
		call_fail(call, &err);
		return;
	}
	if (conn->calls.count == 1 && !conn->ping_open) {
		uint64_t quiet_ns = loop_now_ns(conn->client->loop) - conn->heard_ns;
		if (quiet_ns > QUIET_NS)
			ask(conn);
		else
			loop_timer_set(conn->timer, conn->client->ping_every_ns);
	}
	conn->flush_due = true;
}

void h2_cancel(struct client_conn *conn, int32_t stream_id)
{
	// Late frames of this stream must not find the call. A stream that has closed meanwhile
	// has nothing to cancel: both fail then, and nothing is lost.
	(void)nghttp2_session_set_stream_user_data(conn->session, stream_id, NULL);
	(void)nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream_id,
					NGHTTP2_CANCEL);
	conn->flush_due = true;
	client_kick(conn->client);
}

void h2_timer(struct client_conn *conn)
{
	struct err err;
	uint64_t quiet_ns = loop_now_ns(conn->client->loop) - conn->heard_ns;
	if (conn->ping_open && quiet_ns < conn->client->ping_answer_ns) {
		// The answer stands behind what else is coming.
		loop_timer_set(conn->timer, conn->client->ping_answer_ns - quiet_ns);
		return;
	}
	if (conn->ping_open) {
		(void)err_set(&err, ERR_UNAVAILABLE, "the server does not answer a ping");
		conn_close(conn, &err);
		return;
	}
	if (conn->calls.count == 0)
		return;
	ask(conn);
	h2_flush(conn);
}

// ---- receiving

static int end_of_callback(const struct client_conn *conn)
{
	return conn->dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static void fail_call(struct client_conn *conn, struct http_call *call, err_status status,
		      const char *text)
{
	struct err err;
	(void)err_set(&err, status, "%s", text);
	h2_cancel(conn, call->stream_id);
	call_fail(call, &err);
}

static struct str text_of(nghttp2_rcbuf *rcbuf)
{
	nghttp2_vec vec = nghttp2_rcbuf_get_buf(rcbuf);
	return (struct str){ (const char *)vec.base, vec.len };
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
		     nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
	struct client_conn *conn = arg;
	struct http_call *call = call_of(conn, frame->hd.stream_id);
	struct str n = text_of(name), v = text_of(value);
	(void)session;
	(void)flags;
	if (call == NULL || call->headers_done) // cancelled, or trailers
		return end_of_callback(conn);
	if (str_eq_c(n, ":status")) {
		uint64_t code = 0;
		if (str_to_u64(v, &code) && code >= 100 && code <= 599)
			call->code = (int)code;
	} else if (!call_add_header(call, n, v)) {
		fail_call(conn, call, ERR_LIMIT, "the head of the answer is too large");
	}
	return end_of_callback(conn);
}

static void head_complete(struct client_conn *conn, struct http_call *call)
{
	if (call->headers_done)
		return;
	if (call->code == 0)
		fail_call(conn, call, ERR_PROTOCOL, "the answer has no status");
	else if (call->code < 200)
		call->headers.count = 0; // an interim answer, the final one follows
	else
		call->headers_done = true;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct client_conn *conn = arg;
	(void)session;
	if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
		conn->ping_open = false;
		loop_timer_set(conn->timer, conn->client->ping_every_ns);
	} else if (frame->hd.type == NGHTTP2_GOAWAY) {
		conn->draining = true;
	} else if (frame->hd.type == NGHTTP2_HEADERS) {
		struct http_call *call = call_of(conn, frame->hd.stream_id);
		if (call != NULL) {
			call_heard(call);
			head_complete(conn, call);
		}
	}
	return end_of_callback(conn);
}

static int on_body(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes,
		   size_t count, void *arg)
{
	struct client_conn *conn = arg;
	struct http_call *call = call_of(conn, stream_id);
	(void)session;
	(void)flags;
	if (call == NULL)
		return end_of_callback(conn);
	call_heard(call);
	// When it is gone, h2_cancel has told nghttp2 so.
	bool goes_on = call_receive(call, (struct str){ (const char *)bytes, count });
	(void)goes_on;
	return end_of_callback(conn);
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *arg)
{
	struct client_conn *conn = arg;
	struct http_call *call = call_of(conn, stream_id);
	struct err err;
	(void)session;
	if (call == NULL)
		return end_of_callback(conn);
	(void)nghttp2_session_set_stream_user_data(conn->session, stream_id, NULL);
	if (code == NGHTTP2_NO_ERROR && call->headers_done) {
		conn->used_before = true;
		call_succeed(call);
	} else {
		(void)err_set(&err, ERR_UNAVAILABLE, "the server reset the stream: %s",
			      nghttp2_http2_strerror(code));
		call_lost(call, code == NGHTTP2_REFUSED_STREAM, &err);
	}
	return end_of_callback(conn);
}

void h2_data(struct client_conn *conn, struct str data)
{
	conn->in_session = true;
	ssize_t used =
		nghttp2_session_mem_recv(conn->session, (const uint8_t *)data.data, data.len);
	conn->in_session = false;
	if (conn->dead)
		return;
	if (used < 0) {
		fail_session(conn, "receiving", (int)used);
		return;
	}
	h2_flush(conn);
}

// ---- start

static nghttp2_session *make_session(struct client_conn *conn)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_session *session = NULL;
	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_body);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	if (nghttp2_session_client_new(&session, callbacks, conn) != 0)
		session = NULL;
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

void h2_start(struct client_conn *conn)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 4 * HTTP1_HEAD_MAX_BYTES },
	};
	conn->session = make_session(conn);
	ASSERT(conn->session != NULL);
	int rc = nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
					 ARRAY_COUNT(settings));
	if (rc == 0)
		rc = nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0,
							   CONNECTION_WINDOW_BYTES);
	if (rc != 0) {
		fail_session(conn, "start", rc);
		return;
	}
	h2_flush(conn);
}
