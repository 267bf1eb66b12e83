// SPDX-License-Identifier: Apache-2.0
// Changing the driver of a node, as a state machine: cordon, drain, wait for the new driver,
// verify driver, CUDA, plugin and devices, uncordon; or stop with a reason, the node still closed,
// and go on from there when told to. The state lives in an annotation of the Node, so it survives
// any restart; each step is one write of that Node. Pure: facts and time come in.
#pragma once

#include "policy/schema.h"

#define UPGRADE_ANNOTATION "gpuaas.io/upgrade"
enum { UPGRADE_VERSION_BYTES = 32, UPGRADE_USER_BYTES = 128, UPGRADE_REASON_BYTES = 256 };

typedef enum upgrade_phase {
	UPGRADE_DRAINING, // cordoned; pods are asked to leave
	UPGRADE_WAITING,  // empty; somebody installs the driver
	UPGRADE_VERIFYING,
	UPGRADE_DONE,    // uncordoned
	UPGRADE_STOPPED, // still cordoned; reason says why, stopped_in where
	UPGRADE_PHASE_COUNT,
} upgrade_phase;

struct upgrade {
	upgrade_phase phase, stopped_in;
	char driver[UPGRADE_VERSION_BYTES]; // wanted; empty: any other than from
	char cuda[UPGRADE_VERSION_BYTES];   // wanted at least; empty: any
	char from[UPGRADE_VERSION_BYTES];   // the driver at the beginning
	char user[UPGRADE_USER_BYTES];
	char reason[UPGRADE_REASON_BYTES]; // what is waited for, or why it stopped
	bool was_cordoned;                 // by somebody else before: then it stays
	bool evicts_unmanaged;             // also pods that nobody makes anew
	int64_t begun_s, phase_s;
	int64_t limit_s; // of each phase
};

struct upgrade_facts {
	struct str driver, cuda; // "580.95.05", "13.0"; empty: the driver does not answer
	bool is_driver_ready, is_plugin_registered, are_devices_healthy;
	struct str unhealthy; // text of that condition
	bool is_counted;      // the pods that are still there have been looked at
	size_t pods_left;     // that must leave
	struct str blocker;   // why one of them stays: a budget, no owner
	bool is_unmanaged;    // that reason will not go away by itself
};

extern const struct schema upgrade_schema; // body of the request

// From a checked body; from: the driver now. Fails for versions that are none.
MUST_USE err_status upgrade_begin(const json_t *body, struct str from, struct str user,
				  bool was_cordoned, int64_t now_s, struct upgrade *ret,
				  struct err *err);
// Goes on where it stopped, with a fresh limit; driver and CUDA of the body replace those before.
MUST_USE err_status upgrade_resume(const json_t *body, struct str user, int64_t now_s,
				   struct upgrade *upgrade, struct err *err);
// Advances; true when something changed and is to be written.
bool upgrade_step(struct upgrade *upgrade, const struct upgrade_facts *facts, int64_t now_s);
bool upgrade_is_active(const struct upgrade *upgrade);   // neither done nor stopped
bool upgrade_is_cordoned(const struct upgrade *upgrade); // what the node should be
MUST_USE bool upgrade_parse(struct str text, struct upgrade *ret);
json_t *upgrade_to_json(const struct upgrade *upgrade); // a new reference
const char *upgrade_phase_name(upgrade_phase phase);    // "draining"
