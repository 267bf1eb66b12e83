// SPDX-License-Identifier: Apache-2.0
// The ResourceSlice by which the API server learns this node's GPUs under dynamic resource
// allocation: one slice, the whole pool of the node, whole GPUs and MIG devices with attributes for
// selectors and constraints, taints on those that must not be given. Text only, in a fixed order.
// Pure.
#pragma once

#include "base/json.h"
#include "daemons/agent/dra_proto.h"
#include "gpu/mig.h"

#define DRA_TAINT_UNHEALTHY DRA_DRIVER "/unhealthy"
#define DRA_TAINT_HELD_BACK DRA_DRIVER "/held-back"

enum {
	DRA_ROOT_BYTES = 32,
	DRA_DEVICES_MAX = 64, // that a slice with taints may have
};

struct dra_gpu {
	const struct gpu_info *info;
	const struct mig_instance *mig; // one of its MIG devices; NULL: the whole GPU
	char pcie_root[DRA_ROOT_BYTES]; // "pci0000:00"; empty: not known
	const char *fault;              // name of what makes it unhealthy; NULL: it is healthy
	const char *held_back;          // why it is given to nobody for now; NULL: it is given
};

struct dra_view {
	const char *node, *node_uid, *driver_version;
	uint32_t cuda_version; // 12080 is 12.8
	const char *effect;    // of the taint of unhealthy GPUs: NoSchedule or NoExecute
	bool has_no_taints;    // the API server keeps none: such GPUs are left out
	uint64_t generation;   // of the pool
	const struct dra_gpu *gpus;
	size_t count;
};

// The name of the node's slice.
MUST_USE bool dra_slice_name(const char *node, char ret_name[DRA_NAME_BYTES]);
// resource_version: of the object that is replaced; NULL: it is made.
MUST_USE err_status dra_slice_put(struct buf *out, const struct dra_view *view,
				  const char *resource_version, struct err *err);
// The address as sysfs has it: four digits of the domain, small letters.
void dra_pci_address(const char *bus_id, char out[GPU_PCI_BYTES]);
// Whether two slices say the same, whatever their generation; the server adds times to taints.
bool dra_slice_is_same(const json_t *a, const json_t *b);
bool dra_slice_has_taints(const json_t *slice);
