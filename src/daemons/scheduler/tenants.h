// SPDX-License-Identifier: Apache-2.0
// Tenants as the scheduler's queues: settings into the core, tables and metrics out of it, and
// what each queue has had written to its Tenant's status from time to time, so that fairness over
// time outlives this process. One write at a time; a lost one is made good by the next. Owned by
// struct scheduler; texts of options are checked at the start.
#pragma once

#include "daemons/scheduler/scheduler.h"

MUST_USE err_status tenants_open(struct scheduler *s, struct err *err); // options
void tenants_close(struct scheduler *s);                                // NULL allowed inside
void tenants_begin(struct scheduler *s);                                // the core is new
void tenants_end(struct scheduler *s);
void tenants_take(struct scheduler *s, const json_t *tenant, bool is_gone);

void tenants_put_metrics(struct scheduler *s, struct buf *out);
void tenants_put_table(struct scheduler *s, struct buf *out); // JSON
// The member "queue" of an explanation, with its comma; nothing when no queue has a say.
void tenants_put_place(struct scheduler *s, struct str namespace_, struct str name,
		       struct buf *out);
