// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/usage.h"

#include "daemons/agent/usage_table.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	CLOSED_MAX = 256,         // told allocations that are remembered
	CLOSED_REMEMBER_S = 3600, // and for how long after they were last shown
	ALLOCATIONS_MAX = 8192,
	LIST_AGE_MAX_S = 60,
	TENANT_WAIT_S = 60,
	SETTLE_S = 2, // a pod's containers get their shares one after the other
	SHARES_MAX = 65536,
};

struct usage *usage_new(const struct usage_config *config)
{
	struct usage *usage = calloc(1, sizeof *usage);
	if (usage != NULL)
		usage->config = *config;
	return usage;
}

void usage_free(struct usage *usage)
{
	if (usage == NULL)
		return;
	for (size_t i = 0; i < usage->count; i++)
		free(usage->items[i].held);
	free(usage->items);
	free(usage);
}

struct usage_allocation *usage_find(struct usage *usage, struct str gpu, struct str pod_uid)
{
	for (size_t i = usage->count; i > 0; i--) {
		struct usage_allocation *item = &usage->items[i - 1];
		if (str_eq_c(gpu, item->gpu) && str_eq_c(pod_uid, item->pod_uid))
			return item;
	}
	return NULL;
}

struct usage_allocation *usage_add(struct usage *usage)
{
	if (usage->count == usage->room) {
		size_t room = usage->room == 0 ? 16 : usage->room * 2;
		if (room > ALLOCATIONS_MAX)
			return NULL;
		struct usage_allocation *items = realloc(usage->items, room * sizeof *items);
		if (items == NULL)
			return NULL;
		usage->items = items;
		usage->room = room;
	}
	struct usage_allocation *item = &usage->items[usage->count++];
	*item = (struct usage_allocation){ .share_num = 1, .share_den = 1 };
	return item;
}

static void remove_at(struct usage *usage, size_t i)
{
	ASSERT(i < usage->count);
	free(usage->items[i].held);
	usage->count--;
	memmove(&usage->items[i], &usage->items[i + 1],
		(usage->count - i) * sizeof usage->items[0]);
}

void usage_show_begin(struct usage *usage)
{
	for (size_t i = 0; i < usage->count; i++)
		usage->items[i].is_shown = false;
}

// Without a pod UID, namespace and name stand for it.
static bool uid_of(const struct usage_holder *holder, char out[USAGE_UID_BYTES])
{
	AUTO(buf_done) struct buf text = { 0 };
	if (holder->pod_uid.len > 0)
		return usage_text(out, USAGE_UID_BYTES, holder->pod_uid);
	buf_printf(&text, STR_FMT "/" STR_FMT, STR_ARG(holder->namespace_), STR_ARG(holder->pod));
	return usage_text(out, USAGE_UID_BYTES, buf_str(&text));
}

// The instances that it holds are known also after a restart, when its share was told long ago.
static void take_mig(struct usage_allocation *item, const struct usage_holder *holder)
{
	char profile[USAGE_NAME_BYTES], joined[2 * USAGE_NAME_BYTES];
	if (holder->profile.len == 0 || holder->mig_start >= 32)
		return;
	item->mig_starts |= 1U << holder->mig_start;
	if (item->is_bound_told || !usage_text(profile, sizeof profile, holder->profile) ||
	    strstr(item->profile, profile) != NULL)
		return;
	(void)snprintf(joined, sizeof joined, "%s%s%s", item->profile,
		       item->profile[0] == '\0' ? "" : ",", profile);
	if (strlen(joined) < sizeof item->profile)
		memcpy(item->profile, joined, sizeof item->profile);
}

// Counts a share once however often it is shown; what was told stays as it was told.
static bool take_share(struct usage_allocation *item, const struct usage_holder *holder,
		       int64_t now_s)
{
	take_mig(item, holder);
	if (item->is_bound_told || holder->shares == 0)
		return true;
	uint32_t last = holder->share + (uint32_t)max_size(holder->share_count, 1) - 1;
	// An id of a configuration gone by may have a number beyond what is offered now.
	uint32_t shares = last < holder->shares ? holder->shares : last + 1;
	if (item->held != NULL && last < item->share_den)
		shares = item->share_den;
	if (shares > SHARES_MAX)
		return false;
	if (item->held == NULL || item->share_den != shares) {
		uint64_t *held = calloc((shares + 63) / 64, sizeof held[0]);
		if (held == NULL)
			return false;
		free(item->held);
		item->held = held;
		item->share_den = shares;
		item->share_num = 0;
	}
	for (uint32_t share = holder->share; share <= last; share++) {
		uint64_t bit = UINT64_C(1) << share % 64;
		if ((item->held[share / 64] & bit) != 0)
			continue;
		item->held[share / 64] |= bit;
		item->share_num++;
		item->grown_s = now_s;
	}
	return true;
}

// When the last holder of the device that has ended did so; 0: none is known. Who had another MIG
// device of the GPU does not count.
static int64_t last_release_s(const struct usage *usage, const struct usage_holder *holder)
{
	int64_t last_s = 0;
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_allocation *item = &usage->items[i];
		if (item->is_ended && str_eq_c(holder->gpu, item->gpu) &&
		    usage_is_same_part(item, holder))
			last_s = max_i64(last_s, item->released_s);
	}
	return last_s;
}

void usage_show(struct usage *usage, const struct usage_holder *holder, int64_t now_s)
{
	char uid[USAGE_UID_BYTES];
	if (!uid_of(holder, uid) || holder->gpu.len >= USAGE_NAME_BYTES ||
	    holder->container.len >= USAGE_NAME_BYTES)
		return;
	struct usage_allocation *item = usage_find(usage, holder->gpu, str_of(uid));
	bool is_new = item == NULL;
	if (is_new)
		item = usage_add(usage);
	if (item == NULL)
		return; // shown again at the next look
	item->is_shown = true;
	item->last_s = now_s;
	bool ok = true;
	if (is_new) {
		item->first_s = now_s;
		ok = usage_text(item->gpu, sizeof item->gpu, holder->gpu) &&
		     usage_text(item->pod_uid, sizeof item->pod_uid, str_of(uid));
		if (ok && holder->is_of_claim)
			item->not_before_s = last_release_s(usage, holder);
	}
	ok = ok && take_share(item, holder, now_s);
	if (ok && (is_new || (holder->is_first_choice && !item->is_bound_told)))
		ok = usage_text(item->container, sizeof item->container, holder->container);
	if (ok && item->pod[0] == '\0' && holder->pod.len > 0)
		ok = usage_text(item->pod, sizeof item->pod, holder->pod) &&
		     usage_text(item->namespace_, sizeof item->namespace_, holder->namespace_);
	if (!ok)
		remove_at(usage, (size_t)(item - usage->items));
}

static void end_at(struct usage_allocation *item, int64_t t_s, bool is_guessed)
{
	if (item->is_ended)
		return;
	item->is_ended = true;
	item->is_guessed = item->is_guessed || is_guessed;
	// Clocks of node and API server may differ by a little; time never runs backwards here.
	item->released_s = max_i64(t_s, item->bound_s);
}

void usage_show_end(struct usage *usage, int64_t now_s)
{
	for (size_t i = 0; !usage->config.has_pods && i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		if (item->bound_s == 0)
			item->bound_s = item->first_s;
		if (!item->is_shown)
			end_at(item, now_s, true);
	}
}

static void take_names(struct usage_allocation *item, const struct pod_facts *pod)
{
	_Static_assert(sizeof item->request >= sizeof pod->request, "fits");
	memcpy(item->pod, pod->name, sizeof item->pod);
	memcpy(item->namespace_, pod->namespace_, sizeof item->namespace_);
	memcpy(item->request, pod->request, sizeof pod->request);
	item->has_pod = true;
	if (pod->scheduled_s != 0 && !item->is_bound_told)
		item->bound_s = max_i64(pod->scheduled_s, item->not_before_s);
}

void usage_pod(struct usage *usage, const struct pod_facts *pod)
{
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		if (item->is_released_told || strcmp(item->pod_uid, pod->uid) != 0)
			continue;
		take_names(item, pod);
		if (!pod->is_terminal)
			continue;
		if (pod->finished_s != 0)
			end_at(item, pod->finished_s, false);
		else if (pod->deleted_s != 0)
			end_at(item, pod->deleted_s, false);
		else if (pod->has_ended)
			end_at(item, item->last_s, true); // ended at a time nobody noted
		else
			end_at(item, item->bound_s, false); // it never ran
	}
}

void usage_pod_deleted(struct usage *usage, const struct pod_facts *pod, int64_t now_s)
{
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		if (item->is_released_told || strcmp(item->pod_uid, pod->uid) != 0)
			continue;
		take_names(item, pod);
		if (pod->finished_s != 0 && (pod->is_terminal || pod->is_all_finished))
			end_at(item, pod->finished_s, false);
		else if (pod->deleted_s != 0)
			end_at(item, min_i64(pod->deleted_s, now_s), false);
		else
			end_at(item, now_s, true);
	}
}

void usage_tenant(struct usage *usage, const char *namespace_, const char *tenant)
{
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		if (item->has_tenant || strcmp(item->namespace_, namespace_) != 0)
			continue;
		item->has_tenant = usage_text(item->tenant, sizeof item->tenant, str_of(tenant));
	}
}

void usage_pods_listed(struct usage *usage, int64_t now_s,
		       bool (*is_listed)(void *arg, const char *uid), void *arg)
{
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		bool is_young = !item->has_pod && now_s - item->first_s < LIST_AGE_MAX_S;
		if (item->is_ended || is_young || is_listed(arg, item->pod_uid))
			continue;
		if (!item->is_bound_told && item->namespace_[0] == '\0') {
			// An entry that the kubelet's file kept: it cannot be told whose it was.
			item->is_ended = item->is_bound_told = item->is_released_told = true;
			usage->guessed++;
			continue;
		}
		// Its end was not seen: nothing is charged beyond the last sight of it.
		if (item->bound_s == 0) {
			item->bound_s = item->first_s;
			item->is_guessed = true;
		}
		end_at(item, item->last_s, true);
	}
}

struct usage_event usage_event_of(const struct usage_allocation *item, event_type type, int64_t t_s)
{
	struct usage_event event = { .type = type, .t_s = t_s };
	// The tables have the same sizes; a tenant is never empty in the ledger.
	memcpy(event.gpu, item->gpu, sizeof event.gpu);
	memcpy(event.container, item->container, sizeof event.container);
	memcpy(event.pod_uid, item->pod_uid, sizeof event.pod_uid);
	memcpy(event.pod, item->pod, sizeof event.pod);
	memcpy(event.namespace_, item->namespace_, sizeof event.namespace_);
	memcpy(event.tenant, item->has_tenant ? item->tenant : item->namespace_,
	       sizeof event.tenant);
	memcpy(event.request, item->request, sizeof event.request);
	if (event.tenant[0] == '\0')
		memcpy(event.tenant, "unknown", sizeof "unknown");
	return event;
}

static bool tell(const struct usage *usage, struct usage_allocation *item, event_type type,
		 int64_t t_s)
{
	struct usage_event event = usage_event_of(item, type, t_s);
	event.share_num = item->share_num;
	event.share_den = item->share_den;
	memcpy(event.profile, item->profile, sizeof event.profile);
	if (usage->config.emit(usage->config.arg, &event) != ERR_OK)
		return false;
	// The tenant that was told first holds to the end, as after a restart.
	memcpy(item->tenant, event.tenant, sizeof item->tenant);
	item->has_tenant = true;
	return true;
}

static bool is_bound_due(const struct usage *usage, const struct usage_allocation *item,
			 int64_t now_s)
{
	if (item->is_bound_told || item->bound_s == 0)
		return false;
	if (item->held != NULL && !item->is_ended && now_s - item->grown_s < SETTLE_S)
		return false;
	// What has ended without its tenant being known waits for it only so long.
	bool waits_no_more = item->is_ended && now_s - item->last_s > TENANT_WAIT_S;
	return item->has_tenant || !usage->config.has_pods || waits_no_more;
}

void usage_step(struct usage *usage, int64_t now_s)
{
	size_t closed = 0;
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_allocation *item = &usage->items[i];
		if (is_bound_due(usage, item, now_s))
			item->is_bound_told = tell(usage, item, EVENT_BOUND, item->bound_s);
		if (item->is_ended && item->is_bound_told && !item->is_released_told) {
			item->released_s = max_i64(item->released_s, item->bound_s);
			item->is_released_told =
				tell(usage, item, EVENT_RELEASED, item->released_s);
			usage->guessed += item->is_released_told && item->is_guessed ? 1 : 0;
		}
		bool is_closed = item->is_released_told && !item->is_shown;
		if (!is_closed)
			item->closed_s = 0;
		else if (item->closed_s == 0)
			item->closed_s = now_s;
		closed += is_closed ? 1 : 0;
	}
	// The kubelet's file may show a pod long after its end: those stay, so that none is told
	// twice; of the others the last ones are kept, in case a source flickers.
	for (size_t i = 0; i < usage->count;) {
		const struct usage_allocation *item = &usage->items[i];
		bool is_old = now_s - item->closed_s > CLOSED_REMEMBER_S || closed > CLOSED_MAX;
		if (item->closed_s != 0 && is_old) {
			remove_at(usage, i);
			closed--;
		} else {
			i++;
		}
	}
}

void usage_sampled(struct usage *usage, const struct usage_allocation *item, uint32_t util_milli,
		   uint64_t memory_mib)
{
	size_t i = (size_t)(item - usage->items);
	ASSERT(i < usage->count);
	usage->items[i].util_milli = util_milli;
	usage->items[i].memory_mib = memory_mib;
	usage->items[i].has_sample = true;
}

size_t usage_count(const struct usage *usage) { return usage->count; }

const struct usage_allocation *usage_at(const struct usage *usage, size_t i)
{
	ASSERT(i < usage->count);
	return &usage->items[i];
}

const struct usage_allocation *usage_next_holder(const struct usage *usage, const char *gpu,
						 size_t *at)
{
	for (; *at < usage->count; ++*at) {
		const struct usage_allocation *item = &usage->items[usage->count - 1 - *at];
		if (item->is_ended || strcmp(item->gpu, gpu) != 0)
			continue;
		++*at;
		return item;
	}
	return NULL;
}

bool usage_is_same_part(const struct usage_allocation *item, const struct usage_holder *holder)
{
	bool is_part = holder->profile.len > 0 && holder->mig_start < 32;
	return !is_part || item->mig_starts == 0 ||
	       (item->mig_starts >> holder->mig_start & 1) != 0;
}

bool usage_is_others(const struct usage *usage, const struct usage_holder *holder)
{
	bool has_other = false;
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_allocation *item = &usage->items[i];
		if (item->is_ended || !str_eq_c(holder->gpu, item->gpu) ||
		    !usage_is_same_part(item, holder))
			continue;
		// After a restart nobody's MIG devices are known until they are shown.
		if (str_eq_c(holder->pod_uid, item->pod_uid))
			return false;
		has_other = true;
	}
	return has_other;
}

uint64_t usage_guessed(const struct usage *usage) { return usage->guessed; }
