// SPDX-License-Identifier: Apache-2.0
#include "base/timefmt.h"
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

enum { TIMEOUT_MAX_S = 24 * 3600 };

int cli_fail(const struct err *err)
{
	struct err plain = *err; // it may quote what others wrote
	cli_make_plain(plain.text);
	(void)fprintf(stderr, "error: %s\n", plain.text);
	return err_exit_code(plain.status);
}

int cli_usage(const char *verb, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)fputs("error: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fprintf(stderr, "\nsee: gpuaas %s --help\n", verb);
	va_end(args);
	return CLI_USAGE;
}

static bool tell(const struct cli *cli, const char *fmt, const char *word)
{
	(void)fprintf(stderr, "error: %s %.80s\nsee: gpuaas %s --help\n", fmt, word, cli->verb);
	return false;
}

static bool set_format(struct cli *cli, const char *text)
{
	static const char *const names[] = { "table", "json", "csv", "name" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		cli->format = (cli_format)i;
		return true;
	}
	return tell(cli, "the output is table, json, csv or name, not", text);
}

static bool set_timeout(struct cli *cli, const char *text)
{
	int64_t seconds;
	if (!time_parse_duration(str_of(text), &seconds) || seconds < 1 || seconds > TIMEOUT_MAX_S)
		return tell(cli, "--timeout is a duration as 30s, not", text);
	cli->timeout_ns = (uint64_t)seconds * UINT64_C(1000000000);
	return true;
}

// An option is "--name=value", "--name value", "-x value" or "-xvalue"; this is the part of the
// word that names it.
static struct str name_of(const char *word)
{
	struct str name = str_of(word);
	if (word[1] != '-')
		return str_slice(name, 0, 2);
	return str_slice(name, 0, str_find_byte(name, '=', 0));
}

// The value that stands in the word itself, NULL if it does not.
static const char *value_in(const char *word)
{
	size_t length = name_of(word).len;
	if (word[length] == '\0')
		return NULL;
	return word + length + (word[1] == '-' ? 1 : 0);
}

// Options with a value that every verb has.
static bool is_common(struct str name)
{
	static const char *const names[] = { "-o", "--output", "--timeout", "--server", "--ca" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq_c(name, names[i]))
			return true;
	return false;
}

static bool take_common(struct cli *cli, struct str name, const char *value)
{
	if (str_eq_c(name, "--timeout"))
		return set_timeout(cli, value);
	if (str_eq_c(name, "--server"))
		cli->server = value;
	else if (str_eq_c(name, "--ca"))
		cli->ca_file = value;
	else
		return set_format(cli, value);
	return true;
}

static const struct cli_option *find(const struct cli_option *options, size_t count,
				     struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq_c(name, options[i].name))
			return &options[i];
	return NULL;
}

static bool keep(const struct cli *cli, const struct cli_option *option, const char *value)
{
	size_t i = 0;
	while (i < option->max && option->value[i] != NULL)
		i++;
	if (i == max_size(option->max, 1) || (option->max == 0 && *option->value != NULL))
		return tell(cli, "stands too often:", option->name);
	option->value[i] = value;
	return true;
}

// How many letters have to be changed, added or left out to make the one word of the other.
static size_t distance(struct str a, struct str b)
{
	enum { WORD_MAX = 32 };
	size_t row[WORD_MAX + 1];
	if (a.len > WORD_MAX || b.len > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t before = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t changed = before + (a.data[i - 1] != b.data[j - 1]);
			before = row[j];
			row[j] = min_size(changed, 1 + min_size(row[j], row[j - 1]));
		}
	}
	return row[b.len];
}

static bool unknown(const struct cli *cli, struct str name, const struct cli_option *options,
		    size_t count)
{
	enum { SLIP_MAX = 2 };
	const char *closest = NULL;
	size_t best = SLIP_MAX + 1;
	for (size_t i = 0; i < count; i++) {
		size_t far = distance(name, str_of(options[i].name));
		if (far < best) {
			best = far;
			closest = options[i].name;
		}
	}
	(void)fprintf(stderr, "error: unknown option " STR_FMT, STR_ARG(str_slice(name, 0, 80)));
	if (closest != NULL)
		(void)fprintf(stderr, "; did you mean: %s", closest);
	(void)fprintf(stderr, "\nsee: gpuaas %s --help\n", cli->verb);
	return false;
}

// One word that begins with a dash; *i moves on when the value is the next word.
static bool take(struct cli *cli, int argc, char **argv, int *i, const struct cli_option *options,
		 size_t count)
{
	const char *word = argv[*i], *value = value_in(word);
	struct str name = name_of(word);
	const struct cli_option *option = find(options, count, name);
	if (str_eq_c(name, "--no-headers") || (option != NULL && option->flag != NULL)) {
		if (value != NULL)
			return tell(cli, "takes no value:", word);
		*(option == NULL ? &cli->no_headers : option->flag) = true;
		return true;
	}
	if (option == NULL && !is_common(name))
		return unknown(cli, name, options, count);
	if (value == NULL && *i + 1 < argc)
		value = argv[++*i];
	if (value == NULL)
		return tell(cli, "needs a value:", word);
	return option == NULL ? take_common(cli, name, value) : keep(cli, option, value);
}

bool cli_options(struct cli *cli, int argc, char **argv, const struct cli_option *options,
		 size_t option_count, int *ret_count)
{
	int count = 0;
	bool only_words = false;
	for (int i = 0; i < argc; i++) {
		if (!only_words && strcmp(argv[i], "--") == 0)
			only_words = true;
		else if (only_words || argv[i][0] != '-' || argv[i][1] == '\0')
			argv[count++] = argv[i];
		else if (!take(cli, argc, argv, &i, options, option_count))
			return false;
	}
	*ret_count = count;
	return true;
}
