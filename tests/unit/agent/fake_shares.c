// SPDX-License-Identifier: Apache-2.0
#include "fake_shares.h"

#include "base/pb.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t START_NS = 30 * UINT64_C(1000000000); // as the kubelet waits

uint32_t fake_random(struct fake_shares *shares, uint32_t below)
{
	shares->random = shares->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(shares->random >> 33) % below;
}

static const struct fake_plugin *plugin_of(const struct fake_shares *shares, share_kind kind)
{
	return fake_kubelet_other(shares->kubelet, share_resource(kind));
}

static void put_ids(struct buf *out, uint32_t number, const struct fake_share *share)
{
	for (uint32_t i = 0; i < share->units; i++)
		pb_put_bytes(out, number, str_of(share->ids[i]));
}

static void put_pods(void *arg, struct buf *out)
{
	const struct fake_shares *shares = arg;
	for (size_t i = 0; i < FAKE_SHARES_MAX; i++) {
		const struct fake_share *share = &shares->items[i];
		AUTO(buf_done) struct buf devices = { 0 };
		AUTO(buf_done) struct buf container = { 0 };
		AUTO(buf_done) struct buf pod = { 0 };
		if (share->phase == FAKE_FREE)
			continue;
		pb_put_bytes(&devices, 1, str_of(share_resource(share->kind)));
		put_ids(&devices, 2, share);
		pb_put_bytes(&container, 1, STR("main"));
		pb_put_bytes(&container, 2, buf_str(&devices));
		pb_put_bytes(&pod, 1, str_of(share->pod));
		pb_put_bytes(&pod, 2, STR("team"));
		pb_put_bytes(&pod, 3, buf_str(&container));
		pb_put_bytes(out, 1, buf_str(&pod));
	}
}

static void put_entries(void *arg, struct buf *out)
{
	const struct fake_shares *shares = arg;
	for (size_t i = 0; i < FAKE_SHARES_MAX; i++) {
		const struct fake_share *share = &shares->items[i];
		if (share->phase == FAKE_FREE)
			continue;
		buf_printf(out,
			   ",{\"PodUID\":\"%s\",\"ContainerName\":\"main\",\"ResourceName\":\"%s\","
			   "\"DeviceIDs\":{\"-1\":[",
			   share->uid, share_resource(share->kind));
		for (uint32_t k = 0; k < share->units; k++)
			buf_printf(out, "%s\"%s\"", k == 0 ? "" : ",", share->ids[k]);
		buf_put_c(out, "]},\"AllocResp\":\"\"}");
	}
}

void fake_shares_init(struct fake_shares *shares, struct fake_kubelet *kubelet)
{
	*shares = (struct fake_shares){ .kubelet = kubelet, .random = 1 };
	kubelet->arg = shares;
	kubelet->put_pods = put_pods;
	kubelet->put_entries = put_entries;
}

size_t fake_shares_offered(const struct fake_shares *shares, share_kind kind)
{
	const struct fake_plugin *plugin = plugin_of(shares, kind);
	size_t count = 0;
	for (size_t i = 0; plugin != NULL && i < plugin->device_count; i++)
		count += plugin->devices[i].is_healthy ? 1 : 0;
	return count;
}

static bool is_taken(const struct fake_shares *shares, share_kind kind, const char *id)
{
	for (size_t i = 0; i < FAKE_SHARES_MAX; i++) {
		const struct fake_share *share = &shares->items[i];
		for (uint32_t k = 0;
		     share->phase != FAKE_FREE && share->kind == kind && k < share->units; k++) {
			if (strcmp(share->ids[k], id) == 0)
				return true;
		}
	}
	return false;
}

// From a random place on, so that what was given back comes soon again and in other sets.
static bool pick_ids(struct fake_shares *shares, struct fake_share *share)
{
	const struct fake_plugin *plugin = plugin_of(shares, share->kind);
	uint32_t got = 0;
	if (plugin == NULL || plugin->device_count == 0)
		return false;
	size_t from = fake_random(shares, (uint32_t)plugin->device_count);
	for (size_t i = 0; i < plugin->device_count && got < share->units; i++) {
		const struct fake_device *device =
			&plugin->devices[(from + i) % plugin->device_count];
		if (device->is_healthy && !is_taken(shares, share->kind, device->id))
			(void)snprintf(share->ids[got++], SHARE_ID_BYTES, "%.31s", device->id);
	}
	return got == share->units;
}

static bool allocate(struct fake_shares *shares, struct fake_share *share)
{
	static struct str ids[FAKE_SHARE_UNITS_MAX];
	struct fake_answer answer;
	for (uint32_t i = 0; i < share->units; i++)
		ids[i] = str_of(share->ids[i]);
	shares->kubelet->target = plugin_of(shares, share->kind);
	fake_kubelet_allocate(shares->kubelet, ids, share->units, &answer);
	shares->kubelet->target = NULL;
	share->code = answer.code;
	(void)snprintf(share->error, sizeof share->error, "%s", answer.error);
	const char *equals = strchr(answer.ids[0], '=');
	if (answer.code != GRPC_OK || answer.count != 1 || equals == NULL || !answer.is_void)
		return false;
	(void)snprintf(share->name, sizeof share->name, "%s", equals + 1);
	return true;
}

struct fake_share *fake_share_admit(struct fake_shares *shares, const char *uid, const char *pod,
				    share_kind kind, uint32_t units)
{
	size_t i = 0;
	while (i < FAKE_SHARES_MAX && shares->items[i].phase != FAKE_FREE)
		i++;
	if (i == FAKE_SHARES_MAX || units > FAKE_SHARE_UNITS_MAX)
		abort();
	struct fake_share *share = &shares->items[i];
	*share = (struct fake_share){ .kind = kind, .units = units };
	(void)snprintf(share->uid, sizeof share->uid, "%s", uid);
	(void)snprintf(share->pod, sizeof share->pod, "%s", pod);
	if (!pick_ids(shares, share) || !allocate(shares, share))
		return NULL;
	share->phase = FAKE_ALLOCATED;
	fake_kubelet_write_checkpoint(shares->kubelet);
	return share;
}

static void on_answer(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct fake_share *share = arg;
	(void)message;
	share->call = NULL;
	share->phase = FAKE_ASKED;
	share->code = code;
	(void)snprintf(share->error, sizeof share->error, "%s", error);
}

void fake_share_start(struct fake_shares *shares, struct fake_share *share)
{
	char path[400];
	AUTO(buf_done) struct buf message = { 0 };
	const struct fake_plugin *plugin = plugin_of(shares, share->kind);
	share->phase = FAKE_STARTING;
	if (plugin == NULL) { // nobody has registered yet
		share->phase = FAKE_ASKED;
		share->code = GRPC_UNAVAILABLE;
		return;
	}
	put_ids(&message, 1, share);
	(void)snprintf(path, sizeof path, "%s/%s", shares->kubelet->dir, plugin->endpoint);
	share->call = grpc_call_start(shares->kubelet->loop, path, DP_PRE_START, buf_str(&message),
				      START_NS, on_answer, share);
}

void fake_share_release(struct fake_shares *shares, struct fake_share *share)
{
	if (share->call != NULL)
		grpc_call_cancel(share->call);
	share->call = NULL;
	share->phase = FAKE_FREE;
	fake_kubelet_write_checkpoint(shares->kubelet);
}

void fake_shares_cut(struct fake_shares *shares)
{
	for (size_t i = 0; i < FAKE_SHARES_MAX; i++) {
		struct fake_share *share = &shares->items[i];
		if (share->call == NULL)
			continue;
		grpc_call_cancel(share->call);
		on_answer(share, GRPC_UNAVAILABLE, "the kubelet ended", STR(""));
	}
}
