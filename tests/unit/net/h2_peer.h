// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 server for tests of the client, on nghttp2's own server side. The path says what it
// does: /echo, /size?n=N, /hang, /interim, /refuse, /reset, /die (closes within the body),
// /goaway (refuses the stream with a GOAWAY), /last (answers, then GOAWAY).
#pragma once

#include "net/tls.h"
#include "sys/loop.h"

struct peer_conn;

struct h2_peer {
	struct loop *loop;
	struct loop_fd *watch;
	struct tls_ctx *tls;
	struct peer_conn *conns;
	int listen_fd;
	bool deaf;        // reads nothing any more, like a machine that vanished
	int refuse_count; // of /refuse: so many times, then it echoes
	int requests, connections, cancelled;
	uint32_t streams_max; // SETTINGS_MAX_CONCURRENT_STREAMS of new connections
	size_t streams_open, streams_most;
	char base[64];
};

void h2_peer_start(struct h2_peer *peer, struct loop *loop, struct tls_ctx *tls);
void h2_peer_stop(struct h2_peer *peer);
