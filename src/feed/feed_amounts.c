// SPDX-License-Identifier: Apache-2.0
// What a pod takes from a node, by the rules of Kubernetes: containers and sidecars add up, an
// init container needs its own amount beside the sidecars before it, pod-level requests replace
// the sum, overhead comes on top, and a resize under way counts with the larger of old and new.
#include "base/quantity.h"
#include "feed/spec_parts.h"

// No node has more, and sums of a node's pods stay far from overflow.
static const int64_t AMOUNT_MAX = INT64_C(1) << 53;

enum { AMOUNTS_MAX = 64 };

struct amounts {
	struct sched_amount items[AMOUNTS_MAX];
	size_t count;
	int64_t spill; // of what is beyond the limit; the pod is refused then
};

static int64_t *amount_of(struct build *build, struct amounts *amounts, struct str resource)
{
	for (size_t i = 0; i < amounts->count; i++) {
		if (str_eq(amounts->items[i].resource, resource))
			return &amounts->items[i].amount;
	}
	if (amounts->count == AMOUNTS_MAX) {
		build_refuse(build, SCHED_CODE_INVALID_QUANTITY, "more than %d kinds of resources",
			     AMOUNTS_MAX);
		amounts->spill = 0;
		return &amounts->spill;
	}
	struct sched_amount *item = &amounts->items[amounts->count++];
	*item = (struct sched_amount){ resource, 0 };
	return &item->amount;
}

static int64_t read_quantity(struct build *build, const struct kobj_pair *pair)
{
	int64_t amount = 0;
	bool good = str_eq_c(pair->key, "cpu") ? quantity_to_milli(pair->value, &amount)
					       : quantity_to_units(pair->value, &amount);
	if (good && amount >= 0 && amount <= AMOUNT_MAX)
		return amount;
	build_refuse(build, SCHED_CODE_INVALID_QUANTITY, STR_FMT " of " STR_FMT,
		     STR_ARG(pair->value), STR_ARG(pair->key));
	return amount > AMOUNT_MAX ? AMOUNT_MAX : 0;
}

static void add(struct build *build, struct amounts *to, const struct amounts *more)
{
	for (size_t i = 0; i < more->count; i++) {
		int64_t *amount = amount_of(build, to, more->items[i].resource);
		*amount = min_i64(*amount + more->items[i].amount, AMOUNT_MAX);
	}
}

static void raise(struct build *build, struct amounts *to, const struct amounts *least)
{
	for (size_t i = 0; i < least->count; i++) {
		int64_t *amount = amount_of(build, to, least->items[i].resource);
		*amount = max_i64(*amount, least->items[i].amount);
	}
}

static void read_list(struct build *build, const struct kobj_pairs *pairs, struct amounts *ret)
{
	*ret = (struct amounts){ .count = 0 };
	for (size_t i = 0; i < pairs->count; i++)
		*amount_of(build, ret, pairs->items[i].key) =
			read_quantity(build, &pairs->items[i]);
}

// A limit without a request is a request of that size, as the API server would have filled in.
static void read_requests(struct build *build, const struct kobj_resources *resources,
			  struct amounts *ret)
{
	read_list(build, &resources->requests, ret);
	for (size_t i = 0; i < resources->limits.count; i++) {
		const struct kobj_pair *limit = &resources->limits.items[i];
		if (kobj_pairs_get(&resources->requests, limit->key).data == NULL)
			*amount_of(build, ret, limit->key) = read_quantity(build, limit);
	}
}

static bool resize_is_infeasible(const struct kobj_pod *pod)
{
	for (size_t i = 0; i < pod->status.conditions.count; i++) {
		const struct kobj_condition *condition = &pod->status.conditions.items[i];
		if (str_eq_c(condition->type, "PodResizePending"))
			return str_eq_c(condition->reason, "Infeasible");
	}
	return false;
}

static void apply_actual(struct build *build, const struct kobj_resources *actual,
			 const struct kobj_pairs *allocated, struct amounts *requests)
{
	struct amounts list;
	if (actual == NULL)
		return;
	if (resize_is_infeasible(build->pod))
		*requests = (struct amounts){ .count = 0 };
	read_list(build, &actual->requests, &list);
	raise(build, requests, &list);
	read_list(build, allocated, &list);
	raise(build, requests, &list);
}

static void read_container(struct build *build, const struct kobj_container *container,
			   const kobj_container_statuses *statuses, struct amounts *ret)
{
	read_requests(build, &container->resources, ret);
	for (size_t i = 0; statuses != NULL && i < statuses->count; i++) {
		const struct kobj_container_status *status = &statuses->items[i];
		if (str_eq(status->name, container->name))
			apply_actual(build, status->resources, &status->allocated, ret);
	}
}

static bool is_sidecar(const struct kobj_container *container)
{
	return str_eq_c(container->restart_policy, "Always");
}

static void sum_containers(struct build *build, struct amounts *total)
{
	const struct kobj_pod *pod = build->pod;
	struct amounts one, peak = { .count = 0 }, sidecars = { .count = 0 };
	*total = (struct amounts){ .count = 0 };
	for (size_t i = 0; i < pod->spec.containers.count; i++) {
		read_container(build, &pod->spec.containers.items[i], &pod->status.containers,
			       &one);
		add(build, total, &one);
	}
	for (size_t i = 0; i < pod->spec.init_containers.count; i++) {
		const struct kobj_container *init = &pod->spec.init_containers.items[i];
		bool is_side = is_sidecar(init);
		read_container(build, init, is_side ? &pod->status.init_containers : NULL, &one);
		if (is_side) {
			add(build, total, &one);
			add(build, &sidecars, &one);
			raise(build, &peak, &sidecars);
		} else {
			add(build, &one, &sidecars);
			raise(build, &peak, &one);
		}
	}
	raise(build, total, &peak);
}

static bool is_pod_level(struct str resource)
{
	return str_eq_c(resource, "cpu") || str_eq_c(resource, "memory") ||
	       str_starts(resource, STR("hugepages-"));
}

static void apply_pod_level(struct build *build, struct amounts *total)
{
	const struct kobj_pod *pod = build->pod;
	struct amounts list;
	if (pod->spec.resources == NULL)
		return;
	read_list(build, &pod->spec.resources->requests, &list);
	apply_actual(build, pod->status.resources, &pod->status.allocated, &list);
	for (size_t i = 0; i < list.count; i++) {
		bool is_asked =
			kobj_pairs_get(&pod->spec.resources->requests, list.items[i].resource)
				.data != NULL;
		if (is_asked && is_pod_level(list.items[i].resource))
			*amount_of(build, total, list.items[i].resource) = list.items[i].amount;
	}
}

static void put_sorted(struct build *build, const struct amounts *total)
{
	struct sched_spec *spec = build->spec;
	spec->amounts = build_alloc(build, total->count, sizeof *spec->amounts);
	for (size_t i = 0; spec->amounts != NULL && i < total->count; i++) {
		if (total->items[i].amount == 0)
			continue;
		size_t k = spec->amount_count++;
		for (;
		     k > 0 && str_cmp(spec->amounts[k - 1].resource, total->items[i].resource) > 0;
		     k--)
			spec->amounts[k] = spec->amounts[k - 1];
		spec->amounts[k] = total->items[i];
	}
}

static void put_gpu_ask(struct build *build, const struct kobj_container *container,
			sched_stage stage)
{
	struct amounts one;
	read_requests(build, &container->resources, &one);
	int64_t count = *amount_of(build, &one, STR(FEED_GPU_RESOURCE));
	if (count > 0)
		build->spec->gpu_asks[build->spec->gpu_ask_count++] =
			(struct sched_gpu_ask){ container->name, stage, count };
}

static void put_gpu_asks(struct build *build, struct amounts *total)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	struct sched_spec *spec = build->spec;
	size_t max = pod->containers.count + pod->init_containers.count;
	spec->gpu_count = *amount_of(build, total, STR(FEED_GPU_RESOURCE));
	if (spec->gpu_count == 0)
		return;
	spec->gpu_asks = build_alloc(build, max, sizeof *spec->gpu_asks);
	if (spec->gpu_asks == NULL)
		return;
	for (size_t i = 0; i < pod->init_containers.count; i++) {
		const struct kobj_container *init = &pod->init_containers.items[i];
		put_gpu_ask(build, init, is_sidecar(init) ? SCHED_SIDECAR : SCHED_INIT);
	}
	for (size_t i = 0; i < pod->containers.count; i++)
		put_gpu_ask(build, &pod->containers.items[i], SCHED_APP);
}

void build_amounts(struct build *build)
{
	struct amounts total, overhead;
	sum_containers(build, &total);
	apply_pod_level(build, &total);
	read_list(build, &build->pod->spec.overhead, &overhead);
	add(build, &total, &overhead);
	put_gpu_asks(build, &total);
	put_sorted(build, &total);
}
