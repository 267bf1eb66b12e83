// SPDX-License-Identifier: Apache-2.0
// What PodGroups and Jobs say about gangs, watched while we lead. Owned by the scheduler; decisions
// wait until all kinds that the API server serves have been listed once. Nothing here fails for
// good: a watch that breaks is taken up again.
#pragma once

#include "daemons/scheduler/scheduler.h"

void groups_start(struct scheduler *s);
void groups_stop(struct scheduler *s); // also when not started
bool groups_are_synced(const struct scheduler *s);
