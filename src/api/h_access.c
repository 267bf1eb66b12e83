// SPDX-License-Identifier: Apache-2.0
// Members of tenants and access tokens.
#include "api/handlers.h"
#include "api/request_steps.h"
#include "policy/token.h"
#include "sys/random.h"

#include <sodium.h>

enum { TOKEN_LIFE_DEFAULT_S = 90 * 86400, TOKENS_ACTIVE_MAX = 50 };

// What a user's name may be: it stands in paths, logs and records.
static bool is_user_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || strchr("._@+-", c) != NULL;
		if (!is_fine || c == '\0')
			return false;
	}
	return name.len > 0 && name.len <= 128;
}

static void refuse_user(struct call *call)
{
	call->fault_path = STR("user");
	rest_problem(call, 400, "invalid_field",
		     "user must be 1 to 128 of letters, digits and ._@+-");
}

// ---- members

static json_t *member_json(const struct store_member *member)
{
	json_t *body = json_object();
	put_text(body, "tenant", member->tenant);
	put_text(body, "user", member->user);
	put_text(body, "role", str_of(authz_role_name(member->role)));
	put_time(body, "created", member->created_s);
	return body;
}

void handle_member_put(struct call *call)
{
	struct err err;
	struct store_member member = { .tenant = call->tenant,
				       .tenant_uid =
					       view_tenant_uid(call->api->objects, call->tenant),
				       .user = json_text(call->body, "user"),
				       .created_s = api_now_s(call->api) };
	if (!authz_role_parse(json_text(call->body, "role"), &member.role) ||
	    !is_user_name(member.user)) {
		refuse_user(call);
		return;
	}
	if (str_eq_nocase(member.user, STR("admin"))) {
		call->fault_path = STR("user");
		rest_problem(
			call, 400, "invalid_field",
			"the user name \"admin\" is the first platform admin's; choose another");
		return;
	}
	if (tenant_need(call, call->tenant) == NULL)
		return;
	call->audit_detail =
		str_of(arena_printf(call->arena, "user " STR_FMT " role %s", STR_ARG(member.user),
				    authz_role_name(member.role)));
	if (store_member_put(call->api->sql, &member, &err) != ERR_OK ||
	    store_member_find(call->api->sql, call->arena, member.tenant, member.tenant_uid,
			      member.user, &member, &err) != ERR_OK)
		rest_fail(call, &err);
	else
		rest_answer(call, member_json(&member));
}

void handle_member_list(struct call *call)
{
	struct rest_page asked;
	struct store_member *members = NULL;
	size_t count = 0;
	struct err err;
	if (!rest_page(call, &asked) || tenant_need(call, call->tenant) == NULL)
		return;
	struct store_page page = { call->tenant, asked.after, asked.limit,
				   view_tenant_uid(call->api->objects, call->tenant) };
	if (store_member_list(call->api->sql, call->arena, &page, &members, &count, &err) !=
	    ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	json_t *items = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(items, member_json(&members[i]));
	rest_answer_list(call, items, count == page.limit ? members[count - 1].user : STR(""));
}

static err_status remove_member(struct call *call, struct str user, int64_t *ret_revoked,
				struct err *err)
{
	struct sql *sql = call->api->sql;
	err_status status = sql_begin(sql, err);
	if (status != ERR_OK)
		return status;
	status = store_token_revoke_all(sql, call->tenant, user, api_now_s(call->api), ret_revoked,
					err);
	if (status == ERR_OK)
		status = store_member_remove(sql, call->tenant, user, err);
	if (status == ERR_OK)
		return sql_commit(sql, err);
	sql_rollback(sql);
	return status;
}

void handle_member_delete(struct call *call)
{
	struct store_member member;
	struct err err;
	int64_t revoked = 0;
	struct str user = call->match.params[1];
	struct str uid = view_tenant_uid(call->api->objects, call->tenant);
	if (store_member_find(call->api->sql, call->arena, call->tenant, uid, user, &member,
			      &err) != ERR_OK ||
	    remove_member(call, user, &revoked, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	call->audit_detail =
		str_of(arena_printf(call->arena, "user " STR_FMT ", %lld tokens revoked",
				    STR_ARG(user), (long long)revoked));
	rest_answer(call, member_json(&member));
}

// ---- tokens

static json_t *token_json(const struct store_token *token, int64_t now_s)
{
	json_t *body = json_object();
	const char *state = token->expires_s <= now_s ? "expired" : "active";
	put_text(body, "id", token->id);
	put_text(body, "user", token->subject);
	put_text(body, "role", str_of(authz_role_name(token->role)));
	put_text(body, "tenant", token->tenant);
	put_text(body, "note", token->note);
	put_time(body, "created", token->created_s);
	put_text(body, "created_by", token->created_by);
	put_time(body, "expires", token->expires_s);
	put_time(body, "revoked", token->revoked_s);
	put_time(body, "last_used", token->last_used_s);
	put_text(body, "state", str_of(token->revoked_s != 0 ? "revoked" : state));
	return body;
}

// Nobody hands out more than they have, and tenant roles only to members.
static bool may_make(struct call *call, const struct store_token *token)
{
	struct store_member member;
	struct err err;
	bool is_platform = token->role == AUTHZ_PLATFORM_ADMIN || token->role == AUTHZ_AGENT;
	if (is_platform && call->principal.role != AUTHZ_PLATFORM_ADMIN) {
		rest_problem(call, 403, "forbidden",
			     "only a platform admin makes tokens of role %s",
			     authz_role_name(token->role));
		return false;
	}
	if (is_platform)
		return true;
	if (token->tenant.len == 0) {
		call->fault_path = STR("tenant");
		rest_problem(call, 400, "missing_field",
			     "tenant is missing: name the tenant that "
			     "the token is for");
		return false;
	}
	if (tenant_need(call, token->tenant) == NULL)
		return false;
	if (store_member_find(call->api->sql, call->arena, token->tenant, token->tenant_uid,
			      token->subject, &member, &err) != ERR_OK ||
	    member.role > token->role) {
		rest_problem(call, 422, "not_a_member",
			     "\"" STR_FMT "\" is no %s of " STR_FMT "; add the member with that "
			     "role first",
			     STR_ARG(token->subject), authz_role_name(token->role),
			     STR_ARG(token->tenant));
		return false;
	}
	return true;
}

static bool is_within_count(struct call *call, const struct store_token *token)
{
	int64_t count = 0;
	struct err err;
	if (store_token_count(call->api->sql, token, token->created_s, &count, &err) != ERR_OK) {
		rest_fail(call, &err);
		return false;
	}
	if (count < TOKENS_ACTIVE_MAX)
		return true;
	rest_problem(call, 409, "limit_exceeded",
		     "\"" STR_FMT "\" has %lld active tokens, as many as one may have; revoke some "
		     "or wait until they expire",
		     STR_ARG(token->subject), (long long)count);
	return false;
}

static void read_token(struct call *call, struct store_token *token)
{
	int64_t now_s = api_now_s(call->api);
	const json_t *body = call->body;
	struct str user = json_text(body, "user"), tenant = json_text(body, "tenant");
	*token = (struct store_token){
		.subject = user.len > 0 ? user : call->principal.subject,
		.tenant = tenant.len > 0 ? tenant : call->principal.tenant,
		.note = json_text(body, "note"),
		.created_by = call->principal.subject,
		.created_s = now_s,
	};
	bool is_known = authz_role_parse(json_text(body, "role"), &token->role);
	ASSERT(is_known); // by the shape
	if (token->role == AUTHZ_PLATFORM_ADMIN || token->role == AUTHZ_AGENT)
		token->tenant = STR("");
	token->tenant_uid = token->tenant.len > 0
				    ? view_tenant_uid(call->api->objects, token->tenant)
				    : STR("");
	int64_t life_s = schema_get_duration_s(body, "expires_in", TOKEN_LIFE_DEFAULT_S);
	token->expires_s = now_s + min_i64(life_s, call->api->limits.token_life_max_s);
}

static void make_token(struct call *call, struct store_token *token)
{
	char random[TOKEN_RANDOM_CHARS + 1], text[TOKEN_CHARS + 1];
	char hash[STORE_HASH_HEX + 1], id[STORE_TOKEN_ID_CHARS + 1];
	struct err err;
	random_base62(random, TOKEN_RANDOM_CHARS);
	random_base62(id, STORE_TOKEN_ID_CHARS);
	token_compose(random, text);
	store_hash(str_of(text), hash);
	token->id = str_of(id);
	call->audit_detail =
		str_of(arena_printf(call->arena, "token %s for " STR_FMT " role %s", id,
				    STR_ARG(token->subject), authz_role_name(token->role)));
	if (store_token_add(call->api->sql, str_of(hash), token, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	json_t *body = token_json(token, token->created_s);
	put_text(body, "token", str_of(text));
	sodium_memzero(random, sizeof random);
	sodium_memzero(text, sizeof text);
	call->is_secret = true;
	rest_answer(call, body);
}

void handle_token_create(struct call *call)
{
	struct store_token token;
	read_token(call, &token);
	if (!rest_authorize(call, token.tenant))
		return;
	if (!is_user_name(token.subject)) {
		refuse_user(call);
		return;
	}
	if (may_make(call, &token) && is_within_count(call, &token))
		make_token(call, &token);
}

void handle_token_list(struct call *call)
{
	struct rest_page asked;
	struct store_token *tokens = NULL;
	size_t count = 0;
	struct err err;
	if (!rest_page(call, &asked))
		return;
	struct str tenant = rest_scope(call), uid = STR("");
	if (call->principal.role != AUTHZ_PLATFORM_ADMIN)
		uid = view_tenant_uid(call->api->objects, tenant);
	struct store_page page = { tenant, asked.after, asked.limit, uid };
	if (store_token_list(call->api->sql, call->arena, &page, &tokens, &count, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	json_t *items = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(items, token_json(&tokens[i], api_now_s(call->api)));
	rest_answer_list(call, items, count == page.limit ? tokens[count - 1].id : STR(""));
}

void handle_token_delete(struct call *call)
{
	struct store_token token;
	struct err err;
	int64_t now_s = api_now_s(call->api);
	err_status status =
		store_token_by_id(call->api->sql, call->arena, call->match.params[0], &token, &err);
	if (status != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	// A platform token is nobody's in a tenant, nor is one of an earlier tenant of the name; to
	// them it does not exist.
	struct str uid = view_tenant_uid(call->api->objects, token.tenant);
	if (call->principal.role != AUTHZ_PLATFORM_ADMIN &&
	    (uid.len == 0 || !str_eq(token.tenant_uid, uid))) {
		rest_problem(call, 404, "not_found", "no such token");
		return;
	}
	if (!rest_authorize(call, token.tenant))
		return;
	call->audit_detail = str_of(arena_printf(call->arena, "token " STR_FMT " of " STR_FMT,
						 STR_ARG(token.id), STR_ARG(token.subject)));
	if (store_token_revoke(call->api->sql, token.id, now_s, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	token.revoked_s = token.revoked_s != 0 ? token.revoked_s : now_s;
	rest_answer(call, token_json(&token, now_s));
}
