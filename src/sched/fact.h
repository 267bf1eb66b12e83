// SPDX-License-Identifier: Apache-2.0
// Reasons of one pod. A fact is one reason with its numbers: how many nodes fail the check, what
// the pod needs and what the best node has. Facts are small and numeric; texts are made, in the
// caller's arena, when somebody asks.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "sched/reason.h"

enum { SCHED_FACTS_MAX = 24 };

struct sched_fact {
	sched_code code;
	uint32_t detail; // resource dimension, or index of the spec's refusal
	uint32_t nodes;  // that fail this check; 0 for the scope POD
	int64_t need, have;
};
struct sched_facts {
	struct sched_fact items[SCHED_FACTS_MAX];
	size_t count;
	struct sched_fact spill; // what is beyond the limit is counted here and not shown
};

struct sched_reason { // as shown to people and written to files; texts in the caller's arena
	const char *code, *next;
	struct str need, have;
	uint32_t nodes;
};

// The JSON object that files and answers show: code, need, have, nodes, next.
void sched_reason_put(const struct sched_reason *reason, struct buf *out);
const char *sched_code_name(sched_code code);
const char *sched_code_next(sched_code code);
bool sched_code_is_pod(sched_code code);
