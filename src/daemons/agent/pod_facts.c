// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/pod_facts.h"

#include "base/quantity.h"
#include "daemons/agent/offer.h"
#include "k8s/kobj_tables.h"

#include <stdio.h>

// Plain structures of the part of a pod that counts here; numbers are those of k8s.io/api.
struct ended {
	int64_t finished_s;
};
struct state {
	struct ended *terminated;
};
struct pod_claim_of {
	struct str name;
};
struct status_of {
	struct str name;
	struct state state;
};
typedef KOBJ_LIST_OF(struct status_of) statuses;
struct pod_status {
	struct str phase;
	kobj_conditions conditions;
	statuses containers, init_containers, ephemeral;
	struct pod_claim_of *claim; // that the scheduler made for its resources
};
struct resources {
	struct kobj_pairs limits;
};
struct container {
	struct str name;
	struct resources resources;
};
typedef KOBJ_LIST_OF(struct container) containers;
struct pod_claim {
	struct str name;
};
typedef KOBJ_LIST_OF(struct pod_claim) pod_claims;
struct pod_spec {
	containers containers, init_containers;
	pod_claims claims;
};
struct pod {
	struct kobj_meta meta;
	struct pod_spec spec;
	struct pod_status status;
};

static const struct kobj_field ENDED_ROWS[] = {
	KOBJ_ROW("finishedAt", 6, KOBJ_TIME, struct ended, finished_s),
};
static const struct kobj_table ENDED =
	KOBJ_TABLE_OF("ContainerStateTerminated", struct ended, ENDED_ROWS, true);
static const struct kobj_field STATE_ROWS[] = {
	KOBJ_SUB("terminated", 3, KOBJ_OBJECT, struct state, terminated, &ENDED),
};
static const struct kobj_table STATE =
	KOBJ_TABLE_OF("ContainerState", struct state, STATE_ROWS, true);
static const struct kobj_field STATUS_OF_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct status_of, name),
	KOBJ_SUB("state", 2, KOBJ_PART, struct status_of, state, &STATE),
};
static const struct kobj_table STATUS_OF =
	KOBJ_TABLE_OF("ContainerStatus", struct status_of, STATUS_OF_ROWS, true);
static const struct kobj_field POD_CLAIM_OF_ROWS[] = {
	KOBJ_ROW("resourceClaimName", 2, KOBJ_TEXT, struct pod_claim_of, name),
};
static const struct kobj_table POD_CLAIM_OF = KOBJ_TABLE_OF(
	"PodExtendedResourceClaimStatus", struct pod_claim_of, POD_CLAIM_OF_ROWS, true);
static const struct kobj_field POD_STATUS_ROWS[] = {
	KOBJ_ROW("phase", 1, KOBJ_TEXT, struct pod_status, phase),
	KOBJ_SUB("conditions", 2, KOBJ_OBJECTS, struct pod_status, conditions, &KOBJ_CONDITION),
	KOBJ_SUB("containerStatuses", 8, KOBJ_OBJECTS, struct pod_status, containers, &STATUS_OF),
	KOBJ_SUB("initContainerStatuses", 10, KOBJ_OBJECTS, struct pod_status, init_containers,
		 &STATUS_OF),
	KOBJ_SUB("ephemeralContainerStatuses", 13, KOBJ_OBJECTS, struct pod_status, ephemeral,
		 &STATUS_OF),
	KOBJ_SUB("extendedResourceClaimStatus", 18, KOBJ_OBJECT, struct pod_status, claim,
		 &POD_CLAIM_OF),
};
static const struct kobj_table POD_STATUS =
	KOBJ_TABLE_OF("PodStatus", struct pod_status, POD_STATUS_ROWS, true);
static const struct kobj_field RESOURCES_ROWS[] = {
	KOBJ_ROW("limits", 1, KOBJ_QUANTITIES, struct resources, limits),
};
static const struct kobj_table RESOURCES =
	KOBJ_TABLE_OF("ResourceRequirements", struct resources, RESOURCES_ROWS, true);
static const struct kobj_field CONTAINER_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct container, name),
	KOBJ_SUB("resources", 8, KOBJ_PART, struct container, resources, &RESOURCES),
};
static const struct kobj_table CONTAINER =
	KOBJ_TABLE_OF("Container", struct container, CONTAINER_ROWS, true);
static const struct kobj_field POD_CLAIM_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct pod_claim, name),
};
static const struct kobj_table POD_CLAIM =
	KOBJ_TABLE_OF("PodResourceClaim", struct pod_claim, POD_CLAIM_ROWS, true);
static const struct kobj_field POD_SPEC_ROWS[] = {
	KOBJ_SUB("containers", 2, KOBJ_OBJECTS, struct pod_spec, containers, &CONTAINER),
	KOBJ_SUB("initContainers", 20, KOBJ_OBJECTS, struct pod_spec, init_containers, &CONTAINER),
	KOBJ_SUB("resourceClaims", 39, KOBJ_OBJECTS, struct pod_spec, claims, &POD_CLAIM),
};
static const struct kobj_table POD_SPEC =
	KOBJ_TABLE_OF("PodSpec", struct pod_spec, POD_SPEC_ROWS, true);
static const struct kobj_field POD_ROWS[] = {
	KOBJ_SUB("metadata", 1, KOBJ_PART, struct pod, meta, &KOBJ_META),
	KOBJ_SUB("spec", 2, KOBJ_PART, struct pod, spec, &POD_SPEC),
	KOBJ_SUB("status", 3, KOBJ_PART, struct pod, status, &POD_STATUS),
};
static const struct kobj_table POD = KOBJ_TABLE_OF("Pod", struct pod, POD_ROWS, true);

// The sum over the resource of whole GPUs and what may be shares: the others of its domain, and
// those that are bound late.
static int64_t gpus_of(const struct kobj_pairs *limits, const char *resource)
{
	int64_t sum = 0;
	for (size_t i = 0; i < limits->count; i++) {
		int64_t amount = 0;
		bool is_ours = offer_is_ours(limits->items[i].key, resource) ||
			       share_is_resource(limits->items[i].key);
		if (is_ours && quantity_to_units(limits->items[i].value, &amount) && amount > 0)
			sum += min_i64(amount, UINT32_MAX);
	}
	return sum;
}

static err_status take_containers(const containers *list, bool is_init, const char *resource,
				  struct pod_facts *facts, struct err *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct container *from = &list->items[i];
		int64_t gpus = gpus_of(&from->resources.limits, resource);
		if (gpus <= 0)
			continue;
		if (facts->container_count == POD_CONTAINERS_MAX)
			return err_set(err, ERR_LIMIT, "pod %s has more than %d containers with %s",
				       facts->name, POD_CONTAINERS_MAX, resource);
		struct pod_container *to = &facts->containers[facts->container_count++];
		to->gpus = gpus > UINT32_MAX ? UINT32_MAX : (uint32_t)gpus;
		to->is_init = is_init;
		if (!usage_text(to->name, sizeof to->name, from->name))
			return err_set(err, ERR_INVALID, "pod %s: name of a container is too long",
				       facts->name);
	}
	return ERR_OK;
}

// The last finish so far; true when every one of the list has ended.
static bool take_finishes(const statuses *list, struct pod_facts *facts)
{
	bool all = true;
	for (size_t i = 0; i < list->count; i++) {
		const struct ended *ended = list->items[i].state.terminated;
		all = all && ended != NULL;
		if (ended == NULL)
			continue;
		facts->has_ended = true;
		facts->finished_s = max_i64(facts->finished_s, ended->finished_s);
	}
	return all;
}

static void take_status(const struct pod *pod, struct pod_facts *facts)
{
	const struct pod_status *status = &pod->status;
	facts->is_terminal = str_eq_c(status->phase, "Succeeded") ||
			     str_eq_c(status->phase, "Failed");
	for (size_t i = 0; i < status->conditions.count; i++) {
		const struct kobj_condition *condition = &status->conditions.items[i];
		if (str_eq_c(condition->type, "PodScheduled") &&
		    str_eq_c(condition->status, "True"))
			facts->scheduled_s = condition->changed_s;
	}
	bool all = take_finishes(&status->containers, facts);
	facts->is_all_finished = all && status->containers.count > 0 &&
				 status->containers.count == pod->spec.containers.count;
	(void)take_finishes(&status->init_containers, facts);
	(void)take_finishes(&status->ephemeral, facts);
}

// A tenant labels its own pods as it likes: a request of another namespace is not its.
static struct str request_of(const struct kobj_meta *meta)
{
	struct str request = kobj_pairs_get(&meta->labels, STR("gpuaas.io/request"));
	struct str namespace_ = meta->namespace_;
	bool is_own = request.len > namespace_.len && str_starts(request, namespace_) &&
		      request.data[namespace_.len] == '.';
	return is_own ? request : STR("");
}

static err_status take_pod(const struct pod *pod, const char *resource, struct pod_facts *facts,
			   struct err *err)
{
	const struct kobj_meta *meta = &pod->meta;
	if (meta->uid.len == 0 || meta->name.len == 0)
		return err_set(err, ERR_INVALID, "pod without uid or name");
	if (!usage_text(facts->uid, sizeof facts->uid, meta->uid) ||
	    !usage_text(facts->namespace_, sizeof facts->namespace_, meta->namespace_) ||
	    !usage_text(facts->name, sizeof facts->name, meta->name) ||
	    !usage_text(facts->request, sizeof facts->request, request_of(meta)))
		return err_set(err, ERR_INVALID, "pod with a name or label that is too long");
	facts->deleted_s = meta->deleted_s;
	facts->has_claims = pod->spec.claims.count > 0 || pod->status.claim != NULL;
	facts->plan = kobj_pairs_get(&meta->annotations, STR("gpuaas.io/devices"));
	facts->plan_mac = kobj_pairs_get(&meta->annotations, STR("gpuaas.io/devices-mac"));
	err_status status = take_containers(&pod->spec.init_containers, true, resource, facts, err);
	if (status == ERR_OK)
		status = take_containers(&pod->spec.containers, false, resource, facts, err);
	if (status == ERR_OK)
		take_status(pod, facts);
	return status;
}

err_status pod_facts_read(struct arena *arena, struct str bytes, bool is_protobuf,
			  const char *resource, struct pod_facts *ret, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct pod pod = { 0 };
	struct pod_facts facts = { 0 };
	AUTO(json_decrefp) json_t *value = NULL;
	err_status status = ERR_OK;
	if (is_protobuf) {
		struct str message = { 0 };
		if (!kobj_unwrap(bytes, &message))
			return err_set(err, ERR_PROTOCOL, "pod: broken envelope");
		status = kobj_from_protobuf(arena, &POD, message, NULL, &pod, err);
	} else {
		status = json_parse(bytes, &value, err);
		if (status == ERR_OK)
			status = kobj_from_json(arena, &POD, value, NULL, &pod, err);
	}
	if (status == ERR_OK)
		status = take_pod(&pod, resource, &facts, err);
	if (status != ERR_OK)
		return err_wrap(err, "pod");
	if (!is_protobuf) { // their text dies with the JSON value
		facts.plan = arena_dup(arena, facts.plan);
		facts.plan_mac = arena_dup(arena, facts.plan_mac);
	}
	*ret = facts;
	return ERR_OK;
}
