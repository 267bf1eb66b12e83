// SPDX-License-Identifier: Apache-2.0
#include "api/rest_steps.h"

enum { KEY_MAX_BYTES = 128, ORPHANS_MAX = 1000, ORPHANS_ARENA_BYTES = 1024 * 1024 };

static bool has_type(const struct call *call, const char *want)
{
	struct str type = http_header_find(&call->request->headers, "Content-Type");
	size_t end = min_size(str_find_byte(type, ';', 0), type.len);
	return type.len == 0 || str_eq_nocase(str_trim(str_slice(type, 0, end)), str_of(want));
}

static bool read_json(struct call *call)
{
	struct err err;
	struct schema_fault fault = { 0 };
	if (!has_type(call, "application/json")) {
		rest_problem(call, 415, "media_type", "the body must be application/json");
		return false;
	}
	if (json_parse(call->request->body, &call->body, &err) != ERR_OK) {
		rest_problem(call, 400, "invalid_json", "%s", err.text);
		return false;
	}
	if (!json_is_object(call->body)) {
		rest_problem(call, 400, "invalid_json", "the body must be a JSON object");
		return false;
	}
	if (call->route->body->field_count == 0) // a whole document; the ledger checks it
		return true;
	if (schema_check(call->route->body, call->body, &fault, &err) == ERR_OK)
		return true;
	call->fault_path = arena_dup(call->arena, str_of(fault.path));
	rest_problem(call, 400, fault.code, "%s", err.text);
	return false;
}

bool rest_read_body(struct call *call)
{
	const struct route *route = call->route;
	if (route->body != NULL)
		return read_json(call);
	if (route->body_type != NULL || call->request->body.len == 0)
		return true;
	rest_problem(call, 400, "unexpected_body", "%s %s takes no body", route->method,
		     route->pattern);
	return false;
}

static bool is_key(struct str key)
{
	for (size_t i = 0; i < key.len; i++) {
		if ((unsigned char)key.data[i] < '!' || (unsigned char)key.data[i] > '~')
			return false;
	}
	return key.len > 0 && key.len <= KEY_MAX_BYTES;
}

// Each part with its length, so that "a" + "bc" is not "ab" + "c".
static void hash_parts(const struct str *parts, size_t count, char out[STORE_HASH_HEX + 1])
{
	struct buf text = { .limit = 0 };
	for (size_t i = 0; i < count; i++) {
		buf_printf(&text, "%zu:", parts[i].len);
		buf_put(&text, parts[i]);
	}
	ASSERT(buf_ok(&text)); // at most a body and a path
	store_hash(buf_str(&text), out);
	buf_done(&text);
}

static bool answer_kept(struct call *call, const struct kept_answer *kept)
{
	switch (kept->state) {
	case ANSWER_NEW: return true;
	case ANSWER_RUNNING:
		(void)rest_header_add(call, "Retry-After", STR("1"));
		rest_problem(call, 409, "still_running",
			     "the call with this Idempotency-Key is under way; repeat in a second");
		return false;
	case ANSWER_MISMATCH:
		rest_problem(call, 422, "idempotency_mismatch",
			     "this Idempotency-Key was used for another call; take a new one");
		return false;
	case ANSWER_KEPT: break;
	}
	call->api->counters.replayed++;
	if (kept->body.len == 0) {
		rest_problem(call, 409, "secret_shown_once",
			     "this call was answered before and its secret is shown only once; "
			     "revoke what it made and make a new one");
		return false;
	}
	(void)rest_header_add(call, "Idempotency-Replayed", STR("true"));
	call->status = kept->status;
	json_t *body = NULL;
	if (json_parse(kept->body, &body, NULL) != ERR_OK) {
		rest_problem(call, 500, "internal", "the kept answer cannot be read");
		return false;
	}
	rest_answer_status(call, kept->status, body);
	return false;
}

bool rest_check_repetition(struct call *call)
{
	struct str key = http_header_find(&call->request->headers, "Idempotency-Key");
	if (key.data == NULL || !str_eq_c(call->request->method, "POST") ||
	    !route_mutates(call->route) || call->route->access == ROUTE_AGENT)
		return true;
	if (!is_key(key)) {
		rest_problem(call, 400, "invalid_key",
			     "Idempotency-Key must be 1 to %d visible ASCII characters",
			     KEY_MAX_BYTES);
		return false;
	}
	char key_hash[STORE_HASH_HEX + 1], call_hash[STORE_HASH_HEX + 1];
	const struct str who[] = { call->principal.tenant, call->principal.subject,
				   str_of(authz_role_name(call->principal.role)), key };
	const struct str what[] = { call->request->method, call->request->path,
				    call->request->body };
	hash_parts(who, ARRAY_COUNT(who), key_hash);
	hash_parts(what, ARRAY_COUNT(what), call_hash);
	struct kept_answer kept;
	struct err err;
	if (answers_begin(call->api->sql, call->arena, str_of(key_hash), str_of(call_hash),
			  api_now_s(call->api), &kept, &err) != ERR_OK) {
		rest_fail(call, &err);
		return false;
	}
	if (!answer_kept(call, &kept))
		return false;
	memcpy(call->key_hash, key_hash, sizeof key_hash);
	return true;
}

static bool is_under_way(const struct api *api, struct str key_hash)
{
	for (const struct call *call = api->calls; call != NULL; call = call->next) {
		if (str_eq_c(key_hash, call->key_hash))
			return true;
	}
	return false;
}

err_status rest_forget_orphans(struct api *api, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ORPHANS_ARENA_BYTES);
	struct str *hashes = NULL;
	size_t count = 0;
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the calls under way");
	err_status status = answers_running(api->sql, arena, ORPHANS_MAX, &hashes, &count, err);
	for (size_t i = 0; i < count && status == ERR_OK; i++) {
		if (!is_under_way(api, hashes[i]))
			status = answers_forget(api->sql, hashes[i], err);
	}
	return status;
}
