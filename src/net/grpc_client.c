// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_conn.h"
#include "net/grpc_frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW_BYTES = 1024 * 1024, ERROR_TEXT_MAX_BYTES = 4096 };

struct grpc_call {
	struct loop *loop;
	struct grpc_conn io;
	bool has_io;
	struct loop_timer *timer; // the deadline, or the failure of the start
	uint64_t deadline_ns;     // 0: none
	grpc_message_fn *on_message;
	grpc_done_fn *on_done;
	void *arg;
	struct buf request; // framed
	size_t request_pos;
	struct grpc_deframer in;
	struct buf message; // the unary answer
	bool has_message;
	int http_status;
	bool has_code, is_encoded;
	enum grpc_code code;
	struct buf error;
	bool is_over;     // code and error are final; on_done follows at the end of the turn
	bool is_canceled; // canceled in its own on_message
	bool is_delivering;
};

static void call_free(struct grpc_call *call)
{
	if (call->has_io)
		grpc_conn_done(&call->io);
	loop_timer_free(call->timer);
	grpc_deframer_done(&call->in);
	buf_done(&call->request);
	buf_done(&call->message);
	buf_done(&call->error);
	free(call);
}

// The first outcome stays.
static void call_end(struct grpc_call *call, enum grpc_code code, const char *text)
{
	if (call->is_over)
		return;
	call->is_over = true;
	call->code = code;
	buf_clear(&call->error);
	buf_put_c(&call->error, text);
}

// Tells the caller and forgets the call.
static void call_deliver(struct grpc_call *call)
{
	ASSERT(call->is_over && !call->is_delivering);
	call->is_delivering = true;
	bool is_ok = call->code == GRPC_OK;
	const char *text = call->error.data == NULL ? "" : call->error.data;
	struct str message = is_ok ? buf_str(&call->message) : STR("");
	call->on_done(call->arg, call->code, is_ok ? "" : text, message);
	call_free(call);
}

static void call_turn(void *arg)
{
	struct grpc_call *call = arg;
	if (call->is_canceled) {
		call_free(call);
		return;
	}
	if (!call->is_over && grpc_conn_is_over(&call->io))
		call_end(call, GRPC_UNAVAILABLE, "the connection was closed before the answer");
	if (call->is_over)
		call_deliver(call);
}

static void call_timer(void *arg)
{
	struct grpc_call *call = arg;
	call_end(call, GRPC_DEADLINE_EXCEEDED, "no answer in time");
	call_deliver(call);
}

// ---- callbacks of nghttp2

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
		     nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
	(void)session;
	(void)frame;
	(void)flags;
	struct grpc_call *call = arg;
	struct str key = grpc_header_text(name), text = grpc_header_text(value);
	uint64_t number = 0;
	if (call->is_over)
		return 0;
	if (str_eq(key, STR(":status")) && str_to_u64(text, &number) && number < 1000) {
		call->http_status = (int)number;
	} else if (str_eq(key, STR("grpc-status"))) {
		// In the trailers, or in the only headers of an answer without a message.
		call->has_code = true;
		call->code = str_to_u64(text, &number) && number <= GRPC_UNAUTHENTICATED
				     ? (enum grpc_code)number
				     : GRPC_UNKNOWN;
	} else if (str_eq(key, STR("grpc-message"))) {
		buf_clear(&call->error);
		grpc_message_unescape(&call->error, text);
	} else if (str_eq(key, STR("grpc-encoding"))) {
		call->is_encoded = !str_eq(text, STR("identity"));
	}
	return 0;
}

// Takes the message that the deframer holds.
static void take_message(struct grpc_call *call)
{
	if (call->on_message != NULL) {
		call->on_message(call->arg, buf_str(&call->in.body));
	} else if (call->has_message) {
		call_end(call, GRPC_INTERNAL, "more than one answer to a unary call");
	} else {
		struct buf moved = call->message;
		call->message = call->in.body;
		call->in.body = moved;
		call->in.body.limit = GRPC_REPLY_MAX_BYTES;
		call->has_message = true;
	}
	grpc_deframer_next(&call->in);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes,
		   size_t size_bytes, void *arg)
{
	(void)session;
	(void)flags;
	(void)stream_id;
	struct grpc_call *call = arg;
	struct str data = { (const char *)bytes, size_bytes };
	while (!call->is_over && !call->is_canceled) {
		switch (grpc_deframer_feed(&call->in, &data)) {
		case GRPC_FRAME_PARTIAL: return 0;
		case GRPC_FRAME_MESSAGE: take_message(call); break;
		case GRPC_FRAME_COMPRESSED:
			call_end(call, GRPC_UNIMPLEMENTED, "the answer is compressed");
			break;
		case GRPC_FRAME_TOO_LARGE:
			call_end(call, GRPC_RESOURCE_EXHAUSTED, "the answer is over 16 MiB");
			break;
		case GRPC_FRAME_BROKEN:
			call_end(call, GRPC_INTERNAL, "malformed message prefix in the answer");
			break;
		}
	}
	return 0;
}

// A peer that honours grpc-timeout cancels the stream at our deadline, often before our own timer
// fires: the loop wakes up to a millisecond late.
static bool is_deadline_near(const struct grpc_call *call)
{
	enum { ROUNDING_NS = 50 * 1000 * 1000 };
	return call->deadline_ns != 0 &&
	       world_mono_ns(loop_world(call->loop)) + ROUNDING_NS >= call->deadline_ns;
}

static void end_without_code(struct grpc_call *call, uint32_t reset_code)
{
	char text[80];
	if (call->http_status != 0 && call->http_status != 200) {
		(void)snprintf(text, sizeof text, "HTTP status %d instead of an answer",
			       call->http_status);
		call_end(call, grpc_code_of_http(call->http_status), text);
		return;
	}
	(void)snprintf(text, sizeof text, "the stream was closed without a status (HTTP/2 code %u)",
		       (unsigned)reset_code);
	if (reset_code == NGHTTP2_REFUSED_STREAM)
		call_end(call, GRPC_UNAVAILABLE, text);
	else if (reset_code == NGHTTP2_CANCEL && is_deadline_near(call))
		call_end(call, GRPC_DEADLINE_EXCEEDED, "no answer in time");
	else if (reset_code == NGHTTP2_CANCEL)
		call_end(call, GRPC_CANCELLED, text);
	else
		call_end(call, GRPC_INTERNAL, text);
}

// The peer has said all it will; reset_code is 0 unless it reset the stream.
static void conclude(struct grpc_call *call, uint32_t reset_code)
{
	if (call->is_over)
		return;
	if (!call->has_code)
		end_without_code(call, reset_code);
	else if (call->code != GRPC_OK)
		call->is_over = true; // keeps the text of grpc-message
	else if (!grpc_deframer_is_idle(&call->in))
		call_end(call, GRPC_INTERNAL, "the answer ends inside a message");
	else if (call->on_message == NULL && !call->has_message)
		call_end(call, GRPC_INTERNAL, "a unary call was answered without a message");
	else
		call_end(call, GRPC_OK, "");
}

// A refusal may come before the request is sent, and the stream stays half open then.
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		conclude(arg, NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *arg)
{
	(void)session;
	(void)stream_id;
	conclude(arg, code);
	return 0;
}

static ssize_t request_read(nghttp2_session *session, int32_t stream_id, uint8_t *out,
			    size_t length, uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)session;
	(void)stream_id;
	(void)source;
	struct grpc_call *call = arg;
	size_t n = min_size(length, call->request.len - call->request_pos);
	memcpy(out, call->request.data + call->request_pos, n);
	call->request_pos += n;
	if (call->request_pos == call->request.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

// ---- start

static nghttp2_session *session_new(struct grpc_call *call)
{
	nghttp2_session *session = NULL;
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_option_set_no_http_messaging(option, 1);
		nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
		if (nghttp2_session_client_new2(&session, callbacks, call, option) != 0)
			session = NULL;
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	return session;
}

static bool submit(struct grpc_call *call, const char *method, uint64_t timeout_ns)
{
	nghttp2_session *session = call->io.session;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
	};
	char timeout[GRPC_TIMEOUT_TEXT_BYTES];
	const nghttp2_nv headers[] = {
		grpc_header(":method", STR("POST")),
		grpc_header(":scheme", STR("http")),
		grpc_header(":path", str_of(method)),
		grpc_header(":authority", STR("localhost")),
		grpc_header("content-type", STR("application/grpc")),
		grpc_header("te", STR("trailers")),
		grpc_header("user-agent", STR("gpuaas")),
		grpc_header("grpc-timeout", str_of(grpc_timeout_format(timeout_ns, timeout))),
	};
	size_t header_count = ARRAY_COUNT(headers) - (timeout_ns == 0 ? 1 : 0);
	const nghttp2_data_provider provider = { .read_callback = request_read };
	return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
				       ARRAY_COUNT(settings)) == 0 &&
	       nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES) ==
		       0 &&
	       nghttp2_submit_request(session, NULL, headers, header_count, &provider, NULL) > 0;
}

static err_status call_connect(struct grpc_call *call, const char *socket_path, struct err *err)
{
	struct sockaddr_un address;
	err_status status = grpc_socket_address(socket_path, &address, err);
	if (status != ERR_OK)
		return status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	// A unix socket connects at once or not at all; EAGAIN means that its backlog is full.
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
		status = err_sys(err, errno, "cannot connect to %s", socket_path);
		(void)close(fd); // it holds nothing
		return status;
	}
	if (!grpc_peer_is_trusted(fd)) {
		(void)close(fd); // nothing was sent
		return err_set(err, ERR_DENIED, "%s is served by another user than root",
			       socket_path);
	}
	call->io.on_turn = call_turn;
	call->io.arg = call;
	status = grpc_conn_init(&call->io, call->loop, fd, session_new(call), err);
	call->has_io = status == ERR_OK;
	return status;
}

struct grpc_call *grpc_watch_start(struct loop *loop, const struct grpc_watch_request *request)
{
	struct grpc_call *call = calloc(1, sizeof *call);
	ASSERT(call != NULL && request->on_done != NULL);
	*call = (struct grpc_call){
		.loop = loop,
		.on_message = request->on_message,
		.on_done = request->on_done,
		.arg = request->arg,
		.request.limit = GRPC_REPLY_MAX_BYTES,
		.error.limit = ERROR_TEXT_MAX_BYTES,
	};
	grpc_deframer_init(&call->in, GRPC_REPLY_MAX_BYTES);
	grpc_frame_put(&call->request, request->message);
	call->timer = loop_timer_new(loop, call_timer, call);
	struct err err = { 0 };
	if (!buf_ok(&call->request))
		call_end(call, GRPC_RESOURCE_EXHAUSTED, "the request message is too large");
	else if (call_connect(call, request->socket_path, &err) != ERR_OK)
		call_end(call, GRPC_UNAVAILABLE, err.text);
	else if (!submit(call, request->method, request->timeout_ns))
		call_end(call, GRPC_INTERNAL, "the request cannot be encoded");
	if (call->is_over) {
		loop_timer_set(call->timer, 0);
	} else if (request->timeout_ns > 0) {
		loop_timer_set(call->timer, request->timeout_ns);
		call->deadline_ns = world_mono_ns(loop_world(loop)) + request->timeout_ns;
	}
	return call;
}

struct grpc_call *grpc_call_start(struct loop *loop, const char *socket_path, const char *method,
				  struct str message, uint64_t timeout_ns, grpc_done_fn *on_done,
				  void *arg)
{
	return grpc_watch_start(loop, &(struct grpc_watch_request){ .socket_path = socket_path,
								    .method = method,
								    .message = message,
								    .timeout_ns = timeout_ns,
								    .on_done = on_done,
								    .arg = arg });
}

void grpc_call_cancel(struct grpc_call *call)
{
	if (call == NULL || call->is_delivering)
		return;
	if (call->has_io && call->io.is_in_turn)
		call->is_canceled = true;
	else
		call_free(call);
}
