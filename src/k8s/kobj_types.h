// SPDX-License-Identifier: Apache-2.0
// Plain structures of what scheduling looks at in a pod, filled by the tables in kobj_pod.c and
// kobj_affinity.c. Names follow the API; what is absent is zero, empty or NULL. Facts of fields
// and numbers: k8s.io/api v0.36.3.
#pragma once

#include "k8s/kobj_volume.h"

#define KOBJ_LIST_OF(type)                                                                         \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count;                                                                      \
	}

struct kobj_meta {
	struct str name, namespace_, uid, resource_version;
	int64_t created_s, deleted_s;
	struct kobj_pairs labels, annotations;
};

struct kobj_requirement { // of node selectors and label selectors
	struct str key, op;
	struct kobj_texts values;
};
typedef KOBJ_LIST_OF(struct kobj_requirement) kobj_requirements;

struct kobj_node_term {
	kobj_requirements expressions, fields;
};
struct kobj_node_selector {
	KOBJ_LIST_OF(struct kobj_node_term) terms;
};
struct kobj_preferred_term {
	int64_t weight;
	struct kobj_node_term *preference;
};
struct kobj_node_affinity {
	struct kobj_node_selector *required;
	KOBJ_LIST_OF(struct kobj_preferred_term) preferred;
};
struct kobj_label_selector {
	struct kobj_pairs match_labels;
	kobj_requirements expressions;
};
struct kobj_affinity_term {
	struct kobj_label_selector *selector, *namespace_selector;
	struct kobj_texts namespaces, match_label_keys, mismatch_label_keys;
	struct str topology_key;
};
struct kobj_pod_affinity { // and anti-affinity
	KOBJ_LIST_OF(struct kobj_affinity_term) required;
	bool has_preferred;
};
struct kobj_affinity {
	struct kobj_node_affinity *node;
	struct kobj_pod_affinity *pod, *anti;
};
struct kobj_scheduling_group {
	struct str pod_group; // empty: it is of none
};
struct kobj_toleration {
	struct str key, op, value, effect;
};
struct kobj_spread {
	int64_t max_skew, min_domains;
	struct str topology_key, when_unsatisfiable, node_affinity_policy, node_taints_policy;
	struct kobj_label_selector *selector;
	struct kobj_texts match_label_keys;
};

struct kobj_port {
	int64_t host_port;
	struct str protocol, host_ip;
};
struct kobj_resources {
	struct kobj_pairs requests, limits; // quantities
};
struct kobj_restart_rule {
	struct str action;
};
struct kobj_container {
	struct str name, image, restart_policy;
	struct kobj_resources resources;
	KOBJ_LIST_OF(struct kobj_port) ports;
	KOBJ_LIST_OF(struct kobj_restart_rule) restart_rules;
};
typedef KOBJ_LIST_OF(struct kobj_container) kobj_containers;

struct kobj_gate {
	struct str name;
};

struct kobj_claim_ref { // of a pod; of its status: what was made from a template
	struct str name, claim;
};

struct kobj_owner {
	struct str uid;
	bool is_controller;
};

struct kobj_pod_spec {
	kobj_containers init_containers, containers;
	KOBJ_LIST_OF(struct kobj_volume) volumes;
	struct kobj_pairs node_selector, overhead;
	struct kobj_affinity *affinity;
	KOBJ_LIST_OF(struct kobj_toleration) tolerations;
	KOBJ_LIST_OF(struct kobj_spread) spreads;
	KOBJ_LIST_OF(struct kobj_gate) gates;
	struct kobj_resources *resources;
	struct str node_name, scheduler_name, priority_class_name, preemption_policy;
	int64_t priority, grace_s, max_run_s; // the last two: 0 when absent
	bool host_network;
	KOBJ_LIST_OF(struct kobj_claim_ref) claims; // ResourceClaims; claim empty: from a template
	struct kobj_scheduling_group group;
	int host_users; // tristate
};

struct kobj_condition {
	struct str type, status, reason, message;
	int64_t changed_s;
};
typedef KOBJ_LIST_OF(struct kobj_condition) kobj_conditions;
struct kobj_container_status {
	struct str name;
	struct kobj_pairs allocated;
	struct kobj_resources *resources;
};
typedef KOBJ_LIST_OF(struct kobj_container_status) kobj_container_statuses;
struct kobj_pod_status {
	struct str phase, nominated_node, ip;
	kobj_conditions conditions;
	kobj_container_statuses init_containers, containers;
	struct kobj_resources *resources;
	struct kobj_pairs allocated;
	KOBJ_LIST_OF(struct kobj_claim_ref) claims;
};
struct kobj_pod {
	struct kobj_meta meta;
	KOBJ_LIST_OF(struct kobj_owner) owners;
	struct kobj_pod_spec spec;
	struct kobj_pod_status status;
};

extern const struct kobj_table KOBJ_META, KOBJ_POD, KOBJ_CONDITION;
