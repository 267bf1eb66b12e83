// SPDX-License-Identifier: Apache-2.0
// Inside of the gRPC server, between its two files: grpc_stream.c is one call from its headers
// to its trailers, grpc_server.c the listening socket and the connections. A stream belongs to
// its connection and dies in nghttp2's close callback or with the connection, never elsewhere.
#pragma once

#include "net/grpc_conn.h"
#include "net/grpc_frame.h"

#include <sys/stat.h>

struct server_conn;

enum { GRPC_PATH_MAX_BYTES = 256 };

struct grpc_stream {
	struct server_conn *owner;
	struct grpc_stream *prev, *next;
	int32_t id;
	char path[GRPC_PATH_MAX_BYTES];
	bool is_post, is_grpc, is_encoded; // what the request's headers say
	uint64_t timeout_ns;
	struct loop_timer *deadline;
	struct grpc_deframer in;
	bool has_message, is_dispatched;
	struct buf out; // framed messages, sent up to out_pos
	size_t out_pos;
	bool is_submitted; // response headers are with nghttp2
	bool is_deferred;  // nghttp2 waits for more data
	bool is_ended;     // code and text are final
	bool is_released;  // the handler does not know the stream any more
	enum grpc_code code;
	struct buf text; // escaped grpc-message
	loop_fn *on_closed;
	void *on_closed_arg;
};

struct server_conn {
	struct grpc_server *server;
	struct server_conn *prev, *next;
	struct grpc_conn io;
	struct grpc_stream *streams;
	size_t stream_count;
};

struct grpc_server {
	struct loop *loop;
	char *socket_path;
	struct stat socket_stat; // to remove only our own file
	int fd;
	struct loop_fd *watch;
	struct loop_timer *accept_pause;
	const struct grpc_method *methods;
	size_t method_count;
	void *arg;
	struct server_conn *conns;
	size_t conn_count;
	unsigned busy_count; // turns in progress that still touch the server
	bool is_dying;
};

// NULL when there is no memory.
struct grpc_stream *grpc_stream_new(struct server_conn *conn, int32_t id);
void grpc_stream_free(struct grpc_stream *stream); // tells the handler if it waits
void grpc_stream_take_header(struct grpc_stream *stream, struct str name, struct str value);
void grpc_stream_check_headers(struct grpc_stream *stream); // all have come
void grpc_stream_take_data(struct grpc_stream *stream, struct str data);
void grpc_stream_dispatch(struct grpc_stream *stream); // the request is complete
