// SPDX-License-Identifier: Apache-2.0
// Texts that others read: the CDI specification, the objects for the API server, configuration.
#include "base/json.h"
#include "check.h"
#include "daemons/agent/cdi.h"
#include "daemons/agent/config.h"
#include "daemons/agent/node_object.h"

static const struct gpu_info gpus[] = {
	{ .uuid = "GPU-1",
	  .model = "NVIDIA H100 80GB HBM3",
	  .pci_bus_id = "00000000:1A:00.0",
	  .index = 0,
	  .minor = 3,
	  .compute_major = 9,
	  .memory_bytes = UINT64_C(81920) << 20,
	  .numa_node = -1,
	  .mig_capable = true },
	{ .uuid = "GPU-2",
	  .model = "NVIDIA H100 80GB HBM3",
	  .pci_bus_id = "00000000:2A:00.0",
	  .index = 1,
	  .minor = 1,
	  .compute_major = 9,
	  .memory_bytes = UINT64_C(81920) << 20,
	  .numa_node = 1,
	  .mig_capable = true },
};

static void check_cdi(struct check *c)
{
	const struct cdi_mount mounts[] = {
		{ "/run/x-{index}-{minor}.sock", "/run/{uuid}", { "rw", "bind" }, 2, false }
	};
	const struct cdi_config config = { .driver_root = "/run/driver/",
					   .mounts = mounts,
					   .mount_count = 1 };
	const struct cdi_node nodes[] = { { true, 195, 3 }, { false, 0, 0 } };
	struct cdi_parts parts = { .gpus = gpus,
				   .nodes = nodes,
				   .gpu_count = 2,
				   .control = { { true, 195, 255 } },
				   .libraries = { "/usr/lib64/libcuda.so.1" },
				   .library_count = 1 };
	AUTO(buf_done) struct buf out = { 0 };
	AUTO(json_decrefp) json_t *spec = NULL;
	struct err err = { 0 };
	CHECK_INT(c, "render", cdi_render(&out, &config, &parts, &err), ERR_OK);
	CHECK_INT(c, "is JSON", json_parse(buf_str(&out), &spec, &err), ERR_OK);
	CHECK_STR(c, "kind", json_text(spec, "kind"), "k8s.device-plugin.nvidia.com/gpu");
	const json_t *device = json_array_get(json_at(spec, "devices"), 0);
	const json_t *node = json_array_get(json_at(device, "containerEdits.deviceNodes"), 0);
	const json_t *mount = json_array_get(json_at(device, "containerEdits.mounts"), 0);
	CHECK_STR(c, "name", json_text(device, "name"), "GPU-1");
	CHECK_STR(c, "node", json_text(node, "path"), "/dev/nvidia3");
	CHECK_STR(c, "on the host", json_text(node, "hostPath"), "/run/driver/dev/nvidia3");
	CHECK_INT(c, "major", json_int(node, "major", -1), 195);
	CHECK_STR(c, "mount", json_text(mount, "hostPath"), "/run/x-0-3.sock");
	CHECK_STR(c, "mount", json_text(mount, "containerPath"), "/run/GPU-1");
	const json_t *edits = json_at(spec, "containerEdits");
	node = json_array_get(json_at(edits, "deviceNodes"), 0);
	mount = json_array_get(json_at(edits, "mounts"), 0);
	CHECK_STR(c, "control", json_text(node, "path"), "/dev/nvidiactl");
	CHECK_STR(c, "library", json_text(mount, "hostPath"), "/run/driver/usr/lib64/libcuda.so.1");
	parts.gpu_count = 0;
	CHECK_INT(c, "no device", cdi_render(&out, &config, &parts, &err), ERR_INVALID);
}

static void check_layout(struct check *c, const json_t *object)
{
	const json_t *second = json_array_get(json_at(object, "status.devices"), 1);
	const json_t *conditions = json_at(object, "status.conditions");
	const json_t *first = json_array_get(json_at(object, "status.devices"), 0);
	CHECK_INT(c, "to switches", json_int(first, "switchLinks", 0), 12);
	CHECK_STR(c, "resource", json_text(first, "resource"), "nvidia.com/gpu.shared");
	CHECK_INT(c, "replicas", json_int(first, "replicas", 0), 4);
	CHECK(c, "whole", json_at(second, "replicas") == NULL);
	CHECK_INT(c, "one peer", json_array_size(json_at(second, "links")), 1);
	const json_t *link = json_array_get(json_at(second, "links"), 0);
	CHECK_STR(c, "peer", json_text(link, "uuid"), "GPU-1");
	CHECK_INT(c, "links", json_int(link, "count", 0), 4);
	CHECK_STR(c, "sharing", json_text(object, "status.layout.sharing"), "time-slicing");
	const json_t *problem = json_array_get(json_at(object, "status.versionProblems"), 0);
	CHECK_STR(c, "problem", json_text(problem, "code"), "CVE-2025-23266");
	CHECK_STR(c, "condition", json_text(json_array_get(conditions, 3), "reason"),
		  "KnownProblem");
}

static void check_mig_layout(struct check *c, const struct node_view *from,
			     const char *const times[NODE_CONDITIONS])
{
	const struct mig_apply apply = {
		.name = "small", .ran = "small", .reason = "in use", .outcome = MIG_FAILED
	};
	AUTO(buf_done) struct buf out = { 0 };
	AUTO(json_decrefp) json_t *object = NULL;
	struct node_view view = *from;
	view.apply = &apply;
	node_object_put_status(&out, &view, times);
	CHECK_INT(c, "status", json_parse(buf_str(&out), &object, NULL), ERR_OK);
	const json_t *last = json_array_get(json_at(object, "status.conditions"), 4);
	CHECK_STR(c, "condition", json_text(last, "type"), "MIGLayoutApplied");
	CHECK_STR(c, "condition", json_text(last, "status"), "False");
	CHECK_STR(c, "condition", json_text(last, "message"), "small: failed, in use");
	CHECK_STR(c, "state", json_text(object, "status.layout.migConfigState"), "failed");
}

static void check_node(struct check *c)
{
	struct monitor_gpu items[2] = { { .is_known = true, .info = gpus[0] },
					{ .is_known = true, .info = gpus[1] } };
	const struct nvml_hello driver = { .driver_version = "570.86.15", .cuda_version = 12080 };
	const struct node_view view = { .node = "node1",
					.gpus = items,
					.count = 2,
					.driver = &driver,
					.resource = "nvidia.com/gpu",
					.is_driver_up = true,
					.has_layout = true,
					.shares = { { .resource = "nvidia.com/gpu.shared",
						      .replicas = 4,
						      .is_renamed = true },
						    { .resource = "nvidia.com/gpu" } },
					.sharing = GPU_SHARING_TIME_SLICING,
					.versions = { .kubelet = "v1.36.3",
						      .runtime = "containerd://2.2.9",
						      .toolkit = "1.17.7" } };
	const char *const times[] = { "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z",
				      "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z",
				      "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z" };
	AUTO(buf_done) struct buf out = { 0 };
	AUTO(json_decrefp) json_t *object = NULL;
	AUTO(json_decrefp) json_t *labels = NULL;
	struct err err;
	(void)health_on_xid(&items[1].health, 79, 1);
	items[1].since.bad_since_s = INT64_C(1796068800);
	items[0].info.switch_links = 12;
	items[1].info.link_count = 2;
	items[1].info.links[0] = (struct gpu_link){ "00000000:1A:00.0", 4 };
	items[1].info.links[1] = (struct gpu_link){ "00000000:FF:00.0", 2 }; // nobody's
	node_object_put_status(&out, &view, times);
	CHECK_INT(c, "status", json_parse(buf_str(&out), &object, &err), ERR_OK);
	const json_t *second = json_array_get(json_at(object, "status.devices"), 1);
	CHECK(c, "healthy", !json_bool(second, "healthy", true));
	CHECK_STR(c, "reason", json_text(second, "reason"), "XID 79: GPU has fallen off the bus");
	CHECK_STR(c, "kind of fault", json_text(second, "fault.kind"), "xid");
	CHECK_STR(c, "state", json_text(second, "fault.state"), "unhealthy");
	CHECK(c, "dead", json_bool(second, "fault.dead", false));
	CHECK_STR(c, "since", json_text(second, "fault.since"), "2026-11-30T20:00:00Z");
	CHECK(c, "of a healthy one nothing",
	      json_at(json_array_get(json_at(object, "status.devices"), 0), "fault") == NULL);
	CHECK_INT(c, "memory", json_int(second, "memoryMiB", 0), 81920);
	CHECK_STR(c, "compute", json_text(second, "computeCapability"), "9.0");
	CHECK_STR(c, "cuda", json_text(object, "status.cudaVersion"), "12.8");
	const json_t *conditions = json_at(object, "status.conditions");
	CHECK_STR(c, "registered", json_text(json_array_get(conditions, 1), "status"), "False");
	CHECK_STR(c, "healthy", json_text(json_array_get(conditions, 2), "message"),
		  "1 of 2 devices are healthy");
	CHECK_INT(c, "nothing of shares and layouts", json_array_size(conditions), 4);
	check_mig_layout(c, &view, times);
	check_layout(c, object);
	buf_clear(&out);
	node_object_put_labels(&out, &view, 0);
	CHECK_INT(c, "labels", json_parse(buf_str(&out), &labels, &err), ERR_OK);
	static const char *const want[][2] = {
		{ "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3" },
		{ "nvidia.com/gpu.count", "2" },
		{ "nvidia.com/gpu.memory", "81920" },
		{ "nvidia.com/gpu.family", "hopper" },
		{ "nvidia.com/gpu.compute.major", "9" },
		{ "nvidia.com/cuda.driver-version.full", "570.86.15" },
		{ "nvidia.com/cuda.driver-version.revision", "15" },
		{ "nvidia.com/cuda.runtime-version.full", "12.8" },
		{ "nvidia.com/mig.capable", "true" },
	};
	const json_t *map = json_at(labels, "metadata.labels");
	for (size_t i = 0; i < ARRAY_COUNT(want); i++)
		CHECK_STR(c, want[i][0],
			  str_of(json_string_value(json_object_get(map, want[i][0]))), want[i][1]);
}

static void check_config(struct check *c)
{
	static const struct {
		const char *text, *error; // error NULL: taken
	} cases[] = {
		{ "{}", NULL },
		{ "health: {probeMs: 50, ignoreXids: '48,79'}", NULL },
		{ "server:\n  url: https://x:8443\n  caFile: /ca\n  tokenFile: /t\n", NULL },
		{ "extraDeviceMounts: []", NULL },
		{ "extraDeviceMounts: [{hostPath: /a, containerPath: /b}]", NULL },
		{ "extraDeviceMounts: [{hostPath: a, containerPath: /b}]", "extraDeviceMounts[0]" },
		{ "extraDeviceMounts: [{hostPath: /a, containerPath: /b, mode: x}]", "mode" },
		{ "healht: {}", "healht" },
		{ "health: {probe: 5}", "probe" },
		{ "health: {probeMs: fast}", "health.probeMs" },
		{ "health: {probeMs: 1}", "20" },
		{ "health: 7", "health" },
		{ "tls: {certFile: /x}", "keyFile" },
		{ "[]", "mapping" },
		{ "a: b: c", "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		struct agent_config config = { 0 };
		struct err err = { 0 };
		err_status status = agent_config_read(arena, str_of(cases[i].text), &config, &err);
		CHECK(c, cases[i].text, (status == ERR_OK) == (cases[i].error == NULL));
		if (cases[i].error != NULL)
			CHECK(c, err.text, strstr(err.text, cases[i].error) != NULL);
	}
}

static void check_flags(struct check *c)
{
	static const struct {
		const char *name, *args[4];
		bool ok;
		char wish;
	} cases[] = {
		{ "help", { "agent", "--help" }, true, 'h' },
		{ "two words", { "agent", "--node-name", "n" }, true, 0 },
		{ "one word", { "agent", "--node-name=n" }, true, 0 },
		{ "unknown", { "agent", "--nodename=n" }, false, 0 },
		{ "no value", { "agent", "--listen" }, false, 0 },
		{ "bad name", { "agent", "--node-name=N N" }, false, 0 },
		{ "no such file", { "agent", "--node-name=n", "--config=/nonexistent" }, false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		struct agent_config config;
		struct err err = { 0 };
		char *args[5] = { 0 }, wish = '?';
		int count = 0;
		for (; cases[i].args[count] != NULL; count++)
			args[count] = arena_cstr(arena, str_of(cases[i].args[count]));
		err_status status = agent_config_load(arena, count, args, &config, &wish, &err);
		CHECK(c, cases[i].name, (status == ERR_OK) == cases[i].ok);
		if (status == ERR_OK)
			CHECK_INT(c, cases[i].name, wish, cases[i].wish);
	}
}

int main(void)
{
	struct check c = { 0 };
	check_cdi(&c);
	check_node(&c);
	check_config(&c);
	check_flags(&c);
	return check_done(&c);
}
