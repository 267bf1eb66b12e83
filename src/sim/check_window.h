// SPDX-License-Identifier: Apache-2.0
// The checker's part about windows (sched/window.h): what they keep is not given to others. Books
// of its own about who is where and until when; where windows lie is asked of the core. Borrows
// all; nothing can fail.
#pragma once

#include "sched/window.h"
#include "sim/sim.h"

const char *checker_window(const struct sim *sim, const struct sim_pod *pod); // after its bind
bool checker_has_window(const struct sim *sim, struct str node);
