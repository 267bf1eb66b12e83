// SPDX-License-Identifier: Apache-2.0
// Nodes kept for waiting pods (status.nominatedNodeName), as kube-scheduler keeps them: a pod of
// the same or lower priority must fit beside those that are nominated, the pod itself goes there
// first. Rooms, ports and anti-affinities on the node are kept; other affinities do not see pods
// that are not there yet.
#include "sched/claim_book.h"
#include "sched/claim_use.h"
#include "sched/gang.h"
#include "sched/victims.h"

#include <stdlib.h>

void nominate_set(struct sched *sched, struct pod *pod, struct str node)
{
	if (str_eq(pod->wait->nominated, node))
		return;
	nominate_unlink(sched, pod);
	free((void *)(uintptr_t)pod->wait->nominated.data);
	char *copy = core_alloc(1, node.len);
	if (node.len > 0)
		memcpy(copy, node.data, node.len);
	pod->wait->nominated = (struct str){ copy, node.len };
	if (pod->state == SCHED_STATE_WAITING)
		nominate_link(sched, pod);
}

// A node that is not known yet, or not at this instant, is kept for its name.
void nominate_link(struct sched *sched, struct pod *pod)
{
	if (pod->wait->nominated.len == 0 || link_is_in(&pod->wait->in_nominated))
		return;
	link_add(&core_node_get(sched, pod->wait->nominated)->nominated, &pod->wait->in_nominated);
}

// Others may take the room now.
void nominate_unlink(struct sched *sched, struct pod *pod)
{
	if (!link_is_in(&pod->wait->in_nominated))
		return;
	link_drop(&pod->wait->in_nominated);
	struct node *node = map_find(sched->node_by_name, pod->wait->nominated);
	ASSERT(node != NULL);
	core_touch(sched, node);
	core_node_release(sched, node);
}

static int64_t amount_of(const struct sched_spec *spec, struct str resource)
{
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_eq(spec->amounts[i].resource, resource))
			return spec->amounts[i].amount;
	}
	return 0;
}

struct kept { // on one node, for pods that go before this one
	const struct pod *pods[SCHED_KEPT_MAX];
	size_t count;
};

// Equals wait for those that are nominated, and of these for the ones before them.
static bool goes_before(const struct check *check, const struct pod *kept, const struct node *node)
{
	const struct pod *pod = check->pod;
	if (gang_of(pod) != NULL && gang_of(kept) == gang_of(pod))
		return false; // they are placed together
	bool are_equal = kept->queue == pod->queue && kept->key.priority == pod->key.priority &&
			 str_eq(pod->wait->nominated, node->name);
	return are_equal ? tree_key_cmp(&kept->key, &pod->key) < 0
			 : preempt_goes_before(check->sched, kept, pod);
}

static void find_kept(const struct check *check, const struct node *node, struct kept *ret)
{
	ret->count = 0;
	const struct link *head = &node->nominated;
	for (const struct link *at = head->next; at != head && ret->count < SCHED_KEPT_MAX;
	     at = at->next) {
		const struct pod *pod = POD_OF((uintptr_t)at, in_nominated);
		if (pod != check->pod && goes_before(check, pod, node))
			ret->pods[ret->count++] = pod;
	}
}

static bool has_amounts(const struct check *check, const struct node *node, const struct kept *kept)
{
	const struct sched_spec *spec = check->shape->spec;
	const struct column *pods = &check->sched->columns[DIM_PODS];
	int64_t slots = pods->alloc[node->slot] - pods->used[node->slot];
	if (slots < 1 + (int64_t)kept->count)
		return false;
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (check->shape->dims[i] == DIM_NONE)
			return false;
		const struct column *column = &check->sched->columns[check->shape->dims[i]];
		int64_t left = column->alloc[node->slot] - column->used[node->slot];
		for (size_t k = 0; k < kept->count; k++)
			left -= amount_of(kept->pods[k]->shape->spec, spec->amounts[i].resource);
		if (left < spec->amounts[i].amount)
			return false;
	}
	return true;
}

bool nominate_allows(const struct check *check, const struct node *node)
{
	if (link_is_empty(&node->nominated))
		return true;
	const struct sched_spec *spec = check->shape->spec;
	struct kept kept;
	find_kept(check, node, &kept);
	if (kept.count == 0)
		return true;
	int64_t gpus = spec->gpu_count;
	for (size_t i = 0; i < kept.count; i++) {
		const struct sched_spec *other = kept.pods[i]->shape->spec;
		int64_t claimed = claim_use_need_parts(kept.pods[i]) / GPU_PARTS;
		gpus += spec->gpu_count > 0 ? other->gpu_count + claimed : 0;
		if (filter_ports_clash(spec, other) ||
		    affinity_are_apart(check->sched, kept.pods[i], check->pod, node) ||
		    affinity_are_apart(check->sched, check->pod, kept.pods[i], node))
			return false;
	}
	bool has_devices = gpus == 0 || node->present_count == 0 ||
			   (int64_t)device_usable_count(spec, node) >= gpus;
	const struct claim_fit *claims = affinity_claims(check->affinity);
	bool has_claims = claims == NULL || claim_fit_beside(claims, node, kept.pods, kept.count);
	return has_devices && has_claims && has_amounts(check, node, &kept);
}
