// SPDX-License-Identifier: Apache-2.0
// What a core may ask of the outside: time and randomness. Daemons pass the real world (that of
// sys/loop.h), tests and the simulator a virtual one. Cores call nothing else; when they are
// due again is a value that they return, and their driver keeps the timer.
#pragma once

#include "base/defs.h"

struct world {
	void *self;
	uint64_t (*mono_ns)(void *self); // monotonic, never goes back
	int64_t (*wall_s)(void *self);   // UTC, may jump
	uint64_t (*random)(void *self);  // not for secrets
};

static inline uint64_t world_mono_ns(const struct world *w) { return w->mono_ns(w->self); }
static inline int64_t world_wall_s(const struct world *w) { return w->wall_s(w->self); }
static inline uint64_t world_random(const struct world *w) { return w->random(w->self); }
