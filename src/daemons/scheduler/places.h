// SPDX-License-Identifier: Apache-2.0
// POST /places with {"pods":["NAMESPACE/NAME",...]}: where each of them stands in its queue and by
// which factors, without a look at nodes, so that a long list costs little.
#pragma once

#include "daemons/scheduler/scheduler.h"

enum { PLACES_MAX = 1000 };

// {"items":{"NAMESPACE/NAME":{"position","queue"}}}; who does not wait is left out. False: the body
// is none of those.
MUST_USE bool places_put(struct scheduler *s, struct str body, struct buf *out);
