// SPDX-License-Identifier: Apache-2.0
// Sends durable events of the journal to the server of the installation and acknowledges what
// it has made durable. One batch at a time, smaller when refused as too large, with growing
// pauses while the server is away; the journal keeps what was not taken. The token is read from
// its file for each batch, so that rotation works.
#pragma once

#include "journal/journal.h"
#include "sys/loop.h"

struct push;

struct push_config {
	const char *url; // "https://gpuaas-server.gpuaas-system.svc:8443", path optional
	const char *ca_file, *token_file; // NULL: none
	size_t batch_bytes;
	uint64_t period_ns; // least time between two batches
};

struct push_stats {
	uint64_t batches, failures, acknowledged_seq;
	int64_t last_good_wall_s; // 0: never
	bool is_failing;
};

MUST_USE err_status push_new(struct loop *loop, const struct push_config *config,
			     struct journal *journal, struct push **ret, struct err *err);
void push_free(struct push *push); // NULL allowed; before the journal
void push_poke(struct push *push); // there are more durable events
void push_stats(const struct push *push, struct push_stats *ret);
// The server's answer. Its cursor counts if it is of this journal: the word behind the kernel's
// boot id. Pure, for tests.
MUST_USE bool push_cursor_read(struct str body, const char *boot, uint64_t *ret_seq);
