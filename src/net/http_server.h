// SPDX-License-Identifier: Apache-2.0
// HTTP server on the loop: HTTP/1.1 with a strict parser (no folding, no pipelining, one length),
// TLS when a context is given. A handler gets a complete request and answers now or later; it
// never sees a socket, so tests call handlers directly.
// Limits: header 16 KiB, body by config, idle and request time-outs, connections by config.
#pragma once

#include "base/buf.h"
#include "net/http.h"
#include "net/tls.h"
#include "sys/loop.h"

struct http_server;
struct http_exchange; // one request being answered, owned by the server

struct http_request {
	struct arena *arena;            // lives until the response is sent
	struct str method, path, query; // path percent-encoded as received, without query
	struct http_headers headers;
	struct str body;
	struct str peer_address;   // "10.0.0.1"
	struct str peer_cert_name; // CN of a verified client certificate, else empty
};

typedef void http_handler_fn(void *arg, struct http_exchange *exchange,
			     const struct http_request *request);

struct http_server_config {
	const char *listen;       // "0.0.0.0:8443", "[::]:8443" or "unix:/path"; port 0: any free
	struct tls_ctx *tls;      // NULL: plain
	size_t body_max_bytes;    // 0: HTTP_BODY_DEFAULT_MAX_BYTES; above: 413
	size_t connections_max;   // 0: 1024; above: 503 and close
	uint64_t idle_timeout_ns; // 0: 60 s
	http_handler_fn *handler;
	void *arg;
};

MUST_USE err_status http_server_new(struct loop *loop, const struct http_server_config *config,
				    struct http_server **ret_server, struct err *err);
void http_server_free(struct http_server *server); // NULL allowed; open exchanges are cut
uint16_t http_server_port(const struct http_server *server);

// Answer once. Headers and body are copied. extra_headers may be NULL.
void http_respond(struct http_exchange *exchange, int status, const char *content_type,
		  const struct http_headers *extra_headers, struct str body);
// Stream: start, then chunks, then end. closed(arg) is called if the client goes away first.
void http_respond_start(struct http_exchange *exchange, int status, const char *content_type,
			loop_fn *closed, void *arg);
void http_respond_chunk(struct http_exchange *exchange, struct str data);
void http_respond_end(struct http_exchange *exchange);
