// SPDX-License-Identifier: Apache-2.0
// What is found once for all gangs whose members are of one shape, so that thousands of them that
// wait cost little when something changes. Internal to the files gang_*.c; a memo is its shape's.
#pragma once

#include "sched/parts.h"

struct gang_memo { // of what holds for a shape as long as nothing changes on any node
	uint64_t room_gen, facts_gen; // of sched->load_gen; 0: never
	int64_t room;                 // how many fit by their amounts
	uint64_t preempt_gen;
	int64_t duration_s, facts_ms; // of the pod that the facts were found for, and when
	struct sched_facts facts;
};

struct gang_memo *gang_memo_of(struct shape *shape); // made if absent
int64_t gang_room(struct sched *sched, struct shape *shape);
