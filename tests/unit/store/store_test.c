// SPDX-License-Identifier: Apache-2.0
// Tokens, members, kept answers, history and objects on SQLite in memory or PostgreSQL.
#include "sql_backend.h"
#include "store/answers.h"
#include "store/history.h"

static struct store_token token_of(const char *id, const char *subject, const char *tenant)
{
	return (struct store_token){ .id = str_of(id),
				     .subject = str_of(subject),
				     .role = AUTHZ_MEMBER,
				     .tenant = str_of(tenant),
				     .tenant_uid = STR("uid-1"),
				     .note = STR(""),
				     .created_by = STR("admin"),
				     .created_s = 100,
				     .expires_s = 200 };
}

static void check_tokens(struct check *c, struct sql *sql, struct arena *arena)
{
	char hash[STORE_HASH_HEX + 1];
	struct store_token token = token_of("t1", "ann", "red"), found = { .created_s = -1 };
	store_hash(STR("abc"), hash);
	CHECK_STR(c, "SHA-256", str_of(hash),
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK_INT(c, "add", store_token_add(sql, str_of(hash), &token, NULL), ERR_OK);
	CHECK_INT(c, "same id", store_token_add(sql, str_of(hash), &token, NULL), ERR_CONFLICT);
	CHECK_INT(c, "find", store_token_by_hash(sql, arena, str_of(hash), &found, NULL), ERR_OK);
	CHECK_STR(c, "subject", found.subject, "ann");
	CHECK_STR(c, "tenant", found.tenant, "red");
	CHECK_INT(c, "role", found.role, AUTHZ_MEMBER);
	CHECK_INT(c, "expires", found.expires_s, 200);
	CHECK_INT(c, "not revoked", found.revoked_s, 0);
	hash[0] = '0';
	found.created_s = -1;
	CHECK_INT(c, "absent", store_token_by_hash(sql, arena, str_of(hash), &found, NULL),
		  ERR_NOT_FOUND);
	CHECK_INT(c, "untouched", found.created_s, -1);
	CHECK_INT(c, "touch", store_token_touch(sql, STR("t1"), 150, NULL), ERR_OK);
	CHECK_INT(c, "revoke", store_token_revoke(sql, STR("t1"), 160, NULL), ERR_OK);
	CHECK_INT(c, "again", store_token_revoke(sql, STR("t1"), 170, NULL), ERR_OK);
	CHECK_INT(c, "by id", store_token_by_id(sql, arena, STR("t1"), &found, NULL), ERR_OK);
	CHECK_INT(c, "the first time stays", found.revoked_s, 160);
	CHECK_INT(c, "last used", found.last_used_s, 150);
}

static void check_token_pages(struct check *c, struct sql *sql, struct arena *arena)
{
	struct store_token *tokens = NULL;
	size_t count = 0;
	int64_t revoked = 0;
	for (int i = 0; i < 5; i++) {
		char id[8], hash[STORE_HASH_HEX + 1];
		(void)snprintf(id, sizeof id, "p%d", i);
		store_hash(str_of(id), hash);
		struct store_token token = token_of(id, i % 2 == 0 ? "bob" : "cid", "blue");
		CHECK_INT(c, "add", store_token_add(sql, str_of(hash), &token, NULL), ERR_OK);
	}
	struct store_page page = { STR("blue"), STR(""), 3, STR("uid-1") };
	CHECK_INT(c, "page", store_token_list(sql, arena, &page, &tokens, &count, NULL), ERR_OK);
	CHECK_INT(c, "page", count, 3);
	page.after = tokens[2].id;
	CHECK_INT(c, "next", store_token_list(sql, arena, &page, &tokens, &count, NULL), ERR_OK);
	CHECK_INT(c, "next", count, 2);
	CHECK_STR(c, "next", tokens[0].id, "p3");
	CHECK_STR(c, "uid", tokens[0].tenant_uid, "uid-1");
	page.tenant_uid = STR("uid-2");
	CHECK_INT(c, "later one", store_token_list(sql, arena, &page, &tokens, &count, NULL),
		  ERR_OK);
	CHECK_INT(c, "a later tenant of the name has none", count, 0);
	int64_t active = -1;
	struct store_token like = token_of("", "bob", "blue");
	CHECK_INT(c, "count", store_token_count(sql, &like, 199, &active, NULL), ERR_OK);
	CHECK_INT(c, "count", active, 3);
	CHECK_INT(c, "count", store_token_count(sql, &like, 200, &active, NULL), ERR_OK);
	CHECK_INT(c, "expired ones do not count", active, 0);
	CHECK_INT(c, "of one",
		  store_token_revoke_all(sql, STR("blue"), STR("bob"), 9, &revoked, NULL), ERR_OK);
	CHECK_INT(c, "of one", revoked, 3);
	CHECK_INT(c, "count", store_token_count(sql, &like, 199, &active, NULL), ERR_OK);
	CHECK_INT(c, "revoked ones do not count", active, 0);
	CHECK_INT(c, "rest", store_token_revoke_all(sql, STR("blue"), STR(""), 9, &revoked, NULL),
		  ERR_OK);
	CHECK_INT(c, "rest", revoked, 2);
}

static void check_members(struct check *c, struct sql *sql, struct arena *arena)
{
	struct store_member member = { STR("red"), STR("ann"), AUTHZ_MEMBER, 5, STR("uid-1") },
			    found;
	struct str uid = STR("uid-1"), later = STR("uid-2");
	struct store_member *members = NULL;
	size_t count = 0;
	CHECK_INT(c, "put", store_member_put(sql, &member, NULL), ERR_OK);
	member.role = AUTHZ_TENANT_ADMIN;
	member.created_s = 6;
	CHECK_INT(c, "change", store_member_put(sql, &member, NULL), ERR_OK);
	CHECK_INT(c, "find",
		  store_member_find(sql, arena, STR("red"), uid, STR("ann"), &found, NULL), ERR_OK);
	CHECK_INT(c, "role", found.role, AUTHZ_TENANT_ADMIN);
	CHECK_INT(c, "since when stays", found.created_s, 5);
	CHECK_INT(c, "other tenant",
		  store_member_find(sql, arena, STR("blue"), uid, STR("ann"), &found, NULL),
		  ERR_NOT_FOUND);
	struct store_page page = { STR("red"), STR(""), 10, uid };
	CHECK_INT(c, "list", store_member_list(sql, arena, &page, &members, &count, NULL), ERR_OK);
	CHECK_INT(c, "list", count, 1);
	CHECK_INT(c, "later tenant of the name",
		  store_member_find(sql, arena, STR("red"), later, STR("ann"), &found, NULL),
		  ERR_NOT_FOUND);
	page.tenant_uid = later;
	CHECK_INT(c, "its list", store_member_list(sql, arena, &page, &members, &count, NULL),
		  ERR_OK);
	CHECK_INT(c, "its list", count, 0);
	member.tenant_uid = later;
	member.role = AUTHZ_MEMBER;
	member.created_s = 7;
	CHECK_INT(c, "takes the row over", store_member_put(sql, &member, NULL), ERR_OK);
	CHECK_INT(c, "takes the row over",
		  store_member_find(sql, arena, STR("red"), later, STR("ann"), &found, NULL),
		  ERR_OK);
	CHECK_INT(c, "since then", found.created_s, 7);
	CHECK_INT(c, "the earlier one is gone",
		  store_member_find(sql, arena, STR("red"), uid, STR("ann"), &found, NULL),
		  ERR_NOT_FOUND);
	CHECK_INT(c, "remove", store_member_remove(sql, STR("red"), STR("ann"), NULL), ERR_OK);
	CHECK_INT(c, "gone",
		  store_member_find(sql, arena, STR("red"), later, STR("ann"), &found, NULL),
		  ERR_NOT_FOUND);
}

static answer_state begin(struct check *c, struct sql *sql, struct arena *arena, const char *call)
{
	struct kept_answer kept = { 0 };
	CHECK_INT(c, "begin", answers_begin(sql, arena, STR("key"), str_of(call), 100, &kept, NULL),
		  ERR_OK);
	return kept.state;
}

static void check_answers(struct check *c, struct sql *sql, struct arena *arena)
{
	struct kept_answer kept;
	CHECK_INT(c, "first", begin(c, sql, arena, "a"), ANSWER_NEW);
	CHECK_INT(c, "under way", begin(c, sql, arena, "a"), ANSWER_RUNNING);
	CHECK_INT(c, "another call", begin(c, sql, arena, "b"), ANSWER_MISMATCH);
	struct str *running = NULL;
	size_t count = 0;
	CHECK_INT(c, "running", answers_running(sql, arena, 5, &running, &count, NULL), ERR_OK);
	CHECK_INT(c, "one", count, 1);
	CHECK_STR(c, "its key", count == 1 ? running[0] : STR(""), "key");
	CHECK_INT(c, "finish", answers_finish(sql, STR("key"), 201, STR("{}"), NULL), ERR_OK);
	CHECK_INT(c, "kept", answers_begin(sql, arena, STR("key"), STR("a"), 100, &kept, NULL),
		  ERR_OK);
	CHECK_INT(c, "kept", kept.state, ANSWER_KEPT);
	CHECK_INT(c, "running", answers_running(sql, arena, 5, &running, &count, NULL), ERR_OK);
	CHECK_INT(c, "none", count, 0);
	CHECK_INT(c, "status", kept.status, 201);
	CHECK_STR(c, "body", kept.body, "{}");
	CHECK_INT(c, "sweep", answers_sweep(sql, 100, false, NULL), ERR_OK);
	CHECK_INT(c, "young enough", begin(c, sql, arena, "a"), ANSWER_KEPT);
	CHECK_INT(c, "sweep", answers_sweep(sql, 101, false, NULL), ERR_OK);
	CHECK_INT(c, "old", begin(c, sql, arena, "a"), ANSWER_NEW);
	CHECK_INT(c, "start", answers_sweep(sql, 0, true, NULL), ERR_OK);
	CHECK_INT(c, "a crash forgets it", begin(c, sql, arena, "a"), ANSWER_NEW);
	CHECK_INT(c, "forget", answers_forget(sql, STR("key"), NULL), ERR_OK);
	CHECK_INT(c, "forgotten", begin(c, sql, arena, "b"), ANSWER_NEW);
}

static void count_object(void *arg, const struct object_row *row)
{
	int *count = arg;
	*count += str_eq_c(row->json, "{\"v\":2}") ? 1 : 100;
}

static void check_history(struct check *c, struct sql *sql, struct arena *arena)
{
	struct history_row row = { STR("u1"), STR("red.job"), STR("red"),
				   5,         STR("Failed"),  STR("{\"n\":1}") };
	struct history_row found;
	CHECK_INT(c, "put", history_put(sql, &row, NULL), ERR_OK);
	row.uid = STR("u2");
	row.created_s = 6;
	row.json = STR("{\"n\":2}");
	CHECK_INT(c, "the name again", history_put(sql, &row, NULL), ERR_OK);
	CHECK_INT(c, "find", history_find(sql, arena, STR("red.job"), &found, NULL), ERR_OK);
	CHECK_STR(c, "newest", found.json, "{\"n\":2}");
	CHECK_INT(c, "absent", history_find(sql, arena, STR("red.x"), &found, NULL), ERR_NOT_FOUND);
	struct object_row object = { STR("Tenant"), STR(""), STR("red"), STR("{\"v\":1}") };
	int count = 0;
	CHECK_INT(c, "new", object_put(sql, &object, true, NULL), ERR_OK);
	CHECK_INT(c, "twice", object_put(sql, &object, true, NULL), ERR_CONFLICT);
	object.json = STR("{\"v\":2}");
	CHECK_INT(c, "over", object_put(sql, &object, false, NULL), ERR_OK);
	CHECK_INT(c, "each", object_each(sql, count_object, &count, NULL), ERR_OK);
	CHECK_INT(c, "each", count, 1);
	CHECK_INT(c, "remove",
		  object_remove(sql, object.kind, object.namespace_, object.name, NULL), ERR_OK);
	CHECK_INT(c, "each", object_each(sql, count_object, &count, NULL), ERR_OK);
	CHECK_INT(c, "none", count, 1);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct err err = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 22);
	struct sql *sql = backend_open_fresh(&c, "sqlite::memory:");
	if (sql == NULL ||
	    sql_migrate(sql, "store", store_migrations, store_migration_count, &err) != ERR_OK) {
		printf("%s\n", err.text);
		return 1;
	}
	check_tokens(&c, sql, arena);
	check_token_pages(&c, sql, arena);
	check_members(&c, sql, arena);
	check_answers(&c, sql, arena);
	check_history(&c, sql, arena);
	sql_close(sql);
	return check_done(&c);
}
