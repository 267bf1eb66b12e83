// SPDX-License-Identifier: Apache-2.0
// What a request's status is to be, from its Job and pod, and what is to be done next.
#include "check.h"
#include "daemons/server/progress.h"
#include "k8s/condition.h"

#define META "\"metadata\":{\"name\":\"j\",\"namespace\":\"red\",\"uid\":\"u\",\"generation\":1}"
#define SPEC "\"spec\":{\"gpus\":1,\"image\":\"x\"}"
#define CANCELLED "\"spec\":{\"gpus\":1,\"image\":\"x\",\"cancel\":true}"
#define JOB "{\"metadata\":{\"uid\":\"ju\"},\"status\":{}}"
#define BOUND "{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":\"T1\"}"

#define OVERTIME                                                                                   \
	"{\"status\":{\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"conditions\":[" BOUND \
	"],\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":0}}}]}}"
#define NOT_STARTED                                                                                \
	"{\"metadata\":{\"name\":\"p\"},\"status\":{\"phase\":\"Failed\",\"conditions\":[" BOUND   \
	"],\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":128,\"reason\":"        \
	"\"StartError\",\"message\":\"m\",\"startedAt\":\"1970-01-01T00:00:00Z\","                 \
	"\"finishedAt\":\"T3\"}}}]}}"

static const struct {
	const char *name, *request, *job, *pod;
	bool is_admitted, has_tenant;
	progress_act act;
	const char *phase, *reason; // phase NULL: no status is written
} cases[] = {
	{ "new, quota has room", "{" META "," SPEC "}", NULL, NULL, true, true, PROGRESS_CREATE_JOB,
	  "Pending", "WaitingForPod" },
	{ "new, quota is full", "{" META "," SPEC "}", NULL, NULL, false, true, PROGRESS_NONE,
	  "Pending", "QuotaExceeded" },
	{ "more than the whole quota", "{" META ",\"spec\":{\"gpus\":5,\"image\":\"x\"}}", NULL,
	  NULL, false, true, PROGRESS_NONE, "Pending", "QuotaTooSmall" },
	{ "more than the whole quota, let through before it was lowered",
	  "{" META ",\"spec\":{\"gpus\":5,\"image\":\"x\"}}", NULL, NULL, true, true,
	  PROGRESS_CREATE_JOB, "Pending", "WaitingForPod" },
	{ "no tenant", "{" META "," SPEC "}", NULL, NULL, true, false, PROGRESS_NONE, "Pending",
	  "NoTenant" },
	{ "job, no pod yet", "{" META "," SPEC "}", JOB, NULL, true, true, PROGRESS_NONE, "Pending",
	  "WaitingForPod" },
	{ "pod not seen by the scheduler", "{" META "," SPEC "}", JOB, "{\"status\":{}}", true,
	  true, PROGRESS_NONE, "Pending", "WaitingForNode" },
	{ "unschedulable", "{" META "," SPEC "}", JOB,
	  "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
	  "\"reason\":\"NoFreeGpu\",\"message\":\"m\"}]}}",
	  true, true, PROGRESS_NONE, "Pending", "NoFreeGpu" },
	{ "bound", "{" META "," SPEC "}", JOB, "{\"status\":{\"conditions\":[" BOUND "]}}", true,
	  true, PROGRESS_NONE, "Pending", "Starting" },
	{ "image cannot be pulled", "{" META "," SPEC "}", JOB,
	  "{\"status\":{\"conditions\":[" BOUND "],\"containerStatuses\":[{\"state\":{\"waiting\":"
	  "{\"reason\":\"ImagePullBackOff\",\"message\":\"m\"}}}]}}",
	  true, true, PROGRESS_NONE, "Pending", "ImagePullBackOff" },
	{ "running", "{" META "," SPEC "}", JOB,
	  "{\"status\":{\"phase\":\"Running\",\"conditions\":[" BOUND "],\"containerStatuses\":"
	  "[{\"state\":{\"running\":{\"startedAt\":\"T2\"}}}]}}",
	  true, true, PROGRESS_NONE, "Running", "Running" },
	{ "pod ended, the Job does not say so yet", "{" META "," SPEC "}", JOB,
	  "{\"status\":{\"phase\":\"Succeeded\",\"conditions\":[" BOUND "],\"containerStatuses\":"
	  "[{\"state\":{\"terminated\":{\"exitCode\":0}}}]}}",
	  true, true, PROGRESS_NONE, "Succeeded", "Completed" },
	{ "one of a gang has ended", "{" META ",\"spec\":{\"gpus\":1,\"gang\":2,\"image\":\"x\"}}",
	  JOB,
	  "{\"status\":{\"phase\":\"Succeeded\",\"conditions\":[" BOUND "],\"containerStatuses\":"
	  "[{\"state\":{\"terminated\":{\"exitCode\":0}}}]}}",
	  true, true, PROGRESS_NONE, "Running", "Ending" },
	{ "a gang beyond the quota", "{" META ",\"spec\":{\"gpus\":1,\"gang\":5,\"image\":\"x\"}}",
	  NULL, NULL, false, true, PROGRESS_NONE, "Pending", "QuotaTooSmall" },
	{ "complete", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}}", NULL, true,
	  true, PROGRESS_NONE, "Succeeded", "Completed" },
	{ "failed with an exit code", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":"
	  "\"BackoffLimitExceeded\"}]}}",
	  "{\"status\":{\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":3,"
	  "\"reason\":\"Error\"}}}]}}",
	  true, true, PROGRESS_NONE, "Failed", "Error" },
	{ "took too long", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}",
	  "{\"status\":{\"reason\":\"DeadlineExceeded\",\"message\":\"m\"}}", true, true,
	  PROGRESS_NONE, "Failed", "DeadlineExceeded" },
	{ "its time is over, and it ended with 0", "{" META "," SPEC "}", JOB, OVERTIME, true, true,
	  PROGRESS_END_JOB, "Running", "Ending" },
	{ "the same, and its Job is told", "{" META "," SPEC "}",
	  "{\"spec\":{\"activeDeadlineSeconds\":1}}", OVERTIME, true, true, PROGRESS_NONE,
	  "Running", "Ending" },
	{ "the same, and its Job has ended", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}", OVERTIME,
	  true, true, PROGRESS_NONE, "Failed", "DeadlineExceeded" },
	{ "cancelled when its time is over", "{" META "," CANCELLED "}", JOB, OVERTIME, true, true,
	  PROGRESS_DELETE_JOB, "Cancelled", "Cancelled" },
	{ "not started, and tried again", "{" META "," SPEC "}", JOB, NOT_STARTED, true, true,
	  PROGRESS_NONE, "Pending", "StartError" },
	{ "not started in the end", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}", NOT_STARTED,
	  true, true, PROGRESS_NONE, "Failed", "StartError" },
	{ "pod is gone", "{" META "," SPEC "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":"
	  "\"BackoffLimitExceeded\"}]}}",
	  NULL, true, true, PROGRESS_NONE, "Failed", "BackoffLimitExceeded" },
	{ "memory is out of range",
	  "{" META ",\"spec\":{\"gpus\":1,\"image\":\"x\",\"memory\":\"1Ei\"}}", NULL, NULL, false,
	  true, PROGRESS_NONE, "Failed", "InvalidSpec" },
	{ "memory is out of range, but there is a Job",
	  "{" META ",\"spec\":{\"gpus\":1,\"image\":\"x\",\"memory\":\"1Ei\"}}", JOB, NULL, true,
	  true, PROGRESS_NONE, "Pending", "WaitingForPod" },
	{ "unreadable and cancelled", "{" META ",\"spec\":{\"gpus\":0,\"cancel\":true}}", NULL,
	  NULL, true, true, PROGRESS_NONE, "Failed", "InvalidSpec" },
	{ "job was deleted by somebody", "{" META "," SPEC ",\"status\":{\"jobUID\":\"ju\"}}", NULL,
	  NULL, true, true, PROGRESS_NONE, "Failed", "JobDeleted" },
	{ "cancelled before it was let through", "{" META "," CANCELLED "}", NULL, NULL, true, true,
	  PROGRESS_NONE, "Cancelled", "Cancelled" },
	{ "cancelled with a job", "{" META "," CANCELLED "}", JOB, NULL, true, true,
	  PROGRESS_DELETE_JOB, "Cancelled", "Cancelled" },
	{ "cancelled too late", "{" META "," CANCELLED "}",
	  "{\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}}", NULL, true,
	  true, PROGRESS_NONE, "Succeeded", "Completed" },
	{ "ended stays as it ended", "{" META "," SPEC ",\"status\":{\"phase\":\"Failed\"}}", JOB,
	  NULL, true, true, PROGRESS_NONE, NULL, NULL },
	{ "a job left by a crash while cancelling",
	  "{" META "," CANCELLED ",\"status\":{\"phase\":\"Cancelled\"}}", JOB, NULL, true, true,
	  PROGRESS_DELETE_JOB, NULL, NULL },
};

static json_t *parse(const char *text)
{
	json_t *value = NULL;
	struct err err;
	if (text != NULL && json_parse(str_of(text), &value, &err) != ERR_OK)
		printf("the test's own JSON: %s: %s\n", text, err.text);
	return value;
}

static void check_cases(struct check *c)
{
	AUTO(json_decrefp) json_t *tenant = parse("{\"spec\":{\"quota\":{\"gpus\":4}}}");
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(json_decrefp) json_t *request = parse(cases[i].request);
		AUTO(json_decrefp) json_t *job = parse(cases[i].job);
		AUTO(json_decrefp) json_t *pod = parse(cases[i].pod);
		struct progress_input input = { .request = request,
						.job = job,
						.pod = pod,
						.is_admitted = cases[i].is_admitted,
						.tenant = cases[i].has_tenant ? tenant : NULL,
						.now = "T9" };
		struct progress plan = progress_plan(&input);
		AUTO(json_decrefp) json_t *status = plan.status;
		CHECK_INT(c, cases[i].name, plan.act, cases[i].act);
		CHECK(c, cases[i].name, (status == NULL) == (cases[i].phase == NULL));
		if (status == NULL)
			continue;
		CHECK_STR(c, cases[i].name, json_text(status, "phase"), cases[i].phase);
		CHECK_STR(c, cases[i].name, json_text(status, "reason"), cases[i].reason);
		CHECK(c, cases[i].name,
		      json_array_size(json_object_get(status, "conditions")) == 2);
	}
}

static void check_pod_facts(struct check *c)
{
	AUTO(json_decrefp) json_t *request = parse("{" META "," SPEC "}");
	AUTO(json_decrefp) json_t *job = parse(JOB);
	AUTO(json_decrefp)
	json_t *pod = parse("{\"metadata\":{\"name\":\"p\",\"annotations\":{\"gpuaas.io/devices\":"
			    "\"[{\\\"uuid\\\":\\\"GPU-1\\\"},{\\\"uuid\\\":\\\"GPU-2\\\"}]\"}},"
			    "\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\","
			    "\"conditions\":[" BOUND
			    "],\"containerStatuses\":[{\"state\":{\"running\":"
			    "{\"startedAt\":\"T2\"}}}]}}");
	struct progress_input input = { request, job, pod, true, request, "T9", NULL };
	struct progress plan = progress_plan(&input);
	AUTO(json_decrefp) json_t *status = plan.status;
	CHECK_STR(c, "node", json_text(status, "nodeName"), "n");
	CHECK_STR(c, "pod", json_text(status, "podName"), "p");
	CHECK_STR(c, "scheduled", json_text(status, "scheduledTime"), "T1");
	CHECK_STR(c, "started", json_text(status, "startTime"), "T2");
	CHECK_STR(c, "job", json_text(status, "jobUID"), "ju");
	CHECK_INT(c, "devices", json_array_size(json_object_get(status, "devices")), 2);
	CHECK(c, "not ended", json_text(status, "endTime").len == 0);
	// A second look at the same things changes nothing.
	AUTO(json_decrefp) json_t *patch = progress_patch(request, status);
	CHECK(c, "first patch", patch != NULL);
	(void)json_object_set(request, "status", status);
	input.now = "T10";
	plan = progress_plan(&input);
	AUTO(json_decrefp) json_t *again = progress_patch(request, plan.status);
	CHECK(c, "no second patch", again == NULL);
	json_decref(plan.status);
}

// A second pod of the same Job: nothing of the first is left in the status.
static void check_second_pod(struct check *c)
{
	AUTO(json_decrefp) json_t *request = parse("{" META "," SPEC "}");
	AUTO(json_decrefp) json_t *job = parse(JOB);
	AUTO(json_decrefp) json_t *first = parse(NOT_STARTED);
	AUTO(json_decrefp) json_t *second = parse("{\"metadata\":{\"name\":\"q\"},\"status\":{}}");
	struct progress_input input = { request, job, first, true, request, "T9", NULL };
	struct progress plan = progress_plan(&input);
	CHECK_INT(c, "code", json_int(plan.status, "exitCode", 0), 128);
	CHECK_STR(c, "end", json_text(plan.status, "endTime"), "T3");
	CHECK(c, "it never started", json_text(plan.status, "startTime").len == 0);
	(void)json_object_set_new(request, "status", plan.status);
	input.pod = second;
	plan = progress_plan(&input);
	AUTO(json_decrefp) json_t *patch = progress_patch(request, plan.status);
	const json_t *change = json_at(patch, "status");
	CHECK_STR(c, "new pod", json_text(change, "podName"), "q");
	CHECK(c, "no code", json_is_null(json_object_get(change, "exitCode")));
	CHECK(c, "no end", json_is_null(json_object_get(change, "endTime")));
	CHECK(c, "what was absent is not named", json_object_get(change, "startTime") == NULL);
	json_decref(plan.status);
}

static const struct {
	const char *name, *message, *pod, *reason;
} refusals[] = {
	{ "quota", "Error creating: pods is forbidden: exceeded quota: gpuaas, requested: pods=1",
	  NULL, "QuotaUsedByOthers" },
	{ "policy", "Error creating: pods is forbidden: no such runtime class", NULL,
	  "PodRefused" },
	{ "no text", "", NULL, "PodRefused" },
	{ "a pod by now", "Error creating: exceeded quota", "{\"status\":{}}", "WaitingForNode" },
};

static void check_refusals(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(refusals); i++) {
		AUTO(json_decrefp) json_t *request = parse("{" META "," SPEC "}");
		AUTO(json_decrefp) json_t *job = parse(JOB);
		AUTO(json_decrefp) json_t *pod = parse(refusals[i].pod);
		AUTO(json_decrefp)
		json_t *event = json_pack("{s:s}", "message", refusals[i].message);
		struct progress_input input = { .request = request,
						.job = job,
						.pod = pod,
						.is_admitted = true,
						.tenant = request,
						.now = "T9",
						.refusal = event };
		struct progress plan = progress_plan(&input);
		AUTO(json_decrefp) json_t *status = plan.status;
		CHECK_STR(c, refusals[i].name, json_text(status, "reason"), refusals[i].reason);
		CHECK_STR(c, refusals[i].name, json_text(status, "phase"), "Pending");
		if (pod == NULL)
			CHECK_STR(c, refusals[i].name, json_text(status, "message"),
				  refusals[i].message);
	}
}

// Who made room for whom stays told when the pod has gone and the next one runs.
static void check_preempted(struct check *c)
{
	static const char LEAVES[] =
		"{\"status\":{\"phase\":\"Running\",\"conditions\":[" BOUND
		",{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
		"\"PreemptionByScheduler\",\"message\":\"makes room for a/b\"}]}}";
	AUTO(json_decrefp) json_t *request = NULL, *job = NULL, *pod = NULL, *next = NULL;
	struct err err;
	CHECK(c, "parses", json_parse(STR("{" META "," SPEC "}"), &request, &err) == ERR_OK);
	CHECK(c, "parses", json_parse(STR(JOB), &job, &err) == ERR_OK);
	CHECK(c, "parses", json_parse(str_of(LEAVES), &pod, &err) == ERR_OK);
	CHECK(c, "parses", json_parse(STR("{\"status\":{}}"), &next, &err) == ERR_OK);
	struct progress_input input = {
		.request = request, .job = job, .pod = pod, .is_admitted = true, .now = "T1"
	};
	struct progress first = progress_plan(&input);
	(void)json_object_set(request, "status", first.status);
	input.pod = next;
	struct progress second = progress_plan(&input);
	const struct progress plans[2] = { first, second };
	for (size_t i = 0; i < 2; i++) {
		const json_t *told =
			k8s_condition_find(json_at(plans[i].status, "conditions"), "Preempted");
		CHECK_STR(c, "told", json_text(told, "message"), "makes room for a/b");
		CHECK_STR(c, "since", json_text(told, "lastTransitionTime"), "T1");
	}
	json_decref(first.status);
	json_decref(second.status);
}

int main(void)
{
	struct check c = { 0, 0 };
	check_cases(&c);
	check_pod_facts(&c);
	check_second_pod(&c);
	check_refusals(&c);
	check_preempted(&c);
	return check_done(&c);
}
