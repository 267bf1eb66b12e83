// SPDX-License-Identifier: Apache-2.0
// gpuaas-scheduler from inside: a cache fed by watches drives the pure core (sched/sched.h); its
// decisions become Bindings, pod conditions and Events. Only the leader watches and decides: who
// becomes leader starts from fresh lists, who stops being it drops everything at once. One loop
// thread owns all of this. Records are kept for pods of ours that wait; the rest is the core's.
#pragma once

#include "base/map.h"
#include "base/metric.h"
#include "feed/feed_storage.h"
#include "k8s/event.h"
#include "k8s/lease.h"
#include "k8s/watch.h"
#include "sched/policy_file.h"

struct options {
	const char *kubeconfig; // "in-cluster" or a file; NULL: the default of kubectl
	const char *plan_key_file, *listen, *identity, *lease_namespace, *scheduler_name;
	const char *policy; // name or file; NULL: the core's own
	const char *half_life, *factors, *reclaim, *preemption, *durations; // as texts
	const char *load;
	struct str log_level;
	bool is_dump;
};

typedef enum cache_kind {
	CACHE_PODS,
	CACHE_NODES,
	CACHE_GPU_NODES,
	CACHE_NAMESPACES,
	CACHE_TENANTS,
	CACHE_BUDGETS,
	CACHE_STORAGE, // the first of FEED_STORAGES
	CACHE_KINDS = CACHE_STORAGE + SCHED_STORAGES
} cache_kind;

struct cache {
	struct scheduler *scheduler;
	cache_kind kind;
	struct watch *watch;
	struct map *seen; // key -> list generation, as a number
	uintptr_t generation;
	bool is_synced;
	uint64_t failures;
};

struct record { // a pod of ours that is not on a node yet
	char uid[64];
	char *namespace_, *name, *class_;
	int64_t created_s, arrived_s, arrived_ms;
	char *message; // to be written as its condition; NULL: nothing new
	bool is_patching, is_queued;
	struct record *next_queued;
	int64_t patched_ms, transition_s, due_ms; // due: not to be written before
	int64_t event_ms; // of the last Event that says why it waits; 0: none yet
};

enum { BINDS_MAX = 32, PATCHES_MAX = 16, DECISIONS_A_TURN = 64 };

struct bind {
	struct scheduler *scheduler;
	struct k8s_call *call; // NULL: free
	char uid[64], namespace_[256], name[256], node[256];
	uint64_t started_ns;
	bool is_checking; // asks what became of a bind without an answer
	struct loop_timer *timer;
};

enum evict_reason { EVICT_PRIORITY, EVICT_RECLAIM, EVICT_GANG, EVICT_MOVE, EVICT_REASONS };
struct counters {
	uint64_t binds_ok, binds_failed, binds_unknown, patches, patch_failures, undecodable;
	uint64_t decisions[SCHED_EVICT + 1], terms;
	uint64_t evictions[EVICT_REASONS], evictions_refused;
	struct metric_histogram decide_s, bind_s;
};

struct scheduler {
	const struct options *options;
	struct loop *loop;
	struct k8s_client *client;
	struct lease *lease;
	int64_t term; // fencing number of what is bound, from the Lease
	struct event_sink *events;
	struct http_server *server;
	struct buf plan_key;
	struct score_policy policy;
	bool has_policy;
	struct load_source *load;
	struct tenants *tenants; // of tenants.c
	struct sched *core;      // NULL: not leading
	struct cache caches[CACHE_KINDS];
	struct arena *arena; // of one object, decision or message
	struct map *records; // uid -> record
	struct record *queued, **queued_end;
	struct bind binds[BINDS_MAX];
	size_t binds_in_flight, patches_in_flight;
	struct wait *claim_waits, *allot_waits; // of wait.h
	struct allot_watches *allot_watches;    // NULL: not leading
	struct groups *groups;                  // NULL: not leading
	struct policies *policies;              // of policies.c; NULL: not leading
	struct evict_set *evict_sets;
	struct lengths *lengths; // of lengths.c; NULL: not leading
	struct sched_preempt_rules preempt_rules;
	int64_t grace_max_s;
	int64_t doubt_until_ms;          // binds of our last term may still happen until then
	struct loop_timer *wake, *later; // for decisions; for messages that are not due yet
	bool is_driving, is_later;       // a turn, a look at late messages is on its way
	struct map *waits;               // "tenant\npool\nclass" -> histogram of queue wait
	struct counters counters;
};

int64_t scheduler_now_ms(const struct scheduler *s);
int64_t scheduler_wall_s(const struct scheduler *s);
void scheduler_drive(struct scheduler *s); // soon: decisions, as far as binds may start
void scheduler_wake(void *arg);            // the same, for a timer
void scheduler_on_acquired(void *arg, int64_t transitions); // for the lease
void scheduler_on_lost(void *arg);

// cache.c
void cache_start_all(struct scheduler *s);
void cache_stop_all(struct scheduler *s);
bool cache_is_synced(const struct scheduler *s);
const char *cache_path(cache_kind kind);
uint64_t cache_age_ns(const struct scheduler *s, cache_kind kind);

// record.c
struct record *record_get(struct scheduler *s, const struct kobj_pod *pod); // made if absent
struct record *record_find(const struct scheduler *s, struct str uid);
void record_drop(struct scheduler *s, struct str uid);
void record_drop_all(struct scheduler *s);
void record_later(void *arg); // for the timer
// Writes the condition when a patch may start; a newer message replaces an older one.
void record_tell(struct scheduler *s, const struct sched_decision *decision);
void record_message(struct scheduler *s, const struct sched_decision *decision, struct buf *out);

// bind.c
struct bind_order {
	struct str uid, namespace_, name, node, body;
};
bool bind_may_start(const struct scheduler *s);
void bind_start(struct scheduler *s, const struct sched_decision *decision);
void bind_post(struct scheduler *s, const struct bind_order *order); // if bind_may_start
void bind_cancel_all(struct scheduler *s);

// serve.c
MUST_USE err_status serve_start(struct scheduler *s, struct err *err);
void serve_observe_wait(struct scheduler *s, const struct record *record);
void serve_done(struct scheduler *s);
