// SPDX-License-Identifier: Apache-2.0
// What a pod asks of a node, in the core's own terms: plain data, built by the feed (or by tests)
// in an arena that also holds all texts. Pods with equal specs share one shape in the core, so a
// spec holds nothing that differs between the pods of one Job. All lists may be empty.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "sched/claim.h"
#include "sched/share.h"

struct sched_label {
	struct str key, value;
};
struct sched_labels { // sorted by key, keys unique
	struct sched_label *items;
	size_t count;
};

typedef enum sched_op {
	SCHED_IN,
	SCHED_NOT_IN,
	SCHED_EXISTS,
	SCHED_NOT_EXISTS,
	SCHED_GREATER,
	SCHED_LESS,
} sched_op;

struct sched_requirement {
	struct str key;
	sched_op op;
	struct str *values;
	size_t value_count;
};
struct sched_selector { // all requirements hold; none: everything matches
	struct sched_requirement *items;
	size_t count;
	bool is_nothing; // matches nothing (an absent label selector)
};
struct sched_node_term { // an empty term matches nothing, as in Kubernetes
	struct sched_selector labels;
	struct sched_selector fields; // metadata.name, In and NotIn only
};
struct sched_preference {
	int64_t weight;
	struct sched_node_term term;
};
struct sched_toleration {
	struct str key, value; // key empty: all keys
	bool any_value;        // operator Exists
	struct str effect;     // empty: all effects
};
struct sched_port {
	int64_t port;
	struct str protocol, ip; // ip empty: all addresses
};
struct sched_spread {
	int64_t max_skew, min_domains;
	struct str topology_key;
	struct sched_selector selector;
	bool ignores_affinity; // nodeAffinityPolicy Ignore
	bool honors_taints;    // nodeTaintsPolicy Honor
};
struct sched_term { // of pod affinity and anti-affinity
	struct str topology_key;
	struct sched_selector selector;
	struct str *namespaces;
	size_t namespace_count;
	struct sched_selector namespace_selector; // is_nothing when absent
};
struct sched_amount {
	struct str resource;
	int64_t amount; // cpu in milli, bytes, or whole units
};

typedef enum sched_stage { SCHED_APP, SCHED_SIDECAR, SCHED_INIT } sched_stage;
struct sched_gpu_ask { // whole GPUs of one container
	struct str container;
	sched_stage stage;
	int64_t count;
};
typedef enum sched_topology {
	SCHED_ANYWHERE,
	SCHED_NVLINK, // GPUs that reach each other by NVLink
	SCHED_NUMA,   // GPUs of one NUMA node
} sched_topology;

enum { SCHED_PARTS_MAX = 1000000 }; // a part of a version is less
struct sched_version {              // dotted, compared part by part
	int64_t parts[3];
	bool is_set;
};
struct sched_refusal {
	int code; // enum sched_code, pod level
	struct str detail;
};

struct sched_spec {
	struct sched_amount *amounts; // sorted by resource
	size_t amount_count;
	struct sched_selector node_selector;
	bool has_terms; // required node affinity is there
	struct sched_node_term *terms;
	size_t term_count;
	struct sched_preference *preferences;
	size_t preference_count;
	struct sched_toleration *tolerations;
	size_t toleration_count;
	struct sched_port *ports;
	size_t port_count;
	struct sched_spread *spreads;
	size_t spread_count;
	struct sched_term *near, *apart; // pod affinity, anti-affinity
	size_t near_count, apart_count;
	struct sched_claim_ref *claims;
	size_t claim_count;
	struct sched_disk *disks;
	size_t disk_count;
	struct str *features; // the node must declare them
	size_t feature_count;
	struct str *gpu_models;
	size_t gpu_model_count;
	int64_t gpu_memory_mib_min;
	struct sched_version compute_min, driver_min, cuda_min;
	sched_topology topology;
	struct str topology_label; // that the node must have; empty: none
	struct sched_gpu_ask *gpu_asks;
	size_t gpu_ask_count;
	int64_t gpu_count; // whole GPUs that the pod holds at once
	struct sched_share_ask *shares;
	size_t share_count;
	struct str *device_claims; // ResourceClaims, "namespace/name"
	size_t device_claim_count;
	int64_t duration_s; // how long it says it will run, 0: unknown; no part of a shape
	struct sched_refusal *refusals;
	size_t refusal_count;
};

// Equal specs give equal bytes and no other spec gives them.
void sched_spec_key(const struct sched_spec *spec, struct buf *out);

bool sched_selector_matches(const struct sched_selector *selector,
			    const struct sched_labels *labels);
bool sched_requirement_matches(const struct sched_requirement *requirement, struct str value);
struct str sched_labels_get(const struct sched_labels *labels, struct str key); // data NULL: absent
bool sched_tolerates(const struct sched_spec *spec, struct str key, struct str value,
		     struct str effect);
// "535.104.05" -> parts; false when it is no dotted number of at most three parts.
MUST_USE bool sched_version_parse(struct str text, struct sched_version *ret_version);
int sched_version_cmp(const struct sched_version *a, const struct sched_version *b);
