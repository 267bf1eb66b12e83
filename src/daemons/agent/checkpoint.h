// SPDX-License-Identifier: Apache-2.0
// The kubelet's file of device allocations (kubelet_internal_checkpoint): who holds what, by pod
// UID, also pods that have just ended. It is a format of the kubelet's own, so it is the second
// source beside PodResources: read when it can be read, never relied upon alone.
#pragma once

#include "base/str.h"

struct checkpoint_row {
	struct str pod_uid, container, resource, id;
};
typedef void checkpoint_row_fn(void *arg, const struct checkpoint_row *row);

#define CHECKPOINT_FILE "kubelet_internal_checkpoint"
enum { CHECKPOINT_MAX_BYTES = 8 * 1024 * 1024 };

// Tells nothing unless the whole is well formed.
MUST_USE err_status checkpoint_read(struct str text, checkpoint_row_fn *fn, void *arg,
				    struct err *err);
