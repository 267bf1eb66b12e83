// SPDX-License-Identifier: Apache-2.0
// One connected unix socket with one HTTP/2 session on it, as gRPC server and client share it:
// it moves bytes between socket and nghttp2 and tells the owner after each turn. It owns socket
// and session; whose streams they are, it does not know. Callbacks of nghttp2 may submit frames
// but never free the connection; the owner does that in on_turn, at the end of a turn.
#pragma once

#include "base/buf.h"
#include "sys/loop.h"

#include <nghttp2/nghttp2.h>
#include <sys/un.h>

struct grpc_conn {
	int fd;
	struct loop_fd *watch;
	nghttp2_session *session;
	struct buf out;   // serialized frames that the socket has not taken
	bool is_in_turn;  // a turn ends with writing anyway
	bool is_dead;     // socket or session failed, or the peer closed
	loop_fn *on_turn; // may free the connection
	void *arg;
};

// Takes over fd and session, also on failure.
MUST_USE err_status grpc_conn_init(struct grpc_conn *conn, struct loop *loop, int owned_fd,
				   nghttp2_session *owned_session, struct err *err);
void grpc_conn_done(struct grpc_conn *conn);
// Frames were submitted: they are written at the end of this turn, else in the next.
void grpc_conn_want_write(struct grpc_conn *conn);
// Writes what the socket takes now, without waiting (a farewell before grpc_conn_done).
void grpc_conn_flush(struct grpc_conn *conn);
// Nothing is left to do on it.
bool grpc_conn_is_over(const struct grpc_conn *conn);

// Address of a socket file; ERR_INVALID when the path is empty or too long for the kernel.
MUST_USE err_status grpc_socket_address(const char *path, struct sockaddr_un *ret_address,
					struct err *err);
// Whether who is at the other end of a connected socket is root, or runs as we do: a socket's
// folder may be open to more than that.
bool grpc_peer_is_trusted(int fd);
// A header as nghttp2 takes it; name and value are copied by nghttp2 when submitted.
nghttp2_nv grpc_header(const char *name, struct str value);
// A header's text as nghttp2 hands it over.
struct str grpc_header_text(nghttp2_rcbuf *text);
