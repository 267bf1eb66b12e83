// SPDX-License-Identifier: Apache-2.0
// Leader election by a coordination.k8s.io/v1 Lease: 4 s duration, renewed each second, so that
// a dead leader is replaced within 5 s. A leader that cannot renew for 3 s calls on_lost before
// anybody else may lead. leaseTransitions is the fencing number of every write.
#pragma once

#include "k8s/client.h"

struct lease;

struct lease_config {
	const char *namespace_, *name, *identity;
	void (*on_acquired)(void *arg, int64_t transitions);
	void (*on_lost)(void *arg);
	void *arg;
};

struct lease *lease_start(struct k8s_client *client, const struct lease_config *config);
void lease_stop(struct lease *lease); // gives the lease up if held
bool lease_is_held(const struct lease *lease);
