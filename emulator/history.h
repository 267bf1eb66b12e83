// SPDX-License-Identifier: Apache-2.0
// What a GPU did over time: integrals of its utilization (for profiling counters, also of each
// GPU instance) and a ring of samples at fixed instants. Pure; both are exact however often the
// time is cut, because the rates are constant between two calls.
#pragma once

#include "emulator/mig.h"

enum { HISTORY_MAX = 120, HISTORY_SPANS = 1 + MIG_GI_MAX }; // the whole GPU, its GPU instances
#define HISTORY_PERIOD_NS UINT64_C(167000000)

struct history_rates { // thousandths; index 0 the whole GPU, 1 + place in mig.gis
	uint32_t util_milli[HISTORY_SPANS], memory_util_milli[HISTORY_SPANS];
	uint32_t power_mw, sm_clock_mhz, memory_clock_mhz;
	bool is_power_capped, is_hot;
};

struct history_sample {
	uint64_t time_ns; // a multiple of the period
	uint32_t util_milli, memory_util_milli, power_mw, sm_clock_mhz, memory_clock_mhz;
};

struct history {
	uint64_t busy[HISTORY_SPANS], memory_busy[HISTORY_SPANS]; // thousandths times ns, may wrap
	uint64_t power_capped_ns, hot_ns;
	struct history_sample samples[HISTORY_MAX];
	size_t first, count; // of the ring
};

void history_advance(struct history *history, const struct history_rates *rates, uint64_t from_ns,
		     uint64_t to_ns);
// The i-th oldest, i below count.
const struct history_sample *history_at(const struct history *history, size_t i);
