// SPDX-License-Identifier: Apache-2.0
// Gangs inside of the core. Members wait with their gang, not with their shape: they are placed
// all at once (gang_place.c), assumed all at once, and their binds come out one after the other
// before any other decision. A gang that some of its members have left, or whose binds failed, is
// completed first; what it holds incomplete is given back when it expires. A gang lives as long as
// it has a member or a part; members belong to their pods.
#pragma once

#include "sched/group.h"
#include "sched/parts.h"

struct member {
	struct pod *pod;
	struct gang *gang;
	struct link in_gang;
	struct str *texts; // memory of those of terms
	struct sched_gang_in terms;
	bool disagrees, is_extra; // with the speaker, refused for it; beyond SCHED_GANG_MAX
	bool is_due;              // of a try: its sub-group needs it
	size_t group_i;           // of a try
};

struct part {
	struct part *next;
	struct gang *gang;
	struct str *texts;
	struct sched_gang_part in;
};

enum { GANG_CLASSES_MAX = 16, GANG_LOOKS_PACED = 1 << 16, GANG_PACE_MS = 1000 };
struct gang_facts { // of the waiting members of one shape, as of the last try
	const struct shape *shape;
	struct sched_facts facts;
};

struct gang {
	struct str key, namespace_, name; // in one block of memory
	sched_gang_kind kind;
	struct link members; // by in_gang
	size_t member_count, on_node_count;
	struct member *speaker; // whose terms hold; NULL: no member
	struct map *groups;     // sub-group -> its first member; NULL: none
	struct part *parts;
	struct tree waiting;     // members to be placed, in queue order, by in_shape
	struct tree_node active; // in gangs->active under the key of the first of them
	struct link in_parked, in_begun;
	struct gang_facts facts[GANG_CLASSES_MAX];
	size_t facts_count;
	int64_t limited_parts; // of members that would start and pass a limit of their queue
	struct sched_fact why; // what of the gang itself they all wait for
	bool is_told, is_same, are_codes_new; // facts were found; against those before
	bool is_untold, is_stale; // only numbers differ; nodes changed since: told later
	int64_t told_ms;          // when they were told last
	bool was_whole;           // since its first member came to a node
	int64_t begun_ms;   // since when it has some of its members on nodes, and never had all
	uint64_t unfit_gen; // sched->gen at which the cluster could never hold it
	int64_t paced_ms;   // a long search failed; no other before
	struct gang_asking asking; // others to make room
};

typedef enum gang_term { // what members may contradict each other in
	GANG_TERM_MIN,
	GANG_TERM_MAX,
	GANG_TERM_EXPIRY,
	GANG_TERM_TOPOLOGY,
	GANG_TERM_GROUP_MIN,
	GANG_TERM_MEMBERS, // there are more than SCHED_GANG_MAX
	GANG_TERMS
} gang_term;

struct gangs {
	struct map *by_key, *parts;
	size_t held_count; // pods in the waiting trees
	int64_t due_ms;    // not later than the next refresh of a parked gang
	bool is_trying;    // pods are put on nodes and taken off again
	struct tree active;
	struct link parked; // gangs, as the next
	struct link begun;  // they hold devices incomplete
	struct link binds;  // pods that are assumed and not yet handed out
};

// ---- what others may ask
// Members that must run at least; 0: nobody has said it yet.
int64_t gang_min(const struct gang *gang);
int64_t gang_max(const struct gang *gang);     // INT64_MAX: no bound
int64_t gang_running(const struct gang *gang); // on nodes and not about to end
int64_t gang_spare(const struct gang *gang);   // of those, before all must go
static inline struct gang *gang_of(const struct pod *pod)
{
	return pod->member == NULL ? NULL : pod->member->gang;
}
struct str gang_topology(const struct gang *gang);
// Value of the label that members which run have chosen already; data NULL: nobody runs.
struct str gang_domain(const struct gang *gang, struct str key);
int64_t gang_needed(const struct gang *gang); // waiting members that start together; 0: not all
int64_t gang_parts(const struct gang *gang, int64_t count); // the first of those that wait
int64_t gang_expiry_ms(const struct gang *gang);

// ---- for pods.c
struct gangs *gangs_new(uint64_t seed);
void gangs_free(struct gangs *gangs);
// Whether it would be of another gang, or on other terms.
bool gang_differs(const struct pod *pod, const struct sched_gang_in *in);
void gang_join(struct sched *sched, struct pod *pod, const struct sched_gang_in *in); // NULL: none
void gang_leave(struct sched *sched, struct pod *pod); // before it is freed
// Its facts, when it contradicts others of its gang.
bool gang_refuses(const struct pod *pod, struct sched_facts *ret_facts);
void gang_add_waiting(struct sched *sched, struct pod *pod);
void gang_drop_waiting(struct sched *sched, struct pod *pod);
void gang_activate(struct sched *sched, struct gang *gang);        // to be tried
void gang_bound(struct sched *sched, struct pod *pod);             // its bind has come true
void gang_moved(struct sched *sched, struct pod *pod, int change); // came to a node or left it

// ---- for decide.c
void gang_wake_due(struct sched *sched);
void gang_wake_changed(struct sched *sched);
struct gang *gang_first(struct sched *sched); // to be tried; NULL: none
void gang_try(struct sched *sched, struct gang *gang);
struct pod *gang_take_bind(struct sched *sched);                      // NULL: none
bool gang_told(const struct pod *pod, struct sched_facts *ret_facts); // false: never tried
void gang_explain(struct sched *sched, struct pod *pod, struct sched_facts *ret_facts);
int64_t gang_wake_ms(const struct sched *sched);
bool gang_fact_text(const struct pod *pod, const struct sched_fact *fact, struct arena *arena,
		    struct sched_reason *reason); // false: it is no fact of a gang

// ---- gang_expire.c
bool gang_expire_next(struct sched *sched, struct sched_decision *ret);
int64_t gang_expire_wake_ms(const struct sched *sched);

// ---- gang_place.c
struct gang_aim {
	size_t need, most; // of the waiting members
	bool is_long;      // all ways may be tried
	bool is_trial;     // pods are off the ledger for the question
};
struct gang_plan {
	struct pod **pods; // on their nodes, for a try only; to be freed
	size_t count;
	size_t best; // of a failure: the most that were placed at once
	uint64_t looks;
	bool is_limited; // by its queue
};
// True: members are on nodes, to be confirmed; false: nothing has changed.
bool gang_place(struct sched *sched, struct gang *gang, const struct gang_aim *aim,
		struct gang_plan *ret_plan);
void gang_unplace(struct sched *sched, struct gang_plan *plan); // nothing has changed
bool gang_in_domain(const struct check *check, const struct node *node);

void gang_count_codes(const struct sched *sched, size_t counts[SCHED_CODES]); // adds
const char *gang_check(const struct sched *sched);
