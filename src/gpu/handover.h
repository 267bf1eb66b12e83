// SPDX-License-Identifier: Apache-2.0
// Whether a GPU is clean before it goes to the next tenant: nobody holds it, so no process and no
// memory may be left on it. What was read before the last holder left, or shortly after, proves
// nothing: processes take a moment to end. One of these a GPU. Pure: time is given.
#pragma once

#include "base/str.h"

enum { HANDOVER_REASON_BYTES = 96 };

struct handover_config {
	uint64_t grace_ns;   // after the holder left; 0: nothing is checked
	uint64_t memory_mib; // more than this in use is somebody's
};

struct handover_facts {
	bool is_held, is_whole; // whole: given to one holder at a time
	uint32_t process_count, first_pid;
	uint64_t processes_ns; // when processes were read; 0: never
	uint64_t memory_mib, memory_ns;
};

struct handover {
	uint64_t free_ns; // since when nobody holds it; 0: somebody does
	bool is_dirty;
	char reason[HANDOVER_REASON_BYTES]; // while it is dirty
};

// True when it became dirty or clean.
bool handover_look(struct handover *handover, const struct handover_config *config,
		   const struct handover_facts *facts, uint64_t now_ns);
// Whether something must be read to know: the processes are older than the grace.
bool handover_wants_reading(const struct handover *handover, const struct handover_config *config,
			    const struct handover_facts *facts, uint64_t now_ns);
