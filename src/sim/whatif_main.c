// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim whatif: options, both runs, and the table.
#include "sim/whatif.h"

#include "base/money.h"
#include "base/yaml.h"
#include "sim/jobs.h"
#include "sim/usage.h"
#include "sys/fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { DUMP_MAX_BYTES = 32 * 1024 * 1024, ROWS = 11 };

struct whatif_options {
	struct whatif_change change;
	const char *file, *policy, *form;
	int64_t default_s, node_hour_nano;
};

struct row {
	const char *name;
	double (*of)(const struct jobs_sum *sum, double node_hour_price);
};
static double nodes_of(const struct jobs_sum *s, double price) { return (void)price, s->nodes; }
static double gpus_of(const struct jobs_sum *s, double price) { return (void)price, s->gpus; }
static double pods_of(const struct jobs_sum *s, double price)
{
	return (void)price, (double)s->pods;
}
static double started_of(const struct jobs_sum *s, double price)
{
	return (void)price, (double)s->started;
}
static double waiting_of(const struct jobs_sum *s, double price)
{
	return (void)price, (double)s->waiting;
}
static double evicted_of(const struct jobs_sum *s, double price)
{
	return (void)price, (double)s->evicted;
}
static double mean_of(const struct jobs_sum *s, double price)
{
	return (void)price, s->wait_mean_s;
}
static double p95_of(const struct jobs_sum *s, double price) { return (void)price, s->wait_p95_s; }
static double hours_of(const struct jobs_sum *s, double price) { return (void)price, s->hours; }
static double used_of(const struct jobs_sum *s, double price)
{
	(void)price;
	return s->gpu_hours > 0 ? 100 * s->gpu_hours_used / s->gpu_hours : 0;
}
static double cost_of(const struct jobs_sum *s, double price) { return s->node_hours * price; }

static const struct row TABLE[ROWS] = {
	{ "nodes", nodes_of },
	{ "gpus", gpus_of },
	{ "pods_to_start", pods_of },
	{ "pods_started", started_of },
	{ "pods_waiting_at_end", waiting_of },
	{ "pods_evicted", evicted_of },
	{ "wait_mean_s", mean_of },
	{ "wait_p95_s", p95_of },
	{ "hours", hours_of },
	{ "gpus_in_use_pct", used_of },
	{ "cost_of_nodes", cost_of },
};

static void put_documents(const json_t *documents, struct buf *out)
{
	size_t i;
	const json_t *document;
	json_array_foreach(documents, i, document)
	{
		char *text = json_dumps(document, JSON_COMPACT);
		ASSERT(text != NULL);
		buf_put_c(out, "---\n");
		buf_put_c(out, text);
		buf_put_byte(out, '\n');
		free(text);
	}
}

// What the run finds goes to ret; its exit code.
static int play(const json_t *documents, const char *policy, struct jobs_sum *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = DUMP_MAX_BYTES };
	struct scenario scenario;
	put_documents(documents, &text);
	if (!buf_ok(&text))
		return err_exit_code(err_set(err, ERR_LIMIT, "more than 32 MiB of objects"));
	if (scenario_parse(buf_str(&text), &scenario, err) != ERR_OK)
		return err_exit_code(err->status);
	struct jobs *jobs = jobs_new();
	struct run_options options = { .policy = policy,
				       .rules = { .mode = SCHED_PREEMPT_PRIORITY },
				       .jobs = jobs };
	FILE *nowhere = fopen("/dev/null", "we");
	int code = nowhere == NULL ? err_exit_code(err_sys(err, errno, "/dev/null"))
				   : run_on(&scenario, &options, nowhere);
	if (nowhere != NULL)
		(void)fclose(nowhere);
	*ret = jobs_sum_up(jobs);
	jobs_free(jobs);
	scenario_done(&scenario);
	return code;
}

static void print(const struct whatif_options *options, const struct jobs_sum *now,
		  const struct jobs_sum *then)
{
	double price = (double)options->node_hour_nano / MONEY_NANO_PER_UNIT;
	bool is_json = strcmp(options->form, "json") == 0;
	bool is_csv = strcmp(options->form, "csv") == 0;
	if (is_csv)
		printf("measure,now,changed\n");
	else
		printf(is_json ? "{" : "%-20s %14s %14s %14s\n", "", "now", "changed",
		       "difference");
	for (size_t i = 0; i < ROWS; i++) {
		double a = TABLE[i].of(now, price), b = TABLE[i].of(then, price);
		if (is_json)
			printf("%s\"%s\":{\"now\":%.10g,\"changed\":%.10g}", i > 0 ? "," : "",
			       TABLE[i].name, a, b);
		else if (is_csv)
			printf("%s,%.10g,%.10g\n", TABLE[i].name, a, b);
		else
			printf("%-20s %14.6g %14.6g %+14.6g\n", TABLE[i].name, a, b, b - a);
	}
	if (is_json)
		printf("}\n");
}

static err_status load(const char *path, json_t **ret, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = DUMP_MAX_BYTES };
	if (fs_read(path, DUMP_MAX_BYTES, &text, err) != ERR_OK)
		return err->status;
	if (yaml_parse_documents(buf_str(&text), ret, err) != ERR_OK)
		return err_wrap(err, "%s", path);
	return ERR_OK;
}

static int run(const struct whatif_options *options)
{
	struct err err = { .status = ERR_OK };
	AUTO(json_decrefp) json_t *documents = NULL;
	AUTO(json_decrefp) json_t *prepared = NULL;
	struct jobs_sum now, then;
	size_t endless = 0;
	int code = 0;
	if (load(options->file, &documents, &err) == ERR_OK &&
	    whatif_prepare(documents, options->default_s, &prepared, &endless, &err) == ERR_OK) {
		code = play(prepared, NULL, &now, &err);
		if (code == 0 && whatif_apply(prepared, &options->change, &err) == ERR_OK)
			code = play(prepared, options->policy, &then, &err);
	}
	if (err.status != ERR_OK) {
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
		return err_exit_code(err.status);
	}
	if (code != 0)
		return code;
	if (endless > 0)
		(void)fprintf(stderr,
			      "gpuaas-sim: %zu pods say no gpuaas.io/duration and run for ever; "
			      "--duration S says it for them\n",
			      endless);
	print(options, &now, &then);
	return 0;
}

// Takes one option; NULL, or what is wrong.
static const char *take(struct whatif_options *options, const char *name, const char *value)
{
	struct whatif_change *change = &options->change;
	if (strcmp(name, "--add-nodes") == 0)
		return usage_number(value, WHATIF_NODES_MAX, &change->nodes)
			       ? NULL
			       : "--add-nodes is a number up to 10000";
	if (strcmp(name, "--duration") == 0)
		return usage_number(value, INT32_MAX, &options->default_s)
			       ? NULL
			       : "--duration is seconds";
	if (strcmp(name, "--node-hour-price") == 0)
		return money_parse(str_of(value), &options->node_hour_nano)
			       ? NULL
			       : "--node-hour-price is a number";
	if (strcmp(name, "--like") == 0)
		change->like = value;
	else if (strcmp(name, "--policy") == 0)
		options->policy = value;
	else if (strcmp(name, "-o") == 0)
		options->form = value;
	else if (strcmp(name, "--remove-node") == 0 && change->removed_count < WHATIF_NAMES_MAX)
		change->removed[change->removed_count++] = value;
	else if (strcmp(name, "--limit") == 0 && change->limit_count < WHATIF_NAMES_MAX)
		change->limits[change->limit_count++] = value;
	else
		return "unknown option";
	return NULL;
}

int whatif_command(int argc, char **argv)
{
	struct whatif_options options = { .form = "table", .default_s = -1 };
	for (int i = 2; i < argc; i++) {
		if (argv[i][0] != '-' && options.file == NULL) {
			options.file = argv[i];
			continue;
		}
		if (i + 1 == argc)
			return usage_fail("an option lacks its value");
		const char *wrong = take(&options, argv[i], argv[i + 1]);
		if (wrong != NULL)
			return usage_fail(wrong);
		i++;
	}
	if (options.file == NULL)
		return usage_fail("whatif takes a file");
	if ((options.change.nodes > 0) != (options.change.like != NULL))
		return usage_fail("--add-nodes N and --like NODE go together");
	bool is_form = strcmp(options.form, "json") == 0 || strcmp(options.form, "csv") == 0 ||
		       strcmp(options.form, "table") == 0;
	return is_form ? run(&options) : usage_fail("-o is table, csv or json");
}
