// SPDX-License-Identifier: Apache-2.0
// The simulator's books of gangs: one that has come to nodes in part is a broken invariant, unless
// something excuses it for a while. Internal to this folder; the books are freed with the run.
#pragma once

#include "sim/sim.h"

void checker_gang_init(struct sim *sim);
void checker_gang_done(struct sim *sim);
// A bind of the pod failed, or it went: its gang may be there in part for a while.
void checker_gang_excuse(struct sim *sim, const struct sim_pod *pod);
const char *checker_gangs(struct sim *sim);
bool checker_gang_is_same(const struct sim_pod *a, const struct sim_pod *b);
bool checker_gang_is_even(const struct sim *sim, const struct sim_pod *head);
