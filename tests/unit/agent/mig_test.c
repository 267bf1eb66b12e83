// SPDX-License-Identifier: Apache-2.0
// The agent as a program with MIG devices: strategies, what containers get, faults of one instance
// and of its GPU, metering by slices, instances that come and go.
// Arguments: agent, emulator daemon, emulated library, file of a board.
#include "check.h"
#include "rig.h"
#include "sys/fs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { GPUS = 2, SAFETY_MS = 30000, EVENTS_MAX = 4000 };
#define ONE "nvidia.com/mig-1g.10gb"
#define THREE "nvidia.com/mig-3g.40gb"
// GPU instances are numbered by their place: 3g at 0, 1g at 4 and 5.
#define THREE_GI "1"
#define ONE_GI "11"

static void configure(const char *strategy, const char *more)
{
	char text[300];
	(void)snprintf(text, sizeof text, "version: v1\nflags: {migStrategy: %s%s}\n", strategy,
		       more);
	rig_write("dp.yaml", "w", text);
	if (rig.agent_pid != 0 && kill(rig.agent_pid, SIGHUP) != 0)
		abort();
}

static bool has_mixed(void)
{
	return rig_offered(THREE) == 1 && rig_offered(ONE) == 2 && rig.kubelet.device_count == 1;
}
static bool is_well(void)
{
	return has_mixed() && rig_unhealthy(ONE) + rig_unhealthy(THREE) == 0 &&
	       fake_kubelet_unhealthy(&rig.kubelet) == 0;
}
static bool has_bad_instance(void) { return rig_unhealthy(ONE) == 1 && rig_unhealthy(THREE) == 0; }
static bool has_bad_gpu(void) { return rig_unhealthy(ONE) == 2 && rig_unhealthy(THREE) == 1; }

static void check_start(struct check *c)
{
	char path[300];
	AUTO(buf_done) struct buf spec = { 0 };
	rig_start_agent("none");
	WAIT(c, "mixed: MIG devices by profile, the other GPU whole", is_well);
	(void)snprintf(path, sizeof path, "%s/cdi/k8s.device-plugin.nvidia.com-gpu.json", rig.root);
	CHECK_INT(c, "CDI specification", fs_read(path, 100000, &spec, NULL), ERR_OK);
	CHECK(c, "names a MIG device", strstr(spec.data, rig_plugin(THREE)->devices[0].id) != NULL);
	// gpu0/gi1/access is 3 + 1 * 9, its first compute instance the next.
	CHECK(c, "opens its GPU instance",
	      strstr(spec.data, "/dev/nvidia-caps/nvidia-cap12\",\"type\":\"c\",\"major\":236,"
				"\"minor\":12") != NULL);
	CHECK(c, "and its compute instance", strstr(spec.data, "nvidia-cap13\"") != NULL);
	(void)snprintf(path, sizeof path, "/emu/%s.sock", rig_plugin(THREE)->devices[0].id);
	CHECK(c, "extra mount of MIG devices", strstr(spec.data, path) != NULL);
}

static void check_allocations(struct check *c)
{
	struct fake_answer answer;
	char want[200];
	struct str ids[2] = { str_of(rig_plugin(ONE)->devices[0].id),
			      str_of(rig_plugin(ONE)->devices[1].id) };
	rig.kubelet.target = rig_plugin(ONE);
	fake_kubelet_prefer(&rig.kubelet, ids, 2, 1, &answer);
	CHECK_INT(c, "preferred", answer.count, 1);
	fake_kubelet_allocate(&rig.kubelet, ids, 2, &answer);
	CHECK_INT(c, "allocate", answer.code, GRPC_OK);
	CHECK_INT(c, "a name for each", answer.count, 2);
	(void)snprintf(want, sizeof want, "k8s.device-plugin.nvidia.com/gpu=%s",
		       rig_plugin(ONE)->devices[0].id);
	CHECK_STR(c, "qualified name", str_of(answer.ids[0]), want);
	const struct str three = str_of(rig_plugin(THREE)->devices[0].id);
	fake_kubelet_allocate(&rig.kubelet, &three, 1, &answer);
	CHECK_INT(c, "another profile", answer.code, GRPC_INVALID_ARGUMENT);
	rig.kubelet.target = NULL;
	fake_kubelet_allocate(&rig.kubelet, ids, 1, &answer);
	CHECK_INT(c, "a MIG device is no GPU", answer.code, GRPC_INVALID_ARGUMENT);
}

static void check_health(struct check *c)
{
	struct fake_answer answer;
	WAIT(c, "events are watched", rig_watches_events);
	rig_control("xid 0 95 " ONE_GI " 0\n");
	WAIT(c, "an instance's XID", has_bad_instance);
	struct str bad =
		str_of(rig_plugin(ONE)->devices[rig_plugin(ONE)->devices[0].is_healthy].id);
	rig.kubelet.target = rig_plugin(ONE);
	fake_kubelet_allocate(&rig.kubelet, &bad, 1, &answer);
	CHECK_INT(c, "it is not given", answer.code, GRPC_FAILED_PRECONDITION);
	rig.kubelet.target = NULL;
	(void)rig_stop_agent(SIGKILL);
	rig.kubelet.registrations = 0;
	rig_start_agent("none");
	WAIT(c, "kept over a restart, or healed since", has_mixed);
	WAIT(c, "heals", is_well);
	WAIT(c, "events are watched again", rig_watches_events);
	rig_control("xid 0 79\n");
	WAIT(c, "a GPU's XID is one of all its instances", has_bad_gpu);
	CHECK_INT(c, "of no other GPU", fake_kubelet_unhealthy(&rig.kubelet), 0);
	WAIT(c, "heals", is_well);
}

static void hold(const char *pod, const char *resource, size_t i)
{
	struct fake_row row = { .namespace_ = "team", .container = "main", .is_listed = true };
	(void)snprintf(row.resource, sizeof row.resource, "%s", resource);
	(void)snprintf(row.pod, sizeof row.pod, "%s", pod);
	(void)snprintf(row.uid, sizeof row.uid, "uid-%s", pod);
	(void)snprintf(row.id, sizeof row.id, "%s", rig_plugin(resource)->devices[i].id);
	fake_kubelet_hold(&rig.kubelet, &row);
}

static struct usage_event events[EVENTS_MAX];

static const struct usage_event *find(event_type type, const char *pod)
{
	size_t count = rig_events(events, EVENTS_MAX);
	const struct usage_event *found = NULL;
	for (size_t i = 0; i < count; i++) {
		if (events[i].type == type && strcmp(events[i].pod, pod) == 0)
			found = &events[i];
	}
	return found;
}
static bool has_bound(void) { return rig_count(EVENT_BOUND) == 2; }
static bool has_sample(void)
{
	const struct usage_event *sample = find(EVENT_SAMPLE, "a");
	return sample != NULL && sample->memory_mib >= 4000;
}
static bool has_released(void) { return rig_count(EVENT_RELEASED) == 2; }

// The first GPU's memory as its 3g instance has it, with the pod that holds it.
static bool has_labels(void)
{
	const char *line = strstr(rig_page(), "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-");
	const char *part = line == NULL ? NULL : strstr(line, "GPU_I_PROFILE=\"3g.40gb\"");
	const char *pod = part == NULL ? NULL : strstr(part, "pod=\"a\"");
	return pod != NULL && pod < strchr(part, '\n') &&
	       str_starts(str_of(part), STR("GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"1\","
					    "Hostname=\"node1\""));
}

static void check_metering(struct check *c)
{
	rig_control("process 0 4242 4000 " THREE_GI " 0\n");
	hold("a", THREE, 0);
	hold("b", ONE, 0);
	hold("b", ONE, 1);
	WAIT(c, "bound", has_bound);
	CHECK_STR(c, "profile", str_of(find(EVENT_BOUND, "a")->profile), "3g.40gb");
	CHECK(c, "of a GPU", str_starts(str_of(find(EVENT_BOUND, "a")->gpu), STR("GPU-")));
	CHECK_INT(c, "its slices", find(EVENT_BOUND, "a")->share_num, 3);
	CHECK_INT(c, "of the board's", find(EVENT_BOUND, "a")->share_den, 7);
	CHECK_INT(c, "two devices of one pod are one row", find(EVENT_BOUND, "b")->share_num, 2);
	WAIT(c, "samples of the instance's memory", has_sample);
	CHECK_INT(c, "nothing of it is another's", find(EVENT_SAMPLE, "b")->memory_mib, 0);
	(void)rig_stop_agent(SIGKILL);
	rig_start_agent("none");
	rig_wait(2600);
	CHECK_INT(c, "once over a restart", rig_count(EVENT_BOUND), 2);
	CHECK_INT(c, "none released", rig_count(EVENT_RELEASED), 0);
	WAIT(c, "offered again", is_well);
	WAIT(c, "labels of an instance, with its pod", has_labels);
	rig_control("process 0 4242 0\n");
	rig.kubelet.row_count = 0;
	fake_kubelet_write_checkpoint(&rig.kubelet);
	WAIT(c, "released", has_released);
}

static bool has_one_less(void) { return rig_offered(ONE) == 1; }
static bool has_two_whole(void) { return rig.kubelet.device_count == 2 && rig_offered(ONE) == 0; }
static bool has_nothing(void) { return rig.kubelet.device_count == 0 && rig_offered(ONE) == 0; }
static bool has_nothing_whole(void)
{
	return rig.kubelet.device_count == 0 && rig_offered(ONE) == 4;
}
static bool has_single(void) { return rig.kubelet.device_count == 4 && rig_offered(ONE) == 0; }

static void check_changes(struct check *c)
{
	rig_control("mig 0 destroy " ONE_GI "\n");
	WAIT(c, "an instance that went is not listed", has_one_less);
	rig_control("mig 0 create 1g.10gb 4\n");
	WAIT(c, "one that came is", is_well);
	configure("none", "");
	WAIT(c, "none: whole also in MIG mode", has_two_whole);
	configure("single", "");
	WAIT(c, "single with other profiles, and a GPU without: nothing", has_nothing);
	rig_control("mig 0 destroy " THREE_GI "\nmig 1 on\nmig 1 create 1g.10gb 0\n"
		    "mig 1 create 1g.10gb 1\n");
	WAIT(c, "single: GPUs are MIG devices", has_single);
	CHECK(c, "ids", str_starts(str_of(rig.kubelet.devices[0].id), STR("MIG-")));
	configure("mixed", "");
}

// What a container gets for a MIG device, by the strategy; %s stands for its UUID.
static void check_injection(struct check *c)
{
	static const struct {
		const char *name, *flags, *want;
	} cases[] = {
		{ "environment", "plugin: {deviceListStrategy: envvar}",
		  "env NVIDIA_VISIBLE_DEVICES %s \n" },
		{ "index", "plugin: {deviceListStrategy: envvar, deviceIDStrategy: index}",
		  "env NVIDIA_VISIBLE_DEVICES 0:0 \n" },
		{ "mounts", "plugin: {deviceListStrategy: volume-mounts}",
		  "env NVIDIA_VISIBLE_DEVICES /var/run/nvidia-container-devices \n"
		  "mount /var/run/nvidia-container-devices/%s /dev/null \n" },
		{ "device nodes", "plugin: {deviceListStrategy: envvar, passDeviceSpecs: true}",
		  "env NVIDIA_VISIBLE_DEVICES %s \nnode /dev/nvidia0 /host/dev/nvidia0 rw\n"
		  "node /dev/nvidia-caps/nvidia-cap102 /host/dev/nvidia-caps/nvidia-cap102 rw\n"
		  "node /dev/nvidia-caps/nvidia-cap103 /host/dev/nvidia-caps/nvidia-cap103 rw\n" },
	};
	rig.kubelet.target = rig_plugin(ONE);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		char more[200];
		AUTO(buf_done) struct buf want = { 0 };
		struct fake_answer answer = { .code = GRPC_UNKNOWN };
		const struct str id = str_of(rig_plugin(ONE)->devices[0].id);
		(void)snprintf(more, sizeof more, ", nvidiaDevRoot: /host/, %s", cases[i].flags);
		configure("mixed", more);
		for (const char *at = cases[i].want; *at != '\0'; at++) {
			if (*at == '%')
				buf_put(&want, id);
			else if (at == cases[i].want || at[-1] != '%')
				buf_put_byte(&want, *at);
		}
		for (int n = 0; n < 100 && strcmp(answer.text, want.data) != 0; n++) {
			rig_wait(50);
			fake_kubelet_allocate(&rig.kubelet, &id, 1, &answer);
		}
		CHECK_STR(c, cases[i].name, str_of(answer.text), want.data);
	}
	rig.kubelet.target = NULL;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char path[200], config[600];
	if (argc != 5)
		return 2;
	rig_set_up(argv, GPUS, "");
	(void)snprintf(config, sizeof config,
		       "health: {probeMs: 100, deadlineMs: 2000, cleanProbes: 5, holdOffS: 1}\n"
		       "usage: {readMs: 200, sampleS: 1}\n"
		       "driverProcRoot: %s/emu/proc\n"
		       "extraDeviceMounts:\n"
		       "- {hostPath: '/emu/{uuid}.sock', containerPath: '/run/{uuid}', of: mig}\n",
		       rig.root);
	rig_write("agent.yaml", "w", config);
	(void)snprintf(path, sizeof path, "%s/dp.yaml", rig.root);
	if (setenv("CONFIG_FILE", path, 1) != 0)
		abort();
	configure("mixed", "");
	rig_control("mig 0 on\nmig 0 create 3g.40gb 0\nmig 0 create 1g.10gb 4\n"
		    "mig 0 create 1g.10gb 5\n");
	rig_wait(300);
	check_start(&c);
	check_allocations(&c);
	check_health(&c);
	check_metering(&c);
	check_changes(&c);
	WAIT(&c, "mixed again", has_nothing_whole);
	check_injection(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
