// SPDX-License-Identifier: Apache-2.0
#include "api/rest_steps.h"
#include "api/reviews.h"
#include "api/views.h"
#include "policy/token.h"
#include "sys/log.h"

#include <stdio.h>

enum { TOUCH_AFTER_S = 600 };

// One answer for every token that is not good, so that nobody learns why.
static void refuse_token(struct call *call)
{
	struct api *api = call->api;
	int64_t wait_ms = 0;
	char key[80];
	api->counters.bad_tokens++;
	(void)snprintf(key, sizeof key, "peer:%.*s",
		       (int)min_size(call->request->peer_address.len, 60),
		       call->request->peer_address.data);
	struct limiter_rate rate = { api->limits.bad_tokens_per_s,
				     10 * api->limits.bad_tokens_per_s };
	if (!limiter_take(api->limiter, str_of(key), loop_now_ns(api->loop), 1, rate, &wait_ms)) {
		rest_limited(call, wait_ms);
		return;
	}
	call->is_denied = true;
	(void)rest_header_add(call, "WWW-Authenticate", STR("Bearer realm=\"gpuaas\""));
	rest_problem(call, 401, "token_invalid",
		     "the token is missing or not valid; log in with a token that is");
}

typedef enum token_verdict {
	TOKEN_GOOD,
	TOKEN_BAD,
	TOKEN_UNCLEAR,    // until the tenants are known
	TOKEN_UNREADABLE, // the database does not answer
} token_verdict;

// A database that is away is said by who watches it, not with each call.
static token_verdict note_unreadable(const char *what, const struct err *err)
{
	if (err->status != ERR_UNAVAILABLE)
		log_err(LOG_ERROR, what, err);
	return TOKEN_UNREADABLE;
}

// A tenant's token speaks for a member of the very tenant that it was made for, with at most the
// member's rights, at once.
static token_verdict narrow_to_membership(struct call *call, struct str tenant_uid)
{
	struct store_member member;
	struct err err = { 0 };
	struct authz_principal *principal = &call->principal;
	if (principal->tenant.len == 0)
		return principal->role == AUTHZ_PLATFORM_ADMIN || principal->role == AUTHZ_AGENT
			       ? TOKEN_GOOD
			       : TOKEN_BAD;
	struct str uid = view_tenant_uid(call->api->objects, principal->tenant);
	if (uid.len == 0 || !str_eq(uid, tenant_uid))
		return TOKEN_BAD; // there is none of that name, or it is a later one
	err_status status = store_member_find(call->api->sql, call->arena, principal->tenant,
					      tenant_uid, principal->subject, &member, &err);
	if (status != ERR_OK)
		return status == ERR_NOT_FOUND ? TOKEN_BAD : note_unreadable("members", &err);
	if (member.role == AUTHZ_MEMBER)
		principal->role = AUTHZ_MEMBER;
	return TOKEN_GOOD;
}

static token_verdict judge_token(struct call *call, struct str text)
{
	char hash[STORE_HASH_HEX + 1];
	struct store_token token;
	struct err err = { 0 };
	struct api *api = call->api;
	if (!token_is_well_formed(text))
		return TOKEN_BAD;
	store_hash(text, hash);
	err_status status = store_token_by_hash(api->sql, call->arena, str_of(hash), &token, &err);
	int64_t now_s = api_now_s(api);
	if (status != ERR_OK && status != ERR_NOT_FOUND)
		return note_unreadable("tokens", &err);
	if (status != ERR_OK || token.revoked_s != 0 || token.expires_s <= now_s)
		return TOKEN_BAD;
	if (token.tenant.len > 0 && !objects_are_synced(api->objects))
		return TOKEN_UNCLEAR;
	call->token_id = token.id;
	call->token_expires_s = token.expires_s;
	call->principal = (struct authz_principal){ token.role, token.tenant, token.subject };
	const token_verdict verdict = narrow_to_membership(call, token.tenant_uid);
	if (verdict != TOKEN_GOOD) {
		call->principal = (struct authz_principal){ .role = AUTHZ_MEMBER };
		return verdict;
	}
	// Coarse on purpose: one write in ten minutes. A failure costs no call.
	if (now_s - token.last_used_s > TOUCH_AFTER_S &&
	    store_token_touch(api->sql, token.id, now_s, &err) != ERR_OK)
		log_err(LOG_WARN, "last use of a token is not kept", &err);
	return TOKEN_GOOD;
}

static void leave_unclear(struct call *call, const char *who)
{
	(void)rest_header_add(call, "Retry-After", STR("2"));
	rest_problem(call, 503, "unavailable",
		     "the token cannot be checked because the %s does not answer; repeat the call",
		     who);
}

static void on_reviewed(void *arg, const struct review_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_UNAVAILABLE || result->status == ERR_TIMEOUT) {
		leave_unclear(call, "Kubernetes API");
		return;
	}
	if (result->status != ERR_OK) {
		refuse_token(call);
		return;
	}
	call->principal =
		(struct authz_principal){ .role = AUTHZ_AGENT,
					  .subject = arena_dup(call->arena, result->node) };
	rest_authenticated(call);
}

void rest_authenticate(struct call *call)
{
	struct str token;
	struct str header = http_header_find(&call->request->headers, "Authorization");
	if (!token_of_header(header, &token)) {
		refuse_token(call);
		return;
	}
	bool is_ours = str_starts(token, STR("gpx_"));
	if (!is_ours && call->route->access == ROUTE_AGENT && call->api->reviews != NULL) {
		reviews_ask(call->api->reviews, token, on_reviewed, call);
		return;
	}
	token_verdict verdict = is_ours ? judge_token(call, token) : TOKEN_BAD;
	switch (verdict) {
	case TOKEN_GOOD: rest_authenticated(call); return;
	case TOKEN_BAD: refuse_token(call); return;
	case TOKEN_UNCLEAR: leave_unclear(call, "Kubernetes API"); return;
	case TOKEN_UNREADABLE: leave_unclear(call, "database"); return;
	}
}
