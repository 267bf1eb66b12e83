// SPDX-License-Identifier: Apache-2.0
// The closed set of reasons why a pod does not run yet. The table is the documentation: code,
// scope, what it says, what would unblock it. What is told of a pod is in fact.h.
#pragma once

// Scope POD: the pod itself, no node can help. NODE: counted over nodes. Codes are stable names.
#define SCHED_REASONS(X)                                                                           \
	X(UNKNOWN_FIELD, "UnknownField", POD, "has a field this scheduler does not know",          \
	  "remove the field or use a newer scheduler")                                             \
	X(UNSUPPORTED_VOLUME, "UnsupportedVolume", POD, "has a volume that needs binding",         \
	  "use a claim with a CSI driver instead")                                                 \
	X(UNSUPPORTED_VALUE, "UnsupportedValue", POD, "has a value this scheduler does not know",  \
	  "use a documented value")                                                                \
	X(INVALID_ANNOTATION, "InvalidAnnotation", POD, "has an annotation that cannot be read",   \
	  "correct the annotation")                                                                \
	X(INVALID_QUANTITY, "InvalidQuantity", POD, "asks for an amount that cannot be read",      \
	  "correct the amount")                                                                    \
	X(INVALID_OBJECT, "InvalidObject", POD, "cannot be read", "create the pod anew")           \
	X(SCHEDULING_GATED, "SchedulingGated", POD, "has scheduling gates",                        \
	  "whoever set the gates removes them")                                                    \
	X(BIND_FAILED, "BindFailed", POD, "could not be bound and will be tried again",            \
	  "nothing, unless it goes on: see the scheduler's log")                                   \
	X(NO_NODES, "NoNodes", POD, "finds no node in the cluster", "add a node")                  \
	X(GANG_CONTRADICTION, "GangContradiction", POD, "says other than the rest of its gang",    \
	  "give all members of the gang the same annotations, or end those that run")              \
	X(GANG_INCOMPLETE, "GangIncomplete", POD, "waits for members of its gang",                 \
	  "create the missing pods, or lower gpuaas.io/gang-min")                                  \
	X(GANG_FULL, "GangFull", POD, "is more than its gang may have",                            \
	  "raise gpuaas.io/gang-max, or wait until a member ends")                                 \
	X(GANG_DOES_NOT_FIT, "GangDoesNotFit", POD, "fits, but not with its whole gang at once",   \
	  "wait until enough is released, or ask for a smaller gang")                              \
	X(GANG_EXPIRED, "GangExpired", POD, "was started in part and could not be completed",      \
	  "wait: the gang starts anew as soon as it fits as a whole")                              \
	X(QUEUE_INVALID, "QueueInvalid", POD, "is in a queue whose settings cannot hold",          \
	  "correct the named field of the Tenant")                                                 \
	X(QUEUE_LIMIT, "QueueLimitReached", POD, "would pass the limit of its queue",              \
	  "wait until the tenant releases GPUs, or have spec.queue.limit raised")                  \
	X(USER_LIMIT, "UserLimitReached", POD, "would pass the limit of one person in its queue",  \
	  "wait until GPUs of that person are released, or have spec.queue.userLimit raised")      \
	X(DEADLINE_LOST, "DeadlineUnreachable", POD, "can no longer end by its deadline",          \
	  "move gpuaas.io/deadline, say a shorter gpuaas.io/duration, or cancel it")               \
	X(NODE_CORDONED, "NodeUnschedulable", NODE, "may not use cordoned nodes",                  \
	  "uncordon a node")                                                                       \
	X(NODE_NOT_READY, "NodeNotReady", NODE, "may not use nodes that are not ready",            \
	  "repair a node")                                                                         \
	X(NODE_SELECTOR, "NodeSelectorMismatch", NODE, "has a node selector or affinity",          \
	  "change the selector or label a node")                                                   \
	X(TAINT, "UntoleratedTaint", NODE, "does not tolerate a taint", "add a toleration")        \
	X(NODE_FEATURE, "NodeFeatureMissing", NODE, "needs a feature the kubelet lacks",           \
	  "update or configure the kubelet")                                                       \
	X(GPU_MODEL, "GpuModelMismatch", NODE, "asks for another GPU model",                       \
	  "allow more models in gpuaas.io/gpu-models")                                             \
	X(GPU_MEMORY, "GpuMemoryTooSmall", NODE, "needs GPUs with more memory",                    \
	  "lower gpuaas.io/min-gpu-memory")                                                        \
	X(GPU_COMPUTE, "GpuComputeTooLow", NODE, "needs a higher compute capability",              \
	  "lower gpuaas.io/min-compute")                                                           \
	X(DRIVER_VERSION, "DriverTooOld", NODE, "needs a newer driver", "update the driver")       \
	X(CUDA_VERSION, "CudaTooOld", NODE, "needs a newer CUDA", "update the driver")             \
	X(GPU_GROUP, "GpuGroupTooSmall", NODE,                                                     \
	  "needs GPUs that NVLink joins, or of one NUMA node",                                     \
	  "ask for fewer GPUs or remove gpuaas.io/topology")                                       \
	X(GPU_HEALTH, "GpuUnhealthy", NODE, "finds too few healthy GPUs",                          \
	  "repair the GPUs, or wait")                                                              \
	X(PORT_IN_USE, "HostPortInUse", NODE, "needs a host port that is taken",                   \
	  "use another port or wait")                                                              \
	X(TOO_MANY_PODS, "TooManyPods", NODE, "finds nodes with their maximum of pods",            \
	  "wait or add a node")                                                                    \
	X(RESOURCE_SHORT, "InsufficientResource", NODE, "needs more than is free",                 \
	  "wait until enough is released, or ask for less")                                        \
	X(RESOURCE_TOO_LARGE, "ResourceTooLarge", NODE, "needs more than the node has at all",     \
	  "ask for less or split the work over more pods")                                         \
	X(SLICE_RESERVED, "SliceReserved", NODE, "finds MIG devices that are reserved for others", \
	  "wait until others are released, or have the reservation in the GPUPolicy changed")      \
	X(DEVICE_SHORT, "DeviceUnavailable", NODE, "finds too few free GPUs of the kind",          \
	  "wait until enough is released")                                                         \
	X(SHARE_SHORT, "GpuShareUnavailable", NODE, "finds no GPU with so large a share free",     \
	  "wait until a share is released, or ask for a smaller one")                              \
	X(CLAIM_MISSING, "ClaimNotFound", NODE, "mounts a volume claim that is not there",         \
	  "create the claim")                                                                      \
	X(CLAIM_UNUSABLE, "ClaimUnusable", NODE,                                                   \
	  "mounts a claim that lost its volume, is being deleted, another pod's or unsupported",   \
	  "use another claim")                                                                     \
	X(CLAIM_UNBOUND, "ClaimUnbound", NODE, "mounts a claim that has no volume yet",            \
	  "see the claim's events: it must be bound first")                                        \
	X(UNSUPPORTED_CLAIM, "UnsupportedResourceClaim", NODE,                                     \
	  "has a resource claim of another driver, or one that asks for what is not supported",    \
	  "claim devices of gpu.gpuaas.io by count and selectors, or use the cluster's scheduler") \
	X(DEVICE_CLAIM_MISSING, "ResourceClaimNotFound", NODE,                                     \
	  "has a resource claim that is not there, is being deleted, or whose class is not there", \
	  "create the claim or its class; a claim from a template is made within moments")         \
	X(DEVICE_CLAIM_SHORT, "ResourceClaimUnsatisfied", NODE,                                    \
	  "finds no free devices for its resource claims, or they are allocated elsewhere",        \
	  "wait until enough is released, or ask for less")                                        \
	X(VOLUME_NODE, "VolumeNodeConflict", NODE, "has a volume that the node does not reach",    \
	  "wait for room on the volume's nodes")                                                   \
	X(VOLUME_ZONE, "VolumeZoneConflict", NODE, "has a volume in another zone",                 \
	  "wait for room in the volume's zone")                                                    \
	X(VOLUME_NONE, "NoVolumeForClaim", NODE,                                                   \
	  "finds no volume for a claim, and none can be made for the node",                        \
	  "add a volume or change the storage class")                                              \
	X(VOLUME_SPACE, "StorageShort", NODE, "finds too little storage for a new volume",         \
	  "ask for less or add storage")                                                           \
	X(VOLUME_LIMIT, "VolumeLimitReached", NODE, "would attach more volumes than the node may", \
	  "wait until pods with volumes end")                                                      \
	X(VOLUME_IN_USE, "VolumeInUse", NODE, "mounts a volume that another pod holds alone",      \
	  "wait until that pod ends")                                                              \
	X(POD_AFFINITY, "PodAffinityUnmet", NODE, "must be near pods that are not there",          \
	  "start those pods or change the affinity")                                               \
	X(POD_ANTI_AFFINITY, "PodAntiAffinityUnmet", NODE, "must not be near running pods",        \
	  "wait until they end or change the anti-affinity")                                       \
	X(EXISTING_ANTI_AFFINITY, "ExistingPodAntiAffinity", NODE,                                 \
	  "is kept away by the anti-affinity of running pods", "wait until they end")              \
	X(TOPOLOGY_SPREAD, "TopologySpreadUnmet", NODE, "would break its topology spread",         \
	  "raise maxSkew or add nodes in the emptier domains")                                     \
	X(HELD_BY_LOWER, "HeldByLowerPriority", NODE,                                              \
	  "would fit if pods of lower priority made room",                                         \
	  "wait until they are evicted for it; with preemption off, end them")                     \
	X(LOWER_PROTECTED, "LowerPriorityProtected", NODE,                                         \
	  "finds pods of lower priority that may not be evicted now: minimum run time, "           \
	  "disruption budget, another scheduler's",                                                \
	  "wait until they may be, or raise the budget")                                           \
	X(PREEMPTION_SHORT, "PreemptionNotEnough", NODE,                                           \
	  "would not fit either if all pods of lower priority left",                               \
	  "ask for less, or wait until pods of the same or higher priority end")                   \
	X(PREEMPTION_NEVER, "PreemptionNever", POD, "has the preemption policy Never",             \
	  "wait, or use a priority class that may preempt")                                        \
	X(PREEMPTION_VAIN, "PreemptionGivenUp", POD,                                               \
	  "had others evicted several times and found no room after all",                          \
	  "see its affinities and who takes the room, or create it anew")                          \
	X(PREEMPTING, "WaitsForEvicted", POD, "waits for pods that leave the node kept for it",    \
	  "nothing: it starts when they have ended")                                               \
	X(RESERVED, "ReservedForHead", NODE, "finds room that is kept for a pod before it",        \
	  "set or shorten gpuaas.io/duration, or wait until that pod has started")                 \
	X(NOMINATED, "NominatedForOther", NODE,                                                    \
	  "finds room that is kept for a pod of no lower priority",                                \
	  "wait until that pod has started")                                                       \
	X(WINDOW, "ReservedForWindow", NODE, "finds GPUs that a window keeps for another tenant",  \
	  "set or shorten gpuaas.io/duration, or wait until the window is over")                   \
	X(LOAD_STALE, "LoadStale", NODE,                                                           \
	  "was placed while loads of GPUs were unknown or too old to count",                       \
	  "nothing; if it goes on, see the source of loads and the scheduler's metrics about it")  \
	X(TOPOLOGY_LABEL, "TopologyLabelMissing", NODE, "needs a topology label on the node",      \
	  "label the nodes")

typedef enum sched_code {
#define X(name, text, scope, says, next) SCHED_CODE_##name,
	SCHED_REASONS(X)
#undef X
		SCHED_CODES
} sched_code;
