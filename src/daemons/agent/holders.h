// SPDX-License-Identifier: Apache-2.0
// Looks who holds the devices and tells usage: PodResources List (what runs) and the kubelet's
// checkpoint file (also what has just ended; it has the UIDs). Looks after each allocation until
// its devices show, when the file changes, and each few seconds. One call of List at a time, with
// a deadline; an old answer stays until a new one is there.
#pragma once

#include "daemons/agent/pods.h"
#include "daemons/agent/usage.h"
#include "sys/loop.h"

struct holders;

struct holders_config {
	const char *pod_resources_socket;
	const char *checkpoint_path;
	const char *resource; // of whole GPUs; others of its domain may be shares
	struct pods *pods;    // NULL: there is no API server
	struct usage *usage;
	void *arg;
	// Fills in what a device's id means: gpu (it has the UUID of the id) and what follows it.
	// share: OFFER_WHOLE, or the number of a share. False: no such device is known now.
	bool (*resolve)(void *arg, uint32_t share, struct usage_holder *holder);
	// Whether all devices are known, so that an id that is not is of a device that has gone.
	bool (*is_ready)(void *arg);
	loop_fn *show_more; // within a look: others tell usage of their holders
	loop_fn *on_look;   // usage was told something
};

struct holders_stats {
	uint64_t lists, list_failures, checkpoints, checkpoint_failures;
	uint64_t disagreements; // the two sources named different pods for one device
	bool is_listed;         // the last PodResources call was answered
};

MUST_USE err_status holders_new(struct loop *loop, const struct holders_config *config,
				struct holders **ret, struct err *err);
void holders_free(struct holders *holders); // NULL allowed
// Reads the checkpoint now if it changed: the last chance to see what the next allocation makes
// the kubelet forget.
void holders_read_checkpoint(struct holders *holders);
void holders_look(struct holders *holders);
// Devices were given out: look until they show.
void holders_expect(struct holders *holders);
// Whether the checkpoint says that the pod got the GPU by a device plugin.
bool holders_has_row(const struct holders *holders, const char *gpu, const char *pod_uid);
void holders_stats(const struct holders *holders, struct holders_stats *ret);
