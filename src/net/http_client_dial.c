// SPDX-License-Identifier: Apache-2.0
#include "net/http_client_inner.h"

#include <stdlib.h>
#include <unistd.h>

static const uint64_t CONNECT_TIMEOUT_NS = 10000000000; // over all addresses

static bool try_address(struct client_conn *conn, struct err *err);

// ---- events of the stream

static void on_opened(void *arg)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	bool is_h2 = client->tls != NULL && tls_conn_is_h2(stream_tls(conn->stream));
	client_enter(client);
	loop_timer_stop(conn->timer);
	conn->protocol = is_h2 ? PROTOCOL_HTTP2 : PROTOCOL_HTTP1;
	client->protocol = conn->protocol;
	client->dial_failed = false;
	conn->heard_ns = loop_now_ns(client->loop);
	if (is_h2)
		h2_start(conn);
	else
		h1_start(conn);
	client_dispatch(client);
	client_leave(client);
}

static void on_data(void *arg, struct str data)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	client_enter(client);
	conn->heard_ns = loop_now_ns(client->loop);
	if (conn->protocol == PROTOCOL_HTTP2)
		h2_data(conn, data);
	else
		h1_data(conn, data);
	client_dispatch(client);
	client_leave(client);
}

static void on_drained(void *arg)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	client_enter(client);
	if (conn->protocol == PROTOCOL_HTTP2)
		h2_flush(conn);
	client_dispatch(client);
	client_leave(client);
}

static void on_ended(void *arg)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	struct err err;
	(void)err_set(&err, ERR_UNAVAILABLE, "the server closed the connection");
	client_enter(client);
	if (conn->protocol == PROTOCOL_HTTP1)
		h1_ended(conn);
	if (!conn->dead)
		conn_close(conn, &err);
	client_dispatch(client);
	client_leave(client);
}

bool client_has_open(const struct http_client *client)
{
	for (const struct client_conn *conn = client->conns; conn != NULL; conn = conn->next)
		if (conn->protocol == PROTOCOL_HTTP1 ||
		    (conn->protocol == PROTOCOL_HTTP2 && h2_can_send(conn)))
			return true;
	return false;
}

// Those who wait fail only when no open connection may take them; others that are connecting are
// no hope, they go the same way.
static void fail_waiting(struct http_client *client, const struct err *err)
{
	client->dial_failed = true;
	// Only those who wait now: who starts anew inside its end waits for the next try.
	for (size_t count = client->waiting.count; count > 0; count--)
		if (!client_has_open(client) && client->waiting.first != NULL)
			call_fail(client->waiting.first, err);
}

// False when no address is left to try.
static bool connect_failed(struct client_conn *conn, const struct err *first_err)
{
	struct http_client *client = conn->client;
	struct err err = *first_err;
	while (++conn->address_i < conn->address_count)
		if (try_address(conn, &err))
			return true;
	conn_close(conn, &err);
	fail_waiting(client, &err);
	return false;
}

static void on_failed(void *arg, const struct err *err)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	client_enter(client);
	if (conn->protocol == PROTOCOL_UNKNOWN)
		(void)connect_failed(conn, err);
	else
		conn_close(conn, err);
	client_dispatch(client);
	client_leave(client);
}

static const struct stream_handler client_handler = {
	.opened = on_opened,
	.data = on_data,
	.drained = on_drained,
	.ended = on_ended,
	.failed = on_failed,
};

static void on_timer(void *arg)
{
	struct client_conn *conn = arg;
	struct http_client *client = conn->client;
	struct err err;
	client_enter(client);
	if (conn->protocol == PROTOCOL_UNKNOWN) {
		(void)err_set(&err, ERR_UNAVAILABLE, "cannot connect: no answer in time");
		(void)connect_failed(conn, &err);
	} else if (conn->protocol == PROTOCOL_HTTP2) {
		h2_timer(conn);
	} else if (conn->calls.count == 0) {
		(void)err_set(&err, ERR_UNAVAILABLE, "not needed");
		conn_close(conn, &err);
	}
	client_dispatch(client);
	client_leave(client);
}

// ---- life

static bool try_address(struct client_conn *conn, struct err *err)
{
	struct http_client *client = conn->client;
	struct tls_conn *tls = NULL;
	int fd = -1;
	if (conn->stream != NULL)
		stream_free(TAKE(conn->stream));
	if (sock_connect(&conn->addresses[conn->address_i], &fd, err) != ERR_OK)
		return false;
	if (client->tls != NULL &&
	    tls_conn_connect(client->tls, fd, client->server_name, true, &tls, err) != ERR_OK) {
		(void)close(fd);
		return false;
	}
	if (stream_new(client->loop, fd, tls, &client_handler, conn, &conn->stream, err) != ERR_OK)
		return false;
	loop_timer_set(conn->timer, CONNECT_TIMEOUT_NS / conn->address_count);
	return true;
}

bool conn_dial(struct http_client *client)
{
	struct client_conn *conn = calloc(1, sizeof *conn);
	struct err err;
	ASSERT(conn != NULL && client->busy > 0);
	conn->client = client;
	conn->in.limit = 4 * HTTP1_HEAD_MAX_BYTES;
	conn->timer = loop_timer_new(client->loop, on_timer, conn);
	conn->next = client->conns;
	if (conn->next != NULL)
		conn->next->prev = conn;
	client->conns = conn;
	if (sock_resolve(client->target, conn->addresses, &conn->address_count, &err) != ERR_OK) {
		conn_close(conn, &err);
		fail_waiting(client, &err);
		return false;
	}
	return try_address(conn, &err) || connect_failed(conn, &err);
}

void conn_close(struct client_conn *conn, const struct err *err)
{
	struct http_client *client = conn->client;
	ASSERT(!conn->dead && client->busy > 0);
	conn->dead = true;
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		client->conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	conn->next = client->dead_conns;
	client->dead_conns = conn;
	loop_timer_free(TAKE(conn->timer));
	stream_free(TAKE(conn->stream));
	while (conn->calls.first != NULL)
		call_lost(conn->calls.first, false, err);
}

void conn_release(struct client_conn *conn)
{
	ASSERT(conn->dead && conn->calls.count == 0);
	if (conn->session != NULL)
		nghttp2_session_del(conn->session);
	buf_done(&conn->in);
	free(conn);
}
