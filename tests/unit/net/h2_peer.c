// SPDX-License-Identifier: Apache-2.0
#include "h2_peer.h"

#include "base/buf.h"
#include "net/sock.h"
#include "net/stream.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct peer_conn {
	struct h2_peer *peer;
	struct peer_conn *next;
	struct stream *stream;
	nghttp2_session *session;
	bool end_due;
};

struct peer_request {
	char method[16], path[100];
	struct buf body;
	struct buf out;
	size_t out_sent, size_left; // size_left: of /size
	bool dies;
};

static void flush(struct peer_conn *conn)
{
	const uint8_t *bytes = NULL;
	ssize_t count;
	while ((count = nghttp2_session_mem_send(conn->session, &bytes)) > 0)
		stream_write(conn->stream, (struct str){ (const char *)bytes, (size_t)count });
	if (conn->end_due)
		stream_shutdown(conn->stream);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t out_bytes,
			 uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct peer_request *request = source->ptr;
	struct peer_conn *conn = arg;
	(void)session;
	(void)id;
	size_t count = min_size(out_bytes, request->out.len - request->out_sent);
	if (request->size_left > 0) {
		count = min_size(out_bytes, request->size_left);
		memset(out, 'x', count);
		request->size_left -= count;
	} else {
		memcpy(out, request->out.data + request->out_sent, count);
		request->out_sent += count;
	}
	bool over = request->out_sent == request->out.len && request->size_left == 0;
	if (over && !request->dies)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (over && request->dies) {
		conn->end_due = true;
		if (count == 0)
			return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)count;
}

static nghttp2_nv header(const char *name, const char *value)
{
	union {
		const char *in;
		uint8_t *out;
	} n = { .in = name }, v = { .in = value };
	return (nghttp2_nv){ n.out, v.out, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static void respond(struct peer_conn *conn, int32_t id, struct peer_request *request)
{
	nghttp2_nv headers[] = { header(":status", "200"), header("x-answer", "yes") };
	nghttp2_data_provider body = { .source.ptr = request, .read_callback = read_body };
	int rc = nghttp2_submit_response(conn->session, id, headers, ARRAY_COUNT(headers), &body);
	ASSERT(rc == 0);
}

static void reset(struct peer_conn *conn, int32_t id, uint32_t code)
{
	int rc = nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, id, code);
	ASSERT(rc == 0);
}

static void go_away(struct peer_conn *conn, int32_t last_id)
{
	int rc = nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, last_id, NGHTTP2_NO_ERROR,
				       NULL, 0);
	ASSERT(rc == 0);
}

static void answer(struct peer_conn *conn, int32_t id, struct peer_request *request)
{
	struct h2_peer *peer = conn->peer;
	struct str path = str_of(request->path);
	peer->requests++;
	if (str_eq_c(path, "/hang"))
		return;
	if (str_eq_c(path, "/refuse") && peer->refuse_count > 0) {
		peer->refuse_count--;
		reset(conn, id, NGHTTP2_REFUSED_STREAM);
		return;
	}
	if (str_eq_c(path, "/reset")) {
		reset(conn, id, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	if (str_eq_c(path, "/goaway") && peer->refuse_count > 0) {
		peer->refuse_count--;
		go_away(conn, id > 2 ? id - 2 : 0);
		return;
	}
	if (str_eq_c(path, "/interim")) {
		nghttp2_nv early[] = { header(":status", "103"), header("x-answer", "early") };
		int rc = nghttp2_submit_headers(conn->session, NGHTTP2_FLAG_NONE, id, NULL, early,
						ARRAY_COUNT(early), NULL);
		ASSERT(rc == 0);
	}
	uint64_t size = 0;
	if (str_starts(path, STR("/size?n=")) && str_to_u64(str_slice(path, 8, path.len), &size))
		request->size_left = size;
	else
		buf_printf(&request->out, "%s %s|" STR_FMT, request->method, request->path,
			   STR_ARG(str_slice(buf_str(&request->body), 0, 20)));
	request->dies = str_eq_c(path, "/die");
	respond(conn, id, request);
	if (str_eq_c(path, "/last"))
		go_away(conn, id);
}

// ---- nghttp2

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct peer_conn *conn = arg;
	struct peer_request *request = calloc(1, sizeof *request);
	ASSERT(request != NULL);
	conn->peer->streams_open++;
	conn->peer->streams_most = max_size(conn->peer->streams_most, conn->peer->streams_open);
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, request);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
		     nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
	struct peer_request *request =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	nghttp2_vec n = nghttp2_rcbuf_get_buf(name), v = nghttp2_rcbuf_get_buf(value);
	struct str key = { (const char *)n.base, n.len }, text = { (const char *)v.base, v.len };
	(void)flags;
	(void)arg;
	if (str_eq_c(key, ":method"))
		(void)snprintf(request->method, sizeof request->method, STR_FMT, STR_ARG(text));
	if (str_eq_c(key, ":path"))
		(void)snprintf(request->path, sizeof request->path, STR_FMT, STR_ARG(text));
	return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		    size_t count, void *arg)
{
	struct peer_request *request = nghttp2_session_get_stream_user_data(session, id);
	(void)flags;
	(void)arg;
	buf_put_bytes(&request->body, bytes, count);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	if (ends && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		answer(arg, frame->hd.stream_id,
		       nghttp2_session_get_stream_user_data(session, frame->hd.stream_id));
	return 0;
}

static void request_free(struct peer_request *request)
{
	buf_done(&request->body);
	buf_done(&request->out);
	free(request);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct peer_conn *conn = arg;
	struct peer_request *request = nghttp2_session_get_stream_user_data(session, id);
	conn->peer->cancelled += code == NGHTTP2_CANCEL;
	conn->peer->streams_open--;
	if (request != NULL)
		request_free(request);
	return 0;
}

static void start_session(struct peer_conn *conn)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_settings_entry settings[] = { { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
						conn->peer->streams_max } };
	int rc = nghttp2_session_callbacks_new(&callbacks);
	ASSERT(rc == 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	rc = nghttp2_session_server_new(&conn->session, callbacks, conn);
	ASSERT(rc == 0);
	nghttp2_session_callbacks_del(callbacks);
	rc = nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, 1);
	ASSERT(rc == 0);
}

// ---- connections

static void on_opened(void *arg)
{
	struct peer_conn *conn = arg;
	ASSERT(tls_conn_is_h2(stream_tls(conn->stream)));
	start_session(conn);
	flush(conn);
}

static void on_data(void *arg, struct str data)
{
	struct peer_conn *conn = arg;
	if (conn->peer->deaf || conn->end_due)
		return;
	ssize_t used =
		nghttp2_session_mem_recv(conn->session, (const uint8_t *)data.data, data.len);
	ASSERT(used == (ssize_t)data.len);
	flush(conn);
}

static void on_drained(void *arg) { (void)arg; }

static void conn_end(struct peer_conn *conn)
{
	struct h2_peer *peer = conn->peer;
	struct peer_conn **at = &peer->conns;
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	for (int32_t id = 1; conn->session != NULL && id < 1000; id += 2) {
		struct peer_request *request =
			nghttp2_session_get_stream_user_data(conn->session, id);
		if (request == NULL)
			continue;
		peer->streams_open--;
		request_free(request);
	}
	nghttp2_session_del(conn->session);
	stream_free(conn->stream);
	free(conn);
}

static void on_ended(void *arg) { conn_end(arg); }

static void on_failed(void *arg, const struct err *err)
{
	(void)err;
	conn_end(arg);
}

static const struct stream_handler peer_handler = {
	.opened = on_opened,
	.data = on_data,
	.drained = on_drained,
	.ended = on_ended,
	.failed = on_failed,
};

static void on_listen(void *arg, unsigned events)
{
	struct h2_peer *peer = arg;
	struct sock_address address;
	int fd = -1;
	(void)events;
	while (sock_accept(peer->listen_fd, &fd, &address) == 1) {
		struct peer_conn *conn = calloc(1, sizeof *conn);
		struct tls_conn *tls = NULL;
		ASSERT(conn != NULL);
		peer->connections++;
		*conn = (struct peer_conn){ .peer = peer, .next = peer->conns };
		peer->conns = conn;
		err_status status = tls_conn_accept(peer->tls, fd, &tls, NULL);
		ASSERT(status == ERR_OK);
		status = stream_new(peer->loop, fd, tls, &peer_handler, conn, &conn->stream, NULL);
		ASSERT(status == ERR_OK);
	}
}

void h2_peer_start(struct h2_peer *peer, struct loop *loop, struct tls_ctx *tls)
{
	uint16_t port = 0;
	*peer = (struct h2_peer){ .loop = loop, .tls = tls, .streams_max = 100 };
	err_status status = sock_listen("127.0.0.1:0", &peer->listen_fd, &port, NULL);
	ASSERT(status == ERR_OK);
	status = loop_fd_new(loop, peer->listen_fd, LOOP_READ, on_listen, peer, &peer->watch, NULL);
	ASSERT(status == ERR_OK);
	(void)snprintf(peer->base, sizeof peer->base, "https://127.0.0.1:%u", (unsigned)port);
}

void h2_peer_stop(struct h2_peer *peer)
{
	while (peer->conns != NULL)
		conn_end(peer->conns);
	loop_fd_free(peer->watch);
	(void)close(peer->listen_fd);
}
