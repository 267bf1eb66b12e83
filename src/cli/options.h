// SPDX-License-Identifier: Apache-2.0
// Command lines by table: each verb lists its options, and parsing, checking and --help come from
// the list. Options are --name VALUE, --name=VALUE or -x VALUE; flags take none; what follows a
// lone -- is left as it is. Values are borrowed from argv.
#pragma once

#include "base/buf.h"

struct option {
	const char *name;  // without dashes
	char letter;       // 0: none
	const char *value; // what the help calls its value; NULL: a flag
	const char *help;
	bool is_needed;
	bool is_list; // may stand several times
};

enum { ARGS_OPTIONS_MAX = 24, ARGS_LIST_MAX = 64, ARGS_OPERANDS_MAX = 4 };

struct args {
	const char *values[ARGS_OPTIONS_MAX]; // by place in the table; "" for a flag that is set
	const char *list[ARGS_LIST_MAX];      // of the list options, in order
	size_t list_of[ARGS_LIST_MAX];        // which option each belongs to
	size_t list_count;
	const char *operands[ARGS_OPERANDS_MAX];
	size_t operand_count;
	char **rest; // after --
	int rest_count;
	bool wants_help;
};

// argv without the words of the verb.
MUST_USE err_status options_parse(const struct option *options, size_t count, int argc, char **argv,
				  struct args *ret_args, struct err *err);
void options_help(struct buf *out, const struct option *options, size_t count);
