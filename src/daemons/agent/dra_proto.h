// SPDX-License-Identifier: Apache-2.0
// Messages of dynamic resource allocation between kubelet and agent, as far as they are needed, on
// top of base/pb: registration of plugins (pluginregistration v1), claims that are prepared and
// unprepared (dra v1), health of devices (dra-health v1alpha1). Readers keep lists in the arena and
// borrow all text from the message; malformed bytes, names that are none and more than the stated
// maxima are refused.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "gpu/gpu.h"

#define DRA_DRIVER "gpu.gpuaas.io"
#define DRA_GET_INFO "/pluginregistration.Registration/GetInfo"
#define DRA_NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"
#define DRA_PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define DRA_UNPREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define DRA_WATCH "/v1alpha1.DRAResourceHealth/NodeWatchResources"

enum {
	DRA_REFS_MAX = 256, // claims of one call
	DRA_UID_BYTES = 64,
	DRA_NAME_BYTES = 254,
	DRA_REQUEST_BYTES = 64,
	DRA_CDI_BYTES = 192,
};

struct dra_ref { // a claim, as the kubelet names it
	struct str namespace_, uid, name;
};
struct dra_refs {
	struct dra_ref *items;
	size_t count;
};

struct dra_given { // a device of a prepared claim
	const char *request, *pool, *device, *cdi_name;
};

struct dra_health {
	const char *pool, *device, *message;
	bool is_healthy;
	int64_t seen_s;
};

MUST_USE err_status dra_read_refs(struct arena *arena, struct str message, struct dra_refs *ret,
				  struct err *err);
// What the kubelet made of the registration; the text is empty when it took it.
MUST_USE err_status dra_read_status(struct str message, bool *ret_is_registered,
				    struct str *ret_error, struct err *err);

void dra_put_info(struct buf *out, const char *endpoint);
// One claim's answer; error NULL: it is prepared.
void dra_put_prepared(struct buf *out, struct str uid, const struct dra_given *devices,
		      size_t count, const char *error);
void dra_put_unprepared(struct buf *out, struct str uid, const char *error);
void dra_put_health(struct buf *out, const struct dra_health *health);

// The name of a GPU or MIG device as a device of a pool, its UUID in small letters, and back.
char *dra_device_name(const char *uuid, char out[GPU_UUID_BYTES]);
MUST_USE bool dra_device_uuid(struct str device, char ret_uuid[GPU_UUID_BYTES]);
