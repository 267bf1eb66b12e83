// SPDX-License-Identifier: Apache-2.0
// The driver of dynamic resource allocation as the kubelet sees it: a registration socket in its
// folder for plugins, and a socket with the services DRAPlugin v1 and DRAResourceHealth v1alpha1.
// A claim is prepared by what the API server says is allocated to it, its CDI file and the file of
// prepared claims are on disk before the answer; asked again, the answer is the same. Once after a
// restart it is compared with the API server's word, where there is one. Which GPU may be given is
// the owner's to say.
#pragma once

#include "daemons/agent/dra_cdi.h"
#include "daemons/agent/dra_claim.h"
#include "k8s/client.h"
#include "sys/loop.h"

struct dra;

struct dra_config {
	const char *registry_dir, *plugins_dir; // of the kubelet
	const char *state_path;                 // file of prepared claims
	const char *cdi_dir, *node;
	struct k8s_client *client;
	void *arg;
	// Whether the claim's GPUs may be given to it now; else the kubelet asks again.
	err_status (*check)(void *arg, const struct dra_claim *claim, struct err *err);
	// The name of the GPU in the CDI file of whole GPUs.
	bool (*cdi_name)(void *arg, const char *uuid, char ret_name[GPU_UUID_BYTES]);
	void (*on_prepared)(void *arg, const struct dra_claim *claim);
	void (*on_release)(void *arg, const struct dra_claim *claim); // the last look at it
	// A message with the health of all devices, for the kubelet.
	void (*put_health)(void *arg, struct buf *out);
};

struct dra_stats {
	uint64_t prepared, unprepared, failures;
	size_t claims; // prepared now
	bool is_registered, has_health_stream;
};

MUST_USE err_status dra_new(struct loop *loop, const struct dra_config *config, struct dra **ret,
			    struct err *err);
void dra_free(struct dra *dra); // NULL allowed; before the client
const struct dra_table *dra_table_of(const struct dra *dra);
// Each few seconds: sockets and CDI files that somebody removed are made again, health is told.
void dra_look(struct dra *dra);
void dra_tell_health(struct dra *dra); // it may have changed
void dra_stats(const struct dra *dra, struct dra_stats *ret);
