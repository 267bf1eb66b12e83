// SPDX-License-Identifier: Apache-2.0
// What all handlers share: the stores, the audit log, the cache of Kubernetes objects, limits
// and counters. Made once by the server; handlers borrow it through their call.
#pragma once

#include "api/limiter.h"
#include "api/objects.h"
#include "api/refusals.h"
#include "api/routes.h"
#include "audit/audit.h"
#include "base/metric.h"
#include "sql/sql.h"

struct ledger;
struct reviews;

struct api_limits {
	int64_t calls_per_s; // by tenant and user, in units of route cost
	int64_t calls_burst;
	int64_t bad_tokens_per_s; // by peer address
	int64_t token_life_max_s;
	int64_t agent_calls_per_s;
	int64_t open_requests_max; // of one tenant
};

struct api_counters {
	uint64_t by_status[6]; // 1xx..5xx by their first digit
	uint64_t bad_tokens;
	uint64_t limited;
	uint64_t denied;
	uint64_t replayed;
	uint64_t usage_events;
	uint64_t in_flight;
};

enum { API_ROUTES_MAX = 64 };

struct api {
	struct loop *loop;
	struct sql *sql;
	struct audit *audit;
	struct objects *objects;
	struct ledger *ledger;
	struct k8s_client *k8s;        // NULL without Kubernetes
	struct http_client *scheduler; // NULL: explain works from the pods alone
	struct str scheduler_bearer;   // header value for its explain; empty: none
	struct reviews *reviews;       // NULL without Kubernetes
	struct limiter *limiter;
	struct refusals *refusals;
	struct api_limits limits;
	struct api_counters counters;
	struct call *calls; // under way
	struct metric_histogram seconds[API_ROUTES_MAX];
	uint64_t seconds_by_code[API_ROUTES_MAX][6];
	struct str openapi; // made at the start
	// More lines of /metrics, by the server (controllers); may be NULL.
	void (*put_metrics)(void *arg, struct buf *out);
	// The pod that a GPURequest becomes, a new reference; NULL: nobody makes any.
	json_t *(*pod_of)(const json_t *request);
	// NULL when ready, else what is not; by the server.
	const char *(*not_ready)(void *arg);
	void *arg;
};

static inline int64_t api_now_s(const struct api *api)
{
	return world_wall_s(loop_world(api->loop));
}

// The OpenAPI 3.1 description; a new reference.
json_t *openapi_make(void);
