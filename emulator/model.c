// SPDX-License-Identifier: Apache-2.0
#include "emulator/model.h"

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
	temp_advance(gpu, now_ns);
	gpu->now_ns = now_ns;
}

void model_reset_energy(struct model_gpu *gpu, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	gpu->energy_mj = (struct model_counter){ 0 };
	gpu->nvlink_kib = (struct model_counter){ 0 };
}

static struct model_user *user_find(struct model_gpu *gpu, uint64_t owner, uint32_t pid)
{
	for (size_t i = 0; i < gpu->user_count; i++)
		if (gpu->users[i].owner == owner && gpu->users[i].pid == pid)
			return &gpu->users[i];
	return NULL;
}

enum model_result model_use_set(struct model_gpu *gpu, uint64_t owner, uint32_t pid,
				struct model_use use, uint64_t now_ns)
{
	ASSERT(use.util_milli <= MODEL_UTIL_FULL_MILLI);
	ASSERT(use.memory_util_milli <= MODEL_UTIL_FULL_MILLI);
	model_advance(gpu, now_ns);
	if (gpu->is_lost)
		return MODEL_LOST;
	struct model_user *user = user_find(gpu, owner, pid);
	uint64_t room_mib = model_memory_free_mib(gpu);
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
	struct model_user *user = user_find(gpu, owner, pid);
	if (user == NULL)
		return;
	size_t index = (size_t)(user - gpu->users);
	ASSERT(index < gpu->user_count);
	memmove(user, user + 1, (gpu->user_count - index - 1) * sizeof(*user));
	gpu->user_count--;
}

void model_lose(struct model_gpu *gpu, uint64_t now_ns)
{
	model_advance(gpu, now_ns);
	gpu->is_lost = true;
	gpu->user_count = 0;
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

uint32_t model_util_milli(const struct model_gpu *gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.util_milli;
	return capped(sum);
}

uint32_t model_memory_util_milli(const struct model_gpu *gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.memory_util_milli;
	return capped(sum);
}

uint32_t model_memory_used_mib(const struct model_gpu *gpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->user_count; i++)
		sum += gpu->users[i].use.memory_mib;
	ASSERT(sum <= gpu->board->memory_mib - gpu->board->memory_reserved_mib);
	return (uint32_t)sum;
}

uint32_t model_memory_free_mib(const struct model_gpu *gpu)
{
	return gpu->board->memory_mib - gpu->board->memory_reserved_mib -
	       model_memory_used_mib(gpu);
}

uint32_t model_power_mw(const struct model_gpu *gpu)
{
	const struct board *board = gpu->board;

	if (gpu->is_lost)
		return 0;
	// A watt over a full scale of 1000 is a milliwatt: the product is already in mW.
	return board->power_idle_w * 1000 +
	       (board->power_limit_w - board->power_idle_w) * model_util_milli(gpu);
}

int32_t model_temp_c(const struct model_gpu *gpu) { return (gpu->temp_mc + 500) / 1000; }

size_t model_processes(const struct model_gpu *gpu, struct wire_process *ret, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < gpu->user_count; i++) {
		const struct model_user *user = &gpu->users[i];
		size_t at = 0;
		while (at < count && ret[at].pid != user->pid)
			at++;
		if (at == max)
			break;
		if (at == count)
			ret[count++] = (struct wire_process){ .pid = user->pid };
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
