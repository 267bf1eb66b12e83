// SPDX-License-Identifier: Apache-2.0
// The route table: every path of the API with its method, the right it needs, its cost, the
// shapes of body and answer, and its handler. Routing, authorization, body checks, rate limits
// and /openapi.json all come from this one table. A path is matched as received: no
// percent-encoding, no dots as segments, no empty segments, so router, authorization and audit
// cannot see different paths.
#pragma once

#include "api/shapes.h"
#include "policy/authz.h"

struct call;

typedef enum route_access {
	ROUTE_PUBLIC, // no token
	ROUTE_TOKEN,  // a token of ours
	ROUTE_AGENT,  // a node's service account (TokenReview), or a token with role agent
} route_access;

// Where the tenant of the object stands, for the decision before the handler runs.
typedef enum route_tenant {
	ROUTE_TENANT_NONE,    // platform objects, and lists that the handler narrows
	ROUTE_TENANT_PATH,    // {tenant} in the path
	ROUTE_TENANT_ID,      // {id} is TENANT.NAME
	ROUTE_TENANT_QUERY,   // ?tenant=, absent: the caller's own
	ROUTE_TENANT_HANDLER, // only the handler can find it; it must call rest_authorize
} route_tenant;

enum { ROUTE_PARAMS_MAX = 2, ROUTE_QUERY_MAX = 6 };

struct route_query {
	const char *name;
	schema_type type;
	const char *doc;
};

typedef void route_fn(struct call *call);

struct route {
	const char *method;
	const char *pattern;   // "/v1/tenants/{tenant}/requests"
	const char *operation; // operationId
	const char *summary;
	route_access access;
	authz_resource resource;
	authz_verb verb;
	route_tenant tenant_of;
	unsigned cost;               // of the rate limit
	const struct schema *body;   // NULL: none allowed, or bytes when body_type is set
	const char *body_type;       // of bodies that are not JSON
	const struct schema *answer; // NULL: answer_type says what comes
	const char *answer_type;
	bool is_list;
	int success; // HTTP status
	struct route_query query[ROUTE_QUERY_MAX];
	route_fn *fn;
};

extern const struct route route_table[];
extern const size_t route_count;

struct route_match {
	const struct route *route;
	struct str params[ROUTE_PARAMS_MAX]; // in the order of the pattern
	bool is_path_known;                  // no route, but another method has this path
	char allow[64];                      // then the methods, for the Allow header
};

// True when method and path name a route.
bool route_find(struct str method, struct str path, struct route_match *ret_match);
bool route_mutates(const struct route *route);
// Refuses parameters that the route does not know; the text names it.
MUST_USE err_status route_check_query(const struct route *route, struct str query, struct err *err);
