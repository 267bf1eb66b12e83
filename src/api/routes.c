// SPDX-License-Identifier: Apache-2.0
#include "api/routes.h"

#include "api/handlers.h"
#include "policy/request.h"
#include "policy/tenant.h"

#include <stdio.h>

#define PAGE                                                                                       \
	{ "limit", SCHEMA_INT, "At most so many items, 1 to 500, default 100." },                  \
	{ "page_token", SCHEMA_TEXT, "next_page_token of the answer before." }
#define PERIOD                                                                                     \
	{ "from", SCHEMA_TIME, "Begin, included." }, { "to", SCHEMA_TIME, "End, excluded." }

const struct route route_table[] = {
	{ .method = "GET", .pattern = "/healthz", .operation = "getHealth",
	  .summary = "Whether the process works", .access = ROUTE_PUBLIC, .success = 200,
	  .answer = &shape_health, .fn = handle_healthz },
	{ .method = "GET", .pattern = "/readyz", .operation = "getReadiness",
	  .summary = "Whether calls can be served: store, audit log, caches",
	  .access = ROUTE_PUBLIC, .success = 200, .answer = &shape_health, .fn = handle_readyz },
	{ .method = "GET", .pattern = "/metrics", .operation = "getMetrics",
	  .summary = "Prometheus metrics", .access = ROUTE_PUBLIC, .success = 200,
	  .answer_type = "text/plain", .fn = handle_metrics },
	{ .method = "GET", .pattern = "/openapi.json", .operation = "getOpenapi",
	  .summary = "This description", .access = ROUTE_PUBLIC, .success = 200,
	  .answer_type = "application/json", .fn = handle_openapi },

	{ .method = "GET", .pattern = "/v1/whoami", .operation = "whoami",
	  .summary = "Who the caller is", .access = ROUTE_TOKEN, .resource = AUTHZ_WHOAMI,
	  .verb = AUTHZ_GET, .cost = 1, .success = 200, .answer = &shape_whoami,
	  .fn = handle_whoami },

	{ .method = "POST", .pattern = "/v1/tenants", .operation = "createTenant",
	  .summary = "Make a tenant with its namespace", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_TENANT, .verb = AUTHZ_CREATE, .cost = 5, .body = &tenant_schema,
	  .success = 201, .answer = &shape_tenant, .fn = handle_tenant_create },
	{ .method = "GET", .pattern = "/v1/tenants", .operation = "listTenants",
	  .summary = "Tenants the caller may see", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_TENANT, .verb = AUTHZ_LIST, .cost = 2, .success = 200,
	  .answer = &shape_tenant, .is_list = true, .query = { PAGE }, .fn = handle_tenant_list },
	{ .method = "GET", .pattern = "/v1/tenants/{tenant}", .operation = "getTenant",
	  .summary = "One tenant", .access = ROUTE_TOKEN, .resource = AUTHZ_TENANT,
	  .verb = AUTHZ_GET, .tenant_of = ROUTE_TENANT_PATH, .cost = 1, .success = 200,
	  .answer = &shape_tenant, .fn = handle_tenant_get },
	{ .method = "PATCH", .pattern = "/v1/tenants/{tenant}", .operation = "updateTenant",
	  .summary = "Change name for people and quota", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_TENANT, .verb = AUTHZ_UPDATE, .tenant_of = ROUTE_TENANT_PATH,
	  .cost = 5, .body = &shape_tenant_update, .success = 200, .answer = &shape_tenant,
	  .fn = handle_tenant_update },
	{ .method = "DELETE", .pattern = "/v1/tenants/{tenant}", .operation = "deleteTenant",
	  .summary = "Delete a tenant, its namespace and all that runs in it; bills stay",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_TENANT, .verb = AUTHZ_DELETE,
	  .tenant_of = ROUTE_TENANT_PATH, .cost = 5, .success = 202, .answer = &shape_tenant,
	  .fn = handle_tenant_delete },

	{ .method = "GET", .pattern = "/v1/tenants/{tenant}/members", .operation = "listMembers",
	  .summary = "Members of a tenant", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_MEMBERSHIP, .verb = AUTHZ_LIST, .tenant_of = ROUTE_TENANT_PATH,
	  .cost = 2, .success = 200, .answer = &shape_member, .is_list = true, .query = { PAGE },
	  .fn = handle_member_list },
	{ .method = "POST", .pattern = "/v1/tenants/{tenant}/members", .operation = "putMember",
	  .summary = "Add a member or change the role", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_MEMBERSHIP, .verb = AUTHZ_CREATE, .tenant_of = ROUTE_TENANT_PATH,
	  .cost = 5, .body = &shape_member_put, .success = 200, .answer = &shape_member,
	  .fn = handle_member_put },
	{ .method = "DELETE", .pattern = "/v1/tenants/{tenant}/members/{user}",
	  .operation = "deleteMember", .summary = "Remove a member and revoke the member's tokens",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_MEMBERSHIP, .verb = AUTHZ_DELETE,
	  .tenant_of = ROUTE_TENANT_PATH, .cost = 5, .success = 200, .answer = &shape_member,
	  .fn = handle_member_delete },

	{ .method = "POST", .pattern = "/v1/tokens", .operation = "createToken",
	  .summary = "Make a token; the answer is the only place where its secret is shown",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_TOKEN, .verb = AUTHZ_CREATE,
	  .tenant_of = ROUTE_TENANT_HANDLER, .cost = 5, .body = &shape_token_create,
	  .success = 201, .answer = &shape_token, .fn = handle_token_create },
	{ .method = "GET", .pattern = "/v1/tokens", .operation = "listTokens",
	  .summary = "Tokens the caller may see, without secrets", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_TOKEN, .verb = AUTHZ_LIST, .cost = 2, .success = 200,
	  .answer = &shape_token, .is_list = true,
	  .query = { { "tenant", SCHEMA_LABEL, "Only those of this tenant." }, PAGE },
	  .tenant_of = ROUTE_TENANT_QUERY, .fn = handle_token_list },
	{ .method = "DELETE", .pattern = "/v1/tokens/{id}", .operation = "revokeToken",
	  .summary = "Revoke a token at once", .access = ROUTE_TOKEN, .resource = AUTHZ_TOKEN,
	  .verb = AUTHZ_DELETE, .tenant_of = ROUTE_TENANT_HANDLER, .cost = 2, .success = 200,
	  .answer = &shape_token, .fn = handle_token_delete },

	{ .method = "POST", .pattern = "/v1/tenants/{tenant}/requests",
	  .operation = "createRequest", .summary = "Ask for GPUs and run a job on them",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_REQUEST, .verb = AUTHZ_CREATE,
	  .tenant_of = ROUTE_TENANT_PATH, .cost = 5, .body = &request_schema, .success = 201,
	  .answer = &shape_request, .fn = handle_request_create },
	{ .method = "GET", .pattern = "/v1/tenants/{tenant}/requests",
	  .operation = "listTenantRequests", .summary = "Requests of a tenant",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_REQUEST, .verb = AUTHZ_LIST,
	  .tenant_of = ROUTE_TENANT_PATH, .cost = 2, .success = 200, .answer = &shape_request,
	  .is_list = true,
	  .query = { { "state", SCHEMA_TEXT, "Only those in this state." }, PAGE },
	  .fn = handle_request_list },
	{ .method = "GET", .pattern = "/v1/requests", .operation = "listRequests",
	  .summary = "Requests the caller may see", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_REQUEST, .verb = AUTHZ_LIST, .cost = 2, .success = 200,
	  .answer = &shape_request, .is_list = true,
	  .query = { { "tenant", SCHEMA_LABEL, "Only those of this tenant." },
		     { "state", SCHEMA_TEXT, "Only those in this state." }, PAGE },
	  .tenant_of = ROUTE_TENANT_QUERY, .fn = handle_request_list },
	{ .method = "GET", .pattern = "/v1/requests/{id}", .operation = "getRequest",
	  .summary = "One request; id is TENANT.NAME", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_REQUEST, .verb = AUTHZ_GET, .tenant_of = ROUTE_TENANT_ID, .cost = 1,
	  .success = 200, .answer = &shape_request, .fn = handle_request_get },
	{ .method = "DELETE", .pattern = "/v1/requests/{id}", .operation = "cancelRequest",
	  .summary = "Cancel a request; it stays listed as Cancelled", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_REQUEST, .verb = AUTHZ_DELETE, .tenant_of = ROUTE_TENANT_ID,
	  .cost = 2, .success = 202, .answer = &shape_request, .fn = handle_request_cancel },
	{ .method = "GET", .pattern = "/v1/requests/{id}/explain", .operation = "explainRequest",
	  .summary = "Why it waits, with every reason and the smallest change that helps",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_REQUEST, .verb = AUTHZ_GET,
	  .tenant_of = ROUTE_TENANT_ID, .cost = 2, .success = 200, .answer = &shape_explain,
	  .fn = handle_request_explain },
	{ .method = "GET", .pattern = "/v1/requests/{id}/logs", .operation = "getRequestLogs",
	  .summary = "Output of its container", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_REQUEST, .verb = AUTHZ_GET, .tenant_of = ROUTE_TENANT_ID, .cost = 5,
	  .success = 200, .answer_type = "text/plain",
	  .query = { { "tail", SCHEMA_INT, "Only the last so many lines, at most 100000." },
		     { "previous", SCHEMA_BOOL, "Of the container before the last restart." } },
	  .fn = handle_request_logs },

	{ .method = "GET", .pattern = "/v1/explain", .operation = "explainPod",
	  .summary = "The same for any pod of a tenant", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_REQUEST, .verb = AUTHZ_GET, .tenant_of = ROUTE_TENANT_QUERY,
	  .cost = 2, .success = 200, .answer = &shape_explain,
	  .query = { { "tenant", SCHEMA_LABEL, "Tenant, which is the pod's namespace." },
		     { "pod", SCHEMA_TEXT, "Name of the pod." } },
	  .fn = handle_pod_explain },
	{ .method = "GET", .pattern = "/v1/nodes", .operation = "listNodes",
	  .summary = "GPU nodes with their devices and what is held", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_NODE, .verb = AUTHZ_LIST, .cost = 2, .success = 200,
	  .answer = &shape_node, .is_list = true, .query = { PAGE }, .fn = handle_node_list },
	{ .method = "POST", .pattern = "/v1/quota:check", .operation = "checkQuota",
	  .summary = "Whether a request would fit, wait or be refused; changes nothing",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_QUOTA, .verb = AUTHZ_GET,
	  .tenant_of = ROUTE_TENANT_QUERY, .cost = 2, .body = &request_schema, .success = 200,
	  .answer = &shape_explain,
	  .query = { { "tenant", SCHEMA_LABEL, "Tenant; absent: the caller's." } },
	  .fn = handle_quota_check },

	{ .method = "POST", .pattern = "/v1/usage", .operation = "pushUsage",
	  .summary = "Events of a node's journal, one JSON object a line",
	  .access = ROUTE_AGENT, .resource = AUTHZ_USAGE, .verb = AUTHZ_CREATE, .cost = 1,
	  .body_type = "application/jsonl", .success = 200, .answer = &shape_cursor_answer,
	  .fn = handle_usage_push },
	{ .method = "GET", .pattern = "/v1/events", .operation = "exportEvents",
	  .summary = "Events of the ledger, one JSON object a line, in order",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_EVENT, .verb = AUTHZ_LIST, .cost = 10,
	  .tenant_of = ROUTE_TENANT_QUERY, .success = 200, .answer_type = "application/jsonl",
	  .query = { { "tenant", SCHEMA_LABEL, "Only those of this tenant." }, PERIOD },
	  .fn = handle_event_export },
	{ .method = "POST", .pattern = "/v1/events", .operation = "importEvents",
	  .summary = "Import events, one JSON object a line; known ones are skipped",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_EVENT, .verb = AUTHZ_CREATE, .cost = 10,
	  .body_type = "application/jsonl", .success = 200,
	  .answer_type = "application/json", .fn = handle_event_import },
	{ .method = "GET", .pattern = "/v1/prices", .operation = "getPrices",
	  .summary = "Current price book", .access = ROUTE_TOKEN, .resource = AUTHZ_PRICE,
	  .verb = AUTHZ_GET, .cost = 1, .success = 200, .answer_type = "application/json",
	  .fn = handle_document_get },
	{ .method = "POST", .pattern = "/v1/prices", .operation = "putPrices",
	  .summary = "New version of the price book", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_PRICE, .verb = AUTHZ_CREATE, .cost = 5, .body = &shape_document,
	  .success = 200, .answer_type = "application/json", .fn = handle_document_put },
	{ .method = "GET", .pattern = "/v1/assets", .operation = "getAssets",
	  .summary = "Current assets", .access = ROUTE_TOKEN, .resource = AUTHZ_ASSET,
	  .verb = AUTHZ_GET, .cost = 1, .success = 200, .answer_type = "application/json",
	  .fn = handle_document_get },
	{ .method = "POST", .pattern = "/v1/assets", .operation = "putAssets",
	  .summary = "New version of the assets", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_ASSET, .verb = AUTHZ_CREATE, .cost = 5, .body = &shape_document,
	  .success = 200, .answer_type = "application/json", .fn = handle_document_put },
	{ .method = "GET", .pattern = "/v1/pools", .operation = "getPools",
	  .summary = "Current shared cost pools and idle rule", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_POOL, .verb = AUTHZ_GET, .cost = 1, .success = 200,
	  .answer_type = "application/json", .fn = handle_document_get },
	{ .method = "POST", .pattern = "/v1/pools", .operation = "putPools",
	  .summary = "New version of the shared cost pools", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_POOL, .verb = AUTHZ_CREATE, .cost = 5, .body = &shape_document,
	  .success = 200, .answer_type = "application/json", .fn = handle_document_put },
	{ .method = "GET", .pattern = "/v1/bills", .operation = "getBills",
	  .summary = "Cost of a period: the caller's tenant, or all with the conservation proof",
	  .access = ROUTE_TOKEN, .resource = AUTHZ_BILL, .verb = AUTHZ_GET,
	  .tenant_of = ROUTE_TENANT_QUERY, .cost = 10, .success = 200,
	  .answer_type = "application/json",
	  .query = { { "tenant", SCHEMA_LABEL, "Only this tenant." }, PERIOD,
		     { "idle", SCHEMA_TEXT, "keep or share-per-gpu, instead of the pools' rule." },
		     { "format", SCHEMA_TEXT, "json (default) or csv." } },
	  .fn = handle_bill_get },

	{ .method = "GET", .pattern = "/v1/audit/export", .operation = "exportAudit",
	  .summary = "Records of the audit log, one JSON object a line", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_AUDIT, .verb = AUTHZ_LIST, .cost = 10, .success = 200,
	  .answer_type = "application/jsonl", .fn = handle_audit_export },
	{ .method = "GET", .pattern = "/v1/audit/checkpoint", .operation = "getAuditCheckpoint",
	  .summary = "Signed length and head of the audit log", .access = ROUTE_TOKEN,
	  .resource = AUTHZ_AUDIT, .verb = AUTHZ_GET, .cost = 5, .success = 200,
	  .answer = &shape_checkpoint, .fn = handle_audit_checkpoint },
};
const size_t route_count = ARRAY_COUNT(route_table);

static bool is_param(struct str segment)
{
	return segment.len > 2 && segment.data[0] == '{';
}

static bool segments_match(const char *pattern, struct str path, struct str *params)
{
	struct str pattern_rest = str_of(pattern), path_rest = path, want, got;
	size_t param_count = 0;
	for (;;) {
		bool has_want = str_split_next(&pattern_rest, '/', &want);
		bool has_got = str_split_next(&path_rest, '/', &got);
		if (has_want != has_got)
			return false;
		if (!has_want)
			return true;
		if (!is_param(want)) {
			if (!str_eq(want, got))
				return false;
			continue;
		}
		if (got.len == 0)
			return false;
		ASSERT(param_count < ROUTE_PARAMS_MAX);
		params[param_count++] = got;
	}
}

// Only what our names are made of, so that one path has one spelling.
static bool is_plain_path(struct str path)
{
	for (size_t i = 0; i < path.len; i++) {
		char c = path.data[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
				c == ':' || c == '/' || c == '@' || c == '+';
		if (!is_plain)
			return false;
	}
	return path.len > 0 && path.data[0] == '/';
}

bool route_find(struct str method, struct str path, struct route_match *ret_match)
{
	*ret_match = (struct route_match){ 0 };
	if (!is_plain_path(path))
		return false;
	for (size_t i = 0; i < route_count; i++) {
		struct str params[ROUTE_PARAMS_MAX] = { { NULL, 0 } };
		if (!segments_match(route_table[i].pattern, path, params))
			continue;
		ret_match->is_path_known = true;
		size_t used = strlen(ret_match->allow);
		(void)snprintf(ret_match->allow + used, sizeof ret_match->allow - used, "%s%s",
			       used == 0 ? "" : ", ", route_table[i].method);
		if (!str_eq_c(method, route_table[i].method))
			continue;
		ret_match->route = &route_table[i];
		memcpy(ret_match->params, params, sizeof params);
	}
	return ret_match->route != NULL;
}

bool route_mutates(const struct route *route)
{
	return strcmp(route->method, "GET") != 0 && route->verb != AUTHZ_GET;
}

err_status route_check_query(const struct route *route, struct str query, struct err *err)
{
	struct str part;
	while (str_split_next(&query, '&', &part)) {
		size_t end = min_size(str_find_byte(part, '=', 0), part.len);
		struct str name = str_slice(part, 0, end);
		bool is_known = part.len == 0;
		for (size_t i = 0; i < ROUTE_QUERY_MAX && route->query[i].name != NULL; i++)
			is_known = is_known || str_eq_c(name, route->query[i].name);
		if (!is_known)
			return err_set(err, ERR_INVALID, "unknown query parameter \"%.60s\"; see "
				       "/openapi.json for %s", name.len == 0 ? "" : name.data,
				       route->operation);
	}
	return ERR_OK;
}
