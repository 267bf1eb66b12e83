// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim queue: options, policies and what is written.
#include "base/money.h"
#include "base/yaml.h"
#include "sched/sched.h"
#include "sim/queue.h"
#include "sim/usage.h"
#include "sys/fs.h"

#include <stdio.h>

enum { EXIT_INVARIANT = 9 };
enum { JOBS_MAX_BYTES = 200 * 1024 * 1024, ARENA_MAX_BYTES = 1024 * 1024 * 1024 };
enum { POLICY_MAX_BYTES = 64 * 1024 };

static bool find_policy(struct str name, struct queue_policy *ret)
{
	static const struct {
		const char *name;
		struct queue_policy policy;
	} POLICIES[] = {
		{ "fifo", { .is_strict = true } },
		{ "priority", { .uses_priority = true } },
		{ "easy", { .heads_per_pool = 1 } },
		{ "default", { .heads_per_pool = 1, .uses_priority = true } },
	};
	for (size_t i = 0; i < ARRAY_COUNT(POLICIES); i++) {
		if (!str_eq_c(name, POLICIES[i].name))
			continue;
		*ret = POLICIES[i].policy;
		return true;
	}
	return false;
}

static bool find_durations(struct str name, queue_durations *ret)
{
	static const char *const NAMES[] = { [QUEUE_DURATIONS_TRUE] = "true",
					     [QUEUE_DURATIONS_NONE] = "none",
					     [QUEUE_DURATIONS_LEARNED] = "learned" };
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		if (!str_eq_c(name, NAMES[i]))
			continue;
		*ret = (queue_durations)i;
		return true;
	}
	return name.len == 0;
}

err_status queue_policy_parse(struct str text, struct queue_policy *ret, struct err *err)
{
	static const char *const KEYS[] = {
		"base", "heads", "priority", "strict", "durations", NULL
	};
	AUTO(json_decrefp) json_t *json = NULL;
	struct queue_policy policy;
	if (yaml_parse(text, &json, err) != ERR_OK || json_only_keys(json, KEYS, err) != ERR_OK)
		return err->status;
	struct str base = json_text(json, "base");
	if (!find_policy(base.len > 0 ? base : STR("default"), &policy))
		return err_set(err, ERR_INVALID, "base: fifo, priority, easy or default");
	int64_t heads = json_int(json, "heads", (int64_t)policy.heads_per_pool);
	if (heads < 0 || heads > SCHED_HEADS_PER_POOL_MAX)
		return err_set(err, ERR_INVALID, "heads: a number from 0 to %d",
			       SCHED_HEADS_PER_POOL_MAX);
	policy.heads_per_pool = (size_t)heads;
	policy.uses_priority = json_bool(json, "priority", policy.uses_priority);
	policy.is_strict = json_bool(json, "strict", policy.is_strict);
	if (!find_durations(json_text(json, "durations"), &policy.durations))
		return err_set(err, ERR_INVALID, "durations: true, none or learned, as text");
	*ret = policy;
	return ERR_OK;
}

err_status queue_policy_load(const char *name_or_path, struct queue_policy *ret, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = POLICY_MAX_BYTES };
	if (find_policy(str_of(name_or_path), ret))
		return ERR_OK;
	if (fs_read(name_or_path, POLICY_MAX_BYTES, &content, err) != ERR_OK)
		return err_wrap(err, "policy (neither built in nor a file that can be read)");
	if (queue_policy_parse(buf_str(&content), ret, err) != ERR_OK)
		return err_wrap(err, "%s", name_or_path);
	return ERR_OK;
}

struct queue_options {
	const char *format, *jobs, *throughput, *policy, *out, *estimates;
	struct queue_cluster cluster;
	int64_t speed_nano;
};

static bool read_cluster(struct str text, struct queue_cluster *ret)
{
	enum { NODES_MAX = 100000 };
	struct str nodes;
	return str_split_next(&text, 'x', &nodes) && str_to_i64(nodes, &ret->nodes) &&
	       str_to_i64(text, &ret->gpus) && ret->nodes >= 1 && ret->nodes <= NODES_MAX &&
	       ret->gpus >= 1 && ret->gpus <= SCHED_DEVICES_MAX;
}

static void put_ms(struct buf *out, int64_t at_ms)
{
	if (at_ms >= 0)
		buf_printf(out, ",%lld.%03lld", (long long)(at_ms / 1000),
			   (long long)(at_ms % 1000));
	else
		buf_put_byte(out, ',');
}

static err_status write_jobs(const char *path, const struct queue_jobs *jobs, struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = JOBS_MAX_BYTES };
	buf_put_c(&out, "job,submit_s,start_s,end_s,gpus,preemptions,reserved_start_s\n");
	for (size_t i = 0; i < jobs->count; i++) {
		const struct queue_job *job = &jobs->items[i];
		buf_put(&out, job->name);
		put_ms(&out, job->submit_ms);
		put_ms(&out, job->start_ms);
		put_ms(&out, job->end_ms);
		buf_printf(&out, ",%lld,0", (long long)job->gpus);
		put_ms(&out, job->reserved_ms);
		buf_put_byte(&out, '\n');
	}
	if (!buf_ok(&out))
		return err_set(err, ERR_LIMIT, "%s would be too large", path);
	return fs_write_atomic(path, buf_str(&out), 0644, err);
}

static err_status write_estimates(const char *path, const struct queue_jobs *jobs, struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = JOBS_MAX_BYTES };
	AUTO(buf_done) struct buf table = { .limit = JOBS_MAX_BYTES };
	buf_put_c(&out, "job,gpus,told_s,from_s,to_s,start_s\n");
	for (size_t i = 0; i < jobs->count; i++) {
		const struct queue_job *job = &jobs->items[i];
		if (job->told_ms < 0)
			continue;
		buf_put(&out, job->name);
		buf_printf(&out, ",%lld", (long long)job->gpus);
		put_ms(&out, job->told_ms);
		put_ms(&out, job->low_ms);
		put_ms(&out, job->high_ms);
		put_ms(&out, job->start_ms);
		buf_put_byte(&out, '\n');
	}
	queue_starts_score(jobs, &table);
	(void)fwrite(table.data, 1, table.len, stdout);
	if (!buf_ok(&out))
		return err_set(err, ERR_LIMIT, "%s would be too large", path);
	return fs_write_atomic(path, buf_str(&out), 0644, err);
}

// What a strict queue could never start would hold up all others, and a job of more GPUs than a
// node has cannot be started by anybody yet.
static size_t drop_too_large(struct queue_jobs *jobs, int64_t gpus)
{
	size_t kept = 0, dropped = 0;
	for (size_t i = 0; i < jobs->count; i++) {
		if (jobs->items[i].gpus <= gpus)
			jobs->items[kept++] = jobs->items[i];
		else
			dropped++;
	}
	jobs->count = kept;
	return dropped;
}

static err_status read_inputs(struct arena *arena, const struct queue_options *options,
			      struct queue_jobs *ret, struct err *err)
{
	AUTO(buf_done) struct buf jobs = { .limit = JOBS_MAX_BYTES };
	AUTO(buf_done) struct buf throughput = { .limit = JOBS_MAX_BYTES };
	if (fs_read(options->jobs, JOBS_MAX_BYTES, &jobs, err) != ERR_OK ||
	    (options->throughput != NULL &&
	     fs_read(options->throughput, JOBS_MAX_BYTES, &throughput, err) != ERR_OK))
		return err->status;
	struct queue_files files = { .format = options->format,
				     .jobs_name = options->jobs,
				     .throughput_name = options->throughput,
				     .jobs = arena_dup(arena, buf_str(&jobs)),
				     .throughput = buf_str(&throughput),
				     .speed_nano = options->speed_nano };
	if (files.jobs.data == NULL)
		return err_set(err, ERR_LIMIT, "%s: no memory", options->jobs);
	return queue_jobs_parse(arena, &files, ret, err);
}

// How well durations are guessed: no cluster, no queue, the trace alone.
static int score_durations(const struct queue_options *options)
{
	struct err err = { .status = ERR_OK };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_MAX_BYTES);
	AUTO(buf_done) struct buf out = { .limit = JOBS_MAX_BYTES };
	struct queue_jobs jobs;
	if (read_inputs(arena, options, &jobs, &err) != ERR_OK) {
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
		return err_exit_code(err.status);
	}
	queue_learn_score(&jobs, &out);
	return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
}

static int run(const struct queue_options *options)
{
	struct err err = { .status = ERR_OK };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_MAX_BYTES);
	struct queue_jobs jobs;
	struct queue_policy policy;
	if (queue_policy_load(options->policy, &policy, &err) == ERR_OK &&
	    read_inputs(arena, options, &jobs, &err) == ERR_OK) {
		policy.estimates = options->estimates != NULL;
		size_t dropped =
			drop_too_large(&jobs, options->cluster.nodes * options->cluster.gpus);
		if (dropped + jobs.left_out > 0)
			(void)fprintf(
				stderr,
				"gpuaas-sim: left out: %zu lines without whole GPUs or times, "
				"%zu jobs of more GPUs than there are\n",
				jobs.left_out, dropped);
		const char *broken = queue_run(&jobs, &options->cluster, &policy);
		if (broken != NULL) {
			(void)fprintf(stderr, "gpuaas-sim: an invariant is broken: %s\n", broken);
			return EXIT_INVARIANT;
		}
		if (write_jobs(options->out, &jobs, &err) == ERR_OK && options->estimates != NULL)
			(void)write_estimates(options->estimates, &jobs, &err);
	}
	if (err.status != ERR_OK)
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
	return err_exit_code(err.status);
}

static const char **text_of(struct queue_options *options, const char *name)
{
	const struct {
		const char *name, **value;
	} TEXTS[] = {
		{ "--format", &options->format }, { "--jobs", &options->jobs },
		{ "--policy", &options->policy }, { "--throughput", &options->throughput },
		{ "--out", &options->out },       { "--estimates", &options->estimates },
	};
	for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
		if (strcmp(name, TEXTS[i].name) == 0)
			return TEXTS[i].value;
	}
	return NULL;
}

int queue_command(int argc, char **argv)
{
	struct queue_options options = { .policy = "default", .speed_nano = MONEY_NANO_PER_UNIT };
	for (int i = 2; i < argc; i += 2) {
		const char **text = text_of(&options, argv[i]), *value = argv[i + 1];
		if (value == NULL)
			return usage_fail("an option lacks its value");
		if (text != NULL)
			*text = value;
		else if (strcmp(argv[i], "--nodes") == 0) {
			if (!read_cluster(str_of(value), &options.cluster))
				return usage_fail("--nodes is nodes x GPUs of each, such as 32x8");
		} else if (strcmp(argv[i], "--speed") == 0) {
			if (!money_parse(str_of(value), &options.speed_nano) ||
			    options.speed_nano < 1)
				return usage_fail("--speed is a number above 0");
		} else {
			return usage_fail("unknown option");
		}
	}
	bool scores = strcmp(argv[1], "durations") == 0;
	if (options.format == NULL || options.jobs == NULL)
		return usage_fail("--format and --jobs are needed");
	if (!scores && (options.out == NULL || options.cluster.nodes == 0))
		return usage_fail("queue needs --format, --jobs, --nodes and --out");
	if (strcmp(options.format, "philly") == 0 && options.throughput == NULL)
		return usage_fail("philly tells steps: --throughput is needed");
	return scores ? score_durations(&options) : run(&options);
}
