// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim from inside: the scheduling core of the daemon on a virtual clock. A scenario is a
// file of Kubernetes objects with times; events come from a heap in order of time and, at one
// time, of the file. Same file and seed: same bytes out. The checker keeps books of its own.
#pragma once

#include "base/map.h"
#include "base/rng.h"
#include "feed/feed_budget.h"
#include "feed/feed_group.h"
#include "feed/feed_storage.h"
#include "sched/factors.h"
#include "sim/events.h"
#include "sim/run.h"

#include <stdio.h>

typedef enum sim_action { SIM_CREATE, SIM_UPDATE, SIM_DELETE } sim_action;
typedef enum sim_kind {
	SIM_NODE,
	SIM_GPU_NODE,
	SIM_NAMESPACE,
	SIM_TENANT,
	SIM_POD,
	SIM_BUDGET,
	SIM_LOAD,
	SIM_STORAGE,
	SIM_CLAIM,
	SIM_GROUP,
	SIM_KINDS
} sim_kind;

struct sim_object { // one document of the file
	int64_t at_ms;
	sim_action action;
	sim_kind kind;
	sched_storage storage;          // of SIM_STORAGE
	sched_claim_kind claim;         // of SIM_CLAIM
	const struct feed_group *group; // of SIM_GROUP
	const json_t *json;             // lives as long as the scenario
	int64_t runs_ms;                // of a pod; -1: for ever
};
struct scenario {
	json_t *documents;
	struct sim_object *objects;
	size_t object_count;
	struct map *priorities; // class -> const json_t *
	const json_t *default_priority;
	struct arena *arena; // of all that is decoded; lives as long as the run
};

MUST_USE err_status scenario_parse(struct str text, struct scenario *ret, struct err *err);
MUST_USE err_status scenario_load(const char *path, struct scenario *ret, struct err *err);
void scenario_done(struct scenario *scenario);

struct sim_pod {
	struct str uid, key;    // key: "namespace/name"
	struct sched_pod_in in; // as the core was told
	struct str node;        // where it was sent; empty: nowhere
	int64_t runs_ms, bound_ms;
	uint64_t told_codes; // of the last wait or refuse
	bool is_told, is_started;
	int64_t ends_ms, recreate_ms; // after an eviction; recreate_ms -1: never
	int64_t saves_ms;             // a checkpoint so often; 0: it keeps none
	struct str evicted_for;       // uid; empty: nobody
	struct str home;              // where it was told to go on; empty: nowhere
	int64_t leaving_ms;
	struct str kept;  // node that is kept for it
	bool has_victims; // they make room for it
	bool is_excused;  // something came between it and its room
	uint32_t bind_no; // a bound or finish event of an earlier bind is stale
};

struct checker;
struct sim {
	struct scenario *scenario;
	struct sched *core;
	struct rng rng;
	FILE *out;
	int64_t now_ms;
	int64_t moved_ms; // when an object came, or a pod started or ended
	size_t moved;     // how many pods had by then
	uint64_t bind_failures_permille, evict_failures_permille;
	struct sched_preempt_rules rules;
	struct map *budgets;                 // key -> sched_budget, as the API server has it
	struct map *pods;                    // uid -> sim_pod
	struct map *storage[SCHED_STORAGES]; // key -> sched_storage_in, as the core was told
	struct map *queues;                  // name -> sched_queue_in, as the core was told
	bool orders_by_factors;
	struct events *events;
	struct map *gangs; // of check_gang.c
	struct checker *checker;
	struct jobs *jobs; // looks at each step; NULL: nobody wants to know
	bool takes_all;    // pods of other schedulers count as ours
	uint64_t pod_no;
	size_t bound, finished, refused, evicted, moved_pods;
};

// apply.c
MUST_USE err_status apply_object(struct sim *sim, const struct sim_object *object, struct err *err);
void apply_remove_pod(struct sim *sim, struct str uid);

// check_queue.c
void checker_queue_init(struct sim *sim);
void checker_queue_rules(struct sim *sim, const struct run_options *options);
void checker_queue_done(struct sim *sim);
MUST_USE err_status apply_tenant(struct sim *sim, const struct sim_object *object, struct err *err);
bool checker_has_queues(const struct sim *sim); // then not only priority and age say who is first
int64_t checker_priority(const struct sim *sim, const struct sim_pod *pod);  // under its ceiling
const char *checker_queue(const struct sim *sim, const struct sim_pod *pod); // after its bind

// storage.c
void storage_init(struct sim *sim);
void storage_done(struct sim *sim);
MUST_USE err_status storage_apply(struct sim *sim, const struct sim_object *object,
				  struct err *err);
// Does at once what the API server and its controllers would for a bind's claims.
MUST_USE err_status storage_apply_claim(struct sim *sim, const struct sim_object *object,
					struct err *err);
void storage_bind(struct sim *sim, const struct sched_decision *bind);

// check.c: NULL, or what is broken
struct checker *checker_new(struct arena *arena);
void checker_free(struct checker *checker);
void checker_node(struct checker *checker, const struct sched_node_in *node);
void checker_node_gone(struct checker *checker, struct str name);
const char *checker_bind(struct sim *sim, struct sim_pod *pod, const struct sched_decision *bind);
int64_t checker_has(const struct sim *sim, struct str node, struct str resource);
void checker_release(struct sim *sim, const struct sim_pod *pod);
int64_t checker_end_ms(const struct sim *sim, const struct sim_pod *pod); // expected
const char *checker_quiet(struct sim *sim); // nothing is left to decide now

// check_share.c: the part of it about shares
struct share_books;
struct share_books *share_books_new(void);
void share_books_free(struct share_books *books);
void share_books_devices(struct share_books *books, const struct sched_device_in *devices,
			 size_t count);
bool share_books_has(const struct share_books *books, struct str uuid); // somebody has one
const char *share_books_take(struct share_books *books, const struct sim_pod *pod,
			     const struct sched_decision *bind);
void share_books_release(struct share_books *books, const struct sim_pod *pod);
struct share_books *checker_shares(struct checker *checker);

// write.c
void write_decision(struct sim *sim, const struct sched_decision *decision);
