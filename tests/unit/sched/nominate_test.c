// SPDX-License-Identifier: Apache-2.0
// Nodes that are kept for pods which were nominated for them.
#include "rig.h"

#include "check.h"

#include <stdio.h>

static void put_node(struct rig *rig, const char *name)
{
	char yaml[512];
	(void)snprintf(yaml, sizeof yaml,
		       "{kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: 8, pods: 2, "
		       "nvidia.com/gpu: 4}}}\n",
		       name);
	rig_put(rig, yaml);
}

static void put_pod(struct rig *rig, const char *name, int priority, int gpus, const char *status)
{
	char yaml[512];
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Pod, metadata: {name: %s}, spec: {priority: %d, containers: [{name: c, "
		"resources: {limits: {nvidia.com/gpu: %d}}}]}, status: {%s}}\n",
		name, priority, gpus, status);
	rig_put(rig, yaml);
}

static void put_running(struct rig *rig, const char *name, int gpus)
{
	char yaml[512];
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Pod, metadata: {name: %s}, spec: {nodeName: n, priority: 0, containers: "
		"[{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}}\n",
		name, gpus);
	rig_put(rig, yaml);
}

// Three are taken, the nominated pod needs four: the fourth is kept from equals and lower ones.
static void check_kept(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	sched_heads_set(rig.sched, 0);
	put_node(&rig, "n");
	put_running(&rig, "r", 3);
	put_pod(&rig, "kept", 5, 4, "nominatedNodeName: n");
	CHECK_STR(c, "waits", str_of(rig_next(&rig)),
		  "wait kept InsufficientResource:1(4 nvidia.com/gpu/1 nvidia.com/gpu) "
		  "HeldByLowerPriority:1");
	put_pod(&rig, "equal", 5, 1, "");
	CHECK_STR(c, "equal", str_of(rig_next(&rig)), "wait equal NominatedForOther:1");
	put_pod(&rig, "higher", 6, 1, "");
	CHECK_STR(c, "higher", str_of(rig_next(&rig)), "bind higher n []");
	rig_remove_pod(&rig, "higher");
	CHECK_STR(c, "still kept", str_of(rig_next(&rig)), "-");
	rig_remove_pod(&rig, "kept");
	CHECK_STR(c, "given up", str_of(rig_next(&rig)), "bind equal n []");
	rig_done(&rig);
}

static void check_goes_there(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "m");
	put_node(&rig, "n");
	put_pod(&rig, "p", 5, 4, "nominatedNodeName: n");
	CHECK_STR(c, "there first", str_of(rig_next(&rig)), "bind p n []");
	put_pod(&rig, "q", 5, 4, "nominatedNodeName: n");
	CHECK_STR(c, "elsewhere when it is full", str_of(rig_next(&rig)), "bind q m []");
	rig_done(&rig);
}

static void check_changes(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	sched_heads_set(rig.sched, 0);
	put_node(&rig, "n");
	put_running(&rig, "r", 3);
	put_pod(&rig, "kept", 5, 4, "nominatedNodeName: n");
	(void)rig_next(&rig);
	put_pod(&rig, "low", 0, 1, "");
	CHECK_STR(c, "kept", str_of(rig_next(&rig)), "wait low NominatedForOther:1");
	put_pod(&rig, "kept", 5, 4, "");
	CHECK_STR(c, "no longer", str_of(rig_next(&rig)), "bind low n []");
	put_pod(&rig, "kept", 5, 4, "nominatedNodeName: n");
	sched_node_remove(rig.sched, STR("n"));
	rig_done(&rig);
}

// The nomination came before the node did, and outlives it.
static void check_unknown_node(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	sched_heads_set(rig.sched, 0);
	put_pod(&rig, "kept", 5, 4, "nominatedNodeName: n");
	CHECK_STR(c, "no node", str_of(rig_next(&rig)), "wait kept NoNodes:0");
	put_node(&rig, "n");
	put_running(&rig, "r", 3);
	put_pod(&rig, "low", 0, 1, "");
	while (strcmp(rig_next(&rig), "-") != 0) {
	}
	CHECK_INT(c, "kept", (int64_t)sched_counts_get(rig.sched).waiting, 2);
	sched_node_remove(rig.sched, STR("n"));
	put_node(&rig, "n");
	while (strcmp(rig_next(&rig), "-") != 0) {
	}
	CHECK_INT(c, "kept again", (int64_t)sched_counts_get(rig.sched).waiting, 2);
	rig_remove_pod(&rig, "kept");
	CHECK_STR(c, "given up", str_of(rig_next(&rig)), "bind low n []");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_kept(&c);
	check_goes_there(&c);
	check_changes(&c);
	check_unknown_node(&c);
	return check_done(&c);
}
