// SPDX-License-Identifier: Apache-2.0
// From a Tenant to its windows (spec.windows), shared by the daemon and the simulator. An item that
// cannot be a window is left out: the API server's schema has refused it before. Texts borrow from
// the JSON.
#pragma once

#include "base/json.h"
#include "sched/window.h"

enum { FEED_WINDOWS_MAX = 32 }; // of one tenant, as the schema says

// Returns how many of them there are.
size_t feed_windows(const json_t *tenant, struct sched_window_in ret_windows[FEED_WINDOWS_MAX]);
