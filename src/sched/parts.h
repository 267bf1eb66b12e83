// SPDX-License-Identifier: Apache-2.0
// The steps of the scheduling core and who calls whom: shapes and pods keep the ledger and the
// queue, filters say where a pod may run, place chooses, decide drives. Internal to this folder;
// objects stay owned by struct sched.
#pragma once

#include "sched/core.h"
#include "sched/head.h"

// shape.c
struct shape *shape_ref(struct sched *sched, const struct sched_pod_in *pod);
void shape_unref(struct sched *sched, struct shape *shape);
void shape_ready_dims(struct sched *sched, struct shape *shape);
void shape_ready(struct sched *sched, struct shape *shape); // dims and static_fits are current
void shape_activate(struct sched *sched, struct shape *shape);
void shape_park(struct sched *sched, struct shape *shape); // from active
void shape_add_pod(struct sched *sched, struct pod *pod);
void shape_drop_pod(struct sched *sched, struct pod *pod);
void shape_move_pod(struct pod *pod,
		    int64_t score); // to its new place, while the shape is not active
void shape_tell(struct sched *sched, struct shape *shape); // its facts are new
bool shape_is_static_fit(const struct shape *shape, uint32_t slot);
void shape_copy_selector(struct arena *arena, struct sched_selector *selector); // its texts, too

// decide.c: facts over all nodes; true when a node has no reason against it
bool decide_collect(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts);
// The same without what its queue says.
bool decide_collect_nodes(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts);
void decide_lend(struct sched *sched, struct pod *pod, const struct sched_facts *facts,
		 struct sched_decision *ret); // as a pod that waits or is refused

// pods.c
struct pod *pod_new(struct sched *sched, const struct sched_pod_in *in);  // it is nowhere yet
void pod_add_amounts(struct sched *sched, struct pod *pod, int64_t sign); // to its node
void pod_account(struct sched *sched, struct pod *pod, struct node *node);
// The two steps of it. The first may be taken back and nobody notices, if the caller restores
// what is to be woken; nothing else is done between.
void pod_put_on(struct sched *sched, struct pod *pod, struct node *node);
void pod_settle_on(struct sched *sched, struct pod *pod);
void pod_take_off(struct sched *sched, struct pod *pod);
bool pod_has_lower(const struct sched *sched, int64_t priority); // on some node
void pod_unaccount(struct sched *sched, struct pod *pod);
void pod_wait(struct sched *sched, struct pod *pod, pod_place place); // into the queue
void pod_leave(struct sched *sched, struct pod *pod);                 // out of it
void pod_tell(struct sched *sched, struct pod *pod);
void pod_expect(struct sched *sched, struct pod *pod, int64_t bound_ms); // when it will end
void pod_set_state(struct sched *sched, struct pod *pod, sched_state state);
void pod_refuse(struct sched *sched, struct pod *pod, const struct sched_facts *facts);
void pod_rehome(struct sched *sched, struct pod *pod); // into the queue of its namespace
struct pod *pod_find(const struct sched *sched, struct str namespace_, struct str name);
// Facts of its own; NULL: the shape's hold.
void pod_set_facts(struct pod *pod, const struct sched_facts *facts);

// affinity.c
struct affinity;
struct claim_fit;
struct affinity *affinity_new(struct sched *sched, const struct pod *pod); // NULL: nothing to do
void affinity_free(struct affinity *affinity);
// Running pods want to be apart from it: what holds for it may not hold for its whole shape.
bool affinity_is_special(const struct sched *sched, const struct pod *pod);
uint64_t affinity_check(const struct affinity *affinity, const struct node *node);
bool affinity_is_dear(const struct affinity *affinity); // to make: all pods were looked at
const struct claim_fit *affinity_claims(const struct affinity *affinity); // NULL: it has none
// Whether the anti-affinity of a keeps b from the same node.
bool affinity_are_apart(const struct sched *sched, const struct pod *a, const struct pod *b,
			const struct node *node);
uint32_t affinity_detail(const struct affinity *affinity, sched_code code); // of its fact

// filter.c; sets hold one bit a code
struct check { // one pod against all nodes
	struct sched *sched;
	const struct pod *pod;
	struct shape *shape;
	struct affinity *affinity; // NULL: nothing to check
	struct str domain_key;     // label of nodes that must have the value; empty: any node does
	struct str domain_value;
};
static inline uint64_t code_bit(sched_code code) { return UINT64_C(1) << code; }
static inline bool spec_has_volumes(const struct sched_spec *spec)
{
	return spec->claim_count + spec->disk_count + spec->device_claim_count > 0;
}
uint64_t filter_static(const struct sched_spec *spec, const struct node *node);
bool filter_amounts(const struct sched *sched, const struct shape *shape, uint32_t slot);
bool filter_rest(const struct check *check, const struct node *node); // devices, ports, pods
bool filter_fits(const struct check *check, const struct node *node);
// Adds what fails on this node; returns the set.
uint64_t filter_collect(const struct check *check, const struct node *node,
			struct sched_facts *facts);
// Whether amounts would suffice without the pods of lower priority on the node.
bool filter_room_without_lower(const struct check *check, const struct node *node);
// The same with those alone that may be asked to leave now.
bool filter_room_without_victims(const struct check *check, const struct node *node);
// Adds what is short even without all pods of lower priority, if there are any.
void filter_note_short(const struct check *check, const struct node *node,
		       struct sched_facts *facts);
bool filter_has_room(const struct sched *sched, const struct shape *shape, const struct node *node);
bool filter_device(const struct sched_spec *spec, const struct device *device);
bool filter_device_kind(const struct sched_spec *spec, const struct device *device); // free or not
bool filter_ports_clash(const struct sched_spec *a, const struct sched_spec *b);
bool filter_model(const struct sched_spec *spec, struct str model);
bool filter_taints(const struct sched_spec *spec, const struct node *node);
bool filter_selectors(const struct sched_spec *spec, const struct node *node);
bool filter_term(const struct sched_node_term *term, const struct sched_labels *labels,
		 struct str name);
int64_t filter_preference(const struct sched_spec *spec, const struct node *node);
int64_t filter_gpu_memory_mib(const struct node *node);
struct sched_version filter_version(const struct node *node, sched_code code);
uint64_t facts_codes(const struct sched_facts *facts);
bool facts_equal(const struct sched_facts *a, const struct sched_facts *b); // in order
struct sched_fact *facts_add(struct sched_facts *facts, sched_code code, uint32_t detail);

// nominate.c
enum { SCHED_KEPT_MAX = 128 }; // nominated pods that are looked at on one node
void nominate_set(struct sched *sched, struct pod *pod, struct str node); // empty: none
void nominate_link(struct sched *sched, struct pod *pod);                 // it waits
void nominate_unlink(struct sched *sched, struct pod *pod);               // it waits no longer
bool nominate_allows(const struct check *check, const struct node *node);

// slices.c
void slices_free(struct sched *sched);
bool slices_are_asked(const struct sched_spec *spec); // something that can be reserved
// What the node keeps for other tenants of what the shape asks for.
int64_t slices_kept(const struct sched *sched, const struct shape *shape, size_t amount_i,
		    const struct node *node);

// place.c
struct node *place_best(const struct check *check);                            // NULL: fits nowhere
size_t place_devices(struct sched *sched, struct pod *pod, struct node *node); // fills grants
size_t place_granted(struct sched *sched, const struct pod *pod); // the same, of what it holds
