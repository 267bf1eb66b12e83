// SPDX-License-Identifier: Apache-2.0
// What the agent offers to the kubelet: configuration, GPUs and holders come together here.
#include "daemons/agent/agent.h"

#include "daemons/agent/cdi.h"
#include "daemons/agent/mps.h"
#include "sys/log.h"

#include <stdio.h>

// After a GPU's form changed, until what was just given out in the old form has shown.
static const uint64_t SETTLE_NS = 3000 * UINT64_C(1000000);
// While something is left on a GPU, so that it is given again soon after.
static const uint64_t UNCLEAN_LOOK_NS = 2000 * UINT64_C(1000000);
static const uint64_t MPS_LOOK_NS = 1000 * UINT64_C(1000000);

static bool is_same_form(const struct offer_gpu *a, const struct offer_gpu *b)
{
	return a->replicas == b->replicas && a->has_parts == b->has_parts &&
	       strcmp(a->resource, b->resource) == 0;
}

// A GPU of which somebody holds the old form is given to nobody in the new one; shares under MPS
// are given while their daemon serves.
static const char *why_held_back(const struct agent *agent, uint32_t slot)
{
	const struct offer_gpu *offered = &agent->offer.gpus[slot];
	uint64_t since_ns = agent->form_changed_ns[slot];
	if (agent->offer.sharing == DP_MPS && offered->replicas > 0 && !offer_is_late(offered) &&
	    !mps_is_ready(agent->dp.mps_root, offered->resource))
		return "the MPS control daemon does not answer";
	if (agent->dp.share_limit == DP_LIMIT_MPS && offer_is_late(offered) &&
	    !mps_is_ready(agent->dp.mps_root, SHARE_MILLI_RESOURCE))
		return "the MPS control daemon does not answer";
	bool is_settling = since_ns != 0 && loop_now_ns(agent->loop) - since_ns < SETTLE_NS;
	if (is_settling || offer_is_held_otherwise(offered, meter_usage(agent->meter),
						   monitor_gpu(agent->monitor, slot)->info.uuid))
		return "it is still held as it was offered before";
	if (agent->handovers[slot].is_dirty)
		return agent->handovers[slot].reason;
	const char *why =
		agent_layout_why(agent->layout, monitor_gpu(agent->monitor, slot), MIG_WHOLE);
	return why != NULL ? why : agent_dra_why(agent, slot);
}

// Looks whether a GPU that nobody holds is clean; what must be read for that is asked for.
static void look_at_handover(struct agent *agent, uint32_t slot)
{
	const struct monitor_gpu *gpu = monitor_gpu(agent->monitor, slot);
	const struct handover_config config = {
		.grace_ns = (uint64_t)agent->config.handover_ms * UINT64_C(1000000),
		.memory_mib = (uint64_t)agent->config.handover_mib,
	};
	struct holders_stats holders;
	size_t at = 0;
	uint64_t now_ns = loop_now_ns(agent->loop);
	holders_stats(agent->holders, &holders);
	bool has_memory = gpu_reading_has(&gpu->reading, GPU_FIELD_FB_USED_MIB);
	const struct handover_facts facts = {
		// While the kubelet does not say who holds what, everything may be held.
		.is_held = !holders.is_listed || agent_dra_holds(agent, slot) ||
			   usage_next_holder(meter_usage(agent->meter), gpu->info.uuid, &at) !=
				   NULL,
		.is_whole = agent->offer.gpus[slot].replicas == 0,
		.process_count = gpu->processes.count,
		.first_pid = gpu->processes.count == 0 ? 0 : gpu->processes.items[0].pid,
		.processes_ns = gpu->processes_ns,
		.memory_mib = has_memory ? (uint64_t)gpu->reading.values[GPU_FIELD_FB_USED_MIB] : 0,
		.memory_ns = gpu->reading_ns,
	};
	struct handover *handover = &agent->handovers[slot];
	bool was_free = handover->free_ns != 0;
	if (handover_look(handover, &config, &facts, now_ns)) {
		agent_tell_health(agent);
		if (agent->node != NULL)
			node_writer_poke(agent->node);
		log_kv(handover->is_dirty ? LOG_WARN : LOG_INFO,
		       handover->is_dirty ? "GPU is not clean, it is given to nobody"
					  : "GPU is clean again or held",
		       "gpu", gpu->info.uuid, "why", handover->reason, NULL);
	}
	if (handover->free_ns != 0 && !was_free)
		loop_timer_set(agent->settle, config.grace_ns + 1);
	if (handover->is_dirty)
		loop_timer_set(agent->settle, UNCLEAN_LOOK_NS);
	if (handover->is_dirty || handover_wants_reading(handover, &config, &facts, now_ns))
		monitor_processes_now(agent->monitor, slot);
}

struct cdi_config agent_cdi_config(const struct agent *agent)
{
	const struct dp_config *dp = &agent->dp;
	return (struct cdi_config){
		.dir = agent->config.cdi_dir,
		.driver_root = agent->config.driver_root,
		.host_root = dp->driver_root[0] == '\0' ? NULL : dp->driver_root,
		.host_dev_root = dp->dev_root[0] == '\0' ? NULL : dp->dev_root,
		.by_index = dp->ids_by_index,
		.mounts = agent->config.mounts,
		.mount_count = agent->config.mount_count,
	};
}

static bool write_cdi(struct agent *agent)
{
	AUTO(mig_caps_done) struct mig_caps caps = { 0 };
	struct mig_device migs[GPU_MAX * MIG_INSTANCES_MAX];
	struct gpu_info gpus[GPU_MAX];
	struct err err;
	size_t count = 0;
	for (uint32_t slot = 0; slot < monitor_count(agent->monitor); slot++) {
		if (monitor_gpu(agent->monitor, slot)->is_known)
			gpus[count++] = monitor_gpu(agent->monitor, slot)->info;
	}
	mig_caps_read(agent->config.proc_driver, &caps);
	struct cdi_parts parts = { .gpus = gpus,
				   .gpu_count = count,
				   .migs = migs,
				   .mig_count = agent_list_migs(agent, &caps, gpus, migs) };
	struct cdi_config cdi = agent_cdi_config(agent);
	cdi.caps_major = caps.major;
	if (count == 0 || cdi_write(&cdi, &parts, &err) == ERR_OK)
		return true;
	log_err(LOG_ERROR, "CDI specification is not written; nothing is offered", &err);
	return false;
}

// To nobody by their profile's resource, which pods must not wait for here.
static void name_parts(struct offer *offer)
{
	for (uint32_t slot = 0; slot < offer->count; slot++) {
		for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
			struct offer_part *part = &offer->gpus[slot].parts[i];
			if (part->resource[0] != '\0')
				(void)snprintf(part->resource, sizeof part->resource, DRA_DRIVER);
		}
	}
}

// Plans anew with the GPUs that there are; what stays as it was keeps its times.
static err_status plan(struct agent *agent, const struct dp_config *dp, struct err *err)
{
	struct offer next;
	err_status status = offer_plan(dp, agent->config.resource, monitor_gpus(agent->monitor),
				       monitor_count(agent->monitor), &next, err);
	if (status != ERR_OK)
		return status;
	for (uint32_t slot = 0; slot < next.count; slot++) {
		const struct offer_gpu *before = &agent->offer.gpus[slot];
		bool was_offered = before->resource[0] != '\0' || before->has_parts;
		bool is_changed = slot < agent->offer.count && was_offered &&
				  !is_same_form(before, &next.gpus[slot]);
		if (is_changed)
			agent->form_changed_ns[slot] = loop_now_ns(agent->loop);
		if (is_changed)
			loop_timer_set(agent->settle, SETTLE_NS);
	}
	next.hides_shares = agent_shares_why(agent) != NULL;
	if (agent_is_dra(agent))
		name_parts(&next);
	agent->offer = next;
	return ERR_OK;
}

void agent_offer(struct agent *agent)
{
	struct err err = { 0 };
	struct dp_source_stats source;
	dp_source_stats(agent->source, &source);
	if (!monitor_is_ready(agent->monitor) || !source.is_loaded)
		return;
	agent->is_offer_bad = plan(agent, &agent->dp, &err) != ERR_OK;
	if (agent->is_offer_bad && strcmp(agent->offer_why, err.text) != 0)
		log_err(LOG_ERROR, "these GPUs cannot be offered as configured", &err);
	(void)snprintf(agent->offer_why, sizeof agent->offer_why, "%s", err.text);
	// The specification first: a device must not be offered before its name resolves.
	if (agent->offer.count == 0 || !write_cdi(agent))
		return;
	for (uint32_t slot = 0; slot < agent->offer.count; slot++) {
		look_at_handover(agent, slot);
		agent->held_back[slot] = why_held_back(agent, slot);
		agent_hold_back_parts(agent, slot);
	}
	if (agent_is_dra(agent)) {
		agent_dra_offer(agent);
		return;
	}
	resources_offer(agent->resources, &agent->offer, monitor_gpus(agent->monitor),
			agent->held_back);
	if (agent->offer.sharing == DP_MPS || agent->dp.share_limit == DP_LIMIT_MPS)
		loop_timer_set(agent->mps_look, MPS_LOOK_NS);
}

// Whether MPS daemons came or went; only then all is offered anew.
static void on_mps_look(void *arg)
{
	struct agent *agent = arg;
	for (uint32_t slot = 0; slot < agent->offer.count; slot++) {
		const char *before = agent->held_back[slot], *now = why_held_back(agent, slot);
		if ((before == NULL) == (now == NULL) && (now == NULL || strcmp(before, now) == 0))
			continue;
		agent_offer(agent);
		return;
	}
	loop_timer_set(agent->mps_look, MPS_LOOK_NS);
}

static err_status apply(void *arg, const struct dp_config *config, struct err *err)
{
	struct agent *agent = arg;
	struct dp_config next = *config;
	if (agent_dra_check(agent, config, err) != ERR_OK)
		return err->status;
	if (agent_is_dra(agent))
		next.mig = DP_MIG_MIXED; // claims tell the parts by their profile
	if (agent->monitor != NULL && monitor_is_ready(agent->monitor)) {
		err_status status = plan(agent, &next, err);
		if (status != ERR_OK)
			return status;
	}
	agent->dp = next;
	if (agent->source != NULL) // else the start goes on
		loop_defer(agent->loop, agent_offer_later, agent);
	return ERR_OK;
}

void agent_offer_later(void *arg) { agent_offer(arg); }

static void on_label(void *arg, const char *value)
{
	struct agent *agent = arg;
	dp_source_label(agent->source, value);
}

err_status agent_start_source(struct agent *agent, struct err *err)
{
	const struct agent_config *from = &agent->config;
	const struct dp_source_config source = {
		.file = from->dp_file,
		.dir = from->dp_dir,
		.default_name = from->dp_default,
		.fallbacks = from->dp_fallbacks,
		.kept_path = agent->kept_path,
		.waits_for_label = agent->client != NULL,
		.flags = agent->config.dp_flags,
		.arg = agent,
		.apply = apply,
	};
	const struct node_label_config label = {
		.node = from->node_name, .label = from->dp_label, .arg = agent, .on_value = on_label
	};
	(void)snprintf(agent->kept_path, sizeof agent->kept_path, "%.3000s/plugin-config-name",
		       from->state_dir);
	agent->settle = loop_timer_new(agent->loop, agent_offer_later, agent);
	agent->mps_look = loop_timer_new(agent->loop, on_mps_look, agent);
	err_status status = dp_source_new(agent->loop, &source, &agent->source, err);
	if (status == ERR_OK && from->dp_dir != NULL && agent->client != NULL)
		status = node_label_new(agent->client, &label, &agent->label, err);
	return status;
}
