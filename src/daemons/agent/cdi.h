// SPDX-License-Identifier: Apache-2.0
// The CDI specification by which containers get their devices: one file, written whole by rename
// in its folder, with an entry for each GPU and MIG device. The content behind a name never changes
// while the GPU exists, because runtimes read such files through a cache. Facts: CDI specification
// 0.5.0, tags.cncf.io/container-device-interface.
#pragma once

#include "daemons/agent/mig_caps.h"

#define CDI_KIND "k8s.device-plugin.nvidia.com/gpu"
#define CDI_FILE "k8s.device-plugin.nvidia.com-gpu.json"

// Of a share, one file and one name each: names are never used again.
#define CDI_SHARE_KIND "gpuaas.io/share"
#define CDI_SHARE_PREFIX "gpuaas.io-share-"

enum { CDI_MOUNTS_MAX = 16, CDI_OPTIONS_MAX = 8, CDI_PATH_BYTES = 256, CDI_NODE_PATH_BYTES = 512 };

// A mount with placeholders {index}, {uuid} and {minor} in its paths; for MIG devices {uuid} is
// theirs, {index} and {minor} those of their GPU.
struct cdi_mount {
	const char *host_path, *container_path;
	const char *options[CDI_OPTIONS_MAX]; // none: ro, nosuid, nodev, bind
	size_t option_count;
	bool is_of_mig; // of MIG devices instead of whole GPUs
};

struct cdi_share {
	const char *name;
	const char *const *envs; // "NAME=value"
	size_t env_count;
};

struct cdi_config {
	const char *dir;
	const char *driver_root;        // as we see it
	const char *host_root;          // the same as the host sees it; NULL: as we do
	const char *host_dev_root;      // whose dev/ has the nodes, on the host; NULL: host_root
	bool by_index;                  // names are indexes instead of UUIDs
	uint32_t caps_major;            // of MIG's capabilities; 0: not known
	const struct cdi_mount *mounts; // extra ones for each device
	size_t mount_count;
	const struct cdi_share *share; // its one device has this name; NULL: all whole GPUs
};

struct cdi_node { // a device node, what is known of it
	bool exists;
	uint32_t major, minor;
};

// The text alone. nodes: of each GPU; cap_nodes: two of each MIG device; control: which of
// cdi_control_name exist; libraries: paths below driver_root.
struct cdi_parts {
	const struct gpu_info *gpus;
	const struct cdi_node *nodes;
	size_t gpu_count;
	const struct mig_device *migs;
	const struct cdi_node (*cap_nodes)[2];
	size_t mig_count;
	struct cdi_node control[8];
	const char *libraries[8];
	size_t library_count;
};
const char *cdi_control_name(size_t i); // "nvidiactl", ...; NULL at the end
// Where a device node is on the host: dev/NAME of that root.
void cdi_host_path(const char *root, const char *name, char out[CDI_NODE_PATH_BYTES]);
MUST_USE err_status cdi_render(struct buf *out, const struct cdi_config *config,
			       const struct cdi_parts *parts, struct err *err);
// The path of the file that cdi_write keeps; false: it is too long.
MUST_USE bool cdi_path(const struct cdi_config *config, char *out, size_t out_bytes);
// Asks of each file PREFIXname.json of the folder whether it is kept, and removes it if not; other
// files of the prefix are of writes that were ended in the middle, and go.
void cdi_sweep(const char *dir, struct str prefix, bool (*is_kept)(void *arg, struct str name),
	       void *arg);
struct cdi_node cdi_look(const char *driver_root, const char *name); // of dev/NAME
// Looks into driver_root for what parts says of nodes, control and libraries, renders, and replaces
// the file unless it says the same already.
MUST_USE err_status cdi_write(const struct cdi_config *config, struct cdi_parts *parts,
			      struct err *err);
