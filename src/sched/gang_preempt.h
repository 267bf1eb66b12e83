// SPDX-License-Identifier: Apache-2.0
// Room for a whole gang that others make, on several nodes at once: found by a trial of the whole
// placement without them, all members or none. Internal to preemption; nothing here fails.
#pragma once

#include "sched/gang.h"
#include "sched/victims.h"

struct gang_choice {
	struct choice victims; // none: enough leaves already; its node means nothing
	struct pod **pods;     // members, with the node that each of them gets
	struct node **nodes;
	size_t count;
};
// False: the gang would not fit either way, and nobody is to leave. The choice is then empty.
MUST_USE bool gang_preempt_choose(struct sched *sched, struct gang *gang,
				  struct gang_choice *ret_choice);
void gang_preempt_free(struct gang_choice *choice);
// Whether those with a node kept suffice, and fit when all have left that are leaving.
bool gang_preempt_holds(struct sched *sched, struct gang *gang);
