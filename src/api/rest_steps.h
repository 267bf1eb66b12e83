// SPDX-License-Identifier: Apache-2.0
// The steps of a call, in their order, each of which either answers the call or hands it on.
// Internal to src/api: handlers use rest.h.
#pragma once

#include "api/rest.h"
#include "policy/request.h"

void rest_authenticate(struct call *call); // then rest_authenticated
void rest_authenticated(struct call *call);
void rest_limited(struct call *call, int64_t wait_ms); // answers 429
// Body against the route. False: answered.
MUST_USE bool rest_read_body(struct call *call);
// Idempotency-Key. False: answered, by the kept answer or a problem.
MUST_USE bool rest_check_repetition(struct call *call);
// Writes the audit record "begin" where the route changes something, then runs the handler.
void rest_audit_begin(struct call *call);
void rest_free(struct call *call);
