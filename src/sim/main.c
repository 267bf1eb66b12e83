// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

static const char USAGE[] =
	"usage: gpuaas-sim run FILE.yaml [--seed N] [--out FILE.jsonl] [--bind-failures PERMILLE]\n"
	"       gpuaas-sim feasible FILE.yaml\n"
	"       gpuaas-sim --version | --help\n"
	"run plays a file of Kubernetes objects on a virtual clock through the scheduler's own "
	"core\n"
	"and writes one decision a line; it exits 9 when an invariant breaks. Annotations of the\n"
	"objects: sim.gpuaas.io/at (seconds), sim.gpuaas.io/runs-for (seconds) and\n"
	"sim.gpuaas.io/action (create, update, delete). feasible prints for every pod without a\n"
	"node the nodes it may run on.\n";

enum { EXIT_USAGE = 2 };

static int usage(const char *text)
{
	(void)fprintf(stderr, "gpuaas-sim: %s\n%s", text, USAGE);
	return EXIT_USAGE;
}

static bool read_number(const char *text, int64_t max, int64_t *ret_value)
{
	return str_to_i64(str_of(text), ret_value) && *ret_value >= 0 && *ret_value <= max;
}

static int run_command(int argc, char **argv)
{
	struct run_options options = { .file = NULL };
	for (int i = 2; i < argc; i++) {
		const char *name = argv[i];
		bool has_value = i + 1 < argc;
		if (name[0] != '-' && options.file == NULL) {
			options.file = name;
		} else if (strcmp(name, "--out") == 0 && has_value) {
			options.out = argv[++i];
		} else if (strcmp(name, "--seed") == 0 && has_value) {
			if (!read_number(argv[++i], INT64_MAX, &options.seed))
				return usage("--seed is a number");
		} else if (strcmp(name, "--bind-failures") == 0 && has_value) {
			if (!read_number(argv[++i], 1000, &options.bind_failures_permille))
				return usage("--bind-failures is 0 to 1000");
		} else {
			return usage("unknown option");
		}
	}
	return options.file == NULL ? usage("which file?") : run_scenario(&options);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage("what is to be done?");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[argc - 1], "--help") == 0) {
		printf("%s", USAGE);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("gpuaas-sim " GPUAAS_VERSION "\n");
		return 0;
	}
	if (strcmp(argv[1], "run") == 0)
		return run_command(argc, argv);
	if (strcmp(argv[1], "feasible") == 0)
		return argc == 3 ? run_feasible(argv[2]) : usage("feasible takes one file");
	return usage("unknown command");
}
