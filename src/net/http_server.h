// SPDX-License-Identifier: Apache-2.0
// HTTP server on the loop: HTTP/1.1 with a strict parser (no folding, no pipelining, one length),
// TLS when a context is given. A handler gets a complete request and answers now or later; it
// never sees a socket, so tests call handlers directly.
// Limits: header 16 KiB, body by config, time-outs of idle, head and request, connections of all
// and of one peer. At the total the one that has been waited for longest makes room.
// What cannot be read is answered here (400, 408, 413, 431, ...) and never reaches a handler.
#pragma once

#include "base/buf.h"
#include "net/http.h"
#include "net/tls.h"
#include "sys/loop.h"

struct http_server;
struct http_exchange; // one request being answered, owned by the server

enum {
	HTTP_ARENA_MAX_BYTES = 64 * 1024 * 1024,
	HTTP_STREAM_UNSENT_MAX_BYTES = 8 * 1024 * 1024,
};

struct http_request {
	struct arena *arena;            // lives until the response is sent
	struct str method, path, query; // path percent-encoded as received, without query
	struct http_headers headers;
	struct str body;
	struct str peer_address;   // "10.0.0.1"; "unix" for unix sockets
	struct str peer_cert_name; // CN of a verified client certificate, else empty
};

typedef void http_handler_fn(void *arg, struct http_exchange *exchange,
			     const struct http_request *request);

struct http_server_config {
	const char *listen;     // "0.0.0.0:8443", "[::]:8443" or "unix:/path"; port 0: any free
	struct tls_ctx *tls;    // NULL: plain; stays the caller's and must outlive the server
	size_t body_max_bytes;  // 0: HTTP_BODY_DEFAULT_MAX_BYTES; above: 413
	size_t connections_max; // 0: 1024; above and with all of them at work: 503 and close
	// Of one address, 0: a quarter of all; above: 503 and close. Not for unix sockets.
	size_t connections_per_peer_max;
	uint64_t idle_timeout_ns;    // 0: 60 s; also for a client that takes no bytes
	uint64_t head_timeout_ns;    // 0: 10 s; for the first head from the connect
	uint64_t request_timeout_ns; // 0: 30 s from its first byte to its last; longer: 408
	http_handler_fn *handler;
	void *arg;
};

MUST_USE err_status http_server_new(struct loop *loop, const struct http_server_config *config,
				    struct http_server **ret_server, struct err *err);
// NULL allowed; open exchanges are cut. Not from inside a handler.
void http_server_free(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);
size_t http_server_connection_count(const struct http_server *server);

// Every exchange is answered once, by http_respond or by http_respond_start and _end, also when
// the client has gone meanwhile: that is what frees it. Headers and body are copied; framing and
// connection headers among extra_headers (may be NULL) are left out, the server writes its own.
// content_type may be NULL.
void http_respond(struct http_exchange *exchange, int status, const char *content_type,
		  const struct http_headers *extra_headers, struct str body);
// Stream: start, then chunks, then end. closed(arg) is called if the client goes away first, or
// takes so little that HTTP_STREAM_UNSENT_MAX_BYTES wait; the exchange is gone then. Without
// closed (NULL) chunks to a client that left go nowhere, until http_respond_end.
void http_respond_start(struct http_exchange *exchange, int status, const char *content_type,
			loop_fn *closed, void *arg);
void http_respond_chunk(struct http_exchange *exchange, struct str data);
void http_respond_end(struct http_exchange *exchange);
// Bytes that wait for the client: a producer stops above what it likes and asks again later.
size_t http_exchange_unsent_bytes(const struct http_exchange *exchange);
