// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include "net/http_server_conn.h"

#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND_NS = 1000000000;

enum {
	CONNECTIONS_DEFAULT_MAX = 1024,
	OVER_LIMIT_MAX = 32, // that many more are told 503, the others are closed at once
	ACCEPTS_PER_TURN = 64,
	IDLE_DEFAULT_S = 60,
	REQUEST_DEFAULT_S = 30,
	HEAD_DEFAULT_S = 10,
	PEER_SHARE = 4, // of the connections, for one address
	IN_LIMIT_BYTES = 64 * 1024,
};

// ---- peers

static size_t peer_count(const struct http_server *server, const char *peer)
{
	return (size_t)(uintptr_t)map_find(server->peers, str_of(peer));
}

static void peer_count_set(struct http_server *server, const char *peer, size_t count)
{
	if (count == 0)
		(void)map_remove(server->peers, str_of(peer));
	else
		(void)map_set(server->peers, str_of(peer), (void *)(uintptr_t)count);
}

// ---- connections

static void conn_new(struct http_server *server, int fd, const char peer[SOCK_TEXT_BYTES],
		     bool over_limit)
{
	struct conn *conn = calloc(1, sizeof *conn);
	struct tls_conn *tls = NULL;
	if (conn == NULL ||
	    (server->tls != NULL && tls_conn_accept(server->tls, fd, &tls, NULL) != ERR_OK)) {
		free(conn);
		(void)close(fd);
		return;
	}
	const uint64_t now_ns = loop_now_ns(server->loop);
	*conn = (struct conn){ .server = server,
			       .in = { .limit = IN_LIMIT_BYTES },
			       .waits_since_ns = now_ns,
			       .head_until_ns = now_ns + server->head_timeout_ns,
			       .over_limit = over_limit };
	memcpy(conn->peer, peer, sizeof conn->peer);
	if (stream_new(server->loop, fd, tls, &conn_handler, conn, &conn->stream, NULL) != ERR_OK) {
		free(conn);
		return;
	}
	conn->timer = loop_timer_new(server->loop, conn_on_timer, conn);
	conn->kick = loop_timer_new(server->loop, conn_on_kick, conn);
	conn->next = server->conns;
	if (conn->next != NULL)
		conn->next->prev = conn;
	server->conns = conn;
	server->conn_count++;
	if (over_limit)
		server->over_limit_count++;
	else
		peer_count_set(server, peer, peer_count(server, peer) + 1);
	loop_timer_set(conn->timer, server->head_timeout_ns);
}

void conn_free(struct conn *conn)
{
	struct http_server *server = conn->server;
	ASSERT(conn->exchange == NULL && server->conn_count > 0);
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		server->conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	server->conn_count--;
	if (conn->over_limit)
		server->over_limit_count--;
	else
		peer_count_set(server, conn->peer, peer_count(server, conn->peer) - 1);
	loop_timer_free(conn->timer);
	loop_timer_free(conn->kick);
	stream_free(conn->stream);
	buf_done(&conn->in);
	free(conn);
}

// Cuts the connection that has been waited for longest: of those in a handshake, with an
// unfinished first head, or idle between two requests. False when all are at work.
static bool make_room(struct http_server *server)
{
	struct conn *oldest = NULL;
	for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
		bool waits = conn->state == CONN_OPENING || conn->state == CONN_HEAD;
		if (waits && !conn->over_limit &&
		    (oldest == NULL || conn->waits_since_ns <= oldest->waits_since_ns))
			oldest = conn;
	}
	if (oldest != NULL)
		conn_cut(oldest);
	return oldest != NULL;
}

static void take(struct http_server *server, int fd, const struct sock_address *address)
{
	char peer[SOCK_TEXT_BYTES];
	sock_peer_text(address, peer);
	bool over_limit = server->socket_path == NULL &&
			  peer_count(server, peer) >= server->connections_per_peer_max;
	ASSERT(server->conn_count >= server->over_limit_count);
	if (!over_limit && server->conn_count - server->over_limit_count >= server->connections_max)
		over_limit = !make_room(server);
	if (over_limit && server->over_limit_count >= OVER_LIMIT_MAX)
		(void)close(fd);
	else
		conn_new(server, fd, peer, over_limit);
}

static void on_listen(void *arg, unsigned events)
{
	struct http_server *server = arg;
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sock_address peer;
		int fd = -1;
		int got = sock_accept(server->listen_fd, &fd, &peer);
		if (got < 0) {
			// Out of file descriptors: those who wait stay in the kernel's queue a
			// while.
			loop_fd_set(server->watch, 0);
			loop_timer_set(server->accept_again, SECOND_NS / 10);
		}
		if (got <= 0)
			return;
		take(server, fd, &peer);
	}
}

static void on_accept_again(void *arg)
{
	struct http_server *server = arg;
	loop_fd_set(server->watch, LOOP_READ);
}

// ---- the server

static void server_freep(struct http_server **server) { http_server_free(*server); }

static void fill_in_defaults(struct http_server *server)
{
	if (server->body_max_bytes == 0)
		server->body_max_bytes = HTTP_BODY_DEFAULT_MAX_BYTES;
	if (server->connections_max == 0)
		server->connections_max = CONNECTIONS_DEFAULT_MAX;
	if (server->connections_per_peer_max == 0)
		server->connections_per_peer_max =
			(server->connections_max + PEER_SHARE - 1) / PEER_SHARE;
	if (server->idle_timeout_ns == 0)
		server->idle_timeout_ns = IDLE_DEFAULT_S * SECOND_NS;
	if (server->head_timeout_ns == 0)
		server->head_timeout_ns = HEAD_DEFAULT_S * SECOND_NS;
	if (server->request_timeout_ns == 0)
		server->request_timeout_ns = REQUEST_DEFAULT_S * SECOND_NS;
}

err_status http_server_new(struct loop *loop, const struct http_server_config *config,
			   struct http_server **ret_server, struct err *err)
{
	ASSERT(config->handler != NULL && config->listen != NULL);
	AUTO(server_freep) struct http_server *server = calloc(1, sizeof *server);
	if (server == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a HTTP server");
	*server =
		(struct http_server){ .loop = loop,
				      .tls = config->tls,
				      .body_max_bytes = config->body_max_bytes,
				      .connections_max = config->connections_max,
				      .connections_per_peer_max = config->connections_per_peer_max,
				      .idle_timeout_ns = config->idle_timeout_ns,
				      .head_timeout_ns = config->head_timeout_ns,
				      .request_timeout_ns = config->request_timeout_ns,
				      .handler = config->handler,
				      .arg = config->arg,
				      .listen_fd = -1 };
	server->peers = map_new(world_random(loop_world(loop)));
	fill_in_defaults(server);
	err_status status = sock_listen(config->listen, &server->listen_fd, &server->port, err);
	if (status != ERR_OK)
		return status;
	if (str_starts(str_of(config->listen), STR("unix:")))
		server->socket_path = strdup(config->listen + strlen("unix:"));
	server->accept_again = loop_timer_new(loop, on_accept_again, server);
	status = loop_fd_new(loop, server->listen_fd, LOOP_READ, on_listen, server, &server->watch,
			     err);
	if (status != ERR_OK)
		return status;
	*ret_server = TAKE(server);
	return ERR_OK;
}

void http_server_free(struct http_server *server)
{
	if (server == NULL)
		return;
	ASSERT(server->handlers_running == 0);
	loop_fd_free(server->watch);
	loop_timer_free(server->accept_again);
	if (server->listen_fd >= 0)
		(void)close(server->listen_fd);
	if (server->socket_path != NULL)
		(void)unlink(server->socket_path);
	while (server->conns != NULL)
		conn_cut(server->conns);
	ASSERT(server->conn_count == 0);
	map_free(server->peers);
	free(server->socket_path);
	free(server);
}

uint16_t http_server_port(const struct http_server *server) { return server->port; }

size_t http_server_connection_count(const struct http_server *server) { return server->conn_count; }
