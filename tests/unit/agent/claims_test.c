// SPDX-License-Identifier: Apache-2.0
// The whole agent on a node of mode dra: the slice is written and written again, claims get what is
// allocated to them and nobody else does, also over kill -9 at every step; health and taints; all
// of it is told to the journal once.
#include "base/rng.h"
#include "check.h"
#include "fake_dra.h"
#include "rig.h"
#include "sys/fs.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPUS = 4, SAFETY_MS = 60000, STEPS = 40 };

static struct fake_api api;
static struct fake_dra dra;
static char kubeconfig[300], uuids[GPUS][GPU_UUID_BYTES];

static bool has_slice(void) { return json_array_size(json_at(dra.slice, "spec.devices")) == GPUS; }

static size_t tainted(void)
{
	size_t count = 0;
	const json_t *devices = json_at(dra.slice, "spec.devices");
	for (size_t i = 0; i < json_array_size(devices); i++)
		count += json_array_size(json_at(json_array_get(devices, i), "taints")) > 0 ? 1 : 0;
	return count;
}

static bool is_one_tainted(void) { return tainted() == 1; }
static bool is_none_tainted(void) { return has_slice() && tainted() == 0; }

static bool has_socket(void)
{
	char path[200];
	(void)snprintf(path, sizeof path, "%s/registry/" DRA_DRIVER "-reg.sock", rig.root);
	return access(path, F_OK) == 0;
}

static size_t files(void)
{
	char path[200];
	size_t count = 0;
	(void)snprintf(path, sizeof path, "%s/cdi", rig.root);
	DIR *stream = opendir(path);
	for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
		count += str_starts(str_of(entry->d_name), STR("gpuaas.io-claim-")) ? 1 : 0;
	if (stream != NULL)
		(void)closedir(stream);
	return count;
}

static struct fake_pod *add_pod(const struct fake_claim *claim)
{
	struct fake_pod *pod = fake_api_add(&api);
	*pod = (struct fake_pod){ .gpus = 0, .has_claim = true, .scheduled_s = 1000000 };
	(void)snprintf(pod->uid, sizeof pod->uid, "%s", claim->pod_uid);
	(void)snprintf(pod->namespace_, sizeof pod->namespace_, "team");
	(void)snprintf(pod->name, sizeof pod->name, "%s", claim->pod);
	fake_api_tell(&api, pod, "ADDED");
	return pod;
}

static void end_pod(struct fake_pod *pod)
{
	pod->finished_s = 1000100;
	fake_api_tell(&api, pod, "MODIFIED");
}

// An agent that answers: killed, it begins anew with the same sockets.
static void restart(struct check *c)
{
	CHECK_INT(c, "killed", rig_stop_agent(SIGKILL), -1);
	char path[200];
	(void)snprintf(path, sizeof path, "%s/registry/" DRA_DRIVER "-reg.sock", rig.root);
	(void)unlink(path);
	rig_start_agent(kubeconfig);
	WAIT(c, "serves again", has_socket);
}

static void check_slice(struct check *c)
{
	WAIT(c, "slice", has_slice);
	const json_t *devices = json_at(dra.slice, "spec.devices");
	for (size_t i = 0; i < GPUS; i++)
		(void)snprintf(uuids[i], sizeof uuids[i], "%s",
			       json_cstr(json_array_get(devices, i), "attributes.uuid.string"));
	CHECK(c, "registered", fake_dra_register(&dra));
	rig_wait(1500);
	CHECK_INT(c, "written once", dra.writes, 1);
	restart(c);
	rig_wait(3000);
	CHECK_INT(c, "not again after a restart", dra.writes, 1);
	fake_dra_drop_slice(&dra);
	WAIT(c, "made anew", has_slice);
	CHECK_INT(c, "generation grows", json_int(dra.slice, "spec.pool.generation", 0), 2);
	CHECK_INT(c, "no device plugin", rig.kubelet.registrations, 0);
}

static void check_claim(struct check *c)
{
	struct fake_dra_answer first, again;
	char want[DRA_CDI_BYTES], device[GPU_UUID_BYTES];
	const struct fake_claim *one = fake_dra_claim(&dra, "one", uuids[1]);
	const struct fake_claim *other = fake_dra_claim(&dra, "other", uuids[1]);
	struct fake_pod *pod = add_pod(one);
	fake_dra_prepare(&dra, one, &first);
	CHECK_STR(c, "prepared", str_of(first.error), "");
	CHECK_INT(c, "its device", first.count, 1);
	CHECK_STR(c, "its device", str_of(first.device), dra_device_name(uuids[1], device));
	(void)snprintf(want, sizeof want, "gpuaas.io/claim=uid-one-%s", device);
	CHECK_STR(c, "CDI", str_of(first.cdi), want);
	CHECK_STR(c, "request", str_of(first.request), "gpu");
	CHECK_INT(c, "file", files(), 1);
	fake_dra_prepare(&dra, other, &again);
	CHECK(c, "held", again.count == 0 && strstr(again.error, "is held by claim team/one"));
	restart(c);
	dra.hides_claims = true; // what is known needs no API server
	fake_dra_prepare(&dra, one, &again);
	CHECK(c, "the same after a kill", again.count == 1 && strcmp(again.cdi, first.cdi) == 0);
	fake_dra_prepare(&dra, other, &again);
	CHECK(c, "unknown", strstr(again.error, "no such claim") != NULL);
	dra.hides_claims = false;
	fake_dra_unprepare(&dra, one, &again);
	CHECK(c, "unprepared", again.code == GRPC_OK && again.error[0] == '\0');
	fake_dra_unprepare(&dra, one, &again);
	CHECK(c, "twice", again.code == GRPC_OK && again.error[0] == '\0');
	CHECK_INT(c, "no file", files(), 0);
	end_pod(pod);
	restart(c);
	struct fake_pod *next = add_pod(other);
	fake_dra_prepare(&dra, other, &again);
	CHECK_STR(c, "free for the next", str_of(again.error), "");
	fake_dra_unprepare(&dra, other, &again);
	end_pod(next);
}

static void damage_table(struct check *c)
{
	char path[200];
	(void)snprintf(path, sizeof path, "%s/state/claims.json", rig.root);
	CHECK_INT(c, "damaged", fs_write_atomic(path, STR("{\"version\":1,"), 0600, NULL), ERR_OK);
}

static void check_lost_table(struct check *c)
{
	struct fake_dra_answer first, again;
	struct fake_claim *kept = fake_dra_claim(&dra, "kept", uuids[2]);
	const struct fake_claim *taker = fake_dra_claim(&dra, "taker", uuids[2]);
	struct fake_pod *pod = add_pod(kept);
	fake_dra_prepare(&dra, kept, &first);
	CHECK_STR(c, "prepared", str_of(first.error), "");
	damage_table(c);
	for (int life = 0; life < 2; life++) { // the second one finds no damage any more
		restart(c);
		CHECK_INT(c, "its file stays", files(), 1);
		fake_dra_prepare(&dra, taker, &again);
		CHECK(c, "still held", strstr(again.error, "is held by claim") != NULL);
	}
	dra.hides_claims = true;
	fake_dra_prepare(&dra, kept, &again);
	CHECK(c, "nobody knows its requests", again.count == 0 && again.error[0] != '\0');
	dra.hides_claims = false;
	fake_dra_prepare(&dra, kept, &again);
	CHECK(c, "the same",
	      again.count == 1 && strcmp(again.cdi, first.cdi) == 0 &&
		      strcmp(again.request, first.request) == 0);
	restart(c); // allocated anew while nobody looked
	(void)snprintf(kept->uuids[0], sizeof kept->uuids[0], "%s", uuids[3]);
	fake_dra_prepare(&dra, kept, &again);
	CHECK(c, "what is allocated now", again.count == 1 && strstr(again.cdi, uuids[3] + 4));
	fake_dra_prepare(&dra, taker, &again);
	CHECK_STR(c, "the other is free", str_of(again.error), "");
	struct fake_pod *second = add_pod(taker);
	fake_dra_unprepare(&dra, taker, &again);
	end_pod(second);
	fake_dra_unprepare(&dra, kept, &again);
	CHECK_INT(c, "no file", files(), 0);
	end_pod(pod);
}

static bool has_unhealthy(void)
{
	static const char unhealthy[] = "\x10\x02"; // field 2 of a device
	return dra.health_text.len > 0 && memmem(dra.health_text.data, dra.health_text.len,
						 unhealthy, strlen(unhealthy)) != NULL;
}

static void check_health(struct check *c)
{
	struct fake_dra_answer answer;
	const struct fake_claim *ill = fake_dra_claim(&dra, "ill", uuids[0]);
	fake_dra_watch_health(&dra);
	rig_control("recovery 0 1\nxid 0 79\n"); // else it would heal by itself
	WAIT(c, "taint", is_one_tainted);
	WAIT(c, "health", has_unhealthy);
	fake_dra_prepare(&dra, ill, &answer);
	CHECK(c, "not given", strstr(answer.error, "is not healthy") != NULL);
	rig_control("restore 0\n");
	WAIT(c, "well again", is_none_tainted);
	grpc_call_cancel(dra.health);
	dra.health = NULL;
}

// Claims come and go, the agent is killed in between: at no time two have one GPU.
static void check_storm(struct check *c)
{
	struct rng rng;
	struct fake_claim *held[GPUS] = { NULL };
	struct fake_pod *pods[GPUS] = { NULL };
	struct fake_dra_answer answer;
	size_t begun = 0;
	rng_init(&rng, 7);
	for (size_t i = 0; i < STEPS; i++) {
		size_t gpu = rng_below(&rng, GPUS);
		char name[32];
		(void)snprintf(name, sizeof name, "storm-%zu", i);
		if (held[gpu] != NULL && rng_below(&rng, 2) == 0) {
			fake_dra_unprepare(&dra, held[gpu], &answer);
			CHECK_STR(c, "let go", str_of(answer.error), "");
			end_pod(pods[gpu]);
			held[gpu] = NULL;
		} else {
			struct fake_claim *claim = fake_dra_claim(&dra, name, uuids[gpu]);
			fake_dra_prepare(&dra, claim, &answer);
			CHECK(c, "given exactly when free",
			      (answer.error[0] == '\0') == (held[gpu] == NULL));
			if (held[gpu] == NULL) {
				held[gpu] = claim;
				pods[gpu] = add_pod(claim);
				begun++;
			}
		}
		if (rng_below(&rng, 8) == 0)
			restart(c);
	}
	for (size_t gpu = 0; gpu < GPUS; gpu++) {
		if (held[gpu] == NULL)
			continue;
		fake_dra_unprepare(&dra, held[gpu], &answer);
		end_pod(pods[gpu]);
	}
	CHECK_INT(c, "no file is left", files(), 0);
	CHECK(c, "something happened", begun > 5);
}

// The devices of the slice that are parts of the last GPU: 3g first, then 1g.
static char parts[2][GPU_UUID_BYTES];

static bool has_parts(void)
{
	const json_t *devices = json_at(dra.slice, "spec.devices");
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);
		if (!str_eq_c(json_text(device, "attributes.type.string"), "mig"))
			continue;
		bool is_one = str_eq_c(json_text(device, "attributes.profile.string"), "1g.10gb");
		(void)snprintf(parts[is_one], sizeof parts[is_one], "%s",
			       json_cstr(device, "attributes.uuid.string"));
		count++;
	}
	return count == 2 && json_array_size(devices) == GPUS + 1;
}

static bool is_part_tainted(void) { return has_parts() && tainted() == 1; }
static bool is_no_part_tainted(void) { return has_parts() && tainted() == 0; }

// The CDI file of the claim names what opens the instance.
static void check_nodes(struct check *c, const char *name, const char *cap)
{
	char path[300], node[64];
	AUTO(buf_done) struct buf text = { 0 };
	(void)snprintf(path, sizeof path, "%s/cdi/gpuaas.io-claim-uid-%s.json", rig.root, name);
	(void)snprintf(node, sizeof node, "/dev/nvidia-caps/nvidia-cap%s\"", cap);
	CHECK_INT(c, "file of the claim", fs_read(path, 100000, &text, NULL), ERR_OK);
	if (text.data == NULL)
		return;
	CHECK(c, "the GPU's node", strstr(text.data, "\"/dev/nvidia3\"") != NULL);
	CHECK(c, "the instance's capability", strstr(text.data, node) != NULL);
}

static void check_mig(struct check *c)
{
	struct fake_dra_answer answer;
	rig_control("mig 3 on\nmig 3 create 3g.40gb 0\nmig 3 create 1g.10gb 4\n");
	WAIT(c, "MIG devices in the slice, the others whole", is_no_part_tainted);
	CHECK_INT(c, "no device plugin", rig.kubelet.registrations, 0);
	struct fake_claim *three = fake_dra_claim(&dra, "three", parts[0]);
	struct fake_claim *one = fake_dra_claim(&dra, "single", parts[1]);
	const struct fake_claim *same = fake_dra_claim(&dra, "same", parts[0]);
	const struct fake_claim *whole = fake_dra_claim(&dra, "whole", uuids[3]);
	const struct fake_claim *none = fake_dra_claim(&dra, "none", "MIG-0");
	struct fake_pod *pods[2] = { add_pod(three), add_pod(one) };
	fake_dra_prepare(&dra, three, &answer);
	CHECK_STR(c, "3g", str_of(answer.error), "");
	check_nodes(c, "three", "417"); // 3 + 135 a GPU + 9 a GPU instance
	fake_dra_prepare(&dra, one, &answer);
	CHECK_STR(c, "1g of the same GPU", str_of(answer.error), "");
	CHECK(c, "its name", str_starts(str_of(answer.device), STR("mig-")));
	restart(c);
	for (int i = 0; i < 100; i++) { // until the driver has told what there is
		fake_dra_prepare(&dra, same, &answer);
		if (strstr(answer.error, "is not on this node now") == NULL)
			break;
		rig_wait(50);
	}
	CHECK(c, "held, also after a kill", strstr(answer.error, "is held by claim team/three"));
	fake_dra_prepare(&dra, whole, &answer);
	CHECK(c, "never whole, too", strstr(answer.error, "is in MIG mode") != NULL);
	fake_dra_prepare(&dra, none, &answer);
	CHECK(c, "no such one", strstr(answer.error, "is not on this node now") != NULL);
	WAIT(c, "all are there", is_no_part_tainted);
	fake_dra_unprepare(&dra, one, &answer);
	end_pod(pods[1]);
	WAIT(c, "events are watched", rig_watches_events);
	rig_control("xid 3 95 1 0\n"); // of the GPU instance of the 3g
	WAIT(c, "one of them is ill", is_part_tainted);
	fake_dra_prepare(&dra, three, &answer);
	CHECK_INT(c, "who has it keeps it", answer.count, 1);
	fake_dra_unprepare(&dra, three, &answer);
	end_pod(pods[0]);
	fake_dra_prepare(&dra, same, &answer);
	CHECK(c, "not given", strstr(answer.error, "is not healthy") != NULL);
	WAIT(c, "well again", is_no_part_tainted);
	CHECK_INT(c, "no file", files(), 0);
}

static void check_told(struct check *c)
{
	static struct usage_event events[2000];
	size_t count = rig_events(events, ARRAY_COUNT(events)), found = 0;
	for (size_t i = 0; i < count; i++) {
		if (events[i].type != EVENT_BOUND || events[i].profile[0] == '\0')
			continue;
		bool is_three = strcmp(events[i].pod, "pod-three") == 0;
		CHECK_STR(c, "GPU", str_of(events[i].gpu), uuids[3]);
		CHECK_STR(c, "profile", str_of(events[i].profile),
			  is_three ? "3g.40gb" : "1g.10gb");
		CHECK_INT(c, "slices", events[i].share_num, is_three ? 3 : 1);
		CHECK_INT(c, "of the board's", events[i].share_den, 7);
		CHECK_INT(c, "not before the end of who had it whole", events[i].t_s, 1000100);
		found++;
	}
	CHECK_INT(c, "one row for each MIG device", found, 2);
}

static bool is_all_told(void)
{
	return rig_count(EVENT_BOUND) == rig_count(EVENT_RELEASED) && rig_count(EVENT_BOUND) > 2;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char config[300];
	if (argc != 5)
		return 1;
	rig_set_up(argv, GPUS, "");
	(void)snprintf(config, sizeof config,
		       "mode: dra\nhealth: {holdOffS: 3}\nusage: {readMs: 200}\n"
		       "driverProcRoot: %s/emu/proc\n",
		       rig.root);
	rig_write("agent.yaml", "w", config);
	fake_api_init(&api, rig.loop);
	fake_dra_init(&dra, &api, rig.root);
	rig_write_kubeconfig(api.address, kubeconfig, sizeof kubeconfig);
	rig_start_agent(kubeconfig);
	check_slice(&c);
	check_claim(&c);
	check_lost_table(&c);
	check_health(&c);
	check_storm(&c);
	check_mig(&c);
	WAIT(&c, "all is told", is_all_told);
	check_told(&c);
	CHECK_INT(&c, "stops", rig_stop_agent(SIGTERM), 0);
	fake_api_done(&api);
	fake_dra_done(&dra);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}
