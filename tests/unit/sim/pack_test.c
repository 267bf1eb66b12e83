// SPDX-License-Identifier: Apache-2.0
// Lists and orders in openb's form: what is refused and how; the drawing of orders; moves; policy
// files. What a whole run must give is in tests/integration/pack_test.py.
#include "check.h"
#include "sched/policy_file.h"
#include "sim/gorand.h"
#include "sim/pack.h"

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
#define LONG                                                                                       \
	"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"        \
	"deletion_time,scheduled_time\n"

struct refusal {
	const char *name, *text, *want;
};

static struct openb_file file_of(const char *text)
{
	return (struct openb_file){ "f", str_of(text) };
}

static void check_refused(struct check *c, const struct refusal *refusal, err_status status,
			  const struct err *err)
{
	CHECK_INT(c, refusal->name, status, ERR_INVALID);
	CHECK(c, err->text, strncmp(err->text, refusal->want, strlen(refusal->want)) == 0);
}

static void test_nodes(struct check *c, struct arena *arena)
{
	static const struct refusal CASES[] = {
		{ "empty", "", "f: empty; the first line must be" },
		{ "head", "a,b\n", "f:1: the first line must be sn,cpu" },
		{ "no rows", NODES, "f:2: no nodes; add" },
		{ "few", NODES "a,1,2,3\n", "f:2: write 5 columns" },
		{ "many", NODES "a,1,2,3,T4,\n", "f:2: write 5 columns" },
		{ "no name", NODES ",1,2,3,T4\n", "f:2: give a name" },
		{ "text", NODES "a,x,2,3,T4\n", "f:2: column 2 is \"x\"; write" },
		{ "fraction", NODES "a,1.5,2,3,T4\n", "f:2: column 2 is \"1.5\"" },
		{ "NaN", NODES "a,NaN,2,3,T4\n", "f:2: column 2 is \"NaN\"" },
		{ "negative", NODES "a,-1,2,3,T4\n", "f:2: column 2 is \"-1\"" },
		{ "overflow", NODES "a,99999999999999999999,2,3,T4\n", "f:2: column 2" },
		{ "absurd", NODES "a,1,2,65,T4\n", "f:2: column 4 is \"65\"; write a whole" },
		{ "model", NODES "a,1,2,3,\n", "f:2: name the model" },
		{ "twice", NODES "b,1,2,3,T4\n\na,1,2,3,T4\nb,1,2,3,T4\n", "f:" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct openb_nodes nodes = { .count = 0 };
		struct err err = { .status = ERR_OK };
		check_refused(c, &CASES[i],
			      openb_nodes_parse(arena, file_of(CASES[i].text), &nodes, &err), &err);
		CHECK(c, "untouched", nodes.items == NULL);
	}
}

static void test_pods(struct check *c, struct arena *arena)
{
	static const struct refusal CASES[] = {
		{ "head", NODES, "f:1: the first line must be name," },
		{ "columns", LONG "a,1,2,1,1000\n", "f:2: write 11 columns" },
		{ "share of 0", PODS "a,1,2,1,0\n", "f:2: give both num_gpu and gpu_milli" },
		{ "share of none", PODS "a,1,2,0,10\n", "f:2: give both" },
		{ "more than one", PODS "a,1,2,1,1001\n", "f:2: column 5 is \"1001\"" },
		{ "two halves", PODS "a,1,2,2,500\n", "f:2: gpu_milli must be 1000" },
		{ "twice", PODS "a,1,2,1,500\na,1,2,1,500\n", "f:" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct openb_pods pods = { .count = 0 };
		struct err err = { .status = ERR_OK };
		check_refused(c, &CASES[i],
			      openb_pods_parse(arena, file_of(CASES[i].text), &pods, &err), &err);
	}
}

static void test_orders(struct check *c, struct arena *arena)
{
	struct err err = { .status = ERR_OK };
	struct openb_pods pods;
	struct openb_order order;
	uint32_t *ranks = NULL;
	CHECK_INT(c, "long form",
		  openb_pods_parse(arena,
				   file_of(LONG "b,1,2,1,500,T4|A10,LS,Running,0,1,0\r\n"
						"a,1,2,0,0,,LS,Running,0,1,0\n"),
				   &pods, &err),
		  ERR_OK);
	CHECK_STR(c, "sorted", pods.items[0].name, "a");
	CHECK_STR(c, "models", pods.items[1].models, "T4|A10");
	CHECK_INT(c, "order", openb_order_parse(arena, file_of("b\na\nb\n"), &pods, &order, &err),
		  ERR_OK);
	CHECK(c, "indices", order.count == 3 && order.pods[0] == 1 && order.pods[1] == 0);
	CHECK_INT(c, "unknown", openb_order_parse(arena, file_of("b\nc\n"), &pods, &order, &err),
		  ERR_INVALID);
	CHECK_STR(c, "unknown", str_of(err.text), "f:2: the list of pods has no pod of this name");
	static const char *const BAD[] = { "", "0\n", "0\n0\n", "0\n2\n", "0\n1\n0\n", "0\nx\n" };
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++)
		CHECK_INT(c, BAD[i], openb_ranks_parse(arena, file_of(BAD[i]), 2, &ranks, &err),
			  ERR_INVALID);
	CHECK_INT(c, "ranks", openb_ranks_parse(arena, file_of("1\n0\n"), 2, &ranks, &err), ERR_OK);
}

// First numbers of Go's rand.New(rand.NewSource(seed)).
static void test_gorand(struct check *c)
{
	struct gorand rand;
	gorand_init(&rand, 42);
	CHECK_INT(c, "seed 42", gorand_int63(&rand), INT64_C(3440579354231278675));
	CHECK_INT(c, "seed 42", gorand_int63(&rand), INT64_C(608747136543856411));
	gorand_init(&rand, 0);
	CHECK_INT(c, "seed 0", gorand_int63(&rand), INT64_C(8717895732742165505));
	gorand_init(&rand, -5);
	uint32_t values[10], seen = 0;
	gorand_perm(&rand, values, 10);
	for (size_t i = 0; i < 10; i++)
		seen |= UINT32_C(1) << values[i];
	CHECK_INT(c, "a permutation", seen, 0x3ff);
}

// Two nodes of two GPUs; the plain pod sits on the only GPU model that the second one may use.
static void test_moves(struct check *c, struct arena *arena)
{
	struct err err = { .status = ERR_OK };
	struct openb_nodes nodes;
	struct openb_pods pods;
	struct pack_case pack_case;
	static struct pack_result result;
	uint32_t arrivals[] = { 0, 1 }, ranks[] = { 0, 1 };
	const struct openb_order order = { arrivals, 2, ranks };
	struct pack_options options = { .policy = { .is_level = true } };
	CHECK_INT(c, "nodes",
		  openb_nodes_parse(arena, file_of(NODES "n1,8000,64,2,A\nn2,8000,64,2,B\n"),
				    &nodes, &err),
		  ERR_OK);
	CHECK_INT(c, "pods",
		  openb_pods_parse(arena,
				   file_of(LONG "p1,1000,1,1,1000,,LS,Running,0,1,0\n"
						"p2,1000,1,2,1000,A,LS,Running,0,1,0\n"),
				   &pods, &err),
		  ERR_OK);
	CHECK_INT(c, "case", pack_case_init(arena, nodes, pods, &pack_case, &err), ERR_OK);
	pack_run(&pack_case, &order, &options, &result);
	uint64_t failed = result.failures[PACK_FEW];
	CHECK_INT(c, "the pod of two fails only where it was blocked", failed,
		  result.curve[75].allocated_pct < 50 ? 1 : 0);
	options.moves = 1;
	pack_run(&pack_case, &order, &options, &result);
	CHECK(c, "paced: no move before enough has been placed", result.moved == 0);
}

static void test_policy_files(struct check *c)
{
	static const struct {
		const char *text;
		err_status status;
	} CASES[] = {
		{ "base: default\n", ERR_OK },
		{ "weights: {one: {frag: 5, scarce: -3}}\n", ERR_OK },
		{ "base: best\n", ERR_INVALID },
		{ "wights: {}\n", ERR_INVALID },
		{ "base: fgd\n", ERR_OK },
		{ "base: fgd\nweights: {one: {frag: 5}}\n", ERR_INVALID },
		{ "weights: {big: {frag: 5}}\n", ERR_INVALID },
		{ "weights: {one: {fragment: 5}}\n", ERR_INVALID },
		{ "weights: {one: {frag: 5.5}}\n", ERR_INVALID },
		{ "weights: {one: {frag: 1000001}}\n", ERR_INVALID },
		{ "weights: {one: 5}\n", ERR_INVALID },
		{ "weights: 5\n", ERR_INVALID },
		{ "[]\n", ERR_INVALID },
	};
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct score_policy policy;
		struct err err = { .status = ERR_OK };
		CHECK_INT(c, CASES[i].text, policy_file_parse(str_of(CASES[i].text), &policy, &err),
			  CASES[i].status);
	}
	struct score_policy policy, again;
	struct err err;
	AUTO(buf_done) struct buf text = { .limit = 1 << 16 };
	CHECK(c, "default", score_policy_find(STR("default"), &policy));
	policy_file_format(&policy, &text);
	CHECK_INT(c, "what is written", policy_file_parse(buf_str(&text), &again, &err), ERR_OK);
	CHECK(c, "is read", memcmp(&policy, &again, sizeof policy) == 0);
}

int main(void)
{
	struct check c = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(64 << 20);
	test_nodes(&c, arena);
	test_pods(&c, arena);
	test_orders(&c, arena);
	test_gorand(&c);
	test_moves(&c, arena);
	test_policy_files(&c);
	return check_done(&c);
}
