// SPDX-License-Identifier: Apache-2.0
// One TLS connection over a non-blocking socket; inside net only (net/stream drives it). The
// socket stays the caller's. Calls never block and never raise SIGPIPE; they tell what the
// socket must become before they are repeated.
#pragma once

#include "net/tls.h"

struct tls_conn;

typedef enum tls_io {
	TLS_DONE,
	TLS_WANT_READ,
	TLS_WANT_WRITE,
	TLS_ENDED,  // the peer said that it sends no more
	TLS_FAILED, // err says why; no further call but tls_conn_free
} tls_io;

MUST_USE err_status tls_conn_accept(const struct tls_ctx *ctx, int fd, struct tls_conn **ret,
				    struct err *err);
// host: name or address that the certificate must be for. offer_h2: by ALPN, before http/1.1.
MUST_USE err_status tls_conn_connect(const struct tls_ctx *ctx, int fd, const char *host,
				     bool offer_h2, struct tls_conn **ret, struct err *err);
void tls_conn_free(struct tls_conn *conn); // NULL allowed

MUST_USE tls_io tls_conn_handshake(struct tls_conn *conn, struct err *err);
MUST_USE tls_io tls_conn_read(struct tls_conn *conn, void *out, size_t out_bytes, size_t *ret_count,
			      struct err *err);
MUST_USE tls_io tls_conn_write(struct tls_conn *conn, struct str data, size_t *ret_count,
			       struct err *err);
void tls_conn_send_end(struct tls_conn *conn); // close_notify, as far as the socket takes it

bool tls_conn_is_h2(const struct tls_conn *conn);
// CN of the verified client certificate, terminated; "" when there is none.
void tls_conn_peer_name(const struct tls_conn *conn, char *out, size_t out_bytes);
