// SPDX-License-Identifier: Apache-2.0
// Leader election by a coordination.k8s.io/v1 Lease: 4 s duration, renewed each second, so that
// a dead leader is replaced within 5 s. A leader that cannot renew for 3 s calls on_lost before
// anybody else may lead. leaseTransitions is the fencing number of every write. The decisions
// are lease_core.h's; this wires them to a client. Needs get, create and patch on the Lease.
#pragma once

#include "k8s/client.h"
#include "k8s/lease_core.h"

struct lease;

struct lease_config {
	// identity is completed by random characters: a process that comes back is another one.
	const char *namespace_, *name, *identity;
	void (*on_acquired)(void *arg, int64_t transitions);
	void (*on_lost)(void *arg);
	void *arg;
};

// Callbacks are never called from inside lease_start or lease_stop.
struct lease *lease_start(struct k8s_client *client, const struct lease_config *config);
// Gives the lease up if held, waiting at most a second for the answer; NULL allowed. Not inside
// callbacks.
void lease_stop(struct lease *lease);
// Looks at the clock too, so that a process that was suspended does not act on an old belief.
bool lease_is_held(const struct lease *lease);
// Why the last request failed; "" when it did not. For health and logs.
const char *lease_problem(const struct lease *lease);

// What a Lease says; texts are borrowed from value. Pure, for tests.
MUST_USE err_status lease_record_read(const json_t *value, struct lease_record *ret,
				      struct err *err);
