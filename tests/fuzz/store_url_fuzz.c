// SPDX-License-Identifier: Apache-2.0
// URLs of stores, statements and errors of libpq. What we show of a URL that we take is what
// libpq takes for host and database: nothing of the password, as libpq reads it, is in there.
#include "sql/dialect.h"
#include "sql/url.h"

#include <libpq-fe.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX_BYTES = 1 << 20 };

static struct str value_of(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++) {
		if (strcmp(options->keyword, keyword) == 0 && options->val != NULL)
			return str_of(options->val);
	}
	return STR("");
}

// Only where a value has one spelling: no list, no address in brackets, nothing escaped.
static void compare(struct str inner, struct str shown)
{
	for (size_t i = 0; i < inner.len; i++) {
		if (strchr("%,[?", inner.data[i]) != NULL)
			return;
	}
	AUTO(buf_done) struct buf text = { .limit = OUT_MAX_BYTES };
	buf_put(&text, inner);
	buf_put_byte(&text, '\0');
	PQconninfoOption *options = buf_ok(&text) ? PQconninfoParse(text.data, NULL) : NULL;
	if (options == NULL)
		return;
	AUTO(buf_done) struct buf theirs = { .limit = OUT_MAX_BYTES };
	const struct str port = value_of(options, "port");
	buf_put_c(&theirs, "postgres://");
	buf_put(&theirs, value_of(options, "host"));
	if (port.len > 0)
		buf_printf(&theirs, ":" STR_FMT, STR_ARG(port));
	buf_put_c(&theirs, "/");
	buf_put(&theirs, value_of(options, "dbname"));
	PQconninfoFree(options);
	// "host:" has no port; libpq drops the sign, we show it.
	const size_t sign = str_find_byte(shown, '/', strlen("postgres://"));
	const bool is_bare = sign != SIZE_MAX && sign > 0 && shown.data[sign - 1] == ':';
	ASSERT(is_bare || str_eq(buf_str(&theirs), shown));
}

static void try_url(struct str text)
{
	struct str inner;
	AUTO(buf_done) struct buf shown = { .limit = OUT_MAX_BYTES };
	url_show(text, &shown);
	if (url_check_postgres(text, &inner, NULL) != ERR_OK)
		return;
	ASSERT(str_find_byte(buf_str(&shown), '@', 0) == SIZE_MAX);
	ASSERT(str_find_byte(buf_str(&shown), '?', 0) == SIZE_MAX);
	compare(inner, buf_str(&shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = { (const char *)data, size };
	struct str message = STR("");
	if (size > 4096)
		return 0;
	try_url(text);
	AUTO(buf_done) struct buf out = { .limit = OUT_MAX_BYTES };
	const bool is_definition = str_starts(str_trim(text), STR("CREATE ")) ||
				   str_starts(str_trim(text), STR("ALTER "));
	if (dialect_to_postgres(text, &out, NULL) == ERR_OK && !is_definition)
		ASSERT(out.len == size);
	const struct str code = dialect_find_code(text, &message);
	ASSERT(code.len == 0 || (code.len == 5 && message.data >= text.data &&
				 message.data + message.len <= text.data + size));
	(void)dialect_fault_of(code);
	return 0;
}
