// SPDX-License-Identifier: Apache-2.0
// The agent as a program that brings layouts of MIG devices about: mode, instances, a held one that
// stays, layouts that are refused, its death in the middle.
// Arguments: agent, emulator daemon, emulated library, file of a board.
#include "base/json.h"
#include "check.h"
#include "rig.h"
#include "sys/fs.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { GPUS = 2, SAFETY_MS = 40000 };
#define ONE "nvidia.com/mig-1g.10gb"
#define TWO "nvidia.com/mig-2g.20gb"
#define THREE "nvidia.com/mig-3g.40gb"

// The layout that is wanted of the first GPU; the second stays whole.
static void configure(const char *mig_devices)
{
	char text[600], from[200], to[200];
	(void)snprintf(text, sizeof text,
		       "version: v1\nmig-configs:\n  demo:\n  - devices: [0]\n    mig-enabled: %s\n"
		       "    mig-devices: {%s}\n",
		       mig_devices == NULL ? "false" : "true",
		       mig_devices == NULL ? "" : mig_devices);
	rig_write("mig.yaml.new", "w", text);
	(void)snprintf(from, sizeof from, "%s/mig.yaml.new", rig.root);
	(void)snprintf(to, sizeof to, "%s/mig.yaml", rig.root);
	if (rename(from, to) != 0 || (rig.agent_pid != 0 && kill(rig.agent_pid, SIGHUP) != 0))
		abort();
}

// A text of the record on disk.
static const char *record(const char *key)
{
	static char out[400];
	char path[200];
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(json_decrefp) json_t *root = NULL;
	(void)snprintf(path, sizeof path, "%s/state/mig-layout.json", rig.root);
	out[0] = '\0';
	if (fs_read(path, 100000, &text, NULL) == ERR_OK &&
	    json_parse(buf_str(&text), &root, NULL) == ERR_OK)
		(void)snprintf(out, sizeof out, "%s", json_cstr(root, key));
	return out;
}

static bool is_ended(void) { return strcmp(record("phase"), "ended") == 0; }
static bool has_failed(void) { return is_ended() && strcmp(record("outcome"), "failed") == 0; }
static bool has_layout_a(void)
{
	return rig_offered(THREE) == 1 && rig_offered(ONE) == 2 &&
	       rig_unhealthy(THREE) + rig_unhealthy(ONE) == 0 && rig.kubelet.device_count == 1 &&
	       is_ended();
}
static bool has_layout_b(void)
{
	return rig_offered(THREE) == 1 && rig_offered(TWO) == 1 && rig_offered(ONE) == 0 &&
	       rig_unhealthy(THREE) + rig_unhealthy(TWO) == 0 && is_ended();
}
static bool is_whole(void)
{
	return rig.kubelet.device_count == 2 && fake_kubelet_unhealthy(&rig.kubelet) == 0 &&
	       rig_offered(THREE) + rig_offered(TWO) + rig_offered(ONE) == 0;
}
static bool is_whole_and_ended(void) { return is_whole() && is_ended(); }

#define LAYOUT_A "3g.40gb: 1, 1g.10gb: 2"
#define LAYOUT_B "3g.40gb: 1, 2g.20gb: 1"

static void check_start(struct check *c)
{
	configure(NULL);
	rig_start_agent("none");
	WAIT(c, "nothing to do", is_whole_and_ended);
	configure(LAYOUT_A);
	WAIT(c, "MIG mode on, three instances", has_layout_a);
	CHECK_STR(c, "and it is noted", str_of(record("outcome")), "success");
}

static void hold(const char *resource)
{
	struct fake_row row = { .namespace_ = "team", .pod = "a", .uid = "uid-a" };
	row.is_listed = true;
	(void)snprintf(row.container, sizeof row.container, "main");
	(void)snprintf(row.resource, sizeof row.resource, "%s", resource);
	(void)snprintf(row.id, sizeof row.id, "%s", rig_plugin(resource)->devices[0].id);
	fake_kubelet_hold(&rig.kubelet, &row);
}
static bool has_bound(void) { return rig_count(EVENT_BOUND) == 1; }

static void check_held(struct check *c)
{
	char id[FAKE_ID_BYTES];
	hold(THREE);
	WAIT(c, "a pod has the 3g", has_bound);
	(void)snprintf(id, sizeof id, "%s", rig_plugin(THREE)->devices[0].id);
	configure("7g.80gb: 1");
	WAIT(c, "a layout without it is refused", has_failed);
	CHECK_STR(c, "with the reason", str_of(record("reason")),
		  "GPU 0: 1 x 3g.40gb are in use or reserved, the layout has 0");
	CHECK(c, "nothing is touched", has_layout_a());
	configure("3g.40gb: 2, 1g.10gb: 1");
	rig_wait(2500);
	CHECK(c, "one that the board cannot hold changes nothing", has_layout_a());
	configure(LAYOUT_B);
	WAIT(c, "the others change while it is held", has_layout_b);
	CHECK_STR(c, "it is the same", str_of(rig_plugin(THREE)->devices[0].id), id);
	CHECK_INT(c, "and is held still", rig_count(EVENT_RELEASED), 0);
}

// GPU instances that the emulator has, of the first GPU.
static size_t count_instances(void)
{
	char path[200];
	size_t count = 0;
	(void)snprintf(path, sizeof path, "%s/emu/proc/driver/nvidia/capabilities/gpu0/mig",
		       rig.root);
	DIR *dir = opendir(path);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
		count += str_starts(str_of(entry->d_name), STR("gi")) ? 1 : 0;
	if (dir != NULL)
		(void)closedir(dir);
	return count;
}

static bool has_begun(void) { return strcmp(record("phase"), "begun") == 0; }
// Layout B's 2g has gone, and of the two of layout A that replace it one or none is there.
static bool has_changed_some(void) { return has_begun() && count_instances() == 1; }

static void slow_changes(unsigned us)
{
	char text[200];
	(void)snprintf(text, sizeof text,
		       "slow nvmlDeviceCreateGpuInstanceWithPlacement %u\n"
		       "slow nvmlGpuInstanceDestroy %u\n",
		       us, us);
	rig_control(text);
}

// Once while the fence stands, and while instances change.
static void check_deaths(struct check *c)
{
	static bool (*const when[])(void) = { has_begun, has_changed_some };
	slow_changes(400000);
	for (size_t i = 0; i < ARRAY_COUNT(when); i++) {
		configure(LAYOUT_A);
		WAIT(c, "in the middle", when[i]);
		(void)rig_stop_agent(SIGKILL);
		CHECK_STR(c, "in the middle", str_of(record("phase")), "begun");
		// As whoever wanted it has changed his mind: what is left must be as before.
		configure(LAYOUT_B);
		rig_start_agent("none");
		WAIT(c, "as it was", has_layout_b);
		CHECK_INT(c, "what is held stays", rig_count(EVENT_RELEASED), 0);
	}
	configure(LAYOUT_A);
	WAIT(c, "in the middle", has_changed_some);
	(void)rig_stop_agent(SIGKILL);
	rig_start_agent("none");
	WAIT(c, "undone, then done", has_layout_a);
	slow_changes(0);
}

static void check_failure(struct check *c)
{
	rig_control("error nvmlGpuInstanceCreateComputeInstance 999 0\n");
	configure(LAYOUT_B);
	WAIT(c, "a driver that refuses", has_failed);
	CHECK(c, "says so", strstr(record("reason"), "compute instance: ") != NULL);
	rig_control("error nvmlGpuInstanceCreateComputeInstance 0 0\n");
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char path[200], config[600];
	if (argc != 5)
		return 2;
	rig_set_up(argv, GPUS, "");
	(void)snprintf(config, sizeof config,
		       "health: {probeMs: 100, deadlineMs: 2000, cleanProbes: 2, holdOffS: 1}\n"
		       "usage: {readMs: 200, sampleS: 1}\n"
		       "driverProcRoot: %s/emu/proc\n"
		       "mig: {manage: true, configFile: '%s/mig.yaml', layout: demo}\n",
		       rig.root, rig.root);
	rig_write("agent.yaml", "w", config);
	rig_write("dp.yaml", "w", "version: v1\nflags: {migStrategy: mixed}\n");
	(void)snprintf(path, sizeof path, "%s/dp.yaml", rig.root);
	if (setenv("CONFIG_FILE", path, 1) != 0)
		abort();
	check_start(&c);
	check_held(&c);
	check_deaths(&c);
	check_failure(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
