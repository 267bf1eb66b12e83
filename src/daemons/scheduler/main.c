// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/dump.h"
#include "daemons/scheduler/evict.h"
#include "daemons/scheduler/lengths.h"
#include "daemons/scheduler/load.h"
#include "daemons/scheduler/tenants.h"
#include "net/http_server.h"
#include "sys/fs.h"
#include "sys/log.h"
#include "sys/mac.h"
#include "sys/random.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	SUFFIX_CHARS = 8,
	EXIT_USAGE = 2,
	OBJECT_ARENA_BYTES = 32 * 1024 * 1024,
	KEY_MAX_BYTES = 4096
};

static const char USAGE[] =
	"usage: gpuaas-scheduler --plan-key FILE [options]\n"
	"       gpuaas-scheduler dump [--kubeconfig in-cluster|FILE]\n"
	"Places pods with schedulerName gpuaas and says why the others wait. dump prints the\n"
	"cluster as gpuaas-sim reads it.\n"
	"  --kubeconfig in-cluster|FILE  the API server (default: KUBECONFIG, else "
	"~/.kube/config)\n"
	"  --plan-key FILE               key of the plan's MAC, shared with the agents\n"
	"  --listen ADDR:PORT            metrics, health, explain (default 0.0.0.0:9401)\n"
	"  --identity NAME               in the Lease (default: the host name)\n"
	"  --lease-namespace NAME        of the Lease gpuaas-scheduler (default gpuaas-system)\n"
	"  --scheduler-name NAME         that pods ask for (default gpuaas)\n"
	"  --policy NAME|FILE            default, pack, spread, energy, topology, fgd, or weights\n"
	"                                as gpuaas-sim tune writes them\n"
	"  --fair-share-half-life TIME   after which half of a tenant's use is forgotten (7d)\n"
	"  --priority-weights LIST       order of waiting pods as a weighted sum: priority, age, "
	"size,\n"
	"                                fair-share, deadline, as age=1000,size=-500; age-max and\n"
	"                                deadline-within in seconds (none: by priority, then age)\n"
	"  --preemption off|priority[,min-run=TIME][,delay=TIME][,per-minute=N][,grace-max=TIME]\n"
	"      [,moves=N][,move-period=TIME][,move-min-run=TIME][,move-lost=GPU-TIME]\n"
	"                                whether pods of lower priority are evicted for higher "
	"ones:\n"
	"                                not before they have run so long, not before one has "
	"waited\n"
	"                                so long, so many at most, with so much grace at most;\n"
	"                                moves: pods with checkpoints that go on elsewhere to "
	"make\n"
	"                                room, so many in a period of each GPU model\n"
	"                                (priority,per-minute=60,grace-max=10m)\n"
	"  --reclaim guaranteed|deserved what tenants may take back from each other (guaranteed)\n"
	"  --durations learned|said      how long pods run that do not say it: as those like them\n"
	"                                did, or unknown (learned)\n"
	"  --load off|agents|URL[,period=TIME][,ca=FILE][,token=FILE]\n"
	"                                where measured loads of GPUs come from: the agents, or a\n"
	"                                Prometheus that scrapes them by DCGM's names (off)\n"
	"  --log-level debug|info|warn|error\n"
	"  --version, --help\n";

static int usage(const char *text)
{
	(void)fprintf(stderr, "gpuaas-scheduler: %s\n%s", text, USAGE);
	return EXIT_USAGE;
}

// -1: go on; else the exit code.
static int read_options(int argc, char **argv, struct options *options)
{
	enum {
		KUBECONFIG = 1,
		PLAN_KEY,
		LISTEN,
		IDENTITY,
		NAMESPACE,
		NAME,
		POLICY,
		HALF_LIFE,
		FACTORS,
		RECLAIM,
		PREEMPTION,
		DURATIONS,
		LOAD,
		LEVEL,
		VERSION,
		HELP
	};
	static const struct option LONG[] = { { "kubeconfig", 1, NULL, KUBECONFIG },
					      { "plan-key", 1, NULL, PLAN_KEY },
					      { "listen", 1, NULL, LISTEN },
					      { "identity", 1, NULL, IDENTITY },
					      { "lease-namespace", 1, NULL, NAMESPACE },
					      { "scheduler-name", 1, NULL, NAME },
					      { "policy", 1, NULL, POLICY },
					      { "fair-share-half-life", 1, NULL, HALF_LIFE },
					      { "priority-weights", 1, NULL, FACTORS },
					      { "reclaim", 1, NULL, RECLAIM },
					      { "preemption", 1, NULL, PREEMPTION },
					      { "durations", 1, NULL, DURATIONS },
					      { "load", 1, NULL, LOAD },
					      { "log-level", 1, NULL, LEVEL },
					      { "version", 0, NULL, VERSION },
					      { "help", 0, NULL, HELP },
					      { NULL, 0, NULL, 0 } };
	const char *level = "info";
	const char **const values[] = { [KUBECONFIG] = &options->kubeconfig,
					[PLAN_KEY] = &options->plan_key_file,
					[LISTEN] = &options->listen,
					[IDENTITY] = &options->identity,
					[NAMESPACE] = &options->lease_namespace,
					[NAME] = &options->scheduler_name,
					[POLICY] = &options->policy,
					[HALF_LIFE] = &options->half_life,
					[FACTORS] = &options->factors,
					[RECLAIM] = &options->reclaim,
					[PREEMPTION] = &options->preemption,
					[DURATIONS] = &options->durations,
					[LOAD] = &options->load,
					[LEVEL] = &level };
	int option;
	while ((option = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
		if (option == HELP || option == VERSION) {
			printf("%s",
			       option == HELP ? USAGE : "gpuaas-scheduler " GPUAAS_VERSION "\n");
			return EXIT_SUCCESS;
		}
		if (option > LEVEL)
			return usage("unknown option");
		*values[option] = optarg;
	}
	options->log_level = str_of(level);
	options->is_dump = optind < argc && strcmp(argv[optind], "dump") == 0;
	if (optind + options->is_dump < argc)
		return usage("unknown argument");
	return -1;
}

static err_status load_key(struct scheduler *s, struct err *err)
{
	const char *file = s->options->plan_key_file;
	s->plan_key.limit = KEY_MAX_BYTES;
	if (fs_read(file, KEY_MAX_BYTES, &s->plan_key, err) != ERR_OK)
		return err_wrap(err, "--plan-key");
	if (s->plan_key.len < MAC_KEY_BYTES_MIN)
		return err_set(err, ERR_INVALID,
			       "--plan-key: %s has %zu bytes, at least %d are needed", file,
			       s->plan_key.len, MAC_KEY_BYTES_MIN);
	return ERR_OK;
}

static err_status load_policy(struct scheduler *s, struct err *err)
{
	const char *name = s->options->policy;
	AUTO(buf_done) struct buf content = { .limit = POLICY_FILE_MAX_BYTES };
	s->has_policy = name != NULL;
	if (name == NULL || score_policy_find(str_of(name), &s->policy))
		return ERR_OK;
	if (fs_read(name, POLICY_FILE_MAX_BYTES, &content, err) != ERR_OK)
		return err_wrap(err, "--policy is neither built in nor a file that can be read");
	if (policy_file_parse(buf_str(&content), &s->policy, err) != ERR_OK)
		return err_wrap(err, "--policy %s", name);
	return ERR_OK;
}

static err_status connect_api(struct scheduler *s, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(OBJECT_ARENA_BYTES);
	struct k8s_config config;
	err_status status = k8s_config_load(arena, s->options->kubeconfig, &config, err);
	if (status != ERR_OK)
		return status;
	return k8s_client_new(s->loop, &config, "gpuaas-scheduler/" GPUAAS_VERSION, &s->client,
			      err);
}

static err_status start(struct scheduler *s, struct err *err)
{
	static const double DECIDE_BOUNDS[] = {
		1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1
	};
	static const double BIND_BOUNDS[] = { 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3 };
	s->counters.decide_s.bounds = DECIDE_BOUNDS;
	s->counters.decide_s.bounds_count = ARRAY_COUNT(DECIDE_BOUNDS);
	s->counters.bind_s.bounds = BIND_BOUNDS;
	s->counters.bind_s.bounds_count = ARRAY_COUNT(BIND_BOUNDS);
	s->arena = arena_new(OBJECT_ARENA_BYTES);
	s->records = map_new(world_random(loop_world(s->loop)));
	s->waits = map_new(0);
	s->queued_end = &s->queued;
	s->wake = loop_timer_new(s->loop, scheduler_wake, s);
	s->later = loop_timer_new(s->loop, record_later, s);
	if (load_key(s, err) != ERR_OK || load_policy(s, err) != ERR_OK ||
	    tenants_open(s, err) != ERR_OK || evict_open(s, err) != ERR_OK ||
	    lengths_open(s, err) != ERR_OK || connect_api(s, err) != ERR_OK)
		return err->status;
	if (load_open(s, err) != ERR_OK)
		return err->status;
	s->events = event_sink_new(s->client, "gpuaas.io/scheduler", s->options->identity);
	if (loop_handle_signals(s->loop, NULL, NULL, err) != ERR_OK ||
	    serve_start(s, err) != ERR_OK)
		return err->status;
	struct lease_config config = { .namespace_ = s->options->lease_namespace,
				       .name = "gpuaas-scheduler",
				       .identity = s->options->identity,
				       .on_acquired = scheduler_on_acquired,
				       .on_lost = scheduler_on_lost,
				       .arg = s };
	s->lease = lease_start(s->client, &config);
	return ERR_OK;
}

static void stop(struct scheduler *s)
{
	scheduler_on_lost(s);
	if (s->lease != NULL)
		lease_stop(s->lease);
	serve_done(s);
	if (s->events != NULL)
		event_sink_free(s->events);
	k8s_client_free(s->client);
	loop_timer_free(s->wake);
	loop_timer_free(s->later);
	map_free(s->records);
	tenants_close(s);
	load_close(s);
	arena_free(s->arena);
	buf_done(&s->plan_key);
	loop_free(s->loop);
}

static int dump(struct scheduler *s)
{
	struct err err = { 0 };
	s->arena = arena_new(OBJECT_ARENA_BYTES);
	bool good = loop_new(&s->loop, &err) == ERR_OK && connect_api(s, &err) == ERR_OK &&
		    dump_print(s, &err) == ERR_OK;
	if (!good)
		(void)fprintf(stderr, "gpuaas-scheduler: %s\n", err.text);
	k8s_client_free(s->client);
	loop_free(s->loop);
	arena_free(s->arena);
	return good ? EXIT_SUCCESS : err_exit_code(err.status);
}

// A container that is restarted is another process; the Lease must tell them apart.
static const char *unique_identity(const char *name)
{
	static char identity[512];
	char suffix[SUFFIX_CHARS + 1];
	random_base62(suffix, SUFFIX_CHARS);
	(void)snprintf(identity, sizeof identity, "%.200s_%s", name, suffix);
	return identity;
}

static int serve(struct scheduler *s)
{
	struct err err = { 0 };
	if (loop_new(&s->loop, &err) != ERR_OK || start(s, &err) != ERR_OK) {
		log_err(LOG_ERROR, "cannot start", &err);
		if (s->loop != NULL)
			stop(s);
		return err_exit_code(err.status);
	}
	loop_run(s->loop);
	log_kv(LOG_INFO, "stopping", NULL);
	stop(s);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static char host[256];
	static struct scheduler s;
	(void)gethostname(host, sizeof host - 1);
	struct options options = { .listen = "0.0.0.0:9401",
				   .identity = host,
				   .lease_namespace = "gpuaas-system",
				   .scheduler_name = "gpuaas",
				   .preemption = "priority,per-minute=60",
				   .durations = "learned" };
	int code = read_options(argc, argv, &options);
	if (code >= 0)
		return code;
	log_level level;
	if (!log_level_parse(options.log_level, &level))
		return usage("--log-level is debug, info, warn or error");
	log_init("scheduler", level);
	s.options = &options;
	if (options.is_dump)
		return dump(&s);
	if (options.plan_key_file == NULL)
		return usage("--plan-key is needed");
	options.identity = unique_identity(options.identity);
	return serve(&s);
}
