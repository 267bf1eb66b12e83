// SPDX-License-Identifier: Apache-2.0
// What the verbs of `gpuaas` share: the verb table, output, errors and exit codes (0 ok, 1 failed,
// 2 usage, 3 not found, 4 not allowed, 5 conflict, 6 limit, 7 time-out, 8 unreachable, 9 broken
// invariant). Data goes to standard output, everything else to standard error. One file a verb.
#pragma once

#include "base/json.h"
#include "cli/options.h"

enum { EXIT_USAGE = 2, EXIT_INVARIANT = 9 };

typedef enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV } cli_format;

struct cli {
	struct arena *arena; // of this one command
	cli_format format;
	const struct args *args;
	const char *server, *ca_file, *token_file; // as given, NULL: from the configuration
};

struct verb {
	const char *words;    // "bill rate"
	const char *operands; // "NAMESPACE/POD", "" when there are none
	size_t operand_min, operand_max;
	const char *summary; // one line
	const char *details; // more lines for --help, may be ""
	bool is_offline;     // needs no server: has no --server, --ca, --token-file
	const struct option *options;
	size_t option_count;
	int (*run)(struct cli *cli); // exit code
};

// Verbs of each file.
extern const struct verb verb_bill_rate;

// Prints "error: TEXT" and gives the exit code of its status.
int cli_fail(const struct err *err);
int cli_fail_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
void cli_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
// Writes to standard output; exit code 1 when that fails.
int cli_print(struct str text);
// An RFC 3339 instant in whole seconds, or "now".
MUST_USE err_status cli_parse_instant(const char *name, const char *text, int64_t *ret_s,
				      struct err *err);
