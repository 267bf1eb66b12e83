// SPDX-License-Identifier: Apache-2.0
// POST /dry-run with a pod as it would be created: what would become of it, answered by the code
// that decides (sched/dryrun.h) on what the leader knows now. Nothing is written and no decision
// is another one because of it. The pod's priority is that of its class, as the API server has it.
#pragma once

#include "daemons/scheduler/scheduler.h"

#include "net/http_server.h"

// Answers the exchange, now or when the class is known; the caller has checked who asks.
void dryrun_begin(struct scheduler *s, struct http_exchange *exchange,
		  const struct http_request *request);
