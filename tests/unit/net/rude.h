// SPDX-License-Identifier: Apache-2.0
// A server for tests that answers every request with bytes given to it, whatever they are, and
// then keeps the connection, closes it or resets it.
#pragma once

#include "net/stream.h"

typedef enum rude_end { RUDE_KEEP, RUDE_CLOSE, RUDE_RESET } rude_end;

struct rude {
	struct loop *loop;
	struct loop_fd *watch;
	int listen_fd;
	int fds[16]; // accepted
	struct loop_fd *watches[16];
	size_t accepted;
	struct str answer;
	rude_end end;
	int silent_count; // so many requests are answered by closing, without a byte
	int silent_after; // once that many were answered
	int requests;
	char base[64];
};

void rude_start(struct rude *rude, struct loop *loop);
void rude_stop(struct rude *rude);
