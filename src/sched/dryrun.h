// SPDX-License-Identifier: Apache-2.0
// What would become of a pod if it came now: answered by the code that decides when it does come,
// on the ledger as it is. The pod is in the books only for the question: nobody is woken, told or
// asked to leave, and no later decision is another one because of it. The answer is that of the
// next decision if none is left to be taken about others. Pods of gangs are not asked about: they
// start with others. Texts lie in the caller's arena; nothing here fails.
#pragma once

#include "sched/sched.h"

struct sched_dry_answer {
	sched_state state; // ASSUMED: it would start now; else WAITING, GATED or REFUSED
	size_t position;   // in its queue, if it would wait
	struct str node;   // where it would start
	struct sched_reason reasons[SCHED_FACTS_MAX];
	size_t reason_count;
};

// A pod of this namespace and name may be there: it is left alone.
void sched_dry_run(struct sched *sched, const struct sched_pod_in *pod, int64_t now_ms,
		   struct arena *arena, struct sched_dry_answer *ret);
