// SPDX-License-Identifier: Apache-2.0
// From decoded Kubernetes objects to what the scheduling core takes in; pure, shared by the daemon
// and the simulator so that both decide the same. Results lie in the caller's arena and borrow
// from the decoded object. A pod with something that this code cannot honour gets refusals in its
// spec instead of an error: it is then refused with that reason, never placed as if it held.
#pragma once

#include "k8s/kobj_node.h"
#include "sched/sched.h"

#define FEED_PLAN_ANNOTATION "gpuaas.io/devices"
#define FEED_MAC_ANNOTATION "gpuaas.io/devices-mac"
#define FEED_WHY_ANNOTATION "gpuaas.io/why"   // of its node, see sched/why.h
#define FEED_TERM_ANNOTATION "gpuaas.io/term" // leaseTransitions of who decided
#define FEED_GPU_RESOURCE "nvidia.com/gpu"
#define FEED_PREEMPTED_REASON "PreemptionByScheduler" // of the condition DisruptionTarget

// ret_pod->device_uuids is left empty: whether the plan annotation is to be believed is the
// caller's to say (feed_plan_read). False only at the arena's limit.
MUST_USE bool feed_pod(struct arena *arena, const struct kobj_pod *pod,
		       const struct kobj_unknowns *unknowns, struct str scheduler_name,
		       struct sched_pod_in *ret_pod);
// When the pod came to its node, seconds since 1970, as its condition says; 0: not said.
int64_t feed_bound_s(const struct kobj_pod *pod);
// Until when its work is safe, as it says itself; 0: it does not say, or not readably.
int64_t feed_checkpoint_s(const struct kobj_pod *pod);
bool feed_pod_is_finished(const struct kobj_pod *pod); // Succeeded or Failed: holds nothing
MUST_USE bool feed_node(struct arena *arena, const struct kobj_node *node,
			struct sched_node_in *ret_node);
MUST_USE bool feed_devices(struct arena *arena, const struct kobj_gpu_node *node,
			   struct sched_device_in **ret_devices, size_t *ret_count);
struct sched_labels feed_labels(const struct kobj_pairs *pairs); // the same memory

// The plan in the annotation of a Binding: [{"container","resource","uuid","milli","memory_mib"}].
void feed_plan_write(struct buf *out, const struct sched_grant *grants, size_t count);
// UUIDs of the whole GPUs of a plan, each once; false when it is not such a text.
MUST_USE bool feed_plan_read(struct arena *arena, struct str text, struct str **ret_uuids,
			     size_t *ret_count);
// The shares of a plan, line by line; as feed_plan_read.
MUST_USE bool feed_plan_holds(struct arena *arena, struct str text, struct sched_hold **ret_holds,
			      size_t *ret_count);
