// SPDX-License-Identifier: Apache-2.0
// Brings the GPUs of a node into the shape of a layout, one instance at a time, and back if that
// fails. All GPUs are planned before one is touched; what will go is first given to nobody, then
// looked at again, so that no instance that a pod holds is ever taken. What was before is saved
// before the first change: after a failure, or a restart in the middle, everything becomes as it
// was. Every way ends in success or failed with a reason. Pure: calls go out through callbacks,
// time comes in; one loop drives it.
#pragma once

#include "daemons/agent/mig_layout.h"
#include "daemons/agent/monitor.h"

enum { MIG_REASON_BYTES = 300, MIG_INTERRUPTS_MAX = 3 };
#define MIG_WHOLE UINT32_MAX // instead of an instance: anything on the GPU

struct mig_apply_io {
	void *arg;
	bool (*is_held)(void *arg, uint32_t slot, uint32_t instance_i); // or MIG_WHOLE
	bool (*knows_holders)(void *arg); // what the kubelet says of holders is current
	void (*change)(void *arg, uint32_t slot, const struct nvml_mig_change *change);
	err_status (*save)(void *arg, struct str text, struct err *err); // durable when it returns
	void (*on_offer)(void *arg); // what is held back has changed, or the outcome
};

typedef enum mig_phase { MIG_IDLE, MIG_FENCING, MIG_CHANGING, MIG_UNDOING } mig_phase;
typedef enum mig_outcome { MIG_NONE, MIG_SUCCESS, MIG_FAILED } mig_outcome; // of the last run

struct mig_place {
	uint32_t profile_id, start;
};
struct mig_shape { // of one GPU
	bool is_enabled;
	uint32_t count;
	struct mig_place places[MIG_INSTANCES_MAX];
};
struct mig_run_gpu { // that a run changes
	char uuid[GPU_UUID_BYTES];
	struct mig_shape before, target;
};

struct mig_apply {
	struct mig_apply_io io;
	// What is wanted.
	struct mig_goal goals[GPU_MAX]; // by slot
	struct mig_reserves reserves;   // of this node
	char name[MIG_LAYOUT_NAME_BYTES];
	bool is_due;       // it has not been tried yet
	uint64_t again_ns; // when what was refused as busy is tried again; 0: not
	// The run, or the last one.
	mig_phase phase;
	mig_outcome outcome;
	char ran[MIG_LAYOUT_NAME_BYTES], reason[MIG_REASON_BYTES];
	struct mig_run_gpu gpus[GPU_MAX];
	uint32_t gpu_count;
	uint64_t until_ns; // end of the fence, or of waiting for an answer
	bool is_waiting;   // for the answer to a change
	uint32_t changes, failures, interrupts;
};

void mig_apply_init(struct mig_apply *apply, const struct mig_apply_io *io);
// After a restart, before anything is offered: what the last save says.
void mig_apply_load(struct mig_apply *apply, struct str text);
// A layout to bring about; it is tried when the run that is under way has ended.
void mig_apply_want(struct mig_apply *apply, const char *name, const struct mig_goal *goals,
		    const struct mig_reserves *reserves);
// What cannot even be planned, or is wanted no more (name ""): the outcome, nothing is touched.
void mig_apply_refuse(struct mig_apply *apply, const char *name, const char *reason);
// Whether the GPUs have what is wanted.
bool mig_apply_is_met(const struct mig_apply *apply, const struct monitor_gpu *gpus,
		      uint32_t count);
// Goes on as far as it can; the time until it wants to be called again, 0: not by itself.
uint64_t mig_apply_step(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
			uint64_t now_ns);
// The end of a change that was asked for; the GPU's state has been read since.
void mig_apply_changed(struct mig_apply *apply, int32_t status, const char *text);
// Whether an instance, or (MIG_WHOLE) a whole GPU, must be given to nobody now.
bool mig_apply_holds_back(const struct mig_apply *apply, const struct monitor_gpu *gpu,
			  uint32_t instance_i);
// "pending", "success", "failed"; empty: no layout was ever wanted.
const char *mig_apply_state(const struct mig_apply *apply);
