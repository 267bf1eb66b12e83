// SPDX-License-Identifier: Apache-2.0
// A hash index over an array that somebody else owns: maps a hash to item numbers and lets the
// caller compare. Eight bytes a slot, so that millions of events can be told apart in little
// memory. Also the growing of arrays, which every user of an index needs.
#pragma once

#include "base/defs.h"

struct slot {
	uint32_t item; // number + 1; 0: free
	uint32_t hash;
};

struct slots {
	struct slot *slots;
	size_t cap; // power of two
	size_t count;
};

enum { SLOTS_ITEMS_MAX = 1 << 30 };

// True when item is what the caller looks for.
typedef bool slots_same_fn(const void *arg, uint32_t item);

void slots_done(struct slots *slots);
// Number of the item, or UINT32_MAX when there is none.
uint32_t slots_find(const struct slots *slots, uint64_t hash, slots_same_fn *same, const void *arg);
MUST_USE bool slots_add(struct slots *slots, uint64_t hash, uint32_t item); // false: no memory

// Makes room for one more behind count items; false when there is no memory. data is a pointer
// to the array pointer.
MUST_USE bool slots_room(void *data, size_t *cap, size_t count, size_t item_bytes);

uint64_t slots_hash(const void *data, size_t size_bytes);
