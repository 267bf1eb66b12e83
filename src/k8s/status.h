// SPDX-License-Identifier: Apache-2.0
// The Status object with which the API server explains a failure, from JSON or protobuf, and its
// meaning for a program. Pure. Bodies that are no Status (a proxy's page) give the HTTP code and
// the begin of the body.
#pragma once

#include "base/str.h"

struct k8s_status {
	int code;              // of the Status, else the HTTP status given
	char reason[64];       // "AlreadyExists", "Conflict", "Expired", ...; "" if none
	char message[300];     // cut to fit
	int64_t retry_after_s; // details.retryAfterSeconds, 0 if none
};

// code: the HTTP status under which body came (0: from an ERROR event of a watch).
struct k8s_status k8s_status_parse(int code, struct str body);
// Fills err by code and message and returns what a program should take it for: 404 NOT_FOUND,
// 409 CONFLICT, 410 CONFLICT (what was asked for is too old), 429 and 5xx UNAVAILABLE, ...
err_status k8s_status_fail(const struct k8s_status *status, struct err *err);
