// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_group.h"

#include "k8s/kobj_tables.h"

// As with nodes, an unknown field here forbids nothing: what pods ask for is in the pods.
static const struct kobj_field GANG_ROWS[] = {
	KOBJ_ROW("minCount", 0, KOBJ_INT, struct kobj_pod_group, min_count),
};
static const struct kobj_table GANG =
	KOBJ_TABLE_OF("GangSchedulingPolicy", struct kobj_pod_group, GANG_ROWS, true);

static const struct kobj_field POLICY_ROWS[] = {
	{ "gang", 0, KOBJ_PART, 0, &GANG },
};
static const struct kobj_table POLICY =
	KOBJ_TABLE_OF("PodGroupSchedulingPolicy", struct kobj_pod_group, POLICY_ROWS, true);

static const struct kobj_field KEY_ROWS[] = {
	KOBJ_ROW("key", 0, KOBJ_TEXT, struct kobj_topology_key, key),
};
static const struct kobj_table KEY =
	KOBJ_TABLE_OF("TopologyConstraint", struct kobj_topology_key, KEY_ROWS, true);

static const struct kobj_field CONSTRAINT_ROWS[] = {
	KOBJ_SUB("topology", 0, KOBJ_OBJECTS, struct kobj_pod_group, topology, &KEY),
};
static const struct kobj_table CONSTRAINTS = KOBJ_TABLE_OF(
	"PodGroupSchedulingConstraints", struct kobj_pod_group, CONSTRAINT_ROWS, true);

static const struct kobj_field POD_GROUP_SPEC_ROWS[] = {
	{ "schedulingPolicy", 0, KOBJ_PART, 0, &POLICY },
	{ "schedulingConstraints", 0, KOBJ_PART, 0, &CONSTRAINTS },
};
static const struct kobj_table POD_GROUP_SPEC =
	KOBJ_TABLE_OF("PodGroupSpec", struct kobj_pod_group, POD_GROUP_SPEC_ROWS, true);

static const struct kobj_field POD_GROUP_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_pod_group, meta, &KOBJ_META),
	{ "spec", 0, KOBJ_PART, 0, &POD_GROUP_SPEC },
};
const struct kobj_table KOBJ_POD_GROUP =
	KOBJ_TABLE_OF("PodGroup", struct kobj_pod_group, POD_GROUP_ROWS, true);

static const struct kobj_field COSCHED_SPEC_ROWS[] = {
	KOBJ_ROW("minMember", 0, KOBJ_INT, struct kobj_cosched_group, min_member),
	KOBJ_ROW("scheduleTimeoutSeconds", 0, KOBJ_INT, struct kobj_cosched_group, timeout_s),
};
static const struct kobj_table COSCHED_SPEC =
	KOBJ_TABLE_OF("PodGroupSpec", struct kobj_cosched_group, COSCHED_SPEC_ROWS, true);

static const struct kobj_field COSCHED_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_cosched_group, meta, &KOBJ_META),
	{ "spec", 0, KOBJ_PART, 0, &COSCHED_SPEC },
};
const struct kobj_table KOBJ_COSCHED_GROUP =
	KOBJ_TABLE_OF("PodGroup", struct kobj_cosched_group, COSCHED_ROWS, true);

static const struct kobj_field TEMPLATE_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_job, pods, &KOBJ_META),
};
static const struct kobj_table TEMPLATE =
	KOBJ_TABLE_OF("PodTemplateSpec", struct kobj_job, TEMPLATE_ROWS, true);

static const struct kobj_field JOB_SPEC_ROWS[] = {
	KOBJ_ROW("parallelism", 0, KOBJ_INT, struct kobj_job, parallelism),
	KOBJ_ROW("completions", 0, KOBJ_INT, struct kobj_job, completions),
	KOBJ_ROW("suspend", 0, KOBJ_BOOL, struct kobj_job, is_suspended),
	{ "template", 0, KOBJ_PART, 0, &TEMPLATE },
};
static const struct kobj_table JOB_SPEC =
	KOBJ_TABLE_OF("JobSpec", struct kobj_job, JOB_SPEC_ROWS, true);

static const struct kobj_field JOB_STATUS_ROWS[] = {
	KOBJ_ROW("succeeded", 0, KOBJ_INT, struct kobj_job, succeeded),
	KOBJ_SUB("conditions", 0, KOBJ_OBJECTS, struct kobj_job, conditions, &KOBJ_CONDITION),
};
static const struct kobj_table JOB_STATUS =
	KOBJ_TABLE_OF("JobStatus", struct kobj_job, JOB_STATUS_ROWS, true);

static const struct kobj_field JOB_ROWS[] = {
	KOBJ_SUB("metadata", 0, KOBJ_PART, struct kobj_job, meta, &KOBJ_META),
	{ "spec", 0, KOBJ_PART, 0, &JOB_SPEC },
	{ "status", 0, KOBJ_PART, 0, &JOB_STATUS },
};
const struct kobj_table KOBJ_JOB = KOBJ_TABLE_OF("Job", struct kobj_job, JOB_ROWS, true);
