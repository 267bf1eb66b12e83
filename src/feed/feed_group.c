// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_group.h"

#include "feed/spec_parts.h"

#define GLOBAL_REPLICAS "jobset.sigs.k8s.io/global-replicas"

static bool make_key(struct arena *arena, const struct kobj_meta *meta, const char *kind,
		     struct sched_gang_part *part)
{
	char *text = arena_printf(arena, "%s/" STR_FMT "/" STR_FMT, kind, STR_ARG(meta->namespace_),
				  STR_ARG(meta->name));
	*part = (struct sched_gang_part){ .namespace_ = meta->namespace_ };
	if (text == NULL)
		return false;
	part->key = str_of(text);
	return true;
}

// Amounts of a gang beyond all bounds are cut, never added up past them.
static int64_t bounded(int64_t count) { return max_i64(min_i64(count, SCHED_GANG_MAX + 1), 1); }

static bool read_pod_group(struct arena *arena, const void *object, struct sched_gang_part *ret)
{
	const struct kobj_pod_group *group = object;
	if (!make_key(arena, &group->meta, "pg", ret))
		return false;
	ret->kind = SCHED_GANG_POD_GROUP;
	ret->name = group->meta.name;
	ret->min = bounded(group->min_count); // of the basic policy each pod starts for itself
	if (group->topology.count > 0)
		ret->topology = group->topology.items[0].key;
	return true;
}

static bool read_cosched(struct arena *arena, const void *object, struct sched_gang_part *ret)
{
	const struct kobj_cosched_group *group = object;
	if (!make_key(arena, &group->meta, "cosched", ret))
		return false;
	ret->kind = SCHED_GANG_COSCHED;
	ret->name = group->meta.name;
	ret->min = bounded(group->min_member);
	ret->expiry_s = max_i64(min_i64(group->timeout_s, FEED_GANG_EXPIRY_MAX_S), 0);
	return true;
}

static bool is_over(const struct kobj_job *job)
{
	for (size_t i = 0; i < job->conditions.count; i++) {
		const struct kobj_condition *condition = &job->conditions.items[i];
		bool is_end = str_eq_c(condition->type, "Complete") ||
			      str_eq_c(condition->type, "Failed");
		if (is_end && str_eq_c(condition->status, "True"))
			return true;
	}
	return false;
}

// A Job whose pods are marked as members. Jobs of one JobSet add up, and it says how many it has.
static bool read_job(struct arena *arena, const void *object, struct sched_gang_part *ret)
{
	const struct kobj_job *job = object;
	int64_t count = job->parallelism;
	if (!make_key(arena, &job->meta, "job", ret))
		return false;
	if (job->is_suspended || is_over(job) || count < 1)
		return true;
	ret->name = kobj_pairs_get(&job->pods.annotations, STR("gpuaas.io/gang"));
	if (!build_gang_name_is_good(ret->name))
		ret->name = STR(""); // its pods are refused for it
	if (job->completions > 0)    // those that have succeeded are not made again
		count = min_i64(count, job->completions - max_i64(job->succeeded, 0));
	ret->kind = SCHED_GANG_NAMED;
	ret->min = bounded(count);
	struct str replicas = kobj_pairs_get(&job->meta.annotations, STR(GLOBAL_REPLICAS));
	if (replicas.data == NULL)
		replicas = kobj_pairs_get(&job->meta.labels, STR(GLOBAL_REPLICAS));
	if (replicas.data == NULL || !str_to_i64(replicas, &ret->expected))
		ret->expected = 0;
	return true;
}

#define POD_GROUPS(version)                                                                        \
	{                                                                                          \
		"PodGroup", "scheduling.k8s.io/" version,                                          \
			"/apis/scheduling.k8s.io/" version "/podgroups", &KOBJ_POD_GROUP,          \
			read_pod_group                                                             \
	}

const struct feed_group FEED_GROUPS[FEED_GROUPS_COUNT] = {
	{ "Job", "batch/v1", "/apis/batch/v1/jobs", &KOBJ_JOB, read_job },
	{ "PodGroup", "scheduling.x-k8s.io/v1alpha1",
	  "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", &KOBJ_COSCHED_GROUP, read_cosched },
	POD_GROUPS("v1alpha2"), // Kubernetes 1.36, behind the gate GenericWorkload
	POD_GROUPS("v1alpha3"), // 1.37
	POD_GROUPS("v1beta1"),
};

const struct feed_group *feed_group_find(struct str api_version, struct str kind)
{
	for (size_t i = 0; i < FEED_GROUPS_COUNT; i++) {
		if (str_eq_c(kind, FEED_GROUPS[i].kind) &&
		    str_eq_c(api_version, FEED_GROUPS[i].api_version))
			return &FEED_GROUPS[i];
	}
	return NULL;
}
