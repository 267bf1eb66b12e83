// SPDX-License-Identifier: Apache-2.0
// The agent's side of the children that call the driver. Normally one child serves all devices,
// a thread each. A device whose call does not return, or during whose call the child died, is
// moved to a child of its own, so that it costs the others one restart and then nothing; its
// calls go on being tried there with growing pauses. Children that the kernel cannot end (a call
// stuck in the driver) are left behind, counted and bounded.
// Measured choice: a child for each device costs 1.4 MiB of resident memory a device, threads in
// one child about 12 KiB; the split after a fault gives the same isolation at one restart.
#pragma once

#include "daemons/agent/nvml_proc.h"
#include "daemons/agent/nvml_wire.h"
#include "gpu/health.h"
#include "sys/loop.h"

struct nvml_host;

// Called from the loop, never from inside nvml_host_ask or nvml_host_new.
struct nvml_sink {
	void *arg;
	// A child said hello; status 0: the driver answers and gpu_count is right.
	void (*on_driver)(void *arg, int32_t status, const struct nvml_hello *hello);
	void (*on_info)(void *arg, uint32_t slot, const struct gpu_info *info);
	void (*on_probe)(void *arg, uint32_t slot, health_probe probe, int action,
			 const char *detail);
	void (*on_reading)(void *arg, uint32_t slot, const struct gpu_reading *reading);
	void (*on_processes)(void *arg, uint32_t slot, const struct nvml_processes *processes);
	// mig NULL: the driver tells none.
	void (*on_mig)(void *arg, uint32_t slot, const struct mig_state *mig);
	// status 0: done; a change whose child ended is not told of.
	void (*on_mig_changed)(void *arg, uint32_t slot, int32_t status, const char *text);
	// slot NVML_SLOT_NONE: the driver did not say which device.
	void (*on_xid)(void *arg, uint32_t slot, const struct nvml_xid *xid);
	void (*on_events)(void *arg, int32_t status); // the event thread's state changed
};

struct nvml_host_config {
	const char *program; // NULL: this program itself
	struct nvml_libraries libraries;
	uint64_t deadline_ns; // of one question
	uint64_t start_ns;    // until hello
	struct nvml_sink sink;
};

struct nvml_host_stats {
	uint64_t starts, hangs, crashes, stuck; // stuck: children not gone after a kill
	uint32_t alone;                         // devices with a child of their own
	bool driver_up;
};

MUST_USE err_status nvml_host_new(struct loop *loop, const struct nvml_host_config *config,
				  struct nvml_host **ret, struct err *err);
void nvml_host_free(struct nvml_host *host); // ends the children; NULL allowed
// Asks unless the same is under way; the answer or a fault comes by the sink. PROBE opens the
// device first when it is not open.
void nvml_host_ask(struct nvml_host *host, uint32_t slot, enum nvml_ask ask);
// Asks for one change, with a deadline of its own; it is not asked again when its child ends.
void nvml_host_change_mig(struct nvml_host *host, uint32_t slot,
			  const struct nvml_mig_change *change);
void nvml_host_stats(const struct nvml_host *host, struct nvml_host_stats *ret);
