// SPDX-License-Identifier: Apache-2.0
// What the parts of the HTTP server share: http_server.c accepts and keeps connections,
// http_server_conn.c reads requests, http_exchange.c writes answers. Nobody else includes it.
// A connection has at most one exchange; an exchange outlives its connection (conn NULL) until
// its handler has answered.
#pragma once

#include "base/map.h"
#include "net/http1.h"
#include "net/http_server.h"
#include "net/sock.h"
#include "net/stream.h"

typedef enum conn_state {
	CONN_OPENING, // TLS handshake
	CONN_HEAD,    // idle, or a head is arriving
	CONN_BODY,
	CONN_HANDLING, // until the answer is with the kernel
	CONN_LINGER,   // our side has ended; what still comes is dropped
} conn_state;

struct conn {
	struct http_server *server;
	struct conn *prev, *next;
	struct stream *stream;
	struct loop_timer *timer; // its meaning follows the state
	struct loop_timer *kick;  // goes on with what is buffered
	struct http_exchange *exchange;
	conn_state state;
	struct buf in;
	struct http1_scan scan;
	size_t dropped_bytes;
	uint64_t sent_mark;      // what was sent when the timer last looked
	uint64_t waits_since_ns; // for a head: since the connect or the last answer
	uint64_t head_until_ns, request_until_ns;
	bool over_limit; // gets 503
	bool peer_ended;
	bool cut_due; // at the next kick
	char peer[SOCK_TEXT_BYTES];
	char cert_name[256];
};

typedef enum exchange_state {
	EXCHANGE_READING,
	EXCHANGE_HANDLING,
	EXCHANGE_STREAMING,
	EXCHANGE_DONE, // answered
} exchange_state;

struct http_exchange {
	struct loop *loop;
	struct conn *conn; // NULL: the client has gone
	exchange_state state;
	bool lost_due;   // closed is called in the next turn
	bool in_handler; // the request must stay until the handler returns
	bool is_head, is_1_0, keep_alive;
	struct http_request request;
	struct http1_chunks chunks;
	http1_framing framing;
	uint64_t body_left; // of HTTP1_LENGTH
	struct buf body;
	loop_fn *closed;
	void *closed_arg;
};

struct http_server {
	struct loop *loop;
	struct tls_ctx *tls;
	size_t body_max_bytes, connections_max, connections_per_peer_max;
	uint64_t idle_timeout_ns, head_timeout_ns, request_timeout_ns;
	http_handler_fn *handler;
	void *arg;
	int listen_fd;
	uint16_t port;
	char *socket_path; // of unix sockets, to remove at the end
	struct loop_fd *watch;
	struct loop_timer *accept_again; // after running out of file descriptors
	struct conn *conns;
	struct map *peers; // address -> how many connections it has, those over the limit left out
	size_t conn_count, over_limit_count;
	int handlers_running;
};

// ---- http_server.c
void conn_free(struct conn *conn); // leaves the exchange alone
static inline uint64_t conn_left_ns(uint64_t now_ns, uint64_t until_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}
// ---- http_server_conn.c
extern const struct stream_handler conn_handler;
void conn_on_kick(void *arg);
void conn_on_timer(void *arg);
void conn_cut(struct conn *conn);         // the client is gone: ends exchange and connection
void conn_linger(struct conn *conn);      // after the last answer
void conn_answer_sent(struct conn *conn); // the answer is with the kernel: on to the next
// ---- http_exchange.c
struct http_exchange *exchange_new(struct conn *conn);
void exchange_free(struct http_exchange *exchange);
void exchange_lose_client(struct http_exchange *exchange);
// Answers what no handler sees, and closes.
void conn_refuse(struct conn *conn, int status, const char *detail);
