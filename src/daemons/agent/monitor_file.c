// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/monitor_file.h"

#include "base/json.h"
#include "sys/fs.h"

#include <inttypes.h>
#include <stdio.h>

enum { FILE_MAX_BYTES = 256 * 1024 };

// MIG devices that are out of use by a fault of their own.
static void put_parts(struct buf *out, const struct monitor_gpu *gpu)
{
	const char *before = ",\"parts\":[";
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		const struct monitor_part *part = &gpu->parts[i];
		if (part->uuid[0] == '\0' || health_is_offered(&part->health))
			continue;
		buf_printf(out, "%s{\"uuid\":", before);
		buf_put_json(out, str_of(part->uuid));
		buf_printf(out, ",\"fault\":\"%s\",\"xid\":%" PRIu32 ",\"reason\":",
			   health_fault_name(part->health.fault), part->health.xid);
		buf_put_json(out, str_of(part->health.reason));
		buf_put_c(out, "}");
		before = ",";
	}
	if (before[1] == '\0')
		buf_put_c(out, "]");
}

static void put_gpu(struct buf *out, const struct monitor_gpu *gpu)
{
	const struct gpu_info *info = &gpu->info;
	buf_put_c(out, "{\"uuid\":");
	buf_put_json(out, str_of(info->uuid));
	buf_put_c(out, ",\"model\":");
	buf_put_json(out, str_of(info->model));
	buf_put_c(out, ",\"pciBusID\":");
	buf_put_json(out, str_of(info->pci_bus_id));
	buf_printf(out, ",\"index\":%" PRIu32 ",\"minor\":%" PRIu32, info->index, info->minor);
	buf_printf(out, ",\"computeMajor\":%" PRIu32 ",\"computeMinor\":%" PRIu32,
		   info->compute_major, info->compute_minor);
	buf_printf(out, ",\"memoryMiB\":%" PRIu64 ",\"migCapable\":%s,\"migEnabled\":%s",
		   gpu_memory_mib(info), info->mig_capable ? "true" : "false",
		   info->mig_enabled ? "true" : "false");
	buf_printf(out, ",\"numaNode\":%" PRId32 ",\"pciClass\":%" PRIu32 ",\"clique\":",
		   info->numa_node, info->pci_class);
	buf_put_json(out, str_of(info->clique));
	if (!health_is_offered(&gpu->health)) {
		buf_printf(out, ",\"fault\":\"%s\",\"xid\":%" PRIu32 ",\"reason\":",
			   health_fault_name(gpu->health.fault), gpu->health.xid);
		buf_put_json(out, str_of(gpu->health.reason));
	}
	put_parts(out, gpu);
	buf_put_c(out, "}");
}

err_status monitor_file_save(const char *path, const struct monitor_gpu *gpus, uint32_t count,
			     struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = FILE_MAX_BYTES };
	buf_put_c(&out, "{\"gpus\":[");
	const char *before = "\n";
	for (uint32_t i = 0; i < count; i++) {
		if (!gpus[i].is_known)
			continue;
		buf_put_c(&out, before);
		put_gpu(&out, &gpus[i]);
		before = ",\n";
	}
	buf_put_c(&out, "\n]}\n");
	ASSERT(buf_ok(&out));
	return fs_write_atomic(path, buf_str(&out), 0600, err);
}

// Cut, if it must be, between characters: it is written again as JSON.
static void copy_text(char *out, size_t out_bytes, struct str text)
{
	size_t len = min_size(text.len, out_bytes - 1);
	while (len > 0 && len < text.len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	(void)snprintf(out, out_bytes, "%.*s", (int)len, text.data == NULL ? "" : text.data);
}

static void load_health(const json_t *object, struct health *health, uint64_t now_ns)
{
	struct str reason = json_text(object, "reason");
	health_init(health);
	if (!health_fault_parse(json_text(object, "fault"), &health->fault) ||
	    health->fault == HEALTH_FAULT_NONE)
		return;
	health->state = HEALTH_UNHEALTHY;
	health->fault_at_ns = now_ns;
	health->xid = (uint32_t)json_int(object, "xid", 0);
	copy_text(health->reason, sizeof health->reason,
		  reason.len == 0 ? STR("fault before the restart") : reason);
}

static void load_parts(const json_t *object, struct monitor_gpu *gpu, uint64_t now_ns)
{
	const json_t *list = json_at(object, "parts");
	for (size_t i = 0; i < json_array_size(list) && i < MIG_INSTANCES_MAX; i++) {
		const json_t *part = json_array_get(list, i);
		if (!gpu_is_uuid(json_text(part, "uuid")))
			continue;
		copy_text(gpu->parts[i].uuid, sizeof gpu->parts[i].uuid, json_text(part, "uuid"));
		load_health(part, &gpu->parts[i].health, now_ns);
	}
}

static bool load_gpu(const json_t *object, struct monitor_gpu *ret, uint64_t now_ns)
{
	struct monitor_gpu gpu = { .is_known = true, .info.numa_node = -1 };
	struct str uuid = json_text(object, "uuid");
	int64_t memory_mib = json_int(object, "memoryMiB", 0);
	if (!gpu_is_uuid(uuid) || memory_mib < 0 || memory_mib > INT64_MAX >> 20)
		return false;
	copy_text(gpu.info.uuid, sizeof gpu.info.uuid, uuid);
	copy_text(gpu.info.model, sizeof gpu.info.model, json_text(object, "model"));
	copy_text(gpu.info.pci_bus_id, sizeof gpu.info.pci_bus_id, json_text(object, "pciBusID"));
	gpu.info.index = (uint32_t)json_int(object, "index", 0);
	gpu.info.minor = (uint32_t)json_int(object, "minor", 0);
	gpu.info.compute_major = (uint32_t)json_int(object, "computeMajor", 0);
	gpu.info.compute_minor = (uint32_t)json_int(object, "computeMinor", 0);
	gpu.info.memory_bytes = (uint64_t)memory_mib << 20;
	gpu.info.mig_capable = json_bool(object, "migCapable", false);
	gpu.info.mig_enabled = json_bool(object, "migEnabled", false);
	gpu.info.numa_node = (int32_t)json_int(object, "numaNode", -1);
	gpu.info.pci_class = (uint32_t)json_int(object, "pciClass", 0);
	copy_text(gpu.info.clique, sizeof gpu.info.clique, json_text(object, "clique"));
	load_health(object, &gpu.health, now_ns);
	load_parts(object, &gpu, now_ns);
	*ret = gpu;
	return true;
}

err_status monitor_file_load(const char *path, struct monitor_gpu *gpus, uint32_t *ret_count,
			     uint64_t now_ns, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	AUTO(buf_done) struct buf content = { 0 };
	err_status status = fs_read(path, FILE_MAX_BYTES, &content, err);
	if (status == ERR_NOT_FOUND)
		return ERR_OK;
	if (status == ERR_OK)
		status = monitor_file_parse(buf_str(&content), gpus, ret_count, now_ns, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", path);
}

err_status monitor_file_parse(struct str text, struct monitor_gpu *gpus, uint32_t *ret_count,
			      uint64_t now_ns, struct err *err)
{
	AUTO(json_decrefp) json_t *root = NULL;
	err_status status = json_parse(text, &root, err);
	if (status != ERR_OK)
		return status;
	json_t *list = json_at(root, "gpus");
	uint32_t count = 0;
	for (size_t i = 0; i < json_array_size(list) && count < GPU_MAX; i++) {
		if (load_gpu(json_array_get(list, i), &gpus[count], now_ns))
			count++;
	}
	*ret_count = count;
	return ERR_OK;
}

void monitor_file_recall(struct monitor_gpu *gpus, uint32_t *count, uint32_t slot, const char *uuid)
{
	ASSERT(slot < *count && *count <= GPU_MAX);
	struct monitor_gpu displaced = gpus[slot];
	for (uint32_t i = 0; i < *count; i++) {
		if (i == slot || !gpus[i].is_known || strcmp(gpus[i].info.uuid, uuid) != 0)
			continue;
		gpus[slot] = gpus[i];
		gpus[i] = displaced;
		return;
	}
	gpus[slot] = (struct monitor_gpu){ .info.numa_node = -1 };
	health_init(&gpus[slot].health);
	if (displaced.is_known && *count < GPU_MAX)
		gpus[(*count)++] = displaced;
}
