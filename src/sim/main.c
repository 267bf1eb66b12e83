// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

#include "base/timefmt.h"
#include "sim/usage.h"

static bool read_rule(const char *name, const char *value, struct sched_preempt_rules *rules)
{
	int64_t number;
	if (strcmp(name, "--preemption") == 0)
		return sched_preemption_parse(str_of(value), &rules->mode);
	if (!usage_number(value, INT32_MAX, &number))
		return false;
	if (strcmp(name, "--min-run") == 0)
		rules->min_run_ms = 1000 * number;
	else if (strcmp(name, "--preemptor-delay") == 0)
		rules->delay_ms = 1000 * number;
	else if (strcmp(name, "--evictions-per-minute") == 0)
		rules->evictions_per_minute = number;
	else if (strcmp(name, "--moves") == 0 && number <= SCHED_MOVES_MAX)
		rules->move.count_max = number;
	else if (strcmp(name, "--move-period") == 0)
		rules->move.period_ms = 1000 * number;
	else if (strcmp(name, "--move-min-run") == 0)
		rules->move.min_run_ms = 1000 * number;
	else if (strcmp(name, "--move-lost") == 0)
		rules->move.lost_max_ms = 1000 * number;
	else
		return false;
	return true;
}

static bool read_queue_rule(const char *name, const char *value, struct run_options *options)
{
	if (strcmp(name, "--priority-weights") == 0)
		return factors_parse(str_of(value), &options->factors);
	if (strcmp(name, "--fair-share-half-life") == 0)
		return time_parse_duration(str_of(value), &options->half_life_s) &&
		       options->half_life_s > 0;
	options->reclaims_deserved = strcmp(value, "deserved") == 0;
	return strcmp(name, "--reclaim") == 0 &&
	       (options->reclaims_deserved || strcmp(value, "guaranteed") == 0);
}

static int run_command(int argc, char **argv)
{
	struct run_options options = { .rules = { .mode = SCHED_PREEMPT_PRIORITY,
						  .move = SCHED_MOVE_RULES } };
	for (int i = 2; i < argc; i++) {
		const char *name = argv[i];
		bool has_value = i + 1 < argc;
		if (name[0] != '-' && options.file == NULL) {
			options.file = name;
		} else if (strcmp(name, "--out") == 0 && has_value) {
			options.out = argv[++i];
		} else if (strcmp(name, "--policy") == 0 && has_value) {
			options.policy = argv[++i];
		} else if (strcmp(name, "--jobs") == 0 && has_value) {
			options.jobs_out = argv[++i];
		} else if (strcmp(name, "--seed") == 0 && has_value) {
			if (!usage_number(argv[++i], INT64_MAX, &options.seed))
				return usage_fail("--seed is a number");
		} else if (strcmp(name, "--bind-failures") == 0 && has_value) {
			if (!usage_number(argv[++i], 1000, &options.bind_failures_permille))
				return usage_fail("--bind-failures is 0 to 1000");
		} else if (strcmp(name, "--evict-failures") == 0 && has_value) {
			if (!usage_number(argv[++i], 1000, &options.evict_failures_permille))
				return usage_fail("--evict-failures is 0 to 1000");
		} else if (has_value && (read_rule(name, argv[i + 1], &options.rules) ||
					 read_queue_rule(name, argv[i + 1], &options))) {
			i++;
		} else {
			return usage_fail("unknown option");
		}
	}
	return options.file == NULL ? usage_fail("which file?") : run_scenario(&options);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage_fail("what is to be done?");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[argc - 1], "--help") == 0) {
		usage_print();
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("gpuaas-sim " GPUAAS_VERSION "\n");
		return 0;
	}
	if (strcmp(argv[1], "run") == 0)
		return run_command(argc, argv);
	if (strcmp(argv[1], "pack") == 0)
		return pack_command(argc, argv);
	if (strcmp(argv[1], "queue") == 0 || strcmp(argv[1], "durations") == 0)
		return queue_command(argc, argv);
	if (strcmp(argv[1], "plot") == 0)
		return plot_command(argc, argv);
	if (strcmp(argv[1], "whatif") == 0)
		return whatif_command(argc, argv);
	if (strcmp(argv[1], "tune") == 0)
		return tune_command(argc, argv);
	if (strcmp(argv[1], "feasible") == 0)
		return argc == 3 ? run_feasible(argv[2]) : usage_fail("feasible takes one file");
	return usage_fail("unknown command");
}
