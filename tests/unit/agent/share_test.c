// SPDX-License-Identifier: Apache-2.0
// The agent as a program with a configuration of the upstream device plugin: shares, several
// resources, reload, what containers get, several pods on one GPU.
// Arguments: agent, emulator daemon, emulated library, file of a board.
#include "check.h"
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS = 4, SAFETY_MS = 30000, EVENTS_MAX = 4000 };
#define SHARED "nvidia.com/gpu.shared"

static const struct fake_plugin *shared(void) { return rig_plugin(SHARED); }
static size_t shared_count(void) { return rig_offered(SHARED); }
static size_t bad_shares(void) { return rig_unhealthy(SHARED); }
static bool has_eight_shares(void) { return shared_count() == 8 && rig.kubelet.device_count == 2; }
static bool has_four_whole(void) { return shared_count() == 0 && rig.kubelet.device_count == 4; }
static bool has_nothing_whole(void)
{
	return shared_count() == 16 && rig.kubelet.device_count == 0;
}

static bool has_four_bad(void) { return has_eight_shares() && bad_shares() == 4; }
static bool has_none_bad(void) { return has_eight_shares() && bad_shares() == 0; }

// A whole file at once, as a config map is replaced; is_quick: the agent is told to look.
static void configure(const char *text, bool is_quick)
{
	char from[200], to[200];
	rig_write("dp.yaml.new", "w", text);
	(void)snprintf(from, sizeof from, "%s/dp.yaml.new", rig.root);
	(void)snprintf(to, sizeof to, "%s/dp.yaml", rig.root);
	if (rename(from, to) != 0 || (is_quick && kill(rig.agent_pid, SIGHUP) != 0))
		abort();
}

static bool is_failing(void) { return rig_figure("gpuaas_agent_plugin_config_failing") == 1; }
static bool is_fine(void) { return rig_figure("gpuaas_agent_plugin_config_failing") == 0; }

static const char two_shared[] = "version: v1\n"
				 "sharing:\n"
				 "  timeSlicing:\n"
				 "    renameByDefault: true\n"
				 "    resources:\n"
				 "    - {name: gpu, devices: [0, 2], replicas: 4}\n";

static void check_start(struct check *c)
{
	rig_start_agent("none");
	WAIT(c, "two resources", has_eight_shares);
	CHECK(c, "ids", strstr(shared()->devices[5].id, "::1") != NULL);
	CHECK(c, "names of sockets",
	      str_starts(str_of(shared()->endpoint), STR("nvidia-gpu.shared-")));
	CHECK(c, "whole ones keep their ids", strchr(rig.kubelet.devices[0].id, ':') == NULL);
	WAIT(c, "events are watched", rig_watches_events);
	rig_control("xid 2 79\n");
	WAIT(c, "a fault of a GPU is one of all its shares", has_four_bad);
	CHECK_INT(c, "of no other", fake_kubelet_unhealthy(&rig.kubelet), 0);
	CHECK(c, "the right ones",
	      shared()->devices[3].is_healthy && !shared()->devices[4].is_healthy);
	WAIT(c, "and so is its end", has_none_bad);
}

static void check_choice(struct check *c)
{
	struct fake_answer answer;
	struct str ids[8];
	char gpu[FAKE_ID_BYTES];
	rig.kubelet.target = shared();
	for (size_t i = 0; i < 8; i++)
		ids[i] = str_of(shared()->devices[i].id);
	fake_kubelet_prefer(&rig.kubelet, ids, 8, 2, &answer);
	CHECK_STR(c, "distributed", str_of(answer.ids[0]), shared()->devices[0].id);
	CHECK_STR(c, "distributed", str_of(answer.ids[1]), shared()->devices[4].id);
	fake_kubelet_prefer(&rig.kubelet, ids + 1, 7, 1, &answer);
	CHECK_STR(c, "the emptier", str_of(answer.ids[0]), shared()->devices[4].id);
	fake_kubelet_allocate(&rig.kubelet, ids, 2, &answer);
	CHECK_INT(c, "two shares", answer.code, GRPC_OK);
	CHECK_INT(c, "are one GPU", answer.count, 1);
	(void)snprintf(gpu, sizeof gpu, "k8s.device-plugin.nvidia.com/gpu=%.*s",
		       (int)(strlen(shared()->devices[0].id) - 3), shared()->devices[0].id);
	CHECK_STR(c, "by its name", str_of(answer.ids[0]), gpu);
	const struct str whole = str_of(rig.kubelet.devices[0].id);
	fake_kubelet_allocate(&rig.kubelet, &whole, 1, &answer);
	CHECK_INT(c, "a whole GPU is no share", answer.code, GRPC_INVALID_ARGUMENT);
	rig.kubelet.target = NULL;
	fake_kubelet_allocate(&rig.kubelet, ids, 1, &answer);
	CHECK_INT(c, "a share is no whole GPU", answer.code, GRPC_INVALID_ARGUMENT);
}

static void hold(const char *pod, const char *id)
{
	struct fake_row row = { .namespace_ = "team", .container = "main", .resource = SHARED };
	row.is_listed = true;
	(void)snprintf(row.pod, sizeof row.pod, "%s", pod);
	(void)snprintf(row.uid, sizeof row.uid, "uid-%s", pod);
	(void)snprintf(row.id, sizeof row.id, "%s", id);
	fake_kubelet_hold(&rig.kubelet, &row);
}

static struct usage_event events[EVENTS_MAX];

static const struct usage_event *find(event_type type, const char *pod)
{
	size_t count = rig_events(events, EVENTS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (events[i].type == type && strcmp(events[i].pod, pod) == 0)
			return &events[i];
	}
	return NULL;
}
static bool has_bound(void) { return rig_count(EVENT_BOUND) == 3; }

// The last sample of a pod; its memory, 0: none.
static uint64_t sampled_mib(const char *pod)
{
	uint64_t last_mib = 0;
	size_t count = rig_events(events, EVENTS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (events[i].type == EVENT_SAMPLE && strcmp(events[i].pod, pod) == 0)
			last_mib = events[i].memory_mib;
	}
	return last_mib;
}
static bool has_samples(void) { return sampled_mib("c") >= 2000; }

// Three pods on one GPU, one of them with two shares.
static void check_metering(struct check *c)
{
	char name[300];
	hold("a", shared()->devices[0].id);
	hold("b", shared()->devices[1].id);
	hold("c", shared()->devices[2].id);
	hold("c", shared()->devices[3].id);
	WAIT(c, "bound", has_bound);
	CHECK_INT(c, "one share", find(EVENT_BOUND, "a")->share_num, 1);
	CHECK_INT(c, "of four", find(EVENT_BOUND, "a")->share_den, 4);
	CHECK_INT(c, "two shares", find(EVENT_BOUND, "c")->share_num, 2);
	CHECK(c, "of a GPU", strchr(find(EVENT_BOUND, "b")->gpu, ':') == NULL);
	rig_control("process 0 4242 4000\n");
	WAIT(c, "samples", has_samples);
	CHECK(c, "in the ratio of shares", sampled_mib("b") >= 1000);
	CHECK(c, "in the ratio of shares", sampled_mib("c") >= 2 * sampled_mib("b"));
	(void)snprintf(
		name, sizeof name,
		"gpuaas_agent_allocation_share_ratio{UUID=\"%s\",namespace=\"team\",pod=\"c\","
		"container=\"main\"}",
		find(EVENT_BOUND, "c")->gpu);
	CHECK(c, "shown", rig_figure(name) == 0.5);
	rig_control("process 0 4242 0\n");
	(void)rig_stop_agent(SIGKILL);
	rig_start_agent("none");
	rig_wait(2600);
	CHECK_INT(c, "once over a restart", rig_count(EVENT_BOUND), 3);
	CHECK_INT(c, "none released", rig_count(EVENT_RELEASED), 0);
	WAIT(c, "offered again", has_eight_shares);
}

static bool holds_back_first(void)
{
	return rig.kubelet.device_count == 4 && !rig.kubelet.devices[0].is_healthy &&
	       fake_kubelet_unhealthy(&rig.kubelet) == 1;
}
static bool has_all_whole(void)
{
	return has_four_whole() && fake_kubelet_unhealthy(&rig.kubelet) == 0;
}

static void check_reload(struct check *c)
{
	struct fake_answer answer;
	unsigned registrations = rig.kubelet.registrations, streams = rig.kubelet.streams_open;
	configure("version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
		  "    - {name: gpu, replicas: 20000}\n",
		  false);
	WAIT(c, "a list too long is stated", is_failing);
	configure("version: v1\nsharing:\n  timeSlicing: {resources: [{name: gpu}]}\n", true);
	rig_wait(300);
	CHECK(c, "the running one stays", is_failing() && has_eight_shares() && bad_shares() == 0);
	configure("version: v1\n", true);
	WAIT(c, "the good one is taken", is_fine);
	WAIT(c, "whole again but for the one that is held", holds_back_first);
	WAIT(c, "shares are withdrawn", has_four_whole);
	const struct str id = str_of(rig.kubelet.devices[0].id);
	fake_kubelet_allocate(&rig.kubelet, &id, 1, &answer);
	CHECK_INT(c, "never whole and shared", answer.code, GRPC_FAILED_PRECONDITION);
	rig.kubelet.row_count = 0;
	fake_kubelet_write_checkpoint(&rig.kubelet);
	WAIT(c, "free when its pods have ended", has_all_whole);
	CHECK_INT(c, "the stream was not lost", rig.kubelet.registrations, registrations);
	CHECK_INT(c, "the stream was not lost", rig.kubelet.streams_open, streams);
	configure("version: v1\nsharing: {timeSlicing: {renameByDefault: true, resources: "
		  "[{name: gpu, replicas: 4}]}}\n",
		  true);
	WAIT(c, "all shared: nothing whole is left", has_nothing_whole);
	configure(two_shared, true);
	WAIT(c, "and back", has_eight_shares);
}

// What a container gets for the last GPU, by the strategy; %s stands for its UUID.
static void check_injection(struct check *c)
{
	static const struct {
		const char *name, *flags, *want;
	} cases[] = {
		{ "CDI field", "plugin: {deviceListStrategy: cdi-cri}",
		  "env NVIDIA_VISIBLE_DEVICES void \ncdi k8s.device-plugin.nvidia.com/gpu=%s\n" },
		{ "CDI by index", "plugin: {deviceListStrategy: cdi-cri, deviceIDStrategy: index}",
		  "env NVIDIA_VISIBLE_DEVICES void \ncdi k8s.device-plugin.nvidia.com/gpu=3\n" },
		{ "environment", "plugin: {deviceListStrategy: envvar}",
		  "env NVIDIA_VISIBLE_DEVICES %s \n" },
		{ "environment by index",
		  "plugin: {deviceListStrategy: envvar, deviceIDStrategy: index}",
		  "env NVIDIA_VISIBLE_DEVICES 3 \n" },
		{ "mounts", "plugin: {deviceListStrategy: volume-mounts}",
		  "env NVIDIA_VISIBLE_DEVICES /var/run/nvidia-container-devices \n"
		  "mount /var/run/nvidia-container-devices/%s /dev/null \n" },
		{ "device nodes", "plugin: {deviceListStrategy: envvar, passDeviceSpecs: true}",
		  "env NVIDIA_VISIBLE_DEVICES %s \nnode /dev/nvidia3 /host/dev/nvidia3 rw\n" },
		{ "CDI annotation",
		  "plugin: {deviceListStrategy: cdi-annotations, cdiAnnotationPrefix: a.b/}",
		  "env NVIDIA_VISIBLE_DEVICES void \n"
		  "annotation a.b/nvidia-device-plugin_****************"
		  " k8s.device-plugin.nvidia.com/gpu=%s \n" },
		{ "extras",
		  "plugin: {deviceListStrategy: envvar}, gdsEnabled: true, mofedEnabled: true, "
		  "gdrcopyEnabled: true",
		  "env NVIDIA_VISIBLE_DEVICES %s \nenv NVIDIA_GDRCOPY enabled \n"
		  "env NVIDIA_GDS enabled \nenv NVIDIA_MOFED enabled \n" },
		{ "several", "plugin: {deviceListStrategy: [envvar, cdi-cri]}",
		  "env NVIDIA_VISIBLE_DEVICES %s \ncdi k8s.device-plugin.nvidia.com/gpu=%s\n" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(buf_done) struct buf file = { 0 };
		AUTO(buf_done) struct buf want = { 0 };
		struct fake_answer answer;
		double loads = rig_figure("gpuaas_agent_plugin_config_loads_total");
		const struct str id = str_of(rig.kubelet.devices[3].id);
		buf_printf(&file, "version: v1\nflags: {nvidiaDevRoot: /host/, %s}\n",
			   cases[i].flags);
		configure(file.data, true);
		for (int n = 0; n < 400; n++) {
			if (rig_figure("gpuaas_agent_plugin_config_loads_total") > loads)
				break;
			rig_wait(50);
		}
		WAIT(c, cases[i].name, has_all_whole);
		fake_kubelet_allocate(&rig.kubelet, &id, 1, &answer);
		for (size_t j = 0; j < answer.count; j++)
			(void)snprintf(answer.text + strlen(answer.text),
				       sizeof answer.text - strlen(answer.text), "cdi %s\n",
				       answer.ids[j]);
		for (const char *at = cases[i].want; *at != '\0'; at++) {
			if (*at == '%')
				buf_put(&want, id);
			else if (at == cases[i].want || at[-1] != '%')
				buf_put_byte(&want, *at);
		}
		char *word = strstr(answer.text, "device-plugin_"); // fresh in each answer
		if (word != NULL)
			memset(word + strlen("device-plugin_"), '*', 16);
		CHECK_STR(c, cases[i].name, str_of(answer.text), want.data);
	}
}

static bool has_mps(void) { return shared_count() == 16 && bad_shares() == 0; }
static bool has_dead_mps(void) { return shared_count() == 16 && bad_shares() == 16; }

// A control daemon as far as it can be seen: somebody who listens behind its pipe.
static void check_mps(struct check *c)
{
	struct fake_answer answer;
	AUTO(buf_done) struct buf file = { 0 };
	AUTO(buf_done) struct buf want = { 0 };
	char command[600], path[400];
	buf_printf(&file,
		   "version: v1\nflags: {mpsRoot: %s/mps}\nsharing:\n  mps:\n    renameByDefault: "
		   "true\n"
		   "    failRequestsGreaterThanOne: false\n    resources: [{name: gpu, replicas: "
		   "4}]\n",
		   rig.root);
	configure(file.data, true);
	WAIT(c, "without its daemon nothing is given", has_dead_mps);
	rig.kubelet.target = shared();
	struct str ids[3] = { str_of(shared()->devices[0].id), str_of(shared()->devices[1].id),
			      str_of(shared()->devices[4].id) };
	fake_kubelet_allocate(&rig.kubelet, ids, 1, &answer);
	CHECK_INT(c, "and it is said", answer.code, GRPC_FAILED_PRECONDITION);
	CHECK(c, "why", strstr(answer.error, "MPS control daemon") != NULL);
	(void)snprintf(path, sizeof path, "%s/mps/" SHARED "/pipe/control", rig.root);
	(void)snprintf(command, sizeof command, "mkdir -p '%s/mps/" SHARED "/pipe' && mkfifo '%s'",
		       rig.root, path);
	if (system(command) != 0)
		abort();
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	WAIT(c, "with it all are", has_mps);
	fake_kubelet_allocate(&rig.kubelet, ids, 2, &answer);
	CHECK_INT(c, "two shares", answer.code, GRPC_OK);
	buf_printf(&want,
		   "env NVIDIA_VISIBLE_DEVICES void \nenv CUDA_MPS_PIPE_DIRECTORY /mps/" SHARED
		   "/pipe "
		   "\nenv CUDA_MPS_PINNED_DEVICE_MEM_LIMIT 0=40960M \n"
		   "env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE 50 \n"
		   "mount /mps/" SHARED "/pipe %s/mps/" SHARED
		   "/pipe \nmount /dev/shm %s/mps/shm \n",
		   rig.root, rig.root);
	CHECK_STR(c, "limits, pipe and memory", str_of(answer.text), want.data);
	fake_kubelet_allocate(&rig.kubelet, ids + 1, 2, &answer);
	CHECK_INT(c, "not of two GPUs", answer.code, GRPC_INVALID_ARGUMENT);
	fake_kubelet_prefer(&rig.kubelet, ids, 3, 2, &answer);
	CHECK_STR(c, "of one GPU", str_of(answer.ids[1]), shared()->devices[1].id);
	(void)close(fd);
	WAIT(c, "its death is seen", has_dead_mps);
	rig.kubelet.target = NULL;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char path[200];
	if (argc != 5)
		return 2;
	rig_set_up(argv, GPUS,
		   "health: {probeMs: 100, deadlineMs: 2000, cleanProbes: 2, holdOffS: 1}\n"
		   "usage: {readMs: 200, sampleS: 1}\n");
	(void)snprintf(path, sizeof path, "%s/dp.yaml", rig.root);
	if (setenv("CONFIG_FILE", path, 1) != 0)
		abort();
	configure(two_shared, false);
	check_start(&c);
	check_choice(&c);
	check_metering(&c);
	check_reload(&c);
	check_injection(&c);
	check_mps(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
