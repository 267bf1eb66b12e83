// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs, as asks of a spec and as parts of a plan. Each ask is of one device and stays
// below it; several containers of a pod may get theirs of different devices.
#pragma once

#include "gpu/share.h"

enum { SCHED_SHARES_MAX = 16 }; // of one pod

struct sched_share_ask { // of one container
	struct str container;
	struct share share; // 0 of one kind: it follows from the other
};
struct sched_hold { // of a plan that has been checked
	struct str uuid;
	struct share share;
};
