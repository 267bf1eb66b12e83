// SPDX-License-Identifier: Apache-2.0
// What the energy of one GPU has cost from its first reading up to an instant, to the nano:
// the exact integral of energy times price, rounded once, half to even, so that periods that
// follow each other add up. Between two readings the counter is a straight line. A reading below
// the one before it in the same counter run, and the first of a new run, count from zero.
// Readings of one instant count as one step. Walks forward only.
#pragma once

#include "billing/tariff.h"
#include "billing/usage.h"

struct meter;

struct meter *meter_new(void); // NULL: no memory
void meter_free(struct meter *meter);
void meter_freep(struct meter **meter); // for AUTO
// Starts with another GPU. The steps must begin no later than its first reading.
void meter_start(struct meter *meter, const struct usage_gpu *gpu,
		 const struct tariff_steps *steps);
// t_s never goes back.
MUST_USE err_status meter_at(struct meter *meter, int64_t t_s, int64_t *ret_nano, struct err *err);
// Millijoules between the first reading and the instant that meter_at was asked last, rounded
// down; for display.
uint64_t meter_energy_mj(const struct meter *meter);
