// SPDX-License-Identifier: Apache-2.0
#include "emulator/model.h"

#include "gpu/nvml_abi.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define PJ_PER_MJ UINT64_C(1000000000)
enum {
	TEMP_STEP_MS = 100,
	TEMP_LAG_MS = 15000, // time constant of a heat sink under forced air
	TEMP_SETTLED_STEPS = 10 * TEMP_LAG_MS / TEMP_STEP_MS,
};

void model_init(struct model_gpu *gpu, const struct board *board, uint64_t now_ns)
{
	ASSERT(board != NULL);
	*gpu = (struct model_gpu){ .board = board, .now_ns = now_ns, .temp_ns = now_ns };
	gpu->temp_mc = (int32_t)board->temp_idle_c * 1000;
	model_limits_init(gpu);
}

// rate times nanoseconds, divided by divisor, is whole units. In chunks of ten seconds, so that
// the product stays below 2^64 for every rate that board_read lets through.
static void counter_add(struct model_counter *counter, uint64_t rate, uint64_t dt_ns,
			uint64_t divisor)
{
	for (uint64_t seconds = dt_ns / NS_PER_S; seconds > 0;) {
		uint64_t chunk = seconds > 10 ? 10 : seconds;
		uint64_t sum = counter->rest + rate * NS_PER_S * chunk;
		counter->whole += sum / divisor;
		counter->rest = sum % divisor;
		seconds -= chunk;
	}
	uint64_t sum = counter->rest + rate * (dt_ns % NS_PER_S);
	counter->whole += sum / divisor;
	counter->rest = sum % divisor;
	ASSERT(counter->rest < divisor);
}

static void temp_advance(struct model_gpu *gpu, uint64_t now_ns)
{
	const struct board *board = gpu->board;
	int32_t span_mc =
		(int32_t)(board->temp_busy_c - board->temp_idle_c) * (int32_t)model_util_milli(gpu);
	int32_t target_mc = (int32_t)board->temp_idle_c * 1000 + span_mc;
	uint64_t steps = (now_ns - gpu->temp_ns) / (TEMP_STEP_MS * UINT64_C(1000000));

	gpu->temp_ns += steps * TEMP_STEP_MS * UINT64_C(1000000);
	if (steps > TEMP_SETTLED_STEPS) {
		gpu->temp_mc = target_mc;
		return;
	}
	for (uint64_t i = 0; i < steps; i++)
		gpu->temp_mc += (target_mc - gpu->temp_mc) * TEMP_STEP_MS / TEMP_LAG_MS;
}

void model_advance(struct model_gpu *gpu, uint64_t now_ns)
{
	if (now_ns <= gpu->now_ns)
		return;
	uint64_t dt_ns = now_ns - gpu->now_ns;
	counter_add(&gpu->energy_mj, model_power_mw(gpu), dt_ns, PJ_PER_MJ);
	// A busy GPU is taken to move a tenth of what its links could carry.
	uint64_t link_kib_s = (uint64_t)gpu->board->nvlink_mb_s * gpu->board->nvlink_count *
			      1000000 / 1024 * model_util_milli(gpu) / MODEL_UTIL_FULL_MILLI / 10;
	counter_add(&gpu->nvlink_kib, link_kib_s, dt_ns, NS_PER_S);
	struct history_rates rates = model_rates(gpu);
	history_advance(&gpu->history, &rates, gpu->now_ns, now_ns);
	temp_advance(gpu, now_ns);
	gpu->now_ns = now_ns;
}

// The users of instances cannot outlive them.
static void forget_instances(struct model_gpu *gpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		if (gpu->users[i].use.part == 0)
			gpu->users[kept++] = gpu->users[i];
	gpu->user_count = kept;
	mig_clear(&gpu->mig);
	if (gpu->board->architecture > NVML_DEVICE_ARCH_AMPERE)
		gpu->mig.mode_pending = NVML_FEATURE_DISABLED;
}

static void settle_mode(struct model_gpu *gpu)
{
	if (gpu->user_count > 0 || gpu->mig.mode == gpu->mig.mode_pending)
		return;
	gpu->mig.mode = gpu->mig.mode_pending;
	mig_clear(&gpu->mig);
}

void model_set_mig_mode(struct model_gpu *gpu, uint32_t mode, uint64_t now_ns)
{
	ASSERT(mode <= NVML_FEATURE_ENABLED);
	model_advance(gpu, now_ns);
	gpu->mig.mode_pending = mode;
	settle_mode(gpu);
}

uint32_t model_destroy_ci(struct model_gpu *gpu, uint32_t gi_id, uint32_t ci_id)
{
	uint32_t ci_i = 0;

	if (!mig_ci_find(&gpu->mig, gi_id, ci_id, &ci_i))
		return NVML_ERROR_NOT_FOUND;
	for (size_t i = 0; i < gpu->user_count; i++)
		if (gpu->users[i].use.part == ci_i + 1)
			return NVML_ERROR_IN_USE;
	return mig_ci_destroy(&gpu->mig, gi_id, ci_id);
}

void model_new_driver(struct model_gpu *gpu, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	forget_instances(gpu);
	settle_mode(gpu);
	model_limits_init(gpu);
	gpu->history.power_capped_ns = 0;
	gpu->history.hot_ns = 0;
	gpu->energy_mj = (struct model_counter){ 0 };
	gpu->nvlink_kib = (struct model_counter){ 0 };
}

static struct model_user *user_find(struct model_gpu *gpu, uint64_t owner, uint32_t pid,
				    uint32_t part)
{
	for (size_t i = 0; i < gpu->user_count; i++)
		if (gpu->users[i].owner == owner && gpu->users[i].pid == pid &&
		    gpu->users[i].use.part == part)
			return &gpu->users[i];
	return NULL;
}

enum model_result model_use_set(struct model_gpu *gpu, uint64_t owner, uint32_t pid,
				struct model_use use, uint64_t now_ns)
{
	ASSERT(use.util_milli <= MODEL_UTIL_FULL_MILLI);
	ASSERT(use.memory_util_milli <= MODEL_UTIL_FULL_MILLI && use.part <= MIG_CI_MAX);
	model_advance(gpu, now_ns);
	if (gpu->is_lost)
		return MODEL_LOST;
	struct model_user *user = user_find(gpu, owner, pid, use.part);
	bool is_part = use.part > 0;
	if (is_part && !gpu->mig.cis[use.part - 1].is_used)
		return MODEL_LOST;
	if (is_part != (gpu->mig.mode == NVML_FEATURE_ENABLED))
		return MODEL_MIG;
	uint64_t room_mib = model_part_free_mib(gpu, use.part);
	if (user != NULL)
		room_mib += user->use.memory_mib;
	if (use.memory_mib > room_mib)
		return MODEL_NO_MEMORY;
	if (user == NULL) {
		if (gpu->user_count == MODEL_USER_MAX)
			return MODEL_FULL;
		user = &gpu->users[gpu->user_count++];
		*user = (struct model_user){ .owner = owner, .pid = pid };
	}
	user->use = use;
	return MODEL_OK;
}

void model_use_drop(struct model_gpu *gpu, uint64_t owner, uint32_t pid, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	size_t kept = 0;
	for (size_t i = 0; i < gpu->user_count; i++)
		if (gpu->users[i].owner != owner || gpu->users[i].pid != pid)
			gpu->users[kept++] = gpu->users[i];
	gpu->user_count = kept;
	settle_mode(gpu);
}

void model_lose(struct model_gpu *gpu, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	gpu->is_lost = true;
	gpu->user_count = 0;
	forget_instances(gpu); // it comes back by a reset
	settle_mode(gpu);
}

void model_restore(struct model_gpu *gpu, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	gpu->is_lost = false;
}

static uint32_t capped(uint64_t milli)
{
	return milli > MODEL_UTIL_FULL_MILLI ? MODEL_UTIL_FULL_MILLI : (uint32_t)milli;
}

// An instance's use counts by the compute slices it has of the whole.
static uint64_t slices_of(const struct model_gpu *gpu, const struct model_use *use, uint32_t whole)
{
	return use->part == 0 ? whole : gpu->mig.cis[use->part - 1].size;
}

uint32_t model_util_milli(const struct model_gpu *gpu)
{
	uint32_t whole = mig_slices(gpu->board);
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.util_milli * slices_of(gpu, &gpu->users[i].use, whole);
	return capped(sum / whole);
}

uint32_t model_memory_util_milli(const struct model_gpu *gpu)
{
	uint32_t whole = mig_slices(gpu->board);
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.memory_util_milli *
		       slices_of(gpu, &gpu->users[i].use, whole);
	return capped(sum / whole);
}

uint32_t model_memory_used_mib(const struct model_gpu *gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.memory_mib;
	ASSERT(sum <= gpu->board->memory_mib);
	return (uint32_t)sum;
}

uint32_t model_memory_free_mib(const struct model_gpu *gpu)
{
	uint32_t usable_mib = gpu->board->memory_mib - gpu->board->memory_reserved_mib;
	uint32_t used_mib = model_memory_used_mib(gpu);

	// Instances may together have a little more than the whole: what is reserved is theirs.
	return used_mib < usable_mib ? usable_mib - used_mib : 0;
}

uint32_t model_gi_memory_used_mib(const struct model_gpu *gpu, uint32_t gi_i)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++) {
		const struct model_use *use = &gpu->users[i].use;
		if (use->part > 0 && gpu->mig.cis[use->part - 1].gi_i == gi_i)
			sum += use->memory_mib;
	}
	ASSERT(sum <= gpu->board->memory_mib);
	return (uint32_t)sum;
}

uint32_t model_part_free_mib(const struct model_gpu *gpu, uint32_t part)
{
	if (part == 0)
		return model_memory_free_mib(gpu);
	ASSERT(part <= MIG_CI_MAX && gpu->mig.cis[part - 1].is_used);
	uint32_t gi_i = gpu->mig.cis[part - 1].gi_i;
	uint32_t profile_i = gpu->mig.gis[gi_i].profile_i;
	uint32_t used_mib = model_gi_memory_used_mib(gpu, gi_i);

	ASSERT(used_mib <= gpu->board->mig_profiles[profile_i].memory_mib);
	return gpu->board->mig_profiles[profile_i].memory_mib - used_mib;
}

int32_t model_temp_c(const struct model_gpu *gpu)
{
	return gpu->limits.temp_c > 0 ? (int32_t)gpu->limits.temp_c : (gpu->temp_mc + 500) / 1000;
}

size_t model_processes(const struct model_gpu *gpu, struct wire_process *ret, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < gpu->user_count; i++) {
		const struct model_user *user = &gpu->users[i];
		const struct mig_ci *ci = user->use.part > 0 ? &gpu->mig.cis[user->use.part - 1]
							     : NULL;
		struct wire_process own = {
			.pid = user->pid,
			.gi = ci == NULL ? WIRE_NO_INSTANCE : gpu->mig.gis[ci->gi_i].id,
			.ci = ci == NULL ? WIRE_NO_INSTANCE : ci->id,
		};
		size_t at = 0;
		while (at < count &&
		       (ret[at].pid != own.pid || ret[at].gi != own.gi || ret[at].ci != own.ci))
			at++;
		if (at == max)
			break;
		if (at == count)
			ret[count++] = own;
		ret[at].util_percent += user->use.util_milli;
		ret[at].memory_util_percent += user->use.memory_util_milli;
		ret[at].memory_bytes += (uint64_t)user->use.memory_mib << 20;
	}
	for (size_t i = 0; i < count; i++) {
		ret[i].util_percent = (capped(ret[i].util_percent) + 5) / 10;
		ret[i].memory_util_percent = (capped(ret[i].memory_util_percent) + 5) / 10;
	}
	return count;
}
