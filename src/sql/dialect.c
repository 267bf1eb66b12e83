// SPDX-License-Identifier: Apache-2.0
#include "sql/dialect.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

static bool is_word(char c)
{
	return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z') || c == '_';
}

static void put_word(struct str word, bool is_definition, struct buf *out)
{
	buf_put(out, is_definition && str_eq_c(word, "BLOB") ? STR("BYTEA") : word);
	if (is_definition && str_eq_c(word, "TEXT"))
		buf_put_c(out, " COLLATE \"C\"");
}

static size_t end_of_word(struct str text, size_t from)
{
	while (from < text.len && is_word(text.data[from]))
		from++;
	return from;
}

err_status dialect_to_postgres(struct str statement, struct buf *out, struct err *err)
{
	const struct str head = str_trim(statement);
	const bool is_definition = str_starts(head, STR("CREATE ")) ||
				   str_starts(head, STR("ALTER "));
	size_t end;
	for (size_t i = 0; i < statement.len; i = end) {
		const char c = statement.data[i];
		end = i + 1;
		if (c == '\'' || c == '"') {
			end = str_find_byte(statement, c, end);
			if (end == SIZE_MAX)
				return err_set(err, ERR_INVALID, "a quotation has no end");
			end++;
			buf_put(out, str_slice(statement, i, end));
		} else if (c == '?') {
			if (end == statement.len || !is_digit(statement.data[end]))
				return err_set(err, ERR_INVALID, "a placeholder has no number");
			buf_put_byte(out, '$');
		} else if (is_word(c)) {
			end = end_of_word(statement, i);
			put_word(str_slice(statement, i, end), is_definition, out);
		} else {
			buf_put_byte(out, c);
		}
	}
	return ERR_OK;
}

// The first row whose code begins the state counts.
static const struct {
	const char *code;
	struct dialect_fault fault;
} faults[] = {
	{ "08", { ERR_UNAVAILABLE, true, NULL } },
	{ "22", { ERR_INVALID, false, NULL } },
	{ "23", { ERR_CONFLICT, false, NULL } },
	{ "25006", { ERR_IO, true, NULL } }, // a primary that became a standby
	{ "25P03", { ERR_UNAVAILABLE, true, NULL } },
	{ "28", { ERR_DENIED, true, NULL } },
	{ "3D000", { ERR_NOT_FOUND, true, NULL } },
	{ "40", { ERR_UNAVAILABLE, false, NULL } },
	{ "42501", { ERR_IO, false, NULL } },
	{ "53100",
	  { ERR_IO, false, "the disk of the database is full; free space and it goes on" } },
	{ "53200", { ERR_LIMIT, false, NULL } },
	{ "53", { ERR_UNAVAILABLE, false, NULL } },
	{ "54", { ERR_LIMIT, false, NULL } },
	{ "55P03", { ERR_UNAVAILABLE, false, NULL } },
	{ "57014", { ERR_TIMEOUT, false, NULL } },
	{ "57P", { ERR_UNAVAILABLE, true, NULL } },
	{ "58", { ERR_IO, false, NULL } },
	{ "XX001", { ERR_IO, false, NULL } },
	{ "XX002", { ERR_IO, false, NULL } },
};

enum { CODE_LEN = 5 };

struct dialect_fault dialect_fault_of(struct str sqlstate)
{
	for (size_t i = 0; sqlstate.len == CODE_LEN && i < ARRAY_COUNT(faults); i++) {
		if (str_starts(sqlstate, str_of(faults[i].code)))
			return faults[i].fault;
	}
	return (struct dialect_fault){ ERR_INTERNAL, false, NULL };
}

static bool is_code(struct str text)
{
	for (size_t i = 0; i < CODE_LEN; i++) {
		if (!is_digit(text.data[i]) && !is_upper(text.data[i]))
			return false;
	}
	return true;
}

struct str dialect_find_code(struct str text, struct str *ret_message)
{
	const struct str before = STR(":  "), after = STR(": ");
	for (size_t i = 0; i + before.len + CODE_LEN + after.len <= text.len; i++) {
		const size_t code = i + before.len, message = code + CODE_LEN + after.len;
		if (!str_starts(str_slice(text, i, text.len), before) ||
		    !is_code(str_slice(text, code, code + CODE_LEN)) ||
		    !str_starts(str_slice(text, code + CODE_LEN, text.len), after))
			continue;
		*ret_message = str_slice(text, message, str_find_byte(text, '\n', message));
		return str_slice(text, code, code + CODE_LEN);
	}
	return (struct str){ NULL, 0 };
}
