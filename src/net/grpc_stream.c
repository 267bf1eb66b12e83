// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_stream.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	STREAM_OUT_MAX_BYTES = 4 * (GRPC_MESSAGE_MAX_BYTES + GRPC_PREFIX_BYTES),
	OUT_KEEP_BYTES = 64 * 1024, // a bigger drained buffer goes back to the system
	MESSAGE_TEXT_MAX_BYTES = 4096,
};

struct grpc_stream *grpc_stream_new(struct server_conn *conn, int32_t id)
{
	struct grpc_stream *stream = calloc(1, sizeof *stream);
	if (stream == NULL)
		return NULL;
	stream->owner = conn;
	stream->id = id;
	stream->out.limit = STREAM_OUT_MAX_BYTES;
	stream->text.limit = MESSAGE_TEXT_MAX_BYTES;
	grpc_deframer_init(&stream->in, GRPC_MESSAGE_MAX_BYTES);
	stream->next = conn->streams;
	if (conn->streams != NULL)
		conn->streams->prev = stream;
	conn->streams = stream;
	conn->stream_count++;
	return stream;
}

static void stream_release(struct grpc_stream *stream)
{
	if (stream->is_released)
		return;
	stream->is_released = true;
	if (stream->on_closed != NULL)
		stream->on_closed(stream->on_closed_arg);
}

void grpc_stream_free(struct grpc_stream *stream)
{
	stream_release(stream);
	struct server_conn *conn = stream->owner;
	if (stream->prev != NULL)
		stream->prev->next = stream->next;
	else
		conn->streams = stream->next;
	if (stream->next != NULL)
		stream->next->prev = stream->prev;
	ASSERT(conn->stream_count > 0);
	conn->stream_count--;
	loop_timer_free(stream->deadline);
	grpc_deframer_done(&stream->in);
	buf_done(&stream->out);
	buf_done(&stream->text);
	free(stream);
}

static size_t stream_trailers(const struct grpc_stream *stream, char code[4], nghttp2_nv out[2])
{
	(void)snprintf(code, 4, "%u", (unsigned)stream->code);
	out[0] = grpc_header("grpc-status", str_of(code));
	if (stream->text.len == 0)
		return 1;
	out[1] = grpc_header("grpc-message", buf_str(&stream->text));
	return 2;
}

// nghttp2 asks for the next bytes of a response.
static ssize_t stream_read(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t length,
			   uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)arg;
	struct grpc_stream *stream = source->ptr;
	size_t n = min_size(length, stream->out.len - stream->out_pos);
	if (n == 0 && !stream->is_ended) {
		stream->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n > 0)
		memcpy(out, stream->out.data + stream->out_pos, n);
	stream->out_pos += n;
	if (stream->out_pos < stream->out.len)
		return (ssize_t)n;
	stream->out_pos = 0;
	buf_clear(&stream->out);
	if (stream->out.cap > OUT_KEEP_BYTES)
		buf_done(&stream->out);
	if (stream->is_ended) {
		char code[4];
		nghttp2_nv trailers[2];
		size_t count = stream_trailers(stream, code, trailers);
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, stream_id, trailers, count) != 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

// Hands what changed to nghttp2: the response's headers at first, then a wake-up. Failures here
// mean that the stream is closing; its close callback ends it.
static void stream_push(struct grpc_stream *stream)
{
	nghttp2_session *session = stream->owner->io.session;
	char code[4];
	nghttp2_nv headers[4] = { grpc_header(":status", STR("200")),
				  grpc_header("content-type", STR("application/grpc")) };
	if (!stream->is_submitted && stream->is_ended && stream->out.len == 0) {
		size_t count = 2 + stream_trailers(stream, code, headers + 2);
		(void)nghttp2_submit_response(session, stream->id, headers, count, NULL);
	} else if (!stream->is_submitted) {
		nghttp2_data_provider provider = { .source.ptr = stream,
						   .read_callback = stream_read };
		(void)nghttp2_submit_response(session, stream->id, headers, 2, &provider);
	} else if (stream->is_deferred) {
		stream->is_deferred = false;
		(void)nghttp2_session_resume_data(session, stream->id);
	}
	stream->is_submitted = true;
	grpc_conn_want_write(&stream->owner->io);
}

static void stream_end(struct grpc_stream *stream, enum grpc_code code, const char *message)
{
	if (stream->is_ended)
		return;
	stream->is_ended = true;
	stream->code = code;
	if (message != NULL && code != GRPC_OK)
		grpc_message_escape(&stream->text,
				    str_slice(str_of(message), 0, MESSAGE_TEXT_MAX_BYTES / 3 - 1));
	stream_push(stream);
}

static void stream_deadline(void *arg)
{
	struct grpc_stream *stream = arg;
	struct server_conn *conn = stream->owner;
	conn->server->busy_count++;
	stream_end(stream, GRPC_DEADLINE_EXCEEDED, "the call's deadline has passed");
	stream_release(stream);
	conn->server->busy_count--;
	if (conn->server->is_dying)
		grpc_server_free(conn->server);
}

// Ends a call that never reached a handler.
static void stream_refuse(struct grpc_stream *stream, enum grpc_code code, const char *message)
{
	stream->is_dispatched = true;
	stream->is_released = true;
	stream_end(stream, code, message);
}

static const struct grpc_method *stream_method(const struct grpc_stream *stream)
{
	const struct grpc_server *server = stream->owner->server;
	for (size_t i = 0; i < server->method_count; i++)
		if (strcmp(server->methods[i].path, stream->path) == 0)
			return &server->methods[i];
	return NULL;
}

// nghttp2 is told not to check messages, because old kubelets send the socket's path as
// :authority; what matters here is checked in grpc_stream_check_headers.
void grpc_stream_take_header(struct grpc_stream *stream, struct str name, struct str value)
{
	if (str_eq(name, STR(":method"))) {
		stream->is_post = str_eq(value, STR("POST"));
	} else if (str_eq(name, STR(":path"))) {
		if (value.len > 0 && value.len < sizeof stream->path) {
			memcpy(stream->path, value.data, value.len);
			stream->path[value.len] = '\0';
		}
	} else if (str_eq(name, STR("content-type"))) {
		stream->is_grpc = str_starts(value, STR("application/grpc"));
	} else if (str_eq(name, STR("grpc-encoding"))) {
		stream->is_encoded = !str_eq(value, STR("identity"));
	} else if (str_eq(name, STR("grpc-timeout"))) {
		if (!grpc_timeout_parse(value, &stream->timeout_ns))
			stream->is_post = false;
	}
}

// The request's headers are complete: refuse early what no message can make right.
void grpc_stream_check_headers(struct grpc_stream *stream)
{
	char text[GRPC_PATH_MAX_BYTES + 32];
	if (!stream->is_post || !stream->is_grpc) {
		stream_refuse(stream, GRPC_INTERNAL, "not a gRPC request");
	} else if (stream->is_encoded) {
		stream_refuse(stream, GRPC_UNIMPLEMENTED, "only identity encoding is understood");
	} else if (stream_method(stream) == NULL) {
		(void)snprintf(text, sizeof text, "unknown method %s", stream->path);
		stream_refuse(stream, GRPC_UNIMPLEMENTED, text);
	} else if (stream->timeout_ns > 0) {
		struct loop *loop = stream->owner->server->loop;
		stream->deadline = loop_timer_new(loop, stream_deadline, stream);
		loop_timer_set(stream->deadline, stream->timeout_ns);
	}
}

void grpc_stream_take_data(struct grpc_stream *stream, struct str data)
{
	if (stream->is_dispatched)
		return;
	if (stream->has_message && data.len > 0) {
		stream_refuse(stream, GRPC_INTERNAL, "more than one request message");
		return;
	}
	switch (grpc_deframer_feed(&stream->in, &data)) {
	case GRPC_FRAME_PARTIAL: return;
	case GRPC_FRAME_MESSAGE: stream->has_message = true; break;
	case GRPC_FRAME_COMPRESSED:
		stream_refuse(stream, GRPC_UNIMPLEMENTED, "compressed messages are not understood");
		return;
	case GRPC_FRAME_TOO_LARGE:
		stream_refuse(stream, GRPC_RESOURCE_EXHAUSTED, "the message is over 4 MiB");
		return;
	case GRPC_FRAME_BROKEN:
		stream_refuse(stream, GRPC_INTERNAL, "malformed message prefix");
		return;
	}
	if (data.len > 0)
		stream_refuse(stream, GRPC_INTERNAL, "more than one request message");
}

void grpc_stream_dispatch(struct grpc_stream *stream)
{
	if (stream->is_dispatched)
		return;
	if (!stream->has_message) {
		stream_refuse(stream, GRPC_INTERNAL, "the request message is missing or cut");
		return;
	}
	stream->is_dispatched = true;
	const struct grpc_method *method = stream_method(stream);
	ASSERT(method != NULL);
	// Moved out, so that it outlives a stream that ends inside the handler.
	struct grpc_deframer in = stream->in;
	grpc_deframer_init(&stream->in, GRPC_MESSAGE_MAX_BYTES);
	method->fn(stream->owner->server->arg, stream, buf_str(&in.body));
	grpc_deframer_done(&in);
}

void grpc_send(struct grpc_stream *stream, struct str message)
{
	ASSERT(!stream->is_released && stream->is_dispatched);
	if (stream->is_ended)
		return;
	buf_consume(&stream->out, stream->out_pos);
	stream->out_pos = 0;
	if (message.len <= GRPC_MESSAGE_MAX_BYTES)
		grpc_frame_put(&stream->out, message);
	if (message.len > GRPC_MESSAGE_MAX_BYTES || !buf_ok(&stream->out)) {
		// Half a frame may be in the buffer; the peer gets the code instead.
		buf_clear(&stream->out);
		stream_end(stream, GRPC_RESOURCE_EXHAUSTED,
			   message.len > GRPC_MESSAGE_MAX_BYTES
				   ? "the answer is over 4 MiB"
				   : "the peer does not read its messages");
		return;
	}
	stream_push(stream);
}

void grpc_finish(struct grpc_stream *stream, enum grpc_code code, const char *message)
{
	ASSERT(!stream->is_released && stream->is_dispatched);
	stream->is_released = true;
	stream_end(stream, code, message);
}

void grpc_stream_on_closed(struct grpc_stream *stream, loop_fn *on_closed, void *arg)
{
	ASSERT(!stream->is_released);
	stream->on_closed = on_closed;
	stream->on_closed_arg = arg;
}
