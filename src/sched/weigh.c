// SPDX-License-Identifier: Apache-2.0
#include "sched/weigh.h"

#include "gpu/model.h"
#include "sched/load.h"

#include <stdlib.h>

enum { MODEL_UNKNOWN = SCORE_MODELS_MAX - 1, KEY_BYTES_MAX = 8192 };
static const int64_t CPU_MILLI_MAX = INT64_C(1) << 31;

struct item { // pods that ask for the same
	struct score_ask ask;
	int64_t pods;
	struct sched_spec models; // only the names, in texts
	struct str *texts;
};
struct weigh {
	struct board *board;
	struct map *items; // by ask
	int64_t pods, next_build;
	bool is_known;        // the demand, or that the policy does without
	bool is_named;        // the policy was chosen
	bool *is_stale;       // by slot: the board has not seen its last change
	uint32_t *built_gpus; // by slot: as the demand counted them
	uint32_t slot_cap, changed_sizes;
	char *models[SCORE_MODELS_MAX];
	uint32_t model_count;
};

struct weigh *weigh_new(void)
{
	struct weigh *weigh = core_alloc(1, sizeof *weigh);
	struct score *score = core_alloc(1, sizeof *score);
	bool is_there = score_policy_find(STR("default"), &score->policy);
	ASSERT(is_there);
	weigh->board = board_new(score);
	weigh->items = map_new(0);
	weigh->next_build = WEIGH_PODS_MIN;
	free(score);
	return weigh;
}

void weigh_set_policy(struct weigh *weigh, const struct score_policy *policy)
{
	struct score *score = core_alloc(1, sizeof *score);
	*score = weigh->board->score;
	weigh->is_named = memcmp(&score->policy, policy, sizeof *policy) != 0;
	score->policy = *policy;
	board_set_score(weigh->board, score);
	free(score);
}

void sched_policy_set(struct sched *sched, const struct score_policy *policy)
{
	weigh_set_policy(sched->weigh, policy);
	loads_policy_changed(sched);
}

int32_t weigh_load_weight(const struct weigh *weigh, score_kind kind)
{
	return weigh->board->score.policy.weights[kind][SCORE_LOAD];
}

bool weigh_uses_load(const struct weigh *weigh)
{
	return weigh_load_weight(weigh, SCORE_CPU) != 0 ||
	       weigh_load_weight(weigh, SCORE_ONE) != 0 ||
	       weigh_load_weight(weigh, SCORE_MANY) != 0;
}

static void free_items(struct weigh *weigh)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(weigh->items, &i, &key, &value);) {
		struct item *item = value;
		free(item->texts);
		free(item);
	}
	map_free(weigh->items);
}

const struct board *weigh_board(const struct weigh *weigh) { return weigh->board; }

void weigh_free(struct weigh *weigh)
{
	free_items(weigh);
	board_free(weigh->board);
	for (uint32_t i = 0; i < weigh->model_count; i++)
		free(weigh->models[i]);
	free(weigh->is_stale);
	free(weigh->built_gpus);
	free(weigh);
}

static struct score_ask ask_of(const struct sched_spec *spec)
{
	struct score_ask ask = { .gpu_count = (int32_t)min_i64(spec->gpu_count, SCORE_GPUS_MAX) };
	ask.gpu_milli = ask.gpu_count > 0 ? SCORE_GPU_MILLI : 0;
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_eq_c(spec->amounts[i].resource, "cpu"))
			ask.cpu_milli = max_i64(0, min_i64(spec->amounts[i].amount, CPU_MILLI_MAX));
	}
	return ask;
}

static struct item *item_new(struct map *items, struct str key, const struct sched_spec *spec)
{
	struct item *item = core_alloc(1, sizeof *item);
	item->ask = ask_of(spec);
	item->texts = core_texts_copy(spec->gpu_models, spec->gpu_model_count);
	item->models.gpu_models = item->texts;
	item->models.gpu_model_count = spec->gpu_model_count;
	(void)map_set(items, key, item);
	return item;
}

// Old pods count half, so that the demand follows what comes now.
static void age(struct weigh *weigh)
{
	struct str key;
	void *value;
	weigh->pods = 0;
	for (size_t i = 0; map_next(weigh->items, &i, &key, &value);) {
		struct item *item = value;
		item->pods /= 2;
		weigh->pods += item->pods;
		if (item->pods > 0)
			continue;
		(void)map_remove(weigh->items, key);
		free(item->texts);
		free(item);
	}
	weigh->next_build = min_i64(weigh->next_build, weigh->pods + WEIGH_HISTORY_MAX / 4);
}

void weigh_note(struct weigh *weigh, const struct sched_spec *spec)
{
	const struct score_ask ask = ask_of(spec);
	AUTO(buf_done) struct buf key = { .limit = KEY_BYTES_MAX };
	buf_put_bytes(&key, &ask, sizeof ask);
	for (size_t i = 0; i < spec->gpu_model_count; i++) {
		buf_put(&key, spec->gpu_models[i]);
		buf_put_byte(&key, '\0');
	}
	if (!buf_ok(&key))
		return;
	struct item *item = map_find(weigh->items, buf_str(&key));
	bool is_full = item == NULL && map_count(weigh->items) >= WEIGH_ITEMS_MAX;
	if (is_full || weigh->pods >= WEIGH_HISTORY_MAX) {
		age(weigh); // what came once is forgotten first
		item = map_find(weigh->items, buf_str(&key));
	}
	if (item == NULL && map_count(weigh->items) >= WEIGH_ITEMS_MAX)
		return;
	if (item == NULL)
		item = item_new(weigh->items, buf_str(&key), spec);
	item->pods++;
	weigh->pods++;
}

static uint32_t mask_of(const struct weigh *weigh, const struct sched_spec *spec)
{
	uint32_t mask = 0;
	for (size_t i = 0; i < spec->gpu_model_count; i++) {
		for (uint32_t k = 0; k < weigh->model_count; k++) {
			if (gpu_model_matches(spec->gpu_models[i], str_of(weigh->models[k])))
				mask |= UINT32_C(1) << k;
		}
	}
	return mask != 0 || spec->gpu_model_count == 0 ? mask : UINT32_C(1) << MODEL_UNKNOWN;
}

static struct str model_name(const struct node *node)
{
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].is_present)
			return str_of(node->devices[i].model);
	}
	return sched_labels_get(&node->labels, STR("nvidia.com/gpu.product"));
}

// Beyond so many models all others are one, which nobody asks for by name.
static uint32_t model_of(struct weigh *weigh, const struct node *node)
{
	struct str name = model_name(node);
	for (uint32_t i = 0; i < weigh->model_count; i++) {
		if (str_eq_c(name, weigh->models[i]))
			return i;
	}
	if (name.len == 0 || weigh->model_count == MODEL_UNKNOWN)
		return MODEL_UNKNOWN;
	char *copy = core_alloc(1, name.len + 1);
	memcpy(copy, name.data, name.len);
	weigh->models[weigh->model_count] = copy;
	return weigh->model_count++;
}

static uint32_t gpus_of(const struct sched *sched, uint32_t slot)
{
	return (uint32_t)max_i64(0, min_i64(sched->columns[DIM_GPU].alloc[slot], SCORE_GPUS_MAX));
}

static void build(struct sched *sched, struct weigh *weigh)
{
	int64_t gpus[SCORE_MODELS_MAX] = { 0 };
	size_t count = 0;
	struct demand_item *items = core_alloc(map_count(weigh->items), sizeof *items);
	struct score *score = core_alloc(1, sizeof *score);
	struct str key;
	void *value;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		weigh->built_gpus[slot] = sched->nodes[slot] == NULL ? 0 : gpus_of(sched, slot);
		if (sched->nodes[slot] != NULL)
			gpus[model_of(weigh, sched->nodes[slot])] += weigh->built_gpus[slot];
	}
	for (size_t i = 0; map_next(weigh->items, &i, &key, &value);) {
		const struct item *item = value;
		items[count] = (struct demand_item){ item->ask, item->pods };
		items[count++].ask.models = mask_of(weigh, &item->models);
	}
	*score = weigh->board->score;
	for (uint32_t i = 0; i < weigh->model_count; i++)
		score->power[i] = score_power_of(str_of(weigh->models[i]));
	demand_build(&score->demand, items, count, gpus);
	board_set_score(weigh->board, score);
	weigh->changed_sizes = 0;
	weigh->is_known = true;
	// While there is little history it doubles before it counts anew.
	weigh->next_build = min_i64(2 * weigh->pods, weigh->pods + WEIGH_HISTORY_MAX / 4);
	weigh->next_build = max_i64(weigh->next_build, WEIGH_PODS_MIN);
	free(items);
	free(score);
}

static void reserve(struct weigh *weigh, uint32_t slot_cap)
{
	const struct score_node nothing = { .gpu_count = 0 };
	uint32_t old = weigh->slot_cap;
	if (slot_cap <= old)
		return;
	weigh->is_stale = core_grow(weigh->is_stale, old, slot_cap, sizeof *weigh->is_stale);
	weigh->built_gpus = core_grow(weigh->built_gpus, old, slot_cap, sizeof *weigh->built_gpus);
	for (uint32_t slot = old; slot < slot_cap; slot++) {
		weigh->is_stale[slot] = true;
		board_set(weigh->board, slot, &nothing);
	}
	weigh->slot_cap = slot_cap;
}

void weigh_touch(struct weigh *weigh, uint32_t slot)
{
	if (slot >= weigh->slot_cap || weigh->is_stale[slot])
		return;
	weigh->is_stale[slot] = true;
	board_touch(weigh->board, slot);
}

struct board_row *weigh_row(struct sched *sched, const struct sched_spec *spec)
{
	struct weigh *weigh = sched->weigh;
	bool is_due = weigh->pods >= weigh->next_build || (weigh->is_named && !weigh->is_known) ||
		      (weigh->is_known && weigh->changed_sizes > 8 + sched->slot_count / 8);
	reserve(weigh, sched->slot_cap);
	if (is_due && sched->slot_count > 0)
		build(sched, weigh);
	if (!weigh->is_known)
		return NULL;
	struct score_ask ask = ask_of(spec);
	ask.models = mask_of(weigh, spec);
	return board_row_of(weigh->board, &ask);
}

static void refresh(struct sched *sched, uint32_t slot)
{
	struct weigh *weigh = sched->weigh;
	const struct column *cpu = &sched->columns[DIM_CPU], *gpu = &sched->columns[DIM_GPU];
	uint32_t gpu_all = gpus_of(sched, slot);
	int64_t gpu_left = gpu->alloc[slot] - gpu->used[slot];
	int64_t cpu_left = cpu->alloc[slot] - cpu->used[slot];
	if (weigh->built_gpus[slot] != gpu_all)
		weigh->changed_sizes++;
	weigh->built_gpus[slot] = gpu_all;
	struct score_node node = {
		.cpu_milli_all = min_i64(cpu->alloc[slot], CPU_MILLI_MAX),
		.cpu_milli_left = max_i64(0, min_i64(cpu_left, CPU_MILLI_MAX)),
		.gpu_count = gpu_all,
		.model_i = model_of(weigh, sched->nodes[slot]),
		// Nodes with GPUs sleep when no GPU is used: some pod of the system is always
		// there.
		.is_awake = gpu_all > 0 ? gpu->used[slot] > 0
					: sched->columns[DIM_PODS].used[slot] > 0,
		.load_milli = weigh_uses_load(weigh) ? (int16_t)loads_node_milli(sched, slot) : 0,
	};
	for (uint32_t i = 0; i < node.gpu_count; i++)
		node.milli_left[i] = i < gpu_left ? SCORE_GPU_MILLI : 0;
	board_set(weigh->board, slot, &node);
	weigh->is_stale[slot] = false;
}

int64_t weigh_cost(struct sched *sched, struct board_row *row, uint32_t slot)
{
	struct weigh *weigh = sched->weigh;
	if (row->stamps[slot] == weigh->board->stamps[slot])
		return row->costs[slot];
	if (weigh->is_stale[slot])
		refresh(sched, slot);
	return board_cost(weigh->board, row, slot);
}
