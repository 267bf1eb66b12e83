// SPDX-License-Identifier: Apache-2.0
// Windows: GPUs reserved for a tenant for a time. "course=16:H100@FROM/TO" is one of them.
#include "cli/verbs.h"

static const struct cli_column window_columns[] = {
	{ "TENANT", "tenant" }, { "WINDOW", "name" }, { "GPUS", "gpus" },
	{ "MODEL", "model" },   { "FROM", "start" },  { "TO", "end" },
};

// What is left out stays out, and the server says what is missing.
static void put_part(json_t *window, const char *key, struct str part)
{
	if (part.len > 0)
		(void)json_object_set_new(window, key, json_stringn(part.data, part.len));
}

static void put_number(json_t *window, const char *key, struct str part)
{
	int64_t number;
	if (str_to_i64(part, &number))
		(void)json_object_set_new(window, key, json_integer(number));
	else
		put_part(window, key, part);
}

static json_t *parse_window(struct str text)
{
	json_t *window = json_object();
	struct str name = { 0 }, what = { 0 }, gpus = { 0 }, model = { 0 }, from = { 0 },
		   to = { 0 };
	(void)(str_split_next(&text, '=', &name) && str_split_next(&text, '@', &what) &&
	       str_split_next(&text, '/', &from) && str_split_next(&text, '/', &to));
	(void)(str_split_next(&what, ':', &gpus) && str_split_next(&what, ':', &model));
	put_part(window, "name", name);
	put_number(window, "gpus", gpus);
	put_part(window, "model", model);
	put_part(window, "start", from);
	put_part(window, "end", to);
	return window;
}

void cli_put_windows(json_t *body, const char *const *texts, bool has_none)
{
	json_t *windows = json_array();
	for (size_t i = 0; texts[i] != NULL; i++)
		(void)json_array_append_new(windows, parse_window(str_of(texts[i])));
	if (has_none || json_array_size(windows) > 0)
		(void)json_object_set(body, "windows", windows);
	json_decref(windows);
}

static void add_rows(json_t *rows, const json_t *windows, json_t *tenant)
{
	size_t i;
	json_t *window;
	json_array_foreach(windows, i, window)
	{
		json_t *row = json_copy(window);
		(void)json_object_set(row, "tenant", tenant);
		(void)json_array_append_new(rows, row);
	}
}

int verb_window_list(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count > 1)
		return cli_usage("window list", "want one tenant at most");
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(json_decrefp) json_t *rows = json_array();
	AUTO(json_decrefp) json_t *name = count == 1 ? json_string(argv[0]) : NULL;
	int code = name == NULL ? cli_call_pages(cli, "/v1/tenants", &answer)
				: cli_call(cli, "GET",
					   cli_path(cli, "/v1/tenants/", argv[0], "/windows"), NULL,
					   &answer);
	size_t i;
	json_t *tenant;
	if (code != CLI_OK)
		return code;
	if (name != NULL)
		add_rows(rows, json_object_get(answer, "items"), name);
	json_array_foreach(name == NULL ? answer : NULL, i, tenant)
		add_rows(rows, json_object_get(tenant, "windows"), json_object_get(tenant, "name"));
	cli_print(cli, rows, window_columns, ARRAY_COUNT(window_columns));
	return CLI_OK;
}

int verb_window_create(struct cli *cli, int argc, char **argv)
{
	const char *gpus = NULL, *model = NULL, *from = NULL, *to = NULL;
	struct cli_option options[] = { { "--gpus", &gpus, NULL, 0 },
					{ "--model", &model, NULL, 0 },
					{ "--from", &from, NULL, 0 },
					{ "--to", &to, NULL, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 2)
		return cli_usage("window create", "want a tenant and a name");
	if (gpus == NULL || from == NULL || to == NULL)
		return cli_usage("window create", "want --gpus, --from and --to");
	AUTO(json_decrefp) json_t *body = json_object(), *made = NULL;
	put_part(body, "name", str_of(argv[1]));
	put_number(body, "gpus", str_of(gpus));
	put_part(body, "model", str_of(model == NULL ? "" : model));
	put_part(body, "start", str_of(from));
	put_part(body, "end", str_of(to));
	int code = cli_call(cli, "POST", cli_path(cli, "/v1/tenants/", argv[0], "/windows"), body,
			    &made);
	if (code != CLI_OK)
		return code;
	(void)json_object_set_new(made, "tenant", json_string(argv[0]));
	cli_print(cli, made, window_columns, ARRAY_COUNT(window_columns));
	return CLI_OK;
}

int verb_window_delete(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 2)
		return cli_usage("window delete", "want a tenant and a name");
	const char *windows = cli_path(cli, "/v1/tenants/", argv[0], "/windows/");
	AUTO(json_decrefp) json_t *gone = NULL;
	return cli_call(cli, "DELETE", cli_path(cli, windows, argv[1], ""), NULL, &gone);
}
