// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW_BYTES = 1024 * 1024, HEADER_LIST_MAX_BYTES = 16 * 1024, BACKLOG = 64 };
#define ACCEPT_PAUSE_NS UINT64_C(100000000)

// ---- callbacks of nghttp2

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct server_conn *conn = arg;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (conn->stream_count >= GRPC_STREAMS_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	struct grpc_stream *stream = grpc_stream_new(conn, frame->hd.stream_id);
	if (stream == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
		     nghttp2_rcbuf *value, uint8_t flags, void *arg)
{
	(void)flags;
	(void)arg;
	struct grpc_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	// Trailers of a client say nothing to us.
	if (stream != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_stream_take_header(stream, grpc_header_text(name), grpc_header_text(value));
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t size_bytes, void *arg)
{
	(void)flags;
	(void)arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(session, stream_id);
	if (stream != NULL)
		grpc_stream_take_data(stream, (struct str){ (const char *)data, size_bytes });
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)arg;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	struct grpc_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (stream == NULL)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_stream_check_headers(stream);
	if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		grpc_stream_dispatch(stream);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *arg)
{
	(void)code;
	(void)arg;
	struct grpc_stream *stream = nghttp2_session_get_stream_user_data(session, stream_id);
	if (stream != NULL)
		grpc_stream_free(stream);
	return 0;
}

static nghttp2_session *session_new(struct server_conn *conn)
{
	nghttp2_session *session = NULL;
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_option_set_no_http_messaging(option, 1);
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
									on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
		if (nghttp2_session_server_new2(&session, callbacks, conn, option) != 0)
			session = NULL;
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	if (session == NULL)
		return NULL;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX_BYTES },
	};
	if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_COUNT(settings)) !=
		    0 ||
	    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES) !=
		    0) {
		nghttp2_session_del(session);
		return NULL;
	}
	return session;
}

// ---- connections

static void conn_free(struct server_conn *conn)
{
	struct grpc_server *server = conn->server;
	while (conn->streams != NULL)
		grpc_stream_free(conn->streams);
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		server->conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	ASSERT(server->conn_count > 0);
	server->conn_count--;
	grpc_conn_done(&conn->io);
	free(conn);
}

static void conn_turn(void *arg)
{
	struct server_conn *conn = arg;
	struct grpc_server *server = conn->server;
	if (grpc_conn_is_over(&conn->io)) {
		server->busy_count++;
		conn_free(conn);
		server->busy_count--;
	}
	if (server->is_dying)
		grpc_server_free(server);
}

static void conn_new(struct grpc_server *server, int owned_fd)
{
	struct server_conn *conn = NULL;
	if (server->conn_count < GRPC_SERVER_CONNECTIONS_MAX && grpc_peer_is_trusted(owned_fd))
		conn = calloc(1, sizeof *conn);
	if (conn == NULL) {
		(void)close(owned_fd); // the peer sees that it was refused
		return;
	}
	conn->server = server;
	conn->io.on_turn = conn_turn;
	conn->io.arg = conn;
	if (grpc_conn_init(&conn->io, server->loop, owned_fd, session_new(conn), NULL) != ERR_OK) {
		free(conn);
		return;
	}
	conn->next = server->conns;
	if (server->conns != NULL)
		server->conns->prev = conn;
	server->conns = conn;
	server->conn_count++;
}

// ---- the listening socket

static void accept_resume(void *arg)
{
	struct grpc_server *server = arg;
	loop_fd_set(server->watch, LOOP_READ);
}

static void accept_ready(void *arg, unsigned events)
{
	(void)events;
	struct grpc_server *server = arg;
	for (int i = 0; i < BACKLOG; i++) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			conn_new(server, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN) {
			// Out of descriptors: the waiting peer would wake us without end.
			loop_fd_set(server->watch, 0);
			loop_timer_set(server->accept_pause, ACCEPT_PAUSE_NS);
		}
		return;
	}
}

static err_status remove_stale(const char *path, struct err *err)
{
	struct stat found;
	if (lstat(path, &found) != 0)
		return errno == ENOENT ? ERR_OK : err_sys(err, errno, "%s", path);
	if (!S_ISSOCK(found.st_mode))
		return err_set(err, ERR_CONFLICT, "%s is there and is no socket", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot remove %s", path);
	return ERR_OK;
}

static err_status server_listen(struct grpc_server *server, struct err *err)
{
	struct sockaddr_un address;
	err_status status = grpc_socket_address(server->socket_path, &address, err);
	if (status == ERR_OK)
		status = remove_stale(server->socket_path, err);
	if (status != ERR_OK)
		return status;
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->fd < 0)
		return err_sys(err, errno, "socket");
	// The mode set before bind is the mode of the file, so that there is no moment in which
	// others may connect.
	if (fchmod(server->fd, 0700) != 0 ||
	    bind(server->fd, (const struct sockaddr *)&address, sizeof address) != 0)
		return err_sys(err, errno, "cannot bind %s", server->socket_path);
	if (lstat(server->socket_path, &server->socket_stat) != 0 ||
	    listen(server->fd, BACKLOG) != 0)
		return err_sys(err, errno, "cannot listen on %s", server->socket_path);
	return loop_fd_new(server->loop, server->fd, LOOP_READ, accept_ready, server,
			   &server->watch, err);
}

err_status grpc_server_new(struct loop *loop, const char *socket_path,
			   const struct grpc_method *methods, size_t method_count, void *arg,
			   struct grpc_server **ret, struct err *err)
{
	struct grpc_server *server = calloc(1, sizeof *server);
	if (server == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a gRPC server");
	server->loop = loop;
	server->fd = -1;
	server->methods = methods;
	server->method_count = method_count;
	server->arg = arg;
	server->socket_path = strdup(socket_path);
	server->accept_pause = loop_timer_new(loop, accept_resume, server);
	err_status status = ERR_OK;
	if (server->socket_path == NULL)
		status = err_set(err, ERR_LIMIT, "no memory for a gRPC server");
	else
		status = server_listen(server, err);
	if (status != ERR_OK) {
		grpc_server_free(server);
		return status;
	}
	*ret = server;
	return ERR_OK;
}

// Closes what belongs to the listening side, once.
static void server_stop_listening(struct grpc_server *server)
{
	loop_fd_free(server->watch);
	server->watch = NULL;
	loop_timer_free(server->accept_pause);
	server->accept_pause = NULL;
	if (server->fd < 0)
		return;
	(void)close(server->fd); // nothing can be done about a failing close
	server->fd = -1;
	struct stat now;
	if (server->socket_stat.st_ino != 0 && lstat(server->socket_path, &now) == 0 &&
	    now.st_ino == server->socket_stat.st_ino && now.st_dev == server->socket_stat.st_dev)
		(void)unlink(server->socket_path); // a left-over is removed at the next start
}

static bool server_is_in_turn(const struct grpc_server *server)
{
	if (server->busy_count > 0)
		return true;
	for (const struct server_conn *conn = server->conns; conn != NULL; conn = conn->next)
		if (conn->io.is_in_turn)
			return true;
	return false;
}

void grpc_server_free(struct grpc_server *server)
{
	if (server == NULL)
		return;
	server_stop_listening(server);
	if (server_is_in_turn(server)) {
		server->is_dying = true; // the turn in progress ends it
		return;
	}
	server->busy_count++;
	while (server->conns != NULL) {
		struct server_conn *conn = server->conns;
		(void)nghttp2_session_terminate_session(conn->io.session, NGHTTP2_NO_ERROR);
		grpc_conn_flush(&conn->io);
		conn_free(conn);
	}
	server->busy_count--;
	free(server->socket_path);
	free(server);
}
