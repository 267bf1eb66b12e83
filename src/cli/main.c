// SPDX-License-Identifier: Apache-2.0
// The command line: finds the verb, reads the saved login, runs it.
#include "cli/verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS_MAX = 2, EXIT_INTERRUPTED = 130 };

static const struct cli_verb verbs[] = {
	{ "login", "log in to a server; the token comes on standard input",
	  "gpuaas login --server URL [--ca FILE] < TOKEN", verb_login },
	{ "logout", "forget the saved token", "gpuaas logout", verb_logout },
	{ "whoami", "who the server takes you for", "gpuaas whoami", verb_whoami },
	{ "request create", "ask for GPUs and run a job on them",
	  "gpuaas request create --gpus N --image I [--name N] [--class inference|training|"
	  "experiment]\n    [--gpu-model M]... [--gpu-memory 40Gi] [--cpu 2] [--memory 8Gi] "
	  "[--duration 1h]\n    [--max-duration 2h] [--deadline 2026-12-31T18:00:00Z] [--env "
	  "K=V]... [--tenant T]\n    [-f FILE] [-- "
	  "ARGS...]\n  a share of one GPU instead of --gpus: --gpu-milli 250, --gpu-memory 10Gi, "
	  "or both; one MIG device: --mig-profile 1g.10gb\n  so many pods, each with all of it, "
	  "that start together: --gang N",
	  verb_request_create },
	{ "request list", "requests you may see", "gpuaas request list [--tenant T] [--state S]",
	  verb_ps },
	{ "request show", "one request", "gpuaas request show TENANT.NAME", verb_request_show },
	{ "ps", "requests you may see",
	  "gpuaas ps [--tenant T] [--state S] [--wide]   (--wide: place in the queue and factors)",
	  verb_ps },
	{ "explain", "why something waits, and what would help",
	  "gpuaas explain TENANT.NAME | NAMESPACE/POD", verb_explain },
	{ "logs", "output of a request",
	  "gpuaas logs TENANT.NAME [-f]   (-f: goes on until the request has ended)", verb_logs },
	{ "cancel", "end a request", "gpuaas cancel TENANT.NAME", verb_cancel },
	{ "quota check", "whether a request would fit, wait or be refused",
	  "gpuaas quota check --gpus N|--gpu-milli N|--gpu-memory M|--mig-profile P [--gang N] "
	  "[--cpu C] [--memory M] [--tenant T]",
	  verb_quota_check },
	{ "queue", "what tenants' queues have, should have and had", "gpuaas queue", verb_queue },
	{ "node list", "GPU nodes", "gpuaas node list", verb_node_list },
	{ "node show", "the GPUs of a node", "gpuaas node show NODE", verb_node_show },
	{ "node upgrade", "change a node's driver: cordon, drain, wait, verify, uncordon",
	  "gpuaas node upgrade NODE [--driver VERSION] [--cuda VERSION] [--phase-timeout 1h] "
	  "[--force]\n    [--no-wait]   begins, or goes on where it stopped; exit 1: it stopped, "
	  "with "
	  "the reason\n  gpuaas node upgrade NODE --end   gives it up",
	  verb_node_upgrade },
	{ "doctor", "what is wrong with the GPU nodes, one by one",
	  "gpuaas doctor [NODE] [-o json]   (exit 1: something is wrong)", verb_doctor },
	{ "bill show", "cost of a period by tenant",
	  "gpuaas bill show --from T --to T [--tenant T] [--idle keep|share-per-gpu]",
	  verb_bill_show },
	{ "bill rate", "rate files without a server",
	  "gpuaas bill rate --offline DIR --from T --to T [--idle keep|share-per-gpu]\n\n"
	  "DIR holds events*.jsonl, assets.json, prices.json and pools.json; T is as "
	  "2026-02-10T00:00:00Z,\n--to is not in the period. JSON has whole nano units "
	  "(1e-9 of the currency). Exit code 9 when tenants\nand unallocated do not add up to "
	  "the total cost of ownership.",
	  verb_bill_rate },
	{ "bill document", "show or replace assets, prices or pools",
	  "gpuaas bill document assets|prices|pools [-f FILE]", verb_bill_documents },
	{ "tenant create", "make a tenant",
	  "gpuaas tenant create NAME [--gpus N] [--cpu C] [--memory M] [--pods N] "
	  "[--display-name TEXT]\n"
	  "    [--parent T] [--guaranteed N] [--limit N] [--user-limit N] [--weight N] "
	  "[--priority-ceiling N]\n    [--half-life 7d] [--max-run 24h] "
	  "[--by-model H100=4:8,A100=:2]\n    (the queue: docs/queues.md)",
	  verb_tenant_create },
	{ "tenant list", "tenants you may see", "gpuaas tenant list", verb_tenant_list },
	{ "tenant show", "one tenant", "gpuaas tenant show NAME", verb_tenant_show },
	{ "tenant set", "change the quota, the queue or the name for people",
	  "gpuaas tenant set NAME [--gpus N] [--cpu C] [--memory M] [--pods N] "
	  "[--display-name TEXT]\n"
	  "    [--parent T] [--guaranteed N] [--limit N] [--user-limit N] [--weight N] "
	  "[--priority-ceiling N]\n    [--half-life 7d] [--max-run 24h] "
	  "[--by-model H100=4:8,A100=:2]\n    (the queue; none takes a setting away) "
	  "[--no-queue]\n"
	  "    [--window NAME=GPUS[:MODEL]@FROM/TO]... [--no-windows]   (all its windows: "
	  "docs/windows.md)",
	  verb_tenant_set },
	{ "tenant delete", "delete a tenant and end what runs in it",
	  "gpuaas tenant delete NAME --yes", verb_tenant_delete },
	{ "tenant members", "members of a tenant", "gpuaas tenant members NAME",
	  verb_tenant_members },
	{ "tenant add-member", "add a member or change the role",
	  "gpuaas tenant add-member NAME USER [--role member|tenant-admin]",
	  verb_tenant_add_member },
	{ "tenant remove-member", "remove a member and revoke the member's tokens",
	  "gpuaas tenant remove-member NAME USER", verb_tenant_remove_member },
	{ "window create", "reserve GPUs for a tenant for a time",
	  "gpuaas window create TENANT NAME --gpus N --from T --to T [--model M]   (T is as "
	  "2026-12-07T08:00:00Z)",
	  verb_window_create },
	{ "window delete", "give a window up", "gpuaas window delete TENANT NAME",
	  verb_window_delete },
	{ "window list", "GPUs reserved for tenants for a time", "gpuaas window list [TENANT]",
	  verb_window_list },
	{ "token create", "make an access token; printed once",
	  "gpuaas token create --role ROLE [--user U] [--tenant T] [--expires-in 90d] [--note "
	  "TEXT]",
	  verb_token_create },
	{ "token list", "tokens you may see, without secrets", "gpuaas token list [--tenant T]",
	  verb_token_list },
	{ "token revoke", "end a token at once", "gpuaas token revoke ID", verb_token_revoke },
	{ "audit verify", "check files of the audit log",
	  "gpuaas audit verify --file F... [--checkpoint C [--key HEX]]   (exit 9: bad record)",
	  verb_audit_verify },
	{ "audit export", "records of the audit log, or the newest checkpoint",
	  "gpuaas audit export [--checkpoint]", verb_audit_export },
};

static void print_help(FILE *out)
{
	(void)fprintf(out, "gpuaas: GPUs as a service\n\n"
			   "usage: gpuaas VERB [ARGUMENTS]\n\n");
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		(void)fprintf(out, "  %-22s %s\n", verbs[i].name, verbs[i].help);
	(void)fprintf(
		out, "\nEverywhere: -o table|json|csv|name, --no-headers, --server URL, --ca FILE, "
		     "--timeout 30s, --help\n"
		     "Environment: GPUAAS_SERVER, GPUAAS_CA, GPUAAS_TOKEN\n"
		     "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 conflict, "
		     "6 quota or limit,\n  7 time-out, 8 server unreachable, 9 an invariant is "
		     "broken, 130 interrupted\n");
}

// The verb whose words are the first arguments; *ret_words of them.
static const struct cli_verb *find_verb(int argc, char **argv, int *ret_words)
{
	for (int words = WORDS_MAX; words >= 1; words--) {
		char name[64] = "";
		if (argc < words)
			continue;
		(void)snprintf(name, sizeof name, "%s%s%s", argv[0], words == 2 ? " " : "",
			       words == 2 ? argv[1] : "");
		for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
			if (strcmp(verbs[i].name, name) == 0) {
				*ret_words = words;
				return &verbs[i];
			}
		}
	}
	return NULL;
}

static bool asks_help(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

// Of all verbs of a noun; false if it has none.
static bool print_noun_help(const char *noun)
{
	bool any = false;
	size_t len = strlen(noun);
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
		if (strncmp(verbs[i].name, noun, len) != 0 || verbs[i].name[len] != ' ')
			continue;
		printf("%s%s\n\n  %s\n", any ? "\n" : "", verbs[i].help, verbs[i].usage);
		any = true;
	}
	return any;
}

static int unknown_verb(int argc, char **argv)
{
	if (asks_help(argc, argv) && print_noun_help(argv[0]))
		return CLI_OK;
	(void)fprintf(stderr, "error: unknown verb \"%s%s%s\"", argv[0], argc > 1 ? " " : "",
		      argc > 1 ? argv[1] : "");
	bool any = false;
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
		size_t len = strlen(argv[0]);
		if (strncmp(verbs[i].name, argv[0], len) != 0)
			continue;
		(void)fprintf(stderr, "%s%s", any ? ", " : "; did you mean: ", verbs[i].name);
		any = true;
	}
	(void)fprintf(stderr, "\nsee: gpuaas --help\n");
	return CLI_USAGE;
}

static void interrupted(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_INTERRUPTED);
}

static int run_verb(const struct cli_verb *verb, int argc, char **argv)
{
	struct cli cli = { .verb = verb->name, .timeout_ns = UINT64_C(60000000000) };
	cli.arena = arena_new(CLI_ARENA_BYTES);
	int code = CLI_FAILED;
	if (cli.arena != NULL && cli_config_load(&cli))
		code = verb->run(&cli, argc, argv);
	http_client_free(cli.client);
	tls_ctx_free(cli.tls);
	if (cli.loop != NULL)
		loop_free(cli.loop);
	arena_free(cli.arena);
	if (fflush(stdout) != 0 || ferror(stdout) != 0) {
		if (errno != EPIPE) // a reader that has seen enough needs no message
			(void)fprintf(stderr, "error: standard output could not be written: %s\n",
				      strerror(errno));
		code = CLI_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	(void)signal(SIGINT, interrupted);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_help(argc < 2 ? stderr : stdout);
		return argc < 2 ? CLI_USAGE : CLI_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("gpuaas %s\n", GPUAAS_VERSION);
		return CLI_OK;
	}
	int words = 0;
	const struct cli_verb *verb = find_verb(argc - 1, argv + 1, &words);
	if (verb == NULL)
		return unknown_verb(argc - 1, argv + 1);
	if (asks_help(argc - 1 - words, argv + 1 + words)) {
		printf("%s\n\n  %s\n", verb->help, verb->usage);
		return CLI_OK;
	}
	return run_verb(verb, argc - 1 - words, argv + 1 + words);
}
