// SPDX-License-Identifier: Apache-2.0
// What may be shown of a store's URL, and which URLs are refused because a password could be
// taken for something else.
#include "check.h"
#include "sql/sql.h"
#include "sql/url.h"

#define SECRET "s3cr3t"

static void test_urls(struct check *c)
{
	static const struct {
		const char *url, *shown, *inner; // inner NULL: refused
	} cases[] = {
		{ "sqlite:/a/b.db", "sqlite:/a/b.db", NULL },
		{ "postgres://u:" SECRET "@db.example:5432/gpuaas?sslmode=verify-full",
		  "postgres://db.example:5432/gpuaas",
		  "postgres://u:" SECRET "@db.example:5432/gpuaas?sslmode=verify-full" },
		{ "postgres:postgresql://u@h/d", "postgres://h/d", "postgresql://u@h/d" },
		{ "postgres:postgres://h", "postgres://h/", "postgres://h" },
		{ "postgresql:///d?host=/run/pg&password=" SECRET, "postgres:///d",
		  "postgresql:///d?host=/run/pg&password=" SECRET },
		{ "postgres://u@a:1,b:2/d", "postgres://a:1,b:2/d", "postgres://u@a:1,b:2/d" },
		{ "postgres://u@[::1]:5432/d", "postgres://[::1]:5432/d",
		  "postgres://u@[::1]:5432/d" },
		{ "postgres://u@%2Frun%2Fpg/d", "postgres://%2Frun%2Fpg/d",
		  "postgres://u@%2Frun%2Fpg/d" },
		{ "postgres://u:" SECRET "@x@h/d", "postgres:...", NULL },
		{ "postgres://u:a/" SECRET "@h/d", "postgres:...", NULL },
		{ "postgres://u:a?" SECRET "@h/d", "postgres:...", NULL },
		{ "postgres://u:a#" SECRET "@h/d", "postgres:...", NULL },
		{ "postgres://u:" SECRET " @h/d", "postgres:...", NULL },
		{ "postgres://u:" SECRET, "postgres:...", NULL },
		{ "postgres://h/d?password=" SECRET "@x", "postgres:...", NULL },
		{ "postgres://h/d/" SECRET, "postgres:...", NULL },
		{ "postgres://[" SECRET "/d", "postgres:...", NULL },
		{ "postgres:u:" SECRET "@h/d", "postgres:...", NULL },
		{ "postgresql:password=" SECRET, "postgres:...", NULL },
		{ "postgres:", "postgres:...", NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(buf_done) struct buf shown = { .limit = 1000 };
		struct err err = { 0 };
		struct str inner = STR("");
		sql_url_show(cases[i].url, &shown);
		CHECK_STR(c, cases[i].url, buf_str(&shown), cases[i].shown);
		err_status status = url_check_postgres(str_of(cases[i].url), &inner, &err);
		CHECK_INT(c, cases[i].url, status, cases[i].inner == NULL ? ERR_INVALID : ERR_OK);
		CHECK_STR(c, cases[i].url, inner, cases[i].inner == NULL ? "" : cases[i].inner);
		CHECK(c, cases[i].url, strstr(err.text, SECRET) == NULL);
	}
}

// Nothing listens there; no text may hold the password, however the URL is wrong.
static void test_errors(struct check *c)
{
	static const struct {
		const char *url;
		err_status status;
	} cases[] = {
		{ "postgres://u:" SECRET "@%2Fnowhere/d", ERR_UNAVAILABLE },
		{ "postgres://u:" SECRET "@127.0.0.1:1/d", ERR_UNAVAILABLE },
		{ "postgres://u:" SECRET "@%2Fnowhere/d?sslmode=" SECRET, ERR_UNAVAILABLE },
		{ "postgres://u:" SECRET "@127.0.0.1:99999/d", ERR_UNAVAILABLE },
		{ "postgres://u:%zz" SECRET "@h/d", ERR_INVALID },
		{ "postgres://u@h/d?" SECRET "=1", ERR_INVALID },
		{ "postgres://u@h/d?" SECRET, ERR_INVALID },
		{ "postgres://" SECRET "@x@h/d", ERR_INVALID },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct sql *sql = NULL;
		struct err err = { 0 };
		CHECK_INT(c, cases[i].url, sql_open(cases[i].url, &sql, &err), cases[i].status);
		CHECK(c, cases[i].url, strlen(err.text) > 20 && strchr(err.text, '\n') == NULL);
		CHECK(c, err.text, strstr(err.text, SECRET) == NULL);
	}
}

int main(void)
{
	struct check c = { 0 };
	test_urls(&c);
	test_errors(&c);
	return check_done(&c);
}
