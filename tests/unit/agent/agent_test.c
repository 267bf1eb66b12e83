// SPDX-License-Identifier: Apache-2.0
// The whole agent, as a program, under a fake kubelet with emulated GPUs: registration, lists,
// allocations, faults of GPUs and driver, a restarted kubelet, its own death.
// Arguments: agent, emulator daemon, emulated library, file of a board.
#include "check.h"
#include "rig.h"
#include "sys/fs.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS = 4, SAFETY_MS = 30000 };

static bool has_all(void) { return rig.kubelet.device_count == GPUS; }
static bool has_one_bad(void) { return has_all() && fake_kubelet_unhealthy(&rig.kubelet) == 1; }
static bool has_all_bad(void) { return has_all() && fake_kubelet_unhealthy(&rig.kubelet) == GPUS; }
static bool has_none_bad(void) { return has_all() && fake_kubelet_unhealthy(&rig.kubelet) == 0; }
static const char *id_of(size_t i) { return rig.kubelet.devices[i].id; }

static void check_start(struct check *c)
{
	rig_start_agent("none");
	WAIT(c, "registers and lists", rig_has_stream);
	CHECK_STR(c, "resource", str_of(rig.kubelet.resource), "nvidia.com/gpu");
	CHECK_INT(c, "all are healthy", fake_kubelet_unhealthy(&rig.kubelet), 0);
	CHECK_INT(c, "one stream", rig.kubelet.streams_open, 1);
	char path[300];
	AUTO(buf_done) struct buf spec = { 0 };
	(void)snprintf(path, sizeof path, "%s/cdi/k8s.device-plugin.nvidia.com-gpu.json", rig.root);
	CHECK_INT(c, "CDI specification", fs_read(path, 100000, &spec, NULL), ERR_OK);
	for (size_t i = 0; i < GPUS; i++)
		CHECK(c, "names the device", strstr(spec.data, id_of(i)) != NULL);
	CHECK(c, "extra mount", strstr(spec.data, "/run/emu/gpu-3.sock") != NULL);
}

static void check_allocations(struct check *c)
{
	struct fake_answer answer;
	struct str all[GPUS];
	char want[200];
	for (size_t i = 0; i < GPUS; i++)
		all[i] = str_of(id_of(i));
	fake_kubelet_prefer(&rig.kubelet, all, GPUS, 2, &answer);
	CHECK_INT(c, "preferred", answer.code, GRPC_OK);
	CHECK_INT(c, "as many as asked for", answer.count, 2);
	CHECK_STR(c, "neighbours", str_of(answer.ids[0]), id_of(0));
	CHECK_STR(c, "neighbours", str_of(answer.ids[1]), id_of(1));
	const struct str some[] = { all[0], all[2], all[3] };
	fake_kubelet_prefer(&rig.kubelet, some, 3, 2, &answer);
	CHECK_STR(c, "closest pair", str_of(answer.ids[0]), id_of(2));
	CHECK_STR(c, "closest pair", str_of(answer.ids[1]), id_of(3));

	fake_kubelet_allocate(&rig.kubelet, some, 2, &answer);
	CHECK_INT(c, "allocate", answer.code, GRPC_OK);
	CHECK_INT(c, "a name for each", answer.count, 2);
	(void)snprintf(want, sizeof want, "k8s.device-plugin.nvidia.com/gpu=%s", id_of(0));
	CHECK_STR(c, "qualified name", str_of(answer.ids[0]), want);
	CHECK(c, "nothing else is visible", answer.is_void);
	const struct str foreign[] = { STR("GPU-00000000-0000-0000-0000-000000000000") };
	fake_kubelet_allocate(&rig.kubelet, foreign, 1, &answer);
	CHECK_INT(c, "unknown device", answer.code, GRPC_INVALID_ARGUMENT);
}

static void check_health(struct check *c)
{
	struct fake_answer answer;
	struct str id = str_of(id_of(1));
	WAIT(c, "events are watched", rig_watches_events);
	rig_control("xid 1 31\n");
	CHECK(c, "an application's XID changes nothing",
	      rig_wait_for(has_one_bad, 300) == UINT64_MAX);
	rig_control("xid 1 79\n");
	uint64_t took_ns = rig_wait_for(has_one_bad, SAFETY_MS);
	printf("XID to kubelet: %.1f ms\n", (double)took_ns / 1e6);
	CHECK(c, "XID 79", took_ns != UINT64_MAX);
	CHECK(c, "the right one", !rig.kubelet.devices[1].is_healthy);
	fake_kubelet_allocate(&rig.kubelet, &id, 1, &answer);
	CHECK_INT(c, "not given out", answer.code, GRPC_FAILED_PRECONDITION);
	CHECK(c, "with the reason", strstr(answer.error, "XID 79") != NULL);
	WAIT(c, "healthy again after clean probes and hold-off", has_none_bad);

	rig_control("lost 2\n");
	WAIT(c, "lost: one", has_one_bad);
	CHECK(c, "the right one", !rig.kubelet.devices[2].is_healthy);
	struct str all[GPUS];
	for (size_t i = 0; i < GPUS; i++)
		all[i] = str_of(id_of(i));
	fake_kubelet_prefer(&rig.kubelet, all, GPUS, 1, &answer);
	CHECK_INT(c, "others go on", answer.code, GRPC_OK);
	rig_control("restore 2\n");
	WAIT(c, "restored", has_none_bad);

	rig_control("hang nvmlDeviceGetTemperature 3\n");
	WAIT(c, "hung: one", has_one_bad);
	CHECK(c, "the right one", !rig.kubelet.devices[3].is_healthy);
	CHECK(c, "and only it", rig_wait_for(has_all_bad, 500) == UINT64_MAX && has_one_bad());
	rig_control("xid 0 48\n");
	CHECK(c, "events still come", rig_wait_for(has_none_bad, 300) == UINT64_MAX);
	CHECK_INT(c, "two are bad now", fake_kubelet_unhealthy(&rig.kubelet), 2);
	rig_control("restore 3\n");
	WAIT(c, "returns", has_none_bad);
}

// Kills the children that call the driver; returns how many there were.
static unsigned kill_children(void)
{
	char path[100];
	int pid = 0;
	unsigned count = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)rig.agent_pid,
		       (int)rig.agent_pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		abort();
	while (fscanf(file, "%9d", &pid) == 1)
		count += kill(pid, SIGKILL) == 0 ? 1 : 0;
	(void)fclose(file);
	return count;
}

static bool has_killed(void) { return kill_children() > 0; }

static void check_child(struct check *c)
{
	unsigned lists = rig.kubelet.lists;
	for (int i = 0; i < 3; i++) {
		WAIT(c, "there is a child", has_killed); // a new one after its back-off
		CHECK(c, "nobody suffers", rig_wait_for(has_one_bad, 600) == UINT64_MAX);
	}
	CHECK_INT(c, "no list was sent for it", rig.kubelet.lists, lists);
	rig_control("initfail on\n");
	WAIT(c, "there is a child", has_killed);
	WAIT(c, "no driver: all", has_all_bad);
	rig_control("initfail off\n");
	WAIT(c, "the driver is back", has_none_bad);
}

static void check_kubelet_restart(struct check *c)
{
	for (int i = 0; i < 3; i++) {
		fake_kubelet_down(&rig.kubelet);
		rig.kubelet.registrations = 0;
		rig.kubelet.device_count = 0;
		rig_wait((unsigned)i * 200);
		fake_kubelet_up(&rig.kubelet);
		uint64_t took_ns = rig_wait_for(rig_has_stream, SAFETY_MS);
		printf("kubelet reborn to list: %.1f ms\n", (double)took_ns / 1e6);
		CHECK(c, "registers again", took_ns != UINT64_MAX);
		rig_wait(100);
		CHECK_INT(c, "one stream", rig.kubelet.streams_open, 1);
	}
	char path[400];
	(void)snprintf(path, sizeof path, "%s/%s", rig.kubelet.dir, rig.kubelet.endpoint);
	rig.kubelet.registrations = 0;
	if (unlink(path) != 0)
		abort();
	WAIT(c, "a lost socket is made anew", rig_has_stream);
}

static bool has_bound(void) { return rig_count(EVENT_BOUND) == 1; }
static bool has_released(void) { return rig_count(EVENT_RELEASED) == 1; }

static void check_metering(struct check *c)
{
	struct fake_answer answer;
	struct str id = str_of(id_of(0));
	struct fake_row row = { .namespace_ = "team",
				.pod = "p",
				.uid = "uid-1",
				.container = "main",
				.is_listed = true };
	(void)snprintf(row.id, sizeof row.id, "%s", id_of(0));
	fake_kubelet_allocate(&rig.kubelet, &id, 1, &answer);
	fake_kubelet_hold(&rig.kubelet, &row);
	WAIT(c, "bound", has_bound);
	(void)rig_stop_agent(SIGKILL);
	rig.kubelet.registrations = 0;
	rig_start_agent("none");
	WAIT(c, "the agent is back", rig_has_stream);
	rig_wait(1500);
	CHECK_INT(c, "bound once over a restart", rig_count(EVENT_BOUND), 1);
	CHECK_INT(c, "not released", rig_count(EVENT_RELEASED), 0);
	rig.kubelet.row_count = 0;
	fake_kubelet_write_checkpoint(&rig.kubelet);
	WAIT(c, "released", has_released);
	CHECK_INT(c, "bound once", rig_count(EVENT_BOUND), 1);
	CHECK(c, "energy rows", rig_count(EVENT_ENERGY) >= GPUS);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	if (argc != 5)
		return 2;
	rig_set_up(argv, GPUS,
		   "health: {probeMs: 100, deadlineMs: 400, strikes: 2, cleanProbes: 2, "
		   "holdOffS: 1}\nusage: {readMs: 200, sampleS: 1}\nextraDeviceMounts:\n"
		   "  - {hostPath: '/run/emu/gpu-{index}.sock', containerPath: "
		   "'/run/emu/gpu-{index}.sock'}\n");
	check_start(&c);
	check_allocations(&c);
	check_health(&c);
	check_child(&c);
	check_kubelet_restart(&c);
	check_metering(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
