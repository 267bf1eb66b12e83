// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

enum { HELP_COLUMN = 26 };

static const struct option *find_long(const struct option *options, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq_c(name, options[i].name))
			return &options[i];
	return NULL;
}

static const struct option *find_letter(const struct option *options, size_t count, char letter)
{
	for (size_t i = 0; i < count; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

static err_status keep(const struct option *options, const struct option *option, const char *value,
		       struct args *args, struct err *err)
{
	size_t i = (size_t)(option - options);
	if (option->is_list) {
		if (args->list_count == ARGS_LIST_MAX)
			return err_set(err, ERR_LIMIT, "--%s stands more than %d times",
				       option->name, ARGS_LIST_MAX);
		args->list_of[args->list_count] = i;
		args->list[args->list_count++] = value;
	} else if (args->values[i] != NULL) {
		return err_set(err, ERR_INVALID, "--%s stands twice", option->name);
	}
	args->values[i] = value;
	return ERR_OK;
}

// One option at argv[*i]; moves *i on when its value is the next word.
static err_status take(const struct option *options, size_t count, char **argv, int argc, int *i,
		       struct args *args, struct err *err)
{
	const char *word = argv[*i], *value = NULL;
	const struct option *option;
	if (word[1] == '-') {
		struct str name = str_of(word + 2);
		size_t equals = str_find_byte(name, '=', 0);
		if (equals != SIZE_MAX)
			value = word + 2 + equals + 1;
		option = find_long(options, count, str_slice(name, 0, equals));
	} else {
		option = find_letter(options, count, word[1]);
		if (word[2] != '\0')
			value = word + 2;
	}
	if (option == NULL)
		return err_set(err, ERR_INVALID, "unknown option %.60s", word);
	if (option->value == NULL && value != NULL)
		return err_set(err, ERR_INVALID, "--%s takes no value", option->name);
	if (option->value != NULL && value == NULL) {
		if (*i + 1 >= argc)
			return err_set(err, ERR_INVALID, "--%s needs %s", option->name,
				       option->value);
		value = argv[++*i];
	}
	return keep(options, option, option->value == NULL ? "" : value, args, err);
}

static err_status check_needed(const struct option *options, size_t count, const struct args *args,
			       struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (options[i].is_needed && args->values[i] == NULL)
			return err_set(err, ERR_INVALID, "--%s %s is needed", options[i].name,
				       options[i].value);
	return ERR_OK;
}

err_status options_parse(const struct option *options, size_t count, int argc, char **argv,
			 struct args *ret_args, struct err *err)
{
	struct args args = { .rest = NULL };
	ASSERT(count <= ARGS_OPTIONS_MAX);
	for (int i = 0; i < argc; i++) {
		err_status status = ERR_OK;
		if (strcmp(argv[i], "--") == 0) {
			args.rest = argv + i + 1;
			args.rest_count = argc - i - 1;
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			args.wants_help = true;
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			status = take(options, count, argv, argc, &i, &args, err);
		else if (args.operand_count == ARGS_OPERANDS_MAX)
			status = err_set(err, ERR_INVALID, "unexpected \"%.60s\"", argv[i]);
		else
			args.operands[args.operand_count++] = argv[i];
		if (status != ERR_OK)
			return status;
	}
	if (!args.wants_help) {
		err_status status = check_needed(options, count, &args, err);
		if (status != ERR_OK)
			return status;
	}
	*ret_args = args;
	return ERR_OK;
}

void options_help(struct buf *out, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *option = &options[i];
		size_t start = out->len;
		if (option->letter != 0)
			buf_printf(out, "  -%c, --%s", option->letter, option->name);
		else
			buf_printf(out, "      --%s", option->name);
		if (option->value != NULL)
			buf_printf(out, " %s", option->value);
		size_t width = out->len - start;
		if (width < HELP_COLUMN)
			buf_printf(out, "%*s", (int)(HELP_COLUMN - width), "");
		else
			buf_printf(out, "\n%*s", HELP_COLUMN, "");
		buf_printf(out, "  %s%s\n", option->help, option->is_needed ? " (needed)" : "");
	}
}
