// SPDX-License-Identifier: Apache-2.0
// Reservations for the head of a pool, and who may pass it: cases as YAML, then the lines of
// decisions with the clock set in between.
#include "rig.h"

#include "check.h"

#define NODE(name)                                                                                 \
	"---\n{kind: Node, metadata: {name: " name ", labels: {kind: " name "}}, status: "         \
	"{allocatable: {cpu: 16, memory: 64Gi, pods: 20, nvidia.com/gpu: 4}}}\n"
#define FULL(name, meta, gpus, more)                                                               \
	"---\n{kind: Pod, metadata: {name: " name ", " meta "}, spec: {containers: [{name: c, "    \
	"resources: {limits: {cpu: 1, nvidia.com/gpu: " gpus "}}}], " more "}}\n"
#define LASTS(seconds) "annotations: {gpuaas.io/duration: '" seconds "'}"
#define POD(name, gpus, seconds, more) FULL(name, LASTS(seconds), gpus, more)
#define FOREVER(name, gpus, more) FULL(name, "", gpus, more)
#define KIND(kind) "nodeSelector: {kind: " kind "}"
#define ON(node) "nodeName: " node
#define SHORT(nodes, gpus, have)                                                                   \
	"InsufficientResource:" nodes "(" gpus " nvidia.com/gpu/" have " nvidia.com/gpu)"
#define RESERVED(nodes, need, have) "ReservedForHead:" nodes "(" need "/" have ")"
#define UNKNOWN "an unknown time"

// Heads are called h, those behind them later in the alphabet. A line that begins with '+' adds
// objects, with '-' removes a pod, with '!' a node, with '@' sets the clock; '.' is no decision.
static const struct {
	const char *name, *yaml;
	const char *lines[12]; // ends with NULL; then there must be nothing more
} CASES[] = {
	{ "the node that is free first is reserved; who ends before passes",
	  NODE("a") NODE("b") POD("x", "4", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", "") POD("l", "1", "60", "") POD("s", "2", "50", ""),
	  { "bind s b []", "wait h " SHORT("2", "4", "2"),
	    "wait l " SHORT("1", "1", "0") " " RESERVED("1", "60 s", "50 s"), "@5000",
	    "wait h " SHORT("2", "4", "0"), "wait l " SHORT("2", "1", "0") } },
	{ "the reason of one that would fit",
	  NODE("a") NODE("b") POD("x", "4", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", "") POD("l", "1", "60", "") FOREVER("m", "2", ""),
	  { "wait h " SHORT("2", "4", "2"),
	    "wait l " SHORT("1", "1", "0") " " RESERVED("1", "60 s", "50 s"),
	    "wait m " SHORT("1", "2", "0") " " RESERVED("1", UNKNOWN, "50 s") } },
	{ "one that is too long for the reserved node takes another",
	  NODE("a") NODE("b") POD("x", "3", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", "") POD("l", "1", "60", ""),
	  { "bind l a []", "wait h " SHORT("2", "4", "2") } },
	{ "one before the head is not bound by it",
	  NODE("a") POD("y", "2", "50", ON("a")) POD("h", "4", "9", ""),
	  { "wait h " SHORT("1", "4", "2"), "+" POD("g", "1", "60", ""), "bind g a []",
	    "+" POD("l", "1", "50", ""), "bind l a []" } },
	{ "a short one passes a long one that is like it",
	  NODE("a") POD("x", "3", "50", ON("a")) POD("h", "4", "9", "") POD("l", "1", "60", ""),
	  { "wait h " SHORT("1", "4", "1"), "wait l " RESERVED("1", "60 s", "50 s"),
	    "+" POD("m", "1", "50", ""), "bind m a []", "wait l " SHORT("1", "1", "0") } },
	{ "of those that may pass the first in queue order does",
	  NODE("a") POD("x", "2", "50", ON("a")) POD("h", "4", "9", "") POD("l", "1", "60", "")
		  POD("m", "2", "40", "") POD("n", "1", "30", ""),
	  { "bind m a []", "wait h " SHORT("1", "4", "2"), "wait l " SHORT("1", "1", "0"),
	    "wait n " SHORT("1", "1", "0") } },
	{ "what the head leaves is free",
	  NODE("a") POD("y", "3", "50", ON("a")) POD("h", "2", "9", "") POD("l", "1", "60", "")
		  POD("m", "1", "60", "") FOREVER("n", "0", ""),
	  { "bind l a []", "bind n a []", "wait h " SHORT("1", "2", "1"),
	    "wait m " SHORT("1", "1", "0") } },
	{ "a pod that does not say how long it runs ends never",
	  NODE("a") NODE("b") FOREVER("x", "2", ON("a")) POD("y", "4", "500", ON("b"))
		  POD("h", "4", "9", "") FOREVER("l", "2", ""),
	  { "bind l a []", "wait h " SHORT("2", "4", "2") } },
	{ "where nothing is said, the least that is left to free",
	  NODE("a") NODE("b") FOREVER("x", "3", ON("a")) FOREVER("y", "2", ON("b"))
		  FOREVER("h", "4", "") FOREVER("k", "1", "") POD("l", "1", "1", ""),
	  { "bind k a []", "wait h " SHORT("2", "4", "2"),
	    "wait l " SHORT("1", "1", "0") " " RESERVED("1", "1 s", UNKNOWN), "-y", "bind h b []",
	    "." } },
	{ "one that is late ends soon, less soon the later it is",
	  NODE("a") POD("y", "2", "50", ON("a")) POD("h", "4", "9", "") POD("l", "1", "60", ""),
	  { "wait h " SHORT("1", "4", "2"), "wait l " RESERVED("1", "60 s", "50 s"), "@60000", ".",
	    "wait l " RESERVED("1", "60 s", "6 s"), "+" POD("s", "1", "6", ""), "bind s a []" } },
	{ "the head starts and its reservation is over",
	  NODE("a") NODE("b") POD("x", "4", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", "") POD("l", "2", "60", ""),
	  { "wait h " SHORT("2", "4", "2"),
	    "wait l " SHORT("1", "2", "0") " " RESERVED("1", "60 s", "50 s"), "-x", "bind h a []",
	    "bind l b []" } },
	{ "the head goes and its reservation is over",
	  NODE("b") POD("y", "2", "50", ON("b")) POD("h", "4", "9", "") POD("l", "2", "60", ""),
	  { "wait h " SHORT("1", "4", "2"), "wait l " RESERVED("1", "60 s", "50 s"), "-h",
	    "bind l b []" } },
	{ "a head that no node could ever hold reserves nothing",
	  NODE("b") POD("y", "2", "50", ON("b")) POD("h", "5", "9", "") POD("l", "2", "60", ""),
	  { "bind l b []", "wait h ResourceTooLarge:1(5 nvidia.com/gpu/4 nvidia.com/gpu)" } },
	{ "each pool has a head of its own",
	  NODE("a") NODE("b") POD("x", "2", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", KIND("a")) POD("k", "4", "9", KIND("b"))
			  POD("l", "1", "60", "") POD("m", "1", "101", ""),
	  { "bind l a []", "wait h NodeSelectorMismatch:1 " SHORT("2", "4", "2"),
	    "wait k NodeSelectorMismatch:1 " SHORT("2", "4", "2"),
	    "wait m " RESERVED("2", "101 s", "100 s") } },
	{ "a head comes before the head that was",
	  NODE("a") NODE("b") POD("x", "2", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("k", "4", "9", "") POD("l", "1", "60", KIND("b")),
	  { "wait k " SHORT("2", "4", "2"),
	    "wait l NodeSelectorMismatch:1 " RESERVED("1", "60 s", "50 s"),
	    "+" POD("h", "4", "9", ""), "wait h " SHORT("2", "4", "2"), "-y", "bind h b []",
	    "." } },
	{ "a pod that is being deleted ends within its grace",
	  NODE("a") NODE("b") POD("x", "4", "100", ON("a"))
		  FULL("y", "deletionTimestamp: '2026-01-01T00:00:00Z'", "2", ON("b"))
			  POD("h", "4", "9", "") POD("l", "1", "31", ""),
	  { "wait h " SHORT("2", "4", "2"),
	    "wait l " SHORT("1", "1", "0") " " RESERVED("1", "31 s", "30 s") } },
	{ "a node that comes serves the head",
	  NODE("a") POD("x", "2", "100", ON("a")) POD("h", "4", "9", "") POD("l", "2", "200", ""),
	  { "wait h " SHORT("1", "4", "2"), "wait l " RESERVED("1", "200 s", "100 s"),
	    "+" NODE("b"), "bind h b []", "bind l a []" } },
	{ "a node that goes takes its reservation along",
	  NODE("a") NODE("b") POD("x", "2", "100", ON("a")) POD("y", "2", "50", ON("b"))
		  POD("h", "4", "9", ""),
	  { "wait h " SHORT("2", "4", "2"), "!b", "+" POD("l", "2", "101", ""),
	    "wait l " RESERVED("1", "101 s", "100 s") } },
	{ "a duration must be whole seconds",
	  NODE("a") POD("p", "1", "1h", ""),
	  { "refuse p InvalidAnnotation:0(gpuaas.io/duration must be whole seconds from 1 to ten "
	    "years, not \"1h\"/)" } },
	{ "a duration must be more than none",
	  NODE("a") POD("p", "1", "0", ""),
	  { "refuse p InvalidAnnotation:0(gpuaas.io/duration must be whole seconds from 1 to ten "
	    "years, not \"0\"/)" } },
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
			sched_node_remove(rig.sched, str_of(line + 1));
		else if (line[0] == '@')
			CHECK(c, line, str_to_i64(str_of(line + 1), &rig.now_ms));
		else
			CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)),
				  line[0] == '.' ? "-" : line);
	}
	CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
	rig_done(&rig);
}

static void test_explain(struct check *c)
{
	struct rig rig;
	struct sched_explanation got;
	struct sched_reservation reservations[SCHED_HEADS_MAX];
	rig_init(&rig);
	rig_put(&rig, NODE("a") POD("y", "2", "50", ON("a")) POD("h", "4", "9", ""));
	rig.now_ms = 1000;
	CHECK_STR(c, "waits", str_of(rig_next(&rig)), "wait h " SHORT("1", "4", "2"));
	CHECK(c, "is known", sched_explain(rig.sched, STR("default"), STR("h"), &got));
	CHECK_STR(c, "node", got.reserved_node, "a");
	CHECK_INT(c, "instant", got.reserved_ms, 50000);
	CHECK_INT(c, "wakes", sched_wake_ms(rig.sched), 50000);
	CHECK_INT(c, "reservations", sched_reservations(rig.sched, reservations, SCHED_HEADS_MAX),
		  1);
	CHECK_STR(c, "for whom", reservations[0].uid, "h");
	sched_heads_set(rig.sched, 0);
	rig_put(&rig, POD("l", "1", "60", ""));
	CHECK_STR(c, "no heads", str_of(rig_next(&rig)), "bind l a []");
	CHECK_INT(c, "no reservations",
		  sched_reservations(rig.sched, reservations, SCHED_HEADS_MAX), 0);
	CHECK(c, "is known still", sched_explain(rig.sched, STR("default"), STR("h"), &got));
	CHECK_INT(c, "no node", got.reserved_node.len, 0);
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	test_explain(&c);
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++)
		run_case(&c, i);
	return check_done(&c);
}
