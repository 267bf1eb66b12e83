// SPDX-License-Identifier: Apache-2.0
// When a pod will fit on a node by the expected ends of the pods there, and what another pod
// would leave of that room.
#include "sched/reserve.h"
#include "sched/window_book.h"

#include <stdlib.h>

enum { LATE_FIRST_MS = 1000, LATE_MAX_MS = 1 << 30 };

struct leaving { // a pod of a node, by its expected end
	int64_t end_ms;
	const struct pod *pod;
};

// A pod that runs longer than it said is believed to end soon, and less soon the later it is.
int64_t reserve_end_ms(const struct pod *pod, int64_t now_ms)
{
	if (pod->end_ms > now_ms)
		return pod->end_ms;
	int64_t late_ms = now_ms - pod->end_ms, more_ms = LATE_FIRST_MS;
	while (more_ms <= late_ms && more_ms < LATE_MAX_MS)
		more_ms *= 2;
	return more_ms > late_ms ? pod->end_ms + more_ms : SCHED_NEVER_MS;
}

int64_t reserve_amount_of(const struct pod *pod, uint32_t dim)
{
	const struct shape *shape = pod->shape;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		if (shape->dims[i] == dim)
			return shape->spec->amounts[i].amount;
	}
	return 0;
}

// ---- whether a head could be on a node at all, and what is missing now

static int64_t alloc_of(const struct sched *sched, uint32_t dim, const struct node *node)
{
	return dim == DIM_NONE ? 0 : sched->columns[dim].alloc[node->slot];
}

bool reserve_could_hold(const struct sched *sched, const struct shape *shape, uint32_t slot)
{
	const struct node *node = sched->nodes[slot];
	const struct sched_spec *spec = shape->spec;
	if (node == NULL || !node->is_known || !shape_is_static_fit(shape, slot) ||
	    sched->columns[DIM_PODS].alloc[slot] < 1)
		return false;
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (alloc_of(sched, shape->dims[i], node) < max_i64(spec->amounts[i].amount, 0))
			return false;
	}
	if (spec->share_count > 0)
		return hold_could_fit(spec, node);
	return spec->gpu_count == 0 || node->present_count == 0 ||
	       (int64_t)device_healthy_count(spec, node) >= spec->gpu_count;
}

// Of what is missing on a node the share of the node, in thousandths, over all resources.
int64_t reserve_shortfall(const struct sched *sched, const struct shape *shape, uint32_t slot)
{
	int64_t sum = 0;
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		int64_t need = shape->spec->amounts[i].amount;
		if (need <= 0)
			continue;
		const struct column *column = &sched->columns[shape->dims[i]];
		int64_t all = column->alloc[slot], missing = need - (all - column->used[slot]);
		if (missing > 0)
			sum += all < 1000 ? 1000 * missing / all : missing / (all / 1000);
	}
	return sum;
}

// ---- when it will fit

static int compare_leaving(const void *a, const void *b)
{
	int64_t x = ((const struct leaving *)a)->end_ms, y = ((const struct leaving *)b)->end_ms;
	return x < y ? -1 : x > y;
}

static int64_t count_devices(const struct room *room)
{
	return (int64_t)device_group_count(room->head->shape->spec, room->node, room->free);
}

bool room_has(const struct room *room)
{
	const struct sched_spec *spec = room->head->shape->spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		int64_t need = spec->amounts[i].amount;
		if (need > 0 && room->amounts[i] < need)
			return false;
	}
	if (!hold_room_has(spec, room->node, &room->shares))
		return false;
	return room->pods >= 1 && (spec->gpu_count == 0 || room->node->present_count == 0 ||
				   count_devices(room) >= spec->gpu_count);
}

// Whether another pod takes only what the head does not need.
bool room_has_beside(const struct room *room, const struct pod *other)
{
	const struct shape *shape = room->head->shape;
	const struct sched_spec *spec = shape->spec;
	for (size_t i = 0; i < spec->amount_count; i++) {
		int64_t need = spec->amounts[i].amount;
		int64_t taken = reserve_amount_of(other, shape->dims[i]);
		if (need > 0 && taken > 0 && room->amounts[i] - taken < need)
			return false;
	}
	// It takes the device that it fits best, which may be the one that the head needs.
	if (spec->share_count > 0 && other->shape->spec->share_count > 0)
		return false;
	int64_t taken = other->shape->spec->gpu_count;
	bool takes_devices = taken > 0 && spec->gpu_count > 0 && room->node->present_count > 0;
	return room->pods >= 2 &&
	       (!takes_devices || count_devices(room) - taken >= spec->gpu_count) &&
	       !filter_ports_clash(spec, other->shape->spec);
}

void room_now(const struct sched *sched, const struct pod *head, const struct node *node,
	      struct room *ret)
{
	const struct shape *shape = head->shape;
	const struct column *pods = &sched->columns[DIM_PODS];
	ret->head = head;
	ret->node = node;
	ret->pods = pods->alloc[node->slot] - pods->used[node->slot];
	ret->free = device_free(shape->spec, node);
	if (shape->spec->share_count > 0)
		hold_room_now(node, &ret->shares);
	ASSERT(shape->spec->amount_count <= ARRAY_COUNT(ret->amounts));
	for (size_t i = 0; i < shape->spec->amount_count; i++) {
		uint32_t dim = shape->dims[i];
		ret->amounts[i] = dim == DIM_NONE ? 0
						  : sched->columns[dim].alloc[node->slot] -
							    sched->columns[dim].used[node->slot];
	}
}

void room_add(struct room *room, const struct pod *leaving)
{
	const struct shape *shape = room->head->shape;
	room->pods++;
	if (shape->spec->share_count > 0)
		hold_room_add(room->node, leaving, &room->shares);
	for (size_t i = 0; i < shape->spec->amount_count; i++)
		room->amounts[i] += reserve_amount_of(leaving, shape->dims[i]);
	for (size_t i = 0; leaving->shape->spec->gpu_count > 0 && i < room->node->device_count;
	     i++) {
		const struct device *device = &room->node->devices[i];
		if (device->holder == leaving && filter_device_kind(shape->spec, device))
			room->free |= UINT64_C(1) << i;
	}
}

static struct leaving *list_leaving(struct sched *sched, const struct node *node, size_t *ret_count)
{
	size_t count = (size_t)sched->columns[DIM_PODS].used[node->slot], i = 0;
	struct leaving *list = core_alloc(count, sizeof *list);
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		ASSERT(i < count);
		shape_ready_dims(sched, pod->shape);
		list[i++] = (struct leaving){ reserve_end_ms(pod, sched->now_ms), pod };
	}
	qsort(list, count, sizeof *list, compare_leaving);
	*ret_count = count;
	return list;
}

// The instant from which the head fits on the node if nobody else comes.
int64_t reserve_start_ms(struct sched *sched, const struct pod *head, const struct node *node)
{
	struct room room;
	size_t count;
	if (!reserve_could_hold(sched, head->shape, node->slot))
		return IMPOSSIBLE_MS;
	room_now(sched, head, node, &room);
	struct leaving *list = list_leaving(sched, node, &count);
	int64_t start_ms = room_has(&room) ? FITS_NOW_MS : SCHED_NEVER_MS;
	for (size_t i = 0; i < count && start_ms == SCHED_NEVER_MS; i++) {
		room_add(&room, list[i].pod);
		if (list[i].end_ms == SCHED_NEVER_MS)
			break;
		if (room_has(&room))
			start_ms = list[i].end_ms;
	}
	for (size_t i = 0; i < count; i++) { // whoever holds a port of it must have left
		if (filter_ports_clash(head->shape->spec, list[i].pod->shape->spec))
			start_ms = max_i64(start_ms, list[i].end_ms);
	}
	free(list);
	return window_open_ms(sched, head, head->shape->spec->gpu_count, node, start_ms);
}
