// SPDX-License-Identifier: Apache-2.0
// What the API server is told, by the whole agent: labels and GPUNode are written once, not again
// after a restart, never removed while the driver is away, and anew when the driver changes.
#include "check.h"
#include "fake_api.h"
#include "rig.h"

#include <signal.h>
#include <stdlib.h>

enum { PERIOD_S = 1, SETTLE_MS = 1500, LIMIT_MS = 60000 };

static struct fake_api api;
static const char *wanted;

static bool has_wanted(void)
{
	return api.labels.len > 0 && api.gpu_node_status.len > 0 &&
	       strstr(api.labels.data, wanted) != NULL;
}

static bool has_reason(void) { return strstr(api.gpu_node_status.data, wanted) != NULL; }

static bool is_registered(void)
{
	return api.gpu_node_status.len > 0 &&
	       strstr(api.gpu_node_status.data, "\"NotRegistered\"") == NULL;
}

static void copy(struct buf *out, const struct buf *from)
{
	buf_clear(out);
	buf_put(out, buf_str(from));
}

static void check_restart(struct check *c, const char *kubeconfig)
{
	AUTO(buf_done) struct buf labels = { 0 };
	AUTO(buf_done) struct buf status = { 0 };
	wanted = "\"nvidia.com/gpu.count\":\"2\"";
	CHECK(c, "labels", rig_wait_for(has_wanted, LIMIT_MS) != UINT64_MAX);
	CHECK(c, "registered", rig_wait_for(is_registered, LIMIT_MS) != UINT64_MAX);
	static const char *const texts[] = { "\"switchLinks\":12", "\"kubeletVersion\":\"v1.36.3\"",
					     "\"layout\":{\"sharing\":\"none\",\"mig\":\"none\"}",
					     "\"NoKnownProblem\"" };
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		CHECK(c, texts[i], strstr(api.gpu_node_status.data, texts[i]) != NULL);
	rig_wait(SETTLE_MS);
	unsigned patches = api.patches;
	copy(&labels, &api.labels);
	copy(&status, &api.gpu_node_status);
	rig_wait(SETTLE_MS);
	CHECK_INT(c, "nothing changed, nothing written", api.patches, patches);
	CHECK_INT(c, "killed", rig_stop_agent(SIGKILL), -1);
	rig_start_agent(kubeconfig);
	CHECK(c, "again", rig_wait_for(rig_has_stream, LIMIT_MS) != UINT64_MAX);
	rig_wait(SETTLE_MS);
	CHECK_STR(c, "labels stay", buf_str(&api.labels), labels.data);
	CHECK_STR(c, "status stays", buf_str(&api.gpu_node_status), status.data);
}

static bool is_down(void)
{
	return strstr(api.gpu_node_status.data, "\"DriverDoesNotAnswer\"") != NULL;
}

static bool is_up(void) { return !is_down(); }

static void check_driver_away(struct check *c, const char *kubeconfig)
{
	AUTO(buf_done) struct buf labels = { 0 };
	copy(&labels, &api.labels);
	CHECK_INT(c, "stops", rig_stop_agent(SIGTERM), 0);
	rig_control("initfail on\n");
	rig_wait(300);
	rig_start_agent(kubeconfig);
	CHECK(c, "driver is away", rig_wait_for(is_down, LIMIT_MS) != UINT64_MAX);
	CHECK_STR(c, "labels stay", buf_str(&api.labels), labels.data);
	rig_control("initfail off\n");
	CHECK(c, "driver is back", rig_wait_for(is_up, LIMIT_MS) != UINT64_MAX);
	rig_wait(SETTLE_MS);
	CHECK_STR(c, "labels stay", buf_str(&api.labels), labels.data);
}

static void check_driver_change(struct check *c)
{
	rig_control("driver 580.95.05 13.0\n");
	wanted = "\"nvidia.com/cuda.driver-version.full\":\"580.95.05\"";
	CHECK(c, "driver changed", rig_wait_for(has_wanted, LIMIT_MS) != UINT64_MAX);
	CHECK(c, "CUDA changed",
	      strstr(api.labels.data, "\"nvidia.com/cuda.runtime-version.full\":\"13.0\"") != NULL);
	CHECK(c, "GPUNode",
	      strstr(api.gpu_node_status.data, "\"driverVersion\":\"580.95.05\"") != NULL);
}

static const char *told;
static bool is_told(void) { return api.told.len > 0 && strstr(api.told.data, told) != NULL; }

static void expect_told(struct check *c, const char *text)
{
	told = text;
	CHECK(c, text, rig_wait_for(is_told, LIMIT_MS) != UINT64_MAX);
}

static size_t healthy_count(void)
{
	size_t count = 0;
	for (size_t i = 0; i < rig.kubelet.device_count; i++)
		count += rig.kubelet.devices[i].is_healthy ? 1 : 0;
	return count;
}

static bool is_one_out(void) { return healthy_count() == 1; }
static bool are_all_in(void) { return healthy_count() == 2; }

// A fault and something that was left behind take one GPU out of use, and say so.
static void check_faults(struct check *c)
{
	CHECK(c, "all in", rig_wait_for(are_all_in, LIMIT_MS) != UINT64_MAX);
	rig_control("process 1 4711 500\nxid 0 48\n");
	expect_told(c, "is given to nobody: XID 48: double-bit ECC error");
	expect_told(c, "\"GPURecovered\"");
	expect_told(c, "nobody holds it, but process 4711 is still on it");
	CHECK(c, "one out", rig_wait_for(is_one_out, LIMIT_MS) != UINT64_MAX);
	wanted = "\"reason\":\"nobody holds it, but process 4711";
	CHECK(c, "GPUNode has it", rig_wait_for(has_reason, LIMIT_MS) != UINT64_MAX);
	rig_control("process 1 4711 0\n");
	CHECK(c, "clean again", rig_wait_for(are_all_in, LIMIT_MS) != UINT64_MAX);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char text[600], kubeconfig[200];
	if (argc != 5)
		return 2;
	rig_set_up(argv, 2, "");
	fake_api_init(&api, rig.loop);
	(void)snprintf(
		text, sizeof text,
		"health: {probeMs: 200, holdOffS: 1, handoverMs: 500}\nnode: {periodS: %d}\n",
		PERIOD_S);
	rig_write("agent.yaml", "w", text);
	rig_write_kubeconfig(api.address, kubeconfig, sizeof kubeconfig);
	rig_start_agent(kubeconfig);
	check_restart(&c, kubeconfig);
	check_driver_away(&c, kubeconfig);
	check_driver_change(&c);
	check_faults(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	fake_api_done(&api);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
