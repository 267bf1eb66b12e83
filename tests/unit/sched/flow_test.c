// SPDX-License-Identifier: Apache-2.0
// Several objects in, the lines of decisions out, in order.
#include "rig.h"

#include "check.h"

#include <stdio.h>

#define NODE(name, rest)                                                                           \
	"---\n{kind: Node, metadata: {name: " name "}, status: {allocatable: {cpu: 16, "           \
	"memory: 64Gi, pods: 110, nvidia.com/gpu: 4}}" rest "}\n"
#define ZONE(name, zone, more)                                                                     \
	"---\n{kind: Node, metadata: {name: " name ", labels: {zone: z" zone "}}, "                \
	"status: {allocatable: {cpu: 16, memory: 64Gi, pods: 110" more "}}}\n"
#define POD(name, meta, gpus, spec)                                                                \
	"---\n{kind: Pod, metadata: {name: " name ", " meta "}, spec: {containers: [{name: c, "    \
	"resources: {limits: {cpu: 1, nvidia.com/gpu: " gpus "}}}], " spec "}}\n"
#define ON(name, node, meta)                                                                       \
	"---\n{kind: Pod, metadata: {name: " name ", " meta "}, spec: {nodeName: " node            \
	", containers: [{name: c, resources: {limits: {cpu: 1}}}]}}\n"
#define NEAR(kind, app, more)                                                                      \
	"affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: "  \
	"{matchLabels: {app: " app "}}, topologyKey: zone" more "}]}}"
#define SPREAD(more)                                                                               \
	"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: "          \
	"DoNotSchedule, labelSelector: {matchLabels: {app: x}}" more "}]"
#define APP(app) "labels: {app: " app "}"

static const struct {
	const char *name, *yaml;
	const char *want[8]; // ends with NULL; then there must be nothing more
} CASES[] = {
	{ "no node", POD("p", "", "1", ""), { "wait p NoNodes:0" } },
	{ "packs the fuller node",
	  NODE("a", "") NODE("b", "") POD("p", "uid: '1'", "1", "nodeSelector: {}")
		  POD("q", "uid: '2'", "2", ""),
	  { "bind p a []", "bind q a []" } },
	{ "best fit among awake nodes",
	  NODE("a", "") NODE("b", "") POD("p", "", "3", "") POD("q", "", "2", "")
		  POD("r", "", "1", "") POD("s", "", "2", ""),
	  { "bind p a []", "bind q b []", "bind r a []", "bind s b []" } },
	{ "priority, then creation, then name",
	  NODE("a", "") POD("z", "creationTimestamp: '2026-01-01T00:00:01Z'", "1",
			    "") POD("y", "creationTimestamp: '2026-01-01T00:00:00Z'", "1", "")
		  POD("x", "creationTimestamp: '2026-01-01T00:00:01Z'", "1", "")
			  POD("w", "creationTimestamp: '2026-01-01T00:00:02Z'", "1", "priority: 5"),
	  { "bind w a []", "bind y a []", "bind x a []", "bind z a []" } },
	{ "a pod without GPUs leaves them alone",
	  NODE("a", "") "---\n{kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 2, "
			"memory: 4Gi, pods: 5}}}\n" POD("p", "", "0", ""),
	  { "bind p b []" } },
	{ "too large for any node",
	  NODE("a", "") POD("p", "", "5", ""),
	  { "wait p ResourceTooLarge:1(5 nvidia.com/gpu/4 nvidia.com/gpu)" } },
	{ "all reasons at once",
	  NODE("a", ", spec: {unschedulable: true}") NODE("b", "")
		  POD("p", "", "5", "nodeSelector: {x: y}"),
	  { "wait p NodeUnschedulable:1 NodeSelectorMismatch:2 "
	    "ResourceTooLarge:2(5 nvidia.com/gpu/4 nvidia.com/gpu)" } },
	{ "preferred node affinity comes before packing",
	  ZONE("a", "1", "") ZONE("b", "2", "") POD(
		  "p", "", "0",
		  "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
		  "[{weight: 5, preference: {matchExpressions: [{key: zone, operator: In, values: "
		  "[z2]}]}}]}}"),
	  { "bind p b []" } },
	{ "pod affinity is met",
	  ZONE("a", "1", "") ZONE("b", "2", "") ON("o", "b", APP("x"))
		  POD("p", "", "0", NEAR("podAffinity", "x", "")),
	  { "bind p b []" } },
	{ "pod affinity is unmet",
	  ZONE("a", "1", "") ON("o", "a", APP("y")) POD("p", "", "0", NEAR("podAffinity", "x", "")),
	  { "wait p PodAffinityUnmet:1" } },
	{ "pod affinity, first of its kind",
	  ZONE("a", "1", "") POD("p", APP("x"), "0", NEAR("podAffinity", "x", "")),
	  { "bind p a []" } },
	{ "pod affinity needs the label on the node",
	  NODE("a", "") POD("p", APP("x"), "0", NEAR("podAffinity", "x", "")),
	  { "wait p PodAffinityUnmet:1" } },
	{ "pod affinity is of the own namespace",
	  ZONE("a", "1", "") ON("o", "a", APP("x") ", namespace: other")
		  POD("p", "", "0", NEAR("podAffinity", "x", "")),
	  { "wait p PodAffinityUnmet:1" } },
	{ "pod affinity with a namespace list",
	  ZONE("a", "1", "") ON("o", "a", APP("x") ", namespace: other")
		  POD("p", "", "0", NEAR("podAffinity", "x", ", namespaces: [other]")),
	  { "bind p a []" } },
	{ "pod affinity with a namespace selector",
	  "---\n{kind: Namespace, metadata: {name: other, labels: {k: v}}}\n" ZONE("a", "1", "")
		  ON("o", "a", APP("x") ", namespace: other") POD(
			  "p", "", "0",
			  NEAR("podAffinity", "x", ", namespaceSelector: {matchLabels: {k: v}}")),
	  { "bind p a []" } },
	{ "anti-affinity keeps away",
	  ZONE("a", "1", "") ZONE("b", "1", "") ZONE("c", "2", "") ON("o", "a", APP("x"))
		  POD("p", "", "0", NEAR("podAntiAffinity", "x", "")),
	  { "bind p c []" } },
	{ "anti-affinity of running pods keeps away",
	  ZONE("a", "1", "") "---\n{kind: Pod, metadata: {name: o}, spec: {nodeName: a, "
			     "containers: [{name: c}], " NEAR("podAntiAffinity", "x",
							      "") "}}\n" POD("p", APP("x"), "0", "")
				     POD("q", APP("y"), "0", ""),
	  { "bind q a []", "wait p ExistingPodAntiAffinity:1" } },
	{ "matchLabelKeys",
	  ZONE("a", "1", "") ON("o", "a", "labels: {app: x, rev: '1'}")
		  POD("p", "labels: {app: x, rev: '2'}", "0",
		      NEAR("podAntiAffinity", "x", ", matchLabelKeys: [rev]")),
	  { "bind p a []" } },
	{ "spread takes the emptier zone",
	  ZONE("a", "1", "") ZONE("b", "2", "") ON("o", "a", APP("x"))
		  POD("p", APP("x"), "0", SPREAD("")),
	  { "bind p b []" } },
	{ "spread is unmet",
	  ZONE("a", "1", "") ZONE("b", "2", ", example.com/x: 1") ON("o", "a", APP("x"))
		  ON("o2", "a",
		     APP("x")) "---\n{kind: Pod, metadata: {name: p, labels: {app: x}}, spec: "
			       "{containers: "
			       "[{name: c, resources: {limits: {example.com/x: 2}}}], " SPREAD(
				       "") "}}\n",
	  { "wait p ResourceTooLarge:2(2 example.com/x/1 example.com/x) TopologySpreadUnmet:1" } },
	{ "spread needs the label",
	  NODE("a", "") POD("p", APP("x"), "0", SPREAD("")),
	  { "wait p TopologyLabelMissing:1" } },
	{ "spread with minDomains",
	  ZONE("a", "1", "") ON("o", "a", APP("x"))
		  POD("p", APP("x"), "0", SPREAD(", minDomains: 2")),
	  { "wait p TopologySpreadUnmet:1" } },
	{ "spread anyway is no constraint",
	  ZONE("a", "1", "") ON("o", "a", APP("x"))
		  POD("p", APP("x"), "0",
		      "topologySpreadConstraints: [{maxSkew: 1, topologyKey: none, "
		      "whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]"),
	  { "bind p a []" } },
	{ "host port",
	  NODE("a", "") "---\n{kind: Pod, metadata: {name: o}, spec: {nodeName: a, "
			"containers: [{name: c, ports: [{hostPort: 80}]}]}}\n"
			"---\n{kind: Pod, metadata: {name: p}, spec: {containers: "
			"[{name: c, ports: [{hostPort: 80, hostIP: 10.0.0.1}]}]}}\n"
			"---\n{kind: Pod, metadata: {name: q}, spec: {containers: "
			"[{name: c, ports: [{hostPort: 80, protocol: UDP}]}]}}\n",
	  { "bind q a []", "wait p HostPortInUse:1" } },
	{ "most pods of a node",
	  "---\n{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 9, pods: 1}}}\n" ON(
		  "o", "a", "") POD("p", "", "0", ""),
	  { "wait p TooManyPods:1(1 pods/0 pods)" } },
	{ "equal pods that fit nowhere are told one by one",
	  NODE("a", "") POD("p", "", "9", "") POD("q", "", "9", ""),
	  { "wait p ResourceTooLarge:1(9 nvidia.com/gpu/4 nvidia.com/gpu)",
	    "wait q ResourceTooLarge:1(9 nvidia.com/gpu/4 nvidia.com/gpu)" } },
	{ "lower priority holds the room",
	  NODE("a", "") "---\n{kind: Pod, metadata: {name: o}, spec: {nodeName: a, priority: 1, "
			"containers: [{name: c, resources: {limits: {nvidia.com/gpu: 3}}}]}}\n" POD(
				"p", "", "2", "priority: 5") POD("q", "", "2", "priority: 1"),
	  { "wait p InsufficientResource:1(2 nvidia.com/gpu/1 nvidia.com/gpu) "
	    "HeldByLowerPriority:1",
	    "wait q InsufficientResource:1(2 nvidia.com/gpu/1 nvidia.com/gpu)" } },
	{ "pods of other schedulers are not ours",
	  NODE("a",
	       "") "---\n{kind: Pod, metadata: {name: p}, spec: {schedulerName: other, containers: "
		   "[{name: c}]}}\n",
	  { NULL } },
};

static void run_case(struct check *c, size_t i)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, CASES[i].yaml);
	for (size_t k = 0; k < ARRAY_COUNT(CASES[i].want) && CASES[i].want[k] != NULL; k++)
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), CASES[i].want[k]);
	CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
	rig_done(&rig);
}

// What a pod takes, seen by what is missing on a node that has nothing.
static const struct {
	const char *name, *spec, *want;
} AMOUNTS[] = {
	{ "containers add up",
	  "containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: "
	  "{cpu: 500m}}}]",
	  "1500m cpu" },
	{ "a limit is a request", "containers: [{resources: {limits: {cpu: 2}}}]", "2000m cpu" },
	{ "a request below the limit",
	  "containers: [{resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]", "1000m cpu" },
	{ "init containers run one by one",
	  "containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: "
	  "{requests: "
	  "{cpu: 3}}}, {resources: {requests: {cpu: 2}}}]",
	  "3000m cpu" },
	{ "sidecars stay",
	  "containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{"
	  "restartPolicy: Always, resources: {requests: {cpu: 3}}}]",
	  "4000m cpu" },
	{ "an init container beside the sidecar before it",
	  "containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{restartPolicy: "
	  "Always, "
	  "resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 5}}}]",
	  "6000m cpu" },
	{ "overhead", "overhead: {cpu: 250m}, containers: [{resources: {requests: {cpu: 1}}}]",
	  "1250m cpu" },
	{ "pod-level resources",
	  "resources: {requests: {cpu: 7}}, containers: [{resources: {requests: "
	  "{cpu: 1}}}]",
	  "7000m cpu" },
	{ "pod-level without this resource",
	  "resources: {requests: {memory: 1Gi}}, containers: [{"
	  "resources: {requests: {cpu: 1}}}]",
	  "1000m cpu" },
};

static void run_amount(struct check *c, size_t i)
{
	char yaml[1024], want[256];
	struct rig rig;
	rig_init(&rig);
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Node, metadata: {name: n}, status: {allocatable: {pods: 9, memory: 9Gi}}}"
		"\n---\n{kind: Pod, metadata: {name: p}, spec: {%s}}\n",
		AMOUNTS[i].spec);
	(void)snprintf(want, sizeof want, "wait p ResourceTooLarge:1(%s/0m cpu)", AMOUNTS[i].want);
	rig_put(&rig, yaml);
	CHECK_STR(c, AMOUNTS[i].name, str_of(rig_next(&rig)), want);
	rig_done(&rig);
}

static const struct {
	const char *name, *amount, *want;
} BAD[] = {
	{ "no number", "x", "refuse p InvalidQuantity:0(x of cpu/)" },
	{ "negative", "'-1'", "refuse p InvalidQuantity:0(-1 of cpu/)" },
	{ "too much", "1e30", "refuse p InvalidQuantity:0(1e+30 of cpu/)" },
	{ "not a number", "NaN", "refuse p InvalidQuantity:0(NaN of cpu/)" },
};

static void run_bad(struct check *c, size_t i)
{
	char yaml[1024];
	struct rig rig;
	rig_init(&rig);
	(void)snprintf(yaml, sizeof yaml,
		       "{kind: Node, metadata: {name: n}, status: {allocatable: {pods: 9, cpu: 9}}}"
		       "\n---\n{kind: Pod, metadata: {name: p}, spec: {containers: [{resources: "
		       "{requests: {cpu: %s}}}]}}\n",
		       BAD[i].amount);
	rig_put(&rig, yaml);
	CHECK_STR(c, BAD[i].name, str_of(rig_next(&rig)), BAD[i].want);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++)
		run_case(&c, i);
	for (size_t i = 0; i < ARRAY_COUNT(AMOUNTS); i++)
		run_amount(&c, i);
	for (size_t i = 0; i < ARRAY_COUNT(BAD); i++)
		run_bad(&c, i);
	return check_done(&c);
}
