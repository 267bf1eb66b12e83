// SPDX-License-Identifier: Apache-2.0
// Whether a gang fits: the core against all ways there are, on small clusters drawn at random.
// Nodes differ in processors, GPUs, their memory, NVLink and rack; members differ in what they ask.
// With --seeds N so many clusters are drawn.
#include "check.h"

#include "base/rng.h"
#include "sched/sched.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES_MAX = 3, GPUS_MAX = 4, PODS_MAX = 4, NAME_BYTES = 16, CASES = 3000 };

struct gpu {
	int64_t memory_mib;
	int link; // group
	int holder;
};
struct machine {
	int64_t cpu, rack;
	int gpu_count;
	struct gpu gpus[GPUS_MAX];
};
struct ask {
	int64_t cpu;
	int gpus;
	int64_t memory_mib;
	bool is_linked;
};
struct draw {
	struct machine machines[NODES_MAX];
	struct ask asks[PODS_MAX];
	int machine_count, ask_count, min;
	bool is_one_rack;
};

// One draw a statement: the order within an initializer is the compiler's.
static void draw_machine(struct rng *rng, struct machine *ret)
{
	ret->cpu = (int64_t)rng_below(rng, 6);
	ret->rack = (int64_t)rng_below(rng, 2);
	ret->gpu_count = (int)rng_below(rng, GPUS_MAX + 1);
	for (int k = 0; k < ret->gpu_count; k++) {
		ret->gpus[k].memory_mib = rng_below(rng, 2) == 0 ? 40 : 80;
		ret->gpus[k].link = (int)rng_below(rng, 2);
		ret->gpus[k].holder = -1;
	}
}

static void draw_ask(struct rng *rng, struct ask *ret)
{
	ret->cpu = (int64_t)rng_below(rng, 4);
	ret->gpus = (int)rng_below(rng, 3);
	ret->memory_mib = rng_below(rng, 3) == 0 ? 80 : 0;
	ret->is_linked = rng_below(rng, 3) == 0;
}

static void draw_case(struct rng *rng, struct draw *ret)
{
	*ret = (struct draw){ 0 };
	ret->machine_count = 1 + (int)rng_below(rng, NODES_MAX);
	ret->ask_count = 1 + (int)rng_below(rng, PODS_MAX);
	ret->is_one_rack = rng_below(rng, 3) == 0;
	for (int i = 0; i < ret->machine_count; i++)
		draw_machine(rng, &ret->machines[i]);
	for (int i = 0; i < ret->ask_count; i++)
		draw_ask(rng, &ret->asks[i]);
	bool is_elastic = rng_below(rng, 3) == 0;
	ret->min = is_elastic ? 1 + (int)rng_below(rng, (uint64_t)ret->ask_count) : ret->ask_count;
}

// ---- all ways

static bool place_from(struct draw *draw, int pod, int left_out, int64_t rack);

static bool choose_gpus(struct draw *draw, int pod, int node, uint32_t bits, int left_out)
{
	const struct ask *ask = &draw->asks[pod];
	struct machine *machine = &draw->machines[node];
	int count = 0, link = -1;
	for (int k = 0; k < machine->gpu_count; k++) {
		if ((bits >> k & 1) == 0)
			continue;
		const struct gpu *gpu = &machine->gpus[k];
		bool is_apart = ask->is_linked && link >= 0 && gpu->link != link;
		if (gpu->holder >= 0 || gpu->memory_mib < ask->memory_mib || is_apart)
			return false;
		link = gpu->link;
		count++;
	}
	if (count != ask->gpus)
		return false;
	for (int k = 0; k < machine->gpu_count; k++) {
		if ((bits >> k & 1) != 0)
			machine->gpus[k].holder = pod;
	}
	machine->cpu -= ask->cpu;
	bool fits = place_from(draw, pod + 1, left_out, machine->rack);
	machine->cpu += ask->cpu;
	for (int k = 0; k < machine->gpu_count; k++) {
		if ((bits >> k & 1) != 0)
			machine->gpus[k].holder = -1;
	}
	return fits;
}

// rack: of those before it; negative: any.
static bool place_from(struct draw *draw, int pod, int left_out, int64_t rack)
{
	if (pod == draw->ask_count)
		return true;
	if (left_out < draw->ask_count - draw->min && place_from(draw, pod + 1, left_out + 1, rack))
		return true;
	for (int node = 0; node < draw->machine_count; node++) {
		const struct machine *machine = &draw->machines[node];
		bool is_far = draw->is_one_rack && rack >= 0 && machine->rack != rack;
		if (is_far || machine->cpu < draw->asks[pod].cpu)
			continue;
		for (uint32_t bits = 0; bits < UINT32_C(1) << machine->gpu_count; bits++) {
			if (choose_gpus(draw, pod, node, bits, left_out))
				return true;
		}
	}
	return false;
}

// ---- the core

static struct str text_of(struct arena *arena, const char *name, int64_t number)
{
	return str_of(arena_printf(arena, "%s%lld", name, (long long)number));
}

static void tell_machine(struct sched *sched, struct arena *arena, const struct draw *draw, int i)
{
	const struct machine *machine = &draw->machines[i];
	struct str name = text_of(arena, "n", i);
	struct sched_label label = { STR("rack"), text_of(arena, "r", machine->rack) };
	const struct sched_amount amounts[] = { { STR("cpu"), machine->cpu },
						{ STR("nvidia.com/gpu"), machine->gpu_count },
						{ STR("pods"), 10 } };
	struct sched_node_in in = { .name = name,
				    .labels = { &label, 1 },
				    .allocatable = amounts,
				    .allocatable_count = ARRAY_COUNT(amounts) };
	struct sched_device_in devices[GPUS_MAX];
	struct str uuids[GPUS_MAX];
	for (int k = 0; k < machine->gpu_count; k++)
		uuids[k] = text_of(arena, "gpu-", 10 * i + k);
	for (int k = 0; k < machine->gpu_count; k++) {
		devices[k] = (struct sched_device_in){ .uuid = uuids[k],
						       .model = STR("A100"),
						       .index = k,
						       .memory_mib = machine->gpus[k].memory_mib,
						       .is_healthy = true };
		struct str *linked = ARENA_ARRAY(arena, struct str, GPUS_MAX);
		for (int other = 0; other < machine->gpu_count; other++) {
			if (machine->gpus[other].link == machine->gpus[k].link)
				linked[devices[k].linked_count++] = uuids[other];
		}
		devices[k].linked = linked;
	}
	sched_node_set(sched, &in);
	sched_devices_set(sched, name, devices, (size_t)machine->gpu_count);
}

static void tell_pod(struct sched *sched, struct arena *arena, const struct draw *draw, int i)
{
	const struct ask *ask = &draw->asks[i];
	struct sched_amount amounts[] = { { STR("cpu"), ask->cpu },
					  { STR("nvidia.com/gpu"), ask->gpus } };
	struct sched_gpu_ask gpu_ask = { STR("c"), SCHED_APP, ask->gpus };
	struct sched_spec spec = { .amounts = amounts,
				   .amount_count = ARRAY_COUNT(amounts),
				   .gpu_asks = &gpu_ask,
				   .gpu_ask_count = ask->gpus > 0,
				   .gpu_count = ask->gpus,
				   .gpu_memory_mib_min = ask->gpus > 0 ? ask->memory_mib : 0,
				   .topology = ask->is_linked ? SCHED_NVLINK : SCHED_ANYWHERE };
	struct sched_gang_in gang = { .name = STR("g"),
				      .min = draw->min,
				      .topology = draw->is_one_rack ? STR("rack") : STR("") };
	struct sched_pod_in in = { .uid = text_of(arena, "p", i),
				   .namespace_ = STR("d"),
				   .name = text_of(arena, "p", i),
				   .created_s = i,
				   .is_ours = true,
				   .spec = &spec,
				   .gang = &gang };
	sched_pod_set(sched, &in);
}

static int count_binds(const struct draw *draw, const char **ret_broken)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct sched *sched = sched_new(0, 0);
	struct sched_decision decision;
	int binds = 0;
	for (int i = 0; i < draw->machine_count; i++)
		tell_machine(sched, arena, draw, i);
	for (int i = 0; i < draw->ask_count; i++)
		tell_pod(sched, arena, draw, i);
	while (sched_next(sched, 0, &decision))
		binds += decision.verb == SCHED_BIND;
	*ret_broken = sched_check(sched);
	sched_free(sched);
	return binds;
}

static void run_case(struct check *c, uint64_t seed, int *ret_fits)
{
	struct rng rng;
	struct draw draw;
	const char *broken;
	char name[64];
	rng_init(&rng, seed);
	draw_case(&rng, &draw);
	bool fits = place_from(&draw, 0, 0, -1);
	int binds = count_binds(&draw, &broken);
	(void)snprintf(name, sizeof name, "seed %llu: %d of %d, min %d", (unsigned long long)seed,
		       binds, draw.ask_count, draw.min);
	CHECK(c, name, broken == NULL);
	CHECK(c, name, fits ? binds >= draw.min : binds == 0);
	*ret_fits += fits;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	int64_t cases = CASES;
	int fits = 0;
	if (argc == 3 && !str_to_i64(str_of(argv[2]), &cases))
		return 2;
	for (int64_t i = 0; i < cases; i++)
		run_case(&c, (uint64_t)i, &fits);
	CHECK(&c, "some fit and some do not", fits > 0 && fits < cases);
	return check_done(&c);
}
