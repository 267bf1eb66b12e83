// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs: what containers ask for as gpuaas.io/gpu-milli and gpuaas.io/gpu-memory, and
// what a plan gives of them.
#include "base/quantity.h"
#include "feed/spec_parts.h"

// Extended resources cannot be requested otherwise than limited; the API server fills in either.
static int64_t units_of(struct build *build, const struct kobj_container *container,
			share_kind kind)
{
	struct str resource = str_of(share_resource(kind));
	const struct kobj_resources *resources = &container->resources;
	struct str text = kobj_pairs_get(&resources->requests, resource);
	int64_t units;
	if (text.data == NULL)
		text = kobj_pairs_get(&resources->limits, resource);
	// What cannot be read has been refused with the amounts.
	if (text.data == NULL || !quantity_to_units(text, &units) || units < 0)
		return 0;
	static const int64_t MOST[SHARE_KINDS] = { SHARE_WHOLE_MILLI, INT32_MAX / SHARE_UNIT_MIB };
	if (units > MOST[kind])
		build_refuse(build, SCHED_CODE_INVALID_QUANTITY,
			     STR_FMT " of %s: a share is of one GPU, at most %lld", STR_ARG(text),
			     share_resource(kind), (long long)MOST[kind]);
	return min_i64(units, MOST[kind]);
}

static struct share share_of_container(struct build *build, const struct kobj_container *container)
{
	struct share sum = { 0 };
	for (int kind = 0; kind < SHARE_KINDS; kind++) {
		int64_t units = units_of(build, container, (share_kind)kind);
		struct share ask = share_ask((share_kind)kind, units);
		share_add(&sum, &ask);
	}
	return sum;
}

static void add(struct build *build, const struct kobj_container *container)
{
	struct sched_spec *spec = build->spec;
	struct share share = share_of_container(build, container);
	if (share.milli == 0 && share.memory_mib == 0)
		return;
	if (spec->shares == NULL)
		spec->shares = build_alloc(build, SCHED_SHARES_MAX, sizeof *spec->shares);
	if (spec->share_count == SCHED_SHARES_MAX)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
			     "more than %d containers with shares of GPUs", SCHED_SHARES_MAX);
	else if (spec->shares != NULL)
		spec->shares[spec->share_count++] =
			(struct sched_share_ask){ container->name, share };
}

void build_shares(struct build *build)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	for (size_t i = 0; i < pod->init_containers.count; i++) {
		const struct kobj_container *init = &pod->init_containers.items[i];
		struct share share = share_of_container(build, init);
		if (str_eq_c(init->restart_policy, "Always"))
			add(build, init);
		else if (share.milli > 0 || share.memory_mib > 0)
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
				     "a share of a GPU in the init container " STR_FMT,
				     STR_ARG(init->name));
	}
	for (size_t i = 0; i < pod->containers.count; i++)
		add(build, &pod->containers.items[i]);
	if (build->spec->share_count > 0 && build->spec->gpu_count > 0)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
			     "whole GPUs and shares of GPUs in one pod");
}

bool feed_plan_holds(struct arena *arena, struct str text, struct sched_hold **ret_holds,
		     size_t *ret_count)
{
	AUTO(json_decrefp) json_t *plan = NULL;
	if (text.len == 0 || json_parse(text, &plan, NULL) != ERR_OK || !json_is_array(plan))
		return false;
	size_t max = json_array_size(plan), count = 0;
	struct sched_hold *holds = ARENA_ARRAY(arena, struct sched_hold, max);
	for (size_t i = 0; holds != NULL && i < max; i++) {
		const json_t *line = json_array_get(plan, i);
		share_kind kind;
		if (!share_kind_of(json_text(line, "resource"), &kind))
			continue;
		struct share share = { json_int(line, "milli", 0),
				       json_int(line, "memory_mib", 0) };
		struct str uuid = arena_dup(arena, json_text(line, "uuid"));
		if (uuid.len == 0 || share.milli < 0 || share.milli > SHARE_WHOLE_MILLI ||
		    share.memory_mib < 0 || share.memory_mib > INT32_MAX)
			return false;
		holds[count++] = (struct sched_hold){ uuid, share };
	}
	if (holds == NULL)
		return false;
	*ret_holds = holds;
	*ret_count = count;
	return true;
}
