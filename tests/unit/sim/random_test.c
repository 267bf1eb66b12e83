// SPDX-License-Identifier: Apache-2.0
// Random scenarios through the simulator, whose checker holds the core to its invariants; each
// is run twice and must give the same bytes. One draw a statement: the order of arguments is the
// compiler's. A failing seed can be written out:
// sim_random_test SEED prints its scenario, sim_random_test FIRST LAST runs that range. One that
// fails is left in the working folder as a scenario that says how gpuaas-sim plays it.
#include "sim/sim.h"

#include "check.h"
#include "sys/fs.h"

#include <stdlib.h>

enum { SEED_FIRST = 1, SEED_LAST = 1000, NODES_MAX = 6, PODS_MAX = 40 };

static const char *pick(struct rng *rng, const char *const *items, size_t count)
{
	return items[rng_below(rng, count)];
}
#define PICK(rng, ...)                                                                             \
	pick(rng, (const char *const[]){ __VA_ARGS__ },                                            \
	     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static unsigned any(struct rng *rng, unsigned below) { return (unsigned)rng_below(rng, below); }
static bool chance(struct rng *rng, uint64_t percent) { return rng_below(rng, 100) < percent; }

static void put_times(struct rng *rng, struct buf *out, bool runs)
{
	buf_printf(out, "sim.gpuaas.io/at: '%u'", any(rng, 60));
	if (!runs || !chance(rng, 80))
		return;
	buf_printf(out, ", sim.gpuaas.io/runs-for: '%u.", any(rng, 40));
	buf_printf(out, "%u'", any(rng, 10));
}

static void put_node(struct rng *rng, struct buf *out, unsigned i, const char *action)
{
	buf_printf(out, "---\n{kind: Node, metadata: {name: n%u, annotations: {", i);
	if (action != NULL)
		buf_printf(out, "sim.gpuaas.io/at: '%u', sim.gpuaas.io/action: %s", any(rng, 60),
			   action);
	buf_printf(out, "}, labels: {zone: %s, kubernetes.io/hostname: n%u, ",
		   PICK(rng, "a", "b", "c"), i);
	buf_printf(out, "disk: %s, ", PICK(rng, "ssd", "hdd"));
	buf_printf(out, "nvidia.com/gpu.product: %s, ",
		   PICK(rng, "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100", "NVIDIA-L40S"));
	buf_printf(out, "nvidia.com/gpu.memory: '%s'}}, spec: {", PICK(rng, "81920", "46068"));
	if (chance(rng, 15))
		buf_put_c(out, "taints: [{key: team, value: x, effect: NoSchedule}], ");
	if (chance(rng, 8))
		buf_put_c(out, "unschedulable: true, ");
	buf_printf(out, "}, status: {allocatable: {cpu: %u, ", 4 + any(rng, 60));
	buf_printf(out, "memory: %uGi, ", 16 + any(rng, 200));
	buf_printf(out, "pods: %u, ", 3 + any(rng, 20));
	buf_printf(out, "nvidia.com/gpu: %u}, ", any(rng, 9));
	buf_printf(out, "conditions: [{type: Ready, status: '%s'}]}}\n",
		   chance(rng, 95) ? "True" : "False");
}

static void put_affinity(struct rng *rng, struct buf *out)
{
	static const char TERM[] = "{requiredDuringSchedulingIgnoredDuringExecution: [{"
				   "labelSelector: {matchLabels: {app: %s}}, topologyKey: ";
	buf_put_c(out, "affinity: {");
	if (chance(rng, 40))
		buf_printf(out,
			   "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {"
			   "nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: %s, "
			   "values: [ssd]}]}]}}, ",
			   PICK(rng, "In", "NotIn"));
	if (chance(rng, 40)) {
		buf_put_c(out, "podAntiAffinity: ");
		buf_printf(out, TERM, PICK(rng, "x", "y", "z"));
		buf_printf(out, "%s}]}, ", PICK(rng, "zone", "kubernetes.io/hostname"));
	}
	if (chance(rng, 40)) {
		buf_put_c(out, "podAffinity: ");
		buf_printf(out, TERM, PICK(rng, "x", "y", "z"));
		buf_put_c(out, "zone}]}");
	}
	buf_put_c(out, "}, ");
}

static void put_constraints(struct rng *rng, struct buf *out)
{
	if (chance(rng, 20))
		put_affinity(rng, out);
	if (chance(rng, 10)) {
		buf_printf(out, "topologySpreadConstraints: [{maxSkew: %u, ", 1 + any(rng, 2));
		buf_printf(out, "topologyKey: %s, whenUnsatisfiable: DoNotSchedule, ",
			   PICK(rng, "zone", "kubernetes.io/hostname"));
		buf_printf(out, "labelSelector: {matchLabels: {app: %s}}}], ",
			   PICK(rng, "x", "y", "z"));
	}
	if (chance(rng, 30))
		buf_put_c(out, "tolerations: [{key: team, operator: Exists}], ");
	if (chance(rng, 10))
		buf_printf(out, "nodeSelector: {disk: %s}, ", PICK(rng, "ssd", "hdd", "tape"));
	if (chance(rng, 3))
		buf_put_c(out, "schedulingGates: [{name: g}], ");
	if (chance(rng, 3))
		buf_put_c(out, "newField: 1, ");
}

enum { TENANTS = 3, NAMESPACES = 4 }; // one namespace has no tenant

// Every third scenario has queues; some settings cannot hold, and all may change or go.
static bool has_queues(uint64_t seed) { return seed % 3 == 0; }

// Every fourth tenant has windows, more than there are GPUs at times; an update has others.
static void put_windows(struct buf *out, unsigned no)
{
	struct rng rng;
	rng_init(&rng, no);
	if (no % 4 != 0)
		return;
	buf_put_c(out, "windows: [");
	for (unsigned i = 0; i < 3; i++) {
		unsigned start = any(&rng, 50);
		buf_printf(out, "{name: w%u, gpus: %u, ", i, 1 + any(&rng, 8));
		buf_printf(out, "start: '1970-01-01T00:00:%02uZ', ", start);
		buf_printf(out, "end: '1970-01-01T00:00:%02uZ', ",
			   start + 1 + any(&rng, 59 - start));
		buf_printf(out, "model: '%s'}, ", PICK(&rng, "", "", "A100"));
	}
	buf_put_c(out, "], ");
}

static void put_tenant(struct rng *rng, struct buf *out, unsigned i, const char *action)
{
	buf_printf(out, "---\n{kind: Tenant, metadata: {name: t%u, annotations: {", i);
	if (action != NULL)
		buf_printf(out, "sim.gpuaas.io/at: '%u', sim.gpuaas.io/action: %s", any(rng, 60),
			   action);
	buf_put_c(out, "}}, spec: {");
	put_windows(out, any(rng, 1000));
	buf_put_c(out, "queue: {");
	if (chance(rng, 40))
		buf_printf(out, "parent: t%u, ", (unsigned)rng_below(rng, TENANTS + 1));
	if (chance(rng, 50))
		buf_printf(out, "limit: %u, ", any(rng, 10));
	if (chance(rng, 50))
		buf_printf(out, "guaranteed: %u, ", any(rng, 6));
	if (chance(rng, 30))
		buf_printf(out, "userLimit: %u, ", any(rng, 5));
	if (chance(rng, 30))
		buf_printf(out, "priorityCeiling: %u, ", 10 * any(rng, 3));
	buf_printf(out, "weight: %u, ", any(rng, 4));
	buf_printf(out, "halfLifeSeconds: %u}}}\n", any(rng, 100));
}

static void put_tenants(uint64_t seed, struct buf *out)
{
	struct rng rng;
	rng_init(&rng, ~seed);
	for (unsigned i = 0; i < TENANTS; i++) {
		put_tenant(&rng, out, i, NULL);
		if (chance(&rng, 50))
			put_tenant(&rng, out, i, PICK(&rng, "update", "update", "delete"));
	}
}

static void put_namespace(struct buf *out, uint64_t seed, unsigned i)
{
	if (has_queues(seed))
		buf_printf(out, "namespace: t%u, ", i % NAMESPACES);
}

enum { GANGS = 4 };

// Every second scenario has gangs: some never whole, some elastic, some of one zone, some with
// members that contradict the others.
static void put_gang(struct rng *rng, struct buf *out, uint64_t seed)
{
	unsigned gang = any(rng, GANGS);
	unsigned least = 1 + (unsigned)((seed >> 1) + 3 * gang) % 5;
	if (seed % 2 != 0 || !chance(rng, 50))
		return;
	if (chance(rng, 3))
		least++;
	buf_printf(out, ", gpuaas.io/gang: g%u, gpuaas.io/gang-min: '%u'", gang, least);
	buf_printf(out, ", gpuaas.io/gang-expiry: '%u'", 5 + gang);
	if (gang == 1)
		buf_put_c(out, ", gpuaas.io/topology: zone");
	if (gang == 2)
		buf_printf(out, ", gpuaas.io/gang-max: '%u'", least + 1);
	if (gang == 3)
		buf_printf(out, ", gpuaas.io/gang-group: %s, gpuaas.io/gang-group-min: '1'",
			   PICK(rng, "a", "b"));
}

static void put_container(struct rng *rng, struct buf *out, unsigned cpu_milli)
{
	buf_printf(out, "containers: [{name: c, resources: {requests: {cpu: %um, memory: %uGi}, ",
		   cpu_milli, 1 + any(rng, 32));
	buf_printf(out, "limits: {nvidia.com/gpu: %s}}, ",
		   PICK(rng, "0", "1", "1", "1", "2", "2", "4", "8", "9"));
	buf_printf(out, "ports: [%s]}]}}\n", PICK(rng, "", "", "", "", "{hostPort: 80}"));
}

// In these, pods keep checkpoints and are moved to make room.
static bool has_moves(uint64_t seed) { return seed % 4 == 2; }

static void put_pod(struct rng *rng, struct buf *out, unsigned i, uint64_t seed)
{
	unsigned cpu_milli = 100 * (1 + any(rng, 60));
	buf_printf(out, "---\n{kind: Pod, metadata: {name: p%u, ", i);
	put_namespace(out, seed, i);
	buf_printf(out, "labels: {app: %s}, annotations: {", PICK(rng, "x", "y", "z"));
	put_times(rng, out, true);
	if (has_queues(seed))
		buf_printf(out, ", gpuaas.io/user: %s", i % 3 == 0 ? "ada" : "bob");
	if (chance(rng, 10))
		buf_printf(out, ", gpuaas.io/gpu-models: '%s'",
			   PICK(rng, "A100", "H100,L40S", "V100"));
	if (chance(rng, 30)) {
		buf_printf(out, ", sim.gpuaas.io/ends-after: '%u'", any(rng, 20));
		buf_printf(out, ", sim.gpuaas.io/recreate-after: '%u'", any(rng, 5));
	} else if (has_moves(seed)) {
		buf_put_c(out, ", sim.gpuaas.io/recreate-after: '1'");
	}
	if (has_moves(seed))
		buf_printf(out, ", sim.gpuaas.io/checkpoint-every: '%u'", 1 + i % 3);
	if (chance(rng, 60)) // often wrong
		buf_printf(out, ", gpuaas.io/duration: '%u'", 1 + any(rng, 40));
	if (any(rng, 5) == 0)
		buf_printf(out, ", gpuaas.io/deadline: '1970-01-01T00:%02u:%02uZ'", any(rng, 4),
			   any(rng, 60));
	if (chance(rng, 5))
		buf_put_c(out, ", gpuaas.io/min-gpu-memory: 60Gi");
	put_gang(rng, out, seed);
	buf_put_byte(out, '}');
	if (has_moves(seed))
		buf_printf(out, ", ownerReferences: [{uid: job-%u, controller: true}]", i % 25);
	buf_printf(out, "}, spec: {priority: %u, ", 10 * any(rng, 4));
	if (chance(rng, 10))
		buf_put_c(out, "preemptionPolicy: Never, ");
	put_constraints(rng, out);
	if (chance(rng, 10)) {
		buf_printf(out, "initContainers: [{name: i, %s ",
			   PICK(rng, "", "restartPolicy: Always,"));
		buf_printf(out, "resources: {limits: {nvidia.com/gpu: %u}}}], ", any(rng, 3));
	}
	put_container(rng, out, cpu_milli);
}

struct size {
	unsigned nodes, pods;
};

static void put_late(struct rng *rng, struct buf *out, struct size size, uint64_t seed)
{
	for (unsigned i = 0; i < size.nodes; i++) {
		if (chance(rng, 20))
			put_node(rng, out, i, PICK(rng, "update", "update", "delete"));
	}
	for (unsigned i = 0; i < size.pods; i++) {
		if (!chance(rng, 10))
			continue;
		buf_printf(out, "---\n{kind: Pod, metadata: {name: p%u, ", i);
		put_namespace(out, seed, i);
		buf_printf(out,
			   "annotations: {sim.gpuaas.io/at: '%u', sim.gpuaas.io/action: "
			   "delete}}, spec: {containers: [{name: c}]}}\n",
			   any(rng, 80));
	}
}

static void put_budget(struct rng *rng, struct buf *out)
{
	buf_printf(out,
		   "---\n{kind: PodDisruptionBudget, metadata: {name: b}, spec: {selector: "
		   "{matchLabels: {app: %s}}}, ",
		   PICK(rng, "x", "y", "z"));
	buf_printf(out, "status: {disruptionsAllowed: %u}}\n", any(rng, 3));
}

enum { CLAIMS = 6, CLAIM_PODS = 10 };

// Some scenarios have a node whose GPUs are given by claims, of which pods share some.
static bool has_claims(uint64_t seed) { return seed % 4 == 1 || seed % 4 == 2; }

static void put_claims(uint64_t seed, struct buf *out)
{
	struct rng rng;
	rng_init(&rng, seed ^ UINT64_C(0xc1a1));
	buf_put_c(out, "---\n{kind: DeviceClass, apiVersion: resource.k8s.io/v1, metadata: {name: "
		       "gpu}, spec: {}}\n---\n{kind: ResourceSlice, apiVersion: "
		       "resource.k8s.io/v1, metadata: {name: n0}, spec: {driver: gpu.gpuaas.io, "
		       "nodeName: n0, pool: {name: n0, resourceSliceCount: 1}, devices: [");
	for (unsigned i = 0; i < 4; i++)
		buf_printf(out, "{name: d%u},", i);
	buf_put_c(out, "]}}\n");
	for (unsigned i = 0; i < CLAIMS; i++) {
		buf_printf(out,
			   "---\n{kind: ResourceClaim, apiVersion: resource.k8s.io/v1, metadata: "
			   "{name: c%u, namespace: t%u, annotations: {sim.gpuaas.io/at: '%u'}}, ",
			   i, i % 2, any(&rng, 20));
		buf_printf(out,
			   "spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu, "
			   "count: %u}}]}}}\n",
			   1 + any(&rng, 3));
	}
	for (unsigned i = 0; i < CLAIM_PODS; i++) {
		unsigned claim = any(&rng, CLAIMS);
		buf_printf(out, "---\n{kind: Pod, metadata: {name: q%u, namespace: t%u, ", i,
			   claim % 2);
		buf_put_c(out, "annotations: {");
		put_times(&rng, out, true);
		buf_printf(out, "}}, spec: {priority: %u, ", 10 * any(&rng, 4));
		buf_printf(out,
			   "resourceClaims: [{name: g, resourceClaimName: c%u}], containers: "
			   "[{name: c}]}}\n",
			   claim);
	}
}

static void put_scenario(uint64_t seed, struct buf *out)
{
	struct rng rng;
	rng_init(&rng, seed);
	unsigned node_count = 1 + any(&rng, NODES_MAX);
	unsigned pod_count = 1 + any(&rng, PODS_MAX);
	for (unsigned i = 0; i < node_count; i++)
		put_node(&rng, out, i, NULL);
	for (unsigned i = 0; i < pod_count; i++)
		put_pod(&rng, out, i, seed);
	if (chance(&rng, 30))
		put_budget(&rng, out);
	put_late(&rng, out, (struct size){ node_count, pod_count }, seed);
	if (has_queues(seed))
		put_tenants(seed, out);
	if (has_claims(seed))
		put_claims(seed, out);
	ASSERT(buf_ok(out));
}

static int run_once(struct str text, uint64_t seed, char **ret_out, size_t *ret_len)
{
	struct scenario scenario;
	struct err err;
	struct run_options options = { .seed = (int64_t)seed,
				       .bind_failures_permille = seed % 3 == 0 ? 150 : 0,
				       .evict_failures_permille = seed % 5 == 0 ? 200 : 0 };
	options.reclaims_deserved = seed % 2 == 0;
	if (seed % 5 == 0)
		options.factors = (struct sched_factors){ .weights = { 1000, 500, -300, 700, 0 },
							  .age_max_s = 60,
							  .deadline_s = 60 };
	if (seed % 2 == 0)
		options.rules = (struct sched_preempt_rules){
			.mode = SCHED_PREEMPT_PRIORITY,
			.min_run_ms = seed % 4 == 0 ? 5000 : 0,
			.delay_ms = seed % 6 == 0 ? 3000 : 0,
			.evictions_per_minute = seed % 10 == 0 ? 6 : 0,
		};
	if (has_moves(seed))
		options.rules.move =
			(struct sched_move_rules){ .count_max = (int64_t)(1 + seed % 5),
						   .period_ms = 10000,
						   .min_run_ms = 2000,
						   .lost_max_ms = 20000 };
	if (scenario_parse(text, &scenario, &err) != ERR_OK) {
		printf("seed %llu: %s\n", (unsigned long long)seed, err.text);
		return 1;
	}
	FILE *out = open_memstream(ret_out, ret_len);
	ASSERT(out != NULL);
	int code = run_on(&scenario, &options, out);
	(void)fclose(out);
	scenario_done(&scenario);
	return code;
}

static void put_command(uint64_t seed, struct buf *out)
{
	buf_printf(out,
		   "# gpuaas-sim run FILE --seed %llu --bind-failures %d --evict-failures %d "
		   "--reclaim %s",
		   (unsigned long long)seed, seed % 3 == 0 ? 150 : 0, seed % 5 == 0 ? 200 : 0,
		   seed % 2 == 0 ? "deserved" : "guaranteed");
	if (seed % 5 == 0)
		buf_put_c(out, " --priority-weights priority=1000,age=500,size=-300,"
			       "fair-share=700,age-max=60,deadline-within=60");
	buf_printf(out, " --preemption %s --min-run %d --preemptor-delay %d",
		   seed % 2 == 0 ? "priority" : "off", seed % 4 == 0 ? 5 : 0,
		   seed % 6 == 0 ? 3 : 0);
	buf_printf(out, " --evictions-per-minute %d", seed % 10 == 0 ? 6 : 0);
	if (has_moves(seed))
		buf_printf(out, " --moves %d --move-period 10 --move-min-run 2 --move-lost 20",
			   (int)(1 + seed % 5));
	buf_put_byte(out, '\n');
}

static void keep_scenario(uint64_t seed, struct str text)
{
	char path[64];
	struct err err = { 0 };
	AUTO(buf_done) struct buf out = { .limit = 1 << 21 };
	(void)snprintf(path, sizeof path, "seed-%llu.yaml", (unsigned long long)seed);
	put_command(seed, &out);
	buf_put(&out, text);
	if (fs_write_atomic(path, buf_str(&out), 0644, &err) == ERR_OK)
		printf("    its scenario: %s\n", path);
	else
		printf("    its scenario is lost: %s\n", err.text);
}

static void run_seed(struct check *c, uint64_t seed)
{
	char name[32], *first = NULL, *second = NULL;
	size_t first_len = 0, second_len = 0;
	int failed = c->failed;
	AUTO(buf_done) struct buf text = { .limit = 1 << 20 };
	(void)snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
	put_scenario(seed, &text);
	CHECK_INT(c, name, run_once(buf_str(&text), seed, &first, &first_len), 0);
	CHECK_INT(c, name, run_once(buf_str(&text), seed, &second, &second_len), 0);
	CHECK(c, name,
	      first_len > 0 && first_len == second_len && memcmp(first, second, first_len) == 0);
	if (c->failed > failed)
		keep_scenario(seed, buf_str(&text));
	free(first);
	free(second);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	uint64_t first = SEED_FIRST, last = SEED_LAST;
	if (argc >= 2 && !str_to_u64(str_of(argv[1]), &first))
		return 2;
	if (argc == 2) {
		AUTO(buf_done) struct buf text = { .limit = 1 << 20 };
		put_scenario(first, &text);
		printf("%s", text.data);
		return 0;
	}
	if (argc == 3 && !str_to_u64(str_of(argv[2]), &last))
		return 2;
	for (uint64_t seed = first; seed <= last; seed++)
		run_seed(&c, seed);
	return check_done(&c);
}
