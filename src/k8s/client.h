// SPDX-License-Identifier: Apache-2.0
// Kubernetes API client on the loop: authenticated calls with token rotation, 429 with
// Retry-After, answers as JSON or protobuf bytes, errors from the Status object. One HTTP/2
// connection carries calls and watches. Calls belong to the client until on_done returns; what
// a request names is copied. A call whose connection dies fails with ERR_UNAVAILABLE and is the
// caller's to repeat, for only the caller knows whether that is safe.
#pragma once

#include "base/json.h"
#include "k8s/config.h"
#include "net/http_client.h"

struct k8s_client;
struct k8s_call;

#define K8S_NO_TIMEOUT UINT64_MAX
enum { K8S_GROUPS_MAX = 16 };

struct k8s_result {
	err_status status;     // ERR_OK only for 2xx; 404 NOT_FOUND, 409 CONFLICT, 403 DENIED, ...
	const struct err *err; // text of the API server's message; NULL when ERR_OK
	int code;              // HTTP status, 0 when none came
	struct str body;       // protobuf: without the envelope; of an error: the Status as it came
	const char *reason;    // of the Status, "AlreadyExists"; "" if none
	int64_t retry_after_s; // what the server asked for, 0 if nothing
};

typedef void k8s_done_fn(void *arg, const struct k8s_result *result);

struct k8s_request {
	const char *method;       // "GET", "POST", "PATCH", ...
	struct str path;          // "/api/v1/pods?limit=500"
	const char *content_type; // NULL: application/json; patches name theirs
	const char *accept;       // NULL: application/json
	struct str body;
	const char *impersonate_user;          // NULL: none
	const char *const *impersonate_groups; // NULL-terminated, at most K8S_GROUPS_MAX; or NULL
	uint64_t timeout_ns;                   // with repeats; 0: 30 s; K8S_NO_TIMEOUT for streams
	uint64_t idle_timeout_ns;              // no byte for so long; 0: none
	http_data_fn *on_data; // streams: body bytes of 2xx; such calls are not repeated on 429
	k8s_done_fn *on_done;  // once, never from inside k8s_call_start
	void *arg;
};

#define K8S_JSON_PATCH "application/json-patch+json"
#define K8S_MERGE_PATCH "application/merge-patch+json"
#define K8S_APPLY_PATCH "application/apply-patch+yaml"
#define K8S_PROTOBUF "application/vnd.kubernetes.protobuf"

// Copies the config and reads the token file once.
MUST_USE err_status k8s_client_new(struct loop *loop, const struct k8s_config *config,
				   const char *user_agent, struct k8s_client **ret,
				   struct err *err);
// NULL allowed; open calls end UNAVAILABLE first. Watches, leases and event sinks go before it.
void k8s_client_free(struct k8s_client *client);
struct k8s_call *k8s_call_start(struct k8s_client *client, const struct k8s_request *request);
void k8s_call_cancel(struct k8s_call *call); // NULL allowed; on_done is not called any more
// Blocking, for commands, start-up and tests; body is copied to the arena. on_done is not used.
MUST_USE err_status k8s_call_wait(struct k8s_client *client, const struct k8s_request *request,
				  struct arena *arena, struct str *ret_body, struct err *err);
// The same with the answer parsed; a new reference. Accept must be JSON.
MUST_USE err_status k8s_call_json(struct k8s_client *client, const struct k8s_request *request,
				  json_t **ret_value, struct err *err);
// How soon a connection on which nothing comes any more is noticed and made anew; 25 s unless said.
void k8s_client_set_ping(struct k8s_client *client, uint64_t every_ns, uint64_t answer_ns);
struct loop *k8s_client_loop(struct k8s_client *client);
