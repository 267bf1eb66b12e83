// SPDX-License-Identifier: Apache-2.0
// Pods come and go under a fake kubelet and a fake API server, while the agent is killed, the
// kubelet is restarted and the API server is away. At the end the journal must say of each pod
// exactly what an observer of the pods says: bound once and released once on each device, at the
// pod's own times, for its tenant. A fifth argument is another seed.
#include "base/rng.h"
#include "check.h"
#include "fake_api.h"
#include "rig.h"
#include "sys/mac.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

enum { GPUS = 8, PODS = 60, EVENTS_MAX = 8000, STEPS_MAX = 900 };
static const char key[] = "0123456789abcdef0123456789abcdef";

typedef enum state { WAITS, RUNS, ENDED, GONE } state;

struct job {
	struct fake_pod *pod;
	state state;
	unsigned planned[GPUS];
	char ids[GPUS][FAKE_ID_BYTES]; // what the kubelet gave
};

static struct fake_api api;
static struct job jobs[PODS];
static char uuids[GPUS][FAKE_ID_BYTES];
static struct rng rng;
static int64_t base_s;
static unsigned preferred, followed, kills;

static bool has_all(void) { return rig.kubelet.device_count == GPUS; }

static bool is_held(unsigned gpu)
{
	for (size_t i = 0; i < PODS; i++) {
		for (unsigned j = 0; jobs[i].state == RUNS && j < jobs[i].pod->gpus; j++) {
			if (strcmp(jobs[i].ids[j], uuids[gpu]) == 0)
				return true;
		}
	}
	return false;
}

static bool is_unwatched(void)
{
	for (size_t i = 0; i < FAKE_WATCHES_MAX; i++) {
		if (api.watches[i] != NULL)
			return false;
	}
	return true;
}

// The agent has listed the pods and hears of each change.
static bool is_watched(void) { return rig.agent_pid != 0 && !is_unwatched(); }

static unsigned free_gpus(unsigned ret[GPUS])
{
	unsigned count = 0;
	for (unsigned i = 0; i < GPUS; i++) {
		if (!is_held(i))
			ret[count++] = i;
	}
	return count;
}

static void make_plan(struct job *job, const unsigned *gpus, unsigned count)
{
	struct fake_pod *pod = job->pod;
	AUTO(buf_done) struct buf text = { 0 };
	unsigned start = (unsigned)rng_below(&rng, count - pod->gpus + 1);
	for (unsigned i = 0; i < pod->gpus; i++) {
		job->planned[i] = gpus[start + i];
		buf_printf(&text,
			   "%s{\"container\":\"main\",\"resource\":\"nvidia.com/gpu\",\"uuid\":"
			   "\"%s\",\"milli\":1000,\"memory_mib\":81920}",
			   i == 0 ? "[" : ",", uuids[job->planned[i]]);
	}
	buf_put_byte(&text, ']');
	(void)snprintf(pod->devices, sizeof pod->devices, STR_FMT, STR_ARG(buf_str(&text)));
	const struct mac_plan plan = { .pod_uid = str_of(pod->uid),
				       .node = STR("node1"),
				       .devices = str_of(pod->devices) };
	char mac[MAC_TEXT_BYTES];
	if (!mac_plan_sign((struct str){ key, sizeof key - 1 }, &plan, mac))
		abort();
	(void)snprintf(pod->mac, sizeof pod->mac, "%s", mac);
}

// As the kubelet does before it allocates: devices of ended pods are free again.
static void forget_ended(void)
{
	struct fake_kubelet *kubelet = &rig.kubelet;
	size_t kept = 0;
	for (size_t i = 0; i < kubelet->row_count; i++) {
		if (kubelet->rows[i].is_listed)
			kubelet->rows[kept++] = kubelet->rows[i];
	}
	kubelet->row_count = kept;
}

static bool kubelet_admits(struct job *job)
{
	unsigned gpus[GPUS], count = free_gpus(gpus);
	struct str available[GPUS], ids[GPUS];
	struct fake_answer answer;
	for (unsigned i = 0; i < count; i++)
		available[i] = str_of(uuids[gpus[i]]);
	fake_kubelet_prefer(&rig.kubelet, available, count, job->pod->gpus, &answer);
	if (answer.code != GRPC_OK || answer.count != job->pod->gpus)
		return false;
	for (unsigned i = 0; i < job->pod->gpus; i++) {
		(void)snprintf(job->ids[i], FAKE_ID_BYTES, "%s", answer.ids[i]);
		ids[i] = str_of(job->ids[i]);
	}
	forget_ended();
	fake_kubelet_allocate(&rig.kubelet, ids, job->pod->gpus, &answer);
	if (answer.code != GRPC_OK)
		return false;
	for (unsigned i = 0; i < job->pod->gpus; i++) {
		struct fake_row row = { .container = "main", .is_listed = true };
		(void)snprintf(row.namespace_, sizeof row.namespace_, "%s", job->pod->namespace_);
		(void)snprintf(row.pod, sizeof row.pod, "%s", job->pod->name);
		(void)snprintf(row.uid, sizeof row.uid, "%s", job->pod->uid);
		(void)snprintf(row.id, sizeof row.id, "%s", job->ids[i]);
		fake_kubelet_hold(&rig.kubelet, &row);
	}
	return true;
}

static void note_plan(const struct job *job)
{
	unsigned same = 0;
	for (unsigned i = 0; i < job->pod->gpus; i++) {
		for (unsigned j = 0; j < job->pod->gpus; j++)
			same += strcmp(job->ids[i], uuids[job->planned[j]]) == 0 ? 1 : 0;
	}
	preferred++;
	followed += same == job->pod->gpus ? 1 : 0;
}

static void try_start(size_t i)
{
	struct job *job = &jobs[i];
	unsigned gpus[GPUS], count = free_gpus(gpus);
	unsigned wanted = 1 + (unsigned)(i * 7 % 4);
	if (count < wanted || !rig_has_stream())
		return;
	struct fake_pod *pod = fake_api_add(&api);
	*pod = (struct fake_pod){ .gpus = wanted, .scheduled_s = base_s + (int64_t)i };
	(void)snprintf(pod->uid, sizeof pod->uid, "uid-%zu-%zu", i, api.pod_count);
	(void)snprintf(pod->name, sizeof pod->name, "pod-%zu", i);
	(void)snprintf(pod->namespace_, sizeof pod->namespace_, "team%zu", i % 3);
	job->pod = pod;
	make_plan(job, gpus, count);
	fake_api_tell(&api, pod, "ADDED");
	bool could_know = is_watched();
	if (kubelet_admits(job)) {
		if (could_know)
			note_plan(job);
		job->state = RUNS;
		return;
	}
	// Refused: it fails without a container, its owner makes another one.
	pod->is_gone = true;
	fake_api_tell(&api, pod, "DELETED");
	job->pod = NULL;
}

static void end(struct job *job)
{
	job->pod->finished_s = job->pod->scheduled_s + 500;
	job->state = ENDED;
	for (size_t i = 0; i < rig.kubelet.row_count; i++) {
		if (strcmp(rig.kubelet.rows[i].uid, job->pod->uid) == 0)
			rig.kubelet.rows[i].is_listed = false;
	}
	fake_api_tell(&api, job->pod, "MODIFIED");
}

static struct job *watched_job;

static size_t count_told(event_type type)
{
	static struct usage_event events[EVENTS_MAX];
	size_t count = rig_events(events, EVENTS_MAX), told = 0;
	for (size_t i = 0; i < count; i++)
		told += events[i].type == type &&
			strcmp(events[i].pod_uid, watched_job->pod->uid) == 0;
	return told;
}

static bool is_bound_told(void) { return count_told(EVENT_BOUND) >= watched_job->pod->gpus; }
static bool is_end_told(void) { return count_told(EVENT_RELEASED) >= watched_job->pod->gpus; }

// Only while the agent looks: what it cannot know, because it is killed before it has read what
// was said, is not asked of it here.
static void delete (struct job *job)
{
	enum { PATIENCE_MS = 5000 };
	bool was_running = job->state == RUNS;
	if (!is_watched() || !rig_has_stream())
		return;
	if (was_running) {
		job->pod->deleted_s = job->pod->scheduled_s + 300;
		for (size_t i = 0; i < rig.kubelet.row_count; i++) {
			if (strcmp(rig.kubelet.rows[i].uid, job->pod->uid) == 0)
				rig.kubelet.rows[i].is_listed = false;
		}
	}
	watched_job = job;
	(void)rig_wait_for(is_bound_told, PATIENCE_MS); // what came before has arrived
	job->state = GONE;
	job->pod->is_gone = true;
	fake_api_tell(&api, job->pod, "DELETED");
	(void)rig_wait_for(is_end_told, PATIENCE_MS);
}

static void step_job(size_t i)
{
	struct job *job = &jobs[i];
	switch (job->state) {
	case WAITS: try_start(i); return;
	case RUNS:
		if (rng_below(&rng, 2) == 0)
			end(job);
		else if (rng_below(&rng, 4) == 0)
			delete (job);
		return;
	case ENDED:
		if (rng_below(&rng, 4) == 0)
			delete (job);
		return;
	case GONE: return;
	}
}

static void disturb(const char *kubeconfig)
{
	switch (rng_below(&rng, 40)) {
	case 0:
		(void)rig_stop_agent(SIGKILL);
		kills++;
		(void)rig_wait_for(is_unwatched, 1000);
		// Meanwhile some pods end.
		for (size_t i = 0; i < PODS; i++) {
			if (jobs[i].state == RUNS && rng_below(&rng, 3) == 0)
				end(&jobs[i]);
		}
		rig_wait((unsigned)rng_below(&rng, 200));
		rig.kubelet.registrations = 0;
		rig_start_agent(kubeconfig);
		return;
	case 1:
		fake_kubelet_down(&rig.kubelet);
		rig_wait((unsigned)rng_below(&rng, 300));
		rig.kubelet.registrations = 0;
		fake_kubelet_up(&rig.kubelet);
		return;
	case 2:
		fake_api_down(&api);
		rig_wait((unsigned)rng_below(&rng, 300));
		fake_api_up(&api, api.address);
		return;
	default: return;
	}
}

static bool is_over(void)
{
	for (size_t i = 0; i < PODS; i++) {
		if (jobs[i].state == WAITS || jobs[i].state == RUNS)
			return false;
	}
	return true;
}

static size_t count_devices(void)
{
	size_t count = 0;
	for (size_t i = 0; i < PODS; i++)
		count += jobs[i].pod->gpus;
	return count;
}

static bool is_all_told(void) { return rig_count(EVENT_RELEASED) >= count_devices(); }

static bool is_right(const struct usage_event *event, const struct job *job)
{
	const struct fake_pod *pod = job->pod;
	char tenant[80], request[80];
	int64_t end_s = pod->finished_s != 0 ? pod->finished_s : pod->deleted_s;
	(void)snprintf(tenant, sizeof tenant, "t-%s", pod->namespace_);
	(void)snprintf(request, sizeof request, "%s.req-1", pod->namespace_);
	return event->t_s == (event->type == EVENT_BOUND ? pod->scheduled_s : end_s) &&
	       strcmp(event->tenant, tenant) == 0 && strcmp(event->pod, pod->name) == 0 &&
	       strcmp(event->request, request) == 0 && strcmp(event->container, "main") == 0;
}

static void compare(struct check *c)
{
	static struct usage_event events[EVENTS_MAX];
	size_t count = rig_events(events, EVENTS_MAX);
	for (size_t i = 0; i < count; i++)
		CHECK(c, "numbers without a gap", events[i].seq == i + events[0].seq);
	for (size_t i = 0; i < PODS; i++) {
		const struct job *job = &jobs[i];
		for (unsigned j = 0; j < job->pod->gpus; j++) {
			unsigned bound = 0, released = 0, wrong = 0;
			for (size_t k = 0; k < count; k++) {
				const struct usage_event *event = &events[k];
				if (strcmp(event->pod_uid, job->pod->uid) != 0 ||
				    strcmp(event->gpu, job->ids[j]) != 0 ||
				    event->type == EVENT_SAMPLE)
					continue;
				bound += event->type == EVENT_BOUND ? 1 : 0;
				released += event->type == EVENT_RELEASED ? 1 : 0;
				wrong += is_right(event, job) ? 0 : 1;
			}
			CHECK_INT(c, job->pod->uid, bound, 1);
			CHECK_INT(c, job->pod->uid, released, 1);
			CHECK_INT(c, job->pod->uid, wrong, 0);
		}
	}
	CHECK_INT(c, "nothing else was bound", rig_count(EVENT_BOUND), count_devices());
}

// No more disturbances: what runs ends, what waits runs and ends.
static void finish_all(void)
{
	for (size_t i = 0; i < PODS; i++) {
		if (jobs[i].state == RUNS)
			end(&jobs[i]);
	}
	for (size_t i = 0; i < PODS; i++) {
		for (int tries = 0; jobs[i].state == WAITS && tries < 500; tries++) {
			try_start(i);
			rig_wait(20);
		}
		if (jobs[i].state == WAITS)
			abort();
		if (jobs[i].state == RUNS)
			end(&jobs[i]);
	}
}

static bool is_node_told(void)
{
	return buf_str(&api.gpu_node_status).len > 0 &&
	       strstr(api.gpu_node_status.data, uuids[0]) != NULL;
}

// Writes are at least ten seconds apart; a moment with nothing to say yet, because one GPU has
// not answered, is none.
static void check_slow_start(struct check *c, const char *kubeconfig)
{
	buf_clear(&api.gpu_node_status);
	rig_control("hang nvmlDeviceGetUUID 7\n");
	rig_wait(500); // it is read by then
	rig_start_agent(kubeconfig);
	CHECK(c, "told without the one that hangs", rig_wait_for(is_node_told, 8500) != UINT64_MAX);
	CHECK_INT(c, "ends", rig_stop_agent(SIGTERM), 0);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char text[600], kubeconfig[200];
	uint64_t seed = 11;
	if (argc < 5 || argc > 6 || (argc == 6 && !str_to_u64(str_of(argv[5]), &seed)))
		return 2;
	rng_init(&rng, seed);
	rig_set_up(argv, GPUS, "");
	base_s = world_wall_s(loop_world(rig.loop)) - 5000;
	fake_api_init(&api, rig.loop);
	(void)snprintf(text, sizeof text,
		       "planKeyFile: %s/key\nhealth: {probeMs: 500}\nusage: {readMs: 500, "
		       "sampleS: 1}\njournal: {segmentBytes: 8192}\n",
		       rig.root);
	rig_write("agent.yaml", "w", text);
	rig_write("key", "w", key);
	rig_write_kubeconfig(api.address, kubeconfig, sizeof kubeconfig);
	rig_start_agent(kubeconfig);
	CHECK(&c, "starts", rig_wait_for(has_all, 5000) != UINT64_MAX);
	for (unsigned i = 0; i < GPUS; i++)
		(void)snprintf(uuids[i], FAKE_ID_BYTES, "%s", rig.kubelet.devices[i].id);
	for (int step = 0; step < STEPS_MAX && !is_over(); step++) {
		step_job((size_t)rng_below(&rng, PODS));
		disturb(kubeconfig);
		rig_wait(3);
	}
	finish_all();
	CHECK(&c, "all have run", is_over());
	CHECK(&c, "all is told", rig_wait_for(is_all_told, 20000) != UINT64_MAX);
	compare(&c);
	printf("%u of %u pods with a plan that was heard got its devices; %u kills, %u lists, %u "
	       "patches\n",
	       followed, preferred, kills, api.lists, api.patches);
	CHECK(&c, "plans are followed", followed * 10 >= preferred * 9);
	CHECK(&c, "the agent was killed", kills >= 3);
	CHECK(&c, "GPUNode", strstr(api.gpu_node_status.data, uuids[7]) != NULL);
	CHECK(&c, "labels", strstr(api.labels.data, "nvidia.com/gpu.product") != NULL);
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	check_slow_start(&c, kubeconfig);
	fake_api_done(&api);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
