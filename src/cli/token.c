// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <stdio.h>

static const struct cli_column token_columns[] = {
	{ "ID", "id" },
	{ "USER", "user" },
	{ "ROLE", "role" },
	{ "TENANT", "tenant" },
	{ "STATE", "state" },
	{ "EXPIRES", "expires" },
	{ "LAST USED", "last_used" },
	{ "NOTE", "note" },
};

// The secret alone on standard output, so that it can go into a file; the rest is told beside it.
int verb_token_create(struct cli *cli, int argc, char **argv)
{
	static const char *const keys[] = { "user", "tenant", "role", "expires_in", "note" };
	const char *values[ARRAY_COUNT(keys)] = { NULL };
	struct cli_option options[] = {
		{ "--user", &values[0], NULL, 0 }, { "--tenant", &values[1], NULL, 0 },
		{ "--role", &values[2], NULL, 0 }, { "--expires-in", &values[3], NULL, 0 },
		{ "--note", &values[4], NULL, 0 },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 0 || values[2] == NULL)
		return cli_usage("token create", "--role is needed and nothing but options");
	AUTO(json_decrefp) json_t *body = json_object();
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (values[i] != NULL)
			(void)json_object_set_new(body, keys[i], json_string(values[i]));
	json_t *answer = NULL;
	int code = cli_call(cli, "POST", "/v1/tokens", body, &answer);
	if (code != CLI_OK)
		return code;
	if (cli->format == CLI_JSON) {
		cli_print_json(answer);
	} else {
		(void)fprintf(stderr, "token %s of %s (%s) until %s; it is shown only now:\n",
			      cli_plain(cli, json_text(answer, "id")),
			      cli_plain(cli, json_text(answer, "user")),
			      cli_plain(cli, json_text(answer, "role")),
			      cli_plain(cli, json_text(answer, "expires")));
		printf("%s\n", cli_plain(cli, json_text(answer, "token")));
	}
	json_decref(answer);
	return CLI_OK;
}

int verb_token_list(struct cli *cli, int argc, char **argv)
{
	const char *tenant = NULL;
	struct cli_option options[] = { { "--tenant", &tenant, NULL, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	const char *path = tenant == NULL ? "/v1/tokens"
					  : cli_path(cli, "/v1/tokens?tenant=", tenant, "");
	return cli_show_pages(cli, path, token_columns, ARRAY_COUNT(token_columns));
}

int verb_token_revoke(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("token revoke", "want the id of a token (see: gpuaas token list)");
	json_t *answer = NULL;
	int code =
		cli_call(cli, "DELETE", cli_path(cli, "/v1/tokens/", argv[0], ""), NULL, &answer);
	json_decref(answer);
	return code;
}
