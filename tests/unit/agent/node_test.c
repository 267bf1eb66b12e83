// SPDX-License-Identifier: Apache-2.0
// What the API server is told, by the whole agent: labels and GPUNode are written once, not again
// after a restart, never removed while the driver is away, and anew when the driver changes.
#include "check.h"
#include "fake_api.h"
#include "rig.h"

#include <signal.h>
#include <stdlib.h>

enum { PERIOD_S = 1, SETTLE_MS = 1500, SAFETY_MS = 60000 };

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
	WAIT(c, "labels", has_wanted);
	WAIT(c, "registered", is_registered);
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
	WAIT(c, "again", rig_has_stream);
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
	WAIT(c, "driver is away", is_down);
	CHECK_STR(c, "labels stay", buf_str(&api.labels), labels.data);
	rig_control("initfail off\n");
	WAIT(c, "driver is back", is_up);
	rig_wait(SETTLE_MS);
	CHECK_STR(c, "labels stay", buf_str(&api.labels), labels.data);
}

static void check_driver_change(struct check *c)
{
	rig_control("driver 580.95.05 13.0\n");
	wanted = "\"nvidia.com/cuda.driver-version.full\":\"580.95.05\"";
	WAIT(c, "driver changed", has_wanted);
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
	WAIT(c, text, is_told);
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
	WAIT(c, "all in", are_all_in);
	rig_control("process 1 4711 500\nxid 0 48\n");
	expect_told(c, "is given to nobody: XID 48: double-bit ECC error");
	expect_told(c, "\"GPURecovered\"");
	expect_told(c, "nobody holds it, but process 4711 is still on it");
	WAIT(c, "one out", is_one_out);
	wanted = "\"reason\":\"nobody holds it, but process 4711";
	WAIT(c, "GPUNode has it", has_reason);
	rig_control("process 1 4711 0\n");
	WAIT(c, "clean again", are_all_in);
}

static struct str since_of(const char *kind)
{
	static const char key[] = "\"since\":\"";
	const char *at = strstr(api.gpu_node_status.data, kind);
	at = at == NULL ? NULL : strstr(at, key);
	return at == NULL ? STR("")
			  : (struct str){ at + sizeof key - 1, strlen("2026-11-30T20:00:00Z") };
}

// What sends pods away counts from when a GPU died, not from a doubt hours before.
static void check_death(struct check *c)
{
	char before[32];
	rig_control("error nvmlDeviceGetTemperature 999 0\n");
	wanted = "\"kind\":\"error\",\"state\":\"unhealthy\",\"dead\":false";
	WAIT(c, "calls fail", has_reason);
	(void)snprintf(before, sizeof before, STR_FMT, STR_ARG(since_of(wanted)));
	rig_wait(2100);
	rig_control("lost 0\n");
	wanted = "\"kind\":\"lost\",\"state\":\"unhealthy\",\"dead\":true";
	WAIT(c, "dead", has_reason);
	CHECK(c, "since then", str_cmp(str_of(before), since_of(wanted)) < 0 && before[0] == '2');
	rig_control("restore 0\n");
	WAIT(c, "back", are_all_in);
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
	check_death(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	fake_api_done(&api);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
