// SPDX-License-Identifier: Apache-2.0
// When a waiting pod will start, as a range that eight of ten true starts fall into. It is reckoned
// how long those that run and those before it in the queue need by what they say themselves, and
// learned (learn.h) how many times longer it took. A guess is made when a pod begins to wait (of as
// many as may be reckoned in the time) and judged when it starts, or when it should have: the range
// is made wider after a miss and narrower after a hit. Shown are sizes alone whose guesses have
// held on public traces and hold here. Off until sched_durations_learn. Owned by struct sched;
// nothing here fails.
#pragma once

#include "sched/learn.h"
#include "sched/sched.h"

struct forecast;
struct awaited; // of one waiting pod
struct pod;

typedef enum forecast_size {
	FORECAST_SHARE, // a part of a GPU, or none
	FORECAST_ONE,
	FORECAST_FEW,   // 2 to 4
	FORECAST_EIGHT, // 5 to 8
	FORECAST_MANY,  // more, with its whole gang
	FORECAST_SIZES
} forecast_size;

enum {
	FORECAST_WANTED_PERMILLE = 800, // of the starts are to be inside
	FORECAST_LEAST = 20,            // starts judged before a size is shown
};

struct sched_estimate {
	int64_t from_ms, to_ms; // by the clock of sched_next
};
struct forecast_row { // how it does, by size
	int64_t judged, inside_permille;
};

struct forecast *forecast_new(void);
void forecast_free(struct forecast *forecast);             // NULL allowed
void forecast_begin(struct sched *sched, struct pod *pod); // it waits and was told why
void forecast_end(struct sched *sched, struct pod *pod);   // it starts
void forecast_drop(struct pod *pod);                       // it goes

// False: it does not wait, too little is known, or guesses of its size do not hold.
MUST_USE bool sched_estimate_get(struct sched *sched, struct str namespace_, struct str name,
				 struct sched_estimate *ret);
struct forecast_row sched_forecast_row(const struct sched *sched, forecast_size size);
const char *forecast_size_name(forecast_size size);
