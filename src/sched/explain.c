// SPDX-License-Identifier: Apache-2.0
// Texts of facts, counts, and the ledger's check of itself.
#include "sched/gang.h"
#include "sched/hold.h"
#include "sched/queueing.h"
#include "sched/window_book.h"

static const struct {
	const char *name, *next;
	bool is_pod;
} TABLE[SCHED_CODES] = {
#define POD true
#define NODE false
#define X(name, text, scope, says, next) [SCHED_CODE_##name] = { text, next, scope },
	SCHED_REASONS(X)
#undef X
#undef POD
#undef NODE
};

const char *sched_code_name(sched_code code) { return TABLE[code].name; }
const char *sched_code_next(sched_code code) { return TABLE[code].next; }
bool sched_code_is_pod(sched_code code) { return TABLE[code].is_pod; }

static struct str amount_text(struct arena *arena, struct str resource, int64_t amount)
{
	enum { MI = 1024 * 1024 };
	char *text;
	if (str_eq_c(resource, "cpu"))
		text = arena_printf(arena, "%lldm cpu", (long long)amount);
	else if (str_eq_c(resource, "memory") || str_eq_c(resource, "ephemeral-storage"))
		text = arena_printf(arena, "%lldMi " STR_FMT, (long long)(amount / MI),
				    STR_ARG(resource));
	else
		text = arena_printf(arena, "%lld " STR_FMT, (long long)amount, STR_ARG(resource));
	return str_of(text);
}

static struct str version_text(struct arena *arena, int64_t number)
{
	if (number == 0)
		return STR("unknown");
	return str_of(arena_printf(arena, "%lld.%lld.%lld",
				   (long long)(number / SCHED_PARTS_MAX / SCHED_PARTS_MAX),
				   (long long)(number / SCHED_PARTS_MAX % SCHED_PARTS_MAX),
				   (long long)(number % SCHED_PARTS_MAX)));
}

static struct str seconds_text(struct arena *arena, int64_t number)
{
	if (number < 0) // a pod that does not say how long it runs, a start that nobody can tell
		return STR("an unknown time");
	return str_of(arena_printf(arena, "%lld s", (long long)number));
}

static struct str age_text(struct arena *arena, int64_t age_ms)
{
	if (age_ms < 0)
		return STR("no load");
	return str_of(arena_printf(arena, "a load %lld.%03lld s old", (long long)(age_ms / 1000),
				   (long long)(age_ms % 1000)));
}

static struct str number_text(const struct sched_spec *spec, const struct sched_fact *fact,
			      int64_t number, struct arena *arena)
{
	switch ((int)fact->code) {
	case SCHED_CODE_RESOURCE_SHORT:
	case SCHED_CODE_RESOURCE_TOO_LARGE:
	case SCHED_CODE_SLICE_RESERVED:
	case SCHED_CODE_PREEMPTION_SHORT:
		return amount_text(arena, spec->amounts[fact->detail].resource, number);
	case SCHED_CODE_GPU_MEMORY:
		return str_of(arena_printf(arena, "%lld MiB a GPU", (long long)number));
	case SCHED_CODE_GPU_COMPUTE:
	case SCHED_CODE_DRIVER_VERSION:
	case SCHED_CODE_CUDA_VERSION: return version_text(arena, number);
	case SCHED_CODE_GPU_GROUP:
	case SCHED_CODE_GPU_HEALTH:
	case SCHED_CODE_DEVICE_SHORT:
		return str_of(arena_printf(arena, "%lld GPUs", (long long)number));
	case SCHED_CODE_SHARE_SHORT:
		return str_of(arena_printf(arena, "%lld %s of one GPU", (long long)number,
					   fact->detail == 0 ? "milli" : "MiB"));
	case SCHED_CODE_LOAD_STALE: return age_text(arena, number);
	case SCHED_CODE_DEADLINE_LOST:
	case SCHED_CODE_RESERVED: return seconds_text(arena, number);
	case SCHED_CODE_TOO_MANY_PODS:
		return str_of(arena_printf(arena, "%lld pods", (long long)number));
	default: // the other codes have no numbers
		return STR("");
	}
}

struct sched_reason sched_fact_text(const struct sched *sched, struct str namespace_,
				    struct str name, const struct sched_fact *fact,
				    struct arena *arena)
{
	struct sched_reason reason = { .code = sched_code_name(fact->code),
				       .next = sched_code_next(fact->code),
				       .need = STR(""),
				       .have = STR(""),
				       .nodes = fact->nodes };
	const struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL)
		return reason;
	if (queueing_fact_text(pod, fact, arena, &reason) ||
	    windows_fact_text(sched, fact, arena, &reason))
		return reason;
	const struct sched_spec *spec = pod->shape->spec;
	if (fact->code == SCHED_CODE_PREEMPTING) {
		reason.need =
			str_of(arena_printf(arena, "%lld pods on " STR_FMT, (long long)fact->need,
					    STR_ARG(pod->wait->nominated)));
		return reason;
	}
	if (fact->code <= SCHED_CODE_INVALID_OBJECT && fact->detail < spec->refusal_count) {
		reason.need = arena_dup(arena, spec->refusals[fact->detail].detail);
		return reason;
	}
	if (gang_fact_text(pod, fact, arena, &reason))
		return reason;
	bool is_claim =
		fact->code == SCHED_CODE_CLAIM_MISSING || fact->code == SCHED_CODE_CLAIM_UNUSABLE ||
		fact->code == SCHED_CODE_CLAIM_UNBOUND || fact->code == SCHED_CODE_VOLUME_IN_USE;
	if (is_claim && fact->detail < spec->claim_count) {
		reason.need = arena_dup(arena, spec->claims[fact->detail].name);
		return reason;
	}
	bool is_of_devices = fact->code == SCHED_CODE_UNSUPPORTED_CLAIM ||
			     fact->code == SCHED_CODE_DEVICE_CLAIM_MISSING;
	if (is_of_devices && fact->detail < spec->device_claim_count) {
		reason.need = arena_dup(arena, spec->device_claims[fact->detail]);
		return reason;
	}
	bool is_amount = fact->code == SCHED_CODE_RESOURCE_SHORT ||
			 fact->code == SCHED_CODE_RESOURCE_TOO_LARGE ||
			 fact->code == SCHED_CODE_PREEMPTION_SHORT;
	if (is_amount && fact->detail >= spec->amount_count)
		return reason;
	reason.need = number_text(spec, fact, fact->need, arena);
	reason.have = number_text(spec, fact, fact->have, arena);
	return reason;
}

void sched_reason_put(const struct sched_reason *reason, struct buf *out)
{
	buf_printf(out, "{\"code\":\"%s\",\"need\":", reason->code);
	buf_put_json(out, reason->need);
	buf_put_c(out, ",\"have\":");
	buf_put_json(out, reason->have);
	buf_printf(out, ",\"nodes\":%u,\"next\":", reason->nodes);
	buf_put_json(out, str_of(reason->next));
	buf_put_byte(out, '}');
}

struct sched_counts sched_counts_get(const struct sched *sched)
{
	struct sched_counts counts = { .nodes = map_count(sched->node_by_name),
				       .gang_held = sched->gangs->held_count,
				       .shapes = map_count(sched->shape_by_key),
				       .gated = sched->state_counts[SCHED_STATE_GATED],
				       .refused = sched->state_counts[SCHED_STATE_REFUSED],
				       .waiting = sched->state_counts[SCHED_STATE_WAITING],
				       .assumed = sched->state_counts[SCHED_STATE_ASSUMED],
				       .bound = sched->state_counts[SCHED_STATE_BOUND] };
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sched->shape_by_key, &i, &key, &value);) {
		const struct shape *shape = value;
		for (size_t k = 0; k < shape->facts.count; k++)
			counts.waiting_by_code[shape->facts.items[k].code] +=
				tree_count(&shape->waiting);
	}
	gang_count_codes(sched, counts.waiting_by_code);
	return counts;
}

static const char *check_columns(const struct sched *sched, const struct node *node)
{
	int64_t sums[SCHED_RESOURCES_MAX] = { 0 };
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		const struct sched_spec *spec = pod->shape->spec;
		if (pod->node != node)
			return "a pod is listed on a node that it is not on";
		sums[DIM_PODS]++;
		for (size_t i = 0; i < spec->amount_count; i++) {
			uint32_t dim = core_dim_find(sched, spec->amounts[i].resource);
			if (dim != DIM_NONE)
				sums[dim] += spec->amounts[i].amount;
		}
	}
	for (uint32_t dim = 0; dim < sched->column_count; dim++) {
		if (sums[dim] != sched->columns[dim].used[node->slot])
			return "a node's used amounts are not the sum of its pods";
	}
	return NULL;
}

static const char *check_devices(const struct node *node)
{
	for (size_t i = 0; i < node->device_count; i++) {
		const struct pod *holder = node->devices[i].holder;
		if (holder != NULL && holder->node != node)
			return "a device is held by a pod of another node";
	}
	return NULL;
}

static const char *check_pod(const struct pod *pod)
{
	bool is_on_node = pod->state == SCHED_STATE_ASSUMED || pod->state == SCHED_STATE_BOUND;
	if (is_on_node != (pod->node != NULL))
		return "a pod's state and its node disagree";
	if (pod->wait->pod != (pod->state == SCHED_STATE_BOUND ? NULL : pod))
		return "a pod's state and what it needs to wait disagree";
	if (tree_has(&pod->wait->in_queue) != (pod->state == SCHED_STATE_WAITING))
		return "a pod's state and its place in the queue disagree";
	bool is_in_tree = pod->place == PLACE_SHAPE || pod->place == PLACE_GANG;
	if (is_in_tree != tree_has(&pod->wait->in_shape))
		return "a pod's place and its shape disagree";
	bool is_tried = tree_has(&pod->shape->active) || link_is_in(&pod->shape->in_parked);
	if (pod->place == PLACE_SHAPE && !is_tried)
		return "a waiting pod's shape is neither active nor parked";
	return NULL;
}

const char *sched_check(const struct sched *sched)
{
	const char *broken = NULL;
	for (uint32_t slot = 0; slot < sched->slot_count && broken == NULL; slot++) {
		if (sched->nodes[slot] == NULL)
			continue;
		broken = check_columns(sched, sched->nodes[slot]);
		if (broken == NULL)
			broken = check_devices(sched->nodes[slot]);
		if (broken == NULL)
			broken = hold_check(sched->nodes[slot]);
	}
	struct str key;
	void *value;
	for (size_t i = 0; broken == NULL && map_next(sched->pod_by_uid, &i, &key, &value);)
		broken = check_pod(value);
	if (broken == NULL)
		broken = gang_check(sched);
	if (broken == NULL)
		broken = queueing_check(sched);
	if (broken == NULL)
		broken = windows_check(sched);
	return broken == NULL ? reserve_check(sched) : broken;
}
