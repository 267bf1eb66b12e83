// SPDX-License-Identifier: Apache-2.0
// The layout of MIG devices that this node should have, brought about: joins its sources
// (layouts.h), the planning and undoing (mig_apply.h), the driver, the holders, and the record on
// disk. All calls accept NULL: layouts are not managed here then.
#pragma once

#include "daemons/agent/layouts.h"
#include "daemons/agent/mig_apply.h"

struct agent;
struct agent_layout;

// *ret stays NULL when the configuration does not ask for it.
MUST_USE err_status agent_layout_new(struct agent *agent, struct agent_layout **ret,
				     struct err *err);
void agent_layout_free(struct agent_layout *layout); // before the API client
void agent_layout_look(struct agent_layout *layout); // devices or what is wanted may have changed
void agent_layout_step(struct agent_layout *layout);
void agent_layout_changed(struct agent_layout *layout, int32_t status, const char *text);
void agent_layout_reload(struct agent_layout *layout); // looks at the file
// Why an instance, or a whole GPU (MIG_WHOLE), is given to nobody; NULL: not for the layout.
const char *agent_layout_why(const struct agent_layout *layout, const struct monitor_gpu *gpu,
			     uint32_t instance_i);
const struct mig_apply *agent_layout_apply(const struct agent_layout *layout); // NULL: none
