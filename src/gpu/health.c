// SPDX-License-Identifier: Apache-2.0
#include "gpu/health.h"

#include "gpu/xid.h"

#include <stdio.h>

static const char *const actions[] = { "none",      "gpu_reset",       "node_reboot",
				       "drain_p2p", "drain_and_reset", "recover_imex_domain" };

static const char *const fault_names[] = {
	[HEALTH_FAULT_NONE] = "none",     [HEALTH_FAULT_XID] = "xid",
	[HEALTH_FAULT_LOST] = "lost",     [HEALTH_FAULT_ERROR] = "error",
	[HEALTH_FAULT_HUNG] = "hung",     [HEALTH_FAULT_CRASH] = "crash",
	[HEALTH_FAULT_DRIVER] = "driver", [HEALTH_FAULT_RECOVERY] = "recovery",
};

void health_init(struct health *health) { *health = (struct health){ .state = HEALTH_HEALTHY }; }

bool health_is_offered(const struct health *health)
{
	return health->state == HEALTH_HEALTHY || health->state == HEALTH_SUSPECT;
}

bool health_is_dead(const struct health *health)
{
	if (health_is_offered(health))
		return false;
	switch (health->fault) {
	case HEALTH_FAULT_XID:
	case HEALTH_FAULT_LOST:
	case HEALTH_FAULT_HUNG:
	case HEALTH_FAULT_RECOVERY: return true;
	case HEALTH_FAULT_NONE:
	case HEALTH_FAULT_ERROR:
	case HEALTH_FAULT_CRASH:
	case HEALTH_FAULT_DRIVER: return false;
	}
	return false;
}

const char *health_state_name(health_state state)
{
	switch (state) {
	case HEALTH_HEALTHY: return "healthy";
	case HEALTH_SUSPECT: return "suspect";
	case HEALTH_UNHEALTHY: return "unhealthy";
	case HEALTH_RECOVERING: return "recovering";
	}
	return "unhealthy";
}

const char *health_fault_name(health_fault fault)
{
	ASSERT((size_t)fault < ARRAY_COUNT(fault_names));
	return fault_names[fault];
}

bool health_fault_parse(struct str text, health_fault *ret)
{
	for (size_t i = 0; i < ARRAY_COUNT(fault_names); i++) {
		if (str_eq_c(text, fault_names[i])) {
			*ret = (health_fault)i;
			return true;
		}
	}
	return false;
}

// Sets the reason; true when it differs from before.
static bool set_reason(struct health *health, const char *text)
{
	if (strcmp(health->reason, text) == 0)
		return false;
	(void)snprintf(health->reason, sizeof health->reason, "%s", text);
	return true;
}

static bool fail(struct health *health, health_fault fault, uint64_t now_ns, const char *reason)
{
	bool was_offered = health_is_offered(health);
	// A later doubt does not hide the first cause, but a fault that says more replaces it.
	health->state = HEALTH_UNHEALTHY;
	health->fault = fault;
	health->fault_at_ns = now_ns;
	health->clean = 0;
	health->reset_seen = false;
	return set_reason(health, reason) || was_offered;
}

bool health_on_xid(struct health *health, uint32_t xid, uint64_t now_ns)
{
	char reason[HEALTH_REASON_BYTES];
	(void)snprintf(reason, sizeof reason, "XID %u: %s", xid, xid_text(xid));
	health->xid = xid;
	return fail(health, HEALTH_FAULT_XID, now_ns, reason);
}

// An XID stays the cause while the GPU is bad; what comes after only dates it anew.
static bool is_kept_xid(struct health *health, uint64_t now_ns)
{
	if (health->state != HEALTH_UNHEALTHY || health->fault != HEALTH_FAULT_XID)
		return false;
	health->clean = 0;
	health->fault_at_ns = now_ns;
	return true;
}

static bool doubt(struct health *health, const struct health_config *config, health_fault fault,
		  uint64_t now_ns, const char *reason)
{
	health->clean = 0;
	if (health->state == HEALTH_UNHEALTHY || health->state == HEALTH_RECOVERING) {
		// Still bad: the first cause stays unless the GPU was on its way back.
		if (is_kept_xid(health, now_ns))
			return false;
		return fail(health, fault, now_ns, reason);
	}
	health->strikes++;
	if (health->strikes >= config->strikes_max)
		return fail(health, fault, now_ns, reason);
	health->state = HEALTH_SUSPECT;
	return set_reason(health, reason);
}

static bool is_healed(const struct health *health, const struct health_config *config, int action,
		      uint64_t now_ns)
{
	if (health->clean < config->clean_probes)
		return false;
	if (now_ns - health->fault_at_ns < config->hold_off_ns)
		return false;
	// Without the driver's word an XID's damage cannot be ruled out, whatever failed after it.
	if (health->xid != 0)
		return action == HEALTH_ACTION_NONE || health->reset_seen;
	return true;
}

static bool on_good_probe(struct health *health, const struct health_config *config, int action,
			  uint64_t now_ns)
{
	health->strikes = 0;
	switch (health->state) {
	case HEALTH_HEALTHY: return false;
	case HEALTH_SUSPECT:
		health->state = HEALTH_HEALTHY;
		health->fault = HEALTH_FAULT_NONE;
		return set_reason(health, "");
	case HEALTH_UNHEALTHY:
		health->state = HEALTH_RECOVERING;
		health->clean = 0;
		break;
	case HEALTH_RECOVERING: break;
	}
	health->clean++;
	if (!is_healed(health, config, action, now_ns))
		return false;
	health_init(health);
	return true;
}

bool health_on_probe(struct health *health, const struct health_config *config, health_probe probe,
		     int action, const char *detail, uint64_t now_ns)
{
	char reason[HEALTH_REASON_BYTES];
	const char *text = detail == NULL || *detail == '\0' ? "no detail" : detail;
	ASSERT(config->strikes_max > 0 && config->clean_probes > 0);

	switch (probe) {
	case HEALTH_PROBE_OK:
		if (action > HEALTH_ACTION_NONE) {
			const char *name = (size_t)action < ARRAY_COUNT(actions)
						   ? actions[action]
						   : "an unknown recovery action";
			if (is_kept_xid(health, now_ns))
				return false;
			(void)snprintf(reason, sizeof reason, "driver asks for %s", name);
			return fail(health, HEALTH_FAULT_RECOVERY, now_ns, reason);
		}
		return on_good_probe(health, config, action, now_ns);
	case HEALTH_PROBE_LOST:
		(void)snprintf(reason, sizeof reason, "GPU is lost: %s", text);
		if (is_kept_xid(health, now_ns))
			return false;
		return fail(health, HEALTH_FAULT_LOST, now_ns, reason);
	case HEALTH_PROBE_ERROR:
		(void)snprintf(reason, sizeof reason, "driver call fails: %s", text);
		return doubt(health, config, HEALTH_FAULT_ERROR, now_ns, reason);
	case HEALTH_PROBE_HUNG:
		return doubt(health, config, HEALTH_FAULT_HUNG, now_ns,
			     "driver call does not return");
	case HEALTH_PROBE_CRASH:
		return doubt(health, config, HEALTH_FAULT_CRASH, now_ns,
			     "driver call crashes its process");
	case HEALTH_PROBE_DRIVER:
		(void)snprintf(reason, sizeof reason, "driver is not available: %s", text);
		return doubt(health, config, HEALTH_FAULT_DRIVER, now_ns, reason);
	}
	return false;
}

void health_on_reset(struct health *health) { health->reset_seen = true; }
