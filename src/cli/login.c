// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <stdio.h>

static const struct cli_column who_columns[] = {
	{ "USER", "user" },      { "ROLE", "role" },       { "TENANT", "tenant" },
	{ "TOKEN", "token_id" }, { "EXPIRES", "expires" }, { "SERVER", "server_version" },
};

int verb_whoami(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	return cli_show(cli, "GET", "/v1/whoami", NULL, who_columns, ARRAY_COUNT(who_columns));
}

// The token is tried before it is saved, so that a wrong one never replaces a good one.
int verb_login(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count > 0)
		return cli_usage("login", "the token is read from standard input, never from the "
					  "command line, where others see it");
	struct str token = cli_read_token(cli);
	if (token.len == 0)
		return cli_usage("login", "no token came on standard input");
	cli->token = arena_cstr(cli->arena, token);
	cli->token_server = NULL;
	json_t *answer = NULL;
	int code = cli_call(cli, "GET", "/v1/whoami", NULL, &answer);
	if (code != CLI_OK)
		return code;
	struct err err = { 0 };
	if (cli_config_save(cli, &err) != ERR_OK)
		return cli_fail(&err);
	(void)fprintf(stderr, "logged in to %s as %s (%s)\n", cli->server,
		      cli_plain(cli, json_text(answer, "user")),
		      cli_plain(cli, json_text(answer, "role")));
	json_decref(answer);
	return CLI_OK;
}

int verb_logout(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	cli->token = NULL;
	struct err err = { 0 };
	return cli_config_save(cli, &err) == ERR_OK ? CLI_OK : cli_fail(&err);
}
