// SPDX-License-Identifier: Apache-2.0
// The scheduling core: a ledger of nodes, devices and pods, a queue, and decisions. Pure: no
// clock, network or randomness; time comes in as milliseconds of the caller's clock, and the same
// calls give the same decisions. The daemon and the simulator drive the same code: feed what
// changed, take decisions until there is none, report what became of each bind.
// A bind decision is assumed at once: its space is taken until sched_bind_failed or the pod's
// removal. Inputs are copied. What is returned is borrowed until the next call.
#pragma once

#include "sched/claim_in.h"
#include "sched/group.h"
#include "sched/preempt.h"
#include "sched/storage.h"
#include "sched/view.h"

struct sched;
struct score_policy;

struct sched_taint {
	struct str key, value, effect;
};
struct sched_node_in {
	struct str name;
	struct sched_labels labels;
	const struct sched_amount *allocatable;
	size_t allocatable_count;
	const struct sched_taint *taints;
	size_t taint_count;
	const struct str *features;
	size_t feature_count;
	bool is_cordoned, is_not_ready;
};
struct sched_device_in {
	struct str uuid, model;
	int64_t index, memory_mib;
	bool is_healthy, is_shared;                 // shared: given out in shares alone
	struct sched_version compute, driver, cuda; // unset: not known
	int64_t numa_node;
	bool has_switch;          // reaches all others that have one
	const struct str *linked; // UUIDs of those that it reaches directly
	size_t linked_count;
};

enum { SCHED_DEVICES_MAX = 64, SCHED_RESOURCES_MAX = 256 };
enum { SCHED_HEADS_MAX = 32, SCHED_HEADS_PER_POOL_MAX = 8 };
#define SCHED_NEVER_MS (INT64_MAX - 1) // no end, no start can be told

struct sched_pod_in {
	struct str uid, namespace_, name;
	struct str node;      // empty: not bound
	struct str nominated; // the node that is kept for it; empty: none
	struct str user;      // who it is counted for in its queue; empty: nobody said
	struct sched_labels labels;
	int64_t created_s;
	int64_t deadline_s; // seconds since 1970; 0: none
	int64_t max_run_s;  // it is ended after so long; 0: never
	struct str work;    // what it runs (image or class), to learn how long; empty: not known
	int64_t priority;
	bool is_ours;                   // this scheduler decides about it
	bool is_gated;                  // has scheduling gates
	bool is_terminating;            // deletion has begun
	const struct str *device_uuids; // plan of a bound pod, already checked
	size_t device_count;
	const struct sched_hold *holds; // of that plan, what is of shares
	size_t hold_count;
	int64_t bound_ms; // when it was bound, by the clock of sched_next; 0: now
	struct sched_stay stay;
	const struct sched_spec *spec;
	const struct sched_gang_in *gang; // NULL: none
};

// NOMINATE: the node is kept for the pod; empty: no longer. EVICT: the same, and victims leave it.
typedef enum sched_verb {
	SCHED_BIND,
	SCHED_WAIT,
	SCHED_REFUSE,
	SCHED_NOMINATE,
	SCHED_EVICT
} sched_verb;

struct sched_grant { // one device of a bind
	struct str container, uuid;
	struct str resource; // of a share; empty: the GPU is given whole
	int64_t index, memory_mib, milli;
};
struct sched_decision {
	sched_verb verb;
	struct str uid, namespace_, name;
	struct str node;
	const struct sched_grant *grants;
	size_t grant_count;
	const struct sched_claim_bind *claim_binds; // to be done, and come true, before the bind
	size_t claim_bind_count;
	const struct sched_claim_allot *claim_allots; // the same of ResourceClaims
	size_t claim_allot_count;
	const struct sched_facts *facts; // NULL: of BIND, if not LoadStale; no node kept any more
	bool is_same_codes;              // only numbers changed since the last one about this pod
	const struct sched_victim *victims;
	size_t victim_count;
};

// Time runs from now_ms by a clock that never goes back, that of sched_next.
struct sched *sched_new(uint64_t seed, int64_t now_ms);
void sched_free(struct sched *sched); // NULL allowed
// How many waiting pods of each pool (nodes that suit them, whatever is free) get a node reserved.
void sched_heads_set(struct sched *sched, size_t per_pool); // 1 unless said; 0: none
// Chooses among the nodes that fit (score.h); "default" unless said.
void sched_policy_set(struct sched *sched, const struct score_policy *policy);

void sched_node_set(struct sched *sched, const struct sched_node_in *node);
void sched_node_remove(struct sched *sched, struct str name);
void sched_devices_set(struct sched *sched, struct str node, const struct sched_device_in *devices,
		       size_t count);
void sched_namespace_set(struct sched *sched, struct str name, const struct sched_labels *labels);
void sched_namespace_remove(struct sched *sched, struct str name);
void sched_pod_set(struct sched *sched, const struct sched_pod_in *pod);
void sched_pod_remove(struct sched *sched, struct str uid); // unknown uid: nothing

// Next decision, in queue order; false when there is none now. Then nothing changes until a fact
// changes or sched_wake_ms is reached.
MUST_USE bool sched_next(struct sched *sched, int64_t now_ms, struct sched_decision *ret);
int64_t sched_wake_ms(const struct sched *sched); // INT64_MAX: no need
// The API server refused the bind: the space is free again, the pod is tried later, elsewhere
// first. A pod that is no longer assumed is left alone.
void sched_bind_failed(struct sched *sched, struct str uid, int64_t now_ms);

// Why a pod waits, computed now. False: no such pod.
MUST_USE bool sched_explain(struct sched *sched, struct str namespace_, struct str name,
			    struct sched_explanation *ret);
struct sched_reason sched_fact_text(const struct sched *sched, struct str namespace_,
				    struct str name, const struct sched_fact *fact,
				    struct arena *arena);
// Reservations in queue order as of the last decision; returns how many.
size_t sched_reservations(const struct sched *sched, struct sched_reservation *ret, size_t max);
struct sched_counts sched_counts_get(const struct sched *sched);

// Nodes on which the pod could run now, in name order, for tests; returns how many.
size_t sched_feasible(struct sched *sched, struct str namespace_, struct str name,
		      struct str *ret_nodes, size_t max);
// Checks the ledger against itself; NULL or what is broken (an invariant of the design).
const char *sched_check(const struct sched *sched);
