// SPDX-License-Identifier: Apache-2.0
// Which layout of MIG devices this node should have, and what it says: the node's label
// nvidia.com/mig.config names it (without an API server the agent's own file does), GPUPolicy
// objects or a file in the form of the upstream MIG manager hold it. Watches both, looks at the
// file every two seconds and when asked. What is broken is told when it is asked for, so that a
// broken layout that nobody wants does no harm.
#pragma once

#include "daemons/agent/mig_layout.h"
#include "k8s/client.h"

struct layouts;

struct layouts_config {
	const char *node, *file, *name; // file and name NULL: none; name: without label
	struct k8s_client *client;      // NULL: no label and no objects
	void *arg;
	loop_fn *on_change;
};

MUST_USE err_status layouts_new(struct loop *loop, const struct layouts_config *config,
				struct layouts **ret, struct err *err);
void layouts_free(struct layouts *layouts); // NULL allowed; before the client
void layouts_look(struct layouts *layouts); // at the file
// False: it is not known yet what is wanted.
bool layouts_is_known(const struct layouts *layouts);
const char *layouts_name(const struct layouts *layouts); // "": none is wanted
// The layout of that name, and what is reserved on this node.
MUST_USE err_status layouts_read(const struct layouts *layouts, struct mig_layout *ret,
				 struct mig_reserves *ret_reserves, struct err *err);
