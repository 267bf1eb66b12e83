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
			 const struct gpu_info *info, const struct mig_instance *instance)
{
	buf_printf(out, "gpu=\"%" PRIu32 "\"", info->index);
	put_label(out, "UUID", info->uuid);
	put_label(out, "pci_bus_id", info->pci_bus_id);
	buf_printf(out, ",device=\"nvidia%" PRIu32 "\"", info->minor);
	put_label(out, "modelName", info->model);
	if (instance != NULL) {
		put_label(out, "GPU_I_PROFILE", instance->profile);
		buf_printf(out, ",GPU_I_ID=\"%" PRIu32 "\"", instance->gi);
	}
	put_label(out, "Hostname", view->node);
	if (view->counters->has_driver_label)
		put_label(out, "DCGM_FI_DRIVER_VERSION", view->driver->driver_version);
}

static void put_pod(struct buf *out, const struct usage_allocation *holder)
{
	if (holder->pod[0] == '\0')
		return;
	put_label(out, "container", holder->container);
	put_label(out, "namespace", holder->namespace_);
	put_label(out, "pod", holder->pod);
}

// The pod of a GPU that one pod holds. With several the device's values are nobody's alone:
// theirs are in the allocations.
static void put_holder(struct buf *out, const struct metrics_view *view, const char *uuid)
{
	size_t at = 0;
	const struct usage_allocation *holder = usage_next_holder(view->usage, uuid, &at);
	if (holder == NULL || holder->share_den > 1 ||
	    usage_next_holder(view->usage, uuid, &at) != NULL)
		return;
	put_pod(out, holder);
}

// The one that holds an instance; NULL: nobody, or several.
static const struct usage_allocation *holder_of_part(const struct metrics_view *view,
						     const struct monitor_gpu *gpu, uint32_t i)
{
	const struct usage_allocation *holder, *found = NULL;
	size_t at = 0;
	while ((holder = usage_next_holder(view->usage, gpu->info.uuid, &at)) != NULL) {
		if ((holder->mig_starts >> gpu->mig.instances[i].start & 1) == 0)
			continue;
		if (found != NULL)
			return NULL;
		found = holder;
	}
	return found;
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
struct gpu_labels_of {
	struct labels whole, parts[MIG_INSTANCES_MAX];
};

// Labels of the MIG devices; a tenant sees those that it alone holds.
static void put_part_labels(const struct metrics_view *view, const struct monitor_gpu *gpu,
			    struct gpu_labels_of *labels)
{
	for (uint32_t i = 0; gpu->is_known && i < gpu->mig.instance_count; i++) {
		const struct usage_allocation *holder = holder_of_part(view, gpu, i);
		bool is_own = view->tenant == NULL ||
			      (holder != NULL && strcmp(holder->tenant, view->tenant) == 0);
		if (!is_own || gpu->mig.instances[i].uuid[0] == '\0')
			continue;
		put_identity(&labels->parts[i].identity, view, &gpu->info, &gpu->mig.instances[i]);
		if (holder != NULL)
			put_pod(&labels->parts[i].holder, holder);
	}
}

// What is known of an instance alone.
static bool part_value(const struct mig_instance *instance, enum gpu_field field, int64_t *ret)
{
	if (field == GPU_FIELD_FB_FREE_MIB)
		*ret = (int64_t)instance->free_mib;
	else if (field == GPU_FIELD_FB_USED_MIB)
		*ret = (int64_t)instance->used_mib;
	else if (field == GPU_FIELD_FB_RESERVED_MIB)
		*ret = (int64_t)instance->reserved_mib;
	else if (field == GPU_FIELD_PROF_GRAPHICS && instance->has_use != 0)
		*ret = (int64_t)instance->use_milli * (GPU_RATIO / 1000);
	else
		return false;
	return true;
}

// A value that the instances tell is not told of their GPU again: a sum would count it twice.
static bool is_told_in_parts(const struct monitor_gpu *gpu, enum gpu_field field)
{
	int64_t value = 0;
	for (uint32_t i = 0; i < gpu->mig.instance_count; i++) {
		if (gpu->mig.instances[i].uuid[0] != '\0' &&
		    part_value(&gpu->mig.instances[i], field, &value))
			return true;
	}
	return false;
}

static void put_head(struct buf *out, const char *name, const struct counter *counter)
{
	buf_printf(out, "# HELP %s ", name);
	for (const char *c = counter->help; *c != '\0'; c++)
		buf_printf(out, *c == '\\' ? "\\\\" : "%c", *c);
	buf_printf(out, "\n# TYPE %s %s\n", name, counter->type);
}

static void put_xids(struct buf *out, const struct metrics_view *view,
		     const struct counter *counter, const struct gpu_labels_of *labels)
{
	static const char name[] = "DCGM_FI_DEV_XID_ERRORS";
	bool is_headed = false;
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		if (labels[slot].whole.identity.len == 0)
			continue;
		if (!is_headed)
			put_head(out, name, counter);
		is_headed = true;
		buf_printf(out, "%s{", name);
		buf_put(out, buf_str(&labels[slot].whole.identity));
		buf_printf(out, ",err_code=\"%" PRIu32 "\"", gpu->last_xid);
		put_label(out, "err_msg",
			  gpu->last_xid == 0 ? "No Error" : xid_text(gpu->last_xid));
		buf_put(out, buf_str(&labels[slot].whole.holder));
		buf_printf(out, "} %" PRIu32 "\n", gpu->last_xid);
	}
}

static void put_line(struct buf *out, const struct counter *counter, const struct labels *labels,
		     int64_t value, bool *is_headed)
{
	const char *name = gpu_field_info(counter->field)->name;
	if (!*is_headed)
		put_head(out, name, counter);
	*is_headed = true;
	buf_printf(out, "%s{", name);
	buf_put(out, buf_str(&labels->identity));
	buf_put(out, buf_str(&labels->holder));
	buf_put_c(out, "} ");
	gpu_field_print(out, counter->field, value);
	buf_put_byte(out, '\n');
}

static void put_field(struct buf *out, const struct metrics_view *view,
		      const struct counter *counter, const struct gpu_labels_of *labels)
{
	bool is_headed = false;
	for (uint32_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		bool has_parts = gpu->mig_ns != 0 &&
				 view->now_ns - gpu->mig_ns <= view->reading_max_age_ns;
		if (labels[slot].whole.identity.len > 0 && metrics_is_fresh(view, gpu) &&
		    gpu_reading_has(&gpu->reading, counter->field) &&
		    !(has_parts && is_told_in_parts(gpu, counter->field)))
			put_line(out, counter, &labels[slot].whole,
				 gpu->reading.values[counter->field], &is_headed);
		for (uint32_t i = 0; has_parts && i < gpu->mig.instance_count; i++) {
			int64_t value = 0;
			if (labels[slot].parts[i].identity.len > 0 &&
			    part_value(&gpu->mig.instances[i], counter->field, &value))
				put_line(out, counter, &labels[slot].parts[i], value, &is_headed);
		}
	}
}

static void free_labels(struct gpu_labels_of *labels)
{
	buf_done(&labels->whole.identity);
	buf_done(&labels->whole.holder);
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		buf_done(&labels->parts[i].identity);
		buf_done(&labels->parts[i].holder);
	}
}

void metrics_put_gpus(struct buf *out, const struct metrics_view *view)
{
	struct gpu_labels_of labels[GPU_MAX] = { 0 };
	ASSERT(view->count <= GPU_MAX);
	for (uint32_t slot = 0; slot < view->count; slot++) {
		put_part_labels(view, &view->gpus[slot], &labels[slot]);
		if (!is_seen(view, &view->gpus[slot]))
			continue;
		put_identity(&labels[slot].whole.identity, view, &view->gpus[slot].info, NULL);
		put_holder(&labels[slot].whole.holder, view, view->gpus[slot].info.uuid);
	}
	for (size_t i = 0; i < view->counters->count; i++) {
		const struct counter *counter = &view->counters->items[i];
		switch (counter->kind) {
		case COUNTER_FIELD: put_field(out, view, counter, labels); break;
		case COUNTER_XID: put_xids(out, view, counter, labels); break;
		}
	}
	for (uint32_t slot = 0; slot < view->count; slot++)
		free_labels(&labels[slot]);
}

void metrics_put(struct buf *out, const struct metrics_view *view)
{
	metrics_put_gpus(out, view);
	metrics_put_allocations(out, view);
	if (view->tenant == NULL)
		metrics_put_own(out, view);
}
