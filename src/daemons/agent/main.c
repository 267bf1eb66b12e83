// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/agent.h"
#include "daemons/agent/driver_access.h"
#include "daemons/agent/nvml_child.h"
#include "journal/journal.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <unistd.h>

enum { CONFIG_ARENA_BYTES = 4 * 1024 * 1024, EXIT_USAGE = 2 };

static int print(struct str text)
{
	struct err err;
	if (fs_write_all(STDOUT_FILENO, text, &err) == ERR_OK)
		return 0;
	(void)fprintf(stderr, "gpuaas-agent: %s\n", err.text);
	return 1;
}

static int say_error(const struct err *err, int code)
{
	(void)fprintf(stderr, "gpuaas-agent: %s\n", err->text);
	return code;
}

static int print_journal(int argc, char **argv)
{
	AUTO(buf_done) struct buf out = { .limit = SIZE_MAX / 2 };
	struct err err = { 0 };
	if (argc != 3 || strcmp(argv[2], "--help") == 0) {
		(void)fprintf(stderr, "usage: gpuaas-agent journal FILE|DIR\n");
		return argc == 3 ? 0 : EXIT_USAGE;
	}
	if (journal_print(argv[2], &out, &err) != ERR_OK)
		return say_error(&err, err_exit_code(err.status));
	return print(buf_str(&out));
}

static int run(const struct agent_config *config, struct arena *arena)
{
	static struct agent agent;
	struct err err = { 0 };
	log_init("agent", config->log_level);
	if (agent_start(&agent, config, arena, &err) != ERR_OK) {
		log_err(LOG_ERROR, "the agent does not start", &err);
		return 1;
	}
	log_kv(LOG_INFO, "started", "version", GPUAAS_VERSION, "node", config->node_name, "library",
	       config->nvml_library, NULL);
	loop_run(agent.loop);
	log_kv(LOG_INFO, "stopping", NULL);
	agent_stop(&agent);
	return 0;
}

int main(int argc, char **argv)
{
	// First, and before anything is allocated: this process only calls the driver.
	if ((argc == 3 || argc == 5) && strcmp(argv[1], "--nvml-child") == 0)
		return nvml_child_main(argv[2], argc == 5 ? argv[3] : NULL,
				       argc == 5 ? argv[4] : NULL);
	if (argc >= 2 && strcmp(argv[1], "journal") == 0)
		return print_journal(argc, argv);
	AUTO(arena_freep) struct arena *arena = arena_new(CONFIG_ARENA_BYTES);
	AUTO(buf_done) struct buf out = { 0 };
	struct agent_config config;
	struct err err = { 0 };
	char wish = 0;
	bool is_access = argc >= 2 && strcmp(argv[1], "driver-access") == 0;
	if (arena == NULL)
		return 1;
	if (agent_config_load(arena, argc - is_access, argv + is_access, &config, &wish, &err) !=
	    ERR_OK)
		return say_error(&err, EXIT_USAGE);
	if (wish == 'h')
		return print(str_of(agent_config_help()));
	if (wish == 'v')
		return print(STR("gpuaas-agent " GPUAAS_VERSION "\n"));
	if (wish == 'c') {
		agent_config_print(&config, &out);
		return print(buf_str(&out));
	}
	return is_access ? driver_access_run(&config) : run(&config, arena);
}
