// SPDX-License-Identifier: Apache-2.0
// Dynamic resource allocation as a part of the agent: on nodes of mode dra the GPUs, and the MIG
// devices of those in MIG mode, are offered by a ResourceSlice and given to claims, and to no
// device plugin; on the others the devices of claims that are still prepared from before are given
// to nobody. Who holds a device by a claim is metered as by the device plugin.
#pragma once

#include "daemons/agent/dra.h"
#include "daemons/agent/dra_publish.h"

struct agent;
struct dp_config;

MUST_USE err_status agent_start_dra(struct agent *agent, struct err *err);
void agent_stop_dra(struct agent *agent);
bool agent_is_dra(const struct agent *agent);
// Refuses a configuration that shares devices, where claims get whole ones, or renames MIG devices.
MUST_USE err_status agent_dra_check(const struct agent *agent, const struct dp_config *config,
				    struct err *err);
void agent_dra_offer(struct agent *agent);
void agent_dra_look(struct agent *agent); // each few seconds
// Why the GPU is given to nobody, by the device plugin or to a claim; NULL: nothing here says so.
const char *agent_dra_why(const struct agent *agent, uint32_t slot);
const char *agent_dra_part_why(const struct agent *agent, uint32_t slot, uint32_t instance_i);
// Whether a claim has the GPU or one of its MIG devices; or that MIG device alone.
bool agent_dra_holds(const struct agent *agent, uint32_t slot);
bool agent_dra_holds_part(const struct agent *agent, uint32_t slot, uint32_t instance_i);
// Tells usage of claims that PodResources does not show.
void agent_dra_show(struct agent *agent);
// Zeros where claims are not served.
void agent_dra_stats(const struct agent *agent, struct dra_stats *ret,
		     struct dra_publish_stats *ret_publish);
