// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/progress.h"

#include "k8s/condition.h"

struct state {
	request_phase phase;
	const char *reason;
	const char *message;
};

// ---- reading pods

static const json_t *condition_of(const json_t *object, const char *type)
{
	return k8s_condition_find(json_at(object, "status.conditions"), type);
}

static bool is_true(const json_t *condition)
{
	return str_eq_c(json_text(condition, "status"), "True");
}

static const json_t *container_state(const json_t *pod, const char *which)
{
	const json_t *first = json_array_get(json_at(pod, "status.containerStatuses"), 0);
	return json_at(json_object_get(first, "state"), which);
}

static void copy(json_t *to, const char *key, const json_t *from, const char *path)
{
	json_t *value = json_at(from, path);
	if (value != NULL)
		(void)json_object_set(to, key, value);
}

// Ids of the plan that the scheduler wrote at the binding.
static json_t *devices_of(const json_t *pod)
{
	const json_t *notes = json_at(pod, "metadata.annotations");
	const json_t *text = json_object_get(notes, "gpuaas.io/devices");
	AUTO(json_decrefp) json_t *plan = NULL;
	struct str content = { json_string_value(text), json_string_length(text) };
	if (content.len == 0 || json_parse(content, &plan, NULL) != ERR_OK)
		return NULL;
	json_t *out = json_array(), *row;
	size_t i;
	json_array_foreach(plan, i, row)
	{
		json_t *uuid = json_object_get(row, "uuid");
		if (json_is_string(uuid))
			(void)json_array_append(out, uuid);
	}
	return out;
}

static bool is_start_error(const json_t *ended)
{
	return str_eq_c(json_text(ended, "reason"), "StartError");
}

static void put_pod(json_t *status, const json_t *pod)
{
	static const char *const of_pod[] = { "nodeName",  "devices", "scheduledTime",
					      "startTime", "endTime", "exitCode" };
	const json_t *scheduled = condition_of(pod, "PodScheduled");
	const json_t *ended = container_state(pod, "terminated");
	if (pod == NULL)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(of_pod); i++) // those of a pod before this one
		(void)json_object_set_new(status, of_pod[i], json_null());
	copy(status, "podName", pod, "metadata.name");
	copy(status, "nodeName", pod, "spec.nodeName");
	json_t *devices = devices_of(pod);
	if (devices != NULL)
		(void)json_object_set_new(status, "devices", devices);
	if (is_true(scheduled))
		copy(status, "scheduledTime", scheduled, "lastTransitionTime");
	copy(status, "startTime", container_state(pod, "running"), "startedAt");
	if (!is_start_error(ended)) // its startedAt is 1970
		copy(status, "startTime", ended, "startedAt");
	copy(status, "endTime", ended, "finishedAt");
	copy(status, "exitCode", ended, "exitCode");
}

static struct state waiting_state(const json_t *pod)
{
	const json_t *scheduled = condition_of(pod, "PodScheduled");
	const json_t *waiting = container_state(pod, "waiting");
	if (pod == NULL)
		return (struct state){ PHASE_PENDING, "WaitingForPod",
				       "Kubernetes is making the pod" };
	if (!is_true(scheduled)) {
		const char *reason = json_cstr(scheduled, "reason");
		const char *message = json_cstr(scheduled, "message");
		return (struct state){ PHASE_PENDING, reason[0] != '\0' ? reason : "WaitingForNode",
				       message[0] != '\0' ? message
							  : "the scheduler has not placed it yet" };
	}
	if (json_text(waiting, "reason").len > 0)
		return (struct state){ PHASE_PENDING, json_cstr(waiting, "reason"),
				       json_cstr(waiting, "message") };
	return (struct state){ PHASE_PENDING, "Starting", "its node is starting the container" };
}

static struct state failed_state(const json_t *job, const json_t *pod)
{
	const json_t *failed = condition_of(job, "Failed");
	const json_t *ended = container_state(pod, "terminated");
	struct str pod_reason = json_text(pod, "status.reason");
	if (pod_reason.len > 0) // DeadlineExceeded, Evicted, ...
		return (struct state){ PHASE_FAILED, json_cstr(pod, "status.reason"),
				       json_cstr(pod, "status.message") };
	if (json_text(ended, "reason").len > 0) {
		struct str message = json_text(ended, "message");
		return (struct state){ PHASE_FAILED, json_cstr(ended, "reason"),
				       message.len > 0 ? json_cstr(ended, "message")
						       : "its container failed; see its exit code "
							 "and its logs" };
	}
	return (struct state){ PHASE_FAILED, json_cstr(failed, "reason"),
			       json_cstr(failed, "message") };
}

// The API server's own text. The requests are within the quota by our count, so what uses it up
// is pods that were made past them.
static struct state refused_state(const json_t *refusal)
{
	const char *message = json_cstr(refusal, "message");
	bool is_quota = strstr(message, "exceeded quota") != NULL;
	return (struct state){ PHASE_PENDING, is_quota ? "QuotaUsedByOthers" : "PodRefused",
			       message };
}

static struct state state_of_job(const struct progress_input *input)
{
	if (is_true(condition_of(input->job, "Complete")))
		return (struct state){ PHASE_SUCCEEDED, "Completed", "" };
	if (is_true(condition_of(input->job, "Failed")))
		return failed_state(input->job, input->pod);
	// The Job has one pod to complete; its own word comes a second or two later.
	bool is_gang = json_int(input->request, "spec.gang", 0) > 0;
	if (!is_gang && str_eq_c(json_text(input->pod, "status.phase"), "Succeeded"))
		return (struct state){ PHASE_SUCCEEDED, "Completed", "" };
	if (str_eq_c(json_text(input->pod, "status.phase"), "Running"))
		return (struct state){ PHASE_RUNNING, "Running", "" };
	// Between the end of the pod and the Job's word on it, or its next pod.
	const json_t *ended = container_state(input->pod, "terminated");
	if (is_start_error(ended))
		return (struct state){ PHASE_PENDING, "StartError", json_cstr(ended, "message") };
	if (ended != NULL)
		return (struct state){ PHASE_RUNNING, "Ending", "" };
	if (input->pod == NULL && input->refusal != NULL)
		return refused_state(input->refusal);
	return waiting_state(input->pod);
}

// ---- conditions

json_t *condition_new(const char *type, bool is_true_, const char *reason, const char *message)
{
	json_t *condition = json_object();
	put_text(condition, "type", str_of(type));
	put_text(condition, "status", str_of(is_true_ ? "True" : "False"));
	put_text(condition, "reason", str_of(reason[0] != '\0' ? reason : "Unknown"));
	(void)json_object_set_new(condition, "message", json_string(message));
	return condition;
}

void condition_stamp(json_t *wanted, const json_t *object, const char *now)
{
	size_t i;
	json_t *condition;
	json_array_foreach(json_object_get(wanted, "conditions"), i, condition)
	{
		const json_t *old = condition_of(object, json_cstr(condition, "type"));
		bool is_same = old != NULL &&
			       str_eq(json_text(old, "status"), json_text(condition, "status"));
		put_text(condition, "lastTransitionTime",
			 is_same ? json_text(old, "lastTransitionTime") : str_of(now));
		copy(condition, "observedGeneration", object, "metadata.generation");
	}
}

json_t *progress_patch(const json_t *object, const json_t *wanted)
{
	const json_t *status = json_at(object, "status");
	json_t *change = json_object(), *value;
	const char *key;
	json_object_foreach((json_t *)(uintptr_t)wanted, key, value)
	{
		const json_t *present = json_object_get(status, key);
		bool is_absent = present == NULL && json_is_null(value);
		if (!is_absent && json_equal(value, present) == 0)
			(void)json_object_set(change, key, value);
	}
	json_t *patch = NULL;
	if (json_object_size(change) > 0) {
		patch = json_object();
		(void)json_object_set(patch, "status", change);
	}
	json_decref(change);
	return patch;
}

// ---- the plan

// That a pod of it was evicted for another, and for which: kept when the pod has gone.
static void put_preempted(json_t *conditions, const struct progress_input *input)
{
	const json_t *target = condition_of(input->pod, "DisruptionTarget");
	const json_t *before = condition_of(input->request, "Preempted");
	bool is_preempted = is_true(target) &&
			    str_eq_c(json_text(target, "reason"), "PreemptionByScheduler");
	if (is_preempted)
		before = target;
	if (before != NULL)
		(void)json_array_append_new(
			conditions, condition_new("Preempted", true, "PreemptionByScheduler",
						  json_cstr(before, "message")));
}

static json_t *status_of(const struct progress_input *input, const struct state *state)
{
	json_t *status = json_object(), *conditions = json_array();
	bool is_end = view_phase_is_end(state->phase);
	bool is_through = input->job != NULL || input->is_admitted ||
			  json_at(input->request, "status.jobUID") != NULL;
	put_text(status, "phase", str_of(view_phase_name(state->phase)));
	(void)json_object_set_new(status, "reason", json_string(state->reason));
	(void)json_object_set_new(status, "message", json_string(state->message));
	copy(status, "observedGeneration", input->request, "metadata.generation");
	copy(status, "jobUID", input->job, "metadata.uid");
	put_pod(status, input->pod);
	(void)json_array_append_new(conditions,
				    condition_new("Admitted", is_through,
						  is_through ? "WithinQuota" : state->reason,
						  is_through ? "" : state->message));
	(void)json_array_append_new(
		conditions, condition_new("Finished", is_end, state->reason, state->message));
	put_preempted(conditions, input);
	(void)json_object_set_new(status, "conditions", conditions);
	// What ended without a container having ended, ended now; an older time is an older pod's.
	if (is_end && json_text(status, "endTime").len == 0 &&
	    (input->pod != NULL || json_at(input->request, "status.endTime") == NULL))
		put_text(status, "endTime", str_of(input->now));
	condition_stamp(status, input->request, input->now);
	return status;
}

json_t *progress_refused(const json_t *request, bool is_final, const char *reason,
			 const char *message, const char *now)
{
	struct progress_input input = { .request = request, .is_admitted = true, .now = now };
	struct state state = { is_final ? PHASE_FAILED : PHASE_PENDING, reason, message };
	return status_of(&input, &state);
}

static bool is_too_large(const struct progress_input *input, struct err *err)
{
	struct tenant_quota quota;
	struct request_spec spec;
	(void)view_request_spec(input->request, &spec);
	view_tenant_quota(input->tenant, &quota);
	struct quota_amount need = quota_need_of(&spec);
	return quota_check_alone(&quota, &need, err) != ERR_OK;
}

// A text of the state may stay in err.
static struct state state_without_job(const struct progress_input *input, struct err *err)
{
	if (json_at(input->request, "status.jobUID") != NULL)
		return (struct state){ PHASE_FAILED, "JobDeleted",
				       "its Job was deleted by somebody else" };
	if (request_check_object(json_at(input->request, "spec"), err) != ERR_OK)
		return (struct state){ PHASE_FAILED, "InvalidSpec", err->text };
	if (input->tenant == NULL)
		return (struct state){ PHASE_PENDING, "NoTenant",
				       "its namespace belongs to no tenant" };
	if (!input->is_admitted && is_too_large(input, err))
		return (struct state){ PHASE_PENDING, "QuotaTooSmall", err->text };
	if (!input->is_admitted)
		return (struct state){ PHASE_PENDING, "QuotaExceeded",
				       "it waits until the tenant's quota has room" };
	return waiting_state(NULL);
}

// A program whose time is over may end with 0, which no rule of the Job's takes for its end.
static bool is_over_but_not_its_job(const struct progress_input *input)
{
	return str_eq_c(json_text(input->pod, "status.phase"), "Failed") &&
	       str_eq_c(json_text(input->pod, "status.reason"), "DeadlineExceeded") &&
	       !is_true(condition_of(input->job, "Failed")) &&
	       json_at(input->job, "spec.activeDeadlineSeconds") == NULL;
}

struct progress progress_plan(const struct progress_input *input)
{
	ASSERT(input->request != NULL && input->now != NULL);
	struct progress plan = { .act = PROGRESS_NONE };
	if (view_phase_is_end(view_request_phase(input->request))) {
		bool is_left = input->job != NULL &&
			       json_bool(input->request, "spec.cancel", false) &&
			       json_at(input->job, "metadata.deletionTimestamp") == NULL;
		plan.act = is_left ? PROGRESS_DELETE_JOB : PROGRESS_NONE;
		return plan; // what has ended stays as it ended
	}
	struct err err;
	struct state state = input->job != NULL ? state_of_job(input)
						: state_without_job(input, &err);
	if (json_bool(input->request, "spec.cancel", false) && !view_phase_is_end(state.phase)) {
		state = (struct state){ PHASE_CANCELLED, "Cancelled", "cancelled on request" };
		plan.act = input->job != NULL ? PROGRESS_DELETE_JOB : PROGRESS_NONE;
	} else if (input->job == NULL && state.phase == PHASE_PENDING && input->is_admitted &&
		   input->tenant != NULL) {
		plan.act = PROGRESS_CREATE_JOB;
	} else if (input->job != NULL && is_over_but_not_its_job(input)) {
		plan.act = PROGRESS_END_JOB;
	}
	plan.status = status_of(input, &state);
	return plan;
}
