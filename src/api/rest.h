// SPDX-License-Identifier: Apache-2.0
// One call of the API from its first byte to its answer. The order is fixed: route, caller, rate
// limit, right on the object, query and body, idempotency, audit record "begin", handler, audit
// record "end", answer. A call owns its memory (arena) until the answer is sent; handlers may
// answer later, exactly once. Everything runs on the loop thread.
#pragma once

#include "api/api.h"
#include "api/routes.h"
#include "net/http_server.h"
#include "store/answers.h"

enum { CALL_ID_CHARS = 20, CALL_ARENA_MAX_BYTES = 64 * 1024 * 1024 };

struct call {
	struct api *api;
	struct http_exchange *exchange;
	const struct http_request *request;
	struct arena *arena;
	char id[CALL_ID_CHARS + 1];
	uint64_t begun_ns;
	struct route_match match;
	const struct route *route;
	json_t *body; // checked against the route's shape; NULL for other bodies

	struct authz_principal principal;
	struct str token_id;
	int64_t token_expires_s;
	struct str tenant;                 // of the object, once known; also in the audit record
	struct str object_name;            // second part of TENANT.NAME
	struct str fault_path;             // of the member that a problem is about
	struct str audit_detail;           // what the handler adds to the audit record
	char key_hash[STORE_HASH_HEX + 1]; // of the idempotency key; empty: none
	struct call *next, **link;         // in api->calls
	bool is_audited;                   // "begin" was written: an "end" must follow
	bool is_secret;                    // the answer is not kept for repetitions
	bool is_denied;                    // a right was missing: also that is recorded
	bool is_answered;

	// The answer, kept until the audit record is durable.
	int status;
	const char *code; // of a problem, else ""
	const char *content_type;
	struct str answer;
	struct http_headers headers;
};

// Records how many refusals got no record of their own; now and then, and with UINT64_MAX at the
// end.
void rest_sweep_refusals(struct api *api, uint64_t now_ns);

// Forgets keys that are marked as running while no call with them is: their mark could not be
// taken away when the database was away or full.
MUST_USE err_status rest_forget_orphans(struct api *api, struct err *err);

// For http_server: arg is struct api.
void rest_begin(void *arg, struct http_exchange *exchange, const struct http_request *request);

// Answers. Each ends the handler's work; the call is gone afterwards.
void rest_answer(struct call *call, json_t *owned_body); // the route's success status
void rest_answer_status(struct call *call, int status, json_t *owned_body);
void rest_answer_text(struct call *call, const char *content_type, struct str body);
void rest_problem(struct call *call, int status, const char *code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
// The usual problem for a status: not_found, already_exists, unavailable, ... with its text.
void rest_fail(struct call *call, const struct err *err);
// From now on the handler streams by http_respond_start itself and ends with rest_stream_end,
// which ends the answer unless the client is gone.
void rest_stream_begin(struct call *call);
void rest_stream_end(struct call *call, bool is_client_gone);
bool rest_header_add(struct call *call, const char *name, struct str value);

// For routes with ROUTE_TENANT_HANDLER. False: the call has been answered (403 or 404).
MUST_USE bool rest_authorize(struct call *call, struct str tenant);
// The caller's tenant, or the one that was asked for; empty for a platform admin who asked for
// none.
struct str rest_scope(const struct call *call);

struct str rest_query(const struct call *call, const char *name);
// Whole number of the query; false when it is there and wrong: the call has been answered.
MUST_USE bool rest_query_int(struct call *call, const char *name, int64_t absent, int64_t max,
			     int64_t *ret);
// An instant of the query in seconds; as above.
MUST_USE bool rest_query_time(struct call *call, const char *name, int64_t absent, int64_t *ret);

// A page of a list: "limit" and "page_token". False: answered.
struct rest_page {
	size_t limit;
	struct str after;
};
MUST_USE bool rest_page(struct call *call, struct rest_page *ret_page);
// {"items": items, "next_page_token": next when it is not empty}.
void rest_answer_list(struct call *call, json_t *owned_items, struct str next);

// Sets a member; a text unless it is empty, an instant as RFC 3339 unless it is 0.
void put_int(json_t *object, const char *key, int64_t value);
void put_text(json_t *object, const char *key, struct str text);
void put_time(json_t *object, const char *key, int64_t unix_s);
