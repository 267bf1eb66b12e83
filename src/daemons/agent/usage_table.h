// SPDX-License-Identifier: Apache-2.0
// Inside of usage, shared by its two files: the table of allocations, oldest first.
#pragma once

#include "daemons/agent/usage.h"

struct usage {
	struct usage_config config;
	struct usage_allocation *items;
	size_t count, room;
	uint64_t guessed;
};

struct usage_allocation *usage_find(struct usage *usage, struct str gpu, struct str pod_uid);
struct usage_allocation *usage_add(struct usage *usage); // NULL at the limit
