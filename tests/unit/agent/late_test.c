// SPDX-License-Identifier: Apache-2.0
// Shares of GPUs under a fake kubelet and a fake API server: many starts at random, with restarts
// of agent and kubelet between, each of which must get exactly the planned GPU or none.
// Arguments: agent, emulator daemon, emulated library, file of a board, number of starts.
#include "base/json.h"
#include "check.h"
#include "fake_api.h"
#include "fake_shares.h"
#include "rig.h"
#include "sys/fs.h"
#include "sys/mac.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { GPUS = 4, SAFETY_MS = 60000, PODS = 24, MEMORY_MIB = 81920, SPEC_BYTES = 64 * 1024 };

static const char KEY[] = "0123456789abcdef0123456789abcdef";
static struct fake_api api;
static struct fake_shares shares;
static char kubeconfig[200], uuids[GPUS][80];
static unsigned pod_no;

typedef enum plan_fault { GOOD, NO_PLAN, FORGED, OTHER_AMOUNT, UNKNOWN_GPU, TOO_FULL } plan_fault;

struct trial { // a pod with a share
	bool is_used, is_bad, has_run;
	struct fake_pod *pod;
	struct fake_share *share; // NULL: given back
	uint32_t gpu;
	struct share part;
	struct buf spec; // the file behind its name, as it was first seen
};
static struct trial trials[PODS];
static const uint32_t IDS[SHARE_KINDS] = { GPUS * 1000, GPUS * 320 }; // that are offered

// ---- the scheduler

static struct share used(uint32_t gpu)
{
	struct share sum = { 0 };
	for (size_t i = 0; i < PODS; i++) {
		if (trials[i].is_used && !trials[i].is_bad && trials[i].gpu == gpu)
			share_add(&sum, &trials[i].part);
	}
	return sum;
}

static void plan(struct trial *trial, share_kind kind, uint32_t units, plan_fault fault)
{
	struct fake_pod *pod = trial->pod;
	char mac[MAC_TEXT_BYTES];
	struct share ask = share_ask(kind, fault == OTHER_AMOUNT ? units + 1 : units);
	struct share part = share_of(&ask, MEMORY_MIB);
	const char *uuid = fault == UNKNOWN_GPU ? "GPU-00000000-0000-0000-0000-000000000000"
						: uuids[trial->gpu];
	if (fault == NO_PLAN)
		return;
	(void)snprintf(
		pod->devices, sizeof pod->devices,
		"[{\"container\":\"main\",\"resource\":\"%s\",\"uuid\":\"%s\",\"milli\":%lld,"
		"\"memory_mib\":%lld}]",
		share_resource(kind), uuid, (long long)part.milli, (long long)part.memory_mib);
	const struct mac_plan signed_plan = { str_of(pod->uid), STR("node1"),
					      str_of(pod->devices) };
	struct str key = fault == FORGED ? STR("some other key of some length") : str_of(KEY);
	if (!mac_plan_sign(key, &signed_plan, mac))
		abort();
	(void)snprintf(pod->mac, sizeof pod->mac, "%s", mac);
}

// A pod that the scheduler has bound; the API server tells it now or later.
static struct trial *make(share_kind kind, uint32_t units, uint32_t gpu, plan_fault fault)
{
	size_t i = 0;
	while (i < PODS && trials[i].is_used)
		i++;
	if (i == PODS)
		abort();
	struct trial *trial = &trials[i];
	struct share ask = share_ask(kind, units);
	*trial = (struct trial){ .is_used = true, .gpu = gpu, .is_bad = fault != GOOD };
	trial->part = share_of(&ask, MEMORY_MIB);
	// Slots of pods that are gone for good are used again.
	for (size_t k = 0; k < api.pod_count && trial->pod == NULL; k++)
		trial->pod = api.pods[k].is_gone ? &api.pods[k] : NULL;
	if (trial->pod == NULL)
		trial->pod = fake_api_add(&api);
	*trial->pod = (struct fake_pod){ .gpus = units, .scheduled_s = time(NULL) };
	(void)snprintf(trial->pod->uid, sizeof trial->pod->uid, "uid-%u", pod_no);
	(void)snprintf(trial->pod->name, sizeof trial->pod->name, "p%u", pod_no % 40);
	(void)snprintf(trial->pod->namespace_, sizeof trial->pod->namespace_, "team");
	(void)snprintf(trial->pod->resource, sizeof trial->pod->resource, "%s",
		       share_resource(kind));
	pod_no++;
	plan(trial, kind, units, fault);
	return trial;
}

static bool admit(struct trial *trial, share_kind kind, uint32_t units)
{
	trial->share = fake_share_admit(&shares, trial->pod->uid, trial->pod->name, kind, units);
	return trial->share != NULL;
}

static void end(struct trial *trial)
{
	trial->pod->finished_s = time(NULL);
	fake_api_tell(&api, trial->pod, "MODIFIED");
	if (trial->share != NULL)
		fake_share_release(&shares, trial->share);
	trial->pod->is_gone = true;
	fake_api_tell(&api, trial->pod, "DELETED");
	buf_done(&trial->spec);
	*trial = (struct trial){ 0 };
}

// ---- what a container would get

static bool read_spec(const struct trial *trial, struct buf *ret)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/cdi/gpuaas.io-share-%s.json", rig.root,
		       trial->share->name);
	buf_clear(ret);
	return fs_read(path, SPEC_BYTES, ret, NULL) == ERR_OK;
}

// The specification names the planned GPU alone, under the name that Allocate answered.
static bool is_right(struct trial *trial)
{
	AUTO(buf_done) struct buf spec = { 0 };
	char node[40], name[FAKE_ID_BYTES + 16];
	size_t nodes = 0;
	if (!read_spec(trial, &spec))
		return false;
	(void)snprintf(node, sizeof node, "\"path\":\"/dev/nvidia%u\"", trial->gpu);
	(void)snprintf(name, sizeof name, "{\"name\":\"%s\"", trial->share->name);
	for (const char *at = strstr(spec.data, "\"path\":\"/dev/nvidia"); at != NULL;
	     at = strstr(at + 1, "\"path\":\"/dev/nvidia"))
		nodes += at[strlen("\"path\":\"/dev/nvidia")] <= '9' ? 1 : 0;
	bool is_same = trial->spec.len == 0 || str_eq(buf_str(&spec), buf_str(&trial->spec));
	if (trial->spec.len == 0)
		buf_put(&trial->spec, buf_str(&spec));
	return nodes == 1 && strstr(spec.data, node) != NULL && strstr(spec.data, name) != NULL &&
	       is_same;
}

static bool has_no_file(const struct trial *trial)
{
	AUTO(buf_done) struct buf spec = { 0 };
	return !read_spec(trial, &spec);
}

static bool is_registered(void)
{
	return fake_shares_offered(&shares, SHARE_BY_MILLI) == IDS[SHARE_BY_MILLI] &&
	       fake_shares_offered(&shares, SHARE_BY_MEMORY) == IDS[SHARE_BY_MEMORY];
}
static bool is_offered_some(void)
{
	return fake_shares_offered(&shares, SHARE_BY_MILLI) > 0 &&
	       fake_shares_offered(&shares, SHARE_BY_MEMORY) > 0;
}

static bool are_all_asked(void)
{
	for (size_t i = 0; i < PODS; i++) {
		const struct fake_share *share = trials[i].share;
		if (trials[i].is_used && share != NULL && share->phase == FAKE_STARTING)
			return false;
	}
	return true;
}

// Starts all that has not run, again and again as a kubelet does, until it runs.
static bool start_all(void)
{
	const uint64_t began_ns = rig_now_ns();
	while (rig_now_ns() - began_ns < SAFETY_MS * UINT64_C(1000000)) {
		size_t left = 0;
		for (size_t i = 0; i < PODS; i++) {
			struct trial *trial = &trials[i];
			if (!trial->is_used || trial->share == NULL || trial->has_run)
				continue;
			fake_share_start(&shares, trial->share);
		}
		(void)rig_wait_for(are_all_asked, SAFETY_MS);
		for (size_t i = 0; i < PODS; i++) {
			struct trial *trial = &trials[i];
			if (!trial->is_used || trial->share == NULL || trial->has_run)
				continue;
			trial->has_run = trial->share->code == GRPC_OK;
			left += trial->has_run || trial->is_bad ? 0 : 1;
		}
		if (left == 0)
			return true;
		rig_wait(100);
	}
	return false;
}

static void restart_agent(void)
{
	(void)rig_stop_agent(SIGKILL);
	rig_start_agent(kubeconfig);
}

static void restart_kubelet(void)
{
	fake_shares_cut(&shares);
	fake_kubelet_down(&rig.kubelet);
	fake_kubelet_up(&rig.kubelet);
}

// ---- the random part

static uint32_t any(uint32_t below) { return fake_random(&shares, below); }

// Of the kubelet, which knows nothing of bad plans.
static uint32_t ids_taken(share_kind kind)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < PODS; i++) {
		const struct fake_share *share = trials[i].is_used ? trials[i].share : NULL;
		sum += share != NULL && share->kind == kind ? share->units : 0;
	}
	return sum;
}

// A share for which the books and the kubelet have room; false: there is none.
static bool choose(share_kind *ret_kind, uint32_t *ret_units, uint32_t *ret_gpu)
{
	static const uint32_t MOST[SHARE_KINDS] = { 500, 160 };
	share_kind kind = (share_kind)any(2);
	for (int tries = 0; tries < 20; tries++) {
		uint32_t gpu = any(GPUS), units = 1 + any(MOST[kind]);
		struct share ask = share_ask(kind, units), left = share_whole(MEMORY_MIB);
		struct share taken = used(gpu), need = share_of(&ask, MEMORY_MIB);
		share_sub(&left, &taken);
		if (!share_fits(&need, &left) || ids_taken(kind) + units > IDS[kind])
			continue;
		*ret_kind = kind;
		*ret_units = units;
		*ret_gpu = gpu;
		return true;
	}
	return false;
}

static struct trial *random_trial(plan_fault fault)
{
	share_kind kind = SHARE_BY_MILLI;
	uint32_t units = 0, gpu = 0;
	if (!choose(&kind, &units, &gpu))
		return NULL;
	struct trial *trial = make(kind, units, gpu, fault);
	bool is_early = any(3) > 0; // the watch may be slower than the kubelet
	if (is_early)
		fake_api_tell(&api, trial->pod, "ADDED");
	// After a restart a kubelet may find nobody registered for a while.
	const uint64_t began_ns = rig_now_ns();
	while (!admit(trial, kind, units) &&
	       rig_now_ns() - began_ns < SAFETY_MS * UINT64_C(1000000))
		(void)rig_wait_for(is_offered_some, 1000);
	if (!is_early)
		fake_api_tell(&api, trial->pod, "ADDED");
	return trial;
}

static void end_some(void)
{
	for (size_t i = 0; i < PODS; i++) {
		if (trials[i].is_used && any(2) == 0)
			end(&trials[i]);
	}
}

static size_t count_used(void)
{
	size_t count = 0;
	for (size_t i = 0; i < PODS; i++)
		count += trials[i].is_used ? 1 : 0;
	return count;
}

static int count_not_admitted(void)
{
	int count = 0;
	for (size_t i = 0; i < PODS; i++)
		count += trials[i].is_used && trials[i].share == NULL ? 1 : 0;
	return count;
}

static int count_wrong(void)
{
	int wrong = 0;
	for (size_t i = 0; i < PODS; i++) {
		struct trial *trial = &trials[i];
		if (!trial->is_used || trial->share == NULL)
			continue;
		bool is_good = trial->is_bad ? !trial->has_run && has_no_file(trial)
					     : trial->has_run && is_right(trial);
		wrong += is_good ? 0 : 1;
		if (!is_good)
			printf("pod %s of GPU %u: run %d bad %d: %s\n", trial->pod->name,
			       trial->gpu, trial->has_run, trial->is_bad, trial->share->error);
	}
	return wrong;
}

// Containers that crashed start again, with the file as it was.
static void crash_some(void)
{
	for (size_t i = 0; i < PODS; i++) {
		if (trials[i].is_used && !trials[i].is_bad && any(3) == 0)
			trials[i].has_run = false;
	}
}

static void check_random(struct check *c, unsigned starts)
{
	static const plan_fault bad[] = { NO_PLAN, FORGED, OTHER_AMOUNT };
	unsigned made = 0, agents = 0, kubelets = 0;
	int wrong = 0, stuck = 0, refused = 0;
	for (uint32_t round = 0; made < starts && wrong + refused == 0; round++) {
		uint32_t burst = 1 + any(5);
		for (uint32_t i = 0; i < burst && count_used() < PODS - 1; i++)
			made += random_trial(GOOD) != NULL ? 1 : 0;
		if (any(4) == 0 && count_used() < PODS)
			(void)random_trial(bad[any(ARRAY_COUNT(bad))]);
		refused += count_not_admitted();
		uint32_t what = round < 2 ? round : any(8); // each at least once
		if (what == 0) {
			restart_agent();
			agents++;
		} else if (what == 1) {
			restart_kubelet();
			kubelets++;
		}
		stuck += start_all() ? 0 : 1;
		wrong += count_wrong();
		crash_some();
		stuck += start_all() ? 0 : 1;
		wrong += count_wrong();
		end_some();
	}
	CHECK_INT(c, "all admitted", refused, 0);
	CHECK_INT(c, "no foreign GPU, none twice", wrong, 0);
	CHECK_INT(c, "all started", stuck, 0);
	const unsigned least = starts < 100 ? 1 : 6;
	CHECK(c, "restarts", agents >= least && kubelets >= least);
	printf("%u starts, %u restarts of the agent, %u of the kubelet\n", made, agents, kubelets);
}

// ---- the rest

static const char *told(const char *what)
{
	buf_put_byte(&api.told, '\0');
	api.told.len--;
	return strstr(api.told.data, what);
}

static bool has_told_refusal(void) { return told("GPUShareNotGiven") != NULL; }

static void end_all(void)
{
	for (size_t i = 0; i < PODS; i++) {
		if (trials[i].is_used)
			end(&trials[i]);
	}
}

static void check_refusals(struct check *c)
{
	static const struct {
		plan_fault fault;
		const char *name, *error;
	} cases[] = {
		{ NO_PLAN, "without a plan", "no plan of the gpuaas scheduler" },
		{ FORGED, "with a plan of somebody else", "no plan of the gpuaas scheduler" },
		{ OTHER_AMOUNT, "of another amount", "the plan gives 101" },
		{ UNKNOWN_GPU, "of another node", "is not on this node" },
		{ TOO_FULL, "of a GPU that is taken", "milli and" },
	};
	struct trial *bad[ARRAY_COUNT(cases)], *good = make(SHARE_BY_MILLI, 950, 0, GOOD);
	fake_api_tell(&api, good->pod, "ADDED");
	CHECK(c, "first", admit(good, SHARE_BY_MILLI, 950));
	CHECK(c, "first", start_all() && is_right(good));
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		bad[i] = make(SHARE_BY_MILLI, 100, 0, cases[i].fault);
		fake_api_tell(&api, bad[i]->pod, "ADDED");
		CHECK(c, cases[i].name, admit(bad[i], SHARE_BY_MILLI, 100));
		fake_share_start(&shares, bad[i]->share);
	}
	WAIT(c, "all are answered", are_all_asked);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		CHECK_INT(c, cases[i].name, bad[i]->share->code, GRPC_FAILED_PRECONDITION);
		CHECK(c, cases[i].name, strstr(bad[i]->share->error, cases[i].error) != NULL);
		CHECK(c, cases[i].name, has_no_file(bad[i]));
	}
	WAIT(c, "told as an Event", has_told_refusal);
	// The first one ends, and the last fits.
	end(good);
	fake_share_start(&shares, bad[4]->share);
	WAIT(c, "asked again", are_all_asked);
	CHECK_INT(c, "now there is room", bad[4]->share->code, GRPC_OK);
	CHECK(c, "of the planned GPU", is_right(bad[4]));
	end_all();
}

// While the kubelet's file cannot be read, the name has to do.
static void check_without_checkpoint(struct check *c)
{
	struct trial *trial = make(SHARE_BY_MEMORY, 16, 2, GOOD);
	fake_api_tell(&api, trial->pod, "ADDED");
	CHECK(c, "admitted", admit(trial, SHARE_BY_MEMORY, 16));
	rig_write("dp/kubelet_internal_checkpoint", "w", "{");
	fake_share_start(&shares, trial->share);
	WAIT(c, "answered", are_all_asked);
	CHECK_INT(c, "started", trial->share->code, GRPC_OK);
	CHECK(c, "right", is_right(trial));
	end(trial);
}

static bool has_bound(void) { return rig_count(EVENT_BOUND) == 1; }
static bool has_released(void) { return rig_count(EVENT_RELEASED) == 1; }

static void check_metering(struct check *c)
{
	static struct usage_event events[4000];
	struct trial *trial = make(SHARE_BY_MEMORY, 80, 3, GOOD);
	(void)snprintf(trial->pod->name, sizeof trial->pod->name, "metered");
	fake_api_tell(&api, trial->pod, "ADDED");
	CHECK(c, "admitted", admit(trial, SHARE_BY_MEMORY, 80));
	CHECK(c, "started", start_all());
	WAIT(c, "bound", has_bound);
	end(trial);
	WAIT(c, "released", has_released);
	size_t count = rig_events(events, ARRAY_COUNT(events)), found = 0;
	for (size_t i = 0; i < count; i++) {
		if (events[i].type != EVENT_BOUND)
			continue;
		found++;
		CHECK_STR(c, "pod", str_of(events[i].pod), "metered");
		CHECK_STR(c, "GPU", str_of(events[i].gpu), uuids[3]);
		CHECK_INT(c, "a quarter", events[i].share_num, 250);
		CHECK_INT(c, "in thousandths", events[i].share_den, 1000);
		CHECK_STR(c, "tenant", str_of(events[i].tenant), "t-team");
	}
	CHECK_INT(c, "once", found, 1);
}

static void configure(const char *text)
{
	rig_write("dp.yaml", "w", text);
	if (kill(rig.agent_pid, SIGHUP) != 0)
		abort();
}
static bool is_given_to_nobody(void)
{
	return fake_kubelet_other(&rig.kubelet, SHARE_MILLI_RESOURCE)->device_count > 0 &&
	       fake_shares_offered(&shares, SHARE_BY_MILLI) == 0;
}

// Limits of a control daemon, as far as one can be seen: somebody who listens behind its pipe.
static void check_limits(struct check *c)
{
	AUTO(buf_done) struct buf file = { 0 };
	AUTO(buf_done) struct buf spec = { 0 };
	char path[400], command[1000];
	buf_printf(&file,
		   "version: v1\nflags: {mpsRoot: %s/mps}\nsharing: {shares: {memoryLimit: mps}}\n",
		   rig.root);
	configure(file.data);
	WAIT(c, "without its daemon nothing is given", is_given_to_nobody);
	(void)snprintf(path, sizeof path, "%s/mps/" SHARE_MILLI_RESOURCE "/pipe/control", rig.root);
	(void)snprintf(command, sizeof command,
		       "mkdir -p '%s/mps/" SHARE_MILLI_RESOURCE "/pipe' && mkfifo '%s'", rig.root,
		       path);
	if (system(command) != 0)
		abort();
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	WAIT(c, "with it all are", is_registered);
	struct trial *trial = make(SHARE_BY_MILLI, 250, 1, GOOD);
	fake_api_tell(&api, trial->pod, "ADDED");
	CHECK(c, "admitted", admit(trial, SHARE_BY_MILLI, 250));
	CHECK(c, "started", start_all() && read_spec(trial, &spec));
	CHECK(c, "memory",
	      strstr(spec.data, "\"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M\"") != NULL);
	CHECK(c, "threads", strstr(spec.data, "\"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25\"") != NULL);
	CHECK(c, "told", strstr(spec.data, "\"GPUAAS_SHARE_MEMORY_MIB=20480\"") != NULL);
	CHECK(c, "pipe",
	      strstr(spec.data, "\"containerPath\":\"/mps/" SHARE_MILLI_RESOURCE
				"/pipe\",\"options\":[\"rw\"") != NULL);
	end(trial);
	(void)close(fd);
	WAIT(c, "its death is seen", is_given_to_nobody);
	configure("version: v1\nsharing: {shares: {}}\n");
	WAIT(c, "and back", is_registered);
}

static bool is_not_offered(void)
{
	return rig_has_stream() && fake_shares_offered(&shares, SHARE_BY_MILLI) == 0;
}
static bool says_so(void)
{
	buf_put_byte(&api.gpu_node_status, '\0');
	api.gpu_node_status.len--;
	const char *at = strstr(api.gpu_node_status.data, "\"SharesOffered\"");
	return at != NULL && strncmp(at, "\"SharesOffered\",\"status\":\"False\"", 32) == 0 &&
	       strstr(at, "inotify") != NULL;
}

static void check_without_inotify(struct check *c)
{
	(void)rig_stop_agent(SIGTERM);
	fake_kubelet_down(&rig.kubelet);
	fake_kubelet_up(&rig.kubelet);
	rig.has_no_inotify = true;
	rig_start_agent(kubeconfig);
	rig_write("dp.yaml", "w",
		  "version: v1\nsharing: {shares: {devices: [0, 1]}}\n"); // the others are whole
	WAIT(c, "nothing is offered", is_not_offered);
	WAIT(c, "and the node says so", says_so);
	CHECK_INT(c, "whole ones are", rig.kubelet.device_count, 2);
	CHECK(c, "nobody has registered",
	      fake_kubelet_other(&rig.kubelet, SHARE_MILLI_RESOURCE) == NULL);
}

// As the node tells them.
static bool has_uuids(void)
{
	AUTO(json_decrefp) json_t *object = NULL;
	if (api.gpu_node_status.len == 0 ||
	    json_parse(buf_str(&api.gpu_node_status), &object, NULL) != ERR_OK)
		return false;
	const json_t *list = json_at(object, "status.devices");
	for (size_t i = 0; i < json_array_size(list) && i < GPUS; i++) {
		const json_t *device = json_array_get(list, i);
		if (json_int(device, "milli", 0) != 1000)
			return false;
		(void)snprintf(uuids[json_int(device, "index", 0)], sizeof uuids[0], STR_FMT,
			       STR_ARG(json_text(device, "uuid")));
	}
	return json_array_size(list) == GPUS;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char path[200];
	if (argc != 6)
		return 2;
	rig_set_up(argv, GPUS,
		   "health: {probeMs: 200, deadlineMs: 2000}\nnode: {periodS: 1}\n"
		   "usage: {readMs: 500, sampleS: 1}\n");
	rig_write("key", "w", KEY);
	(void)snprintf(path, sizeof path, "planKeyFile: %s/key\n", rig.root);
	rig_write("agent.yaml", "a", path);
	rig_write("dp.yaml", "w", "version: v1\nsharing: {shares: {}}\n");
	(void)snprintf(path, sizeof path, "%s/dp.yaml", rig.root);
	if (setenv("CONFIG_FILE", path, 1) != 0)
		abort();
	fake_shares_init(&shares, &rig.kubelet);
	fake_api_init(&api, rig.loop);
	rig_write_kubeconfig(api.address, kubeconfig, sizeof kubeconfig);
	rig_start_agent(kubeconfig);
	WAIT(&c, "offered", is_registered);
	WAIT(&c, "the node says so", has_uuids);
	check_metering(&c);
	check_refusals(&c);
	check_without_checkpoint(&c);
	check_limits(&c);
	check_random(&c, (unsigned)strtoul(argv[5], NULL, 10));
	end_all();
	check_without_inotify(&c);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	fake_api_done(&api);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
