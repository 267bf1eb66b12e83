// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ_BYTES = 16 * 1024,
	READS_MAX = 32, // of one turn, so that one peer cannot hold the loop
	OUT_HIGH_BYTES = 64 * 1024,
};

static void conn_read(struct grpc_conn *conn)
{
	uint8_t bytes[READ_BYTES];
	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = read(conn->fd, bytes, sizeof bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || nghttp2_session_mem_recv(conn->session, bytes, (size_t)n) != n) {
			conn->is_dead = true;
			return;
		}
		if ((size_t)n < sizeof bytes)
			return;
	}
}

// Fills the output buffer from the session up to the high mark, so that the frames of a short
// answer leave in one write.
static void conn_serialize(struct grpc_conn *conn)
{
	while (conn->out.len < OUT_HIGH_BYTES) {
		const uint8_t *bytes = NULL;
		ssize_t n = nghttp2_session_mem_send(conn->session, &bytes);
		if (n > 0)
			buf_put_bytes(&conn->out, bytes, (size_t)n);
		if (n < 0 || !buf_ok(&conn->out))
			conn->is_dead = true;
		if (n <= 0 || conn->is_dead)
			return;
	}
}

static void conn_write(struct grpc_conn *conn)
{
	for (;;) {
		conn_serialize(conn);
		if (conn->is_dead || conn->out.len == 0)
			return;
		ssize_t n = send(conn->fd, conn->out.data, conn->out.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			conn->is_dead = true;
			return;
		}
		buf_consume(&conn->out, (size_t)n);
	}
}

static void conn_event(void *arg, unsigned events)
{
	struct grpc_conn *conn = arg;
	ASSERT(!conn->is_in_turn);
	conn->is_in_turn = true;
	if (!conn->is_dead && (events & LOOP_READ) != 0)
		conn_read(conn);
	// What the peer sent before it closed may still be answered by others; writing to a closed
	// peer fails at once and harms nobody.
	if (!conn->is_dead)
		conn_write(conn);
	conn->is_in_turn = false;
	if (!conn->is_dead)
		loop_fd_set(conn->watch, conn->out.len > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
	conn->on_turn(conn->arg);
}

err_status grpc_conn_init(struct grpc_conn *conn, struct loop *loop, int owned_fd,
			  nghttp2_session *owned_session, struct err *err)
{
	ASSERT(owned_fd >= 0 && conn->on_turn != NULL);
	conn->fd = owned_fd;
	conn->session = owned_session;
	conn->out.limit = (size_t)OUT_HIGH_BYTES * 4;
	if (owned_session == NULL) {
		grpc_conn_done(conn);
		return err_set(err, ERR_LIMIT, "no memory for an HTTP/2 session");
	}
	err_status status = loop_fd_new(loop, owned_fd, LOOP_READ | LOOP_WRITE, conn_event, conn,
					&conn->watch, err);
	if (status != ERR_OK)
		grpc_conn_done(conn);
	return status;
}

void grpc_conn_done(struct grpc_conn *conn)
{
	ASSERT(!conn->is_in_turn);
	loop_fd_free(conn->watch);
	nghttp2_session_del(conn->session);
	if (conn->fd >= 0)
		(void)close(conn->fd); // nothing can be done about a failing close
	buf_done(&conn->out);
	conn->watch = NULL;
	conn->session = NULL;
	conn->fd = -1;
}

void grpc_conn_want_write(struct grpc_conn *conn)
{
	if (!conn->is_in_turn && !conn->is_dead)
		loop_fd_set(conn->watch, LOOP_READ | LOOP_WRITE);
}

void grpc_conn_flush(struct grpc_conn *conn)
{
	ASSERT(!conn->is_in_turn);
	if (conn->is_dead)
		return;
	conn->is_in_turn = true;
	conn_write(conn);
	conn->is_in_turn = false;
}

bool grpc_conn_is_over(const struct grpc_conn *conn)
{
	return conn->is_dead ||
	       (nghttp2_session_want_read(conn->session) == 0 &&
		nghttp2_session_want_write(conn->session) == 0 && conn->out.len == 0);
}

err_status grpc_socket_address(const char *path, struct sockaddr_un *ret_address, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof address.sun_path)
		return err_set(err, ERR_INVALID,
			       "socket path \"%s\" must have 1 to %zu bytes, it has %zu", path,
			       sizeof address.sun_path - 1, len);
	memcpy(address.sun_path, path, len);
	*ret_address = address;
	return ERR_OK;
}

bool grpc_peer_is_trusted(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t peer_bytes = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

nghttp2_nv grpc_header(const char *name, struct str value)
{
	// nghttp2 takes pointers to mutable bytes but, without the NO_COPY flags, only reads them.
	union {
		const char *given;
		uint8_t *wanted;
	} name_bytes = { name }, value_bytes = { value.data == NULL ? "" : value.data };
	return (nghttp2_nv){
		.name = name_bytes.wanted,
		.namelen = strlen(name),
		.value = value_bytes.wanted,
		.valuelen = value.len,
		.flags = NGHTTP2_NV_FLAG_NONE,
	};
}

struct str grpc_header_text(nghttp2_rcbuf *text)
{
	nghttp2_vec bytes = nghttp2_rcbuf_get_buf(text);
	return (struct str){ (const char *)bytes.base, bytes.len };
}
