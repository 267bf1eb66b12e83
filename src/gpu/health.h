// SPDX-License-Identifier: Apache-2.0
// Health of one GPU as a state machine: Healthy, Suspect (a single doubtful answer; still
// offered), Unhealthy, Recovering (answers well again, not yet trusted). Faults come from XIDs
// and from probes; the way back needs clean probes, a hold-off, and for an XID the driver's own
// word (recovery action none, or a reset that was seen). Pure: time is given.
#pragma once

#include "base/str.h"

typedef enum health_state {
	HEALTH_HEALTHY,
	HEALTH_SUSPECT,
	HEALTH_UNHEALTHY,
	HEALTH_RECOVERING,
} health_state;

typedef enum health_fault {
	HEALTH_FAULT_NONE,
	HEALTH_FAULT_XID,
	HEALTH_FAULT_LOST,     // the driver says the GPU is gone or needs a reset
	HEALTH_FAULT_ERROR,    // calls fail otherwise
	HEALTH_FAULT_HUNG,     // calls do not return
	HEALTH_FAULT_CRASH,    // calls end the process that makes them
	HEALTH_FAULT_DRIVER,   // there is no driver to ask
	HEALTH_FAULT_RECOVERY, // the driver asks for a reset, reboot or drain
} health_fault;

typedef enum health_probe {
	HEALTH_PROBE_OK,
	HEALTH_PROBE_LOST,
	HEALTH_PROBE_ERROR,
	HEALTH_PROBE_HUNG,
	HEALTH_PROBE_CRASH,
	HEALTH_PROBE_DRIVER,
} health_probe;

enum { HEALTH_REASON_BYTES = 128, HEALTH_ACTION_UNKNOWN = -1, HEALTH_ACTION_NONE = 0 };

struct health_config {
	uint32_t strikes_max;  // doubtful probes in a row until Unhealthy
	uint32_t clean_probes; // good ones in a row until Healthy
	uint64_t hold_off_ns;  // since the last fault until Healthy
};

struct health {
	health_state state;
	health_fault fault;
	uint32_t xid; // the last one since Healthy, 0: none; it asks for the driver's word
	uint32_t strikes, clean;
	uint64_t fault_at_ns;
	bool reset_seen;                  // since the fault
	char reason[HEALTH_REASON_BYTES]; // empty when Healthy
};

void health_init(struct health *health);
// Each returns whether health_is_offered or the reason changed.
bool health_on_xid(struct health *health, uint32_t xid, uint64_t now_ns);
// action: the driver's recovery action, HEALTH_ACTION_UNKNOWN if it has none to tell; detail: the
// driver's text of an error, may be empty.
bool health_on_probe(struct health *health, const struct health_config *config, health_probe probe,
		     int action, const char *detail, uint64_t now_ns);
void health_on_reset(struct health *health);         // a reset or driver reload was seen
bool health_is_offered(const struct health *health); // Healthy or Suspect
// Whether the fault is the GPU's own: what runs on it does not go on. Not so when calls fail, crash
// or have no driver to go to, which can be the software's fault and then is every GPU's.
bool health_is_dead(const struct health *health);
const char *health_state_name(health_state state);
const char *health_fault_name(health_fault fault);
MUST_USE bool health_fault_parse(struct str text, health_fault *ret);
