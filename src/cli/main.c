// SPDX-License-Identifier: Apache-2.0
// gpuaas: the command line. Finds the verb, parses its options, runs it.
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES = 256 * 1024 * 1024 };

static const struct verb *const verbs[] = {
	&verb_bill_rate,
};

static const struct option output_option = {
	.name = "output", .letter = 'o', .value = "table|json|csv", .help = "Form of the output"
};
static const struct option online_options[] = {
	{ .name = "server",
	  .value = "URL",
	  .help = "Server; else GPUAAS_SERVER, else as at login" },
	{ .name = "ca",
	  .value = "FILE",
	  .help = "CA of the server; else GPUAAS_CA, else as at login" },
	{ .name = "token-file",
	  .value = "FILE",
	  .help = "Token, - for standard input; else GPUAAS_TOKEN, else as at login" },
};

// The options of the verb and those that all verbs have.
static size_t all_options(const struct verb *verb, struct option options[ARGS_OPTIONS_MAX])
{
	size_t count = 0;
	ASSERT(verb->option_count + ARRAY_COUNT(online_options) + 1 <= ARGS_OPTIONS_MAX);
	for (; count < verb->option_count; count++)
		options[count] = verb->options[count];
	options[count++] = output_option;
	for (size_t i = 0; !verb->is_offline && i < ARRAY_COUNT(online_options); i++)
		options[count++] = online_options[i];
	return count;
}

static int print_help(const struct verb *verb)
{
	AUTO(buf_done) struct buf out = { 0 };
	struct option options[ARGS_OPTIONS_MAX];
	size_t count = all_options(verb, options);
	buf_printf(&out, "gpuaas %s%s%s [options]\n\n%s\n", verb->words,
		   verb->operands[0] == '\0' ? "" : " ", verb->operands, verb->summary);
	if (verb->details[0] != '\0')
		buf_printf(&out, "\n%s\n", verb->details);
	buf_put_c(&out, "\nOptions:\n");
	options_help(&out, options, count);
	return cli_print(buf_str(&out));
}

static int print_all_help(void)
{
	AUTO(buf_done) struct buf out = { 0 };
	buf_put_c(&out, "gpuaas: GPUs as a service\n\nCommands (each has --help):\n");
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		buf_printf(&out, "  %-22s %s\n", verbs[i]->words, verbs[i]->summary);
	buf_put_c(&out, "\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, "
			"5 conflict,\n6 quota or limit, 7 time-out, 8 server unreachable, "
			"9 broken invariant\n");
	return cli_print(buf_str(&out));
}

// How many words of argv name the verb; 0 when they do not.
static int words_matched(const struct verb *verb, int argc, char **argv)
{
	struct str rest = str_of(verb->words), word;
	int count = 0;
	while (str_split_next(&rest, ' ', &word)) {
		if (count >= argc || !str_eq_c(word, argv[count]))
			return 0;
		count++;
	}
	return count;
}

static const struct verb *find_verb(int argc, char **argv, int *ret_words)
{
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
		*ret_words = words_matched(verbs[i], argc, argv);
		if (*ret_words > 0)
			return verbs[i];
	}
	return NULL;
}

static int unknown_verb(int argc, char **argv)
{
	AUTO(buf_done) struct buf out = { 0 };
	size_t length = strlen(argv[0]);
	for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
		if (strncmp(verbs[i]->words, argv[0], length) == 0 &&
		    verbs[i]->words[length] == ' ')
			buf_printf(&out, "%s%s", out.len == 0 ? "" : ", ", verbs[i]->words);
	if (out.len > 0 && argc > 1 && strcmp(argv[1], "--help") == 0)
		return print_all_help();
	if (out.len > 0)
		return cli_fail_usage("\"%.60s\" is one of: %s", argv[0], out.data);
	return cli_fail_usage("unknown command \"%.60s\"; see gpuaas --help", argv[0]);
}

static bool parse_format(const char *text, cli_format *ret_format)
{
	static const char *const names[] = { "table", "json", "csv" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		if (text == NULL || strcmp(text, names[i]) != 0)
			continue;
		*ret_format = (cli_format)i;
		return true;
	}
	return text == NULL;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
	struct option options[ARGS_OPTIONS_MAX];
	size_t count = all_options(verb, options), common = verb->option_count;
	struct args args;
	struct err err;
	if (options_parse(options, count, argc, argv, &args, &err) != ERR_OK)
		return cli_fail_usage("%s; see gpuaas %s --help", err.text, verb->words);
	if (args.wants_help)
		return print_help(verb);
	if (args.operand_count < verb->operand_min || args.operand_count > verb->operand_max)
		return cli_fail_usage("gpuaas %s takes %s; see gpuaas %s --help", verb->words,
				      verb->operand_max == 0 ? "no words" : verb->operands,
				      verb->words);
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct cli cli = { .arena = arena, .args = &args };
	if (!parse_format(args.values[common], &cli.format))
		return cli_fail_usage("--output must be table, json or csv");
	if (!verb->is_offline) {
		cli.server = args.values[common + 1];
		cli.ca_file = args.values[common + 2];
		cli.token_file = args.values[common + 3];
	}
	return arena == NULL ? 1 : verb->run(&cli);
}

int main(int argc, char **argv)
{
	int words = 0;
	if (argc < 2) {
		(void)print_all_help();
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return print_all_help();
	if (strcmp(argv[1], "--version") == 0)
		return cli_print(STR("gpuaas " GPUAAS_VERSION "\n"));
	const struct verb *verb = find_verb(argc - 1, argv + 1, &words);
	if (verb == NULL)
		return unknown_verb(argc - 1, argv + 1);
	return run_verb(verb, argc - 1 - words, argv + 1 + words);
}
