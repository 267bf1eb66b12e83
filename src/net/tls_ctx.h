// SPDX-License-Identifier: Apache-2.0
// What tls.c and tls_conn.c share; nobody else includes it.
#pragma once

#include "net/tls.h"

#include <openssl/ssl.h>

struct tls_ctx {
	SSL_CTX *ssl;
	bool is_server;
	bool client_cert_required;
	bool offer_h2;
	char *cert_file, *key_file, *client_ca_file; // of servers, for reloading
};

// Fills err with what and OpenSSL's reason, and empties its queue of errors.
err_status tls_fail(struct err *err, err_status status, const char *what);
