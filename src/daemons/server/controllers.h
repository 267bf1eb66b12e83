// SPDX-License-Identifier: Apache-2.0
// The controllers: tenants become namespaces with their guards, GPU requests become Jobs and get
// their status from them, nodes get another driver, and pods leave dead GPUs. Level-triggered:
// every pass compares what should be with the cache and does the next step, so a crash at any
// instant leaves nothing that the next pass does not mend. Everything that must survive is in
// Kubernetes. Loop thread only.
#pragma once

#include "api/objects.h"
#include "base/metric.h"
#include "policy/deadgpu.h"

struct controllers;

struct controllers *controllers_new(struct loop *loop, struct objects *objects,
				    struct k8s_client *k8s, const struct dead_gpu_rule *rule);
void controllers_free(struct controllers *controllers); // NULL allowed
void controllers_on_change(struct controllers *controllers, object_kind kind, json_t *object,
			   bool is_gone);
// Deletes at most so many requests that ended before the instant; their history is in SQL.
void controllers_forget_ended(struct controllers *controllers, int64_t before_s, size_t max);
void controllers_put_metrics(const struct controllers *controllers, struct buf *out);
