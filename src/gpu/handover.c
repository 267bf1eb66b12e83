// SPDX-License-Identifier: Apache-2.0
#include "gpu/handover.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_after_grace(const struct handover *handover, const struct handover_config *config,
			   uint64_t read_ns)
{
	return read_ns != 0 && read_ns >= handover->free_ns + config->grace_ns;
}

static bool clear(struct handover *handover, uint64_t free_ns)
{
	bool was_dirty = handover->is_dirty;
	*handover = (struct handover){ .free_ns = free_ns };
	return was_dirty;
}

bool handover_look(struct handover *handover, const struct handover_config *config,
		   const struct handover_facts *facts, uint64_t now_ns)
{
	if (config->grace_ns == 0 || facts->is_held || !facts->is_whole)
		return clear(handover, 0);
	if (handover->free_ns == 0)
		handover->free_ns = now_ns;
	bool has_process = facts->process_count > 0 &&
			   is_after_grace(handover, config, facts->processes_ns);
	bool has_memory = facts->memory_mib > config->memory_mib &&
			  is_after_grace(handover, config, facts->memory_ns);
	if (!has_process && !has_memory)
		return clear(handover, handover->free_ns);
	if (handover->is_dirty)
		return false; // the first reason stays
	handover->is_dirty = true;
	if (has_process)
		(void)snprintf(handover->reason, sizeof handover->reason,
			       "nobody holds it, but process %" PRIu32 " is still on it",
			       facts->first_pid);
	else
		(void)snprintf(handover->reason, sizeof handover->reason,
			       "nobody holds it, but %" PRIu64 " MiB are still in use",
			       facts->memory_mib);
	return true;
}

bool handover_wants_reading(const struct handover *handover, const struct handover_config *config,
			    const struct handover_facts *facts, uint64_t now_ns)
{
	return config->grace_ns > 0 && handover->free_ns != 0 &&
	       is_after_grace(handover, config, now_ns) &&
	       !is_after_grace(handover, config, facts->processes_ns);
}
