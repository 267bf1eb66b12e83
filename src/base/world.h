// SPDX-License-Identifier: Apache-2.0
// What a core may ask of the outside: time, randomness, timers. Daemons pass the real world
// (sys/world_real), tests and the simulator a virtual one. Cores call nothing else.
#pragma once

#include "base/defs.h"

struct world {
	void *self;
	uint64_t (*mono_ns)(void *self); // monotonic, never goes back
	int64_t (*wall_s)(void *self);   // UTC, may jump
	uint64_t (*random)(void *self);  // not for secrets
	// Calls fire(arg) once, not before delay_ns. Returns an id > 0 for timer_cancel, 0 at the
	// limit.
	uint64_t (*timer_after)(void *self, uint64_t delay_ns, void (*fire)(void *arg), void *arg);
	void (*timer_cancel)(void *self, uint64_t timer_id);
};

static inline uint64_t world_mono_ns(const struct world *w) { return w->mono_ns(w->self); }
static inline int64_t world_wall_s(const struct world *w) { return w->wall_s(w->self); }
static inline uint64_t world_random(const struct world *w) { return w->random(w->self); }
