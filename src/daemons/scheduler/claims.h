// SPDX-License-Identifier: Apache-2.0
// What a pod's volume claims need before its bind: they are written, then waited for until each has
// its volume; then the bind goes on (allot.h), or has failed. A wait ends with its pod, with the
// leadership, or after ten minutes.
#pragma once

#include "daemons/scheduler/scheduler.h"

void claims_start(struct scheduler *s, const struct bind_order *order,
		  const struct sched_decision *decision);
void claims_cancel_all(struct scheduler *s);
