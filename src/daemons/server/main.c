// SPDX-License-Identifier: Apache-2.0
// gpuaas-server: the API gateway, the resource manager and the ledger in one process.
#include "daemons/server/server.h"
#include "sys/log.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage_text[] =
	"usage: gpuaas-server --config FILE [--log-level LEVEL] [--scheduler-url URL]\n"
	"       gpuaas-server --check-config --config FILE\n"
	"\n"
	"Serves the GPUaaS API over TLS.\n"
	"  --config FILE        YAML or JSON; an unknown key is refused\n"
	"  --check-config       print the configuration with its defaults, and end\n"
	"  --scheduler-url URL  instead of scheduler.url of the file\n"
	"  --log-level LEVEL    debug, info (default), warn or error\n"
	"  --version            print the version, and end\n"
	"  --help               print this, and end\n"
	"Exit codes: 0 ok, 1 failed, 2 usage. SIGTERM ends it, SIGHUP reads the certificate "
	"again.\n";

struct options {
	const char *config_path, *scheduler_url;
	log_level level;
	bool checks_only;
};

static int fail_usage(const char *text)
{
	(void)fprintf(stderr, "gpuaas-server: %s\n%s", text, usage_text);
	return 2;
}

static int print_text(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? 1 : 0;
}

// -1: go on; else the exit code.
static int read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check-config", no_argument, NULL, 'k' },
		{ "scheduler-url", required_argument, NULL, 's' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (option) {
		case 'c': options->config_path = optarg; break;
		case 'k': options->checks_only = true; break;
		case 's': options->scheduler_url = optarg; break;
		case 'l':
			if (!log_level_parse(str_of(optarg), &options->level))
				return fail_usage("--log-level takes debug, info, warn or error");
			break;
		case 'v': return print_text("gpuaas-server " GPUAAS_VERSION "\n");
		case 'h': return print_text(usage_text);
		default: return fail_usage("see above");
		}
	}
	if (optind < argc || options->config_path == NULL)
		return fail_usage(optind < argc ? "there is an argument too many"
						: "--config FILE is missing");
	return -1;
}

static int print_config(const struct server_config *config)
{
	AUTO(buf_done) struct buf out = { .limit = 0 };
	server_config_print(config, &out);
	return buf_ok(&out) ? print_text(out.data) : 1;
}

static void on_hup(void *arg)
{
	struct server *server = *(struct server **)arg;
	struct err err;
	if (server != NULL && tls_server_reload(server->tls, &err) != ERR_OK)
		log_err(LOG_WARN, "certificate cannot be read again; the old one stays", &err);
}

static int serve(const struct server_config *config)
{
	struct loop *loop = NULL;
	struct server *server = NULL;
	struct err err = { 0 };
	char port[16];
	if (loop_new(&loop, &err) != ERR_OK ||
	    loop_handle_signals(loop, on_hup, &server, &err) != ERR_OK ||
	    server_start(loop, config, &server, &err) != ERR_OK) {
		log_err(LOG_ERROR, "cannot start", &err);
		loop_free(loop);
		return err_exit_code(err.status);
	}
	(void)snprintf(port, sizeof port, "%u", (unsigned)http_server_port(server->http));
	log_kv(LOG_INFO, "serving", "listen", config->listen, "port", port, "kubernetes",
	       config->kubernetes, "version", GPUAAS_VERSION, NULL);
	loop_run(loop);
	log_kv(LOG_INFO, "stopping", NULL);
	const int code = server->is_superseded ? 1 : 0;
	server_stop(server);
	loop_free(loop);
	return code;
}

int main(int argc, char **argv)
{
	struct options options = { .level = LOG_INFO };
	struct err err;
	int code = read_options(argc, argv, &options);
	if (code >= 0)
		return code;
	log_init("server", options.level);
	(void)umask(077); // the store and the audit log are nobody else's to read
	AUTO(server_config_done) struct server_config config = { 0 };
	if (server_config_load(options.config_path, &config, &err) != ERR_OK) {
		(void)fprintf(stderr, "gpuaas-server: %s\n", err.text);
		return err.status == ERR_INVALID ? 2 : err_exit_code(err.status);
	}
	if (options.scheduler_url != NULL)
		config.scheduler_url = options.scheduler_url;
	return options.checks_only ? print_config(&config) : serve(&config);
}
