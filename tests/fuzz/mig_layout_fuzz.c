// SPDX-License-Identifier: Apache-2.0
// A file of layouts of MIG devices: what is taken becomes a goal of a board, or is refused.
#include "daemons/agent/mig_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mig_state board = { .is_enabled = 1,
					.has_places = 1,
					.slices = 7,
					.profile_count = 4,
					.profiles = { { "1g.10gb", 19, 1, 1, 0x7f, 7 },
						      { "2g.20gb", 14, 2, 2, 0x15, 3 },
						      { "3g.40gb", 9, 3, 4, 0x11, 2 },
						      { "7g.80gb", 0, 7, 8, 0x01, 1 } } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct gpu_info gpu = { .mig_capable = true, .pci_device_id = 0x20b210de };
	struct str text = { (const char *)data, size };
	AUTO(json_decrefp) json_t *root = NULL;
	struct err err = { 0 };
	const char *name;
	json_t *list;
	if (mig_layouts_open(text, &root, &err) != ERR_OK) {
		ASSERT(root == NULL && err.text[0] != '\0');
		return 0;
	}
	json_t *layouts = json_object_get(root, "mig-configs");
	json_object_foreach(layouts, name, list)
	{
		struct mig_layout layout;
		struct mig_goal goal;
		err_status status =
			mig_layout_read(text, layouts, "mig-configs", name, &layout, &err);
		ASSERT(status == ERR_OK && json_array_size(list) == layout.entry_count);
		if (mig_layout_goal(&layout, &gpu, &board, &goal, &err) != ERR_OK)
			continue;
		uint32_t slices = 0;
		for (uint32_t i = 0; i < board.profile_count; i++)
			slices += goal.want.counts[i] * board.profiles[i].size;
		ASSERT(slices <= MIG_SLICES_MAX && (slices == 0 || goal.is_enabled));
	}
	return 0;
}
