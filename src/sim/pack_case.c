// SPDX-License-Identifier: Apache-2.0
// From the lists to what the core scores: models as bits, pods as asks, the demand.
#include "base/map.h"
#include "sim/pack.h"

enum { MODEL_UNKNOWN = SCORE_MODELS_MAX - 1 }; // no node has it

struct models {
	struct str names[SCORE_MODELS_MAX];
	uint32_t count;
};

static uint32_t model_of(const struct models *models, struct str name)
{
	for (uint32_t i = 0; i < models->count; i++) {
		if (str_eq(models->names[i], name))
			return i;
	}
	return MODEL_UNKNOWN;
}

static err_status add_nodes(struct arena *arena, struct pack_case *ret, struct models *models,
			    int64_t *gpus, struct err *err)
{
	ret->models = ARENA_ARRAY(arena, uint32_t, ret->nodes.count);
	if (ret->models == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the nodes");
	for (size_t i = 0; i < ret->nodes.count; i++) {
		const struct openb_node *node = &ret->nodes.items[i];
		uint32_t model_i = model_of(models, node->model);
		if (model_i == MODEL_UNKNOWN && models->count == MODEL_UNKNOWN)
			return err_set(err, ERR_LIMIT, "more than %d models of GPUs",
				       MODEL_UNKNOWN);
		if (model_i == MODEL_UNKNOWN) {
			model_i = models->count++;
			models->names[model_i] = node->model;
			ret->power[model_i] = score_power_of(node->model);
		}
		ret->models[i] = model_i;
		gpus[model_i] += node->gpu_count;
		ret->gpu_milli += (int64_t)node->gpu_count * SCORE_GPU_MILLI;
	}
	return ret->gpu_milli > 0 ? ERR_OK : err_set(err, ERR_INVALID, "the nodes have no GPUs");
}

static uint32_t mask_of(const struct models *models, struct str names)
{
	uint32_t mask = 0;
	if (names.len == 0)
		return 0;
	for (struct str name; str_split_next(&names, '|', &name);)
		mask |= UINT32_C(1) << model_of(models, name);
	return mask;
}

// Pods with the same ask become one item.
static size_t collect(const struct pack_case *from, struct demand_item *items)
{
	struct map *map = map_new(0);
	size_t count = 0;
	for (size_t i = 0; i < from->pods.count; i++) {
		const struct str key = { (const char *)&from->asks[i], sizeof from->asks[i] };
		struct demand_item *item = map_find(map, key);
		if (item == NULL) {
			item = &items[count++];
			item->ask = from->asks[i];
			(void)map_set(map, key, item);
		}
		item->pods++;
	}
	map_free(map);
	return count;
}

err_status pack_case_init(struct arena *arena, struct openb_nodes nodes, struct openb_pods pods,
			  struct pack_case *ret, struct err *err)
{
	struct models models = { .count = 0 };
	int64_t gpus[SCORE_MODELS_MAX] = { 0 };
	*ret = (struct pack_case){ .nodes = nodes, .pods = pods };
	if (add_nodes(arena, ret, &models, gpus, err) != ERR_OK)
		return err->status;
	ret->asks = ARENA_ARRAY(arena, struct score_ask, pods.count);
	struct demand_item *items = ARENA_ARRAY(arena, struct demand_item, pods.count);
	if (ret->asks == NULL || items == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the pods");
	for (size_t i = 0; i < pods.count; i++) {
		const struct openb_pod *pod = &pods.items[i];
		ret->asks[i] = (struct score_ask){ pod->cpu_milli, pod->gpu_count, pod->gpu_milli,
						   mask_of(&models, pod->models) };
	}
	demand_build(&ret->demand, items, collect(ret, items), gpus);
	return ERR_OK;
}
