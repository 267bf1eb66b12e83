// SPDX-License-Identifier: Apache-2.0
// Gangs as they come in: pods that start together or not at all. A pod says of which gang it is;
// how large the gang is says the pod too, or objects beside it (a PodGroup, the Jobs whose pods
// are its members), told here as parts. Part of the calls of sched.h: inputs are copied, nothing
// can fail. A gang is of one namespace; equal names in two namespaces are two gangs.
#pragma once

#include "base/defs.h"
#include "base/str.h"

struct sched;

typedef enum sched_gang_kind { // names of one kind mean nothing to another
	SCHED_GANG_NAMED,      // annotation gpuaas.io/gang
	SCHED_GANG_POD_GROUP,  // scheduling.k8s.io PodGroup
	SCHED_GANG_COSCHED,    // scheduling.x-k8s.io PodGroup, or its label alone
	SCHED_GANG_KINDS
} sched_gang_kind;

enum { SCHED_GANG_MAX = 4096, SCHED_GANG_EXPIRY_S = 600 };

struct sched_gang_in { // what one pod says
	sched_gang_kind kind;
	struct str name;     // empty: it is of no gang
	int64_t min, max;    // members that run at least, at most; 0: it does not say
	int64_t expiry_s;    // how long a gang may hold devices incomplete; 0: it does not say
	struct str topology; // label of nodes that has one value for all members; empty: any
	struct str group;    // of the members, one sub-group; empty: none
	int64_t group_min;   // of those that run at least; 0: it does not say
};

struct sched_gang_part { // what an object beside the pods says
	struct str key;  // of the object, one for all kinds
	sched_gang_kind kind;
	struct str namespace_, name;
	int64_t min;      // members; those of all parts are added up
	int64_t expected; // so many parts there are in all; 0: it does not say
	int64_t expiry_s;
	struct str topology;
};
void sched_gang_part_set(struct sched *sched, const struct sched_gang_part *part);
void sched_gang_part_remove(struct sched *sched, struct str key); // unknown key: nothing
