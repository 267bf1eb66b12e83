// SPDX-License-Identifier: Apache-2.0
// MIG devices that are reserved for tenants: who gets them, what the others are told, what comes
// free, and random pods against a count by hand.
#include "rig.h"

#include "base/rng.h"
#include "base/yaml.h"
#include "check.h"
#include "feed/feed_slices.h"

#include <stdio.h>

#define MIG "nvidia.com/mig-1g.10gb"
#define NODE(name, count)                                                                          \
	"---\nkind: Node\nmetadata: {name: " name "}\n"                                            \
	"status: {allocatable: {cpu: 64, memory: 64Gi, pods: 110, " MIG ": " count "}}\n"

static void reserve(struct check *c, struct rig *rig, const char *yaml)
{
	AUTO(json_decrefp) json_t *policy = NULL;
	struct sched_slice *slices;
	size_t count;
	struct err err;
	CHECK_INT(c, "YAML", yaml_parse(str_of(yaml), &policy, &err), ERR_OK);
	CHECK(c, "feed", feed_slices(rig->arena, policy, &slices, &count));
	sched_slices_set(rig->sched, slices, count);
}

static void put(struct rig *rig, const char *name, const char *namespace_, int count, int priority)
{
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out,
		   "kind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: {priority: %d, "
		   "containers: [{name: main, resources: {limits: {" MIG ": %d}}}]}\n",
		   name, namespace_, priority, count);
	rig_put(rig, out.data);
}

static const char *pod(struct rig *rig, const char *name, const char *namespace_, int count)
{
	put(rig, name, namespace_, count, 0);
	return rig_next(rig);
}

static void check_who(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("n", "3"));
	reserve(c, &rig,
		"spec: {reservations: [{tenant: a, node: n, profile: 1g.10gb, count: 2}]}");
	CHECK_STR(c, "what is not reserved", str_of(pod(&rig, "b1", "b", 1)), "bind b1 n []");
	CHECK_STR(c, "reserved for others", str_of(pod(&rig, "b2", "b", 1)),
		  "wait b2 SliceReserved:1(1 " MIG "/0 " MIG ")");
	CHECK_STR(c, "its own", str_of(pod(&rig, "a1", "a", 1)), "bind a1 n []");
	CHECK_STR(c, "still one kept", str_of(pod(&rig, "d1", "d", 1)),
		  "wait d1 SliceReserved:1(1 " MIG "/0 " MIG ")");
	CHECK_STR(c, "its second", str_of(pod(&rig, "a2", "a", 1)), "bind a2 n []");
	CHECK_STR(c, "nothing is left", str_of(pod(&rig, "a3", "a", 1)),
		  "wait a3 InsufficientResource:1(1 " MIG "/0 " MIG ")");
	rig_remove_pod(&rig, "a1");
	CHECK_STR(c, "its own comes free for it alone", str_of(rig_next(&rig)), "bind a3 n []");
	rig_remove_pod(&rig, "b1");
	CHECK_STR(c, "what is not reserved comes free for others", str_of(rig_next(&rig)),
		  "bind b2 n []");
	rig_done(&rig);
}

static void check_change(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("n", "2"));
	reserve(c, &rig, "spec: {reservations: [{tenant: a, profile: 1g.10gb, count: 2}]}");
	CHECK_STR(c, "on every node", str_of(pod(&rig, "b1", "b", 1)),
		  "wait b1 SliceReserved:1(1 " MIG "/0 " MIG ")");
	reserve(c, &rig, "spec: {reservations: [{tenant: a, node: m, profile: 1g.10gb}]}");
	CHECK_STR(c, "lifted", str_of(rig_next(&rig)), "bind b1 n []");
	reserve(c, &rig,
		"spec: {reservations: [{tenant: a, node: n, profile: 1g.10gb}, {tenant: '', "
		"profile: "
		"1g.10gb}, {tenant: b, profile: x}, {tenant: b, profile: 2g.20gb, count: 5}]}");
	CHECK_STR(c, "who runs stays, the rest is kept", str_of(pod(&rig, "b2", "b", 1)),
		  "wait b2 SliceReserved:1(1 " MIG "/0 " MIG ")");
	CHECK_STR(c, "two at once", str_of(pod(&rig, "a1", "a", 2)),
		  "wait a1 InsufficientResource:1(2 " MIG "/1 " MIG ")");
	rig_remove_pod(&rig, "a1");
	CHECK_STR(c, "for its tenant", str_of(pod(&rig, "a2", "a", 1)), "bind a2 n []");
	rig_done(&rig);
}

// The next decision that is no reason for waiting.
static const char *act(struct rig *rig)
{
	const char *line = rig_next(rig);
	while (str_starts(str_of(line), STR("wait ")))
		line = rig_next(rig);
	return line;
}

// Others of a lower priority leave for it, but not those on what is reserved for them.
static void check_preemption(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	const struct sched_preempt_rules rules = { .mode = SCHED_PREEMPT_PRIORITY };
	sched_preempt_set(rig.sched, &rules);
	rig_put(&rig, NODE("n", "1"));
	reserve(c, &rig, "spec: {reservations: [{tenant: a, node: n, profile: 1g.10gb}]}");
	rig_put(&rig,
		"kind: Pod\nmetadata: {name: a1, namespace: a}\nspec: {nodeName: n, containers: "
		"[{name: main, resources: {limits: {" MIG ": 1}}}]}\n");
	put(&rig, "b1", "b", 1, 10);
	CHECK_STR(c, "none leaves for others", str_of(act(&rig)), "-");
	put(&rig, "a2", "a", 1, 10);
	CHECK_STR(c, "its own may", str_of(act(&rig)), "evict a2 n a1");
	rig_done(&rig);
}

enum { NODES = 3, EACH = 4, TENANTS = 3, PODS = 24, STEPS = 3000 };

struct books {
	int used[NODES][TENANTS], total[NODES];
	struct {
		int node, tenant, count;
		char name[16];
	} pods[PODS];
	int pod_count;
};
static const int kept[NODES][TENANTS] = { { 2, 0, 1 }, { 0, 0, 1 }, { 0, 3, 1 } };

static int room(const struct books *books, int node, int tenant)
{
	int free_count = EACH - books->total[node];
	for (int t = 0; t < TENANTS; t++) {
		int left = kept[node][t] - books->used[node][t];
		free_count -= t != tenant && left > 0 ? left : 0;
	}
	return free_count;
}

static void drop(struct rig *rig, struct books *books, int i)
{
	rig_remove_pod(rig, books->pods[i].name);
	books->used[books->pods[i].node][books->pods[i].tenant] -= books->pods[i].count;
	books->total[books->pods[i].node] -= books->pods[i].count;
	books->pods[i] = books->pods[--books->pod_count];
}

// False: another decision than the books allow.
static bool try_one(struct rig *rig, struct books *books, struct rng *rng, int step)
{
	static const char *const names[TENANTS] = { "a", "b", "d" };
	char name[16];
	int tenant = (int)rng_below(rng, TENANTS), count = 1 + (int)rng_below(rng, 2), node;
	bool fits = false;
	for (node = 0; node < NODES; node++)
		fits = fits || room(books, node, tenant) >= count;
	(void)snprintf(name, sizeof name, "p%d", step);
	const char *said = pod(rig, name, names[tenant], count);
	if (!str_starts(str_of(said), STR("bind"))) {
		rig_remove_pod(rig, name);
		return !fits;
	}
	node = strstr(said, " n0 ") != NULL ? 0 : strstr(said, " n1 ") != NULL ? 1 : 2;
	bool is_good = room(books, node, tenant) >= count;
	books->used[node][tenant] += count;
	books->total[node] += count;
	books->pods[books->pod_count].node = node;
	books->pods[books->pod_count].tenant = tenant;
	books->pods[books->pod_count].count = count;
	(void)snprintf(books->pods[books->pod_count++].name, sizeof name, "%s", name);
	return is_good;
}

static void check_random(struct check *c)
{
	struct rig rig;
	struct rng rng;
	struct books books = { 0 };
	int wrong = 0, bound = 0;
	rig_init(&rig);
	rng_init(&rng, 5);
	rig_put(&rig, NODE("n0", "4") NODE("n1", "4") NODE("n2", "4"));
	reserve(c, &rig,
		"spec: {reservations: [{tenant: a, node: n0, profile: 1g.10gb}, {tenant: d, "
		"profile: "
		"1g.10gb}, {tenant: b, node: n2, profile: 1g.10gb, count: 3}, {tenant: a, node: "
		"n0, "
		"profile: 1g.10gb}]}");
	for (int step = 0; step < STEPS; step++) {
		if (books.pod_count > 0 && rng_below(&rng, 5) < 2) {
			drop(&rig, &books, (int)rng_below(&rng, (uint64_t)books.pod_count));
			continue;
		}
		int before = books.pod_count;
		wrong += try_one(&rig, &books, &rng, step) ? 0 : 1;
		bound += books.pod_count - before;
		wrong += sched_check(rig.sched) == NULL ? 0 : 1;
	}
	CHECK_INT(c, "wrong decisions", wrong, 0);
	CHECK(c, "both were met", bound > 300 && bound < 1600);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_who(&c);
	check_change(&c);
	check_preemption(&c);
	check_random(&c);
	return check_done(&c);
}
