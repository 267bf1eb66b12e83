// SPDX-License-Identifier: Apache-2.0
// The kubelet's two questions, answered from memory: which of these devices would you rather
// give (the scheduler's plan decides, else the best linked GPUs, or for shares the policy), and
// what must a container get to use them. Asks neither driver nor API server.
#pragma once

#include "daemons/agent/inject.h"
#include "daemons/agent/offer.h"
#include "daemons/agent/plugin.h"
#include "daemons/agent/pods.h"
#include "daemons/agent/usage.h"

enum { GRANT_STEERED_MAX = 128 };

struct grant {
	struct monitor *monitor;
	struct pods *pods; // NULL: no plans
	const struct usage *usage;
	const struct offer *offer;
	const char *const *held_back; // by slot, why, or NULL
	struct inject inject;
	bool expects_plans; // there is a key to check them with: a plan may be on its way
	const struct world *world;
	// Containers that were steered to their plan a moment ago: not to be taken for another.
	struct grant_steered {
		char uid[POD_SHORT_BYTES], container[POD_SHORT_BYTES];
		uint64_t at_ns; // 0: free
	} steered[GRANT_STEERED_MAX];
	uint64_t planned, unplanned; // choices made by a plan, and without
};

plugin_choice grant_prefer(struct grant *grant, const char *resource,
			   const struct dp_preferred *request, bool is_last, struct str *ret_ids);
// A container with a plan that has its devices already, or was just steered to them.
bool grant_is_served(struct grant *grant, const char *uid, const char *container);
void grant_note_steered(struct grant *grant, const char *uid, const char *container);
// The same two questions about MIG devices, whose ids tell them apart.
bool grant_is_mig(struct str id);
plugin_choice grant_prefer_mig(struct grant *grant, const char *resource,
			       const struct dp_preferred *request, bool is_last,
			       struct str *ret_ids);
MUST_USE err_status grant_check_mig(struct grant *grant, const char *resource,
				    const struct dp_ids *ids,
				    struct mig_device ret_migs[INJECT_MIGS_MAX], size_t *ret_count,
				    struct err *err);
MUST_USE err_status grant_allocate(struct grant *grant, const char *resource,
				   const struct dp_allocate_list *request, struct buf *out,
				   struct err *err);
