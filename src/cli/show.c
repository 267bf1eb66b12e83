// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <stdio.h>

int cli_show(struct cli *cli, const char *method, const char *path, json_t *body,
	     const struct cli_column *columns, size_t column_count)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	int code = cli_call(cli, method, path, body, &answer);
	if (code == CLI_OK)
		cli_print(cli, answer, columns, column_count);
	return code;
}

int cli_show_pages(struct cli *cli, const char *path, const struct cli_column *columns,
		   size_t column_count)
{
	AUTO(json_decrefp) json_t *items = NULL;
	int code = cli_call_pages(cli, path, &items);
	if (code == CLI_OK)
		cli_print(cli, items, columns, column_count);
	return code;
}

int cli_show_text(struct cli *cli, const char *path, const char *accept)
{
	struct str text;
	int code = cli_call_text(cli, "GET", path, accept, (struct str){ NULL, 0 }, &text);
	if (code == CLI_OK)
		(void)fwrite(text.data, 1, text.len, stdout);
	return code;
}
