// SPDX-License-Identifier: Apache-2.0
#include "billing/usage.h"

#include "base/timefmt.h"
#include "billing/slots.h"

#include <stdlib.h>

// One event that was seen: who told it and a digest of what it said.
struct seen {
	struct event_digest digest;
	int64_t seq;
	uint32_t source, boot;
};

struct allocation_key {
	uint32_t gpu, pod_uid, container, zero;
};

// Texts that are kept once; of GPUs and tenants the numbers are dense and used as places.
enum name_kind { SOURCES, BOOTS, GPUS, TENANTS, PODS, CONTAINERS, EPOCHS, NAME_KINDS };

struct usage {
	struct names *names[NAME_KINDS];
	struct seen *seen;
	size_t seen_count, seen_cap;
	struct slots seen_index;
	struct usage_allocation *allocations;
	size_t allocation_count, allocation_cap;
	struct slots allocation_index;
	struct usage_energy *energy;
	size_t energy_count, energy_cap;
	struct usage_gpu *gpus;
	bool is_lenient, finished;
};

struct usage *usage_new(void)
{
	struct usage *usage = calloc(1, sizeof *usage);
	if (usage == NULL)
		return NULL;
	for (int kind = 0; kind < NAME_KINDS; kind++) {
		usage->names[kind] = names_new();
		if (usage->names[kind] == NULL) {
			usage_free(usage);
			return NULL;
		}
	}
	return usage;
}

void usage_free(struct usage *usage)
{
	if (usage == NULL)
		return;
	for (int kind = 0; kind < NAME_KINDS; kind++)
		names_free(usage->names[kind]);
	free(usage->seen);
	slots_done(&usage->seen_index);
	free(usage->allocations);
	slots_done(&usage->allocation_index);
	free(usage->energy);
	free(usage->gpus);
	free(usage);
}

void usage_set_lenient(struct usage *usage) { usage->is_lenient = true; }

void usage_freep(struct usage **usage)
{
	usage_free(*usage);
	*usage = NULL;
}

static err_status no_memory(const struct usage *usage, struct err *err)
{
	return err_set(err, ERR_LIMIT, "no memory for more than %zu events", usage->seen_count);
}

struct seen_wanted {
	const struct usage *usage;
	const struct seen *seen;
};

static bool is_same_identity(const void *arg, uint32_t item)
{
	const struct seen_wanted *wanted = arg;
	const struct seen *a = &wanted->usage->seen[item], *b = wanted->seen;
	return a->seq == b->seq && a->source == b->source && a->boot == b->boot;
}

// Tells whether the event is new; notes it then.
static err_status note_identity(struct usage *usage, const struct event *event, bool *ret_new,
				struct err *err)
{
	struct seen seen = { .digest = event_digest_of(event), .seq = event->seq };
	seen.source = names_add(usage->names[SOURCES], event->source);
	seen.boot = names_add(usage->names[BOOTS], event->boot);
	if (seen.source == NAMES_NONE || seen.boot == NAMES_NONE)
		return no_memory(usage, err);
	uint64_t key[2] = { (uint64_t)seen.seq, (uint64_t)seen.source << 32 | seen.boot };
	uint64_t hash = slots_hash(key, sizeof key);
	struct seen_wanted wanted = { usage, &seen };
	uint32_t found = slots_find(&usage->seen_index, hash, is_same_identity, &wanted);
	*ret_new = found == UINT32_MAX;
	if (found != UINT32_MAX) {
		struct event_digest other = usage->seen[found].digest;
		if (other.high == seen.digest.high && other.low == seen.digest.low)
			return ERR_OK;
		return err_set(err, ERR_CONFLICT,
			       "event (source " STR_FMT ", boot " STR_FMT
			       ", seq %lld) came before with another content",
			       STR_ARG(event->source), STR_ARG(event->boot), (long long)event->seq);
	}
	if (!slots_room(&usage->seen, &usage->seen_cap, usage->seen_count, sizeof seen) ||
	    !slots_add(&usage->seen_index, hash, (uint32_t)usage->seen_count))
		return no_memory(usage, err);
	usage->seen[usage->seen_count++] = seen;
	return ERR_OK;
}

struct allocation_wanted {
	const struct usage *usage;
	struct allocation_key key;
};

static bool is_same_allocation(const void *arg, uint32_t item)
{
	const struct allocation_wanted *wanted = arg;
	const struct usage_allocation *a = &wanted->usage->allocations[item];
	return a->gpu == wanted->key.gpu && a->pod_uid == wanted->key.pod_uid &&
	       a->container == wanted->key.container;
}

// The allocation that the event speaks of, new if it is the first to speak of it; NULL: no memory.
static struct usage_allocation *allocation_of(struct usage *usage, const struct event *event)
{
	struct allocation_key key = { .gpu = names_add(usage->names[GPUS], event->gpu),
				      .pod_uid = names_add(usage->names[PODS], event->pod_uid),
				      .container = names_add(usage->names[CONTAINERS],
							     event->container) };
	if (key.gpu == NAMES_NONE || key.pod_uid == NAMES_NONE || key.container == NAMES_NONE)
		return NULL;
	uint64_t hash = slots_hash(&key, sizeof key);
	struct allocation_wanted wanted = { usage, key };
	uint32_t found = slots_find(&usage->allocation_index, hash, is_same_allocation, &wanted);
	if (found != UINT32_MAX)
		return &usage->allocations[found];
	if (!slots_room(&usage->allocations, &usage->allocation_cap, usage->allocation_count,
			sizeof *usage->allocations) ||
	    !slots_add(&usage->allocation_index, hash, (uint32_t)usage->allocation_count))
		return NULL;
	struct usage_allocation *allocation = &usage->allocations[usage->allocation_count++];
	*allocation = (struct usage_allocation){ .gpu = key.gpu,
						 .pod_uid = key.pod_uid,
						 .container = key.container,
						 .tenant = NAMES_NONE,
						 .released_s = USAGE_OPEN };
	return allocation;
}

static err_status told_twice(const struct event *event, const char *what, struct err *err)
{
	return err_set(
		err, ERR_CONFLICT,
		"pod " STR_FMT " container \"" STR_FMT "\" on GPU " STR_FMT " is told with two %s",
		STR_ARG(event->pod_uid), STR_ARG(event->container), STR_ARG(event->gpu), what);
}

// A release may leave the tenant out; where it is told it must agree.
static err_status note_tenant(struct usage *usage, const struct event *event,
			      struct usage_allocation *allocation, struct err *err)
{
	if (!event_has(event, EVENT_F_TENANT))
		return ERR_OK;
	uint32_t tenant = names_add(usage->names[TENANTS], event->tenant);
	if (tenant == NAMES_NONE)
		return no_memory(usage, err);
	if (allocation->tenant != NAMES_NONE && allocation->tenant != tenant)
		return told_twice(event, "tenants", err);
	allocation->tenant = tenant;
	return ERR_OK;
}

static err_status add_bound(struct usage *usage, const struct event *event, struct err *err)
{
	struct usage_allocation *allocation = allocation_of(usage, event);
	if (allocation == NULL)
		return no_memory(usage, err);
	uint32_t num = (uint32_t)event->share_num, den = (uint32_t)event->share_den;
	if (allocation->is_bound && allocation->bound_s != event->t_s)
		return told_twice(event, "instants of binding", err);
	if (allocation->is_bound && (allocation->share_num != num || allocation->share_den != den))
		return told_twice(event, "shares", err);
	allocation->is_bound = true;
	allocation->bound_s = event->t_s;
	allocation->share_num = num;
	allocation->share_den = den;
	return note_tenant(usage, event, allocation, err);
}

static err_status add_released(struct usage *usage, const struct event *event, struct err *err)
{
	struct usage_allocation *allocation = allocation_of(usage, event);
	if (allocation == NULL)
		return no_memory(usage, err);
	if (allocation->is_released && allocation->released_s != event->t_s)
		return told_twice(event, "instants of release", err);
	allocation->is_released = true;
	allocation->released_s = event->t_s;
	return note_tenant(usage, event, allocation, err);
}

static err_status add_energy(struct usage *usage, const struct event *event, struct err *err)
{
	struct usage_energy row = { .t_s = event->t_s,
				    .energy_mj = event->energy_mj,
				    .gpu = names_add(usage->names[GPUS], event->gpu),
				    .epoch = names_add(usage->names[EPOCHS], event->epoch) };
	if (row.gpu == NAMES_NONE || row.epoch == NAMES_NONE ||
	    !slots_room(&usage->energy, &usage->energy_cap, usage->energy_count, sizeof row))
		return no_memory(usage, err);
	usage->energy[usage->energy_count++] = row;
	return ERR_OK;
}

err_status usage_add(struct usage *usage, const struct event *event, struct err *err)
{
	bool is_new = false;
	ASSERT(!usage->finished);
	err_status status = note_identity(usage, event, &is_new, err);
	if (status != ERR_OK || !is_new)
		return status;
	switch (event->type) {
	case EVENT_BOUND: return add_bound(usage, event, err);
	case EVENT_RELEASED: return add_released(usage, event, err);
	case EVENT_ENERGY: return add_energy(usage, event, err);
	case EVENT_SAMPLE:
	case EVENT_UNEXPLAINED: return ERR_OK; // no money hangs on them
	}
	return ERR_INTERNAL;
}

static int by_bound(const void *left, const void *right)
{
	const struct usage_allocation *a = left, *b = right;
	return a->bound_s < b->bound_s ? -1 : a->bound_s > b->bound_s;
}

// Rows of one instant count as one step, whatever their order; see meter.c.
static int by_time(const void *left, const void *right)
{
	const struct usage_energy *a = left, *b = right;
	if (a->t_s != b->t_s)
		return a->t_s < b->t_s ? -1 : 1;
	return a->energy_mj < b->energy_mj ? -1 : a->energy_mj > b->energy_mj;
}

static int by_id(const void *left, const void *right)
{
	return str_cmp(((const struct usage_gpu *)left)->id, ((const struct usage_gpu *)right)->id);
}

static err_status check_allocation(const struct usage *usage,
				   const struct usage_allocation *allocation, struct err *err)
{
	char time[TIME_TEXT_BYTES];
	struct str gpu = names_text(usage->names[GPUS], allocation->gpu);
	struct str pod = names_text(usage->names[PODS], allocation->pod_uid);
	if (!allocation->is_bound)
		return err_set(err, ERR_INVALID,
			       "pod " STR_FMT " on GPU " STR_FMT " is released "
			       "at %s but never bound",
			       STR_ARG(pod), STR_ARG(gpu),
			       time_format(allocation->released_s, time));
	if (allocation->released_s < allocation->bound_s)
		return err_set(err, ERR_INVALID,
			       "pod " STR_FMT " on GPU " STR_FMT " is released "
			       "at %s, before it is bound",
			       STR_ARG(pod), STR_ARG(gpu),
			       time_format(allocation->released_s, time));
	return ERR_OK;
}

// An array of items that each begin with the same things, and where in an item its GPU stands.
struct items {
	char *data;
	size_t count, item_bytes, gpu_at;
	int (*order)(const void *left, const void *right);
};

static uint32_t gpu_of(const struct items *items, size_t i)
{
	uint32_t gpu;
	memcpy(&gpu, items->data + i * items->item_bytes + items->gpu_at, sizeof gpu);
	return gpu;
}

// Most sources tell in order of time.
static void sort_part(const struct items *items, char *part, size_t count)
{
	bool in_order = true;
	for (size_t i = 1; in_order && i < count; i++)
		in_order = items->order(part + (i - 1) * items->item_bytes,
					part + i * items->item_bytes) <= 0;
	if (!in_order)
		qsort(part, count, items->item_bytes, items->order);
}

// Brings the items of each GPU together, in their order. ends[gpu] becomes the end of its part.
// The array is replaced; false when there is no memory.
static bool group_by_gpu(struct items *items, size_t gpu_count, size_t *ends)
{
	memset(ends, 0, gpu_count * sizeof *ends);
	for (size_t i = 0; i < items->count; i++)
		ends[gpu_of(items, i)]++;
	size_t at = 0;
	for (size_t gpu = 0; gpu < gpu_count; gpu++) {
		size_t count = ends[gpu];
		ends[gpu] = at;
		at += count;
	}
	char *grouped = malloc(max_size(items->count, 1) * items->item_bytes);
	if (grouped == NULL)
		return false;
	for (size_t i = 0; i < items->count; i++)
		memcpy(grouped + ends[gpu_of(items, i)]++ * items->item_bytes,
		       items->data + i * items->item_bytes, items->item_bytes);
	free(items->data);
	items->data = grouped;
	for (size_t gpu = 0; gpu < gpu_count; gpu++) {
		size_t from = gpu == 0 ? 0 : ends[gpu - 1];
		sort_part(items, grouped + from * items->item_bytes, ends[gpu] - from);
	}
	return true;
}

static bool group_allocations(struct usage *usage, size_t gpu_count, size_t *ends)
{
	struct items items = { (char *)usage->allocations, usage->allocation_count,
			       sizeof *usage->allocations, offsetof(struct usage_allocation, gpu),
			       by_bound };
	if (!group_by_gpu(&items, gpu_count, ends))
		return false;
	usage->allocations = (struct usage_allocation *)(void *)items.data;
	for (size_t gpu = 0; gpu < gpu_count; gpu++) {
		size_t from = gpu == 0 ? 0 : ends[gpu - 1];
		usage->gpus[gpu].allocations = usage->allocations + from;
		usage->gpus[gpu].allocation_count = ends[gpu] - from;
	}
	return true;
}

static bool group_energy(struct usage *usage, size_t gpu_count, size_t *ends)
{
	struct items items = { (char *)usage->energy, usage->energy_count, sizeof *usage->energy,
			       offsetof(struct usage_energy, gpu), by_time };
	if (!group_by_gpu(&items, gpu_count, ends))
		return false;
	usage->energy = (struct usage_energy *)(void *)items.data;
	for (size_t gpu = 0; gpu < gpu_count; gpu++) {
		size_t from = gpu == 0 ? 0 : ends[gpu - 1];
		usage->gpus[gpu].energy = usage->energy + from;
		usage->gpus[gpu].energy_count = ends[gpu] - from;
	}
	return true;
}

// Points each GPU at its part of the arrays.
static err_status split_by_gpu(struct usage *usage, struct err *err)
{
	size_t count = names_count(usage->names[GPUS]);
	usage->gpus = calloc(max_size(count, 1), sizeof *usage->gpus);
	size_t *ends = calloc(max_size(count, 1), sizeof *ends);
	bool good = usage->gpus != NULL && ends != NULL && group_allocations(usage, count, ends) &&
		    group_energy(usage, count, ends);
	free(ends);
	if (!good)
		return no_memory(usage, err);
	for (size_t i = 0; i < count; i++)
		usage->gpus[i].id = names_text(usage->names[GPUS], (uint32_t)i);
	qsort(usage->gpus, count, sizeof *usage->gpus, by_id);
	return ERR_OK;
}

err_status usage_finish(struct usage *usage, struct err *err)
{
	size_t kept = 0;
	ASSERT(!usage->finished);
	for (size_t i = 0; i < usage->allocation_count; i++) {
		struct usage_allocation *allocation = &usage->allocations[i];
		err_status status = check_allocation(usage, allocation, err);
		if (status != ERR_OK && !usage->is_lenient)
			return status;
		if (status == ERR_OK && allocation->released_s > allocation->bound_s)
			usage->allocations[kept++] = *allocation;
	}
	usage->allocation_count = kept;
	slots_done(&usage->allocation_index); // its numbers are of the old order
	slots_done(&usage->seen_index);
	usage->finished = true;
	return split_by_gpu(usage, err);
}

const struct usage_gpu *usage_gpus(const struct usage *usage, size_t *ret_count)
{
	ASSERT(usage->finished);
	*ret_count = names_count(usage->names[GPUS]);
	return usage->gpus;
}

const struct names *usage_tenants(const struct usage *usage) { return usage->names[TENANTS]; }
