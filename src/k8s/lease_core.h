// SPDX-License-Identifier: Apache-2.0
// Leader election as a pure state machine over one Lease: what to send next, given what was seen
// and the monotonic time. Wall clocks are never compared: a holder is dead when its record has
// not changed for its own duration as seen from here, and a leader trusts itself for less than
// that, counted from before it sent its last renewal. So two never lead at once, however slow
// the answers are.
#pragma once

#include "base/str.h"

enum { LEASE_DURATION_S = 4, LEASE_IDENTITY_MAX_BYTES = 256, LEASE_VERSION_MAX_BYTES = 128 };
#define LEASE_RENEW_NS UINT64_C(1000000000)
#define LEASE_TRUST_NS UINT64_C(3000000000)
#define LEASE_LOOK_NS UINT64_C(500000000)
#define LEASE_RETRY_NS UINT64_C(250000000)

struct lease_record {
	struct str holder;  // empty: given up
	struct str version; // resourceVersion
	int64_t transitions;
	int64_t duration_s;
};

enum lease_act {
	LEASE_WAIT,
	LEASE_LOOK,   // read the Lease
	LEASE_CREATE, // it is not there
	LEASE_TAKE,   // write it with the plan's transitions, on the version last seen
	LEASE_RENEW,  // the same as leader
	LEASE_LOST,   // tell that leadership has ended; step again
};

struct lease_plan {
	enum lease_act act;
	uint64_t wait_ns;    // of WAIT
	int64_t transitions; // to write
};

struct lease_core {
	char identity[LEASE_IDENTITY_MAX_BYTES];
	char holder[LEASE_IDENTITY_MAX_BYTES], version[LEASE_VERSION_MAX_BYTES];
	bool has_looked, exists, must_look;
	int64_t transitions, duration_s;
	uint64_t looked_ns;
	uint64_t seen_ns; // since when the record is as it is
	bool is_held;
	uint64_t renewed_ns, trusted_until_ns;
	uint64_t not_before_ns; // after a failure
};

// identity must be unique among all processes that ever ran.
void lease_core_init(struct lease_core *core, const char *identity);
void lease_core_step(struct lease_core *core, uint64_t now_ns, struct lease_plan *ret_plan);
// The Lease was read; record NULL: it does not exist.
void lease_core_looked(struct lease_core *core, uint64_t now_ns, const struct lease_record *record);
// Our write was accepted and gave this record. True when leadership begins with it.
MUST_USE bool lease_core_wrote(struct lease_core *core, uint64_t now_ns, uint64_t sent_ns,
			       const struct lease_record *record);
void lease_core_conflict(struct lease_core *core); // somebody else wrote first
void lease_core_failed(struct lease_core *core, uint64_t now_ns);
bool lease_core_is_held(const struct lease_core *core, uint64_t now_ns);
