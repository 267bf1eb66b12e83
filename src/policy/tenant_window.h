// SPDX-License-Identifier: Apache-2.0
// Windows of a tenant as people give them: GPUs that are reserved for it from an instant to another
// (sched/window.h keeps them), the shape, and whether the cluster has as many at every instant
// beside the windows of the other tenants. Members are called as in spec.windows. Pure; nothing is
// kept.
#pragma once

#include "policy/request.h"

enum {
	TENANT_WINDOWS_MAX = 32,
	TENANT_WINDOW_GPUS_MAX = 100000,
	TENANT_WINDOW_LONGEST_S = 366 * 86400,
};

extern const struct schema tenant_window_schema;

struct tenant_windows_input {
	struct str tenant;
	const json_t *windows; // of the right shape: all that it is to have
	const json_t
		*tenants; // object of all tenants: name to its spec.windows; its own is left out
	const struct inventory *inventory; // of no rows: nothing is known, as many as asked for
	int64_t now_s;                     // what is over counts as absent
	struct str only;                   // its window that is looked at; empty: all of them
};

// ERR_INVALID for a window that means nothing, ERR_LIMIT for one that cannot be held: with the
// instant, what is asked for then, by which windows, and what there is.
MUST_USE err_status tenant_windows_check(const struct tenant_windows_input *in,
					 struct schema_fault *ret_fault, struct err *err);

// Its windows and one more, or all but one: new lists for tenant_windows_check. ERR_CONFLICT: one
// is called so, ERR_LIMIT: there are as many as may be, ERR_INVALID: it is over; ERR_NOT_FOUND.
MUST_USE err_status tenant_windows_add(const json_t *windows, json_t *window, int64_t now_s,
				       json_t **ret_windows, struct err *err);
MUST_USE err_status tenant_windows_remove(const json_t *windows, struct str name,
					  json_t **ret_windows, struct err *err);
// NULL: there is none. Borrowed.
json_t *tenant_windows_find(const json_t *windows, struct str name);
