// SPDX-License-Identifier: Apache-2.0
#include "sched/hold.h"

#include "sched/load.h"
#include "sched/parts.h"
#include "sched/weigh.h"

#include <stdlib.h>

static bool suits(const struct sched_spec *spec, const struct device *device)
{
	return device->is_shared && device->is_healthy && device_suits(spec, device);
}

static struct share left_of(const struct device *device)
{
	struct share left = share_whole(device->memory_mib);
	share_sub(&left, &device->used);
	return left;
}

void hold_room_now(const struct node *node, struct hold_room *ret)
{
	for (size_t i = 0; i < node->device_count; i++)
		ret->left[i] = left_of(&node->devices[i]);
}

static size_t find(const struct node *node, const char *uuid)
{
	size_t i = 0;
	while (i < node->device_count && strcmp(node->devices[i].uuid, uuid) != 0)
		i++;
	return i;
}

void hold_room_add(const struct node *node, const struct pod *leaving, struct hold_room *room)
{
	for (size_t i = 0; i < leaving->hold_count; i++) {
		size_t place = find(node, leaving->holds[i].uuid);
		if (place < node->device_count)
			share_add(&room->left[place], &leaving->holds[i].share);
	}
}

// Order of asks: larger ones first, of equal ones as they stand in the spec.
static void order_asks(const struct sched_spec *spec, uint32_t ret_order[SCHED_SHARES_MAX])
{
	for (uint32_t i = 0; i < spec->share_count; i++) {
		uint32_t k = i;
		const struct share *ask = &spec->shares[i].share;
		for (; k > 0; k--) {
			const struct share *before = &spec->shares[ret_order[k - 1]].share;
			bool is_larger = ask->milli > before->milli ||
					 (ask->milli == before->milli &&
					  ask->memory_mib > before->memory_mib);
			if (!is_larger)
				break;
			ret_order[k] = ret_order[k - 1];
		}
		ret_order[k] = i;
	}
}

// Whether what is measured counts: it may not decide whether a pod fits, only where.
typedef enum hold_regard { BY_FIT, BY_FIT_AND_LOAD } hold_regard;

// The device of which the ask leaves the least; SIZE_MAX: it fits on none.
static size_t best_device(const struct sched_spec *spec, const struct node *node,
			  const struct hold_room *room, const struct share *ask, hold_regard regard)
{
	size_t best = SIZE_MAX;
	int64_t best_cost = INT64_MAX, best_mib = INT64_MAX;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		struct share need = share_of(ask, device->memory_mib), left = room->left[i];
		if (!suits(spec, device) || !share_fits(&need, &left))
			continue;
		share_sub(&left, &need);
		int64_t cost = left.milli + (regard == BY_FIT ? 0 : device->load_cost);
		bool is_better = cost < best_cost ||
				 (cost == best_cost && left.memory_mib < best_mib);
		if (!is_better)
			continue;
		best = i;
		best_cost = cost;
		best_mib = left.memory_mib;
	}
	return best;
}

// Places by ask; false: one finds none.
static bool choose(const struct sched_spec *spec, const struct node *node, struct hold_room *room,
		   hold_regard regard, size_t ret_places[SCHED_SHARES_MAX])
{
	uint32_t order[SCHED_SHARES_MAX];
	ASSERT(spec->share_count <= SCHED_SHARES_MAX);
	order_asks(spec, order);
	for (size_t i = 0; i < spec->share_count; i++) {
		const struct share *ask = &spec->shares[order[i]].share;
		size_t place = best_device(spec, node, room, ask, regard);
		if (place == SIZE_MAX)
			return false;
		struct share need = share_of(ask, node->devices[place].memory_mib);
		share_sub(&room->left[place], &need);
		ret_places[order[i]] = place;
	}
	return true;
}

bool hold_room_has(const struct sched_spec *spec, const struct node *node,
		   const struct hold_room *room)
{
	size_t places[SCHED_SHARES_MAX];
	if (spec->share_count == 0)
		return true;
	struct hold_room after = *room;
	return choose(spec, node, &after, BY_FIT, places);
}

bool hold_fits(const struct sched_spec *spec, const struct node *node)
{
	struct hold_room room;
	if (spec->share_count == 0)
		return true;
	hold_room_now(node, &room);
	return hold_room_has(spec, node, &room);
}

bool hold_could_fit(const struct sched_spec *spec, const struct node *node)
{
	struct hold_room room;
	for (size_t i = 0; i < node->device_count; i++)
		room.left[i] = share_whole(node->devices[i].memory_mib);
	return hold_room_has(spec, node, &room);
}

// Several asks of one pod may fit by the best fit alone.
static bool choose_now(const struct sched_spec *spec, const struct node *node,
		       struct hold_room *ret_room, size_t ret_places[SCHED_SHARES_MAX])
{
	hold_room_now(node, ret_room);
	if (choose(spec, node, ret_room, BY_FIT_AND_LOAD, ret_places))
		return true;
	hold_room_now(node, ret_room);
	return choose(spec, node, ret_room, BY_FIT, ret_places);
}

static int64_t find_cost(const struct sched_spec *spec, const struct node *node)
{
	struct hold_room room;
	size_t places[SCHED_SHARES_MAX];
	int64_t least = INT32_MAX;
	if (!choose_now(spec, node, &room, places))
		return least;
	for (size_t i = 0; i < spec->share_count; i++)
		least = min_i64(least,
				room.left[places[i]].milli + node->devices[places[i]].load_cost);
	return least;
}

struct hold_cache { // by slot
	uint32_t cap;
	uint64_t *stamps; // of the node; 0: never
	int32_t *costs;
};

void hold_cache_free(struct hold_cache *cache)
{
	if (cache == NULL)
		return;
	free(cache->stamps);
	free(cache->costs);
	free(cache);
}

int64_t hold_cost(const struct sched *sched, struct shape *shape, uint32_t slot)
{
	struct hold_cache *cache = shape->holds;
	const struct node *node = sched->nodes[slot];
	if (cache == NULL || cache->cap < sched->slot_cap) {
		hold_cache_free(cache);
		cache = shape->holds = core_alloc(1, sizeof *cache);
		cache->cap = sched->slot_cap;
		cache->stamps = core_alloc(cache->cap, sizeof *cache->stamps);
		cache->costs = core_alloc(cache->cap, sizeof *cache->costs);
	}
	if (cache->stamps[slot] != node->hold_stamp) {
		cache->costs[slot] = (int32_t)find_cost(shape->spec, node);
		cache->stamps[slot] = node->hold_stamp;
	}
	return cache->costs[slot];
}

static void take(struct pod *pod, size_t i, struct device *device, const struct share *share)
{
	struct hold *hold = &pod->holds[i];
	size_t len = strlen(device->uuid);
	ASSERT(len < sizeof hold->uuid); // longer ones have been refused
	memcpy(hold->uuid, device->uuid, len + 1);
	hold->share = *share;
	share_add(&device->used, share);
	pod->node->hold_stamp++;
}

static void note_load(const struct sched *sched, const struct device *device, struct hold *hold)
{
	const struct load *load = &device->load;
	hold->is_by_load = loads_are_on(sched) && weigh_load_weight(sched->weigh, SCORE_SHARE) != 0;
	hold->load_milli = load->counts ? load->used_milli : -1;
	hold->load_age_ms =
		load->is_known ? (int32_t)min_i64(sched->now_ms - load->at_ms, INT32_MAX) : -1;
}

size_t hold_place(struct sched *sched, struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	struct node *node = pod->node;
	struct hold_room room;
	size_t places[SCHED_SHARES_MAX];
	if (spec->share_count == 0)
		return 0;
	bool fits = choose_now(spec, node, &room, places);
	ASSERT(fits && pod->hold_count == 0); // the filter said so a moment ago
	pod->holds = core_alloc(spec->share_count, sizeof *pod->holds);
	pod->hold_count = spec->share_count;
	for (uint32_t i = 0; i < spec->share_count; i++) {
		struct device *device = &node->devices[places[i]];
		struct share need = share_of(&spec->shares[i].share, device->memory_mib);
		pod->holds[i].ask_i = i;
		note_load(sched, device, &pod->holds[i]);
		take(pod, i, device, &need);
	}
	return hold_granted(sched, pod);
}

static void grant(struct sched *sched, size_t i, const struct hold *hold, struct str container,
		  int64_t index)
{
	sched->grants[i] = (struct sched_grant){ .container = container,
						 .uuid = str_of(hold->uuid),
						 .index = index };
}

// A container that asks by both kinds gets a line for each, with its own part.
static size_t put_grants(struct sched *sched, size_t at, const struct hold *hold,
			 const struct sched_share_ask *ask, int64_t index)
{
	bool is_both = ask->share.milli > 0 && ask->share.memory_mib > 0;
	share_kind kind = ask->share.milli > 0 ? SHARE_BY_MILLI : SHARE_BY_MEMORY;
	grant(sched, at, hold, ask->container, index);
	sched->grants[at].resource = str_of(share_resource(kind));
	sched->grants[at].milli = hold->share.milli;
	sched->grants[at].memory_mib = is_both ? 0 : hold->share.memory_mib;
	if (!is_both)
		return at + 1;
	grant(sched, at + 1, hold, ask->container, index);
	sched->grants[at + 1].resource = str_of(SHARE_MEMORY_RESOURCE);
	sched->grants[at + 1].memory_mib = hold->share.memory_mib;
	return at + 2;
}

size_t hold_granted(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	size_t count = 0;
	_Static_assert(2 * SCHED_SHARES_MAX <= SCHED_DEVICES_MAX, "room for the grants");
	for (size_t i = 0; i < pod->hold_count; i++) {
		const struct hold *hold = &pod->holds[i];
		size_t place = find(pod->node, hold->uuid);
		ASSERT(place < pod->node->device_count && hold->ask_i < spec->share_count);
		count = put_grants(sched, count, hold, &spec->shares[hold->ask_i],
				   pod->node->devices[place].index);
	}
	return count;
}

void hold_adopt(struct pod *pod, const struct sched_hold *holds, size_t count)
{
	if (count == 0 || pod->hold_count > 0) // what was assumed is what was planned
		return;
	pod->holds = core_alloc(count, sizeof *pod->holds);
	for (size_t i = 0; i < count; i++) {
		struct device *device = holds[i].uuid.len < GPU_UUID_BYTES
						? core_device_get(pod->node, holds[i].uuid)
						: NULL;
		if (device != NULL)
			take(pod, pod->hold_count++, device, &holds[i].share);
	}
}

static struct device *device_of(const struct pod *pod, const struct hold *hold)
{
	size_t place = find(pod->node, hold->uuid);
	ASSERT(place < pod->node->device_count); // a device that is held is remembered
	return &pod->node->devices[place];
}

void hold_lift(const struct pod *pod)
{
	for (size_t i = 0; i < pod->hold_count; i++)
		share_sub(&device_of(pod, &pod->holds[i])->used, &pod->holds[i].share);
	if (pod->hold_count > 0)
		pod->node->hold_stamp++;
}

void hold_lower(const struct pod *pod)
{
	for (size_t i = 0; i < pod->hold_count; i++)
		share_add(&device_of(pod, &pod->holds[i])->used, &pod->holds[i].share);
	if (pod->hold_count > 0)
		pod->node->hold_stamp++;
}

void hold_release(struct pod *pod)
{
	hold_lift(pod);
	free(pod->holds);
	pod->holds = NULL;
	pod->hold_count = 0;
}

void hold_short(const struct sched_spec *spec, const struct node *node, bool *ret_is_memory,
		int64_t *ret_need, int64_t *ret_have)
{
	uint32_t order[SCHED_SHARES_MAX];
	int64_t have = 0;
	ASSERT(spec->share_count > 0);
	order_asks(spec, order);
	const struct share *ask = &spec->shares[order[0]].share;
	*ret_is_memory = ask->milli == 0;
	*ret_need = *ret_is_memory ? ask->memory_mib : ask->milli;
	for (size_t i = 0; i < node->device_count; i++) {
		struct share left = left_of(&node->devices[i]);
		if (suits(spec, &node->devices[i]))
			have = max_i64(have, *ret_is_memory ? left.memory_mib : left.milli);
	}
	*ret_have = have;
}

const char *hold_check(const struct node *node)
{
	struct share sums[SCHED_DEVICES_MAX] = { { 0 } };
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		for (size_t i = 0; i < pod->hold_count; i++) {
			size_t place = find(node, pod->holds[i].uuid);
			if (place == node->device_count)
				return "a pod holds a share of a device that is not there";
			share_add(&sums[place], &pod->holds[i].share);
		}
	}
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		if (device->used.milli != sums[i].milli ||
		    device->used.memory_mib != sums[i].memory_mib)
			return "shares of a device are not the sum of what its pods hold";
	}
	return NULL;
}
