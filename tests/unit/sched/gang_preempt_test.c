// SPDX-License-Identifier: Apache-2.0
// Gangs for which others leave: cases, then the core against all sets of victims on small clusters
// drawn at random: a gang gets room exactly if it would fit without all that stand below it, and
// of all sets that suffice the one is asked to leave that spares the most of the dearest. With
// --seeds N so many clusters are drawn.
#include "rig.h"

#include "base/rng.h"
#include "check.h"

#include <stdio.h>

enum { NODES_MAX = 3, GPUS_MAX = 4, VICTIMS_MAX = 8, MEMBERS_MAX = 3, CASES = 1500 };

static const struct sched_preempt_rules PRIORITY = { .mode = SCHED_PREEMPT_PRIORITY };

static void begin(struct rig *rig, const struct sched_preempt_rules *rules)
{
	rig_init(rig);
	sched_preempt_set(rig->sched, rules);
	rig->now_ms = 1000000;
	(void)rig_next(rig);
}

static void put_node(struct rig *rig, const char *name, int gpus, int rack)
{
	rig_putf(rig,
		 "{kind: Node, metadata: {name: %s, labels: {rack: r%d}}, status: {allocatable: "
		 "{cpu: "
		 "64, pods: 20, nvidia.com/gpu: %d}}}\n",
		 name, rack, gpus);
}

static void put_running(struct rig *rig, const char *name, int priority, int gpus, const char *node)
{
	rig_putf(rig,
		 "{kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {nodeName: %s, "
		 "priority: "
		 "%d, containers: [{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}, status: "
		 "{conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: "
		 "'1970-01-01T00:01:40Z'}]}}\n",
		 name, name, node, priority, gpus);
}

static void put_member(struct rig *rig, const char *name, int gpus, const char *notes)
{
	rig_putf(rig,
		 "{kind: Pod, metadata: {name: %s, annotations: {gpuaas.io/gang: g, %s}}, spec: "
		 "{priority: 5, containers: [{name: c, resources: {limits: {nvidia.com/gpu: "
		 "%d}}}]}}\n",
		 name, notes, gpus);
}

// Next decision that is no reason for waiting.
static const char *act(struct rig *rig)
{
	const char *line = rig_next(rig);
	while (strncmp(line, "wait ", 5) == 0)
		line = rig_next(rig);
	return line;
}

#define ACT(c, name, rig, wanted) CHECK_STR(c, name, str_of(act(rig)), wanted)
#define MIN(n) "gpuaas.io/gang-min: '" n "'"

// Two nodes at once, each kept until the last victim has left; then all start.
static void check_two_nodes(struct check *c)
{
	struct rig rig;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 4, 0);
	put_node(&rig, "b", 4, 0);
	put_node(&rig, "d", 4, 0);
	put_running(&rig, "cheap", 0, 4, "a");
	put_running(&rig, "equal", 5, 4, "b");
	put_running(&rig, "half", 1, 2, "d");
	put_member(&rig, "m1", 4, MIN("2"));
	put_member(&rig, "m2", 4, MIN("2"));
	ACT(c, "the cheapest two", &rig, "evict m1 a half,cheap");
	CHECK_STR(c, "where it is", rig.decision.victims[1].node, "a");
	ACT(c, "its mate's node", &rig, "nominate m2 d");
	ACT(c, "nothing more", &rig, "-");
	rig_putf(&rig,
		 "{kind: Pod, metadata: {name: small}, spec: {priority: 5, containers: [{name: c, "
		 "resources: {limits: {nvidia.com/gpu: 2}}}]}}\n");
	rig_remove_pod(&rig, "half");
	ACT(c, "an equal one does not get what is kept", &rig, "-");
	rig.now_ms += 6000;
	ACT(c, "it is kept on", &rig, "-");
	rig_remove_pod(&rig, "cheap");
	ACT(c, "all start", &rig, "bind m1 a []");
	ACT(c, "all start", &rig, "bind m2 d []");
	rig_done(&rig);
}

// All or none: one of the two nodes is out of reach.
static void check_all_or_none(struct check *c)
{
	struct rig rig;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 4, 0);
	put_node(&rig, "b", 4, 0);
	put_running(&rig, "low", 0, 4, "a");
	put_running(&rig, "equal", 5, 1, "b");
	put_member(&rig, "m1", 4, MIN("2"));
	put_member(&rig, "m2", 4, MIN("2"));
	ACT(c, "nobody leaves", &rig, "-");
	rig.now_ms += 60000;
	ACT(c, "nor later", &rig, "-");
	rig_remove_pod(&rig, "equal");
	ACT(c, "now it helps", &rig, "evict m1 a low");
	ACT(c, "its mate's", &rig, "nominate m2 b");
	rig_done(&rig);
}

// One refusal ends it for all; the members lose all nodes, and ask again later.
static void check_refused(struct check *c)
{
	struct rig rig;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 2, 0);
	put_node(&rig, "b", 2, 0);
	put_running(&rig, "v", 0, 2, "a");
	put_running(&rig, "w", 0, 2, "b");
	put_member(&rig, "m1", 2, MIN("2"));
	put_member(&rig, "m2", 2, MIN("2"));
	ACT(c, "both", &rig, "evict m1 a v,w");
	ACT(c, "its mate's", &rig, "nominate m2 b");
	sched_evict_failed(rig.sched, STR("w"), rig.now_ms);
	ACT(c, "one gives up", &rig, "nominate m1 ");
	ACT(c, "and so does the other", &rig, "nominate m2 ");
	ACT(c, "nothing more", &rig, "-");
	rig.now_ms += 31000;
	ACT(c, "again", &rig, "evict m1 a w");
	rig_done(&rig);
}

static void put_budget(struct rig *rig, int64_t allowed)
{
	struct sched_requirement item = { STR("app"), SCHED_EXISTS, NULL, 0 };
	struct sched_budget budget = { .key = STR("default/b"),
				       .namespace_ = STR("default"),
				       .selector = { &item, 1, false },
				       .allowed = allowed };
	sched_budget_set(rig->sched, &budget);
}

// A budget, a rate and a minimum run time hold for all victims together.
static void check_rules(struct check *c)
{
	struct rig rig;
	struct sched_preempt_rules rules = PRIORITY;
	rules.evictions_per_minute = 3;
	begin(&rig, &rules);
	put_node(&rig, "a", 2, 0);
	put_node(&rig, "b", 2, 0);
	put_running(&rig, "v", 0, 2, "a");
	put_running(&rig, "w", 0, 2, "b");
	put_budget(&rig, 1);
	put_member(&rig, "m1", 2, MIN("2"));
	put_member(&rig, "m2", 2, MIN("2"));
	ACT(c, "one is not enough", &rig, "-");
	put_budget(&rig, 2);
	rig.now_ms += 1000;
	ACT(c, "two are", &rig, "evict m1 a v,w");
	ACT(c, "its mate's", &rig, "nominate m2 b");
	put_node(&rig, "d", 1, 0);
	put_node(&rig, "e", 1, 0);
	put_running(&rig, "x", 0, 1, "d");
	put_running(&rig, "y", 0, 1, "e");
	rig_putf(&rig, "{kind: Pod, metadata: {name: n1, annotations: {gpuaas.io/gang: h, "
		       "gpuaas.io/gang-min: '2'}}, spec: {priority: 5, containers: [{name: c, "
		       "resources: {limits: {nvidia.com/gpu: 1}}}]}}\n---\n"
		       "{kind: Pod, metadata: {name: n2, annotations: {gpuaas.io/gang: h, "
		       "gpuaas.io/gang-min: '2'}}, spec: {priority: 5, containers: [{name: c, "
		       "resources: {limits: {nvidia.com/gpu: 1}}}]}}\n");
	put_budget(&rig, 9);
	ACT(c, "three a minute", &rig, "-");
	rig.now_ms += 21000;
	ACT(c, "when both may go", &rig, "evict n1 d x,y");
	ACT(c, "its mate's", &rig, "nominate n2 e");
	rig_done(&rig);
}

// A whole gang for a whole gang, and one rack for all of it.
static void check_racks(struct check *c)
{
	static const char ONE_RACK[] = MIN("2") ", gpuaas.io/topology: rack";
	struct rig rig;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 2, 0);
	put_node(&rig, "b", 2, 0);
	put_node(&rig, "d", 2, 1);
	put_node(&rig, "e", 2, 1);
	put_running(&rig, "v", 0, 2, "a");
	put_running(&rig, "w", 3, 2, "b");
	put_running(&rig, "x", 1, 2, "d");
	put_running(&rig, "y", 2, 2, "e");
	put_member(&rig, "m1", 2, ONE_RACK);
	put_member(&rig, "m2", 2, ONE_RACK);
	ACT(c, "the rack whose dearest is cheapest", &rig, "evict m1 d y,x");
	ACT(c, "its mate's", &rig, "nominate m2 e");
	rig_done(&rig);
}

// A pod like a member does not make one of them start, and a member is not taken for a pod alone.
static void check_alike(struct check *c)
{
	struct rig rig;
	struct sched_explanation why;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 2, 0);
	put_node(&rig, "b", 2, 0);
	put_running(&rig, "v", 0, 2, "a");
	put_running(&rig, "w", 0, 2, "b");
	put_member(&rig, "m1", 2, MIN("2"));
	put_member(&rig, "m2", 2, MIN("2"));
	ACT(c, "both", &rig, "evict m1 a v,w");
	ACT(c, "its mate's", &rig, "nominate m2 b");
	rig_putf(&rig,
		 "{kind: Pod, metadata: {name: z}, spec: {priority: 5, containers: [{name: c, "
		 "resources: {limits: {nvidia.com/gpu: 2}}}]}}\n");
	rig_remove_pod(&rig, "v");
	ACT(c, "nobody starts", &rig, "-");
	CHECK(c, "told", sched_explain(rig.sched, STR("default"), STR("m2"), &why));
	bool waits = false;
	for (size_t i = 0; i < why.facts.count; i++)
		waits = waits || why.facts.items[i].code == SCHED_CODE_PREEMPTING;
	CHECK(c, "for others to end", waits);
	rig_remove_pod(&rig, "w");
	ACT(c, "all start", &rig, "bind m1 a []");
	ACT(c, "all start", &rig, "bind m2 b []");
	rig_done(&rig);
}

// More pods than are looked at one by one: the four nodes where nobody is above the lowest.
static void check_large(struct check *c)
{
	enum { NODES = 80, GPUS = 8 };
	struct rig rig;
	char name[16], node[8];
	begin(&rig, &PRIORITY);
	for (int n = 0; n < NODES; n++) {
		(void)snprintf(node, sizeof node, "n%02d", n);
		put_node(&rig, node, GPUS, 0);
		for (int i = 0; i < GPUS; i++) {
			(void)snprintf(name, sizeof name, "v%02d%d", n, i);
			put_running(&rig, name, i > 2 && n % 20 != 7, 1, node);
		}
	}
	for (int i = 0; i < 4; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		put_member(&rig, name, GPUS, MIN("4"));
	}
	CHECK(c, "evicts", strncmp(act(&rig), "evict m0 n07 ", 13) == 0);
	CHECK_INT(c, "all of four nodes", (int64_t)rig.decision.victim_count, 4 * GPUS);
	for (size_t i = 0; i < rig.decision.victim_count; i++)
		CHECK(c, "of the cheapest", rig.decision.victims[i].node.data[2] == '7');
	ACT(c, "and so on", &rig, "nominate m1 n27");
	ACT(c, "and so on", &rig, "nominate m2 n47");
	ACT(c, "and so on", &rig, "nominate m3 n67");
	rig_done(&rig);
}

static void put_tenant(struct rig *rig, const char *name, int guaranteed)
{
	rig_putf(rig, "{kind: Tenant, metadata: {name: %s}, spec: {queue: {guaranteed: %d}}}\n",
		 name, guaranteed);
}

#define OF(tenant, name, notes, more, gpus)                                                        \
	"---\n{kind: Pod, metadata: {name: " name ", namespace: " tenant ", annotations: {" notes  \
	"}}, spec: {" more " containers: [{name: c, resources: {limits: {nvidia.com/gpu: " gpus    \
	"}}}]}}\n"
#define GUEST(name, node, gpus) OF("guest", name, "", "priority: 9, nodeName: " node ",", gpus)
#define OWN(name, min) OF("own", name, "gpuaas.io/gang: g, " MIN(min), "priority: 0,", "2")

// A tenant below its guarantee takes it back for a gang, whatever the priorities; never more.
static void check_reclaim(struct check *c)
{
	struct rig rig;
	begin(&rig, &PRIORITY);
	put_node(&rig, "a", 4, 0);
	put_node(&rig, "b", 4, 0);
	put_tenant(&rig, "own", 4);
	put_tenant(&rig, "guest", 2);
	rig_put(&rig, GUEST("g1", "a", "4") GUEST("g2", "b", "2") GUEST("g3", "b", "2"));
	rig_put(&rig, OWN("m1", "3") OWN("m2", "3") OWN("m3", "3"));
	ACT(c, "six are more than its own", &rig, "-");
	rig_remove_pod(&rig, "m3");
	rig_put(&rig, OWN("m1", "2") OWN("m2", "2"));
	rig.now_ms += 60000;
	ACT(c, "four are its own", &rig, "evict m1 b g2,g3");
	CHECK(c, "reclaimed", rig.decision.victims[0].is_reclaimed);
	ACT(c, "its mate's", &rig, "nominate m2 b");
	rig_put(&rig, OF("guest", "again", "", "priority: 9,", "2"));
	rig_remove_pod(&rig, "g2");
	ACT(c, "the guest does not get it", &rig, "-");
	rig_remove_pod(&rig, "g3");
	ACT(c, "it starts", &rig, "bind m1 b []");
	ACT(c, "it starts", &rig, "bind m2 b []");
	rig_done(&rig);
}

// ---- against all sets

struct victim {
	int priority, gpus, node;
};
struct draw {
	int gpus[NODES_MAX], racks[NODES_MAX], asks[MEMBERS_MAX];
	struct victim victims[VICTIMS_MAX];
	int node_count, victim_count, ask_count, min;
	bool is_one_rack;
};

static void draw_victims(struct rng *rng, struct draw *draw)
{
	for (int n = 0; n < draw->node_count; n++) {
		int left = draw->gpus[n] - (int)rng_below(rng, 2);
		while (left > 0 && draw->victim_count < VICTIMS_MAX) {
			struct victim *victim = &draw->victims[draw->victim_count++];
			victim->priority = (int)rng_below(rng, 7);
			victim->gpus = 1 + (int)rng_below(rng, (uint64_t)left);
			victim->node = n;
			left -= victim->gpus;
		}
	}
}

static void draw_case(struct rng *rng, struct draw *ret)
{
	*ret = (struct draw){ .node_count = 1 + (int)rng_below(rng, NODES_MAX) };
	ret->ask_count = 1 + (int)rng_below(rng, MEMBERS_MAX);
	ret->is_one_rack = rng_below(rng, 3) == 0;
	for (int n = 0; n < ret->node_count; n++) {
		ret->gpus[n] = 1 + (int)rng_below(rng, GPUS_MAX);
		ret->racks[n] = (int)rng_below(rng, 2);
	}
	for (int i = 0; i < ret->ask_count; i++)
		ret->asks[i] = 1 + (int)rng_below(rng, GPUS_MAX);
	bool is_elastic = rng_below(rng, 3) == 0;
	ret->min = is_elastic ? 1 + (int)rng_below(rng, (uint64_t)ret->ask_count) : ret->ask_count;
	draw_victims(rng, ret);
}

static bool place_from(const struct draw *draw, int free[NODES_MAX], int i, int placed, int rack)
{
	if (placed == draw->min)
		return true;
	if (i == draw->ask_count)
		return false;
	for (int n = 0; n < draw->node_count; n++) {
		bool is_far = draw->is_one_rack && rack >= 0 && draw->racks[n] != rack;
		if (is_far || free[n] < draw->asks[i])
			continue;
		free[n] -= draw->asks[i];
		bool fits = place_from(draw, free, i + 1, placed + 1, draw->racks[n]);
		free[n] += draw->asks[i];
		if (fits)
			return true;
	}
	return place_from(draw, free, i + 1, placed, rack);
}

static bool fits_without(const struct draw *draw, unsigned gone)
{
	int free[NODES_MAX];
	memcpy(free, draw->gpus, sizeof free);
	for (int i = 0; i < draw->victim_count; i++) {
		if ((gone >> i & 1) == 0)
			free[draw->victims[i].node] -= draw->victims[i].gpus;
	}
	return place_from(draw, free, 0, 0, -1);
}

// Dearer is who has the higher priority, has lost more (by GPUs, all began at once), came first.
static bool is_dearer(const struct draw *draw, int a, int b)
{
	const struct victim *x = &draw->victims[a], *y = &draw->victims[b];
	if (x->priority != y->priority)
		return x->priority > y->priority;
	return x->gpus != y->gpus ? x->gpus > y->gpus : a < b;
}

// Of the sets that suffice the one that spares the dearest, then the next, and so on.
static unsigned best_set(const struct draw *draw, unsigned lower)
{
	unsigned gone = lower;
	int order[VICTIMS_MAX];
	for (int i = 0; i < draw->victim_count; i++) {
		int k = i;
		for (; k > 0 && is_dearer(draw, i, order[k - 1]); k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	for (int i = 0; i < draw->victim_count; i++) {
		unsigned bit = 1U << order[i];
		bool can_stay = false; // with some of the cheaper ones gone
		for (unsigned set = 0; set < 1U << draw->victim_count && !can_stay; set++)
			can_stay = (set & ~gone) == 0 && (set & bit) == 0 &&
				   fits_without(draw, set);
		if ((gone & bit) != 0 && can_stay)
			gone &= ~bit;
	}
	return gone;
}

static void tell(struct rig *rig, const struct draw *draw)
{
	char name[16], node[16], notes[96];
	for (int n = 0; n < draw->node_count; n++) {
		(void)snprintf(node, sizeof node, "n%d", n);
		put_node(rig, node, draw->gpus[n], draw->racks[n]);
	}
	for (int i = 0; i < draw->victim_count; i++) {
		(void)snprintf(name, sizeof name, "v%d", i);
		(void)snprintf(node, sizeof node, "n%d", draw->victims[i].node);
		put_running(rig, name, draw->victims[i].priority, draw->victims[i].gpus, node);
	}
	(void)snprintf(notes, sizeof notes, "gpuaas.io/gang-min: '%d'%s", draw->min,
		       draw->is_one_rack ? ", gpuaas.io/topology: rack" : "");
	for (int i = 0; i < draw->ask_count; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		put_member(rig, name, draw->asks[i], notes);
	}
}

static unsigned told_set(const struct rig *rig)
{
	unsigned set = 0;
	for (size_t i = 0; i < rig->decision.victim_count; i++)
		set |= 1U << (rig->decision.victims[i].name.data[1] - '0');
	return set;
}

// When the victims have left, it starts; at least as many as it needs.
static int count_starts(struct rig *rig, const struct draw *draw, unsigned told)
{
	char name[16];
	int binds = 0;
	while (strncmp(act(rig), "nominate", 8) == 0)
		;
	for (int i = 0; i < draw->victim_count; i++) {
		(void)snprintf(name, sizeof name, "v%d", i);
		if ((told >> i & 1) != 0)
			rig_remove_pod(rig, name);
	}
	while (strncmp(act(rig), "bind", 4) == 0)
		binds++;
	return binds;
}

static void run_case(struct check *c, uint64_t seed, int *ret_evicted)
{
	struct rng rng;
	struct draw draw;
	struct rig rig;
	char name[96];
	unsigned lower = 0;
	rng_init(&rng, seed);
	draw_case(&rng, &draw);
	for (int i = 0; i < draw.victim_count; i++)
		lower |= draw.victims[i].priority < 5 ? 1U << i : 0;
	bool fits_now = fits_without(&draw, 0);
	bool is_needed = !fits_now && fits_without(&draw, lower);
	begin(&rig, &PRIORITY);
	tell(&rig, &draw);
	const char *line = act(&rig);
	bool is_told = strncmp(line, "evict", 5) == 0;
	(void)snprintf(name, sizeof name, "seed %llu: %.40s", (unsigned long long)seed, line);
	CHECK(c, name, is_told == is_needed);
	if (is_told) {
		unsigned told = told_set(&rig);
		CHECK_INT(c, name, told, best_set(&draw, lower));
		CHECK(c, name, count_starts(&rig, &draw, told) >= draw.min);
	}
	*ret_evicted += is_told;
	rig_done(&rig);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	int64_t cases = CASES;
	int evicted = 0;
	if (argc == 3 && !str_to_i64(str_of(argv[2]), &cases))
		return 2;
	check_two_nodes(&c);
	check_all_or_none(&c);
	check_refused(&c);
	check_rules(&c);
	check_racks(&c);
	check_alike(&c);
	check_large(&c);
	check_reclaim(&c);
	for (int64_t i = 0; i < cases; i++)
		run_case(&c, (uint64_t)i, &evicted);
	CHECK(&c, "some evict and some do not", evicted > 0 && evicted < cases);
	return check_done(&c);
}
