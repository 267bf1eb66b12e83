// SPDX-License-Identifier: Apache-2.0
// What no tenant should write, and somebody will: each is refused with the field and what it must
// be, and a good pod that comes last in the queue is bound all the same. A case is the pod's
// annotations, its container's resources and the rest of its spec.
#include "rig.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#define SPREAD(more)                                                                               \
	"topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, labelSelector: {}, " more  \
	"}]"
#define AFFINITY(kind, more) "affinity: {" kind ": " more "}"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

static const struct {
	const char *name, *annotations, *limits, *spec, *want;
} CASES[] = {
	{ "NaN GPUs", "", "nvidia.com/gpu: NaN", "", "InvalidQuantity:0(NaN of nvidia.com/gpu/)" },
	{ "infinite memory", "", "memory: Inf", "", "InvalidQuantity:0(Inf of memory/)" },
	{ "negative GPUs", "", "nvidia.com/gpu: -1", "",
	  "InvalidQuantity:0(-1 of nvidia.com/gpu/)" },
	{ "negative cpu", "", "cpu: -500m", "", "InvalidQuantity:0(-500m of cpu/)" },
	{ "more than 64 bits", "", "nvidia.com/gpu: '99999999999999999999'", "",
	  "InvalidQuantity:0(99999999999999999999 of nvidia.com/gpu/)" },
	{ "2^63 - 1", "", "memory: '9223372036854775807'", "",
	  "InvalidQuantity:0(9223372036854775807 of memory/)" },
	{ "an exponent beyond all", "", "cpu: '1e300'", "", "InvalidQuantity:0(1e300 of cpu/)" },
	{ "no number", "", "cpu: lots", "", "InvalidQuantity:0(lots of cpu/)" },
	{ "an empty amount", "", "cpu: ''", "", "InvalidQuantity:0( of cpu/)" },
	{ "versions are no numbers", "gpuaas.io/min-cuda: NaN", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-cuda must be a version such as 535.104, not "
	  "\"NaN\"/)" },
	{ "a negative version", "gpuaas.io/min-driver: '-550'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-driver must be a version such as 535.104, not "
	  "\"-550\"/)" },
	{ "a huge version", "gpuaas.io/min-driver: '99999999999'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-driver must be a version such as 535.104, not "
	  "\"99999999999\"/)" },
	{ "four parts", "gpuaas.io/min-compute: 8.0.0.1", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-compute must be a version such as 535.104, not "
	  "\"8.0.0.1\"/)" },
	{ "negative memory", "gpuaas.io/min-gpu-memory: -40Gi", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-gpu-memory must be a quantity such as 40Gi, not "
	  "\"-40Gi\"/)" },
	{ "NaN memory", "gpuaas.io/min-gpu-memory: nan", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-gpu-memory must be a quantity such as 40Gi, not "
	  "\"nan\"/)" },
	{ "a topology of blanks", "gpuaas.io/topology: ' '", "", "",
	  "InvalidAnnotation:0(gpuaas.io/topology must be nvlink, numa or the key of a node "
	  "label, not \" \"/)" },
	{ "a duration of no time", "gpuaas.io/duration: '0'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/duration must be whole seconds from 1 to ten years, not "
	  "\"0\"/)" },
	{ "a duration in words", "gpuaas.io/duration: 1h", "", "",
	  "InvalidAnnotation:0(gpuaas.io/duration must be whole seconds from 1 to ten years, not "
	  "\"1h\"/)" },
	{ "a gang of nobody", "gpuaas.io/gang: g, gpuaas.io/gang-min: '-1'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-min must be a number of pods from 1 to 4096, not "
	  "\"-1\"/)" },
	{ "a minimum of no gang", "gpuaas.io/gang-min: '2'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-min needs gpuaas.io/gang/)" },
	{ "a gang that is absurd", "gpuaas.io/gang: g, gpuaas.io/gang-min: '99999999999999999999'",
	  "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-min must be a number of pods from 1 to 4096, not "
	  "\"99999999999999999999\"/)" },
	{ "a gang of more than it may have",
	  "gpuaas.io/gang: g, gpuaas.io/gang-min: '4', gpuaas.io/gang-max: '3'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-max 3 is less than gpuaas.io/gang-min 4/)" },
	{ "a gang of another namespace", "gpuaas.io/gang: other/g", "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang must be a name of letters, digits, '-', '_' and "
	  "'.'; all members are of one namespace, not \"other/g\"/)" },
	{ "a sub-group larger than its gang",
	  "gpuaas.io/gang: g, gpuaas.io/gang-min: '2', gpuaas.io/gang-group: a, "
	  "gpuaas.io/gang-group-min: '3'",
	  "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-group-min 3 is more than gpuaas.io/gang-min 2/)" },
	{ "a minimum of no sub-group",
	  "gpuaas.io/gang: g, gpuaas.io/gang-min: '2', gpuaas.io/gang-group-min: '1'", "", "",
	  "InvalidAnnotation:0(gpuaas.io/gang-group-min needs gpuaas.io/gang-group/)" },
	{ "two at once", "gpuaas.io/min-cuda: x, gpuaas.io/min-driver: y", "", "",
	  "InvalidAnnotation:0(gpuaas.io/min-driver must be a version such as 535.104, not \"y\"/) "
	  "InvalidAnnotation:0(gpuaas.io/min-cuda must be a version such as 535.104, not \"x\"/)" },
	{ "no skew", "", "", SPREAD("topologyKey: zone"),
	  "UnsupportedValue:0(maxSkew 0, not 1 to 2147483647/)" },
	{ "negative domains", "", "", SPREAD("topologyKey: zone, maxSkew: 1, minDomains: -2"),
	  "UnsupportedValue:0(minDomains -2, not 0 to 2147483647/)" },
	{ "no key", "", "", SPREAD("maxSkew: 1"), "UnsupportedValue:0(no topologyKey/)" },
	{ "a weight beyond all", "", "",
	  AFFINITY("nodeAffinity",
		   "{" PREFERRED ": [{weight: 9223372036854775807, preference: {}}]}"),
	  "UnsupportedValue:0(weight 9223372036854775807, not 1 to 100/)" },
	{ "affinity without a key", "", "",
	  AFFINITY("podAffinity", "{" REQUIRED ": [{labelSelector: {}}]}"),
	  "UnsupportedValue:0(no topologyKey/)" },
	{ "a port beyond all", "", "",
	  "hostNetwork: true, initContainers: [{name: i, restartPolicy: "
	  "Always, ports: [{containerPort: 1, hostPort: 70000}]}]",
	  "UnsupportedValue:0(hostPort 70000, not 1 to 65535/)" },
};

static void put_pod(struct rig *rig, const char *name, size_t i)
{
	char yaml[2048];
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Pod, metadata: {name: %s, annotations: {%s}}, spec: {priority: 1000, "
		"containers: [{name: c, resources: {limits: {%s}}}], %s}}\n",
		name, CASES[i].annotations, CASES[i].limits, CASES[i].spec);
	rig_put(rig, yaml);
}

static const char NODE[] = "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 8, "
			   "memory: 1Gi, pods: 110, nvidia.com/gpu: 8}}}\n";
static const char GOOD[] = "{kind: Pod, metadata: {name: good}, spec: {containers: [{name: c, "
			   "resources: {limits: {cpu: 1}}}]}}\n";

static void check_cases(struct check *c)
{
	char want[512];
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		rig_init(&rig);
		rig_put(&rig, NODE);
		put_pod(&rig, "p", i);
		(void)snprintf(want, sizeof want, "refuse p %s", CASES[i].want);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), want);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
		rig_done(&rig);
	}
}

// An annotation may have 256 KiB; a name made of it would be more than the core keeps of one.
static void check_long_names(struct check *c)
{
	enum { BYTES = 200000 };
	static const struct {
		const char *head, *tail;
		bool is_pod;
	} WHERE[] = {
		{ "{kind: Pod, metadata: {name: p, annotations: {gpuaas.io/gang: ",
		  "}}, spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}\n", true },
		{ "{kind: Pod, metadata: {name: p, annotations: {gpuaas.io/gang: g, "
		  "gpuaas.io/gang-min: '1', gpuaas.io/gang-group: ",
		  "}}, spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}\n", true },
		{ "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, "
		  "spec: "
		  "{parallelism: 2, template: {metadata: {annotations: {gpuaas.io/gang: ",
		  "}}}}}\n", false },
	};
	char *name = calloc(1, BYTES + 1), *yaml = calloc(1, BYTES + 1024);
	ASSERT(name != NULL && yaml != NULL);
	memset(name, 'x', BYTES);
	for (size_t i = 0; i < ARRAY_COUNT(WHERE); i++) {
		struct rig rig;
		rig_init(&rig);
		rig_put(&rig, NODE);
		(void)snprintf(yaml, BYTES + 1024, "%s%s%s", WHERE[i].head, name, WHERE[i].tail);
		rig_put(&rig, yaml);
		if (WHERE[i].is_pod)
			CHECK(c, "refused",
			      str_starts(str_of(rig_next(&rig)),
					 STR("refuse p InvalidAnnotation:0(gpuaas.io/gang")));
		rig_put(&rig, GOOD);
		CHECK_STR(c, "nobody else is", str_of(rig_next(&rig)), "bind good n []");
		rig_done(&rig);
	}
	free(name);
	free(yaml);
}

// The good pod has the lowest priority and is decided about first: a refused one is in no queue.
static void check_others(struct check *c)
{
	struct rig rig;
	char name[32];
	rig_init(&rig);
	rig_put(&rig, NODE);
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		(void)snprintf(name, sizeof name, "bad-%zu", i);
		put_pod(&rig, name, i);
	}
	rig_put(&rig, GOOD);
	CHECK_STR(c, "the good pod", str_of(rig_next(&rig)), "bind good n []");
	struct sched_counts counts = sched_counts_get(rig.sched);
	CHECK_INT(c, "refused", counts.refused, ARRAY_COUNT(CASES));
	CHECK_INT(c, "waiting", counts.waiting, 0);
	rig_done(&rig);
}

static void put_values(struct buf *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(out, i > 0 ? ",v%zu" : "v%zu", i);
}

// Lists that each decision would have to walk.
static void check_lists(struct check *c)
{
	enum { ABSURD = 5000 };
	struct rig rig;
	AUTO(buf_done) struct buf yaml = { .limit = 1 << 20 };
	rig_init(&rig);
	rig_put(&rig, NODE);
	buf_put_c(&yaml,
		  "{kind: Pod, metadata: {name: values}, spec: {affinity: {nodeAffinity: {" REQUIRED
		  ": {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: "
		  "NotIn, values: [");
	put_values(&yaml, ABSURD);
	buf_put_c(&yaml, "]}]}]}}}, containers: [{name: c}]}}\n---\n");
	buf_put_c(&yaml, "{kind: Pod, metadata: {name: tolerations}, spec: {tolerations: [");
	for (size_t i = 0; i < ABSURD; i++)
		buf_put_c(&yaml, "{operator: Exists},");
	buf_put_c(&yaml, "], containers: [{name: c}]}}\n---\n");
	buf_put_c(&yaml,
		  "{kind: Pod, metadata: {name: ports}, spec: {containers: [{name: c, ports: [");
	for (size_t i = 0; i < ABSURD; i++)
		buf_printf(&yaml, "{containerPort: 1, hostPort: %zu},", i + 1);
	buf_put_c(&yaml, "]}]}}\n");
	CHECK(c, "yaml", buf_ok(&yaml));
	rig_put(&rig, yaml.data);
	CHECK_STR(c, "values", str_of(rig_next(&rig)),
		  "refuse values UnsupportedValue:0(more than 2048 values in affinities, selectors "
		  "and constraints/)");
	CHECK_STR(c, "tolerations", str_of(rig_next(&rig)),
		  "refuse tolerations UnsupportedValue:0(more than 128 tolerations/)");
	CHECK_STR(c, "ports", str_of(rig_next(&rig)),
		  "refuse ports UnsupportedValue:0(more than 128 host ports/)");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_cases(&c);
	check_long_names(&c);
	check_others(&c);
	check_lists(&c);
	return check_done(&c);
}
