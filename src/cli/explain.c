// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <stdio.h>

static const struct cli_column reason_columns[] = {
	{ "REASON", "code" },          { "NEED", "need" }, { "HAVE", "have" }, { "NODES", "nodes" },
	{ "WHAT WOULD HELP", "next" },
};

static const struct cli_column factor_columns[] = {
	{ "FACTOR", "name" },
	{ "VALUE", "value" },
	{ "WEIGHT", "weight" },
};

// Whose turn it is: of which tenant, and by which factors among its pods.
static void print_queue(struct cli *cli, const json_t *queue)
{
	const json_t *factors = json_object_get(queue, "factors");
	if (queue == NULL)
		return;
	printf("queue: %s%s, priority %s", cli_cell(cli, queue, "tenant"),
	       json_bool(queue, "below_guarantee", false) ? ", which has less than its guarantee"
							  : "",
	       cli_cell(cli, queue, "priority"));
	if (json_text(queue, "user").len > 0)
		printf(", counted for %s", cli_plain(cli, json_text(queue, "user")));
	printf("\n");
	if (json_array_size(factors) > 0) {
		printf("score: %s\n", cli_cell(cli, queue, "score"));
		cli_print(cli, factors, factor_columns, ARRAY_COUNT(factor_columns));
	}
}

static const struct cli_column part_columns[] = {
	{ "PART OF IT", "name" },
	{ "HERE", "own" },
	{ "THERE", "other" },
};

// Why it is on its node, by the record of the decision.
static void print_why(struct cli *cli, const json_t *why)
{
	struct str term = json_text(why, "term");
	const json_t *parts = json_object_get(why, "parts");
	if (term.len == 0)
		return;
	if (str_eq_c(term, "only"))
		printf("why there: no other node had room for it\n");
	else if (str_eq_c(term, "kept"))
		printf("why there: the node was kept for it\n");
	else if (str_eq_c(term, "name"))
		printf("why there: as good as %s, and before it by name\n",
		       cli_cell(cli, why, "next"));
	else
		printf("why there: %s is %s, on the next best, %s, %s; less is better\n",
		       cli_plain(cli, term), cli_cell(cli, why, "own"), cli_cell(cli, why, "next"),
		       cli_cell(cli, why, "other"));
	if (json_array_size(parts) > 0)
		cli_print(cli, parts, part_columns, ARRAY_COUNT(part_columns));
}

static void print_preemption(struct cli *cli, const json_t *preemption)
{
	if (json_text(preemption, "node").len > 0)
		printf("kept: node %s, when %lld pods have left it\n",
		       cli_plain(cli, json_text(preemption, "node")),
		       (long long)json_int(preemption, "leaving", 0));
	if (json_text(preemption, "evictedBy").len > 0)
		printf("evicted: makes room for %s\n",
		       cli_plain(cli, json_text(preemption, "evictedBy")));
	if (json_text(preemption, "goesOnAt").len > 0)
		printf("moved: room is kept for it on %s\n",
		       cli_plain(cli, json_text(preemption, "goesOnAt")));
	if (json_text(preemption, "queuedSince").len > 0)
		printf("queued since: %s, as the evicted pod that it replaces\n",
		       cli_plain(cli, json_text(preemption, "queuedSince")));
}

// What its GPUs were loaded with when they were chosen.
static void print_load(struct cli *cli, const json_t *loads)
{
	const json_t *load;
	size_t i;
	json_array_foreach(loads, i, load)
	{
		printf("load: %s ", cli_plain(cli, json_text(load, "gpu")));
		if (json_is_null(json_object_get(load, "percent")))
			printf("was ignored, it was not known or too old\n");
		else
			printf("at %s %%, measured %s s before\n", cli_cell(cli, load, "percent"),
			       cli_cell(cli, load, "age_s"));
	}
}

static void print_explain(struct cli *cli, const json_t *answer)
{
	if (cli->format == CLI_JSON) {
		cli_print_json(answer);
		return;
	}
	int64_t position = json_int(answer, "position", -1);
	printf("state: %s\n", cli_plain(cli, json_text(answer, "state")));
	if (json_text(answer, "node").len > 0)
		printf("node: %s\n", cli_cell(cli, answer, "node"));
	if (json_array_size(json_at(answer, "devices")) > 0)
		printf("devices: %s\n", cli_cell(cli, answer, "devices"));
	print_why(cli, json_at(answer, "why"));
	if (position > 0)
		printf("position: %lld\n", (long long)position);
	if (json_at(answer, "estimate") != NULL)
		printf("estimate: %s to %s\n", cli_plain(cli, json_text(answer, "estimate.from")),
		       cli_plain(cli, json_text(answer, "estimate.to")));
	if (json_at(answer, "duration") != NULL)
		printf("duration: %s s, by %s\n", cli_cell(cli, answer, "duration.seconds"),
		       cli_plain(cli, json_text(answer, "duration.source")));
	if (json_at(answer, "reserved") != NULL)
		printf("reserved: node %s from %s\n",
		       cli_plain(cli, json_text(answer, "reserved.node")),
		       json_at(answer, "reserved.from") != NULL
			       ? cli_plain(cli, json_text(answer, "reserved.from"))
			       : "an unknown time");
	print_queue(cli, json_at(answer, "queue"));
	print_preemption(cli, json_at(answer, "preemption"));
	print_load(cli, json_at(answer, "load"));
	const json_t *reasons = json_at(answer, "reasons");
	if (json_array_size(reasons) > 0)
		cli_print(cli, reasons, reason_columns, ARRAY_COUNT(reason_columns));
}

// NAMESPACE/POD or the id of a request.
int verb_explain(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("explain", "want NAMESPACE/POD or TENANT.NAME, not %d arguments",
				 count);
	const char *slash = strchr(argv[0], '/'), *path;
	if (slash == NULL) {
		path = cli_path(cli, "/v1/requests/", argv[0], "/explain");
	} else {
		struct str tenant = { argv[0], (size_t)(slash - argv[0]) };
		path = cli_path(cli, "/v1/explain?tenant=", arena_cstr(cli->arena, tenant),
				"&pod=");
		path = cli_path(cli, path, slash + 1, "");
	}
	json_t *answer = NULL;
	int code = cli_call(cli, "GET", path, NULL, &answer);
	if (code != CLI_OK)
		return code;
	print_explain(cli, answer);
	json_decref(answer);
	return CLI_OK;
}

// False: it is given and no number.
static bool put_number(json_t *body, const char *key, const char *text)
{
	int64_t number;
	if (text == NULL)
		return true;
	return str_to_i64(str_of(text), &number) &&
	       json_object_set_new(body, key, json_integer(number)) == 0;
}

int verb_quota_check(struct cli *cli, int argc, char **argv)
{
	const char *gpus = NULL, *gpu_milli = NULL, *gpu_memory = NULL, *tenant = NULL, *cpu = NULL,
		   *memory = NULL, *gang = NULL, *mig_profile = NULL;
	struct cli_option options[] = {
		{ "--gpus", &gpus, NULL, 0 },
		{ "--gpu-milli", &gpu_milli, NULL, 0 },
		{ "--gang", &gang, NULL, 0 },
		{ "--mig-profile", &mig_profile, NULL, 0 },
		{ "--gpu-memory", &gpu_memory, NULL, 0 },
		{ "--tenant", &tenant, NULL, 0 },
		{ "--cpu", &cpu, NULL, 0 },
		{ "--memory", &memory, NULL, 0 },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	AUTO(json_decrefp) json_t *body = json_pack("{s:s}", "image", "none.local/none:0");
	if (!put_number(body, "gang", gang))
		return cli_usage("quota check", "--gang N is a number of pods");
	if (!put_number(body, "gpus", gpus) || !put_number(body, "gpu_milli", gpu_milli) ||
	    (gpus == NULL && gpu_milli == NULL && gpu_memory == NULL && mig_profile == NULL))
		return cli_usage("quota check",
				 "--gpus N is needed, or --gpu-milli N, --gpu-memory SIZE or "
				 "--mig-profile NAME");
	if (mig_profile != NULL)
		(void)json_object_set_new(body, "mig_profile", json_string(mig_profile));
	if (gpu_memory != NULL)
		(void)json_object_set_new(body, "gpu_memory", json_string(gpu_memory));
	if (cpu != NULL)
		(void)json_object_set_new(body, "cpu", json_string(cpu));
	if (memory != NULL)
		(void)json_object_set_new(body, "memory", json_string(memory));
	json_t *answer = NULL;
	const char *path = tenant == NULL ? "/v1/quota:check"
					  : cli_path(cli, "/v1/quota:check?tenant=", tenant, "");
	int code = cli_call(cli, "POST", path, body, &answer);
	if (code != CLI_OK)
		return code;
	print_explain(cli, answer);
	json_decref(answer);
	return CLI_OK;
}

static const char LOGS_TYPE[] = "text/plain";

static const char *logs_path(struct cli *cli, const char *id)
{
	return cli_path(cli, "/v1/requests/", id, "/logs");
}

// Whether the request has ended; asked before its output, so that the last output is seen.
static int fetch_ended(struct cli *cli, const char *id, bool *ret_ended, bool *ret_started)
{
	json_t *request = NULL;
	int code = cli_call(cli, "GET", cli_path(cli, "/v1/requests/", id, ""), NULL, &request);
	if (code != CLI_OK)
		return code;
	*ret_ended = json_text(request, "ended").len > 0;
	*ret_started = *ret_ended || json_text(request, "started").len > 0;
	json_decref(request);
	return CLI_OK;
}

// Asks again every second and prints what is new. The output only grows, until a restart of the
// container begins it anew.
static int follow_logs(struct cli *cli, const char *id)
{
	enum { PAUSE_MS = 1000 };
	size_t printed = 0;
	bool has_ended = false, has_started = false;
	struct arena *kept = cli->arena; // each round has its own memory
	while (!has_ended) {
		AUTO(arena_freep) struct arena *round = arena_new(CLI_ARENA_BYTES);
		struct str text = { NULL, 0 };
		if (round == NULL)
			return CLI_FAILED;
		cli->arena = round;
		int code = fetch_ended(cli, id, &has_ended, &has_started);
		if (code == CLI_OK && has_started)
			code = cli_call_text(cli, "GET", logs_path(cli, id), LOGS_TYPE,
					     (struct str){ NULL, 0 }, &text);
		cli->arena = kept;
		if (code != CLI_OK)
			return code;
		if (text.len < printed)
			printed = 0;
		(void)fwrite(text.data + printed, 1, text.len - printed, stdout);
		printed = text.len;
		if (fflush(stdout) != 0)
			return CLI_FAILED;
		if (!has_ended)
			cli_pause(cli, PAUSE_MS);
	}
	return CLI_OK;
}

int verb_logs(struct cli *cli, int argc, char **argv)
{
	bool follow = false;
	struct cli_option options[] = { { "-f", NULL, &follow, 0 },
					{ "--follow", NULL, &follow, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("logs", "want one id (TENANT.NAME), not %d", count);
	if (follow)
		return follow_logs(cli, argv[0]);
	return cli_show_text(cli, logs_path(cli, argv[0]), LOGS_TYPE);
}
