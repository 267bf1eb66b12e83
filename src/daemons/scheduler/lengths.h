// SPDX-License-Identifier: Apache-2.0
// How long pods run: who leads asks once for those that are over and tells the core how long they
// took; pods of tenants with a longest time get it as their own (activeDeadlineSeconds), so that
// the kubelet ends them, as soon as they are seen on a node. Estimates and their truth are shown.
// Owned by struct scheduler; calls under way end with the term. What fails is told in the log and
// asked again.
#pragma once

#include "daemons/scheduler/scheduler.h"

struct lengths;

MUST_USE err_status lengths_open(const struct scheduler *s, struct err *err); // the option
void lengths_begin(struct scheduler *s);                                      // the core is new
void lengths_end(struct scheduler *s);
// A pod of ours is on a node.
void lengths_check(struct scheduler *s, const struct kobj_pod *pod);
// It is over or gone.
void lengths_gone(struct scheduler *s, struct str uid);
void lengths_put_view(struct scheduler *s, struct str namespace_, struct str name,
		      struct buf *out); // members "duration" and "estimate", each with its comma
void lengths_put_metrics(const struct scheduler *s, struct buf *out);
