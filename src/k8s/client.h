// SPDX-License-Identifier: Apache-2.0
// Kubernetes API client on the loop: authenticated calls with token rotation, 429 with
// Retry-After, answers as JSON or protobuf bytes, errors from the Status object. One HTTP/2
// connection carries calls and watches.
#pragma once

#include "base/json.h"
#include "k8s/config.h"
#include "net/http_client.h"

struct k8s_client;
struct k8s_call;

struct k8s_result {
	err_status status;     // ERR_OK only for 2xx; 404 NOT_FOUND, 409 CONFLICT, 403 DENIED, ...
	const struct err *err; // text of the API server's message
	int code;              // HTTP status, 0 when none came
	struct str body;
};

typedef void k8s_done_fn(void *arg, const struct k8s_result *result);

struct k8s_request {
	const char *method;       // "GET", "POST", "PATCH", ...
	struct str path;          // "/api/v1/pods?limit=500"
	const char *content_type; // NULL: application/json; patches name theirs
	const char *accept;       // NULL: application/json
	struct str body;
	const char *impersonate_user; // NULL: none
	uint64_t timeout_ns;          // 0: 30 s
	k8s_done_fn *on_done;         // once, never from inside k8s_call_start
	void *arg;
};

#define K8S_JSON_PATCH "application/json-patch+json"
#define K8S_MERGE_PATCH "application/merge-patch+json"
#define K8S_APPLY_PATCH "application/apply-patch+yaml"
#define K8S_PROTOBUF "application/vnd.kubernetes.protobuf"

MUST_USE err_status k8s_client_new(struct loop *loop, const struct k8s_config *config,
				   const char *user_agent, struct k8s_client **ret,
				   struct err *err); // copies the config
void k8s_client_free(struct k8s_client *client);
struct k8s_call *k8s_call_start(struct k8s_client *client, const struct k8s_request *request);
void k8s_call_cancel(struct k8s_call *call);
// Blocking, for commands, start-up and tests; body is copied to the arena.
MUST_USE err_status k8s_call_wait(struct k8s_client *client, const struct k8s_request *request,
				  struct arena *arena, struct str *ret_body, struct err *err);
struct http_client *k8s_client_http(struct k8s_client *client);
