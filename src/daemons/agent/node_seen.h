// SPDX-License-Identifier: Apache-2.0
// What the API server already has of this node, read before the first write after a start: the
// versions that the kubelet tells, which labels are ours (by managedFields) with their values, and
// the status of the GPUNode. What is there already is not written again, and conditions keep the
// time of their last change. Pure; bodies of answers come in, nothing is asked here.
#pragma once

#include "base/json.h"
#include "daemons/agent/node_object.h"

#define NODE_FIELD_MANAGER "gpuaas-agent"

struct node_seen {
	json_t *labels; // ours; NULL: not read yet
	json_t *status; // of the GPUNode; NULL: there is none
};

void node_seen_done(struct node_seen *seen);
MUST_USE err_status node_seen_node(struct node_seen *seen, struct str body,
				   struct node_versions *ret_versions, struct err *err);
MUST_USE err_status node_seen_gpu_node(struct node_seen *seen, struct str body, struct err *err);
// Whether applying the body would change nothing.
bool node_seen_has_labels(const struct node_seen *seen, struct str body);
bool node_seen_has_status(const struct node_seen *seen, struct str body);
int64_t node_seen_timestamp_s(const struct node_seen *seen); // 0: no such label
// Time of the last change, if the condition is there with that status; else empty.
struct str node_seen_condition_t(const struct node_seen *seen, const char *type, bool is_true);
