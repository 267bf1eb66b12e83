// SPDX-License-Identifier: Apache-2.0
// Pods that ask for shares of GPUs: which device they get, why they wait, what is given back, and
// random pods against a count by hand.
#include "rig.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#define NODE(name, more)                                                                           \
	"---\nkind: Node\nmetadata: {name: " name "}\n"                                            \
	"status: {allocatable: {cpu: 64, memory: 64Gi, pods: 110" more "}}\n"
#define SHARES(milli, memory) ", gpuaas.io/gpu-milli: " milli ", gpuaas.io/gpu-memory: " memory
#define GPU(no, more)                                                                              \
	"{uuid: GPU-" no ", index: " no ", healthy: true, model: A100, memoryMiB: 81920" more "}"
#define SHARED(no) GPU(no, ", milli: 1000")
#define DEVICES(name, list)                                                                        \
	"---\nkind: GPUNode\nmetadata: {name: " name "}\nstatus: {devices: [" list "]}\n"
#define TWO NODE("n", SHARES("2000", "640")) DEVICES("n", SHARED("0") ", " SHARED("1"))

static const char *pod(struct rig *rig, const char *name, const char *limits)
{
	AUTO(buf_done) struct buf out = { 0 };
	buf_printf(&out,
		   "kind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main, resources: "
		   "{limits: {%s}}}]}\n",
		   name, limits);
	rig_put(rig, out.data);
	return rig_next(rig);
}

#define MILLI(n) "gpuaas.io/gpu-milli: " n
#define MEMORY(n) "gpuaas.io/gpu-memory: " n

static void check_fit(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, TWO);
	CHECK_STR(c, "first", str_of(pod(&rig, "a", MILLI("600"))), "bind a n [0:600/49152]");
	CHECK_STR(c, "does not fit there", str_of(pod(&rig, "b", MILLI("500"))),
		  "bind b n [1:500/40960]");
	CHECK_STR(c, "fills the fuller", str_of(pod(&rig, "c", MILLI("300"))),
		  "bind c n [0:300/24576]");
	CHECK_STR(c, "by memory", str_of(pod(&rig, "d", MEMORY("32"))), "bind d n [0:100/8192]");
	CHECK_STR(c, "enough in sum, not of one", str_of(pod(&rig, "e", MILLI("501"))),
		  "wait e GpuShareUnavailable:1(501 milli of one GPU/500 milli of one GPU)");
	CHECK_STR(c, "memory", str_of(pod(&rig, "f", MEMORY("161"))),
		  "wait f GpuShareUnavailable:1(41216 MiB of one GPU/40960 MiB of one GPU)");
	CHECK_STR(c, "more than all", str_of(pod(&rig, "g", MEMORY("700"))),
		  "wait g ResourceTooLarge:1(700 gpuaas.io/gpu-memory/640 gpuaas.io/gpu-memory)");
	rig_remove_pod(&rig, "b");
	CHECK_STR(c, "given back", str_of(rig_next(&rig)), "bind e n [1:501/41041]");
	rig_done(&rig);
}

static const struct {
	const char *name, *objects, *pod, *want;
} CASES[] = {
	{ "both by one container", TWO,
	  "{name: main, resources: {limits: {" MILLI("100") ", " MEMORY("160") "}}}",
	  "bind p n [0:100/0,0:0/40960]" },
	{ "two containers, one device", TWO,
	  "{name: a, resources: {limits: {" MILLI(
		  "400") "}}}, {name: b, resources: {limits: {" MILLI("600") "}}}",
	  "bind p n [0:400/32768,0:600/49152]" },
	{ "two containers, two devices", TWO,
	  "{name: a, resources: {limits: {" MILLI(
		  "500") "}}}, {name: b, resources: {limits: {" MILLI("600") "}}}",
	  "bind p n [1:500/40960,0:600/49152]" },
	{ "the larger first", TWO,
	  "{name: a, resources: {limits: {" MILLI(
		  "600") "}}}, {name: b, resources: {limits: {" MILLI("700") "}}}, {name: c, "
									     "resources: {limits: "
									     "{" MILLI("400") "}}}",
	  "bind p n [1:600/49152,0:700/57344,1:400/32768]" },
	{ "not of a GPU that is given whole",
	  NODE("n", ", nvidia.com/gpu: 1" SHARES("1000", "320"))
		  DEVICES("n", GPU("0", "") ", " SHARED("1")),
	  "{name: main, resources: {limits: {" MILLI("100") "}}}", "bind p n [1:100/8192]" },
	{ "whole, not of one that is shared",
	  NODE("n", ", nvidia.com/gpu: 2" SHARES("1000", "320"))
		  DEVICES("n", SHARED("0") ", " GPU("1", "")),
	  "{name: main, resources: {limits: {nvidia.com/gpu: 2}}}",
	  "wait p DeviceUnavailable:1(2 GPUs/1 GPUs)" },
	{ "not of an ill one",
	  NODE("n", SHARES("2000", "640")) DEVICES(
		  "n",
		  "{uuid: GPU-0, index: 0, healthy: false, milli: 1000, memoryMiB: 81920}, " SHARED(
			  "1")),
	  "{name: main, resources: {limits: {" MILLI("100") "}}}", "bind p n [1:100/8192]" },
	{ "a node whose devices nobody names", NODE("n", SHARES("1000", "320")),
	  "{name: main, resources: {limits: {" MILLI("100") "}}}",
	  "wait p GpuShareUnavailable:1(100 milli of one GPU/0 milli of one GPU)" },
	{ "the fuller node",
	  NODE("n", SHARES("1000", "320")) DEVICES("n", SHARED("0")) NODE("o", SHARES("1000", "90"))
		  DEVICES("o", "{uuid: GPU-9, index: 0, healthy: true, milli: 1000, memoryMiB: "
			       "23040}"),
	  "{name: main, resources: {limits: {" MEMORY("60") "}}}", "bind p o [0:666/15360]" },
	{ "of two GPUs is no share", TWO, "{name: main, resources: {limits: {" MILLI("1001") "}}}",
	  "refuse p InvalidQuantity:0(1001 of gpuaas.io/gpu-milli: a share is of one GPU, at most "
	  "1000/)" },
	{ "whole and shared", TWO,
	  "{name: main, resources: {limits: {" MILLI("100") ", nvidia.com/gpu: 1}}}",
	  "refuse p UnsupportedValue:0(whole GPUs and shares of GPUs in one pod/)" },
};

static void check_cases(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		AUTO(buf_done) struct buf out = { 0 };
		rig_init(&rig);
		rig_put(&rig, CASES[i].objects);
		buf_printf(&out, "kind: Pod\nmetadata: {name: p}\nspec: {containers: [%s]}\n",
			   CASES[i].pod);
		rig_put(&rig, out.data);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), CASES[i].want);
		rig_done(&rig);
	}
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, TWO "---\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}], "
			  "initContainers: [{name: i, resources: {limits: {" MILLI("5") "}}}]}\n");
	CHECK_STR(c, "init container", str_of(rig_next(&rig)),
		  "refuse p UnsupportedValue:0(a share of a GPU in the init container i/)");
	rig_done(&rig);
}

// What was planned before this scheduler began, and a device that is away for a while.
static void check_adoption(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig,
		TWO "---\nkind: Pod\nmetadata: {name: old, annotations: {gpuaas.io/devices: "
		    "'[{\"container\":\"main\",\"resource\":\"gpuaas.io/gpu-milli\",\"uuid\":"
		    "\"GPU-1\",\"milli\":700,\"memory_mib\":57344}]'}}\n"
		    "spec: {nodeName: n, containers: [{name: main, resources: {limits: {" MILLI(
			    "700") "}}}]}\n");
	CHECK_STR(c, "beside it", str_of(pod(&rig, "a", MILLI("300"))), "bind a n [1:300/24576]");
	CHECK_STR(c, "nothing is left of it", str_of(pod(&rig, "b", MILLI("1"))),
		  "bind b n [0:1/81]");
	rig_put(&rig, DEVICES("n", SHARED("0")));
	rig_put(&rig, TWO);
	CHECK_STR(c, "it came back as it was", str_of(pod(&rig, "d", MILLI("999"))),
		  "bind d n [0:999/81838]");
	rig_remove_pod(&rig, "old");
	CHECK_STR(c, "and is free", str_of(pod(&rig, "e", MILLI("700"))), "bind e n [1:700/57344]");
	rig_done(&rig);
}

// Whole devices are no help, and shares on other devices neither: the pod of the fullest that fits.
static void check_preemption(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, TWO);
	CHECK_STR(c, "low", str_of(pod(&rig, "a", MILLI("600"))), "bind a n [0:600/49152]");
	CHECK_STR(c, "low", str_of(pod(&rig, "b", MILLI("700"))), "bind b n [1:700/57344]");
	rig_put(&rig,
		"kind: Pod\nmetadata: {name: high}\nspec: {priority: 100, containers: [{name: "
		"main, resources: {limits: {" MILLI("400") "}}}]}\n");
	CHECK_STR(c, "beside", str_of(rig_next(&rig)), "bind high n [0:400/32768]");
	rig_put(&rig,
		"kind: Pod\nmetadata: {name: next}\nspec: {priority: 100, containers: [{name: "
		"main, resources: {limits: {" MILLI("301") "}}}]}\n");
	CHECK(c, "waits for what one of lower priority has",
	      strstr(rig_next(&rig), "next InsufficientResource") != NULL);
	rig_done(&rig);
}

// ---- random pods against a count by hand

enum { NODES = 3, GPUS = 4, PODS_MAX = 64, STEPS = 4000 };
static const int64_t SIZES_MIB[NODES] = { 81920, 46080, 23040 };

struct held {
	char name[16];
	int node, gpu;
	struct share share;
};

static uint64_t random_state = 7;
static unsigned random_below(unsigned limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % limit;
}

static struct share used(const struct held *helds, size_t count, int node, int gpu)
{
	struct share sum = { 0 };
	for (size_t i = 0; i < count; i++) {
		if (helds[i].node == node && helds[i].gpu == gpu)
			share_add(&sum, &helds[i].share);
	}
	return sum;
}

static bool fits_somewhere(const struct held *helds, size_t count, const struct share *ask)
{
	for (int node = 0; node < NODES; node++) {
		for (int gpu = 0; gpu < GPUS; gpu++) {
			struct share left = share_whole(SIZES_MIB[node]);
			struct share taken = used(helds, count, node, gpu);
			struct share need = share_of(ask, SIZES_MIB[node]);
			share_sub(&left, &taken);
			if (share_fits(&need, &left))
				return true;
		}
	}
	return false;
}

static void put_nodes(struct rig *rig)
{
	for (int node = 0; node < NODES; node++) {
		AUTO(buf_done) struct buf out = { 0 };
		buf_printf(
			&out,
			"kind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: 64, "
			"memory: "
			"64Gi, pods: 110, gpuaas.io/gpu-milli: %d, gpuaas.io/gpu-memory: %lld}}\n"
			"---\nkind: GPUNode\nmetadata: {name: n%d}\nstatus: {devices: [",
			node, GPUS * 1000, (long long)(GPUS * SIZES_MIB[node] / 256), node);
		for (int gpu = 0; gpu < GPUS; gpu++)
			buf_printf(&out,
				   "{uuid: GPU-%d-%d, index: %d, healthy: true, memoryMiB: %lld, "
				   "milli: 1000},",
				   node, gpu, gpu, (long long)SIZES_MIB[node]);
		buf_put_c(&out, "]}\n");
		rig_put(rig, out.data);
	}
}

// Whether the decision about the pod is right; a bind is put into the books.
static bool decide(struct rig *rig, struct held *helds, size_t *count, const char *name,
		   const struct share *ask)
{
	AUTO(buf_done) struct buf limits = { 0 };
	if (ask->milli > 0)
		buf_printf(&limits, "gpuaas.io/gpu-milli: %lld,", (long long)ask->milli);
	if (ask->memory_mib > 0)
		buf_printf(&limits, "gpuaas.io/gpu-memory: %lld",
			   (long long)(ask->memory_mib / SHARE_UNIT_MIB));
	bool fits = fits_somewhere(helds, *count, ask);
	(void)pod(rig, name, limits.data);
	const struct sched_decision *decision = &rig->decision;
	if (decision->verb != SCHED_BIND) {
		rig_remove_pod(rig, name);
		return !fits;
	}
	struct held *held = &helds[(*count)++];
	*held = (struct held){ .node = decision->node.data[1] - '0',
			       .gpu = (int)decision->grants[0].index };
	(void)snprintf(held->name, sizeof held->name, "%s", name);
	for (size_t i = 0; i < decision->grant_count; i++) {
		struct share part = { decision->grants[i].milli, decision->grants[i].memory_mib };
		share_add(&held->share, &part);
	}
	struct share sum = used(helds, *count, held->node, held->gpu);
	struct share whole = share_whole(SIZES_MIB[held->node]);
	return fits && share_fits(&sum, &whole);
}

static void check_random(struct check *c)
{
	struct rig rig;
	struct held helds[PODS_MAX];
	size_t count = 0;
	int wrong = 0, bound = 0;
	rig_init(&rig);
	put_nodes(&rig);
	for (int step = 0; step < STEPS; step++) {
		if (count == PODS_MAX || (count > 0 && random_below(3) == 0)) {
			size_t i = random_below((unsigned)count);
			rig_remove_pod(&rig, helds[i].name);
			helds[i] = helds[--count];
			continue;
		}
		char name[16];
		struct share ask = { .milli = 1 + random_below(1000) };
		if (random_below(2) == 0)
			ask = (struct share){ .milli = random_below(2) * random_below(300),
					      .memory_mib = 256 * (1 + random_below(320)) };
		size_t before = count;
		(void)snprintf(name, sizeof name, "p%d", step);
		wrong += decide(&rig, helds, &count, name, &ask) ? 0 : 1;
		bound += count > before ? 1 : 0;
		wrong += sched_check(rig.sched) == NULL ? 0 : 1;
	}
	CHECK_INT(c, "wrong decisions", wrong, 0);
	CHECK(c, "both were met", bound > 500 && bound < 2500);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_fit(&c);
	check_cases(&c);
	check_adoption(&c);
	check_preemption(&c);
	check_random(&c);
	return check_done(&c);
}
