// SPDX-License-Identifier: Apache-2.0
// Certificates for tests, made by OpenSSL in a temporary folder: a CA ("ca.pem"), another that
// signs nothing ("other-ca.pem"), and pairs NAME.pem, NAME.key. The folder is the caller's to
// remove by certs_remove.
#pragma once

#include "base/str.h"

struct certs {
	char folder[64];
	void *ca_cert, *ca_key;
};

struct cert_request {
	const char *name;  // of the files
	const char *cn;    // common name
	const char *hosts; // "DNS:localhost,IP:127.0.0.1", or NULL
	long from_s, to_s; // from now; may be in the past
};

void certs_init(struct certs *certs);
void certs_issue(struct certs *certs, const struct cert_request *request);
// FOLDER/NAME; valid until the fourth next call.
const char *certs_path(const struct certs *certs, const char *name);
void certs_remove(struct certs *certs);
