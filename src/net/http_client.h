// SPDX-License-Identifier: Apache-2.0
// HTTP client on the loop: one origin per client, HTTP/2 by ALPN with many streams on one
// connection, else HTTP/1.1 with at most four kept-alive connections. https, http and unix:/path.
// Redirects are not followed, proxies not used. A connection that dies is made anew for the
// next request; a request that was under way fails with ERR_UNAVAILABLE and is the caller's to
// repeat (but for GET and HEAD on a connection that the server had closed while it was idle, and
// for what an HTTP/2 server refused unseen: those are repeated here). HTTP/2 pings find half-open
// connections. Names are resolved by getaddrinfo, which blocks: use addresses, or names that the
// node resolves fast. Connecting is given up after 10 s.
#pragma once

#include "base/buf.h"
#include "net/http.h"
#include "net/tls.h"
#include "sys/loop.h"

struct http_client;
struct http_call; // owned by the client until on_done returns

struct http_call_result {
	err_status status; // ERR_OK: a response came, whatever its code
	const struct err *err;
	int code;                           // HTTP status
	const struct http_headers *headers; // NULL unless ERR_OK
	struct str body;                    // whole body, unless on_data took it
};

typedef void http_done_fn(void *arg, const struct http_call_result *result);
// Streaming: gets body bytes as they come (code is the HTTP status).
typedef void http_data_fn(void *arg, int code, struct str data);

struct http_call_request {
	const char *method;
	struct str path; // with query, percent-encoded
	const struct http_header *headers;
	size_t header_count;
	struct str body;          // copied, like method, path and headers
	uint64_t timeout_ns;      // whole call; 0: none
	uint64_t idle_timeout_ns; // no byte for so long: fails with ERR_TIMEOUT; 0: none
	size_t body_max_bytes;    // 0: 64 MiB, without limit when on_data takes it
	http_data_fn *on_data;    // NULL: body is collected
	http_done_fn *on_done;    // called exactly once, never from inside http_call_start
	void *arg;
};

// base: "https://10.96.0.1:443", "http://127.0.0.1:9090", "unix:/run/x.sock". tls may be NULL
// for the others; it stays the caller's and must outlive the client. server_name NULL: the host
// of base.
MUST_USE err_status http_client_new(struct loop *loop, const char *base, struct tls_ctx *tls,
				    const char *server_name, struct http_client **ret,
				    struct err *err);
// NULL allowed. Open calls end with ERR_UNAVAILABLE first. Allowed inside callbacks.
void http_client_free(struct http_client *client);
// When streams are open, an HTTP/2 server is asked by a ping after every_ns without one and given
// answer_ns to answer. Default: 15 s and 10 s.
void http_client_set_ping(struct http_client *client, uint64_t every_ns, uint64_t answer_ns);
struct http_call *http_call_start(struct http_client *client,
				  const struct http_call_request *request);
// on_done is not called any more. Allowed inside callbacks, but not in the call's own on_done.
void http_call_cancel(struct http_call *call);

// Blocking convenience for commands and tests: runs the loop until the call is done, or until
// the loop is told to stop (ERR_UNAVAILABLE). on_done and arg of the request are not used, but
// on_data is called with arg. Body and headers are copied to the arena.
struct http_reply {
	int code;
	struct http_headers headers;
	struct str body;
};
MUST_USE err_status http_call_wait(struct http_client *client,
				   const struct http_call_request *request, struct arena *arena,
				   struct http_reply *ret_reply, struct err *err);
