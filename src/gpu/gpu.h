// SPDX-License-Identifier: Apache-2.0
// What a GPU is, for every part that speaks about one: identity, size and the texts that GPU
// feature discovery derives from them (label values, family names). Pure; all text is kept in
// the structure, so a value can be copied and outlives the driver that told it.
#pragma once

#include "base/str.h"

enum {
	GPU_MAX = 32, // of one node
	GPU_UUID_BYTES = 64,
	GPU_MODEL_BYTES = 96,
	GPU_PCI_BYTES = 32,
	GPU_LABEL_BYTES = 64, // of a label value, with the terminator
	GPU_CLIQUE_BYTES = 48,
	GPU_LINKS_MAX = 8,      // peers that one GPU has direct links to
	GPU_PROFILE_BYTES = 24, // of a MIG profile's name
};

struct gpu_link {
	char pci_bus_id[GPU_PCI_BYTES]; // of the GPU at the other end
	uint32_t count;                 // of links to it
};

struct gpu_info {
	char uuid[GPU_UUID_BYTES]; // "GPU-..."
	char model[GPU_MODEL_BYTES];
	char pci_bus_id[GPU_PCI_BYTES]; // "00000000:1A:00.0"
	uint32_t index;                 // the driver's, may change when GPUs come and go
	uint32_t minor;                 // of /dev/nvidiaN
	uint32_t compute_major, compute_minor;
	uint64_t memory_bytes;
	int32_t numa_node;      // -1: unknown
	uint32_t pci_device_id; // device before vendor, 0x20b210de; 0: unknown
	uint32_t pci_class;     // 0x030200 is a 3D controller; 0: unknown
	bool mig_capable, mig_enabled;
	char clique[GPU_CLIQUE_BYTES]; // "<cluster UUID>.<clique>" of the fabric; empty: none
	uint32_t switch_links;         // NVLinks that are up and end at a switch
	uint32_t link_count;           // of links below
	struct gpu_link links[GPU_LINKS_MAX];
};

uint64_t gpu_memory_mib(const struct gpu_info *gpu);
// "ampere", "hopper", ...; "undefined" for what is not known.
const char *gpu_family(uint32_t compute_major, uint32_t compute_minor);
// Model as a label value: blanks become '-', other bytes that labels do not allow are dropped.
char *gpu_product_label(const char *model, char out[GPU_LABEL_BYTES]);
// A UUID as drivers write it: "GPU-" or "MIG-" and 1..59 of [0-9A-Za-z-/].
bool gpu_is_uuid(struct str text);
