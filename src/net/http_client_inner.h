// SPDX-License-Identifier: Apache-2.0
// What the parts of the HTTP client share: http_client.c holds calls and hands them to
// connections, http_client_dial.c opens those, http_client_h1.c and _h2.c speak on them. Nobody
// else includes it. The client owns calls and connections. A callback may cancel calls or free
// the client, so connections that end are kept until the outermost event is over (client_leave).
#pragma once

#include "net/http1.h"
#include "net/http_client.h"
#include "net/sock.h"
#include "net/stream.h"

#include <nghttp2/nghttp2.h>

enum { HTTP1_CONNECTIONS_MAX = 4, CALL_RETRIES_MAX = 3 };

struct http_call {
	struct http_client *client;
	struct http_call *prev, *next;
	struct call_list *list;   // of its connection, of those that wait, or NULL: ending
	struct client_conn *conn; // NULL while it waits
	struct arena *arena;      // texts of request and response
	struct str method, path, body;
	struct http_header *request_headers;
	size_t request_header_count;
	struct loop_timer *timer, *idle_timer; // NULL where there is no limit
	uint64_t timeout_ns, idle_timeout_ns;
	size_t body_max_bytes; // 0: none
	http_data_fn *on_data;
	http_done_fn *on_done;
	void *arg;

	int32_t stream_id; // HTTP/2
	size_t body_sent;
	int retries;
	int code;
	bool headers_done; // the final head, not an interim one
	bool heard;        // any byte of an answer
	struct http_headers headers;
	struct buf received;
	uint64_t received_bytes;
	bool in_data; // inside on_data: memory must stay
	bool in_done;
	bool gone; // finished or cancelled inside on_data
};

struct call_list {
	struct http_call *first, *last;
	size_t count;
};

typedef enum client_protocol { PROTOCOL_UNKNOWN, PROTOCOL_HTTP1, PROTOCOL_HTTP2 } client_protocol;

struct client_conn {
	struct http_client *client;
	struct client_conn *prev, *next;
	struct stream *stream;
	struct loop_timer *timer; // connecting, idle (HTTP/1.1), ping (HTTP/2)
	struct call_list calls;   // HTTP/1.1: at most one
	client_protocol protocol; // unknown while connecting
	bool dead;
	bool used_before; // an earlier call ended here, so the peer may have closed it since
	uint64_t heard_ns;

	struct sock_address addresses[SOCK_ADDRESSES_MAX];
	size_t address_count, address_i;

	struct buf in; // HTTP/1.1
	struct http1_scan scan;
	struct http1_response response;
	struct http1_chunks chunks;
	uint64_t body_left;

	nghttp2_session *session;
	bool in_session; // inside nghttp2: it must not be entered again
	bool draining;   // GOAWAY came, or we want no more
	bool ping_open;
	bool flush_due; // at the end of client_dispatch
};

struct http_client {
	struct loop *loop;
	struct tls_ctx *tls; // NULL: plain
	char *target;        // for sock_resolve
	char *authority;     // Host
	char *server_name;
	char *base; // for error texts
	uint64_t ping_every_ns, ping_answer_ns;
	client_protocol protocol;
	struct call_list waiting;
	struct client_conn *conns, *dead_conns;
	struct loop_timer *kick;
	bool dial_failed; // no more are dialled while open ones serve
	int busy;
	bool freed;
};

// ---- http_client.c
void client_enter(struct http_client *client);
void client_leave(struct http_client *client); // the client may be gone afterwards
void client_dispatch(struct http_client *client);
void client_kick(struct http_client *client); // dispatch in the next turn
void call_list_add(struct call_list *list, struct http_call *call);
void call_unlist(struct http_call *call); // off its list and connection, if any
// Both end the call: out of its list, on_done, freed.
void call_succeed(struct http_call *call);
void call_fail(struct http_call *call, const struct err *err);
// Its connection ended: waits again where that is safe, else fails.
void call_lost(struct http_call *call, bool certainly_unseen, const struct err *err);
// Body bytes; false when the call is gone (cancelled inside, or over its limit).
MUST_USE bool call_receive(struct http_call *call, struct str data);
void call_heard(struct http_call *call); // sets its idle time-out anew
MUST_USE bool call_add_header(struct http_call *call, struct str name, struct str value);

// ---- http_client_dial.c
bool client_has_open(const struct http_client *client);
MUST_USE bool conn_dial(struct http_client *client);              // false: it failed at once
void conn_close(struct client_conn *conn, const struct err *err); // its calls are lost
void conn_release(struct client_conn *conn);

// ---- http_client_h1.c
void h1_start(struct client_conn *conn); // opened
void h1_send(struct client_conn *conn, struct http_call *call);
void h1_data(struct client_conn *conn, struct str data);
void h1_ended(struct client_conn *conn);

// ---- http_client_h2.c
void h2_start(struct client_conn *conn);
bool h2_can_send(const struct client_conn *conn);
void h2_send(struct client_conn *conn, struct http_call *call);
void h2_data(struct client_conn *conn, struct str data);
void h2_flush(struct client_conn *conn);
void h2_timer(struct client_conn *conn);
void h2_cancel(struct client_conn *conn, int32_t stream_id); // calls nobody back
