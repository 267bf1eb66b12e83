// SPDX-License-Identifier: Apache-2.0
// The state of a request from what Kubernetes shows of its Job and pod. Pure: objects in, the
// status that the request should have out. Nothing is remembered from call to call.
#pragma once

#include "api/views.h"

struct progress_input {
	const json_t *request;
	const json_t *job;     // NULL: none
	const json_t *pod;     // newest, NULL: none
	bool is_admitted;      // through the quota; of those without a Job
	const json_t *tenant;  // NULL: none
	const char *now;       // RFC 3339
	const json_t *refusal; // newest Event of the Job that its pod was refused, NULL: none
};

typedef enum progress_act {
	PROGRESS_NONE,
	PROGRESS_CREATE_JOB,
	PROGRESS_DELETE_JOB, // then status
	PROGRESS_END_JOB,    // it makes no more pods, and keeps what it has; then status
} progress_act;

struct progress {
	progress_act act;
	json_t *status; // wanted; owned by the caller
};

struct progress progress_plan(const struct progress_input *input);
// The status of a request whose Job the API server did not take.
json_t *progress_refused(const json_t *request, bool is_final, const char *reason,
			 const char *message, const char *now);
// The smallest change as {"status": {...}} from the object's status to wanted; NULL when there is
// none. A new reference.
json_t *progress_patch(const json_t *object, const json_t *wanted);
json_t *condition_new(const char *type, bool is_true, const char *reason, const char *message);
// Gives each condition of wanted its lastTransitionTime and observedGeneration.
void condition_stamp(json_t *wanted, const json_t *object, const char *now);
