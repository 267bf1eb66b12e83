// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_tables.h"

static const struct kobj_field META_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_meta, name),
	KOBJ_ROW("namespace", 3, KOBJ_TEXT, struct kobj_meta, namespace_),
	KOBJ_ROW("uid", 5, KOBJ_TEXT, struct kobj_meta, uid),
	KOBJ_ROW("resourceVersion", 6, KOBJ_TEXT, struct kobj_meta, resource_version),
	KOBJ_ROW("creationTimestamp", 8, KOBJ_TIME, struct kobj_meta, created_s),
	KOBJ_ROW("deletionTimestamp", 9, KOBJ_TIME, struct kobj_meta, deleted_s),
	KOBJ_ROW("labels", 11, KOBJ_PAIRS, struct kobj_meta, labels),
	KOBJ_ROW("annotations", 12, KOBJ_PAIRS, struct kobj_meta, annotations),
};
const struct kobj_table KOBJ_META = KOBJ_TABLE_OF("ObjectMeta", struct kobj_meta, META_ROWS, true);

static const struct kobj_field OWNER_ROWS[] = {
	KOBJ_ROW("uid", 4, KOBJ_TEXT, struct kobj_owner, uid),
	KOBJ_ROW("controller", 6, KOBJ_BOOL, struct kobj_owner, is_controller),
};
const struct kobj_table KOBJ_OWNER =
	KOBJ_TABLE_OF("OwnerReference", struct kobj_owner, OWNER_ROWS, true);

static const struct kobj_field CONDITION_ROWS[] = {
	KOBJ_ROW("type", 1, KOBJ_TEXT, struct kobj_condition, type),
	KOBJ_ROW("status", 2, KOBJ_TEXT, struct kobj_condition, status),
	KOBJ_ROW("lastTransitionTime", 4, KOBJ_TIME, struct kobj_condition, changed_s),
	KOBJ_ROW("reason", 5, KOBJ_TEXT, struct kobj_condition, reason),
	KOBJ_ROW("message", 6, KOBJ_TEXT, struct kobj_condition, message),
};
const struct kobj_table KOBJ_CONDITION =
	KOBJ_TABLE_OF("condition", struct kobj_condition, CONDITION_ROWS, true);

static const struct kobj_field PORT_ROWS[] = {
	KOBJ_SKIP("name", 1),
	KOBJ_ROW("hostPort", 2, KOBJ_INT, struct kobj_port, host_port),
	KOBJ_SKIP("containerPort", 3),
	KOBJ_ROW("protocol", 4, KOBJ_TEXT, struct kobj_port, protocol),
	KOBJ_ROW("hostIP", 5, KOBJ_TEXT, struct kobj_port, host_ip),
};
static const struct kobj_table PORT =
	KOBJ_TABLE_OF("ContainerPort", struct kobj_port, PORT_ROWS, false);

static const struct kobj_field RESOURCES_ROWS[] = {
	KOBJ_ROW("limits", 1, KOBJ_QUANTITIES, struct kobj_resources, limits),
	KOBJ_ROW("requests", 2, KOBJ_QUANTITIES, struct kobj_resources, requests),
	KOBJ_SKIP("claims", 3), // the pod names them all
};
static const struct kobj_table RESOURCES =
	KOBJ_TABLE_OF("ResourceRequirements", struct kobj_resources, RESOURCES_ROWS, false);

static const struct kobj_field RESTART_RULE_ROWS[] = {
	KOBJ_ROW("action", 1, KOBJ_TEXT, struct kobj_restart_rule, action),
	KOBJ_SKIP("exitCodes", 2),
};
static const struct kobj_table RESTART_RULE =
	KOBJ_TABLE_OF("ContainerRestartRule", struct kobj_restart_rule, RESTART_RULE_ROWS, false);

// What a container runs and how it is probed decides nothing about where.
static const struct kobj_field CONTAINER_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_container, name),
	KOBJ_ROW("image", 2, KOBJ_TEXT, struct kobj_container, image),
	KOBJ_SKIP("command", 3),
	KOBJ_SKIP("args", 4),
	KOBJ_SKIP("workingDir", 5),
	KOBJ_SUB("ports", 6, KOBJ_OBJECTS, struct kobj_container, ports, &PORT),
	KOBJ_SKIP("env", 7),
	KOBJ_SUB("resources", 8, KOBJ_PART, struct kobj_container, resources, &RESOURCES),
	KOBJ_SKIP("volumeMounts", 9),
	KOBJ_SKIP("livenessProbe", 10),
	KOBJ_SKIP("readinessProbe", 11),
	KOBJ_SKIP("lifecycle", 12),
	KOBJ_SKIP("terminationMessagePath", 13),
	KOBJ_SKIP("imagePullPolicy", 14),
	KOBJ_SKIP("securityContext", 15),
	KOBJ_SKIP("stdin", 16),
	KOBJ_SKIP("stdinOnce", 17),
	KOBJ_SKIP("tty", 18),
	KOBJ_SKIP("envFrom", 19),
	KOBJ_SKIP("terminationMessagePolicy", 20),
	KOBJ_SKIP("volumeDevices", 21),
	KOBJ_SKIP("startupProbe", 22),
	KOBJ_SKIP("resizePolicy", 23),
	KOBJ_ROW("restartPolicy", 24, KOBJ_TEXT, struct kobj_container, restart_policy),
	KOBJ_SUB("restartPolicyRules", 25, KOBJ_OBJECTS, struct kobj_container, restart_rules,
		 &RESTART_RULE),
};
static const struct kobj_table CONTAINER =
	KOBJ_TABLE_OF("Container", struct kobj_container, CONTAINER_ROWS, false);

static const struct kobj_field TOLERATION_ROWS[] = {
	KOBJ_ROW("key", 1, KOBJ_TEXT, struct kobj_toleration, key),
	KOBJ_ROW("operator", 2, KOBJ_TEXT, struct kobj_toleration, op),
	KOBJ_ROW("value", 3, KOBJ_TEXT, struct kobj_toleration, value),
	KOBJ_ROW("effect", 4, KOBJ_TEXT, struct kobj_toleration, effect),
	KOBJ_SKIP("tolerationSeconds", 5),
};
static const struct kobj_table TOLERATION =
	KOBJ_TABLE_OF("Toleration", struct kobj_toleration, TOLERATION_ROWS, false);

static const struct kobj_field SPREAD_ROWS[] = {
	KOBJ_ROW("maxSkew", 1, KOBJ_INT, struct kobj_spread, max_skew),
	KOBJ_ROW("topologyKey", 2, KOBJ_TEXT, struct kobj_spread, topology_key),
	KOBJ_ROW("whenUnsatisfiable", 3, KOBJ_TEXT, struct kobj_spread, when_unsatisfiable),
	KOBJ_SUB("labelSelector", 4, KOBJ_OBJECT, struct kobj_spread, selector,
		 &KOBJ_LABEL_SELECTOR),
	KOBJ_ROW("minDomains", 5, KOBJ_INT, struct kobj_spread, min_domains),
	KOBJ_ROW("nodeAffinityPolicy", 6, KOBJ_TEXT, struct kobj_spread, node_affinity_policy),
	KOBJ_ROW("nodeTaintsPolicy", 7, KOBJ_TEXT, struct kobj_spread, node_taints_policy),
	KOBJ_ROW("matchLabelKeys", 8, KOBJ_TEXTS, struct kobj_spread, match_label_keys),
};
static const struct kobj_table SPREAD =
	KOBJ_TABLE_OF("TopologySpreadConstraint", struct kobj_spread, SPREAD_ROWS, false);

static const struct kobj_field GATE_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_gate, name),
};
static const struct kobj_table GATE =
	KOBJ_TABLE_OF("PodSchedulingGate", struct kobj_gate, GATE_ROWS, false);

// Number 42 was workloadRef in 1.35 and is gone; a server that sends it gets UnknownField.
static const struct kobj_field GROUP_ROWS[] = {
	KOBJ_ROW("podGroupName", 1, KOBJ_TEXT, struct kobj_scheduling_group, pod_group),
};
static const struct kobj_table GROUP =
	KOBJ_TABLE_OF("PodSchedulingGroup", struct kobj_scheduling_group, GROUP_ROWS, false);

static const struct kobj_field CLAIM_REF_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_claim_ref, name),
	KOBJ_ROW("resourceClaimName", 3, KOBJ_TEXT, struct kobj_claim_ref, claim),
	KOBJ_SKIP("resourceClaimTemplateName", 4), // the status names what was made from it
};
static const struct kobj_table CLAIM_REF =
	KOBJ_TABLE_OF("PodResourceClaim", struct kobj_claim_ref, CLAIM_REF_ROWS, false);

static const struct kobj_field SPEC_ROWS[] = {
	KOBJ_SUB("volumes", 1, KOBJ_OBJECTS, struct kobj_pod_spec, volumes, &KOBJ_VOLUME),
	KOBJ_SUB("containers", 2, KOBJ_OBJECTS, struct kobj_pod_spec, containers, &CONTAINER),
	KOBJ_SKIP("restartPolicy", 3),
	KOBJ_ROW("terminationGracePeriodSeconds", 4, KOBJ_INT, struct kobj_pod_spec, grace_s),
	KOBJ_ROW("activeDeadlineSeconds", 5, KOBJ_INT, struct kobj_pod_spec, max_run_s),
	KOBJ_SKIP("dnsPolicy", 6),
	KOBJ_ROW("nodeSelector", 7, KOBJ_PAIRS, struct kobj_pod_spec, node_selector),
	KOBJ_SKIP("serviceAccountName", 8),
	KOBJ_SKIP("serviceAccount", 9),
	KOBJ_ROW("nodeName", 10, KOBJ_TEXT, struct kobj_pod_spec, node_name),
	KOBJ_ROW("hostNetwork", 11, KOBJ_BOOL, struct kobj_pod_spec, host_network),
	KOBJ_SKIP("hostPID", 12),
	KOBJ_SKIP("hostIPC", 13),
	KOBJ_SKIP("securityContext", 14),
	KOBJ_SKIP("imagePullSecrets", 15),
	KOBJ_SKIP("hostname", 16),
	KOBJ_SKIP("subdomain", 17),
	KOBJ_SUB("affinity", 18, KOBJ_OBJECT, struct kobj_pod_spec, affinity, &KOBJ_AFFINITY),
	KOBJ_ROW("schedulerName", 19, KOBJ_TEXT, struct kobj_pod_spec, scheduler_name),
	KOBJ_SUB("initContainers", 20, KOBJ_OBJECTS, struct kobj_pod_spec, init_containers,
		 &CONTAINER),
	KOBJ_SKIP("automountServiceAccountToken", 21),
	KOBJ_SUB("tolerations", 22, KOBJ_OBJECTS, struct kobj_pod_spec, tolerations, &TOLERATION),
	KOBJ_SKIP("hostAliases", 23),
	KOBJ_ROW("priorityClassName", 24, KOBJ_TEXT, struct kobj_pod_spec, priority_class_name),
	KOBJ_ROW("priority", 25, KOBJ_INT, struct kobj_pod_spec, priority),
	KOBJ_SKIP("dnsConfig", 26),
	KOBJ_SKIP("shareProcessNamespace", 27),
	KOBJ_SKIP("readinessGates", 28),
	KOBJ_SKIP("runtimeClassName", 29), // admission has turned it into selector and overhead
	KOBJ_SKIP("enableServiceLinks", 30),
	KOBJ_ROW("preemptionPolicy", 31, KOBJ_TEXT, struct kobj_pod_spec, preemption_policy),
	KOBJ_ROW("overhead", 32, KOBJ_QUANTITIES, struct kobj_pod_spec, overhead),
	KOBJ_SUB("topologySpreadConstraints", 33, KOBJ_OBJECTS, struct kobj_pod_spec, spreads,
		 &SPREAD),
	KOBJ_SKIP("ephemeralContainers", 34),
	KOBJ_SKIP("setHostnameAsFQDN", 35),
	KOBJ_SKIP("os", 36), // the kubelet's check; kube-scheduler does not look at it either
	KOBJ_ROW("hostUsers", 37, KOBJ_TRISTATE, struct kobj_pod_spec, host_users),
	KOBJ_SUB("schedulingGates", 38, KOBJ_OBJECTS, struct kobj_pod_spec, gates, &GATE),
	KOBJ_SUB("resourceClaims", 39, KOBJ_OBJECTS, struct kobj_pod_spec, claims, &CLAIM_REF),
	KOBJ_SUB("resources", 40, KOBJ_OBJECT, struct kobj_pod_spec, resources, &RESOURCES),
	KOBJ_SKIP("hostnameOverride", 41),
	KOBJ_SUB("schedulingGroup", 43, KOBJ_PART, struct kobj_pod_spec, group, &GROUP),
};
static const struct kobj_table SPEC =
	KOBJ_TABLE_OF("PodSpec", struct kobj_pod_spec, SPEC_ROWS, false);

static const struct kobj_field CONTAINER_STATUS_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_container_status, name),
	KOBJ_ROW("allocatedResources", 10, KOBJ_QUANTITIES, struct kobj_container_status,
		 allocated),
	KOBJ_SUB("resources", 11, KOBJ_OBJECT, struct kobj_container_status, resources, &RESOURCES),
};
static const struct kobj_table CONTAINER_STATUS =
	KOBJ_TABLE_OF("ContainerStatus", struct kobj_container_status, CONTAINER_STATUS_ROWS, true);

static const struct kobj_field CLAIM_STATUS_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_claim_ref, name),
	KOBJ_ROW("resourceClaimName", 2, KOBJ_TEXT, struct kobj_claim_ref, claim),
};
static const struct kobj_table CLAIM_STATUS =
	KOBJ_TABLE_OF("PodResourceClaimStatus", struct kobj_claim_ref, CLAIM_STATUS_ROWS, true);

static const struct kobj_field STATUS_ROWS[] = {
	KOBJ_ROW("phase", 1, KOBJ_TEXT, struct kobj_pod_status, phase),
	KOBJ_SUB("conditions", 2, KOBJ_OBJECTS, struct kobj_pod_status, conditions,
		 &KOBJ_CONDITION),
	KOBJ_ROW("podIP", 6, KOBJ_TEXT, struct kobj_pod_status, ip),
	KOBJ_SUB("containerStatuses", 8, KOBJ_OBJECTS, struct kobj_pod_status, containers,
		 &CONTAINER_STATUS),
	KOBJ_SUB("initContainerStatuses", 10, KOBJ_OBJECTS, struct kobj_pod_status, init_containers,
		 &CONTAINER_STATUS),
	KOBJ_ROW("nominatedNodeName", 11, KOBJ_TEXT, struct kobj_pod_status, nominated_node),
	KOBJ_SUB("resourceClaimStatuses", 15, KOBJ_OBJECTS, struct kobj_pod_status, claims,
		 &CLAIM_STATUS),
	KOBJ_ROW("allocatedResources", 19, KOBJ_QUANTITIES, struct kobj_pod_status, allocated),
	KOBJ_SUB("resources", 20, KOBJ_OBJECT, struct kobj_pod_status, resources, &RESOURCES),
};
static const struct kobj_table STATUS =
	KOBJ_TABLE_OF("PodStatus", struct kobj_pod_status, STATUS_ROWS, true);

static const struct kobj_field POD_META_ROWS[] = {
	KOBJ_ROW("name", 1, KOBJ_TEXT, struct kobj_pod, meta.name),
	KOBJ_ROW("namespace", 3, KOBJ_TEXT, struct kobj_pod, meta.namespace_),
	KOBJ_ROW("uid", 5, KOBJ_TEXT, struct kobj_pod, meta.uid),
	KOBJ_ROW("resourceVersion", 6, KOBJ_TEXT, struct kobj_pod, meta.resource_version),
	KOBJ_ROW("creationTimestamp", 8, KOBJ_TIME, struct kobj_pod, meta.created_s),
	KOBJ_ROW("deletionTimestamp", 9, KOBJ_TIME, struct kobj_pod, meta.deleted_s),
	KOBJ_ROW("labels", 11, KOBJ_PAIRS, struct kobj_pod, meta.labels),
	KOBJ_ROW("annotations", 12, KOBJ_PAIRS, struct kobj_pod, meta.annotations),
	KOBJ_SUB("ownerReferences", 13, KOBJ_OBJECTS, struct kobj_pod, owners, &KOBJ_OWNER),
};
static const struct kobj_table POD_META =
	KOBJ_TABLE_OF("ObjectMeta", struct kobj_pod, POD_META_ROWS, true);

static const struct kobj_field POD_ROWS[] = {
	KOBJ_SKIP("apiVersion", 0),
	KOBJ_SKIP("kind", 0),
	{ "metadata", 1, KOBJ_PART, 0, &POD_META },
	KOBJ_SUB("spec", 2, KOBJ_PART, struct kobj_pod, spec, &SPEC),
	KOBJ_SUB("status", 3, KOBJ_PART, struct kobj_pod, status, &STATUS),
};
const struct kobj_table KOBJ_POD = KOBJ_TABLE_OF("Pod", struct kobj_pod, POD_ROWS, false);
