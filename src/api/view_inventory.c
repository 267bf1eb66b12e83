// SPDX-License-Identifier: Apache-2.0
// What the installation has, from what the nodes' agents tell: GPUs that are given whole, in shares
// and in MIG devices.
#include "api/views.h"

#define WHOLE_RESOURCE "nvidia.com/gpu"

// A GPU in MIG mode that is not offered itself stands for its MIG devices of the same name.
static int64_t count_whole(const json_t *device)
{
	int64_t count = 0;
	json_t *part;
	size_t i;
	bool is_in_parts = json_bool(device, "migEnabled", false) &&
			   json_text(device, "resource").len == 0;
	if (!is_in_parts)
		return json_int(device, "milli", 0) > 0 ? 0 : 1;
	json_array_foreach(json_object_get(device, "mig"), i, part)
		count += str_eq_c(json_text(part, "resource"), WHOLE_RESOURCE) ? 1 : 0;
	return count;
}

static int64_t count_devices(const json_t *device, struct str profile)
{
	char resource[64];
	int64_t count = 0;
	json_t *part;
	size_t i;
	inventory_mig_resource(profile, resource, sizeof resource);
	json_array_foreach(json_object_get(device, "mig"), i, part)
		count += str_eq_c(json_text(part, "resource"), resource) ? 1 : 0;
	return count;
}

// False: too many kinds.
static bool add_migs(struct inventory *inventory, const json_t *device)
{
	const json_t *profiles = json_object_get(device, "migProfiles");
	uint32_t most = 0;
	json_t *item;
	size_t i;
	json_array_foreach(profiles, i, item)
	{
		struct str profile = { json_string_value(item), json_string_length(item) };
		most = (uint32_t)max_size(most, inventory_mig_slices(profile));
	}
	json_array_foreach(profiles, i, item)
	{
		struct inventory_mig mig = {
			.profile = { json_string_value(item), json_string_length(item) },
			.model = json_text(device, "model"),
			.gpus = 1,
			.board_slices = most,
		};
		mig.slices = inventory_mig_slices(mig.profile);
		mig.offered = count_devices(device, mig.profile);
		if (mig.slices > 0 && !inventory_add_mig(inventory, &mig))
			return false;
	}
	return true;
}

bool view_inventory(const struct objects *objects, struct inventory *ret_inventory)
{
	json_t *node, *device;
	ret_inventory->count = ret_inventory->mig_count = 0;
	for (size_t i = 0; objects_next(objects, OBJECT_NODE, &i, &node);) {
		const json_t *devices = json_at(node, "status.devices");
		const json_t *first = json_array_get(devices, 0);
		struct inventory_row row = {
			.model = json_text(first, "model"),
			.gpu_memory_mib = json_int(first, "memoryMiB", 0),
			.nodes = 1,
		};
		size_t k;
		json_array_foreach(devices, k, device)
		{
			row.gpus_per_node += count_whole(device);
			row.shared_per_node += json_int(device, "milli", 0) > 0 ? 1 : 0;
			if (!add_migs(ret_inventory, device))
				return false;
		}
		if (json_array_size(devices) > 0 && !inventory_add(ret_inventory, &row))
			return false;
	}
	return true;
}
