// SPDX-License-Identifier: Apache-2.0
// One pod against one node: every filter, both ways. A case is a node's and a pod's part in YAML
// and the line that is expected.
#include "rig.h"

#include "check.h"

#include <stdio.h>

static const struct {
	const char *name, *labels, *node_spec, *node_status, *pod_meta, *pod_spec, *want;
} CASES[] = {
	{ "plain", "", "", "", "", "", "bind p n [0]" },
	{ "selector", "a: b", "", "", "", "nodeSelector: {a: b}", "bind p n [0]" },
	{ "selector misses", "a: c", "", "", "", "nodeSelector: {a: b}",
	  "wait p NodeSelectorMismatch:1" },
	{ "In", "a: c", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b, c]}]}]}}}",
	  "bind p n [0]" },
	{ "NotIn with the label", "a: c", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: NotIn, values: [c]}]}]}}}",
	  "wait p NodeSelectorMismatch:1" },
	{ "NotIn without the label", "", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: NotIn, values: [c]}]}]}}}",
	  "bind p n [0]" },
	{ "Exists", "a: ''", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}",
	  "bind p n [0]" },
	{ "DoesNotExist", "a: ''", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: DoesNotExist}]}]}}}",
	  "wait p NodeSelectorMismatch:1" },
	{ "Gt", "a: '11'", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ['9']}]}]}}}",
	  "bind p n [0]" },
	{ "Lt on text", "a: x", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Lt, values: ['9']}]}]}}}",
	  "wait p NodeSelectorMismatch:1" },
	{ "one of two terms", "a: b", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}, "
	  "{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}",
	  "bind p n [0]" },
	{ "an empty term matches nothing", "a: b", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{}]}}}",
	  "wait p NodeSelectorMismatch:1" },
	{ "other field", "", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchFields: [{key: spec.x, operator: In, values: [n]}]}]}}}",
	  "refuse p UnsupportedValue:0(matchFields of spec.x/)" },
	{ "operator of the future", "", "", "", "",
	  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
	  "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Like}]}]}}}",
	  "refuse p UnsupportedValue:0(operator Like in node affinity/)" },
	{ "cordoned", "", "unschedulable: true", "", "", "", "wait p NodeUnschedulable:1" },
	{ "cordoned, tolerated", "", "unschedulable: true", "", "",
	  "tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]",
	  "bind p n [0]" },
	{ "taint", "", "taints: [{key: a, value: b, effect: NoSchedule}]", "", "", "",
	  "wait p UntoleratedTaint:1" },
	{ "taint NoExecute", "", "taints: [{key: a, value: b, effect: NoExecute}]", "", "", "",
	  "wait p UntoleratedTaint:1" },
	{ "taint PreferNoSchedule", "", "taints: [{key: a, effect: PreferNoSchedule}]", "", "", "",
	  "bind p n [0]" },
	{ "tolerated by Equal", "", "taints: [{key: a, value: b, effect: NoSchedule}]", "", "",
	  "tolerations: [{key: a, value: b, effect: NoSchedule}]", "bind p n [0]" },
	{ "Equal, other value", "", "taints: [{key: a, value: b, effect: NoSchedule}]", "", "",
	  "tolerations: [{key: a, value: c}]", "wait p UntoleratedTaint:1" },
	{ "Exists, other effect", "", "taints: [{key: a, value: b, effect: NoSchedule}]", "", "",
	  "tolerations: [{key: a, operator: Exists, effect: NoExecute}]",
	  "wait p UntoleratedTaint:1" },
	{ "tolerates everything", "", "taints: [{key: a, value: b, effect: NoSchedule}]", "", "",
	  "tolerations: [{operator: Exists}]", "bind p n [0]" },
	{ "toleration of the future", "", "", "", "",
	  "tolerations: [{key: a, operator: Gt, value: '5'}]",
	  "refuse p UnsupportedValue:0(operator Gt of a toleration/)" },
	{ "not ready", "", "", "conditions: [{type: Ready, status: Unknown}]", "", "",
	  "wait p NodeNotReady:1" },
	{ "ready", "", "", "conditions: [{type: Ready, status: 'True'}]", "", "", "bind p n [0]" },
	{ "GPU model", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB", "", "",
	  "annotations: {gpuaas.io/gpu-models: 'H100, A100-80'}", "", "bind p n [0]" },
	{ "GPU model misses", "", "", "", "annotations: {gpuaas.io/gpu-models: H100}", "",
	  "wait p GpuModelMismatch:1" },
	{ "empty model list", "", "", "", "annotations: {gpuaas.io/gpu-models: ' ,'}", "",
	  "refuse p InvalidAnnotation:0(gpuaas.io/gpu-models must be a comma list of models, "
	  "not \" ,\"/)" },
	{ "GPU memory", "", "", "", "annotations: {gpuaas.io/min-gpu-memory: 80Gi}", "",
	  "bind p n [0]" },
	{ "GPU memory misses", "", "", "", "annotations: {gpuaas.io/min-gpu-memory: 81Gi}", "",
	  "wait p GpuMemoryTooSmall:1(82944 MiB a GPU/81920 MiB a GPU)" },
	{ "GPU memory is no quantity", "", "", "", "annotations: {gpuaas.io/min-gpu-memory: many}",
	  "",
	  "refuse p InvalidAnnotation:0(gpuaas.io/min-gpu-memory must be a quantity such as 40Gi, "
	  "not \"many\"/)" },
	{ "compute", "{nvidia.com/gpu.compute.major: '8', nvidia.com/gpu.compute.minor: '0'}", "",
	  "", "annotations: {gpuaas.io/min-compute: '8.0'}", "", "bind p n [0]" },
	{ "compute too low",
	  "{nvidia.com/gpu.compute.major: '8', nvidia.com/gpu.compute.minor: '0'}", "", "",
	  "annotations: {gpuaas.io/min-compute: '8.9'}", "",
	  "wait p GpuComputeTooLow:1(8.9.0/8.0.0)" },
	{ "compute unknown", "", "", "", "annotations: {gpuaas.io/min-compute: '8.9'}", "",
	  "wait p GpuComputeTooLow:1(8.9.0/unknown)" },
	{ "driver", "nvidia.com/cuda.driver-version.full: 550.54.15", "", "",
	  "annotations: {gpuaas.io/min-driver: '550.54'}", "", "bind p n [0]" },
	{ "driver too old", "nvidia.com/cuda.driver-version.full: 535.104.05", "", "",
	  "annotations: {gpuaas.io/min-driver: '550'}", "",
	  "wait p DriverTooOld:1(550.0.0/535.104.5)" },
	{ "cuda",
	  "{nvidia.com/cuda.runtime-version.major: '12', "
	  "nvidia.com/cuda.runtime-version.minor: '4'}",
	  "", "", "annotations: {gpuaas.io/min-cuda: '12.4'}", "", "bind p n [0]" },
	{ "cuda too old", "nvidia.com/cuda.runtime-version.full: '12.2'", "", "",
	  "annotations: {gpuaas.io/min-cuda: '12.4'}", "", "wait p CudaTooOld:1(12.4.0/12.2.0)" },
	{ "driver is no version", "", "", "", "annotations: {gpuaas.io/min-driver: new}", "",
	  "refuse p InvalidAnnotation:0(gpuaas.io/min-driver must be a version such as 535.104, "
	  "not \"new\"/)" },
	{ "gated", "", "", "", "", "schedulingGates: [{name: g}]", "wait p SchedulingGated:0" },
	{ "unknown field", "", "", "", "", "newField: 1",
	  "refuse p UnknownField:0(spec.newField/)" },
	{ "claim", "", "", "", "", "resourceClaims: [{name: c}]",
	  "wait p ResourceClaimNotFound:1(default//)" },
	{ "group that nobody describes", "", "", "", "", "schedulingGroup: {podGroupName: g}",
	  "wait p GangIncomplete:0(gpuaas.io/gang-min, or a Job or PodGroup that says how "
	  "many/1 pod)" },
	{ "a cloud's disk", "", "", "", "",
	  "volumes: [{name: v, awsElasticBlockStore: {volumeID: x}}]",
	  "refuse p UnsupportedVolume:0(v/)" },
	{ "harmless volumes", "", "", "", "",
	  "volumes: [{name: a, emptyDir: {}}, {name: b, secret: {}}, {name: c, configMap: {}}, "
	  "{name: d, projected: {}}, {name: e, downwardAPI: {}}, {name: f, hostPath: {path: /x}}]",
	  "bind p n [0]" },
	{ "user namespace on the host's network", "", "", "", "",
	  "{hostNetwork: true, hostUsers: false}", "wait p NodeFeatureMissing:1" },
	{ "the same, declared", "", "", "declaredFeatures: [UserNamespacesHostNetworkSupport]", "",
	  "{hostNetwork: true, hostUsers: false}", "bind p n [0]" },
};

// Braces around a part are dropped, so that a case may have several members.
static const char *inner(const char *part, char *out, size_t out_bytes)
{
	size_t len = strlen(part);
	bool is_braced = len > 1 && part[0] == '{' && part[len - 1] == '}';
	(void)snprintf(out, out_bytes, "%.*s", (int)(is_braced ? len - 2 : len),
		       part + (is_braced ? 1 : 0));
	return out;
}

static void run_case(struct check *c, size_t i)
{
	char yaml[8192], labels[1024], pod_spec[2048];
	struct rig rig;
	rig_init(&rig);
	(void)snprintf(
		yaml, sizeof yaml,
		"{kind: Node, metadata: {name: n, labels: {%s}}, spec: {%s}, status: {allocatable: "
		"{cpu: 8, memory: 32Gi, pods: 110, nvidia.com/gpu: 2}, %s}}\n---\n"
		"{kind: GPUNode, metadata: {name: n}, status: {devices: ["
		"{uuid: GPU-a, index: 0, model: NVIDIA A100-SXM4-80GB, memoryMiB: 81920, healthy: "
		"true}, "
		"{uuid: GPU-b, index: 1, model: NVIDIA A100-SXM4-80GB, memoryMiB: 81920, healthy: "
		"true}"
		"]}}\n---\n"
		"{kind: Pod, metadata: {name: p, %s}, spec: {containers: [{name: c, resources: "
		"{limits: {nvidia.com/gpu: 1}}}], %s}}\n",
		inner(CASES[i].labels, labels, sizeof labels), CASES[i].node_spec,
		CASES[i].node_status, CASES[i].pod_meta,
		inner(CASES[i].pod_spec, pod_spec, sizeof pod_spec));
	rig_put(&rig, yaml);
	CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), CASES[i].want);
	CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++)
		run_case(&c, i);
	return check_done(&c);
}
