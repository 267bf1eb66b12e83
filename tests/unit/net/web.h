// SPDX-License-Identifier: Apache-2.0
// A small web application for the tests of server and client: it echoes, waits, streams, forgets
// and counts. And raw connections, to send a server what no client would.
#pragma once

#include "net/http_server.h"

struct web {
	struct loop *loop;
	struct http_server *server;
	struct http_exchange *held; // by /hold, for the test to answer
	struct timed *timed;        // answers of /later and /stream under way
	int requests, closed;
	bool raw_resets; // web_raw leaves by a reset
	bool raw_ended;  // the last web_raw saw the server close
	size_t raw_sent; // bytes of the last web_raw that went out
	char base[64];
};

// Listens on a free port of 127.0.0.1, or where config says; fills in handler and base.
void web_start(struct web *web, struct loop *loop, struct http_server_config config);
void web_stop(struct web *web);

// A blocking connection from one of the addresses 127.0.0.0/8; the caller closes it.
int web_dial(const struct web *web, const char *from);
// What a client sees that connects, sends the bytes in pieces of step (0: at once) and reads
// until the server closes, or nothing came for quiet_ms, at most ten times that long. Answer in a
// static buffer, "" for none.
struct str web_raw(struct web *web, struct str bytes, size_t step, int quiet_ms);
