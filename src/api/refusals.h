// SPDX-License-Identifier: Apache-2.0
// Which refused calls get an audit record each, so that nobody fills the disk under the audit log
// by asking for what is not theirs: of each caller so many a minute, however many tokens they
// have; the others are counted, and the count becomes one record when the minute is over. The
// table has a fixed size; callers beyond it share one entry. Loop thread only.
#pragma once

#include "base/str.h"

struct refusals;

// Who was refused: whom the token speaks for, or, where there is no good token, the address.
struct refused {
	struct str actor, role, tenant, peer;
};

struct refusals *refusals_new(size_t keys_max, int64_t per_minute); // NULL without memory
void refusals_free(struct refusals *refusals);                      // NULL allowed
// Whether this one gets a record of its own.
MUST_USE bool refusals_take(struct refusals *refusals, const struct refused *who, uint64_t now_ns);
// Tells of those that got none, one call for each caller whose minute is over, and forgets them.
typedef void refusals_fn(void *arg, const struct refused *who, int64_t count);
void refusals_sweep(struct refusals *refusals, uint64_t now_ns, refusals_fn *fn, void *arg);
