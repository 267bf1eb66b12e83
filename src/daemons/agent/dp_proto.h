// SPDX-License-Identifier: Apache-2.0
// Messages of the kubelet's device plugin API v1beta1 and of PodResources v1, as far as they are
// needed, on top of base/pb. Readers keep their lists in the arena and borrow all text from the
// message; malformed bytes and more than the stated maxima are refused.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#define DP_REGISTER "/v1beta1.Registration/Register"
#define DP_OPTIONS "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define DP_LIST "/v1beta1.DevicePlugin/ListAndWatch"
#define DP_PREFERRED "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define DP_ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define DP_PRE_START "/v1beta1.DevicePlugin/PreStartContainer"
#define PODRES_LIST "/v1.PodResourcesLister/List"

enum { DP_IDS_MAX = 65536, DP_CONTAINERS_MAX = 256 };

struct dp_ids {
	struct str *items;
	size_t count;
};

struct dp_register {
	struct str version, endpoint, resource;
	bool prefers;    // GetPreferredAllocation is offered
	bool pre_starts; // PreStartContainer is wanted
};

struct dp_device {
	struct str id;
	bool is_healthy;
	int32_t numa_node; // -1: none told
};

struct dp_preferred { // of one container
	struct dp_ids available, must;
	int64_t size;
};
struct dp_preferred_list {
	struct dp_preferred *items;
	size_t count;
};
struct dp_allocate_list {
	struct dp_ids *items; // one a container
	size_t count;
};

struct dp_pair {
	struct str name, value;
};
struct dp_mount {
	struct str container_path, host_path;
	bool is_read_only;
};
struct dp_node { // a device node, rw
	struct str container_path, host_path;
};
struct dp_allocated { // of one container
	const struct dp_pair *envs;
	size_t env_count;
	const struct dp_mount *mounts;
	size_t mount_count;
	const struct dp_node *nodes;
	size_t node_count;
	const struct dp_pair *annotations;
	size_t annotation_count;
	const struct str *cdi_names;
	size_t cdi_count;
};

void dp_put_register(struct buf *out, const struct dp_register *request);
void dp_put_options(struct buf *out, bool prefers, bool pre_starts);
void dp_put_list(struct buf *out, const struct dp_device *devices, size_t count);
// One container's answer; called once each.
void dp_put_preferred(struct buf *out, const struct str *ids, size_t count);
void dp_put_allocated(struct buf *out, const struct dp_allocated *container);

MUST_USE err_status dp_read_register(struct str message, struct dp_register *ret, struct err *err);
MUST_USE err_status dp_read_preferred(struct arena *arena, struct str message,
				      struct dp_preferred_list *ret, struct err *err);
MUST_USE err_status dp_read_allocate(struct arena *arena, struct str message,
				     struct dp_allocate_list *ret, struct err *err);

MUST_USE err_status dp_read_pre_start(struct arena *arena, struct str message, struct dp_ids *ret,
				      struct err *err);

// One device of one container in an answer of PodResources.
struct podres_row {
	struct str namespace_, pod, container, resource, id;
};
typedef void podres_row_fn(void *arg, const struct podres_row *row);
// Tells nothing unless the whole is well formed; fn NULL: only says whether it is.
MUST_USE err_status podres_read_list(struct str message, podres_row_fn *fn, void *arg,
				     struct err *err);
