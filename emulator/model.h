// SPDX-License-Identifier: Apache-2.0
// The physics of one emulated GPU: who uses it, what it draws, how warm it gets. Pure: the time
// is always passed in (monotonic nanoseconds, never backwards), so tests decide it. Power is
// idle + (limit - idle) * utilization, up to the limit that is set; the energy counter integrates
// it in integers, with the part below a millijoule kept in picojoules (1 mW for 1 ns), so that it
// never drifts. Every function that takes now_ns first integrates up to it. The board outlives the
// GPU.
#pragma once

#include "emulator/history.h"
#include "emulator/wire.h"

enum { MODEL_USER_MAX = WIRE_PROCESS_MAX, MODEL_UTIL_FULL_MILLI = 1000 };

struct model_use {
	uint32_t memory_mib;
	uint32_t util_milli;
	uint32_t memory_util_milli;
	uint32_t part; // 0: the whole GPU, else 1 + place of the compute instance in mig.cis
};

struct model_user {
	uint64_t owner; // connection of a workload; 0 when the entry came from the control file
	uint32_t pid;
	struct model_use use;
};

struct model_counter { // integrates a rate without loss
	uint64_t whole;
	uint64_t rest; // < the divisor of its unit
};

struct model_limits { // as set through NVML or the control file, until the next driver
	uint32_t power_mw;
	uint32_t clock_min_mhz, clock_max_mhz; // locked graphics clocks; 0: not
	uint32_t throttle;                     // reasons to tell besides the true ones
	uint32_t temp_c;                       // told instead of the true one; 0: not
};

struct model_gpu {
	const struct board *board;
	bool is_lost; // off the bus: draws nothing, holds nothing, counters stand still
	uint64_t now_ns;
	struct model_counter energy_mj;
	struct model_counter nvlink_kib;
	int32_t temp_mc;  // thousandths of a degree
	uint64_t temp_ns; // time up to which temp_mc is computed
	struct model_user users[MODEL_USER_MAX];
	size_t user_count;
	struct mig mig;
	struct model_limits limits;
	struct history history;
};

// MODEL_MIG: a GPU in MIG mode is used by its instances only.
enum model_result { MODEL_OK = 0, MODEL_NO_MEMORY, MODEL_FULL, MODEL_LOST, MODEL_MIG };

void model_limits_init(struct model_gpu *gpu); // the board's own
void model_init(struct model_gpu *gpu, const struct board *board, uint64_t now_ns);
void model_advance(struct model_gpu *gpu, uint64_t now_ns);
// A new driver counts from zero and knows no instances; MIG mode outlives it up to Ampere only.
void model_new_driver(struct model_gpu *gpu, uint64_t now_ns);

// Sets what (owner, pid) uses, making the entry if it is new; on failure nothing changes.
MUST_USE enum model_result model_use_set(struct model_gpu *gpu, uint64_t owner, uint32_t pid,
					 struct model_use use, uint64_t now_ns);
// Of all its parts.
void model_use_drop(struct model_gpu *gpu, uint64_t owner, uint32_t pid, uint64_t now_ns);
// MIG mode as asked for, now or when the last user is gone.
void model_set_mig_mode(struct model_gpu *gpu, uint32_t mode, uint64_t now_ns);
// Refused (NVML_ERROR_IN_USE) while somebody uses it.
uint32_t model_destroy_ci(struct model_gpu *gpu, uint32_t gi_id, uint32_t ci_id);
void model_lose(struct model_gpu *gpu, uint64_t now_ns); // drops all users
void model_restore(struct model_gpu *gpu, uint64_t now_ns);

uint32_t model_util_milli(const struct model_gpu *gpu);        // capped at 1000
uint32_t model_memory_util_milli(const struct model_gpu *gpu); // capped at 1000
uint32_t model_memory_used_mib(const struct model_gpu *gpu);   // without the reserved part
uint32_t model_memory_free_mib(const struct model_gpu *gpu);
uint32_t model_gi_memory_used_mib(const struct model_gpu *gpu, uint32_t gi_i);
// Of the whole GPU, or of the GPU instance that holds this part.
uint32_t model_part_free_mib(const struct model_gpu *gpu, uint32_t part);
uint32_t model_power_demand_mw(const struct model_gpu *gpu); // what it would draw without limit
uint32_t model_power_mw(const struct model_gpu *gpu);
uint64_t model_throttle_reasons(const struct model_gpu *gpu);
uint32_t model_sm_clock_mhz(const struct model_gpu *gpu);
uint32_t model_memory_clock_mhz(const struct model_gpu *gpu);
struct history_rates model_rates(const struct model_gpu *gpu);
int32_t model_temp_c(const struct model_gpu *gpu);
// One entry a process id and part, in order of first use; returns their count.
size_t model_processes(const struct model_gpu *gpu, struct wire_process *ret, size_t max);
