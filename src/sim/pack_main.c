// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim pack: options, files in, curve and summary out.
#include "sched/policy_file.h"
#include "sim/pack.h"
#include "sim/tune.h"
#include "sim/usage.h"
#include "sys/fs.h"

#include <stdio.h>

enum { MOVES_MAX = 8 };
enum { LIST_MAX_BYTES = 200 * 1024 * 1024, ARENA_MAX_BYTES = 1024 * 1024 * 1024 };

struct pack_files {
	const char *nodes, *pods, *order, *rank, *policy, *curve, *summary;
	int64_t seed, moves;
};
static err_status read_file(struct arena *arena, const char *path, struct openb_file *ret,
			    struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = LIST_MAX_BYTES };
	if (fs_read(path, LIST_MAX_BYTES, &content, err) != ERR_OK)
		return err->status;
	*ret = (struct openb_file){ path, arena_dup(arena, buf_str(&content)) };
	return ret->text.data != NULL ? ERR_OK : err_set(err, ERR_LIMIT, "%s: no memory", path);
}

err_status pack_policy_load(const char *name_or_path, struct score_policy *ret, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = POLICY_FILE_MAX_BYTES };
	if (score_policy_find(str_of(name_or_path), ret))
		return ERR_OK;
	if (fs_read(name_or_path, POLICY_FILE_MAX_BYTES, &content, err) != ERR_OK)
		return err_wrap(err, "policy (neither built in nor a file that can be read)");
	if (policy_file_parse(buf_str(&content), ret, err) != ERR_OK)
		return err_wrap(err, "%s", name_or_path);
	return ERR_OK;
}

err_status pack_case_load(struct arena *arena, const char *nodes_path, const char *pods_path,
			  struct pack_case *ret, struct err *err)
{
	struct openb_file nodes_file, pods_file;
	struct openb_nodes nodes;
	struct openb_pods pods;
	if (read_file(arena, nodes_path, &nodes_file, err) != ERR_OK ||
	    read_file(arena, pods_path, &pods_file, err) != ERR_OK ||
	    openb_nodes_parse(arena, nodes_file, &nodes, err) != ERR_OK ||
	    openb_pods_parse(arena, pods_file, &pods, err) != ERR_OK)
		return err->status;
	return pack_case_init(arena, nodes, pods, ret, err);
}

static err_status read_order(struct arena *arena, const struct pack_files *files,
			     const struct pack_case *pack_case, struct openb_order *ret,
			     struct err *err)
{
	struct openb_file file;
	const struct openb_draw how = { .seed = files->seed };
	if ((files->order == NULL || files->rank == NULL) &&
	    openb_order_draw(arena, &pack_case->nodes, &pack_case->pods, how, ret, err) != ERR_OK)
		return err->status;
	if (files->order != NULL &&
	    (read_file(arena, files->order, &file, err) != ERR_OK ||
	     openb_order_parse(arena, file, &pack_case->pods, ret, err) != ERR_OK))
		return err->status;
	if (files->rank != NULL &&
	    (read_file(arena, files->rank, &file, err) != ERR_OK ||
	     openb_ranks_parse(arena, file, pack_case->nodes.count, &ret->ranks, err) != ERR_OK))
		return err->status;
	return ERR_OK;
}

static err_status write_curve(const char *path, const struct pack_result *result, struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = 1 << 20 };
	buf_put_c(&out, "arrived_pct,allocated_pct,frag_pct,awake_nodes,watts\n");
	for (int i = 0; i <= PACK_PERCENT_MAX; i++) {
		const struct pack_point *point = &result->curve[i];
		buf_printf(&out, "%d,%.4f,%.4f,%.2f,%.1f\n", i, point->allocated_pct,
			   point->frag_pct, point->awake_nodes, point->watts);
	}
	return fs_write_atomic(path, buf_str(&out), 0644, err);
}

static err_status write_summary(const char *path, const struct pack_result *result, struct err *err)
{
	static const char *const NAMES[PACK_CLASSES] = { "cpu", "share", "one", "two_to_four",
							 "eight" };
	AUTO(buf_done) struct buf out = { .limit = 1 << 20 };
	buf_printf(&out, "{\"decisions\":%llu,\"cpu_us_per_decision\":%.2f,\"moved\":%llu",
		   (unsigned long long)result->decisions,
		   (double)result->cpu_ns / 1e3 / (double)max_i64(1, (int64_t)result->decisions),
		   (unsigned long long)result->moved);
	for (int i = 0; i < PACK_CLASSES; i++)
		buf_printf(&out, "%s\"%s\":%llu", i == 0 ? ",\"failures\":{" : ",", NAMES[i],
			   (unsigned long long)result->failures[i]);
	buf_put_c(&out, "}}\n");
	return fs_write_atomic(path, buf_str(&out), 0644, err);
}

static int run(const struct pack_files *files)
{
	struct err err = { .status = ERR_OK };
	struct pack_options options = { .moves = (uint32_t)files->moves };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_MAX_BYTES);
	struct pack_case pack_case;
	struct openb_order order;
	struct pack_result result;
	if (pack_policy_load(files->policy, &options.policy, &err) == ERR_OK &&
	    pack_case_load(arena, files->nodes, files->pods, &pack_case, &err) == ERR_OK &&
	    read_order(arena, files, &pack_case, &order, &err) == ERR_OK) {
		pack_run(&pack_case, &order, &options, &result);
		if (write_curve(files->curve, &result, &err) == ERR_OK)
			(void)write_summary(files->summary, &result, &err);
	}
	if (err.status != ERR_OK)
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
	return err_exit_code(err.status);
}

// The option's value, or NULL: it takes no text.
static const char **text_of(struct pack_files *files, const char *option)
{
	const struct {
		const char *option, **value;
	} TEXTS[] = {
		{ "--nodes", &files->nodes },     { "--pods", &files->pods },
		{ "--order", &files->order },     { "--rank", &files->rank },
		{ "--policy", &files->policy },   { "--curve", &files->curve },
		{ "--summary", &files->summary },
	};
	for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
		if (strcmp(option, TEXTS[i].option) == 0)
			return TEXTS[i].value;
	}
	return NULL;
}

static bool read_seeds(struct str text, struct tune_options *options)
{
	struct str first;
	return str_split_next(&text, '-', &first) && str_to_i64(first, &options->seed_first) &&
	       str_to_i64(text, &options->seed_last) && options->seed_first >= 0 &&
	       options->seed_last >= options->seed_first &&
	       options->seed_last - options->seed_first < TUNE_SEEDS_MAX;
}

int tune_command(int argc, char **argv)
{
	struct tune_options options = {
		.seed_first = 100, .seed_last = 103, .rounds = 1000, .policy = "default"
	};
	for (int i = 2; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];
		if (value == NULL)
			return usage_fail("an option lacks its value");
		if (strcmp(name, "--nodes") == 0)
			options.nodes = value;
		else if (strcmp(name, "--policy") == 0)
			options.policy = value;
		else if (strcmp(name, "--out") == 0)
			options.out = value;
		else if (strcmp(name, "--pods") == 0 && options.pods_count < TUNE_LISTS_MAX)
			options.pods[options.pods_count++] = value;
		else if ((strcmp(name, "--rounds") != 0 ||
			  !usage_number(value, TUNE_ROUNDS_MAX, &options.rounds)) &&
			 (strcmp(name, "--seed") != 0 ||
			  !usage_number(value, INT64_MAX, &options.seed)) &&
			 (strcmp(name, "--seeds") != 0 || !read_seeds(str_of(value), &options)))
			return usage_fail("unknown option, or a value that is none of it");
	}
	if (options.nodes == NULL || options.pods_count == 0 || options.out == NULL)
		return usage_fail("tune needs --nodes, --pods and --out");
	return tune_run(&options);
}

int pack_command(int argc, char **argv)
{
	struct pack_files files = { .seed = 42, .policy = "default" };
	for (int i = 2; i < argc; i += 2) {
		const char **text = text_of(&files, argv[i]);
		if (i + 1 == argc)
			return usage_fail("an option lacks its value");
		if (text != NULL)
			*text = argv[i + 1];
		else if (strcmp(argv[i], "--seed") == 0) {
			if (!usage_number(argv[i + 1], INT64_MAX, &files.seed))
				return usage_fail("--seed is a number");
		} else if (strcmp(argv[i], "--moves") == 0) {
			if (!usage_number(argv[i + 1], MOVES_MAX, &files.moves))
				return usage_fail("--moves is 0 to 8");
		} else {
			return usage_fail("unknown option");
		}
	}
	if (files.nodes == NULL || files.pods == NULL || files.curve == NULL ||
	    files.summary == NULL)
		return usage_fail("pack needs --nodes, --pods, --curve and --summary");
	return run(&files);
}
