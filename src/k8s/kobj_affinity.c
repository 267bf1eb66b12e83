// SPDX-License-Identifier: Apache-2.0
#include "k8s/kobj_tables.h"

static const struct kobj_field REQUIREMENT_ROWS[] = {
	KOBJ_ROW("key", 1, KOBJ_TEXT, struct kobj_requirement, key),
	KOBJ_ROW("operator", 2, KOBJ_TEXT, struct kobj_requirement, op),
	KOBJ_ROW("values", 3, KOBJ_TEXTS, struct kobj_requirement, values),
};
static const struct kobj_table REQUIREMENT =
	KOBJ_TABLE_OF("requirement", struct kobj_requirement, REQUIREMENT_ROWS, false);

static const struct kobj_field NODE_TERM_ROWS[] = {
	KOBJ_SUB("matchExpressions", 1, KOBJ_OBJECTS, struct kobj_node_term, expressions,
		 &REQUIREMENT),
	KOBJ_SUB("matchFields", 2, KOBJ_OBJECTS, struct kobj_node_term, fields, &REQUIREMENT),
};
static const struct kobj_table NODE_TERM =
	KOBJ_TABLE_OF("NodeSelectorTerm", struct kobj_node_term, NODE_TERM_ROWS, false);

static const struct kobj_field NODE_SELECTOR_ROWS[] = {
	KOBJ_SUB("nodeSelectorTerms", 1, KOBJ_OBJECTS, struct kobj_node_selector, terms,
		 &NODE_TERM),
};
const struct kobj_table KOBJ_NODE_SELECTOR =
	KOBJ_TABLE_OF("NodeSelector", struct kobj_node_selector, NODE_SELECTOR_ROWS, false);

static const struct kobj_field PREFERRED_ROWS[] = {
	KOBJ_ROW("weight", 1, KOBJ_INT, struct kobj_preferred_term, weight),
	KOBJ_SUB("preference", 2, KOBJ_OBJECT, struct kobj_preferred_term, preference, &NODE_TERM),
};
static const struct kobj_table PREFERRED =
	KOBJ_TABLE_OF("PreferredSchedulingTerm", struct kobj_preferred_term, PREFERRED_ROWS, false);

static const struct kobj_field NODE_AFFINITY_ROWS[] = {
	KOBJ_SUB("requiredDuringSchedulingIgnoredDuringExecution", 1, KOBJ_OBJECT,
		 struct kobj_node_affinity, required, &KOBJ_NODE_SELECTOR),
	KOBJ_SUB("preferredDuringSchedulingIgnoredDuringExecution", 2, KOBJ_OBJECTS,
		 struct kobj_node_affinity, preferred, &PREFERRED),
};
static const struct kobj_table NODE_AFFINITY =
	KOBJ_TABLE_OF("NodeAffinity", struct kobj_node_affinity, NODE_AFFINITY_ROWS, false);

static const struct kobj_field LABEL_SELECTOR_ROWS[] = {
	KOBJ_ROW("matchLabels", 1, KOBJ_PAIRS, struct kobj_label_selector, match_labels),
	KOBJ_SUB("matchExpressions", 2, KOBJ_OBJECTS, struct kobj_label_selector, expressions,
		 &REQUIREMENT),
};
const struct kobj_table KOBJ_LABEL_SELECTOR =
	KOBJ_TABLE_OF("LabelSelector", struct kobj_label_selector, LABEL_SELECTOR_ROWS, false);

static const struct kobj_field TERM_ROWS[] = {
	KOBJ_SUB("labelSelector", 1, KOBJ_OBJECT, struct kobj_affinity_term, selector,
		 &KOBJ_LABEL_SELECTOR),
	KOBJ_ROW("namespaces", 2, KOBJ_TEXTS, struct kobj_affinity_term, namespaces),
	KOBJ_ROW("topologyKey", 3, KOBJ_TEXT, struct kobj_affinity_term, topology_key),
	KOBJ_SUB("namespaceSelector", 4, KOBJ_OBJECT, struct kobj_affinity_term, namespace_selector,
		 &KOBJ_LABEL_SELECTOR),
	KOBJ_ROW("matchLabelKeys", 5, KOBJ_TEXTS, struct kobj_affinity_term, match_label_keys),
	KOBJ_ROW("mismatchLabelKeys", 6, KOBJ_TEXTS, struct kobj_affinity_term,
		 mismatch_label_keys),
};
static const struct kobj_table TERM =
	KOBJ_TABLE_OF("PodAffinityTerm", struct kobj_affinity_term, TERM_ROWS, false);

static const struct kobj_field POD_AFFINITY_ROWS[] = {
	KOBJ_SUB("requiredDuringSchedulingIgnoredDuringExecution", 1, KOBJ_OBJECTS,
		 struct kobj_pod_affinity, required, &TERM),
	KOBJ_ROW("preferredDuringSchedulingIgnoredDuringExecution", 2, KOBJ_PRESENT,
		 struct kobj_pod_affinity, has_preferred),
};
static const struct kobj_table POD_AFFINITY =
	KOBJ_TABLE_OF("PodAffinity", struct kobj_pod_affinity, POD_AFFINITY_ROWS, false);

static const struct kobj_field AFFINITY_ROWS[] = {
	KOBJ_SUB("nodeAffinity", 1, KOBJ_OBJECT, struct kobj_affinity, node, &NODE_AFFINITY),
	KOBJ_SUB("podAffinity", 2, KOBJ_OBJECT, struct kobj_affinity, pod, &POD_AFFINITY),
	KOBJ_SUB("podAntiAffinity", 3, KOBJ_OBJECT, struct kobj_affinity, anti, &POD_AFFINITY),
};
const struct kobj_table KOBJ_AFFINITY =
	KOBJ_TABLE_OF("Affinity", struct kobj_affinity, AFFINITY_ROWS, false);
