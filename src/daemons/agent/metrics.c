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
	if (view->counters->has_driver_label)
		put_label(out, "DCGM_FI_DRIVER_VERSION", view->driver->driver_version);
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

// Whether the one who asks may see the device's values: all that hold it are theirs.
static bool is_seen(const struct metrics_view *view, const struct monitor_gpu *gpu)
{
	const struct usage_allocation *holder;
	size_t at = 0, count = 0;
	if (!gpu->is_known)
		return false;
	if (view->tenant == NULL)
		return true;
	for (; (holder = usage_next_holder(view->usage, gpu->info.uuid, &at)) != NULL; count++) {
		// Of a share nobody knows who will hold the others.
		if (strcmp(holder->tenant, view->tenant) != 0 || holder->share_den > 1)
			return false;
	}
	return count > 0;
}

bool metrics_is_fresh(const struct metrics_view *view, const struct monitor_gpu *gpu)
{
	return gpu->reading_ns != 0 && view->now_ns - gpu->reading_ns <= view->reading_max_age_ns;
}

// Labels of a GPU are rendered once and serve all its series; empty: it is not shown.
struct labels {
	struct buf identity, holder;
};

static void put_head(struct buf *out, const char *name, const struct counter *counter)
{
	buf_printf(out, "# HELP %s ", name);
	for (const char *c = counter->help; *c != '\0'; c++)
		buf_printf(out, *c == '\\' ? "\\\\" : "%c", *c);
	buf_printf(out, "\n# TYPE %s %s\n", name, counter->type);
}

static void put_xids(struct buf *out, const struct metrics_view *view,
		     const struct counter *counter, const struct labels *labels)
{
	static const char name[] = "DCGM_FI_DEV_XID_ERRORS";
	bool is_headed = false;
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		if (labels[slot].identity.len == 0)
			continue;
		if (!is_headed)
			put_head(out, name, counter);
		is_headed = true;
		buf_printf(out, "%s{", name);
		buf_put(out, buf_str(&labels[slot].identity));
		buf_printf(out, ",err_code=\"%" PRIu32 "\"", gpu->last_xid);
		put_label(out, "err_msg",
			  gpu->last_xid == 0 ? "No Error" : xid_text(gpu->last_xid));
		buf_put(out, buf_str(&labels[slot].holder));
		buf_printf(out, "} %" PRIu32 "\n", gpu->last_xid);
	}
}

static void put_field(struct buf *out, const struct metrics_view *view,
		      const struct counter *counter, const struct labels *labels)
{
	const char *name = gpu_field_info(counter->field)->name;
	bool is_headed = false;
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		if (labels[slot].identity.len == 0 || !metrics_is_fresh(view, gpu) ||
		    !gpu_reading_has(&gpu->reading, counter->field))
			continue;
		if (!is_headed)
			put_head(out, name, counter);
		is_headed = true;
		buf_printf(out, "%s{", name);
		buf_put(out, buf_str(&labels[slot].identity));
		buf_put(out, buf_str(&labels[slot].holder));
		buf_put_c(out, "} ");
		gpu_field_print(out, counter->field, gpu->reading.values[counter->field]);
		buf_put_byte(out, '\n');
	}
}

void metrics_put_gpus(struct buf *out, const struct metrics_view *view)
{
	struct labels labels[GPU_MAX] = { 0 };
	ASSERT(view->count <= GPU_MAX);
	for (uint32_t slot = 0; slot < view->count; slot++) {
		if (!is_seen(view, &view->gpus[slot]))
			continue;
		put_identity(&labels[slot].identity, view, &view->gpus[slot].info);
		put_holder(&labels[slot].holder, view, view->gpus[slot].info.uuid);
	}
	for (size_t i = 0; i < view->counters->count; i++) {
		const struct counter *counter = &view->counters->items[i];
		switch (counter->kind) {
		case COUNTER_FIELD: put_field(out, view, counter, labels); break;
		case COUNTER_XID: put_xids(out, view, counter, labels); break;
		}
	}
	for (uint32_t slot = 0; slot < view->count; slot++) {
		buf_done(&labels[slot].identity);
		buf_done(&labels[slot].holder);
	}
}

void metrics_put(struct buf *out, const struct metrics_view *view)
{
	metrics_put_gpus(out, view);
	metrics_put_allocations(out, view);
	if (view->tenant == NULL)
		metrics_put_own(out, view);
}
