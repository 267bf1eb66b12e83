// SPDX-License-Identifier: Apache-2.0
// gRPC over unix sockets on nghttp2, no more than the kubelet needs: unary and server-streaming
// methods, one request message of at most GRPC_MESSAGE_MAX_BYTES, identity encoding. Messages
// are raw protobuf bytes; encoding is the caller's. Status codes are gRPC's. One connection per
// client call; a server takes many. All runs on the loop's thread.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "sys/loop.h"

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

enum {
	GRPC_MESSAGE_MAX_BYTES = 4 * 1024 * 1024, // what a server takes and sends, as the kubelet's
	GRPC_REPLY_MAX_BYTES = 16 * 1024 * 1024,  // what a client takes (PodResources lists)
	GRPC_SERVER_CONNECTIONS_MAX = 64,
	GRPC_STREAMS_MAX = 128, // of one connection
};

struct grpc_server;
struct grpc_stream; // one call being answered; dead after grpc_finish or its on_closed

// Called with the request message, which lives until the function returns; answer now or later
// by grpc_send and grpc_finish. Who answers later registers grpc_stream_on_closed first.
typedef void grpc_method_fn(void *arg, struct grpc_stream *stream, struct str message);

struct grpc_method {
	const char *path; // "/v1beta1.DevicePlugin/Allocate"
	grpc_method_fn *fn;
};

// Listens on socket_path (an old socket file is removed; mode 0700 on the socket; who is neither
// root nor our own user is refused, as a server of theirs is by the client below). The table of
// methods stays the caller's and must outlive the server.
MUST_USE err_status grpc_server_new(struct loop *loop, const char *socket_path,
				    const struct grpc_method *methods, size_t method_count,
				    void *arg, struct grpc_server **ret, struct err *err);
// NULL allowed; cuts all calls (on_closed is called) and removes the socket file if it is still
// this server's. Allowed inside callbacks of this server.
void grpc_server_free(struct grpc_server *server);
// Several for streams. A message over the limit ends the call with RESOURCE_EXHAUSTED, and so
// do more than four such messages that a slow peer has not read; on_closed follows then.
void grpc_send(struct grpc_stream *stream, struct str message);
void grpc_finish(struct grpc_stream *stream, enum grpc_code code, const char *message);
// on_closed is called once if the peer resets, its deadline passes or the connection ends before
// grpc_finish.
void grpc_stream_on_closed(struct grpc_stream *stream, loop_fn *on_closed, void *arg);

// Unary client call, its own connection; on_done exactly once, never from inside the call.
// error and message live until on_done returns; message is empty unless GRPC_OK. timeout 0: none.
typedef void grpc_done_fn(void *arg, enum grpc_code code, const char *error, struct str message);
struct grpc_call;
struct grpc_call *grpc_call_start(struct loop *loop, const char *socket_path, const char *method,
				  struct str message, uint64_t timeout_ns, grpc_done_fn *on_done,
				  void *arg);

// Server-streaming call: on_message for each message, then on_done with an empty message.
typedef void grpc_message_fn(void *arg, struct str message);
struct grpc_watch_request {
	const char *socket_path, *method;
	struct str message;
	uint64_t timeout_ns;
	grpc_message_fn *on_message;
	grpc_done_fn *on_done;
	void *arg;
};
struct grpc_call *grpc_watch_start(struct loop *loop, const struct grpc_watch_request *request);
void grpc_call_cancel(struct grpc_call *call); // on_done is not called any more
