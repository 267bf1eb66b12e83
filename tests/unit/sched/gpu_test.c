// SPDX-License-Identifier: Apache-2.0
// What pods may ask of GPUs, against what GPUNode says about them: kind, compute capability,
// versions, groups and health. A case is the devices of a node with room for four, the GPUs and
// annotations of a pod, and the expected decision.
#include "rig.h"

#include "check.h"

#include <stdio.h>

#define A100 "model: NVIDIA A100-SXM4-80GB, memoryMiB: 81920"
#define L4 "model: NVIDIA L4, memoryMiB: 23034"
#define GPU(no, more) "{uuid: GPU-" no ", index: " no ", healthy: true, " more "}"
#define FOUR GPU("0", A100) ", " GPU("1", A100) ", " GPU("2", A100) ", " GPU("3", A100)
#define PAIR(no, peer, more) GPU(no, A100 ", links: [{uuid: GPU-" peer ", count: 4}]" more)
#define PAIRS                                                                                      \
	PAIR("0", "1", "") ", " PAIR("1", "0", "") ", " PAIR("2", "3", "") ", " PAIR("3", "2", "")
#define NUMA(no, numa) GPU(no, A100 ", numaNode: " numa)
#define SWITCH(no) GPU(no, A100 ", switchLinks: 12")

static const struct {
	const char *name, *facts, *devices;
	int gpus;
	const char *annotations, *want;
} CASES[] = {
	{ "any", "", FOUR, 4, "", "bind p n [0,1,2,3]" },
	{ "model of one device", "", GPU("0", L4) ", " GPU("1", A100), 1, "gpu-models: A100",
	  "bind p n [1]" },
	{ "one of two models", "", GPU("0", L4), 1, "gpu-models: 'H100, L4'", "bind p n [0]" },
	{ "another model", "", FOUR, 1, "gpu-models: H100", "wait p GpuModelMismatch:1" },
	{ "too few of the model", "", GPU("0", L4) ", " GPU("1", A100), 2, "gpu-models: A100",
	  "wait p DeviceUnavailable:1(2 GPUs/1 GPUs)" },
	{ "memory of one device", "", GPU("0", L4) ", " GPU("1", A100), 1, "min-gpu-memory: 40Gi",
	  "bind p n [1]" },
	{ "too little memory", "", FOUR, 1, "min-gpu-memory: 81Gi",
	  "wait p GpuMemoryTooSmall:1(82944 MiB a GPU/81920 MiB a GPU)" },
	{ "compute of one device", "",
	  GPU("0", L4 ", computeCapability: '8.9'") ", " GPU("1", A100 ", computeCapability: "
								       "'8.0'"),
	  1, "min-compute: '8.9'", "bind p n [0]" },
	{ "too low a compute", "", GPU("0", A100 ", computeCapability: '8.0'"), 1,
	  "min-compute: '10.0'", "wait p GpuComputeTooLow:1(10.0.0/8.0.0)" },
	{ "9.0 is less than 10.0", "", GPU("0", A100 ", computeCapability: '9.0'"), 1,
	  "min-compute: '10.0'", "wait p GpuComputeTooLow:1(10.0.0/9.0.0)" },
	{ "compute is not known", "", FOUR, 1, "min-compute: '8.0'",
	  "wait p GpuComputeTooLow:1(8.0.0/unknown)" },
	{ "driver", "driverVersion: 580.65.06, ", FOUR, 1, "min-driver: '580.65'", "bind p n [0]" },
	{ "driver, part by part", "driverVersion: 580.9.1, ", FOUR, 1, "min-driver: '580.65'",
	  "wait p DriverTooOld:1(580.65.0/580.9.1)" },
	{ "driver is not known", "", FOUR, 1, "min-driver: '580'",
	  "wait p DriverTooOld:1(580.0.0/unknown)" },
	{ "cuda", "cudaVersion: '13.0', ", FOUR, 1, "min-cuda: '12.8'", "bind p n [0]" },
	{ "cuda too old", "cudaVersion: '12.4', ", FOUR, 1, "min-cuda: '12.8'",
	  "wait p CudaTooOld:1(12.8.0/12.4.0)" },
	{ "a pair", "", PAIRS, 2, "topology: nvlink", "bind p n [0,1]" },
	{ "three of two pairs", "", PAIRS, 3, "topology: nvlink",
	  "wait p GpuGroupTooSmall:1(3 GPUs/2 GPUs)" },
	{ "a pair of which one is ill", "",
	  "{uuid: GPU-0, index: 0, healthy: false, " A100
	  ", links: [{uuid: GPU-1, count: 4}]}, " PAIR("1", "0", "") ", " PAIR(
		  "2", "3", "") ", " PAIR("3", "2", ""),
	  2, "topology: nvlink", "bind p n [2,3]" },
	{ "no links", "", FOUR, 2, "topology: nvlink", "wait p GpuGroupTooSmall:1(2 GPUs/1 GPUs)" },
	{ "one needs no link", "", FOUR, 1, "topology: nvlink", "bind p n [0]" },
	{ "a chain is one group", "",
	  GPU("0", A100 ", links: [{uuid: GPU-1, count: 1}]") ", " GPU(
		  "1", A100 ", links: [{uuid: GPU-2, count: 1}]") ", " GPU("2", A100),
	  3, "topology: nvlink", "bind p n [0,1,2]" },
	{ "a switch joins all", "", SWITCH("0") ", " SWITCH("1") ", " SWITCH("2") ", " SWITCH("3"),
	  4, "topology: nvlink", "bind p n [0,1,2,3]" },
	{ "one NUMA node", "", NUMA("0", "0") ", " NUMA("1", "1") ", " NUMA("2", "1"), 2,
	  "topology: numa", "bind p n [1,2]" },
	{ "more than a NUMA node has", "", NUMA("0", "0") ", " NUMA("1", "1") ", " NUMA("2", "1"),
	  3, "topology: numa", "wait p GpuGroupTooSmall:1(3 GPUs/2 GPUs)" },
	{ "the smaller of two groups that do", "",
	  NUMA("0", "0") ", " NUMA("1", "0") ", " NUMA("2", "0") ", " NUMA("3", "1"), 1,
	  "topology: numa", "bind p n [3]" },
	{ "the node has the label", "", FOUR, 1, "topology: rack", "bind p n [0]" },
	{ "the node lacks the label", "", FOUR, 1, "topology: example.com/row",
	  "wait p TopologyLabelMissing:1" },
	{ "ill", "", "{uuid: GPU-0, index: 0, healthy: false, " A100 "}, " GPU("1", A100), 2, "",
	  "wait p GpuUnhealthy:1(2 GPUs/1 GPUs)" },
	{ "ill, but enough are well", "",
	  "{uuid: GPU-0, index: 0, healthy: false, " A100 "}, " GPU("1", A100), 1, "",
	  "bind p n [1]" },
	{ "several at once", "driverVersion: '550.1', ", GPU("0", L4 ", computeCapability: '8.9'"),
	  2, "gpu-models: A100, gpuaas.io/min-driver: '580', gpuaas.io/min-gpu-memory: 40Gi",
	  "wait p GpuModelMismatch:1 GpuMemoryTooSmall:1(40960 MiB a GPU/23034 MiB a GPU) "
	  "DriverTooOld:1(580.0.0/550.1.0)" },
};

static void put(struct rig *rig, const char *name, int gpus, const char *annotations)
{
	char yaml[1024];
	(void)snprintf(yaml, sizeof yaml,
		       "{kind: Pod, metadata: {name: %s, annotations: {%s%s}}, spec: {containers: "
		       "[{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}}\n",
		       name, annotations[0] == 0 ? "" : "gpuaas.io/", annotations, gpus);
	rig_put(rig, yaml);
}

static void put_node(struct rig *rig, const char *facts, const char *devices)
{
	char yaml[4096];
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Node, metadata: {name: n, labels: {rack: r1}}, status: {allocatable: "
		"{cpu: 8, pods: 9, nvidia.com/gpu: 4}}}\n---\n"
		"{kind: GPUNode, metadata: {name: n}, status: {%sdevices: [%s]}}\n",
		facts, devices);
	rig_put(rig, yaml);
}

static void check_cases(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		rig_init(&rig);
		put_node(&rig, CASES[i].facts, CASES[i].devices);
		put(&rig, "p", CASES[i].gpus, CASES[i].annotations);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), CASES[i].want);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
		rig_done(&rig);
	}
}

// Groups are used up, wait and come back.
static void check_groups(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "", PAIRS);
	put(&rig, "a", 1, "");
	CHECK_STR(c, "one", str_of(rig_next(&rig)), "bind a n [0]");
	put(&rig, "b", 2, "topology: nvlink");
	CHECK_STR(c, "the whole pair", str_of(rig_next(&rig)), "bind b n [2,3]");
	put(&rig, "d", 2, "topology: nvlink");
	CHECK_STR(c, "taken", str_of(rig_next(&rig)),
		  "wait d InsufficientResource:1(2 nvidia.com/gpu/1 nvidia.com/gpu)");
	rig_remove_pod(&rig, "a");
	CHECK_STR(c, "free again", str_of(rig_next(&rig)), "bind d n [0,1]");
	rig_done(&rig);
}

static void check_wakes(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	put_node(&rig, "driverVersion: '550.1', ", FOUR);
	put(&rig, "p", 2, "min-driver: '580'");
	CHECK_STR(c, "old", str_of(rig_next(&rig)), "wait p DriverTooOld:1(580.0.0/550.1.0)");
	put_node(&rig, "driverVersion: '580.1', ", FOUR);
	CHECK_STR(c, "updated", str_of(rig_next(&rig)), "bind p n [0,1]");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_cases(&c);
	check_groups(&c);
	check_wakes(&c);
	return check_done(&c);
}
