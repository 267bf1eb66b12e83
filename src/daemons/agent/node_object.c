// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char head[] = "{\"apiVersion\":\"gpuaas.io/v1alpha1\",\"kind\":\"GPUNode\","
			   "\"metadata\":{\"name\":";

static void put_head(struct buf *out, const struct node_view *view)
{
	buf_put_c(out, head);
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, "}");
}

void node_object_put(struct buf *out, const struct node_view *view)
{
	put_head(out, view);
	buf_put_c(out, ",\"spec\":{}}");
}

static void put_device(struct buf *out, const struct monitor_gpu *gpu)
{
	const struct gpu_info *info = &gpu->info;
	bool is_healthy = health_is_offered(&gpu->health);
	buf_put_c(out, "{\"uuid\":");
	buf_put_json(out, str_of(info->uuid));
	buf_printf(out, ",\"index\":%" PRIu32 ",\"minor\":%" PRIu32 ",\"model\":", info->index,
		   info->minor);
	buf_put_json(out, str_of(info->model));
	buf_printf(out,
		   ",\"memoryMiB\":%" PRIu64 ",\"computeCapability\":\"%" PRIu32 ".%" PRIu32
		   "\",\"pciBusID\":",
		   gpu_memory_mib(info), info->compute_major, info->compute_minor);
	buf_put_json(out, str_of(info->pci_bus_id));
	if (info->numa_node >= 0)
		buf_printf(out, ",\"numaNode\":%" PRId32, info->numa_node);
	buf_printf(out, ",\"migCapable\":%s,\"healthy\":%s", info->mig_capable ? "true" : "false",
		   is_healthy ? "true" : "false");
	// A passing doubt is not worth a write.
	if (!is_healthy) {
		buf_put_c(out, ",\"reason\":");
		buf_put_json(out, str_of(gpu->health.reason));
	}
	buf_put_c(out, "}");
}

struct condition {
	const char *type, *good, *bad;
	char message[96];
	bool is_true;
};

static void fill_conditions(const struct node_view *view, struct condition out[NODE_CONDITIONS])
{
	size_t known = 0, healthy = 0;
	for (size_t i = 0; i < view->count; i++) {
		known += view->gpus[i].is_known ? 1 : 0;
		healthy += view->gpus[i].is_known && health_is_offered(&view->gpus[i].health);
	}
	out[0] = (struct condition){ .type = "DriverReady",
				     .good = "DriverAnswers",
				     .bad = "DriverDoesNotAnswer",
				     .is_true = view->is_driver_up };
	out[1] = (struct condition){ .type = "DevicePluginRegistered",
				     .good = "Registered",
				     .bad = "NotRegistered",
				     .is_true = view->is_registered };
	out[2] = (struct condition){ .type = "DevicesHealthy",
				     .good = "AllHealthy",
				     .bad = "SomeUnhealthy",
				     .is_true = known == healthy };
	(void)snprintf(out[0].message, sizeof out[0].message, "driver %.60s",
		       view->driver->driver_version);
	(void)snprintf(out[1].message, sizeof out[1].message, "resource %.60s", view->resource);
	(void)snprintf(out[2].message, sizeof out[2].message, "%zu of %zu devices are healthy",
		       healthy, known);
}

void node_object_conditions(const struct node_view *view, bool ret_is_true[NODE_CONDITIONS])
{
	struct condition conditions[NODE_CONDITIONS];
	fill_conditions(view, conditions);
	for (size_t i = 0; i < NODE_CONDITIONS; i++)
		ret_is_true[i] = conditions[i].is_true;
}

static void put_version(struct buf *out, const char *key, uint32_t version)
{
	buf_printf(out, ",\"%s\":\"%" PRIu32 ".%" PRIu32 "\"", key, version / 1000,
		   version % 1000 / 10);
}

void node_object_put_status(struct buf *out, const struct node_view *view,
			    const char *const conditions_t[NODE_CONDITIONS])
{
	struct condition conditions[NODE_CONDITIONS];
	const char *before = "";
	fill_conditions(view, conditions);
	put_head(out, view);
	buf_put_c(out, ",\"status\":{\"devices\":[");
	for (size_t i = 0; i < view->count; i++) {
		if (!view->gpus[i].is_known)
			continue;
		buf_put_c(out, before);
		put_device(out, &view->gpus[i]);
		before = ",";
	}
	buf_put_c(out, "],\"driverVersion\":");
	buf_put_json(out, str_of(view->driver->driver_version));
	put_version(out, "cudaVersion", view->driver->cuda_version);
	buf_put_c(out, ",\"agentVersion\":\"" GPUAAS_VERSION "\",\"conditions\":[");
	for (size_t i = 0; i < NODE_CONDITIONS; i++) {
		const struct condition *condition = &conditions[i];
		buf_printf(out, "%s{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\"",
			   i == 0 ? "" : ",", condition->type,
			   condition->is_true ? "True" : "False",
			   condition->is_true ? condition->good : condition->bad);
		buf_put_c(out, ",\"message\":");
		buf_put_json(out, str_of(condition->message));
		buf_printf(out, ",\"lastTransitionTime\":\"%s\"}", conditions_t[i]);
	}
	buf_put_c(out, "]}}");
}

static void put_label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ",\"nvidia.com/%s\":", name);
	buf_put_json(out, str_of(value));
}

static void put_label_number(struct buf *out, const char *name, uint64_t value)
{
	buf_printf(out, ",\"nvidia.com/%s\":\"%" PRIu64 "\"", name, value);
}

// "570.86.15": major, minor, revision; missing parts are empty.
static void put_driver_labels(struct buf *out, const char *version)
{
	static const char *const names[] = { "cuda.driver-version.major",
					     "cuda.driver-version.minor",
					     "cuda.driver-version.revision" };
	static const char *const old_names[] = { "cuda.driver.major", "cuda.driver.minor",
						 "cuda.driver.rev" };
	struct str rest = str_of(version), part;
	put_label(out, "cuda.driver-version.full", version);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		char text[16] = "";
		if (str_split_next(&rest, '.', &part) && part.len < sizeof text)
			memcpy(text, part.data, part.len);
		put_label(out, names[i], text);
		put_label(out, old_names[i], text);
	}
}

static void put_runtime_labels(struct buf *out, uint32_t version)
{
	char text[32];
	uint32_t major = version / 1000, minor = version % 1000 / 10;
	(void)snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32, major, minor);
	put_label(out, "cuda.runtime-version.full", text);
	put_label_number(out, "cuda.runtime-version.major", major);
	put_label_number(out, "cuda.runtime-version.minor", minor);
	put_label_number(out, "cuda.runtime.major", major);
	put_label_number(out, "cuda.runtime.minor", minor);
}

// The model with the most devices stands for the node; ties by name, so that it never flips.
static const struct gpu_info *representative(const struct node_view *view, uint64_t *ret_count)
{
	const struct gpu_info *best = NULL;
	*ret_count = 0;
	for (size_t i = 0; i < view->count; i++) {
		uint64_t count = 0;
		if (!view->gpus[i].is_known)
			continue;
		const struct gpu_info *info = &view->gpus[i].info;
		for (size_t j = 0; j < view->count; j++)
			count += view->gpus[j].is_known &&
				 strcmp(view->gpus[j].info.model, info->model) == 0;
		bool is_better = best == NULL || count > *ret_count ||
				 (count == *ret_count && strcmp(info->model, best->model) < 0);
		if (is_better) {
			best = info;
			*ret_count = count;
		}
	}
	return best;
}

void node_object_put_labels(struct buf *out, const struct node_view *view)
{
	char product[GPU_LABEL_BYTES];
	uint64_t count = 0;
	const struct gpu_info *gpu = representative(view, &count);
	buf_put_c(out, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"labels\":{\"nvidia.com/gpu.present\":\"true\"");
	put_driver_labels(out, view->driver->driver_version);
	put_runtime_labels(out, view->driver->cuda_version);
	if (gpu != NULL) {
		put_label_number(out, "gpu.count", count);
		put_label(out, "gpu.product", gpu_product_label(gpu->model, product));
		put_label_number(out, "gpu.memory", gpu_memory_mib(gpu));
		put_label(out, "gpu.family", gpu_family(gpu->compute_major, gpu->compute_minor));
		put_label_number(out, "gpu.compute.major", gpu->compute_major);
		put_label_number(out, "gpu.compute.minor", gpu->compute_minor);
		put_label(out, "gpu.mode", "compute");
		put_label(out, "gpu.replicas", "1");
		put_label(out, "gpu.sharing-strategy", "none");
		put_label(out, "mig.capable", gpu->mig_capable ? "true" : "false");
		put_label(out, "mps.capable", "false");
	}
	buf_put_c(out, "}}}");
}
