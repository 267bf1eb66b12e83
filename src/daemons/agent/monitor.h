// SPDX-License-Identifier: Apache-2.0
// The GPUs of this node as the agent knows them: identity, health, last readings, processes. It
// drives the children that call the driver (probes, readings, events), runs each GPU's health
// machine and tells the owner what changed. Health and identities outlive a restart in a file,
// so that a fault is not forgotten and a GPU that is lost at start still has its name.
#pragma once

#include "daemons/agent/nvml_host.h"
#include "gpu/topology.h"
#include "gpu/xid.h"

enum { MONITOR_XIDS = 8 };

struct monitor_since {
	int64_t bad_since_s; // by the wall's clock, if dead since then; 0: it is offered
	bool was_dead;       // when it was looked at last
};

struct monitor_part { // of a GPU in MIG mode, beside its instance
	char uuid[GPU_UUID_BYTES];
	struct health health; // of the instance alone
	struct monitor_since since;
};

struct monitor_gpu {
	bool is_known; // info is there, from the driver or from the file
	bool is_seen;  // the driver has answered (or failed) since the start
	struct gpu_info info;
	struct health health;
	struct monitor_since since;
	bool is_mig_seen;     // the driver has told of its instances, or that it has none to tell
	struct mig_state mig; // as told last
	struct monitor_part parts[MIG_INSTANCES_MAX];
	uint64_t mig_ns;      // when, monotonic; 0: never
	bool is_mig_told_due; // a change has ended: told with the next state
	int32_t change_status;
	char change_text[NVML_TEXT_BYTES];
	struct gpu_reading reading;
	uint64_t reading_ns; // monotonic; 0: none yet
	int64_t reading_wall_s;
	uint64_t util_sum, memory_sum_mib, sample_count; // since monitor_take_sample
	struct nvml_processes processes;
	uint64_t processes_ns; // when they were read, monotonic; 0: never
	uint32_t last_xid;
	struct {
		uint32_t xid;
		uint64_t count;
	} xids[MONITOR_XIDS]; // the last entry gathers what has no place of its own
};

struct monitor_config {
	struct nvml_host_config host; // its sink is filled by the monitor
	struct health_config health;
	struct xid_policy xids;
	uint64_t probe_ns, read_ns, processes_ns;
	const char *state_path; // NULL: nothing is kept
	const char *sys_root;   // of /sys, for NUMA nodes
	void *arg;
	void (*on_change)(void *arg);                 // devices, health or driver
	void (*on_reading)(void *arg, uint32_t slot); // monitor_gpu holds it
	void (*on_processes)(void *arg, uint32_t slot);
	// The end of monitor_change_mig; the state after it has been read too.
	void (*on_mig_changed)(void *arg, uint32_t slot, int32_t status, const char *text);
};

struct monitor;

MUST_USE err_status monitor_new(struct loop *loop, const struct monitor_config *config,
				struct monitor **ret, struct err *err);
void monitor_free(struct monitor *monitor); // NULL allowed

uint32_t monitor_count(const struct monitor *monitor);
const struct monitor_gpu *monitor_gpu(const struct monitor *monitor, uint32_t slot);
const struct monitor_gpu *monitor_gpus(const struct monitor *monitor); // monitor_count of them
const struct monitor_gpu *monitor_find(const struct monitor *monitor, struct str uuid,
				       uint32_t *ret_slot); // NULL when unknown
// Whether every GPU has answered or failed once: the list of devices is complete.
bool monitor_is_ready(const struct monitor *monitor);
// How the GPUs reach each other, by slots; kept current here, so that asking costs nothing.
const struct topology *monitor_topology(const struct monitor *monitor);
// The MIG device of that UUID with its GPU; false: not known now.
bool monitor_find_mig(const struct monitor *monitor, struct str uuid, uint32_t *ret_slot,
		      uint32_t *ret_instance_i);
// Whether the instance can be given: it and its GPU are healthy.
bool monitor_is_part_offered(const struct monitor_gpu *gpu, uint32_t instance_i);
const char *monitor_part_reason(const struct monitor_gpu *gpu, uint32_t instance_i);
void monitor_change_mig(struct monitor *monitor, uint32_t slot,
			const struct nvml_mig_change *change);
void monitor_mig_now(struct monitor *monitor, uint32_t slot);
void monitor_read_now(struct monitor *monitor, uint32_t slot);
void monitor_processes_now(struct monitor *monitor, uint32_t slot);
// Mean utilization and memory since the last call; false when nothing was read.
bool monitor_take_sample(struct monitor *monitor, uint32_t slot, uint32_t *ret_util_milli,
			 uint64_t *ret_memory_mib);
const struct nvml_hello *monitor_driver(const struct monitor *monitor);
void monitor_host_stats(const struct monitor *monitor, struct nvml_host_stats *ret);
int32_t monitor_events_status(const struct monitor *monitor);
// The energy counter began anew: the GPU was reset or its driver loaded again.
void monitor_on_reset(struct monitor *monitor, const char *uuid);
