// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and 1.3 on OpenSSL 3. A tls_ctx is shared by many connections; server contexts can be
// reloaded from their files without a restart (connections that are open keep theirs). Peers are
// verified against the given CA unless a caller says otherwise in so many words. A context may be
// freed while connections made from it are open.
#pragma once

#include "base/str.h"

struct tls_ctx; // wraps SSL_CTX

struct tls_server_config {
	const char *cert_file; // PEM, chain
	const char *key_file;
	const char *client_ca_file; // NULL: no client certificates are asked for
	// With client_ca_file: refuse clients without a certificate at the handshake.
	bool client_cert_required;
	bool offer_h2; // by ALPN, before http/1.1: only for a server that speaks it
};

struct tls_client_config {
	const char *ca_file; // NULL: ca_pem, else the system's CAs
	struct str ca_pem, cert_pem, key_pem;
	const char *cert_file, *key_file; // client certificate, both or none
	bool insecure_skip_verify;        // only when a person asked for it
};

// Strings of the configuration are copied.
MUST_USE err_status tls_server_new(const struct tls_server_config *config, struct tls_ctx **ret,
				   struct err *err);
MUST_USE err_status tls_server_reload(struct tls_ctx *ctx, struct err *err); // old stays on failure
MUST_USE err_status tls_client_new(const struct tls_client_config *config, struct tls_ctx **ret,
				   struct err *err);
void tls_ctx_free(struct tls_ctx *ctx); // NULL allowed
