// SPDX-License-Identifier: Apache-2.0
#include "sched/load.h"

#include "sched/hold.h"
#include "sched/parts.h"
#include "sched/weigh.h"

#include <stdlib.h>

struct row {               // of a node
	int64_t due_ms;    // until then all that counts is young enough; INT64_MAX: nothing counts
	int64_t newest_ms; // of loads that are too old; -1: there is none
	int16_t mean_milli;
	uint8_t unknown_shared, unknown_whole; // devices without a load that counts
};
struct loads {
	int64_t period_ms;
	struct row *rows; // by slot
	uint32_t slot_cap;
	uint32_t shared_nodes, whole_nodes; // that have such devices
	int64_t due_ms;                     // the least of all rows, or earlier
};

struct loads *loads_new(void)
{
	struct loads *loads = core_alloc(1, sizeof *loads);
	loads->due_ms = INT64_MAX;
	return loads;
}

void loads_free(struct loads *loads)
{
	free(loads->rows);
	free(loads);
}

bool loads_are_on(const struct sched *sched) { return sched->loads->period_ms > 0; }

bool load_is_stale(const struct load *load, int64_t now_ms, int64_t period_ms)
{
	return now_ms - load->at_ms > SCHED_LOAD_PERIODS * period_ms;
}

bool load_add(struct load *load, int64_t milli, int64_t at_ms, int64_t period_ms)
{
	ASSERT(milli >= 0 && milli <= SCHED_LOAD_MILLI_MAX && period_ms > 0);
	if (load->is_known && at_ms < load->at_ms + (period_ms + 1) / 2)
		return false;
	bool continues = load->is_known && !load_is_stale(load, at_ms, period_ms);
	if (continues)
		milli = (LOAD_NEW_QUARTERS * milli + (4 - LOAD_NEW_QUARTERS) * load->milli + 2) / 4;
	load->milli = (int16_t)milli;
	load->at_ms = at_ms;
	load->is_known = true;
	return true;
}

// True: decisions count with something else now.
static bool settle(struct load *load, int64_t now_ms, int64_t period_ms)
{
	bool counts = period_ms > 0 && load->is_known && !load_is_stale(load, now_ms, period_ms);
	int64_t step = load->milli > load->used_milli ? load->milli - load->used_milli
						      : load->used_milli - load->milli;
	if (counts == load->counts && (!counts || step < LOAD_STEP_MILLI))
		return false;
	load->counts = counts;
	load->used_milli = load->milli;
	return true;
}

static void reserve(struct sched *sched)
{
	struct loads *loads = sched->loads;
	uint32_t old = loads->slot_cap;
	if (sched->slot_cap <= old)
		return;
	loads->rows = core_grow(loads->rows, old, sched->slot_cap, sizeof *loads->rows);
	for (uint32_t slot = old; slot < sched->slot_cap; slot++)
		loads->rows[slot] = (struct row){ .due_ms = INT64_MAX, .newest_ms = -1 };
	loads->slot_cap = sched->slot_cap;
}

static int64_t counted_milli(const struct load *load)
{
	return load->counts ? load->used_milli : LOAD_UNKNOWN_MILLI;
}

// What the node's row says follows from its devices.
static struct row sum_up(const struct node *node, int64_t period_ms)
{
	struct row row = { .due_ms = INT64_MAX, .newest_ms = -1 };
	int64_t sum = 0, count = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		const struct load *load = &device->load;
		if (!device->is_present)
			continue;
		sum += counted_milli(load);
		count++;
		if (load->counts) {
			row.due_ms =
				min_i64(row.due_ms, load->at_ms + SCHED_LOAD_PERIODS * period_ms);
			continue;
		}
		if (load->is_known)
			row.newest_ms = max_i64(row.newest_ms, load->at_ms);
		row.unknown_shared = (uint8_t)(row.unknown_shared + device->is_shared);
		row.unknown_whole = (uint8_t)(row.unknown_whole + !device->is_shared);
	}
	row.mean_milli = (int16_t)(count == 0 ? 0 : sum / count);
	return row;
}

static void count_node(uint32_t *count, uint8_t before, uint8_t now)
{
	if (before == 0 && now > 0)
		(*count)++;
	if (before > 0 && now == 0)
		(*count)--;
}

static void update(struct sched *sched, struct node *node)
{
	struct loads *loads = sched->loads;
	int64_t weight = weigh_load_weight(sched->weigh, SCORE_SHARE);
	bool is_changed = false;
	if (loads->period_ms == 0 && loads->rows == NULL)
		return; // never on
	reserve(sched);
	for (size_t i = 0; i < node->device_count; i++) {
		struct device *device = &node->devices[i];
		is_changed |= settle(&device->load, sched->now_ms, loads->period_ms);
		int64_t cost = loads->period_ms == 0 ? 0
						     : counted_milli(&device->load) * weight /
							       SCHED_LOAD_MILLI_MAX;
		is_changed |= device->load_cost != cost;
		device->load_cost = (int32_t)cost;
	}
	struct row *row = &loads->rows[node->slot], before = *row;
	*row = sum_up(node, loads->period_ms);
	count_node(&loads->shared_nodes, before.unknown_shared, row->unknown_shared);
	count_node(&loads->whole_nodes, before.unknown_whole, row->unknown_whole);
	loads->due_ms = min_i64(loads->due_ms, row->due_ms);
	if (is_changed)
		node->hold_stamp++;
	if (row->mean_milli != before.mean_milli && weigh_uses_load(sched->weigh))
		weigh_touch(sched->weigh, node->slot);
}

void loads_node_changed(struct sched *sched, struct node *node) { update(sched, node); }

static void update_all(struct sched *sched)
{
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		if (sched->nodes[slot] != NULL)
			update(sched, sched->nodes[slot]);
	}
}

void loads_policy_changed(struct sched *sched) { update_all(sched); }

void loads_expire(struct sched *sched)
{
	struct loads *loads = sched->loads;
	if (sched->now_ms <= loads->due_ms)
		return;
	int64_t due_ms = INT64_MAX;
	for (uint32_t slot = 0; slot < loads->slot_cap && slot < sched->slot_count; slot++) {
		if (loads->rows[slot].due_ms < sched->now_ms)
			update(sched, sched->nodes[slot]);
		due_ms = min_i64(due_ms, loads->rows[slot].due_ms);
	}
	loads->due_ms = due_ms;
}

int64_t loads_node_milli(const struct sched *sched, uint32_t slot)
{
	const struct loads *loads = sched->loads;
	return slot < loads->slot_cap && loads->period_ms > 0 ? loads->rows[slot].mean_milli : 0;
}

const struct sched_facts *loads_note(struct sched *sched, struct pod *pod)
{
	const struct loads *loads = sched->loads;
	const struct sched_spec *spec = pod->shape->spec;
	bool is_shared = spec->share_count > 0;
	score_kind kind = is_shared ? SCORE_SHARE : spec->gpu_count > 1 ? SCORE_MANY : SCORE_ONE;
	uint32_t nodes = 0;
	int64_t newest_ms = -1;
	if ((is_shared ? loads->shared_nodes : loads->whole_nodes) == 0 ||
	    (!is_shared && spec->gpu_count == 0) || weigh_load_weight(sched->weigh, kind) == 0)
		return NULL;
	shape_ready(sched, pod->shape);
	for (uint32_t slot = 0; slot < loads->slot_cap && slot < sched->slot_count; slot++) {
		const struct row *row = &loads->rows[slot];
		bool lacks = (is_shared ? row->unknown_shared : row->unknown_whole) > 0;
		if (!lacks || sched->nodes[slot] == NULL || !shape_is_static_fit(pod->shape, slot))
			continue;
		nodes++;
		newest_ms = max_i64(newest_ms, row->newest_ms);
	}
	if (nodes == 0)
		return NULL;
	struct sched_facts facts = { .count = 0 };
	struct sched_fact *fact = facts_add(&facts, SCHED_CODE_LOAD_STALE, 0);
	fact->nodes = nodes;
	fact->need = SCHED_LOAD_PERIODS * loads->period_ms;
	fact->have = newest_ms < 0 ? -1 : max_i64(sched->now_ms - newest_ms, 0);
	pod_set_facts(pod, &facts);
	return pod->facts;
}

void sched_load_period_set(struct sched *sched, int64_t period_ms)
{
	ASSERT(period_ms >= 0);
	sched->loads->period_ms = period_ms;
	update_all(sched);
}

// Where devices are, by UUID; made only when a source does not know their nodes.
static struct map *index_devices(const struct sched *sched)
{
	struct map *index = map_new(0);
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		struct node *node = sched->nodes[slot];
		for (size_t i = 0; node != NULL && i < node->device_count; i++)
			(void)map_set(index, str_of(node->devices[i].uuid), node);
	}
	return index;
}

static struct device *find_on(const struct node *node, struct str uuid)
{
	for (size_t i = 0; node != NULL && i < node->device_count; i++) {
		if (str_eq_c(uuid, node->devices[i].uuid))
			return &node->devices[i];
	}
	return NULL;
}

static struct device *find(const struct sched *sched, const struct sched_load_in *item,
			   struct map **index, struct node **ret_node)
{
	struct node *node = map_find(sched->node_by_name, item->node);
	struct device *device = find_on(node, item->uuid);
	if (device == NULL && !item->is_node_sure) {
		if (*index == NULL)
			*index = index_devices(sched);
		node = map_find(*index, item->uuid);
		device = find_on(node, item->uuid);
	}
	*ret_node = node;
	return device;
}

struct sched_load_taken sched_load_set(struct sched *sched, const struct sched_load_in *items,
				       size_t count, int64_t now_ms)
{
	struct sched_load_taken taken = { 0 };
	struct map *index = NULL;
	struct node *changed = NULL; // not brought up to date yet
	int64_t period_ms = sched->loads->period_ms;
	sched->now_ms = max_i64(sched->now_ms, now_ms);
	for (size_t i = 0; i < count && period_ms > 0; i++) {
		const struct sched_load_in *item = &items[i];
		struct node *node;
		if (item->milli < 0 || item->milli > SCHED_LOAD_MILLI_MAX || item->at_ms < 0 ||
		    item->at_ms > sched->now_ms) {
			taken.refused++;
			continue;
		}
		struct device *device = find(sched, item, &index, &node);
		if (device == NULL) {
			taken.unknown++;
		} else if (!load_add(&device->load, item->milli, item->at_ms, period_ms)) {
			taken.repeated++;
		} else {
			taken.taken++;
			if (changed != NULL && changed != node)
				update(sched, changed);
			changed = node;
		}
	}
	if (changed != NULL)
		update(sched, changed);
	map_free(index);
	return taken;
}

struct sched_load_counts sched_load_counts_get(const struct sched *sched, int64_t now_ms)
{
	struct sched_load_counts counts = { .oldest_ms = INT64_MAX };
	int64_t period_ms = sched->loads->period_ms;
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		for (size_t i = 0; node != NULL && i < node->device_count; i++) {
			const struct load *load = &node->devices[i].load;
			if (!node->devices[i].is_present)
				continue;
			if (!load->is_known) {
				counts.none++;
			} else if (load_is_stale(load, now_ms, period_ms)) {
				counts.stale++;
			} else {
				counts.fresh++;
				counts.oldest_ms = min_i64(counts.oldest_ms, load->at_ms);
			}
		}
	}
	return counts;
}

size_t sched_load_explain(const struct sched *sched, struct str namespace_, struct str name,
			  struct sched_load_used *ret, size_t max)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	size_t count = 0;
	for (size_t i = 0; pod != NULL && i < pod->hold_count && count < max; i++) {
		const struct hold *hold = &pod->holds[i];
		if (hold->is_by_load)
			ret[count++] = (struct sched_load_used){ str_of(hold->uuid),
								 hold->load_milli,
								 hold->load_age_ms };
	}
	return count;
}
