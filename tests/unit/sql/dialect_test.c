// SPDX-License-Identifier: Apache-2.0
// From our one text to PostgreSQL's, and from its codes to ours.
#include "check.h"
#include "sql/dialect.h"

static void test_statements(struct check *c)
{
	static const struct {
		const char *name, *from, *to;
	} cases[] = {
		{ "nothing to do", "SELECT 1", "SELECT 1" },
		{ "placeholders", "SELECT ?2, ?1 WHERE a=?12", "SELECT $2, $1 WHERE a=$12" },
		{ "in quotes", "SELECT '?1', \"?2\", ?1", "SELECT '?1', \"?2\", $1" },
		{ "doubled quotes", "SELECT 'it''s ?1', ?1", "SELECT 'it''s ?1', $1" },
		{ "types", "CREATE TABLE t (a TEXT PRIMARY KEY, b BLOB, c BIGINT)",
		  "CREATE TABLE t (a TEXT COLLATE \"C\" PRIMARY KEY, b BYTEA, c BIGINT)" },
		{ "a column more", "ALTER TABLE t ADD COLUMN a TEXT NOT NULL DEFAULT 'TEXT'",
		  "ALTER TABLE t ADD COLUMN a TEXT COLLATE \"C\" NOT NULL DEFAULT 'TEXT'" },
		{ "part of a word", "CREATE TABLE TEXTS (TEXT_A BIGINT)",
		  "CREATE TABLE TEXTS (TEXT_A BIGINT)" },
		{ "no definition", "SELECT TEXT, BLOB FROM t", "SELECT TEXT, BLOB FROM t" },
		{ "empty", "", "" },
		{ "no number", "SELECT ?", NULL },
		{ "a name", "SELECT ?a", NULL },
		{ "no end", "SELECT 'a", NULL },
		{ "only a quote", "'", NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(buf_done) struct buf out = { .limit = 1000 };
		err_status status = dialect_to_postgres(str_of(cases[i].from), &out, NULL);
		CHECK_INT(c, cases[i].name, status, cases[i].to == NULL ? ERR_INVALID : ERR_OK);
		if (cases[i].to != NULL)
			CHECK_STR(c, cases[i].name, buf_str(&out), cases[i].to);
	}
}

static void test_faults(struct check *c)
{
	static const struct {
		const char *code;
		err_status status;
		bool is_lost;
	} cases[] = {
		{ "23505", ERR_CONFLICT, false },    { "23503", ERR_CONFLICT, false },
		{ "23502", ERR_CONFLICT, false },    { "40001", ERR_UNAVAILABLE, false },
		{ "40P01", ERR_UNAVAILABLE, false }, { "55P03", ERR_UNAVAILABLE, false },
		{ "53100", ERR_IO, false },          { "53200", ERR_LIMIT, false },
		{ "53300", ERR_UNAVAILABLE, false }, { "54000", ERR_LIMIT, false },
		{ "57014", ERR_TIMEOUT, false },     { "57P01", ERR_UNAVAILABLE, true },
		{ "57P03", ERR_UNAVAILABLE, true },  { "08006", ERR_UNAVAILABLE, true },
		{ "25006", ERR_IO, true },           { "28P01", ERR_DENIED, true },
		{ "3D000", ERR_NOT_FOUND, true },    { "42501", ERR_IO, false },
		{ "42P01", ERR_INTERNAL, false },    { "22021", ERR_INVALID, false },
		{ "58030", ERR_IO, false },          { "XX001", ERR_IO, false },
		{ "XX000", ERR_INTERNAL, false },    { "", ERR_INTERNAL, false },
		{ "23", ERR_INTERNAL, false },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct dialect_fault fault = dialect_fault_of(str_of(cases[i].code));
		CHECK_INT(c, cases[i].code, fault.status, cases[i].status);
		CHECK_INT(c, cases[i].code, fault.is_lost, cases[i].is_lost);
	}
	CHECK(c, "the disk is named", strstr(dialect_fault_of(STR("53100")).note, "disk") != NULL);
	CHECK_INT(c, "none", dialect_fault_of((struct str){ NULL, 0 }).status, ERR_INTERNAL);
}

static void test_codes(struct check *c)
{
	static const struct {
		const char *text, *code, *message;
	} cases[] = {
		{ "connection to server on socket \"/s\" failed: FATAL:  28P01: password "
		  "authentication failed for user \"u\"\nLOCATION:  auth_failed, auth.c:335\n",
		  "28P01", "password authentication failed for user \"u\"" },
		{ "FATAL:  57P03: the database system is starting up", "57P03",
		  "the database system is starting up" },
		{ "could not connect: Connection refused\n", "", "" },
		{ "FATAL:  short: x", "", "" },
		{ ":  28P01", "", "" },
		{ "", "", "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str message = STR("");
		CHECK_STR(c, cases[i].text, dialect_find_code(str_of(cases[i].text), &message),
			  cases[i].code);
		CHECK_STR(c, cases[i].text, message, cases[i].message);
	}
}

int main(void)
{
	struct check c = { 0 };
	test_statements(&c);
	test_faults(&c);
	test_codes(&c);
	return check_done(&c);
}
