// SPDX-License-Identifier: Apache-2.0
// What is wrong with the GPU nodes: what their agents tell about driver, plugin and devices, and
// what is known against the versions there. Everything comes from the server; nothing is asked
// of a node.
#include "cli/verbs.h"

#include <stdio.h>

static const struct cli_column columns[] = {
	{ "NODE", "node" },       { "CHECK", "check" }, { "RESULT", "result" },
	{ "VERSION", "version" }, { "CODE", "code" },   { "MESSAGE", "message" },
};

// Checks of versions: name as in a finding, member of the node.
static const char *const versions[][2] = { { "driver", "driver" },
					   { "cuda", "cuda" },
					   { "kubernetes", "kubelet" },
					   { "containerd", "container_runtime" },
					   { "container-toolkit", "container_toolkit" } };

static json_t *row_new(json_t *rows, const json_t *node, const char *check, const char *result)
{
	json_t *row = json_object();
	(void)json_object_set(row, "node", json_at(node, "name"));
	(void)json_object_set_new(row, "check", json_string(check));
	(void)json_object_set_new(row, "result", json_string(result));
	(void)json_array_append_new(rows, row);
	return row;
}

static void copy(json_t *row, const char *key, const json_t *from, const char *path)
{
	json_t *value = json_at(from, path);
	if (value != NULL)
		(void)json_object_set(row, key, value);
}

static bool add_conditions(json_t *rows, const json_t *node)
{
	size_t i;
	json_t *condition;
	bool is_well = true;
	json_array_foreach(json_at(node, "conditions"), i, condition)
	{
		bool is_true = str_eq_c(json_text(condition, "status"), "True");
		// Its findings follow one by one.
		if (str_eq_c(json_text(condition, "type"), "VersionsCompatible"))
			continue;
		json_t *row =
			row_new(rows, node, json_cstr(condition, "type"), is_true ? "ok" : "error");
		if (!is_true)
			copy(row, "code", condition, "reason");
		copy(row, "message", condition, "message");
		is_well = is_well && is_true;
	}
	json_array_foreach(json_at(node, "devices"), i, condition)
	{
		if (json_bool(condition, "healthy", false))
			continue;
		json_t *row = row_new(rows, node, "device", "error");
		copy(row, "version", condition, "uuid");
		copy(row, "message", condition, "reason");
		is_well = false;
	}
	return is_well;
}

static bool add_versions(json_t *rows, const json_t *node)
{
	bool is_well = true;
	for (size_t v = 0; v < ARRAY_COUNT(versions); v++) {
		size_t i;
		json_t *finding;
		bool any = false;
		json_array_foreach(json_at(node, "version_problems"), i, finding)
		{
			if (!str_eq_c(json_text(finding, "component"), versions[v][0]))
				continue;
			const char *level = json_cstr(finding, "level");
			json_t *row = row_new(rows, node, versions[v][0], level);
			copy(row, "version", finding, "version");
			copy(row, "code", finding, "code");
			copy(row, "message", finding, "message");
			copy(row, "source", finding, "source");
			is_well = is_well && strcmp(level, "error") != 0;
			any = true;
		}
		if (any)
			continue;
		bool is_known = json_text(node, versions[v][1]).len > 0;
		json_t *row = row_new(rows, node, versions[v][0], is_known ? "ok" : "unknown");
		copy(row, "version", node, versions[v][1]);
	}
	return is_well;
}

static bool add_upgrade(json_t *rows, const json_t *node)
{
	struct str phase = json_text(node, "upgrade.phase");
	if (phase.len == 0 || str_eq_c(phase, "done"))
		return true;
	bool is_stopped = str_eq_c(phase, "stopped");
	json_t *row = row_new(rows, node, "upgrade", is_stopped ? "error" : "warning");
	copy(row, "code", node, "upgrade.phase");
	copy(row, "message", node, "upgrade.reason");
	copy(row, "version", node, "upgrade.driver");
	return !is_stopped;
}

static int get_nodes(struct cli *cli, int argc, char **argv, json_t **ret_items)
{
	if (argc == 0)
		return cli_call_pages(cli, "/v1/nodes", ret_items);
	json_t *node = NULL;
	int code = cli_call(cli, "GET", cli_path(cli, "/v1/nodes/", argv[0], ""), NULL, &node);
	if (code != CLI_OK)
		return code;
	*ret_items = json_array();
	(void)json_array_append_new(*ret_items, node);
	return CLI_OK;
}

static int look(struct cli *cli, const json_t *items)
{
	size_t i;
	json_t *node;
	bool is_well = json_array_size(items) > 0;
	AUTO(json_decrefp) json_t *rows = json_array();
	json_array_foreach(items, i, node)
	{
		if (json_at(node, "conditions") == NULL) {
			bool is_told = json_at(node, "schedulable") != NULL;
			json_t *row = row_new(rows, node, "agent", "error");
			(void)json_object_set_new(
				row, "message",
				json_string(is_told ? "its agent has not told anything yet"
						    : "only platform admins see more"));
			is_well = false;
			continue;
		}
		bool conditions = add_conditions(rows, node);
		bool known = add_versions(rows, node);
		bool upgrade = add_upgrade(rows, node);
		is_well = is_well && conditions && known && upgrade;
	}
	if (cli->format == CLI_JSON) {
		AUTO(json_decrefp) json_t *answer = json_object();
		(void)json_object_set_new(answer, "ok", json_boolean(is_well));
		(void)json_object_set(answer, "checks", rows);
		cli_print_json(answer);
	} else {
		cli_print(cli, rows, columns, ARRAY_COUNT(columns));
	}
	if (json_array_size(items) == 0)
		(void)fprintf(stderr, "error: there is no GPU node; is the agent running?\n");
	return is_well ? CLI_OK : CLI_FAILED;
}

int verb_doctor(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count > 1)
		return cli_usage("doctor", "want one node at most, not %d", count);
	AUTO(json_decrefp) json_t *items = NULL;
	int code = get_nodes(cli, count, argv, &items);
	return code == CLI_OK ? look(cli, items) : code;
}
