// SPDX-License-Identifier: Apache-2.0
// Where all members of a gang go at once. First by the usual choice of nodes, the hardest pods
// first; that is enough for equal pods. Where it fails, every way to give them nodes and devices
// is tried, within a bound of looks. Pods are put on nodes for the try, so that each filter sees
// those before it.
#include "sched/claim_book.h"
#include "sched/gang.h"
#include "sched/gang_memo.h"
#include "sched/gang_search.h"
#include "sched/queueing.h"

#include <stdlib.h>

bool gang_in_domain(const struct check *check, const struct node *node)
{
	return check->domain_key.len == 0 ||
	       str_eq(sched_labels_get(&node->labels, check->domain_key), check->domain_value);
}

static bool is_coupled(const struct sched_spec *spec)
{
	return spec->near_count + spec->apart_count + spec->spread_count > 0 ||
	       spec_has_volumes(spec) || spec->port_count > 0;
}

// ---- how many would fit at most, by amounts alone

static int64_t fit_on(const struct search *s, const struct shape *shape, uint32_t slot)
{
	const struct sched *sched = s->sched;
	const struct node *node = sched->nodes[slot];
	const struct sched_spec *spec = shape->spec;
	const struct check check = { .domain_key = s->domain_key, .domain_value = s->domain_value };
	if (node == NULL || !shape_is_static_fit(shape, slot) || !gang_in_domain(&check, node))
		return 0;
	const struct column *pods = &sched->columns[DIM_PODS];
	int64_t count = pods->alloc[slot] - pods->used[slot];
	for (size_t i = 0; i < spec->amount_count && count > 0; i++) {
		int64_t need = spec->amounts[i].amount, have = 0;
		if (shape->dims[i] != DIM_NONE) {
			const struct column *column = &sched->columns[shape->dims[i]];
			have = column->alloc[slot] - column->used[slot];
		}
		if (need > 0)
			count = min_i64(count, max_i64(have, 0) / need);
	}
	return max_i64(count, 0);
}

struct gang_memo *gang_memo_of(struct shape *shape)
{
	if (shape->memo == NULL)
		shape->memo = core_alloc(1, sizeof *shape->memo);
	return shape->memo;
}

int64_t gang_room(struct sched *sched, struct shape *shape)
{
	struct gang_memo *memo = gang_memo_of(shape);
	const struct search anywhere = { .sched = sched };
	if (memo->room_gen == sched->load_gen)
		return memo->room;
	shape_ready(sched, shape);
	memo->room = 0;
	for (uint32_t slot = 0; slot < sched->slot_count && memo->room <= SCHED_GANG_MAX; slot++)
		memo->room += fit_on(&anywhere, shape, slot);
	memo->room_gen = sched->load_gen;
	return memo->room;
}

static int64_t fit_from(struct search *s, const struct shape *shape, uint32_t from, int64_t enough)
{
	int64_t sum = 0;
	uint32_t slot = from;
	for (; slot < s->sched->slot_count && sum < enough; slot++)
		sum += fit_on(s, shape, slot);
	s->looks += slot - from;
	return sum;
}

static size_t count_alike(const struct search *s, size_t first)
{
	size_t end = first;
	while (end < s->count && s->pods[end]->shape == s->pods[first]->shape)
		end++;
	return end - first;
}

static size_t fit_at_most(struct search *s)
{
	size_t sum = 0;
	for (size_t i = 0; i < s->count;) {
		size_t alike = count_alike(s, i);
		struct shape *shape = s->pods[i]->shape;
		bool is_known = s->domain_key.len == 0 && !s->is_trial;
		int64_t room = is_known ? gang_room(s->sched, shape)
					: fit_from(s, shape, 0, (int64_t)alike);
		sum += min_size(alike, (size_t)room);
		i += alike;
	}
	return min_size(sum, s->most);
}

// ---- putting pods on nodes for a try

static void count_in_group(struct search *s, const struct pod *pod, int64_t change)
{
	if (s->group_count > 0)
		s->groups[pod->member->group_i].there += change;
}

static void put(struct search *s, struct pod *pod, struct node *node)
{
	pod_put_on(s->sched, pod, node);
	(void)place_devices(s->sched, pod, node);
	(void)volumes_assume(s->sched, pod);
	(void)claim_fit_assume(s->sched, pod);
	s->placed++;
	count_in_group(s, pod, 1);
}

static void take(struct search *s, struct pod *pod)
{
	pod_take_off(s->sched, pod);
	s->placed--;
	count_in_group(s, pod, -1);
}

static void take_all(struct search *s)
{
	for (size_t i = s->count; i > 0; i--) {
		if (s->pods[i - 1]->node != NULL)
			take(s, s->pods[i - 1]);
	}
	ASSERT(s->placed == 0);
}

static bool are_groups_met(const struct search *s)
{
	for (size_t i = 0; i < s->group_count; i++) {
		if (s->groups[i].there < s->groups[i].least)
			return false;
	}
	return true;
}

static bool is_done(struct search *s)
{
	s->best = max_size(s->best, s->placed);
	return s->placed >= s->need && are_groups_met(s);
}

// Those before it may have used up what the queue may hold.
static bool is_blocked(struct search *s, const struct pod *pod)
{
	bool is = queueing_is_blocked(pod);
	s->is_limited = s->is_limited || is;
	return is;
}

static struct check check_of(const struct search *s, struct pod *pod, struct affinity *affinity)
{
	return (struct check){ .sched = s->sched,
			       .pod = pod,
			       .shape = pod->shape,
			       .affinity = affinity,
			       .domain_key = s->domain_key,
			       .domain_value = s->domain_value };
}

// ---- the usual choice

static bool is_greedy_done(struct search *s, bool is_hardest_first)
{
	const struct shape *full = NULL; // nothing more of it fits
	for (size_t k = 0; k < s->count && s->placed < s->most && s->looks < GREEDY_LOOKS_MAX;
	     k++) {
		struct pod *pod = s->pods[is_hardest_first ? k : s->count - 1 - k];
		if (pod->shape == full || is_blocked(s, pod))
			continue;
		struct affinity *affinity = affinity_new(s->sched, pod);
		struct check check = check_of(s, pod, affinity);
		struct node *node = queueing_is_blocked(pod) ? NULL : place_best(&check);
		s->looks += s->sched->slot_count;
		if (affinity != NULL)
			s->looks += map_count(s->sched->pod_by_uid);
		affinity_free(affinity);
		if (node != NULL)
			put(s, pod, node);
		else if (!is_coupled(pod->shape->spec))
			full = pod->shape;
	}
	if (is_done(s))
		return true;
	take_all(s);
	return false;
}

// ---- all ways

static bool descend(struct search *s, size_t i);

static bool put_and_descend(struct search *s, size_t i, struct node *node)
{
	struct pod *pod = s->pods[i];
	struct ways ways;
	s->slots[i] = node->slot;
	put(s, pod, node);
	if (descend(s, i + 1))
		return true;
	for (ways_begin(s, pod, &ways);
	     s->deep_looks < SEARCH_LOOKS_MAX && ways_next(&ways, pod);) {
		s->deep_looks++;
		if (descend(s, i + 1))
			return true;
	}
	take(s, pod);
	return false;
}

// Pods of one shape go to nodes in order, so that no two ways differ only in their names.
static bool try_nodes(struct search *s, size_t i, uint32_t from)
{
	struct pod *pod = s->pods[i];
	struct affinity *affinity = affinity_new(s->sched, pod);
	struct check check = check_of(s, pod, affinity);
	bool is_found = false, is_blocked = queueing_is_blocked(pod);
	for (uint32_t slot = from; slot < s->sched->slot_count && !is_found && !is_blocked;
	     slot++) {
		struct node *node = s->sched->nodes[slot];
		if (++s->deep_looks >= SEARCH_LOOKS_MAX)
			break;
		if (node != NULL && filter_fits(&check, node))
			is_found = put_and_descend(s, i, node);
	}
	affinity_free(affinity);
	return is_found;
}

static bool descend(struct search *s, size_t i)
{
	if (is_done(s) && (s->placed == s->most || i == s->count))
		return true;
	if (i == s->count || s->placed == s->most || s->placed + (s->count - i) < s->need ||
	    s->deep_looks >= SEARCH_LOOKS_MAX)
		return false;
	const struct shape *shape = s->pods[i]->shape;
	size_t skips = s->placed + (s->count - i) - s->need, alike = count_alike(s, i);
	bool has_twin = i > 0 && s->pods[i - 1]->shape == shape && !is_coupled(shape->spec);
	bool was_skipped = has_twin && s->pods[i - 1]->node == NULL;
	uint32_t from = has_twin && !was_skipped ? s->slots[i - 1] : 0;
	int64_t least = (int64_t)alike - (int64_t)min_size(skips, alike);
	uint64_t looks = s->looks;
	int64_t room = fit_from(s, shape, from, max_i64(least, 1));
	s->deep_looks += s->looks - looks;
	s->looks = looks;
	if (room < least)
		return false;
	if (!was_skipped && try_nodes(s, i, from))
		return true;
	return skips > 0 && descend(s, i + 1);
}

static bool is_search_done(struct search *s)
{
	bool is_mixed = count_alike(s, 0) < s->count || is_coupled(s->pods[0]->shape->spec);
	if (!is_mixed || s->count > SEARCH_PODS_MAX)
		return false;
	if (descend(s, 0))
		return true;
	ASSERT(s->placed == 0);
	return false;
}

static bool is_placed(struct search *s)
{
	size_t most = fit_at_most(s);
	if (most < s->need) {
		s->best = max_size(s->best, most);
		return false;
	}
	return is_greedy_done(s, true) || (s->need < s->count && is_greedy_done(s, false)) ||
	       (s->is_long && is_search_done(s));
}

// ---- domains

struct domain {
	struct str value;
	int64_t free_gpus;
};

static int compare_domains(const void *a, const void *b)
{
	const struct domain *x = a, *y = b;
	if (x->free_gpus != y->free_gpus)
		return x->free_gpus < y->free_gpus ? -1 : 1;
	return str_cmp(x->value, y->value);
}

static size_t list_domains(const struct search *s, struct str key, struct domain *domains)
{
	const struct column *gpu = &s->sched->columns[DIM_GPU];
	struct map *places = map_new(s->sched->seed);
	size_t count = 0;
	for (uint32_t slot = 0; slot < s->sched->slot_count; slot++) {
		const struct node *node = s->sched->nodes[slot];
		struct str value = { NULL, 0 };
		if (node != NULL && node->is_known)
			value = sched_labels_get(&node->labels, key);
		if (value.data == NULL)
			continue;
		struct domain *domain = map_find(places, value);
		if (domain == NULL) {
			domain = &domains[count++];
			*domain = (struct domain){ .value = value };
			(void)map_set(places, value, domain);
		}
		domain->free_gpus += max_i64(gpu->alloc[slot] - gpu->used[slot], 0);
	}
	map_free(places);
	if (count > 1)
		qsort(domains, count, sizeof *domains, compare_domains);
	return count;
}

struct str gang_domain(const struct gang *gang, struct str key)
{
	const struct link *head = &gang->members;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct node *node = LINK_OF((uintptr_t)at, struct member, in_gang)->pod->node;
		struct str value = { NULL, 0 };
		if (node != NULL)
			value = sched_labels_get(&node->labels, key);
		if (value.data != NULL)
			return value;
	}
	return (struct str){ NULL, 0 };
}

// The domain that is left with the fewest GPUs first, so that large ones stay whole.
static bool is_placed_in_domain(struct search *s, struct str key)
{
	struct str running = gang_domain(s->gang, key);
	s->domain_key = key;
	if (running.data != NULL) {
		s->domain_value = running;
		return is_placed(s);
	}
	struct domain *domains = core_alloc(s->sched->slot_count, sizeof *domains);
	size_t count = list_domains(s, key, domains);
	bool is_found = false;
	for (size_t i = 0; i < count && !is_found; i++) {
		s->domain_value = domains[i].value;
		is_found = is_placed(s);
	}
	free(domains);
	return is_found;
}

// ---- which pods

static const struct member *of(const void *pod) { return (*(struct pod *const *)pod)->member; }

// Whom its sub-group needs, then the hardest to place first: most GPUs, then most of the nodes
// ruled out; equal ones together.
static int compare_pods(const void *a, const void *b)
{
	const struct pod *x = of(a)->pod, *y = of(b)->pod;
	const struct sched_spec *p = x->shape->spec, *q = y->shape->spec;
	if (of(a)->is_due != of(b)->is_due)
		return of(a)->is_due ? -1 : 1;
	if (p->gpu_count != q->gpu_count)
		return p->gpu_count > q->gpu_count ? -1 : 1;
	bool is_picky = p->topology != SCHED_ANYWHERE || p->gpu_model_count > 0 ||
			p->gpu_memory_mib_min > 0;
	bool is_other_picky = q->topology != SCHED_ANYWHERE || q->gpu_model_count > 0 ||
			      q->gpu_memory_mib_min > 0;
	if (is_picky != is_other_picky)
		return is_picky ? -1 : 1;
	int order = x->shape == y->shape ? 0 : str_cmp(x->shape->key, y->shape->key);
	return order != 0 ? order : tree_key_cmp(&x->key, &y->key);
}

// Those that run count; of one that has been whole, members may have ended.
static void list_groups(struct search *s)
{
	const struct link *head = &s->gang->members;
	struct map *places = map_new(s->sched->seed); // one more than the index
	s->groups = core_alloc(s->gang->member_count, sizeof *s->groups);
	for (const struct link *at = head->next; at != head; at = at->next) {
		struct member *member = LINK_OF((uintptr_t)at, struct member, in_gang);
		struct str name = member->terms.group;
		uintptr_t place = (uintptr_t)map_find(places, name);
		if (place == 0) {
			place = ++s->group_count;
			s->groups[place - 1].name = name;
			(void)map_set(places, name, (void *)place);
		}
		struct subgroup *group = &s->groups[place - 1];
		member->group_i = place - 1;
		group->least = max_i64(group->least, member->terms.group_min);
		group->there += member->pod->node != NULL && !member->pod->is_terminating;
	}
	map_free(places);
}

// The first of each sub-group, as many as it needs.
static void mark_due(struct search *s)
{
	int64_t *due = core_alloc(s->group_count, sizeof *due);
	for (size_t i = 0; i < s->count; i++) {
		struct member *member = s->pods[i]->member;
		const struct subgroup *group = &s->groups[member->group_i];
		member->is_due = group->there + due[member->group_i] < group->least;
		due[member->group_i] += member->is_due;
	}
	free(due);
}

static void list_pods(struct search *s)
{
	bool has_groups = false;
	s->pods = core_alloc(tree_count(&s->gang->waiting), sizeof(struct pod *));
	s->slots = core_alloc(tree_count(&s->gang->waiting), sizeof *s->slots);
	for (struct tree_node *at = tree_first(&s->gang->waiting); at != NULL; at = tree_next(at)) {
		struct pod *pod = POD_OF(at, in_shape);
		shape_ready(s->sched, pod->shape);
		has_groups = has_groups || pod->member->terms.group_min > 0;
		pod->member->is_due = false;
		s->pods[s->count++] = pod;
	}
	if (has_groups) {
		list_groups(s);
		mark_due(s);
	}
	qsort(s->pods, s->count, sizeof(struct pod *), compare_pods);
	if (s->gang->was_whole) // members may have ended
		s->group_count = 0;
}

static void list_placed(const struct search *s, struct gang_plan *ret_plan)
{
	ret_plan->pods = core_alloc(s->placed, sizeof(struct pod *));
	for (size_t i = 0; i < s->count; i++) {
		if (s->pods[i]->node != NULL)
			ret_plan->pods[ret_plan->count++] = s->pods[i];
	}
	ASSERT(ret_plan->count == s->placed);
}

bool gang_place(struct sched *sched, struct gang *gang, const struct gang_aim *aim,
		struct gang_plan *ret_plan)
{
	struct search s = { .sched = sched,
			    .gang = gang,
			    .need = aim->need,
			    .most = aim->most,
			    .is_long = aim->is_long,
			    .is_trial = aim->is_trial };
	bool all = sched->wakes_all, near = sched->wakes_near, volumes = sched->wakes_volumes;
	bool was_trying = sched->gangs->is_trying;
	uint64_t apart_gen = sched->apart_gen;
	struct str topology = gang_topology(gang);
	*ret_plan = (struct gang_plan){ .count = 0 };
	list_pods(&s);
	sched->gangs->is_trying = true;
	bool is_found = topology.len > 0 ? is_placed_in_domain(&s, topology) : is_placed(&s);
	sched->gangs->is_trying = was_trying;
	ret_plan->looks = s.looks + s.deep_looks;
	if (is_found) {
		list_placed(&s, ret_plan);
	} else {
		sched->wakes_all = all;
		sched->wakes_near = near;
		sched->wakes_volumes = volumes;
		sched->apart_gen = apart_gen;
		ret_plan->best = s.best;
		ret_plan->is_limited = s.is_limited;
	}
	free(s.pods);
	free(s.slots);
	free(s.groups);
	return is_found;
}

// Only within a question, whose asker restores what is to be woken.
void gang_unplace(struct sched *sched, struct gang_plan *plan)
{
	ASSERT(sched->gangs->is_trying);
	for (size_t i = plan->count; i > 0; i--)
		pod_take_off(sched, plan->pods[i - 1]);
	free(plan->pods);
	plan->pods = NULL;
	plan->count = 0;
}
