// SPDX-License-Identifier: Apache-2.0
// What GPUPolicies reserve for tenants, watched while we lead. Owned by the scheduler; decisions
// wait until they have been listed once, or the API server says that it serves none. With every
// change all reservations are told to the core anew. Nothing here fails for good.
#pragma once

#include "daemons/scheduler/scheduler.h"

void policies_start(struct scheduler *s);
void policies_stop(struct scheduler *s); // also when not started
bool policies_are_synced(const struct scheduler *s);
