// SPDX-License-Identifier: Apache-2.0
// How a pod says of which gang it is: our annotations, spec.schedulingGroup, or the labels of the
// coscheduling plugin. One way a pod; two of them contradict each other.
#include "feed/spec_parts.h"

#define GANG "gpuaas.io/gang"
#define GROUP GANG "-group"
#define COSCHED_LABEL "scheduling.x-k8s.io/pod-group"
#define COSCHED_OLD_LABEL "pod-group.scheduling.sigs.k8s.io"
#define REPLICATED_JOB "jobset.sigs.k8s.io/replicatedjob-name"

static struct str note(const struct build *build, const char *name)
{
	return kobj_pairs_get(&build->pod->meta.annotations, str_of(name));
}

static struct str label(const struct build *build, const char *name)
{
	return kobj_pairs_get(&build->pod->meta.labels, str_of(name));
}

static void refuse(struct build *build, const char *name, struct str text, const char *wanted)
{
	build_refuse(build, SCHED_CODE_INVALID_ANNOTATION, "%s must be %s, not \"%.*s\"", name,
		     wanted, (int)min_size(text.len, 60), text.data);
}

static int64_t read_number(struct build *build, const char *name, int64_t most, const char *wanted)
{
	struct str text = note(build, name);
	int64_t number;
	if (text.data == NULL)
		return 0;
	if (str_to_i64(text, &number) && number >= 1 && number <= most)
		return number;
	refuse(build, name, text, wanted);
	return 0;
}

static int64_t read_count(struct build *build, const char *name)
{
	return read_number(build, name, SCHED_GANG_MAX, "a number of pods from 1 to 4096");
}

bool build_gang_name_is_good(struct str text)
{
	enum { NAME_MAX_BYTES = 253 };
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
		if (!is_good)
			return false;
	}
	return text.len > 0 && text.len <= NAME_MAX_BYTES;
}

static void read_group(struct build *build, struct sched_gang_in *gang)
{
	struct str group = note(build, GROUP);
	bool is_good = group.data == NULL || build_gang_name_is_good(group);
	gang->group = group.data == NULL ? label(build, REPLICATED_JOB) : group;
	if (!is_good) { // an annotation may be of any length: nothing of it goes on
		gang->group = STR("");
		refuse(build, GROUP, group, "letters, digits, '-', '_' and '.'");
	}
	gang->group_min = read_count(build, GROUP "-min");
	if (gang->group_min > 0 && gang->group.len == 0 && is_good)
		build_refuse(build, SCHED_CODE_INVALID_ANNOTATION, "%s-min needs %s", GROUP, GROUP);
	if (gang->group_min > 0 && gang->min > 0 && gang->group_min > gang->min)
		build_refuse(build, SCHED_CODE_INVALID_ANNOTATION,
			     "%s-min %lld is more than %s-min %lld", GROUP,
			     (long long)gang->group_min, GANG, (long long)gang->min);
}

static void read_ours(struct build *build, struct str name, struct sched_gang_in *gang)
{
	gang->kind = SCHED_GANG_NAMED;
	if (build_gang_name_is_good(name))
		gang->name = name;
	else
		refuse(build, GANG, name,
		       "a name of letters, digits, '-', '_' and '.'; all members are of one "
		       "namespace");
	gang->min = read_count(build, GANG "-min");
	gang->max = read_count(build, GANG "-max");
	gang->expiry_s = read_number(build, GANG "-expiry", FEED_GANG_EXPIRY_MAX_S,
				     "whole seconds from 1 to 30 days");
	gang->topology = build->spec->topology_label;
	if (gang->max > 0 && gang->max < gang->min)
		build_refuse(build, SCHED_CODE_INVALID_ANNOTATION,
			     "%s-max %lld is less than %s-min %lld", GANG, (long long)gang->max,
			     GANG, (long long)gang->min);
	read_group(build, gang);
}

static void refuse_strays(struct build *build)
{
	static const char *const NAMES[] = { GANG "-min", GANG "-max", GANG "-expiry",
					     GANG "-group", GANG "-group-min" };
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		if (note(build, NAMES[i]).data != NULL)
			build_refuse(build, SCHED_CODE_INVALID_ANNOTATION, "%s needs %s", NAMES[i],
				     GANG);
	}
}

// The first form of the plugin had all of it in labels.
static void read_cosched(struct build *build, struct str name, struct sched_gang_in *gang)
{
	struct str least = label(build, COSCHED_OLD_LABEL "/min-available");
	gang->kind = SCHED_GANG_COSCHED;
	gang->name = name;
	if (least.data == NULL)
		return;
	if (!str_to_i64(least, &gang->min) || gang->min < 1 || gang->min > SCHED_GANG_MAX) {
		gang->min = 0;
		refuse(build, COSCHED_OLD_LABEL "/min-available", least,
		       "a number of pods from 1 to 4096");
	}
}

void build_gang(struct build *build)
{
	struct str ours = note(build, GANG), group = build->pod->spec.group.pod_group;
	struct str cosched = label(build, COSCHED_LABEL);
	if (cosched.data == NULL)
		cosched = label(build, COSCHED_OLD_LABEL);
	if (cosched.data == NULL)
		cosched = label(build, COSCHED_OLD_LABEL "/name");
	if ((ours.data != NULL) + (group.len > 0) + (cosched.len > 0) > 1)
		build_refuse(build, SCHED_CODE_INVALID_ANNOTATION,
			     "%s, spec.schedulingGroup and the label %s: only one of them", GANG,
			     COSCHED_LABEL);
	if (ours.data == NULL)
		refuse_strays(build);
	if (ours.data != NULL) {
		read_ours(build, ours, &build->gang);
	} else if (group.len > 0) {
		build->gang = (struct sched_gang_in){ .kind = SCHED_GANG_POD_GROUP, .name = group };
	} else if (cosched.len > 0) {
		read_cosched(build, cosched, &build->gang);
	}
}
