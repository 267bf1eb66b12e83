// SPDX-License-Identifier: Apache-2.0
// The taint of a node with dead GPUs, as a change of the Node: all its taints are written, because
// Kubernetes merges no single one, with the version that was read, so that nobody's change is lost.
// Other taints stay as they are. Pure.
#pragma once

#include "base/json.h"

#define DEAD_GPU_TAINT "gpuaas.io/dead-gpus"

bool node_has_dead_gpu_taint(const json_t *host);
// New reference; NULL: it is so already.
json_t *node_taint_patch(const json_t *host, bool is_wanted);
