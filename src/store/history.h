// SPDX-License-Identifier: Apache-2.0
// Two tables of JSON objects. The history keeps the last known state of every request after its
// object is gone, one row a uid. The objects table stands in for Kubernetes where there is none.
#pragma once

#include "store/store.h"

struct history_row {
	struct str uid;
	struct str id; // "TENANT.NAME"
	struct str tenant;
	int64_t created_s;
	struct str state;
	struct str json; // the answer of the API
};

MUST_USE err_status history_put(struct sql *sql, const struct history_row *row, struct err *err);
// The newest of that id.
MUST_USE err_status history_find(struct sql *sql, struct arena *arena, struct str id,
				 struct history_row *ret_row, struct err *err);

struct object_row {
	struct str kind, namespace_, name;
	struct str json;
};

MUST_USE err_status object_put(struct sql *sql, const struct object_row *row, bool must_be_new,
			       struct err *err);
MUST_USE err_status object_remove(struct sql *sql, struct str kind, struct str namespace_,
				  struct str name, struct err *err);
typedef void object_row_fn(void *arg, const struct object_row *row);
MUST_USE err_status object_each(struct sql *sql, object_row_fn *fn, void *arg, struct err *err);
