// SPDX-License-Identifier: Apache-2.0
// Values of the GPUs; label order and formats are those of dcgm-exporter's classic profile.
#include "daemons/agent/metrics.h"

#include <inttypes.h>

static void put_escaped(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			buf_put_c(out, "\\n");
		else if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else
			buf_put_byte(out, *text);
	}
}

static void put_label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ",%s=\"", name);
	put_escaped(out, value);
	buf_put_byte(out, '"');
}

static void put_identity(struct buf *out, const struct metrics_view *view,
			 const struct gpu_info *info)
{
	buf_printf(out, "gpu=\"%" PRIu32 "\"", info->index);
	put_label(out, "UUID", info->uuid);
	put_label(out, "pci_bus_id", info->pci_bus_id);
	buf_printf(out, ",device=\"nvidia%" PRIu32 "\"", info->minor);
	put_label(out, "modelName", info->model);
	put_label(out, "Hostname", view->node);
	put_label(out, "DCGM_FI_DRIVER_VERSION", monitor_driver(view->monitor)->driver_version);
}

// The pod of a GPU that one pod holds. With several the device's values are nobody's alone:
// theirs are in the allocations.
static void put_holder(struct buf *out, const struct metrics_view *view, const char *uuid)
{
	size_t at = 0;
	const struct usage_allocation *holder = usage_next_holder(view->usage, uuid, &at);
	if (holder == NULL || holder->pod[0] == '\0' || holder->share_den > 1 ||
	    usage_next_holder(view->usage, uuid, &at) != NULL)
		return;
	put_label(out, "container", holder->container);
	put_label(out, "namespace", holder->namespace_);
	put_label(out, "pod", holder->pod);
}

static bool is_fresh(const struct metrics_view *view, const struct monitor_gpu *gpu)
{
	return gpu->is_known && gpu->reading_ns != 0 &&
	       view->now_ns - gpu->reading_ns <= view->reading_max_age_ns;
}

static void put_xids(struct buf *out, const struct metrics_view *view, const struct buf *identities,
		     const struct buf *holders)
{
	static const char name[] = "DCGM_FI_DEV_XID_ERRORS";
	buf_printf(out, "# HELP %s Value of the last XID error encountered.\n# TYPE %s gauge\n",
		   name, name);
	for (uint32_t slot = 0; slot < monitor_count(view->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(view->monitor, slot);
		if (!gpu->is_known)
			continue;
		buf_printf(out, "%s{%s", name, identities[slot].data);
		buf_printf(out, ",err_code=\"%" PRIu32 "\"", gpu->last_xid);
		put_label(out, "err_msg",
			  gpu->last_xid == 0 ? "No Error" : xid_text(gpu->last_xid));
		buf_put(out, buf_str(&holders[slot]));
		buf_printf(out, "} %" PRIu32 "\n", gpu->last_xid);
	}
}

static void put_field(struct buf *out, const struct metrics_view *view, enum gpu_field field,
		      const struct buf *identities, const struct buf *holders)
{
	const struct gpu_field_info *info = gpu_field_info(field);
	bool is_headed = false;
	for (uint32_t slot = 0; slot < monitor_count(view->monitor); slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(view->monitor, slot);
		if (!is_fresh(view, gpu) || !gpu_reading_has(&gpu->reading, field))
			continue;
		if (!is_headed)
			buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", info->name, info->help,
				   info->name, info->type);
		is_headed = true;
		buf_printf(out, "%s{", info->name);
		buf_put(out, buf_str(&identities[slot]));
		buf_put(out, buf_str(&holders[slot]));
		buf_put_c(out, "} ");
		gpu_field_print(out, field, gpu->reading.values[field]);
		buf_put_byte(out, '\n');
	}
}

static void put_gpus(struct buf *out, const struct metrics_view *view)
{
	// The labels of a GPU are rendered once and serve all its series.
	struct buf identities[GPU_MAX] = { 0 }, holders[GPU_MAX] = { 0 };
	uint32_t count = monitor_count(view->monitor);
	for (uint32_t slot = 0; slot < count; slot++) {
		const struct monitor_gpu *gpu = monitor_gpu(view->monitor, slot);
		put_identity(&identities[slot], view, &gpu->info);
		put_holder(&holders[slot], view, gpu->info.uuid);
	}
	for (int field = 0; field < GPU_FIELD_COUNT; field++)
		put_field(out, view, (enum gpu_field)field, identities, holders);
	put_xids(out, view, identities, holders);
	for (uint32_t slot = 0; slot < count; slot++) {
		buf_done(&identities[slot]);
		buf_done(&holders[slot]);
	}
}

void metrics_put(struct buf *out, const struct metrics_view *view)
{
	put_gpus(out, view);
	metrics_put_own(out, view);
}
