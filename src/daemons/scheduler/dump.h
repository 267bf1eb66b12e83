// SPDX-License-Identifier: Apache-2.0
// gpuaas-scheduler dump: prints what the scheduler would see now, for gpuaas-sim. Needs a client,
// nothing else of the scheduler; fails when the API server or the output does.
#pragma once

#include "daemons/scheduler/scheduler.h"

MUST_USE err_status dump_print(struct scheduler *s, struct err *err);
