// SPDX-License-Identifier: Apache-2.0
// Sockets by text: "0.0.0.0:8443", "[::]:8443", "unix:/run/x.sock". All are non-blocking and
// closed on exec. Resolving a name may block (getaddrinfo); addresses do not.
#pragma once

#include "base/str.h"

#include <sys/socket.h>

struct sock_address {
	struct sockaddr_storage storage;
	socklen_t size_bytes;
};

enum { SOCK_ADDRESSES_MAX = 8, SOCK_TEXT_BYTES = 64 };

// ret_port: the port that was chosen for port 0; 0 for unix sockets. An old socket file of that
// path is replaced; the new one has mode 0600.
MUST_USE err_status sock_listen(const char *listen_on, int *ret_fd, uint16_t *ret_port,
				struct err *err);
// "host:port" or "unix:/path" to at most SOCK_ADDRESSES_MAX addresses.
MUST_USE err_status sock_resolve(const char *target, struct sock_address *ret_addresses,
				 size_t *ret_count, struct err *err);
// A socket that is connecting; writable when that has ended.
MUST_USE err_status sock_connect(const struct sock_address *address, int *ret_fd, struct err *err);
// The next waiting connection: 1, none: 0, failed (too many files): -1.
MUST_USE int sock_accept(int listen_fd, int *ret_fd, struct sock_address *ret_peer);
// Splits "host:port" or "[host]:port"; false if it is neither.
MUST_USE bool sock_split(struct str text, struct str *ret_host, struct str *ret_port);
// "10.0.0.1", "::1", "unix".
void sock_peer_text(const struct sock_address *address, char out[SOCK_TEXT_BYTES]);
