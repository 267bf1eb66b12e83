// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

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
