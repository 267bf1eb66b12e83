// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_slice.h"

#include "gpu/topology.h"

#include <inttypes.h>
#include <stdio.h>

enum { VALUE_MAX_BYTES = 64, VERSION_PARTS = 3 }; // of an attribute

bool dra_slice_name(const char *node, char ret_name[DRA_NAME_BYTES])
{
	int n = snprintf(ret_name, DRA_NAME_BYTES, "%s-" DRA_DRIVER, node);
	return n > 0 && n < DRA_NAME_BYTES;
}

// Attributes of one device, with commas between them.
struct attributes {
	struct buf *out;
	bool has_any;
};

static void put_key(struct attributes *to, const char *key)
{
	buf_printf(to->out, "%s\"%s\":", to->has_any ? "," : "", key);
	to->has_any = true;
}

static void put_string(struct attributes *to, const char *key, const char *value)
{
	struct str text = str_of(value);
	if (text.len == 0)
		return;
	put_key(to, key);
	buf_put_c(to->out, "{\"string\":");
	buf_put_json(to->out, str_slice(text, 0, VALUE_MAX_BYTES));
	buf_put_byte(to->out, '}');
}

static void put_int(struct attributes *to, const char *key, int64_t value)
{
	put_key(to, key);
	buf_printf(to->out, "{\"int\":%" PRId64 "}", value);
}

static void put_version(struct attributes *to, const char *key, const uint64_t parts[VERSION_PARTS])
{
	put_key(to, key);
	buf_printf(to->out, "{\"version\":\"%" PRIu64 ".%" PRIu64 ".%" PRIu64 "\"}", parts[0],
		   parts[1], parts[2]);
}

// "535.54.03" as a semantic version: three numbers without zeros before them.
static bool parse_version(const char *text, uint64_t ret_parts[VERSION_PARTS])
{
	struct str rest = str_of(text), part;
	uint64_t parts[VERSION_PARTS] = { 0 };
	size_t count = 0;
	while (str_split_next(&rest, '.', &part)) {
		if (count == VERSION_PARTS || !str_to_u64(part, &parts[count]))
			return false;
		count++;
	}
	memcpy(ret_parts, parts, sizeof parts);
	return count > 0;
}

// As the API server writes quantities: the largest unit that leaves no fraction.
static void put_quantity(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };
	size_t unit = 0;
	while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < ARRAY_COUNT(units)) {
		bytes /= 1024;
		unit++;
	}
	buf_printf(out, "\"%" PRIu64 "%s\"", bytes, units[unit]);
}

// The least UUID of those that reach each other by NVLink; NULL: it has no links.
static const char *nvlink_group(const struct dra_view *view, size_t of)
{
	bool is_in[DRA_DEVICES_MAX] = { 0 };
	size_t before = 0, now = 1;
	ASSERT(view->count <= DRA_DEVICES_MAX && of < view->count);
	is_in[of] = true;
	while (now != before) {
		before = now;
		for (size_t i = 0; i < view->count; i++) {
			for (size_t j = 0; !is_in[i] && j < view->count; j++) {
				if (!is_in[j] || view->gpus[i].mig != NULL ||
				    topology_links(view->gpus[i].info, view->gpus[j].info) == 0)
					continue;
				is_in[i] = true;
				now++;
			}
		}
	}
	const char *least = view->gpus[of].info->uuid;
	for (size_t i = 0; i < view->count; i++) {
		if (is_in[i] && strcmp(view->gpus[i].info->uuid, least) < 0)
			least = view->gpus[i].info->uuid;
	}
	return now > 1 ? least : NULL;
}

void dra_pci_address(const char *bus_id, char out[GPU_PCI_BYTES])
{
	const char *from = strlen(bus_id) > 12 ? bus_id + 4 : bus_id;
	size_t i = 0;
	for (; from[i] != '\0' && i < GPU_PCI_BYTES - 1; i++)
		out[i] = from[i] >= 'A' && from[i] <= 'F' ? (char)(from[i] + 32) : from[i];
	out[i] = '\0';
}

// What it is of its GPU; NVLinks it has none.
static void put_mig(struct attributes *to, const struct gpu_info *gpu,
		    const struct mig_instance *mig)
{
	put_string(to, "parentUUID", gpu->uuid);
	put_string(to, "profile", mig->profile);
	put_int(to, "computeSlices", mig->slices);
	put_int(to, "memorySlices", mig->size);
}

static void put_attributes(struct buf *out, const struct dra_view *view, size_t i)
{
	struct attributes to = { .out = out };
	const struct gpu_info *info = view->gpus[i].info;
	const struct mig_instance *mig = view->gpus[i].mig;
	char address[GPU_PCI_BYTES], label[GPU_LABEL_BYTES];
	uint64_t version[VERSION_PARTS];
	put_string(&to, "type", mig == NULL ? "gpu" : "mig");
	put_string(&to, "uuid", mig == NULL ? info->uuid : mig->uuid);
	if (mig != NULL)
		put_mig(&to, info, mig);
	put_string(&to, "productName", info->model);
	put_string(&to, "product", gpu_product_label(info->model, label));
	put_string(&to, "architecture", gpu_family(info->compute_major, info->compute_minor));
	put_version(&to, "cudaComputeCapability",
		    (const uint64_t[]){ info->compute_major, info->compute_minor, 0 });
	if (parse_version(view->driver_version, version))
		put_version(&to, "driverVersion", version);
	if (view->cuda_version > 0)
		put_version(&to, "cudaDriverVersion",
			    (const uint64_t[]){ view->cuda_version / 1000,
						view->cuda_version % 1000 / 10, 0 });
	put_int(&to, "minor", info->minor);
	if (info->numa_node >= 0)
		put_int(&to, "numaNode", info->numa_node);
	const char *group = mig == NULL ? nvlink_group(view, i) : NULL;
	if (group != NULL)
		put_string(&to, "nvlinkGroup", group);
	if (mig == NULL)
		put_string(&to, "fabricClique", info->clique);
	dra_pci_address(info->pci_bus_id, address);
	put_string(&to, "resource.kubernetes.io/pciBusID", address);
	put_string(&to, "resource.kubernetes.io/pcieRoot", view->gpus[i].pcie_root);
}

static void put_taint(struct buf *out, bool *has_any, const char *key, const char *effect)
{
	buf_printf(out, "%s{\"key\":\"%s\",\"effect\":\"%s\"", *has_any ? "," : ",\"taints\":[",
		   key, effect);
	*has_any = true;
}

static void put_taints(struct buf *out, const struct dra_view *view, const struct dra_gpu *gpu)
{
	bool has_any = false;
	if (gpu->fault != NULL) {
		put_taint(out, &has_any, DRA_TAINT_UNHEALTHY, view->effect);
		buf_printf(out, ",\"value\":\"%s\"}", gpu->fault);
	}
	if (gpu->held_back != NULL) {
		// Whoever holds it now is no reason to end it.
		put_taint(out, &has_any, DRA_TAINT_HELD_BACK, "NoSchedule");
		buf_put_byte(out, '}');
	}
	if (has_any)
		buf_put_byte(out, ']');
}

static void put_capacity(struct buf *out, const struct dra_gpu *gpu)
{
	const struct mig_instance *mig = gpu->mig;
	buf_put_c(out, "\"capacity\":{\"memory\":{\"value\":");
	put_quantity(out, mig == NULL ? gpu->info->memory_bytes : mig->memory_mib << 20);
	buf_put_byte(out, '}');
	if (mig != NULL)
		buf_printf(out,
			   ",\"multiprocessors\":{\"value\":\"%" PRIu32
			   "\"},\"copyEngines\":{\"value\":\"%" PRIu32
			   "\"},\"decoders\":{\"value\":\"%" PRIu32
			   "\"},\"encoders\":{\"value\":\"%" PRIu32
			   "\"},\"jpegEngines\":{\"value\":\"%" PRIu32
			   "\"},\"ofaEngines\":{\"value\":\"%" PRIu32 "\"}",
			   mig->multiprocessors, mig->copy_engines, mig->decoders, mig->encoders,
			   mig->jpegs, mig->ofas);
	buf_put_byte(out, '}');
}

static void put_device(struct buf *out, const struct dra_view *view, size_t i)
{
	char name[GPU_UUID_BYTES];
	const struct dra_gpu *gpu = &view->gpus[i];
	const char *uuid = gpu->mig == NULL ? gpu->info->uuid : gpu->mig->uuid;
	buf_put_c(out, "{\"name\":");
	buf_put_json(out, str_of(dra_device_name(uuid, name)));
	buf_put_c(out, ",\"attributes\":{");
	put_attributes(out, view, i);
	buf_put_c(out, "},");
	put_capacity(out, gpu);
	put_taints(out, view, gpu);
	buf_put_byte(out, '}');
}

static void put_meta(struct buf *out, const struct dra_view *view, const char *name,
		     const char *resource_version)
{
	buf_put_c(out, "\"metadata\":{\"name\":");
	buf_put_json(out, str_of(name));
	if (resource_version != NULL) {
		buf_put_c(out, ",\"resourceVersion\":");
		buf_put_json(out, str_of(resource_version));
	}
	// Goes with its node.
	buf_put_c(out, ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"uid\":");
	buf_put_json(out, str_of(view->node_uid));
	buf_put_c(out, ",\"controller\":true}]}");
}

err_status dra_slice_put(struct buf *out, const struct dra_view *view, const char *resource_version,
			 struct err *err)
{
	char name[DRA_NAME_BYTES];
	bool has_any = false;
	ASSERT(view->count <= DRA_DEVICES_MAX);
	if (!dra_slice_name(view->node, name))
		return err_set(err, ERR_LIMIT, "name of the node is too long for a ResourceSlice");
	buf_put_c(out, "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",");
	put_meta(out, view, name, resource_version);
	buf_put_c(out, ",\"spec\":{\"driver\":\"" DRA_DRIVER "\",\"nodeName\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"pool\":{\"name\":");
	buf_put_json(out, str_of(view->node));
	buf_printf(out, ",\"generation\":%" PRIu64 ",\"resourceSliceCount\":1},\"devices\":[",
		   view->generation);
	for (size_t i = 0; i < view->count; i++) {
		const struct dra_gpu *gpu = &view->gpus[i];
		bool is_tainted = gpu->fault != NULL || gpu->held_back != NULL;
		if (is_tainted && view->has_no_taints)
			continue;
		buf_put_c(out, has_any ? ",\n" : "\n");
		put_device(out, view, i);
		has_any = true;
	}
	buf_put_c(out, "\n]}}\n");
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "no memory for a ResourceSlice");
}

// What counts of a slice, without what differs from time to time.
static json_t *core_of(const json_t *slice)
{
	json_t *core = json_deep_copy(json_at(slice, "spec"));
	json_t *devices = json_at(core, "devices");
	(void)json_object_del(json_at(core, "pool"), "generation");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		json_t *taints = json_at(json_array_get(devices, i), "taints");
		for (size_t j = 0; j < json_array_size(taints); j++)
			(void)json_object_del(json_array_get(taints, j), "timeAdded");
	}
	return core;
}

bool dra_slice_is_same(const json_t *a, const json_t *b)
{
	AUTO(json_decrefp) json_t *left = core_of(a);
	AUTO(json_decrefp) json_t *right = core_of(b);
	return left != NULL && right != NULL && json_equal(left, right) == 1;
}

bool dra_slice_has_taints(const json_t *slice)
{
	const json_t *devices = json_at(slice, "spec.devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		if (json_array_size(json_at(json_array_get(devices, i), "taints")) > 0)
			return true;
	}
	return false;
}
