// SPDX-License-Identifier: Apache-2.0
// Room for a head on one node, now and as the pods there leave. Internal to the files about
// reservations; a room borrows the head and the node and is valid until either changes. Nothing
// here can fail, and nothing is kept.
#pragma once

#include "sched/hold.h"
#include "sched/parts.h"

#define FITS_NOW_MS INT64_MIN
#define IMPOSSIBLE_MS INT64_MAX

struct room { // for a head on a node, as pods leave
	const struct pod *head;
	const struct node *node;
	int64_t pods;
	uint64_t free;                        // devices that suit the head, a bit each
	int64_t amounts[SCHED_RESOURCES_MAX]; // as in the head's spec
	struct hold_room shares;              // of a head that asks for some
};

void room_now(const struct sched *sched, const struct pod *head, const struct node *node,
	      struct room *ret);
void room_add(struct room *room, const struct pod *leaving);
bool room_has(const struct room *room);
// Whether another pod takes only what the head does not need.
bool room_has_beside(const struct room *room, const struct pod *other);

// Whether a pod of the shape could be there at all, if nobody else were.
bool reserve_could_hold(const struct sched *sched, const struct shape *shape, uint32_t slot);
// Of what is missing on a node the share of the node, in thousandths, over all resources.
int64_t reserve_shortfall(const struct sched *sched, const struct shape *shape, uint32_t slot);
// The instant from which the head fits on the node if nobody else comes.
int64_t reserve_start_ms(struct sched *sched, const struct pod *head, const struct node *node);
int64_t reserve_amount_of(const struct pod *pod, uint32_t dim);
void reserve_release(struct sched *sched, struct head *head); // others may use its nodes

// reserve_gang.c
bool reserve_gang_is_hopeless(struct sched *sched, struct gang *gang);
bool reserve_gang_is_due(const struct sched *sched, const struct head *head);
int64_t reserve_gang_wake_ms(const struct sched *sched, const struct head *head);
void reserve_gang_settle(struct sched *sched, size_t head_no);
bool reserve_gang_has_beside(struct sched *sched, const struct head *head, const struct pod *pod,
			     const struct node *node);
void reserve_drop_spares(struct head *head);
void reserve_forget(struct head *head, const struct node *node); // it is gone
