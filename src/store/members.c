// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

err_status store_member_put(struct sql *sql, const struct store_member *member, struct err *err)
{
	ASSERT(member->tenant.len > 0 && member->tenant_uid.len > 0 && member->user.len > 0);
	const struct sql_value args[] = { sql_text(member->tenant), sql_text(member->user),
					  sql_text(str_of(authz_role_name(member->role))),
					  sql_int(member->created_s),
					  sql_text(member->tenant_uid) };
	return sql_run(sql,
		       "INSERT INTO members (tenant, member, role, created_s, tenant_uid)"
		       " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (tenant, member) DO UPDATE SET"
		       " role = excluded.role, tenant_uid = excluded.tenant_uid, created_s ="
		       " CASE WHEN members.tenant_uid = excluded.tenant_uid"
		       " THEN members.created_s ELSE excluded.created_s END",
		       args, ARRAY_COUNT(args), NULL, NULL, err);
}

struct member_rows {
	struct arena *arena;
	struct store_member *members;
	size_t count, max;
	bool failed;
};

static bool take_member(void *arg, const struct sql_value *columns, size_t column_count)
{
	struct member_rows *rows = arg;
	ASSERT(column_count == 5);
	if (rows->count == rows->max)
		return false;
	struct store_member *member = &rows->members[rows->count];
	member->tenant = arena_dup(rows->arena, columns[0].text);
	member->user = arena_dup(rows->arena, columns[1].text);
	member->created_s = columns[3].number;
	member->tenant_uid = arena_dup(rows->arena, columns[4].text);
	rows->failed = rows->failed || !authz_role_parse(columns[2].text, &member->role) ||
		       member->tenant.data == NULL || member->user.data == NULL ||
		       member->tenant_uid.data == NULL;
	rows->count++;
	return true;
}

err_status store_member_find(struct sql *sql, struct arena *arena, struct str tenant,
			     struct str tenant_uid, struct str user,
			     struct store_member *ret_member, struct err *err)
{
	struct store_member member = { 0 };
	struct member_rows rows = { .arena = arena, .members = &member, .max = 1 };
	const struct sql_value args[] = { sql_text(tenant), sql_text(user), sql_text(tenant_uid) };
	err_status status = sql_run(sql,
				    "SELECT tenant, member, role, created_s, tenant_uid"
				    " FROM members"
				    " WHERE tenant = ?1 AND member = ?2 AND tenant_uid = ?3",
				    args, ARRAY_COUNT(args), take_member, &rows, err);
	if (status != ERR_OK)
		return status;
	if (rows.count == 0)
		return err_set(err, ERR_NOT_FOUND, "\"" STR_FMT "\" is no member of " STR_FMT,
			       STR_ARG(user), STR_ARG(tenant));
	if (rows.failed)
		return err_set(err, ERR_INTERNAL, "the row of a member cannot be read");
	*ret_member = member;
	return ERR_OK;
}

err_status store_member_remove(struct sql *sql, struct str tenant, struct str user, struct err *err)
{
	const struct sql_value args[] = { sql_text(tenant), sql_text(user) };
	return sql_run(sql, "DELETE FROM members WHERE tenant = ?1 AND member = ?2", args,
		       ARRAY_COUNT(args), NULL, NULL, err);
}

err_status store_member_remove_all(struct sql *sql, struct str tenant, struct err *err)
{
	const struct sql_value args[] = { sql_text(tenant) };
	return sql_run(sql, "DELETE FROM members WHERE tenant = ?1", args, ARRAY_COUNT(args), NULL,
		       NULL, err);
}

err_status store_member_list(struct sql *sql, struct arena *arena, const struct store_page *page,
			     struct store_member **ret_members, size_t *ret_count, struct err *err)
{
	ASSERT(page->limit > 0 && page->limit <= STORE_PAGE_MAX);
	struct member_rows rows = { .arena = arena, .max = page->limit };
	rows.members = ARENA_ARRAY(arena, struct store_member, page->limit);
	if (rows.members == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a page of members");
	const struct sql_value args[] = { sql_text(page->tenant), sql_text(page->after),
					  sql_int((int64_t)page->limit),
					  sql_text(page->tenant_uid) };
	err_status status = sql_run(sql,
				    "SELECT tenant, member, role, created_s, tenant_uid"
				    " FROM members WHERE tenant = ?1 AND tenant_uid = ?4"
				    " AND member > ?2 ORDER BY member LIMIT ?3",
				    args, ARRAY_COUNT(args), take_member, &rows, err);
	if (status != ERR_OK)
		return status;
	if (rows.failed)
		return err_set(err, ERR_INTERNAL, "the row of a member cannot be read");
	*ret_members = rows.members;
	*ret_count = rows.count;
	return ERR_OK;
}
