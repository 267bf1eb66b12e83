// SPDX-License-Identifier: Apache-2.0
// What the agent needs of a pod: who it is, which containers want GPUs, the times that a bill
// rests on, the plan as it stands in the annotations. Decoded from JSON or protobuf by one
// table; text is copied, so facts outlive the watch event.
#pragma once

#include "base/json.h"

enum {
	POD_NAME_BYTES = 254,
	POD_LABEL_BYTES = 128,
	POD_SHORT_BYTES = 64, // uid, namespace, container
	POD_CONTAINERS_MAX = 16,
};

struct pod_container {
	char name[POD_SHORT_BYTES];
	uint32_t gpus;
	bool is_init;
};

struct pod_facts {
	char uid[POD_SHORT_BYTES], namespace_[POD_SHORT_BYTES], name[POD_NAME_BYTES];
	char request[POD_LABEL_BYTES]; // label gpuaas.io/request if it is NAMESPACE.NAME
	int64_t scheduled_s;           // 0: not known
	int64_t finished_s;            // last finish of its containers so far
	int64_t deleted_s;
	bool is_terminal;                                    // Succeeded or Failed
	bool is_all_finished;                                // every container of it has ended
	bool has_ended;                                      // at least one container has
	struct pod_container containers[POD_CONTAINERS_MAX]; // those that want GPUs
	size_t container_count;
	bool has_claims;           // it may have GPUs by a claim
	struct str plan, plan_mac; // annotations; borrowed from the bytes of the event
};

// bytes: the object, JSON or (is_protobuf) protobuf with or without its envelope. resource: the
// name of the GPUs. Memory of the arena and of value must live as long as plan and plan_mac.
MUST_USE err_status pod_facts_read(struct arena *arena, struct str bytes, bool is_protobuf,
				   const char *resource, struct pod_facts *ret, struct err *err);
