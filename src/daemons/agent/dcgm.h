// SPDX-License-Identifier: Apache-2.0
// Profiling counters of boards without GPM (before Hopper) from DCGM, whose library is opened at
// run time: inside this process, or as a client of a running host engine. One thread looks, the
// devices' threads take what it saw last, so that a call that hangs in DCGM keeps no device
// waiting. It is owned by the child process. Lost connections are made anew; values older than
// DCGM_FRESH_S are not given. Not yet run on hardware.
#pragma once

#include "base/err.h"
#include "gpu/field.h"

enum { DCGM_FRESH_S = 5, DCGM_RETRY_S = 10 };

struct dcgm;

// address: host[:port] of a host engine; NULL or "": inside this process. Opens the library only.
MUST_USE err_status dcgm_new(const char *library, const char *address, struct dcgm **ret,
			     struct err *err);
void dcgm_free(struct dcgm *dcgm); // NULL allowed; nobody uses it any more
// One look at all devices, by one thread; connects first, DCGM_RETRY_S after a failure.
void dcgm_look(struct dcgm *dcgm, uint64_t now_ns);
// Adds what was seen of the device to what has no value yet, by any thread.
void dcgm_add(struct dcgm *dcgm, const char *uuid, uint64_t now_ns, struct gpu_reading *reading);
