// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "base/buf.h"

#include <stdio.h>

static const struct cli_column node_columns[] = {
	{ "NAME", "name" },
	{ "READY", "ready" },
	{ "MODEL", "model" },
	{ "GPUS", "gpus" },
	{ "HEALTHY", "healthy_gpus" },
	{ "HELD", "held_gpus" },
	{ "MEMORY MIB", "memory_mib" },
	{ "DRIVER", "driver" },
};

static const struct cli_column device_columns[] = {
	{ "INDEX", "index" },          { "UUID", "uuid" },       { "MODEL", "model" },
	{ "MEMORY MIB", "memoryMiB" }, { "HEALTHY", "healthy" }, { "REASON", "reason" },
};

int verb_node_list(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	return cli_show_pages(cli, "/v1/nodes", node_columns, ARRAY_COUNT(node_columns));
}

int verb_node_show(struct cli *cli, int argc, char **argv)
{
	int count, code;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("node show", "want one node, not %d", count);
	json_t *items = NULL, *item;
	if ((code = cli_call_pages(cli, "/v1/nodes", &items)) != CLI_OK)
		return code;
	size_t i;
	struct err err;
	code = err_exit_code(err_set(&err, ERR_NOT_FOUND,
				     "there is no GPU node %s; see: gpuaas node list", argv[0]));
	json_array_foreach(items, i, item)
	{
		if (!str_eq_c(json_text(item, "name"), argv[0]))
			continue;
		code = CLI_OK;
		if (cli->format == CLI_JSON)
			cli_print_json(item);
		else
			cli_print(cli, json_at(item, "devices"), device_columns,
				  ARRAY_COUNT(device_columns));
	}
	json_decref(items);
	return code == CLI_OK ? CLI_OK : cli_fail(&err);
}

static const struct cli_column upgrade_columns[] = {
	{ "NAME", "name" },
	{ "DRIVER", "driver" },
	{ "PHASE", "upgrade.phase" },
	{ "REASON", "upgrade.reason" },
};

enum { POLL_MS = 1000 };

// Tells what changed since the text of the round before, which *told keeps.
static void tell(struct cli *cli, const json_t *node, struct buf *told)
{
	const char *now = arena_printf(cli->arena, "%s: %s", cli_cell(cli, node, "upgrade.phase"),
				       cli_cell(cli, node, "upgrade.reason"));
	if (now == NULL || str_eq_c(buf_str(told), now))
		return;
	(void)fprintf(stderr, "%s\n", now);
	buf_clear(told);
	buf_put(told, str_of(now));
}

// Until it is done or stopped; what changes is told on standard error. An upgrade takes hours:
// each round has its own memory.
static int follow(struct cli *cli, const char *path, json_t *owned_node)
{
	struct arena *kept = cli->arena;
	AUTO(buf_done) struct buf told = { 0 };
	json_t *node = owned_node;
	int code = CLI_OK;
	for (;;) {
		AUTO(arena_freep) struct arena *round = arena_new(CLI_ARENA_BYTES);
		AUTO(json_decrefp) json_t *seen = node;
		if (round == NULL)
			return CLI_FAILED;
		cli->arena = round;
		struct str phase = json_text(seen, "upgrade.phase");
		bool is_done = str_eq_c(phase, "done");
		bool is_over = is_done || str_eq_c(phase, "stopped") || phase.len == 0;
		tell(cli, seen, &told);
		if (is_over) {
			cli_print(cli, seen, upgrade_columns, ARRAY_COUNT(upgrade_columns));
			code = is_done ? CLI_OK : CLI_FAILED;
		} else {
			cli_pause(cli, POLL_MS);
			code = cli_call(cli, "GET", path, NULL, &node);
		}
		cli->arena = kept;
		if (is_over || code != CLI_OK)
			return code;
	}
}

static json_t *upgrade_body(const char *driver, const char *cuda, const char *timeout, bool force)
{
	json_t *body = json_object();
	if (driver != NULL)
		(void)json_object_set_new(body, "driver", json_string(driver));
	if (cuda != NULL)
		(void)json_object_set_new(body, "cuda", json_string(cuda));
	if (timeout != NULL)
		(void)json_object_set_new(body, "timeout", json_string(timeout));
	if (force)
		(void)json_object_set_new(body, "force", json_true());
	return body;
}

int verb_node_upgrade(struct cli *cli, int argc, char **argv)
{
	const char *driver = NULL, *cuda = NULL, *timeout = NULL;
	bool force = false, no_wait = false, end = false;
	struct cli_option options[] = {
		{ "--driver", &driver, NULL, 0 },         { "--cuda", &cuda, NULL, 0 },
		{ "--phase-timeout", &timeout, NULL, 0 }, { "--force", NULL, &force, 0 },
		{ "--no-wait", NULL, &no_wait, 0 },       { "--end", NULL, &end, 0 },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("node upgrade", "want one node, not %d", count);
	if (end && (driver != NULL || cuda != NULL || timeout != NULL || force || no_wait))
		return cli_usage("node upgrade", "--end stands alone");
	const char *path = cli_path(cli, "/v1/nodes/", argv[0], "");
	const char *upgrade = cli_path(cli, "/v1/nodes/", argv[0], "/upgrade");
	if (end)
		return cli_show(cli, "DELETE", upgrade, NULL, upgrade_columns,
				ARRAY_COUNT(upgrade_columns));
	json_t *body = upgrade_body(driver, cuda, timeout, force), *node = NULL;
	int code = cli_call(cli, "POST", upgrade, body, &node);
	json_decref(body);
	if (code != CLI_OK)
		return code;
	if (!no_wait)
		return follow(cli, path, node);
	cli_print(cli, node, upgrade_columns, ARRAY_COUNT(upgrade_columns));
	json_decref(node);
	return CLI_OK;
}
