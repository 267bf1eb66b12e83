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
	const char *good, *bad;
	char message[96];
	bool is_true;
};

static const char *const condition_types[NODE_CONDITIONS] = { "DriverReady",
							      "DevicePluginRegistered",
							      "DevicesHealthy" };

const char *node_object_condition_type(size_t condition)
{
	ASSERT(condition < NODE_CONDITIONS);
	return condition_types[condition];
}

static void fill_conditions(const struct node_view *view, struct condition out[NODE_CONDITIONS])
{
	size_t known = 0, healthy = 0;
	for (size_t i = 0; i < view->count; i++) {
		known += view->gpus[i].is_known ? 1 : 0;
		healthy += view->gpus[i].is_known && health_is_offered(&view->gpus[i].health);
	}
	out[0] = (struct condition){ .good = "DriverAnswers",
				     .bad = "DriverDoesNotAnswer",
				     .is_true = view->is_driver_up };
	out[1] = (struct condition){ .good = "Registered",
				     .bad = "NotRegistered",
				     .is_true = view->is_registered };
	out[2] = (struct condition){ .good = "AllHealthy",
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
			   i == 0 ? "" : ",", condition_types[i],
			   condition->is_true ? "True" : "False",
			   condition->is_true ? condition->good : condition->bad);
		buf_put_c(out, ",\"message\":");
		buf_put_json(out, str_of(condition->message));
		buf_printf(out, ",\"lastTransitionTime\":\"%s\"}", conditions_t[i]);
	}
	buf_put_c(out, "]}}");
}

void node_object_put_labels(struct buf *out, const struct node_view *view, int64_t timestamp_s)
{
	struct gpu_label_gpu gpus[GPU_MAX];
	struct gpu_labels labels;
	struct gpu_label_facts facts = { .gpus = gpus,
					 .driver_version = view->driver->driver_version,
					 .cuda_version = view->driver->cuda_version,
					 .machine = view->machine == NULL ? "" : view->machine,
					 .sharing = view->sharing,
					 .mig = view->mig,
					 .timestamp_s = timestamp_s };
	ASSERT(view->count <= GPU_MAX);
	for (size_t i = 0; i < view->count; i++) {
		if (!view->gpus[i].is_known)
			continue;
		struct gpu_label_gpu *gpu = &gpus[facts.gpu_count++];
		*gpu = (struct gpu_label_gpu){ .info = &view->gpus[i].info,
					       .replicas = view->shares[i].replicas,
					       .is_renamed = view->shares[i].is_renamed };
	}
	gpu_labels_make(&facts, &labels);
	buf_put_c(out, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"labels\":{");
	for (size_t i = 0; i < labels.count; i++) {
		buf_printf(out, "%s\"nvidia.com/%s\":", i == 0 ? "" : ",", labels.items[i].name);
		buf_put_json(out, str_of(labels.items[i].value));
	}
	buf_put_c(out, "}}}");
}
