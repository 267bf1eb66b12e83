// SPDX-License-Identifier: Apache-2.0
// The layout of MIG devices that the node should have, from its sources to the hardware: what the
// pure parts ask for is answered here.
#include "daemons/agent/agent_layout.h"

#include "daemons/agent/agent.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECORD_MAX_BYTES = 64 * 1024 };
static const uint64_t EARLY_NS = 30 * UINT64_C(1000000000);

struct agent_layout {
	struct agent *agent;
	struct layouts *layouts;
	struct loop_timer *timer;
	struct mig_apply apply;
	char record_path[4096];
	uint64_t since_ns;
	uint64_t lists; // of holders, when what is held back last changed
	bool is_wanted; // apply was told of a layout
	char told[MIG_REASON_BYTES + MIG_LAYOUT_NAME_BYTES + 16]; // the last outcome
};

static bool is_held(void *arg, uint32_t slot, uint32_t instance_i)
{
	const struct agent_layout *layout = arg;
	const struct monitor_gpu *gpu = monitor_gpu(layout->agent->monitor, slot);
	const struct usage_allocation *holder;
	size_t at = 0;
	if (instance_i == MIG_WHOLE && (offer_is_late(&layout->agent->offer.gpus[slot]) ||
					agent_dra_holds(layout->agent, slot)))
		return true; // set aside for shares, or held by a claim
	if (instance_i != MIG_WHOLE && agent_dra_holds_part(layout->agent, slot, instance_i))
		return true;
	while ((holder = usage_next_holder(meter_usage(layout->agent->meter), gpu->info.uuid,
					   &at)) != NULL) {
		if (instance_i == MIG_WHOLE ||
		    (holder->mig_starts >> gpu->mig.instances[instance_i].start & 1) != 0)
			return true;
	}
	return false;
}

static bool knows_holders(void *arg)
{
	const struct agent_layout *layout = arg;
	struct holders_stats stats;
	holders_stats(layout->agent->holders, &stats);
	return stats.is_listed && stats.lists > layout->lists;
}

static void change(void *arg, uint32_t slot, const struct nvml_mig_change *wanted)
{
	static const char *const names[] = { [NVML_MIG_MODE] = "mode",
					     [NVML_MIG_CREATE] = "create",
					     [NVML_MIG_DESTROY] = "destroy" };
	const struct agent_layout *layout = arg;
	char a[16], b[16];
	(void)snprintf(a, sizeof a, "%u", wanted->a);
	(void)snprintf(b, sizeof b, "%u", wanted->b);
	log_kv(LOG_INFO, "MIG is changed", "gpu",
	       monitor_gpu(layout->agent->monitor, slot)->info.uuid, "what", names[wanted->op], "a",
	       a, "b", b, NULL);
	monitor_change_mig(layout->agent->monitor, slot, wanted);
}

static err_status save(void *arg, struct str text, struct err *err)
{
	const struct agent_layout *layout = arg;
	return fs_write_atomic(layout->record_path, text, 0600, err);
}

static void tell(struct agent_layout *layout)
{
	const struct mig_apply *apply = &layout->apply;
	const char *node = layout->agent->config.node_name;
	const struct event_about about = {
		.api_version = "v1", .kind = "Node", .name = node, .uid = node
	};
	char text[sizeof layout->told];
	bool is_good = apply->outcome == MIG_SUCCESS;
	(void)snprintf(text, sizeof text, "%s %s%s%s", apply->ran, is_good ? "success" : "failed",
		       apply->reason[0] == '\0' ? "" : ": ", apply->reason);
	if (apply->phase != MIG_IDLE || apply->outcome == MIG_NONE ||
	    strcmp(text, layout->told) == 0)
		return;
	memcpy(layout->told, text, sizeof text);
	log_kv(is_good ? LOG_INFO : LOG_ERROR, "layout of MIG devices", "layout", apply->ran,
	       "outcome", mig_apply_state(apply), "why", apply->reason, NULL);
	if (layout->agent->events != NULL)
		event_put(layout->agent->events, &about, is_good ? "Normal" : "Warning",
			  is_good ? "MIGLayoutApplied" : "MIGLayoutFailed", "ApplyLayout", text);
}

static void on_offer(void *arg)
{
	struct agent_layout *layout = arg;
	struct agent *agent = layout->agent;
	struct holders_stats stats;
	tell(layout);
	if (agent->resources == NULL)
		return; // the start is not over
	holders_stats(agent->holders, &stats);
	layout->lists = stats.lists;
	loop_defer(agent->loop, agent_offer_later, agent);
	holders_look(agent->holders);
	if (agent->node != NULL)
		node_writer_poke(agent->node);
}

void agent_layout_step(struct agent_layout *layout)
{
	if (layout == NULL || layout->agent->resources == NULL ||
	    !monitor_is_ready(layout->agent->monitor) || layout->agent->offer.count == 0)
		return;
	struct holders_stats stats;
	holders_stats(layout->agent->holders, &stats);
	bool is_early = loop_now_ns(layout->agent->loop) - layout->since_ns < EARLY_NS;
	if (stats.lists == 0 && is_early) {
		loop_timer_set(layout->timer, EARLY_NS / 30); // nobody has said yet who holds what
		return;
	}
	const struct monitor *monitor = layout->agent->monitor;
	uint64_t wait_ns = mig_apply_step(&layout->apply, monitor_gpus(monitor),
					  monitor_count(monitor), loop_now_ns(layout->agent->loop));
	if (layout->apply.phase == MIG_FENCING)
		holders_look(layout->agent->holders);
	if (wait_ns > 0)
		loop_timer_set(layout->timer, wait_ns);
}

static void on_timer(void *arg) { agent_layout_step(arg); }

static err_status read_goals(const struct agent_layout *layout, struct mig_goal goals[GPU_MAX],
			     struct mig_reserves *reserves, struct err *err)
{
	const struct monitor *monitor = layout->agent->monitor;
	struct mig_layout wanted;
	if (layouts_read(layout->layouts, &wanted, reserves, err) != ERR_OK)
		return err->status;
	for (uint32_t slot = 0; slot < monitor_count(monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(monitor, slot);
		if (gpu->is_known &&
		    mig_layout_goal(&wanted, &gpu->info, &gpu->mig, &goals[slot], err) != ERR_OK)
			return err_wrap(err, "layout %s", wanted.name);
	}
	return ERR_OK;
}

void agent_layout_look(struct agent_layout *layout)
{
	struct mig_goal goals[GPU_MAX] = { 0 };
	struct mig_reserves reserves;
	struct err err;
	if (layout == NULL || !layouts_is_known(layout->layouts) ||
	    !monitor_is_ready(layout->agent->monitor))
		return;
	struct mig_apply *apply = &layout->apply;
	const char *name = layouts_name(layout->layouts);
	if (name[0] == '\0') {
		if (layout->is_wanted)
			mig_apply_refuse(apply, "", "");
		layout->is_wanted = false;
		layout->told[0] = '\0';
		return;
	}
	if (read_goals(layout, goals, &reserves, &err) != ERR_OK) {
		mig_apply_refuse(apply, name, err.text);
		layout->is_wanted = true;
		memset(apply->goals, 0, sizeof apply->goals);
		return;
	}
	bool is_same = layout->is_wanted && strcmp(apply->name, name) == 0 &&
		       mig_reserves_is_same(&reserves, &apply->reserves);
	for (size_t slot = 0; slot < GPU_MAX; slot++)
		is_same = is_same && mig_goal_is_same(&goals[slot], &apply->goals[slot]);
	bool has_drifted = apply->phase == MIG_IDLE && apply->outcome == MIG_SUCCESS &&
			   !mig_apply_is_met(apply, monitor_gpus(layout->agent->monitor),
					     monitor_count(layout->agent->monitor));
	if (is_same && !has_drifted)
		return;
	mig_apply_want(apply, name, goals, &reserves);
	layout->is_wanted = true;
	agent_layout_step(layout);
}

static void on_source(void *arg)
{
	struct agent_layout *layout = arg;
	agent_layout_look(layout);
}

void agent_layout_changed(struct agent_layout *layout, int32_t status, const char *text)
{
	if (layout == NULL)
		return;
	mig_apply_changed(&layout->apply, status, text);
	agent_layout_step(layout);
}

void agent_layout_reload(struct agent_layout *layout)
{
	if (layout != NULL)
		layouts_look(layout->layouts);
}

const char *agent_layout_why(const struct agent_layout *layout, const struct monitor_gpu *gpu,
			     uint32_t instance_i)
{
	if (layout == NULL || !mig_apply_holds_back(&layout->apply, gpu, instance_i))
		return NULL;
	return "a change of the MIG layout is under way";
}

const struct mig_apply *agent_layout_apply(const struct agent_layout *layout)
{
	return layout == NULL ? NULL : &layout->apply;
}

static void load_record(struct agent_layout *layout)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err;
	err_status status = fs_read(layout->record_path, RECORD_MAX_BYTES, &text, &err);
	if (status == ERR_OK)
		mig_apply_load(&layout->apply, buf_str(&text));
	else if (status != ERR_NOT_FOUND)
		log_err(LOG_WARN, "record of the MIG layout", &err);
	if (layout->apply.phase != MIG_IDLE)
		log_kv(LOG_WARN, "a change of the MIG layout was interrupted; it is undone",
		       "layout", layout->apply.ran, NULL);
}

err_status agent_layout_new(struct agent *agent, struct agent_layout **ret, struct err *err)
{
	const struct agent_config *from = &agent->config;
	if (!from->manages_mig)
		return ERR_OK;
	struct agent_layout *layout = calloc(1, sizeof *layout);
	if (layout == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the MIG layout");
	const struct mig_apply_io io = { layout, is_held, knows_holders, change, save, on_offer };
	const struct layouts_config sources = { .node = from->node_name,
						.file = from->mig_file,
						.name = from->mig_layout,
						.client = agent->client,
						.arg = layout,
						.on_change = on_source };
	layout->agent = agent;
	layout->since_ns = loop_now_ns(agent->loop);
	(void)snprintf(layout->record_path, sizeof layout->record_path, "%.3000s/mig-layout.json",
		       from->state_dir);
	layout->timer = loop_timer_new(agent->loop, on_timer, layout);
	mig_apply_init(&layout->apply, &io);
	load_record(layout);
	err_status status = layouts_new(agent->loop, &sources, &layout->layouts, err);
	if (status != ERR_OK) {
		agent_layout_free(layout);
		return status;
	}
	*ret = layout;
	return ERR_OK;
}

void agent_layout_free(struct agent_layout *layout)
{
	if (layout == NULL)
		return;
	layouts_free(layout->layouts);
	loop_timer_free(layout->timer);
	free(layout);
}
