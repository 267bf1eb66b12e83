// SPDX-License-Identifier: Apache-2.0
#include "emulator/history.h"

static void push(struct history *history, const struct history_rates *rates, uint64_t time_ns)
{
	size_t at = (history->first + history->count) % HISTORY_MAX;

	history->samples[at] = (struct history_sample){
		.time_ns = time_ns,
		.util_milli = rates->util_milli[0],
		.memory_util_milli = rates->memory_util_milli[0],
		.power_mw = rates->power_mw,
		.sm_clock_mhz = rates->sm_clock_mhz,
		.memory_clock_mhz = rates->memory_clock_mhz,
	};
	if (history->count < HISTORY_MAX)
		history->count++;
	else
		history->first = (history->first + 1) % HISTORY_MAX;
}

void history_advance(struct history *history, const struct history_rates *rates, uint64_t from_ns,
		     uint64_t to_ns)
{
	ASSERT(from_ns <= to_ns);
	uint64_t dt_ns = to_ns - from_ns;
	for (size_t i = 0; i < HISTORY_SPANS; i++) {
		history->busy[i] += rates->util_milli[i] * dt_ns;
		history->memory_busy[i] += rates->memory_util_milli[i] * dt_ns;
	}
	history->power_capped_ns += rates->is_power_capped ? dt_ns : 0;
	history->hot_ns += rates->is_hot ? dt_ns : 0;
	uint64_t first = from_ns / HISTORY_PERIOD_NS + 1, last = to_ns / HISTORY_PERIOD_NS;
	// Those that would be pushed out again are not made.
	if (last >= first + HISTORY_MAX)
		first = last - HISTORY_MAX + 1;
	for (uint64_t i = first; i <= last; i++)
		push(history, rates, i * HISTORY_PERIOD_NS);
}

const struct history_sample *history_at(const struct history *history, size_t i)
{
	ASSERT(i < history->count);
	return &history->samples[(history->first + i) % HISTORY_MAX];
}
