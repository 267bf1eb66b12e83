// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <stdio.h>

// Of a fraction: all that a double holds for sure, and no noise behind it.
enum { COLUMNS_MAX = 16, CELL_MAX_BYTES = 512, DIGITS = 15 };

void cli_print_json(const json_t *value)
{
	(void)json_dumpf(value, stdout,
			 JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
	(void)fputc('\n', stdout);
}

void cli_make_plain(char *text)
{
	for (unsigned char *p = (unsigned char *)text; p != NULL && *p != '\0'; p++) {
		bool is_c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f; // U+0080 to U+009F
		if (is_c1)
			p[1] = '?';
		if (*p < 0x20 || *p == 0x7f || is_c1)
			*p = '?';
	}
}

const char *cli_plain(struct cli *cli, struct str text)
{
	char *copy = arena_cstr(cli->arena, text);
	cli_make_plain(copy);
	return copy == NULL ? "" : copy;
}

const char *cli_cell(struct cli *cli, const json_t *row, const char *path)
{
	const json_t *value = json_at(row, path);
	AUTO(buf_done) struct buf text = { .limit = CELL_MAX_BYTES };
	if (json_is_string(value)) {
		buf_put(&text, (struct str){ json_string_value(value), json_string_length(value) });
	} else if (json_is_array(value)) {
		for (size_t i = 0; i < json_array_size(value); i++) {
			const char *item = json_string_value(json_array_get(value, i));
			buf_printf(&text, "%s%s", i == 0 ? "" : ",", item == NULL ? "" : item);
		}
	} else if (json_is_real(value)) {
		buf_printf(&text, "%.*g", DIGITS, json_real_value(value));
	} else if (value != NULL) {
		buf_put(&text, json_dump(cli->arena, value));
	}
	return cli_plain(cli, buf_str(&text));
}

// Columns a text takes on a terminal, counting code points.
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_csv_cell(const char *text, bool last)
{
	bool quote = strpbrk(text, ",\"\n\r") != NULL;
	if (quote)
		(void)fputc('"', stdout);
	// A leading sign would be a formula in a spreadsheet.
	if (strchr("=+@", text[0]) != NULL && text[0] != '\0')
		(void)fputc('\'', stdout);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			(void)fputc('"', stdout);
		(void)fputc(*text, stdout);
	}
	(void)fputs(quote ? "\"" : "", stdout);
	(void)fputc(last ? '\n' : ',', stdout);
}

static void print_csv(struct cli *cli, const json_t *rows, const struct cli_column *columns,
		      size_t count)
{
	for (size_t k = 0; k < count && !cli->no_headers; k++)
		print_csv_cell(columns[k].path, k + 1 == count);
	for (size_t i = 0; i < json_array_size(rows); i++)
		for (size_t k = 0; k < count; k++)
			print_csv_cell(cli_cell(cli, json_array_get(rows, i), columns[k].path),
				       k + 1 == count);
}

static void print_table(struct cli *cli, const json_t *rows, const struct cli_column *columns,
			size_t count)
{
	size_t widths[COLUMNS_MAX];
	ASSERT(count <= COLUMNS_MAX);
	for (size_t k = 0; k < count; k++) {
		widths[k] = width_of(columns[k].head);
		for (size_t i = 0; i < json_array_size(rows); i++)
			widths[k] = max_size(
				widths[k],
				width_of(cli_cell(cli, json_array_get(rows, i), columns[k].path)));
	}
	for (size_t i = cli->no_headers ? 1 : 0; i < json_array_size(rows) + 1; i++) {
		for (size_t k = 0; k < count; k++) {
			const char *text = i == 0 ? columns[k].head
						  : cli_cell(cli, json_array_get(rows, i - 1),
							     columns[k].path);
			size_t pad = k + 1 == count ? 0 : widths[k] - width_of(text) + 2;
			printf("%s%*s", text, (int)pad, "");
		}
		(void)fputc('\n', stdout);
	}
}

void cli_print(struct cli *cli, const json_t *value, const struct cli_column *columns,
	       size_t column_count)
{
	if (cli->format == CLI_JSON) {
		cli_print_json(value);
		return;
	}
	AUTO(json_decrefp) json_t *rows = json_array();
	if (json_is_array(value))
		(void)json_array_extend(rows, (json_t *)(uintptr_t)value);
	else
		(void)json_array_append(rows, (json_t *)(uintptr_t)value);
	if (cli->format == CLI_CSV)
		print_csv(cli, rows, columns, column_count);
	else if (cli->format == CLI_NAME)
		for (size_t i = 0; i < json_array_size(rows); i++)
			printf("%s\n", cli_cell(cli, json_array_get(rows, i), columns[0].path));
	else
		print_table(cli, rows, columns, column_count);
}
