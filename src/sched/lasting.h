// SPDX-License-Identifier: Apache-2.0
// The inside of durations.h, for the files of this folder: what is expected of a pod when it
// comes. Values only; nothing here fails.
#pragma once

#include "sched/core.h"
#include "sched/durations.h"

struct sched_duration lasting_of(const struct sched *sched, const struct sched_pod_in *in,
				 const struct learn_kind *kind);
