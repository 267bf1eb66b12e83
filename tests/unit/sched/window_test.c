// SPDX-License-Identifier: Apache-2.0
// Windows: who may start on their GPUs and when, where they lie, what is told; and random ones
// against a count of every second.
#include "rig.h"

#include "base/rng.h"
#include "check.h"
#include "sched/window.h"

#include <stdio.h>

#define NODE(name, gpus)                                                                           \
	"---\n{kind: Node, metadata: {name: " name "}, status: {allocatable: {cpu: 64, pods: "     \
	"99, nvidia.com/gpu: " gpus "}}}\n"
#define POD(tenant, name, notes, gpus, more)                                                       \
	"---\n{kind: Pod, metadata: {namespace: " tenant ", name: " name ", annotations: {" notes  \
	"}}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1, "                \
	"nvidia.com/gpu: " gpus "}}}], " more "}}\n"
#define LASTS(seconds) "gpuaas.io/duration: '" seconds "'"
#define ON(node) "nodeName: " node
#define TENANT(name, windows)                                                                      \
	"---\n{kind: Tenant, metadata: {name: " name "}, spec: {windows: [" windows "]}}\n"
#define WINDOW(name, gpus, start, end)                                                             \
	"{name: " name ", gpus: " gpus ", start: '1970-01-01T00:" start                            \
	"Z', end: '1970-01-01T00:" end "Z'}, "
#define FULL(gpus, have) "InsufficientResource:1(" gpus " nvidia.com/gpu/" have " nvidia.com/gpu)"
#define KEPT(need, left, name, tenant, lasts)                                                      \
	"ReservedForWindow:1(" need "/" left " s until window " name " of " tenant                 \
	", which is " lasts " s long)"

static void test_others(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "4") TENANT("lab", WINDOW("w", "3", "01:40", "03:20")));
	rig_put(&rig, POD("x", "leaves-enough", "", "1", ""));
	CHECK_STR(c, "beside it", str_of(rig_next(&rig)), "bind leaves-enough a []");
	rig_put(&rig, POD("x", "unknown", "", "1", ""));
	CHECK_STR(c, "nobody knows how long", str_of(rig_next(&rig)),
		  "wait unknown " KEPT("an unknown time", "100", "w", "lab", "100"));
	rig_put(&rig, POD("x", "long", LASTS("101"), "1", ""));
	CHECK_STR(c, "a second too long", str_of(rig_next(&rig)),
		  "wait long " KEPT("101 s", "100", "w", "lab", "100"));
	rig_put(&rig, POD("x", "short", LASTS("100"), "1", ""));
	CHECK_STR(c, "passes the others of its shape", str_of(rig_next(&rig)), "bind short a []");
	CHECK_STR(c, "then nothing", str_of(rig_next(&rig)), "-");
	CHECK_INT(c, "wakes at its start", sched_wake_ms(rig.sched), 100000);
	rig_put(&rig, POD("lab", "own", "", "2", ""));
	CHECK_STR(c, "its tenant need not wait", str_of(rig_next(&rig)), "bind own a []");
	rig_remove_pod(&rig, "short");
	CHECK_STR(c, "what is left is the window's", str_of(rig_next(&rig)), "-");
	rig.now_ms = 100000;
	CHECK_STR(c, "it begins", str_of(rig_next(&rig)), "-");
	rig_remove_pod(&rig, "own");
	rig_put(&rig, POD("x", "shorter", LASTS("1"), "1", ""));
	CHECK_STR(c, "not now either", str_of(rig_next(&rig)),
		  "wait shorter " KEPT("1 s", "0", "w", "lab", "100"));
	CHECK_INT(c, "wakes at its end", sched_wake_ms(rig.sched), 105000);
	rig.now_ms = 200000;
	CHECK_STR(c, "over", str_of(rig_next(&rig)), "bind long a []");
	CHECK_STR(c, "all of them", str_of(rig_next(&rig)), "bind shorter a []");
	CHECK_STR(c, "the last", str_of(rig_next(&rig)), "bind unknown a []");
	rig_done(&rig);
}

static void test_taken_away(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "2") TENANT("lab", WINDOW("w", "2", "01:40", "03:20")));
	rig_put(&rig, POD("x", "p", "", "2", "") POD("lab", "q", "", "2", ""));
	CHECK_STR(c, "kept, and one shape is two", str_of(rig_next(&rig)), "bind q a []");
	rig_remove_pod(&rig, "q");
	(void)rig_next(&rig);
	rig_put(&rig, TENANT("lab", ""));
	CHECK_STR(c, "taken away", str_of(rig_next(&rig)), "bind p a []");
	rig_done(&rig);
}

static struct sched_window_row row_of(const struct rig *rig, size_t i)
{
	struct sched_window_row rows[8] = { 0 };
	(void)sched_window_rows(rig->sched, rows, ARRAY_COUNT(rows));
	return rows[i];
}

static const char *lies(struct rig *rig, size_t row)
{
	struct sched_window_part parts[8];
	struct buf out = { .limit = 256 };
	size_t count = sched_window_parts(rig->sched, row, parts, ARRAY_COUNT(parts));
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s" STR_FMT ":%lld", i > 0 ? " " : "", STR_ARG(parts[i].node),
			   (long long)parts[i].gpu_count);
	const char *text = arena_printf(rig->arena, STR_FMT, STR_ARG(buf_str(&out)));
	buf_done(&out);
	return text;
}

static void test_where(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "8") NODE("b", "8") NODE("c", "4"));
	rig_put(&rig,
		POD("x", "stays", "", "6", ON("a")) POD("x", "ends", LASTS("50"), "8", ON("b")));
	rig_put(&rig, TENANT("lab", WINDOW("w", "10", "01:40", "03:20")));
	(void)rig_next(&rig);
	CHECK_STR(c, "clear nodes, the smallest last", str_of(lies(&rig, 0)), "a:2 b:8");
	CHECK_INT(c, "nobody is in the way", row_of(&rig, 0).taken_count, 0);
	rig_put(&rig, TENANT("bio", WINDOW("v", "6", "02:00", "02:30")));
	(void)rig_next(&rig);
	CHECK_STR(c, "what is left, then what is taken", str_of(lies(&rig, 1)), "a:2 c:4");
	CHECK_INT(c, "two are taken", row_of(&rig, 1).taken_count, 2);
	CHECK(c, "nobody knows until when", row_of(&rig, 1).taken_until_ms == SCHED_NEVER_MS);
	rig_remove_pod(&rig, "ends");
	sched_node_remove(rig.sched, STR("b"));
	(void)rig_next(&rig);
	CHECK_INT(c, "moved as far as it can be", row_of(&rig, 0).held_count, 10);
	CHECK_INT(c, "the other has none any more", row_of(&rig, 1).held_count, 2);
	rig_put(&rig, NODE("b", "8"));
	(void)rig_next(&rig);
	CHECK_INT(c, "a node comes", row_of(&rig, 1).held_count, 6);
	rig.now_ms = 150000;
	(void)rig_next(&rig);
	CHECK_STR(c, "what is over lies nowhere", str_of(lies(&rig, 1)), "");
	CHECK(c, "and is over", row_of(&rig, 1).is_over && row_of(&rig, 0).has_begun);
	rig_done(&rig);
}

static void test_models(struct check *c)
{
	static const char NODES[] =
		"---\n{kind: Node, metadata: {name: a, labels: {nvidia.com/gpu.product: "
		"NVIDIA-A100-SXM4-80GB}}, status: {allocatable: {pods: 9, nvidia.com/gpu: 4}}}\n"
		"---\n{kind: Node, metadata: {name: h, labels: {nvidia.com/gpu.product: "
		"NVIDIA-H100}}, status: {allocatable: {pods: 9, nvidia.com/gpu: 8}}}\n";
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODES);
	rig_put(&rig, TENANT("lab", WINDOW("any", "8", "01:00",
					   "02:00") "{name: z, gpus: 6, model: "
						    "A100, start: '1970-01-01T00:01:30Z', "
						    "end: '1970-01-01T00:01:40Z'}"));
	(void)rig_next(&rig);
	CHECK_STR(c, "any", str_of(lies(&rig, 0)), "h:8");
	CHECK_STR(c, "the model's", str_of(lies(&rig, 1)), "a:4");
	CHECK_INT(c, "two are missing", row_of(&rig, 1).in.gpu_count - row_of(&rig, 1).held_count,
		  2);
	rig_done(&rig);
}

// Its pods are drawn to its GPUs, and who is late keeps them.
static void test_begun(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "2") NODE("b", "4"));
	rig_put(&rig, POD("x", "late", LASTS("60"), "4", ON("b")));
	rig_put(&rig, TENANT("lab", WINDOW("w", "4", "01:40", "03:20")));
	(void)rig_next(&rig);
	CHECK_STR(c, "by its own word it will have ended", str_of(lies(&rig, 0)), "b:4");
	rig.now_ms = 110000;
	rig_put(&rig, POD("lab", "own", "", "4", ""));
	CHECK_STR(c, "it has not", str_of(rig_next(&rig)),
		  "wait own InsufficientResource:1(4 nvidia.com/gpu/0 nvidia.com/gpu) "
		  "ResourceTooLarge:1(4 nvidia.com/gpu/2 nvidia.com/gpu)");
	CHECK_INT(c, "told", row_of(&rig, 0).taken_count, 2);
	CHECK_STR(c, "as much as can be lies elsewhere", str_of(lies(&rig, 0)), "a:2 b:2");
	rig_remove_pod(&rig, "late");
	CHECK_STR(c, "left", str_of(rig_next(&rig)), "bind own b []");
	rig_put(&rig, POD("lab", "more", "", "1", "") POD("x", "y", LASTS("10"), "1", ""));
	CHECK_STR(c, "the other part", str_of(rig_next(&rig)), "bind more a []");
	CHECK_INT(c, "two of b and one of a", row_of(&rig, 0).used_count, 3);
	rig_done(&rig);
}

// A head may not start before the window is over, and nobody is kept from what it cannot use.
static void test_head(struct check *c)
{
	struct sched_explanation got;
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "4") TENANT("lab", WINDOW("w", "4", "01:40", "03:20")));
	rig_put(&rig, POD("x", "head", LASTS("200"), "4", ""));
	CHECK_STR(c, "waits", str_of(rig_next(&rig)),
		  "wait head " KEPT("200 s", "100", "w", "lab", "100"));
	rig_put(&rig, POD("x", "short", LASTS("90"), "2", ""));
	CHECK_STR(c, "passes", str_of(rig_next(&rig)), "bind short a []");
	CHECK(c, "there", sched_explain(rig.sched, STR("x"), STR("head"), &got));
	CHECK_INT(c, "starts when the window is over", got.reserved_ms, 200000);
	rig.now_ms = 200000;
	rig_remove_pod(&rig, "short");
	CHECK_STR(c, "and does", str_of(rig_next(&rig)), "bind head a []");
	rig_done(&rig);
}

// In its window a tenant's pod goes before heads of others, beyond its end, too.
static void test_before_heads(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "4") TENANT("lab", WINDOW("w", "2", "01:40", "03:20")));
	rig_put(&rig, POD("bio", "there", LASTS("150"), "2", ON("a")));
	rig_put(&rig, POD("bio", "head", LASTS("500"), "4", ""));
	CHECK(c, "waits", strstr(rig_next(&rig), "wait head InsufficientResource") != NULL);
	rig_put(&rig, POD("lab", "own", LASTS("500"), "2", ""));
	CHECK_STR(c, "not yet", str_of(rig_next(&rig)), "wait own ReservedForHead:1(500 s/200 s)");
	rig.now_ms = 100000;
	CHECK_STR(c, "now", str_of(rig_next(&rig)), "bind own a []");
	rig_done(&rig);
}

static void test_gang(struct check *c)
{
#define MEMBER(tenant, name)                                                                       \
	POD(tenant, name, LASTS("200") ", gpuaas.io/gang: g, gpuaas.io/gang-min: '2'", "2", "")
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODE("a", "4") TENANT("lab", WINDOW("w", "2", "01:40", "03:20")));
	rig_put(&rig, MEMBER("x", "m-0") MEMBER("x", "m-1"));
	const char *line = rig_next(&rig);
	CHECK(c, "one member fits, two do not", strstr(line, "wait m-0 GangDoesNotFit") == line);
	(void)rig_next(&rig);
	rig_put(&rig, MEMBER("lab", "o-0") MEMBER("lab", "o-1"));
	CHECK_STR(c, "of the tenant", str_of(rig_next(&rig)), "bind o-0 a []");
	CHECK_STR(c, "both", str_of(rig_next(&rig)), "bind o-1 a []");
	rig_remove_pod(&rig, "o-0");
	rig_remove_pod(&rig, "o-1");
	rig.now_ms = 200000;
	CHECK_STR(c, "over", str_of(rig_next(&rig)), "bind m-0 a []");
	CHECK_STR(c, "all at once", str_of(rig_next(&rig)), "bind m-1 a []");
	rig_done(&rig);
#undef MEMBER
}

// ---- every second

enum { SECONDS = 40, ORACLE_NODES = 3, ORACLE_PODS = 12, ORACLE_WINDOWS = 4, ROUNDS = 400 };

struct oracle {
	struct rig rig;
	struct rng rng;
	int gpus[ORACLE_NODES];
	struct oracle_pod {
		int tenant, gpus, lasts; // lasts 0: nobody knows
		int node, until;         // node -1: it waits
	} pods[ORACLE_PODS];
	int pod_count;
};

static int any(struct oracle *o, int below) { return (int)rng_below(&o->rng, (uint64_t)below); }

static void put_all(struct oracle *o)
{
	AUTO(buf_done) struct buf out = { .limit = 16384 };
	for (int i = 0; i < ORACLE_NODES; i++) {
		o->gpus[i] = 1 + any(o, 5);
		buf_printf(&out,
			   "---\n{kind: Node, metadata: {name: n%d}, status: {allocatable: "
			   "{pods: 99, nvidia.com/gpu: %d}}}\n",
			   i, o->gpus[i]);
	}
	for (int i = 0; i < 2; i++) {
		buf_printf(&out, "---\n{kind: Tenant, metadata: {name: t%d}, spec: {windows: [", i);
		for (int k = any(o, ORACLE_WINDOWS); k > 0; k--) {
			int start = any(o, SECONDS - 2), gpus = 1 + any(o, 6);
			buf_printf(&out, "{name: w%d, gpus: %d, ", k, gpus);
			buf_printf(&out,
				   "start: '1970-01-01T00:00:%02dZ', end: "
				   "'1970-01-01T00:00:%02dZ'}, ",
				   start, start + 1 + any(o, SECONDS - start - 1));
		}
		buf_put_c(&out, "]}}\n");
	}
	buf_put_byte(&out, '\0');
	rig_put(&o->rig, buf_str(&out).data);
}

static void put_pod(struct oracle *o)
{
	char text[400];
	struct oracle_pod *pod = &o->pods[o->pod_count];
	*pod = (struct oracle_pod){ any(o, 3), 1 + any(o, 4), 1 + any(o, SECONDS), -1, 0 };
	if (any(o, 4) == 0)
		pod->lasts = 0;
	char lasts[60] = "";
	if (pod->lasts > 0)
		(void)snprintf(lasts, sizeof lasts, "gpuaas.io/duration: '%d'", pod->lasts);
	(void)snprintf(text, sizeof text,
		       "---\n{kind: Pod, metadata: {namespace: t%d, name: p%d, annotations: {%s}}, "
		       "spec: {containers: [{name: c, image: i, resources: {limits: "
		       "{nvidia.com/gpu: %d}}}]}}\n",
		       pod->tenant, o->pod_count, lasts, pod->gpus);
	o->pod_count++;
	rig_put(&o->rig, text);
}

static int used_at(const struct oracle *o, int node, int tenant, int second)
{
	int sum = 0;
	for (int i = 0; i < o->pod_count; i++) {
		const struct oracle_pod *pod = &o->pods[i];
		bool is_there = pod->node == node && (pod->lasts == 0 || second < pod->until);
		if (is_there && (tenant < 0 || pod->tenant == tenant))
			sum += pod->gpus;
	}
	return sum;
}

static int reserved_at(struct oracle *o, int node, int tenant, int second)
{
	struct sched_window_row rows[2 * ORACLE_WINDOWS];
	struct sched_window_part parts[ORACLE_NODES];
	size_t count = sched_window_rows(o->rig.sched, rows, ARRAY_COUNT(rows));
	int sum = 0;
	for (size_t i = 0; i < count; i++) {
		size_t part_count = sched_window_parts(o->rig.sched, i, parts, ARRAY_COUNT(parts));
		for (size_t k = 0; k < part_count; k++) {
			bool is_it = parts[k].node.data[1] - '0' == node &&
				     parts[k].tenant.data[1] - '0' == tenant &&
				     parts[k].start_ms <= 1000 * second &&
				     1000 * second < parts[k].end_ms;
			sum += is_it ? (int)parts[k].gpu_count : 0;
		}
	}
	return sum;
}

// By what is there already, second by second.
static bool may_start(struct oracle *o, const struct oracle_pod *pod, int node)
{
	int now = (int)(o->rig.now_ms / 1000);
	int until = pod->lasts == 0 ? SECONDS : now + pod->lasts;
	if (used_at(o, node, -1, now) + pod->gpus > o->gpus[node])
		return false;
	for (int second = now; second < until && second < SECONDS; second++) {
		int kept = 0, own = used_at(o, node, pod->tenant, second);
		for (int tenant = 0; tenant < 2; tenant++) {
			int left = reserved_at(o, node, tenant, second) -
				   used_at(o, node, tenant, second);
			kept += tenant != pod->tenant && left > 0 ? left : 0;
		}
		bool is_own = pod->tenant < 2 &&
			      own + pod->gpus <= reserved_at(o, node, pod->tenant, second);
		int all = used_at(o, node, -1, second) + pod->gpus + kept;
		if (!is_own && kept > 0 && all > o->gpus[node])
			return false;
	}
	return true;
}

static void decide_all(struct check *c, struct oracle *o)
{
	int now = (int)(o->rig.now_ms / 1000), number, node;
	for (const char *line; strcmp(line = rig_next(&o->rig), "-") != 0;) {
		if (sscanf(line, "bind p%d n%d", &number, &node) != 2)
			continue;
		struct oracle_pod *pod = &o->pods[number];
		CHECK(c, "a pod that was started may start", may_start(o, pod, node));
		pod->node = node;
		pod->until = now + pod->lasts;
	}
	for (int i = 0; i < o->pod_count; i++) {
		for (int k = 0; k < ORACLE_NODES && o->pods[i].node < 0; k++)
			CHECK(c, "a pod that waits may not start", !may_start(o, &o->pods[i], k));
	}
	CHECK(c, "sound", sched_check(o->rig.sched) == NULL);
}

// All windows find room if at no second more is asked for than there is.
static void check_plan(struct check *c, struct oracle *o)
{
	struct sched_window_row rows[2 * ORACLE_WINDOWS];
	size_t count = sched_window_rows(o->rig.sched, rows, ARRAY_COUNT(rows));
	int64_t all = o->gpus[0] + o->gpus[1] + o->gpus[2], most = 0, missing = 0;
	for (int second = 0; second < SECONDS; second++) {
		int64_t asked = 0;
		for (size_t i = 0; i < count; i++)
			asked += rows[i].in.start_s <= second && second < rows[i].in.end_s
					 ? rows[i].in.gpu_count
					 : 0;
		most = max_i64(most, asked);
		for (int node = 0; node < ORACLE_NODES; node++)
			CHECK(c, "no node is reserved twice",
			      reserved_at(o, node, 0, second) + reserved_at(o, node, 1, second) <=
				      o->gpus[node]);
	}
	for (size_t i = 0; i < count; i++)
		missing += rows[i].in.gpu_count - rows[i].held_count;
	CHECK(c, "missing if there is too little, and only then", (most > all) == (missing > 0));
}

static void end_pods(struct oracle *o)
{
	char name[16];
	for (int i = 0; i < o->pod_count; i++) {
		struct oracle_pod *pod = &o->pods[i];
		if (pod->node < 0 || pod->lasts == 0 || 1000 * pod->until != o->rig.now_ms)
			continue;
		pod->node = ORACLE_NODES; // no node
		(void)snprintf(name, sizeof name, "p%d", i);
		rig_remove_pod(&o->rig, name);
	}
}

static void test_oracle(struct check *c)
{
	for (uint64_t round = 1; round <= ROUNDS && c->failed == 0; round++) {
		struct oracle o = { .pod_count = 0 };
		rig_init(&o.rig);
		rng_init(&o.rng, round);
		sched_heads_set(o.rig.sched, 0);
		put_all(&o);
		CHECK_STR(c, "nobody is there", str_of(rig_next(&o.rig)), "-");
		check_plan(c, &o);
		for (int second = 0; second < SECONDS; second++) {
			o.rig.now_ms = 1000 * second;
			end_pods(&o);
			if (o.pod_count < ORACLE_PODS && any(&o, 2) == 0)
				put_pod(&o);
			decide_all(c, &o);
		}
		rig_done(&o.rig);
		if (c->failed > 0)
			printf("round %llu\n", (unsigned long long)round);
	}
}

int main(void)
{
	struct check c = { 0 };
	test_others(&c);
	test_taken_away(&c);
	test_where(&c);
	test_models(&c);
	test_begun(&c);
	test_head(&c);
	test_before_heads(&c);
	test_gang(&c);
	test_oracle(&c);
	return check_done(&c);
}
