// SPDX-License-Identifier: Apache-2.0
// Filters that depend on the pods of a node: amounts, devices, ports.
#include "sched/claim_book.h"
#include "sched/gang.h"
#include "sched/hold.h"
#include "sched/queueing_model.h"
#include "sched/victims.h"
#include "sched/window_book.h"

static int64_t free_of(const struct sched *sched, uint32_t dim, const struct node *node)
{
	const struct column *column = &sched->columns[dim];
	return column->alloc[node->slot] - column->used[node->slot];
}

bool filter_amounts(const struct sched *sched, const struct shape *shape, uint32_t slot)
{
	const struct column *pods = &sched->columns[DIM_PODS];
	if (pods->alloc[slot] <= pods->used[slot])
		return false;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		int64_t amount = shape->spec->amounts[i].amount, have = 0;
		if (shape->dims[i] != DIM_NONE) {
			const struct column *column = &sched->columns[shape->dims[i]];
			have = column->alloc[slot] - column->used[slot];
		}
		if (amount > 0 && have >= amount && shape->slice_tenant.data != NULL)
			have -= slices_kept(sched, shape, i, sched->nodes[slot]);
		if (amount > 0 && have < amount)
			return false;
	}
	return true;
}

// A node whose agent has named no devices yet is trusted by its count alone.
static bool fits_devices(const struct sched_spec *spec, const struct node *node)
{
	return hold_fits(spec, node) &&
	       (spec->gpu_count == 0 || node->present_count == 0 ||
		(int64_t)device_usable_count(spec, node) >= spec->gpu_count);
}

bool filter_has_room(const struct sched *sched, const struct shape *shape, const struct node *node)
{
	return filter_amounts(sched, shape, node->slot) && fits_devices(shape->spec, node) &&
	       queueing_allows(shape, node);
}

static bool is_wild(struct str ip) { return ip.len == 0 || str_eq_c(ip, "0.0.0.0"); }

static bool ports_clash(const struct sched_port *a, const struct sched_port *b)
{
	return a->port == b->port && str_eq(a->protocol, b->protocol) &&
	       (is_wild(a->ip) || is_wild(b->ip) || str_eq(a->ip, b->ip));
}

bool filter_ports_clash(const struct sched_spec *a, const struct sched_spec *b)
{
	for (size_t i = 0; i < a->port_count; i++) {
		for (size_t k = 0; k < b->port_count; k++) {
			if (ports_clash(&a->ports[i], &b->ports[k]))
				return true;
		}
	}
	return false;
}

static bool fits_ports(const struct sched_spec *spec, const struct node *node)
{
	if (spec->port_count == 0)
		return true;
	for (struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		if (filter_ports_clash(spec, LINK_OF(at, struct pod, on_node)->shape->spec))
			return false;
	}
	return true;
}

bool filter_rest(const struct check *check, const struct node *node)
{
	const struct sched_spec *spec = check->shape->spec;
	return gang_in_domain(check, node) && fits_devices(spec, node) && fits_ports(spec, node) &&
	       nominate_allows(check, node) && queueing_allows(check->shape, node) &&
	       (check->affinity == NULL || affinity_check(check->affinity, node) == 0);
}

bool filter_fits(const struct check *check, const struct node *node)
{
	return shape_is_static_fit(check->shape, node->slot) &&
	       filter_amounts(check->sched, check->shape, node->slot) && filter_rest(check, node) &&
	       reserve_allows(check->sched, check->pod, node);
}

static bool is_lower(const struct check *check, const struct pod *pod)
{
	return pod->key.priority < check->pod->key.priority;
}

static bool is_victim(const struct check *check, const struct pod *pod)
{
	return victims_is_leaving(check->sched, pod) ||
	       victims_may_take(check->sched, pod, check->pod);
}

static int64_t held_by(const struct check *check, const struct node *node, uint32_t dim,
		       claim_counts_fn *counts)
{
	int64_t sum = 0;
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (!counts(check, pod))
			continue;
		if (dim == DIM_PODS)
			sum++;
		for (size_t i = 0; i < pod->shape->spec->amount_count; i++) {
			if (pod->shape->dims[i] == dim)
				sum += pod->shape->spec->amounts[i].amount;
		}
	}
	return sum;
}

static bool has_room_without(const struct check *check, const struct node *node,
			     claim_counts_fn *counts)
{
	const struct sched_spec *spec = check->shape->spec;
	int64_t pods = free_of(check->sched, DIM_PODS, node);
	if (pods < 1 && pods + held_by(check, node, DIM_PODS, counts) < 1)
		return false;
	for (size_t i = 0; i < spec->amount_count; i++) {
		uint32_t dim = check->shape->dims[i];
		if (dim == DIM_NONE)
			return false;
		int64_t have = free_of(check->sched, dim, node);
		have -= slices_kept(check->sched, check->shape, i, node);
		if (have < spec->amounts[i].amount)
			have += held_by(check, node, dim, counts);
		if (have < spec->amounts[i].amount)
			return false;
	}
	return claim_idle_fit_without(check, node, counts);
}

bool filter_room_without_lower(const struct check *check, const struct node *node)
{
	return has_room_without(check, node, is_lower);
}

bool filter_room_without_victims(const struct check *check, const struct node *node)
{
	return has_room_without(check, node, is_victim);
}

uint64_t facts_codes(const struct sched_facts *facts)
{
	uint64_t codes = 0;
	for (size_t i = 0; i < facts->count; i++)
		codes |= code_bit(facts->items[i].code);
	return codes;
}

bool facts_equal(const struct sched_facts *a, const struct sched_facts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct sched_fact *x = &a->items[i], *y = &b->items[i];
		if (x->code != y->code || x->detail != y->detail || x->nodes != y->nodes ||
		    x->need != y->need || x->have != y->have)
			return false;
	}
	return true;
}

struct sched_fact *facts_add(struct sched_facts *facts, sched_code code, uint32_t detail)
{
	size_t i = 0;
	while (i < facts->count &&
	       (facts->items[i].code < code ||
		(facts->items[i].code == code && facts->items[i].detail < detail)))
		i++;
	struct sched_fact *fact = &facts->items[i];
	if (i < facts->count && fact->code == code && fact->detail == detail)
		return fact;
	if (facts->count == SCHED_FACTS_MAX)
		return &facts->spill;
	memmove(fact + 1, fact, (facts->count - i) * sizeof *fact);
	*fact = (struct sched_fact){ .code = code, .detail = detail };
	facts->count++;
	return fact;
}

static void note(struct sched_facts *facts, sched_code code, uint32_t detail, int64_t need,
		 int64_t have)
{
	struct sched_fact *fact = facts_add(facts, code, detail);
	fact->have = fact->nodes == 0 ? have : max_i64(fact->have, have);
	fact->need = need;
	fact->nodes++;
}

void filter_note_short(const struct check *check, const struct node *node,
		       struct sched_facts *facts)
{
	const struct sched_spec *spec = check->shape->spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		uint32_t dim = check->shape->dims[i];
		int64_t need = spec->amounts[i].amount;
		if (dim == DIM_NONE || free_of(check->sched, dim, node) >= need)
			continue;
		int64_t held = held_by(check, node, dim, is_lower);
		int64_t have = free_of(check->sched, dim, node) + held;
		if (held > 0 && have < need)
			note(facts, SCHED_CODE_PREEMPTION_SHORT, (uint32_t)i, need, have);
	}
}

static uint64_t note_share(const struct sched_spec *spec, const struct node *node,
			   struct sched_facts *facts)
{
	bool is_memory;
	int64_t need, have;
	hold_short(spec, node, &is_memory, &need, &have);
	note(facts, SCHED_CODE_SHARE_SHORT, is_memory, need, have);
	return code_bit(SCHED_CODE_SHARE_SHORT);
}

// others: what fails apart from amounts; where the kind of GPU is wrong, there is no point in
// counting them.
static uint64_t collect_amounts(const struct check *check, const struct node *node, uint64_t others,
				struct sched_facts *facts)
{
	const struct sched_spec *spec = check->shape->spec;
	uint64_t fails = 0;
	if (free_of(check->sched, DIM_PODS, node) < 1) {
		note(facts, SCHED_CODE_TOO_MANY_PODS, 0, 1,
		     max_i64(free_of(check->sched, DIM_PODS, node), 0));
		fails |= code_bit(SCHED_CODE_TOO_MANY_PODS);
	}
	bool is_gpu_short = false, is_short = false;
	for (size_t i = 0; i < spec->amount_count; i++) {
		uint32_t dim = check->shape->dims[i];
		int64_t amount = spec->amounts[i].amount;
		int64_t all = dim == DIM_NONE ? 0 : check->sched->columns[dim].alloc[node->slot];
		int64_t have = dim == DIM_NONE ? 0 : free_of(check->sched, dim, node);
		if (amount <= 0)
			continue;
		int64_t kept = slices_kept(check->sched, check->shape, i, node);
		if (have >= amount && have - kept < amount) {
			note(facts, SCHED_CODE_SLICE_RESERVED, (uint32_t)i, amount,
			     max_i64(have - kept, 0));
			fails |= code_bit(SCHED_CODE_SLICE_RESERVED);
		}
		if (have >= amount)
			continue;
		sched_code code = all < amount ? SCHED_CODE_RESOURCE_TOO_LARGE
					       : SCHED_CODE_RESOURCE_SHORT;
		note(facts, code, (uint32_t)i, amount, max_i64(all < amount ? all : have, 0));
		fails |= code_bit(code);
		is_gpu_short = is_gpu_short || dim == DIM_GPU;
		is_short = true;
	}
	if (spec->share_count > 0)
		return is_short || hold_fits(spec, node) ? fails
							 : fails | note_share(spec, node, facts);
	uint64_t kind = code_bit(SCHED_CODE_GPU_MODEL) | code_bit(SCHED_CODE_GPU_MEMORY) |
			code_bit(SCHED_CODE_GPU_COMPUTE) | code_bit(SCHED_CODE_GPU_GROUP) |
			code_bit(SCHED_CODE_GPU_HEALTH);
	if (!is_gpu_short && (others & kind) == 0 && !fits_devices(spec, node)) {
		note(facts, SCHED_CODE_DEVICE_SHORT, 0, spec->gpu_count,
		     (int64_t)device_usable_count(spec, node));
		fails |= code_bit(SCHED_CODE_DEVICE_SHORT);
	}
	return fails;
}

static int64_t version_number(const struct sched_version *version)
{
	const int64_t *parts = version->parts;
	if (!version->is_set)
		return 0;
	return (parts[0] * SCHED_PARTS_MAX + parts[1]) * SCHED_PARTS_MAX + parts[2];
}

static void note_static(const struct check *check, const struct node *node, sched_code code,
			struct sched_facts *facts)
{
	const struct sched_spec *spec = check->shape->spec;
	const struct sched_version *least = NULL;
	if (code == SCHED_CODE_GPU_COMPUTE)
		least = &spec->compute_min;
	else if (code == SCHED_CODE_DRIVER_VERSION)
		least = &spec->driver_min;
	else if (code == SCHED_CODE_CUDA_VERSION)
		least = &spec->cuda_min;
	if (least != NULL) {
		struct sched_version have = filter_version(node, code);
		note(facts, code, 0, version_number(least), version_number(&have));
	} else if (code == SCHED_CODE_GPU_GROUP) {
		note(facts, code, 0, spec->gpu_count, (int64_t)device_group_max(spec, node));
	} else if (code == SCHED_CODE_GPU_HEALTH) {
		note(facts, code, 0, spec->gpu_count, (int64_t)device_healthy_count(spec, node));
	} else if (code == SCHED_CODE_GPU_MEMORY) {
		note(facts, code, 0, spec->gpu_memory_mib_min, filter_gpu_memory_mib(node));
	} else {
		uint32_t detail = 0;
		if (check->affinity != NULL)
			detail = affinity_detail(check->affinity, code);
		note(facts, code, detail, 0, 0);
	}
}

uint64_t filter_collect(const struct check *check, const struct node *node,
			struct sched_facts *facts)
{
	uint64_t fails, plain = filter_static(check->shape->spec, node);
	if (!fits_ports(check->shape->spec, node))
		plain |= code_bit(SCHED_CODE_PORT_IN_USE);
	if (check->affinity != NULL)
		plain |= affinity_check(check->affinity, node);
	for (int code = 0; code < SCHED_CODES; code++) {
		if ((plain & code_bit((sched_code)code)) != 0)
			note_static(check, node, (sched_code)code, facts);
	}
	fails = plain | collect_amounts(check, node, plain, facts);
	fails |= plain == 0 ? queueing_collect_model(check->shape, node, facts) : 0;
	if (fails == 0 && !nominate_allows(check, node)) {
		note(facts, SCHED_CODE_NOMINATED, 0, 0, 0);
		fails = code_bit(SCHED_CODE_NOMINATED);
	}
	const struct window *window = fails == 0 ? window_against(check->sched, check->pod, node)
						 : NULL;
	if (window != NULL) {
		note(facts, SCHED_CODE_WINDOW, window->id, 0, max_i64(window->start_ms, 0));
		fails = code_bit(SCHED_CODE_WINDOW);
	}
	if (fails == 0 && !reserve_allows(check->sched, check->pod, node)) {
		int64_t start_ms = node->reserved->start_ms; // told in seconds from then on
		note(facts, SCHED_CODE_RESERVED, 0, 0,
		     start_ms == SCHED_NEVER_MS ? -1 : max_i64(start_ms, 0));
		fails = code_bit(SCHED_CODE_RESERVED);
	}
	return fails;
}
