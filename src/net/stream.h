// SPDX-License-Identifier: Apache-2.0
// A byte stream on the loop: a socket and, when given, TLS on it; inside net only. It connects,
// shakes hands, reads what comes and writes what it is given. Callbacks come from the loop alone,
// never from inside a stream_ function, and may free the stream.
#pragma once

#include "base/buf.h"
#include "net/tls_conn.h"
#include "sys/loop.h"

struct stream;

struct stream_handler {
	void (*opened)(void *arg);                // connected, handshake done
	void (*data)(void *arg, struct str data); // bytes from the peer, at most 16 KiB
	void (*drained)(void *arg);               // all that was written is with the kernel
	void (*ended)(void *arg);                 // the peer sends no more; writing may go on
	void (*failed)(void *arg, const struct err *err); // last call; free it now or later
};

// fd and tls (may be NULL) are the stream's from here on, also on failure. connecting: the socket
// comes from sock_connect.
MUST_USE err_status stream_new(struct loop *loop, int fd, struct tls_conn *tls,
			       const struct stream_handler *handler, void *arg, struct stream **ret,
			       struct err *err);
void stream_free(struct stream *stream); // NULL allowed; what is not written is lost
// Copied. After a failure it does nothing: failed is called soon.
void stream_write(struct stream *stream, struct str data);
size_t stream_unsent_bytes(const struct stream *stream);
uint64_t stream_sent_total(const struct stream *stream); // for noticing that nothing moves
void stream_pause(struct stream *stream, bool paused);   // no data() while paused
void stream_shutdown(struct stream *stream);             // ends our side after what was written
const struct tls_conn *stream_tls(const struct stream *stream); // NULL when plain
