// SPDX-License-Identifier: Apache-2.0
// Gangs: who starts with whom, what a gang is told, and who contradicts it: cases as YAML, then the
// lines of decisions with the clock set in between. A line that begins with '!' fails a bind.
#include "rig.h"

#include "check.h"

#define NODE(name, gpus, rack)                                                                     \
	"---\n{kind: Node, metadata: {name: " name ", labels: {rack: " rack                        \
	"}}, status: {allocatable: {cpu: 16, memory: 64Gi, pods: 20, nvidia.com/gpu: " gpus        \
	"}}}\n"
#define FULL(name, notes, gpus, more)                                                              \
	"---\n{kind: Pod, metadata: {name: " name ", annotations: {" notes                         \
	"}}, spec: {containers: [{name: c, resources: {limits: {cpu: 1, nvidia.com/gpu: " gpus     \
	"}}}], " more "}}\n"
#define LABELED(name, labels, gpus)                                                                \
	"---\n{kind: Pod, metadata: {name: " name ", labels: {" labels                             \
	"}}, spec: {containers: [{name: c, resources: {limits: {cpu: 1, nvidia.com/gpu: " gpus     \
	"}}}]}}\n"
#define OF(gang, min) "gpuaas.io/gang: " gang ", gpuaas.io/gang-min: '" min "'"
#define MEMBER(name, min, gpus) FULL(name, OF("g", min), gpus, "")
#define POD(name, gpus, more) FULL(name, "", gpus, more)
#define LASTS(seconds) "gpuaas.io/duration: '" seconds "'"
#define ON(node) "nodeName: " node
#define SHORT(nodes, gpus, have)                                                                   \
	"InsufficientResource:" nodes "(" gpus " nvidia.com/gpu/" have " nvidia.com/gpu)"
#define INCOMPLETE(need, have) "GangIncomplete:0(" need "/" have ")"
#define UNKNOWN(have)                                                                              \
	"GangIncomplete:0(gpuaas.io/gang-min, or a Job or PodGroup that says how many/" have ")"
#define JOB(name, count, notes, conditions)                                                        \
	"---\n{apiVersion: batch/v1, kind: Job, metadata: {name: " name ", annotations: {" notes   \
	"}}, spec: {parallelism: " count                                                           \
	", template: {metadata: {annotations: {gpuaas.io/gang: g}}}}, status: {conditions: "       \
	"" conditions "}}\n"
#define GROUPED(name) FULL(name, "", "3", "schedulingGroup: {podGroupName: g}")
#define NO_ROOM(need, have) "GangDoesNotFit:0(" need "/" have ")"
#define DIFFERS(theirs, own) "GangContradiction:0(gpuaas.io/" theirs "/gpuaas.io/" own ")"
#define RACK "gpuaas.io/topology: rack, " OF("g", "2")
#define GROUP(name, group, min, least)                                                             \
	FULL(name,                                                                                 \
	     OF("g", min) ", gpuaas.io/gang-group: " group ", gpuaas.io/gang-group-min: '" least   \
			  "'",                                                                     \
	     "4", "")

static const struct {
	const char *name, *yaml;
	const char *lines[14]; // ends with NULL; then there must be nothing more
} CASES[] = {
	{ "all start together",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "bind m2 b []" } },
	{ "nobody starts alone",
	  NODE("a", "4", "r") MEMBER("m1", "2", "4"),
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"), "+" NODE("b", "4", "r"),
	    "+" MEMBER("m2", "2", "4"), "bind m1 a []", "bind m2 b []" } },
	{ "one node is busy: none is bound, and another uses what is free",
	  NODE("a", "4", "r") NODE("b", "4", "r") POD("x", "4", ON("a")) MEMBER("m1", "2", "4")
		  MEMBER("m2", "2", "4"),
	  { "wait m1 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m2 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"), "-x", "bind m1 a []",
	    "bind m2 b []" } },
	{ "the room of the gang that waits for members is anybody's",
	  NODE("a", "4", "r") MEMBER("m1", "2", "2") POD("z", "4", ""),
	  { "bind z a []", "wait m1 " INCOMPLETE("2 pods", "1 pod") } },
	{ "a gang goes before those behind it and after those before it",
	  NODE("a", "4", "r") POD("l", "2", "") MEMBER("m1", "2", "1") MEMBER("m2", "2", "1")
		  POD("z", "1", ""),
	  { "bind l a []", "bind m1 a []", "bind m2 a []", "wait z " SHORT("1", "1", "0") } },
	{ "more than the minimum start if they fit",
	  NODE("a", "4", "r") MEMBER("m1", "2", "1") MEMBER("m2", "2", "1") MEMBER("m3", "2", "1")
		  MEMBER("m4", "2", "1") MEMBER("m5", "2", "1"),
	  { "bind m1 a []", "bind m2 a []", "bind m3 a []", "bind m4 a []",
	    "wait m5 " NO_ROOM("1 pod", "0 pods") " " SHORT("1", "1", "0"), "-m1",
	    "bind m5 a []" } },
	{ "never more than the maximum",
	  NODE("a", "4", "r") FULL("m1", OF("g", "1") ", gpuaas.io/gang-max: '2'", "1", "")
		  FULL("m2", OF("g", "1") ", gpuaas.io/gang-max: '2'", "1", "")
			  FULL("m3", OF("g", "1") ", gpuaas.io/gang-max: '2'", "1", ""),
	  { "bind m1 a []", "bind m2 a []", "wait m3 GangFull:0(3 pods/2 pods)", "-m2",
	    "bind m3 a []" } },
	{ "the large one goes first, however it stands in the queue",
	  NODE("a", "4", "r") NODE("b", "2", "r") MEMBER("m1", "3", "1") MEMBER("m2", "3", "1")
		  MEMBER("m3", "3", "4"),
	  { "bind m3 a []", "bind m1 b []", "bind m2 b []" } },
	{ "of an elastic gang those that fit",
	  NODE("a", "2", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "1") MEMBER("m3", "2", "1"),
	  { "bind m2 a []", "bind m3 a []",
	    "wait m1 " NO_ROOM("1 pod", "0 pods") " ResourceTooLarge:1(4 nvidia.com/gpu/2 "
						  "nvidia.com/gpu)" } },
	{ "one rack, the tightest",
	  NODE("a", "4", "r") NODE("b", "4", "r") NODE("c", "8", "r") NODE("d", "4", "s")
		  NODE("e", "4", "s") FULL("m1", RACK, "4", "") FULL("m2", RACK, "4", ""),
	  { "bind m1 d []", "bind m2 e []" } },
	{ "no rack has room for both",
	  NODE("a", "4", "r") NODE("b", "4", "s") FULL("m1", RACK, "4", "")
		  FULL("m2", RACK, "4", ""),
	  { "wait m1 " NO_ROOM("2 pods with one rack", "1 pod"),
	    "wait m2 " NO_ROOM("2 pods with one rack", "1 pod"), "+" NODE("c", "4", "s"),
	    "bind m1 b []", "bind m2 c []" } },
	{ "who comes later goes to the rack of those that run",
	  NODE("a", "4", "r") NODE("b", "4", "s") NODE("c", "4", "s") FULL("m1", RACK, "4", ON("b"))
		  FULL("m2", RACK, "4", ""),
	  { "bind m2 c []" } },
	{ "each sub-group has its minimum",
	  NODE("a", "4", "r") NODE("b", "4", "r") GROUP("m1", "x", "2", "1")
		  GROUP("m2", "x", "2", "1") GROUP("m3", "y", "2", "1"),
	  { "bind m1 a []", "bind m3 b []",
	    "wait m2 " NO_ROOM("1 pod", "0 pods") " " SHORT("2", "4", "0") } },
	{ "a sub-group that lacks its minimum holds all up",
	  NODE("a", "4", "r") NODE("b", "4", "r") GROUP("m1", "x", "2", "2")
		  GROUP("m3", "y", "2", "1"),
	  { "wait m1 " NO_ROOM("2 pods", "2 pods"), "wait m3 " NO_ROOM("2 pods", "2 pods") } },
	{ "of a Job only what has not succeeded yet",
	  NODE("a", "4", "r") "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: "
			      "{parallelism: 3, "
			      "completions: 3, template: {metadata: {annotations: {gpuaas.io/gang: "
			      "g}}}}, status: "
			      "{succeeded: 1}}\n" FULL("m1", "gpuaas.io/gang: g", "1", "")
				      FULL("m2", "gpuaas.io/gang: g", "1", ""),
	  { "bind m1 a []", "bind m2 a []" } },
	{ "those that run count",
	  NODE("a", "4", "r") FULL("m1", OF("g", "2"), "1", ON("a")) MEMBER("m2", "2", "1"),
	  { "bind m2 a []" } },
	{ "one that ended is no member of those that run, and holds nobody up",
	  NODE("a", "4", "r") FULL("m1", OF("g", "3"), "1", ON("a"))
		  FULL("m2", OF("g", "3"), "1", ON("a")) FULL("m3", OF("g", "3"), "1", ON("a")),
	  { ".", "-m1", "-m2", "+" MEMBER("m4", "3", "1"), "bind m4 a []" } },
	{ "a gang that changes its size: who differs from the first is refused",
	  NODE("a", "4", "r") MEMBER("m1", "2", "1") MEMBER("m2", "3", "1"),
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"),
	    "refuse m2 " DIFFERS("gang-min 2", "gang-min 3") } },
	{ "who differs from those that run is refused, until he agrees",
	  NODE("a", "4", "r") FULL("z", OF("g", "2"), "1", ON("a"))
		  FULL("y", OF("g", "2"), "1", ON("a")) MEMBER("m1", "3", "1"),
	  { "refuse m1 " DIFFERS("gang-min 2", "gang-min 3"), "+" MEMBER("m1", "2", "1"),
	    "bind m1 a []" } },
	{ "racks that differ",
	  NODE("a", "4", "r") MEMBER("m1", "2", "1") FULL("m2", RACK, "1", ""),
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"),
	    "refuse m2 " DIFFERS("topology ", "topology rack") } },
	{ "the word of the first passes to the next",
	  NODE("a", "4", "r") MEMBER("m1", "1", "8") MEMBER("m2", "2", "1") MEMBER("m3", "2", "1"),
	  { "wait m1 " NO_ROOM("1 pod", "0 pods") " ResourceTooLarge:1(8 nvidia.com/gpu/4 "
						  "nvidia.com/gpu)",
	    "refuse m2 " DIFFERS("gang-min 1", "gang-min 2"),
	    "refuse m3 " DIFFERS("gang-min 1", "gang-min 2"), "-m1", "bind m2 a []",
	    "bind m3 a []" } },
	{ "the plugin's labels",
	  NODE("a", "4", "r") LABELED("m1",
				      "pod-group.scheduling.sigs.k8s.io/name: g, "
				      "pod-group.scheduling.sigs.k8s.io/min-available: '2'",
				      "1"),
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"),
	    "+" LABELED("m2",
			"pod-group.scheduling.sigs.k8s.io/name: g, "
			"pod-group.scheduling.sigs.k8s.io/min-available: '2'",
			"1"),
	    "bind m1 a []", "bind m2 a []" } },
	{ "nodes are kept for all of the gang; who ends before passes",
	  NODE("a", "4", "r") NODE("b", "4", "r") FULL("x", LASTS("100"), "4", ON("a")) FULL(
		  "y", LASTS("50"), "4", ON("b")) MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "wait m1 " NO_ROOM("2 pods", "0 pods") " " SHORT("2", "4", "0"),
	    "wait m2 " NO_ROOM("2 pods", "0 pods") " " SHORT("2", "4", "0"), "@51000", "-y",
	    "wait m1 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m2 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "+" FULL("s", LASTS("49"), "4", ""), "bind s b []", "-s",
	    "+" FULL("t", LASTS("50"), "4", ""),
	    "wait t " SHORT("1", "4", "0") " ReservedForHead:1(50 s/49 s)" } },
	{ "what the gang leaves is free",
	  NODE("a", "4", "r") NODE("b", "4", "r") FULL("x", LASTS("100"), "4", ON("a")) MEMBER(
		  "m1", "2", "3") MEMBER("m2", "2", "3") POD("z", "1", "") POD("zz", "1", ""),
	  { "bind z b []", "wait m1 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "3", "0"),
	    "wait m2 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "3", "0"),
	    "wait zz " SHORT("1", "1", "0") " ReservedForHead:1(an unknown time/100 s)" } },
	{ "a gang that could never be whole keeps no node",
	  NODE("a", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4") POD("z", "4", ""),
	  { "bind z a []", "wait m1 " NO_ROOM("2 pods", "1 pod"),
	    "wait m2 " NO_ROOM("2 pods", "1 pod"), "@5000",
	    "wait m1 " NO_ROOM("2 pods", "0 pods") " " SHORT("1", "4", "0"),
	    "wait m2 " NO_ROOM("2 pods", "0 pods") " " SHORT("1", "4", "0") } },
	{ "a bind in the middle fails: those that run count, the rest comes later",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "bind m2 b []", "+" FULL("m1", OF("g", "2"), "4", ON("a")), "!m2",
	    "wait m2 BindFailed:0", "@1000", "bind m2 b []",
	    "+" FULL("m2", OF("g", "2"), "4", ON("b")) } },
	{ "what is started in part is given back when it expires",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "bind m2 b []", "+" FULL("m1", OF("g", "2"), "4", ON("a")), "!m2",
	    "wait m2 BindFailed:0", "+" POD("x", "4", ON("b")), "@1000",
	    "wait m2 " NO_ROOM("1 pod", "0 pods") " " SHORT("2", "4", "0"), "@600000",
	    "evict m1  m1", "-m1", "wait m2 " INCOMPLETE("2 pods", "1 pod") } },
	{ "what was whole is not given back",
	  NODE("a", "4", "r") FULL("m1", OF("g", "2"), "2", ON("a"))
		  FULL("m2", OF("g", "2"), "2", ON("a")),
	  { ".", "-m2", "@700000", ".", "+" MEMBER("m3", "2", "2"), "bind m3 a []" } },
	{ "a limit of the queue holds for the whole gang",
	  NODE("a", "8", "r") "---\n{kind: Tenant, metadata: {name: default}, spec: {queue: "
			      "{limit: 4}}}\n" MEMBER("m1", "2", "2") MEMBER("m2", "2", "2")
				      POD("x", "1", ON("a")),
	  { "wait m1 " NO_ROOM("2 pods", "1 pod") " QueueLimitReached:0(4 GPUs/3 GPUs for default)",
	    "wait m2 " NO_ROOM("2 pods", "1 pod") " QueueLimitReached:0(4 GPUs/3 GPUs for default)",
	    "-x", "bind m1 a []", "bind m2 a []" } },
	{ "a Job says how many",
	  NODE("a", "4", "r") FULL("m1", "gpuaas.io/gang: g", "1", "") JOB("j", "2", "", ""),
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"), "+" FULL("m2", "gpuaas.io/gang: g", "1", ""),
	    "bind m1 a []", "bind m2 a []" } },
	{ "nobody says how many, until a Job does",
	  NODE("a", "4", "r") FULL("m1", "gpuaas.io/gang: g", "1", ""),
	  { "wait m1 " UNKNOWN("1 pod"), "+" JOB("j", "1", "", ""), "bind m1 a []" } },
	{ "Jobs of a JobSet add up, when all of them are there",
	  NODE("a", "4", "r") JOB("j", "1", "jobset.sigs.k8s.io/global-replicas: '2'", "")
		  FULL("m1", "gpuaas.io/gang: g", "1", ""),
	  { "wait m1 " UNKNOWN("1 pod"),
	    "+" JOB("k", "1", "jobset.sigs.k8s.io/global-replicas: '2'", ""), "@5000",
	    "wait m1 " INCOMPLETE("2 pods", "1 pod"), "+" FULL("m2", "gpuaas.io/gang: g", "1", ""),
	    "bind m1 a []", "bind m2 a []" } },
	{ "a Job that is over counts no more",
	  NODE("a", "4", "r") JOB("old", "2", "", "[{type: Complete, status: 'True'}]")
		  JOB("j", "1", "", "") FULL("m1", "gpuaas.io/gang: g", "1", ""),
	  { "bind m1 a []" } },
	{ "a PodGroup of Kubernetes",
	  NODE("a", "4", "r") NODE("b", "4", "s") GROUPED("m1")
		  GROUPED("m2") "---\n{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, "
				"metadata: {name: g}, "
				"spec: {schedulingPolicy: {gang: {minCount: 2}}, "
				"schedulingConstraints: {topology: "
				"[{key: rack}]}}}\n",
	  { "wait m1 " NO_ROOM("2 pods with one rack", "1 pod"),
	    "wait m2 " NO_ROOM("2 pods with one rack", "1 pod"), "+" NODE("c", "4", "s"),
	    "bind m1 b []", "bind m2 c []" } },
	{ "a PodGroup of Kubernetes without a gang",
	  NODE("a", "4", "r") GROUPED("m1")
		  GROUPED("m2") "---\n{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, "
				"metadata: {name: g}, "
				"spec: {schedulingPolicy: {basic: {}}}}\n",
	  { "bind m1 a []", "wait m2 " NO_ROOM("1 pod", "0 pods") " " SHORT("1", "3", "1") } },
	{ "a PodGroup of the plugin",
	  NODE("a", "4", "r") LABELED("m1", "scheduling.x-k8s.io/pod-group: g",
				      "1") "---\n{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: "
					   "PodGroup, metadata: {name: g}, "
					   "spec: {minMember: 2}}\n",
	  { "wait m1 " INCOMPLETE("2 pods", "1 pod"),
	    "+" LABELED("m2", "scheduling.x-k8s.io/pod-group: g", "1"), "bind m1 a []",
	    "bind m2 a []" } },
	{ "the word of the first of a sub-group passes to the next",
	  NODE("a", "8", "r") NODE("b", "8", "r") GROUP("m0", "y", "3", "1")
		  GROUP("m1", "x", "3", "1") GROUP("m2", "x", "3", "2"),
	  { "wait m0 " INCOMPLETE("3 pods", "2 pods"), "wait m1 " INCOMPLETE("3 pods", "2 pods"),
	    "refuse m2 " DIFFERS("gang-group-min 1", "gang-group-min 2"), "-m1",
	    "+" GROUP("m3", "x", "3", "2"), "bind m0 a []", "bind m2 a []", "bind m3 b []" } },
	{ "the next of a sub-group follows the first that has gone in peace",
	  NODE("a", "8", "r") NODE("b", "8", "r") GROUP("m0", "y", "4", "1")
		  GROUP("m1", "x", "4", "1") GROUP("m2", "x", "4", "1"),
	  { "wait m0 " INCOMPLETE("4 pods", "3 pods"), "wait m1 " INCOMPLETE("4 pods", "3 pods"),
	    "wait m2 " INCOMPLETE("4 pods", "3 pods"), "-m1", "+" GROUP("m3", "x", "4", "2"),
	    "refuse m3 " DIFFERS("gang-group-min 1", "gang-group-min 2"), "-m2",
	    "+" GROUP("m4", "x", "4", "2"), "wait m3 " INCOMPLETE("4 pods", "3 pods"),
	    "wait m4 " INCOMPLETE("4 pods", "3 pods") } },
	{ "the first of a sub-group agrees with the one that was refused",
	  NODE("a", "8", "r") NODE("b", "8", "r") GROUP("m0", "y", "3", "1")
		  GROUP("m1", "x", "3", "1") GROUP("m2", "x", "3", "2"),
	  { "wait m0 " INCOMPLETE("3 pods", "2 pods"), "wait m1 " INCOMPLETE("3 pods", "2 pods"),
	    "refuse m2 " DIFFERS("gang-group-min 1", "gang-group-min 2"),
	    "+" GROUP("m1", "x", "3", "2"), "bind m0 a []", "bind m1 a []", "bind m2 b []" } },
	{ "who leaves the gang between the decision and its bind is bound all the same",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "+" POD("m2", "4", ""), "bind m2 b []" } },
	{ "and so is who changes to another gang",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "+" FULL("m2", OF("h", "1"), "4", ""), "bind m2 b []" } },
	{ "but not who is deleted then",
	  NODE("a", "4", "r") NODE("b", "4", "r") MEMBER("m1", "2", "4") MEMBER("m2", "2", "4"),
	  { "bind m1 a []", "-m2" } },
	{ "a gang of which nobody says any more how many it has is not given back",
	  NODE("a", "4", "r") JOB("j", "2", "", "[]") FULL("m1", "gpuaas.io/gang: g", "1", ON("a"))
		  FULL("m2", "gpuaas.io/gang: g", "8", ""),
	  { "wait m2 " NO_ROOM("1 pod", "0 pods") " ResourceTooLarge:1(8 nvidia.com/gpu/4 "
						  "nvidia.com/gpu)",
	    "+" JOB("j", "2", "", "[{type: Complete, status: 'True'}]"),
	    "wait m2 " UNKNOWN("2 pods"), "@700000", "." } },
	{ "a gang that may be smaller now has nodes kept for it",
	  NODE("a", "4", "r") NODE("b", "4", "r") JOB("j", "3", "", "[]") FULL(
		  "x", LASTS("100"), "4", ON("a")) FULL("m1", "gpuaas.io/gang: g", "4", "")
		  FULL("m2", "gpuaas.io/gang: g", "4", "") FULL("m3", "gpuaas.io/gang: g", "4", ""),
	  { "wait m1 " NO_ROOM("3 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m2 " NO_ROOM("3 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m3 " NO_ROOM("3 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "+" JOB("j", "2", "", "[]"), "@5000",
	    "wait m1 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m2 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "wait m3 " NO_ROOM("2 pods", "1 pod") " " SHORT("1", "4", "0"),
	    "+" FULL("t", LASTS("100"), "4", ""),
	    "wait t " SHORT("1", "4", "0") " ReservedForHead:1(100 s/95 s)" } },
	{ "affinity inside of the gang",
	  NODE("a", "4", "r") NODE("b", "4", "s") FULL(
		  "m1", OF("g", "2"), "1",
		  "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
		  "[{topologyKey: rack, labelSelector: {}}]}}")
		  FULL("m2", OF("g", "2"), "1",
		       "affinity: {podAntiAffinity: "
		       "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
		       "rack, labelSelector: {}}]}}"),
	  { "bind m1 a []", "bind m2 b []" } },
};

static void run_case(struct check *c, size_t i)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, CASES[i].yaml);
	for (size_t k = 0; k < ARRAY_COUNT(CASES[i].lines) && CASES[i].lines[k] != NULL; k++) {
		const char *line = CASES[i].lines[k];
		if (line[0] == '+')
			rig_put(&rig, line + 1);
		else if (line[0] == '-')
			rig_remove_pod(&rig, line + 1);
		else if (line[0] == '!')
			sched_bind_failed(rig.sched, str_of(line + 1), rig.now_ms);
		else if (line[0] == '@')
			CHECK(c, line, str_to_i64(str_of(line + 1), &rig.now_ms));
		else
			CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)),
				  line[0] == '.' ? "-" : line);
	}
	CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
	rig_done(&rig);
}

static size_t count_refused(struct rig *rig)
{
	while (!str_eq_c(str_of(rig_next(rig)), "-"))
		;
	return sched_counts_get(rig->sched).refused;
}

// Whoever is one too many is so until another goes, and nobody else for him.
static void test_too_many(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	for (int i = 0; i < SCHED_GANG_MAX + 2; i++)
		rig_put(&rig, arena_printf(rig.arena, MEMBER("m%04d", "1000", "1"), i));
	CHECK_INT(c, "two too many", count_refused(&rig), 2);
	rig_remove_pod(&rig, "m0500");
	CHECK_INT(c, "one too many", count_refused(&rig), 1);
	rig_remove_pod(&rig, "m0000");
	CHECK_INT(c, "as many as may be", count_refused(&rig), 0);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	test_too_many(&c);
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++)
		run_case(&c, i);
	return check_done(&c);
}
