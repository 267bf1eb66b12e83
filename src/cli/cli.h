// SPDX-License-Identifier: Apache-2.0
// What the verbs of `gpuaas` share: options, the saved login, calls to the server, output. All
// functions that can fail tell the person why on standard error and return the exit code of the
// project's table. Data goes to standard output. One command a process, so its arena is never
// freed early.
#pragma once

#include "base/json.h"
#include "net/http_client.h"

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_ARENA_BYTES = 512 * 1024 * 1024,
};

typedef enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV, CLI_NAME } cli_format;

struct cli {
	const char *verb; // its words
	struct arena *arena;
	cli_format format;
	bool no_headers;
	const char *server, *ca_file, *token; // NULL: not known
	const char *token_server; // the saved token goes there only; NULL: wherever asked
	uint64_t timeout_ns;      // of one call
	struct loop *loop;        // made with the first call
	struct tls_ctx *tls;
	struct http_client *client;
};

typedef int cli_verb_fn(struct cli *cli, int argc, char **argv);

struct cli_verb {
	const char *name; // one or two words
	const char *help;
	const char *usage;
	cli_verb_fn *run;
};

// One option of a verb: its value goes to *value, or for a flag true to *flag. With max the
// option may stand so many times, and value is an array of as many.
struct cli_option {
	const char *name; // with its dashes
	const char **value;
	bool *flag;
	size_t max;
};

// Takes the options of the verb and those of all verbs out of argv; what is left stands at its
// beginning, *ret_count words. After -- everything is left as it is. False: usage was told.
MUST_USE bool cli_options(struct cli *cli, int argc, char **argv, const struct cli_option *options,
			  size_t option_count, int *ret_count);
int cli_fail(const struct err *err);
int cli_usage(const char *verb, const char *fmt, ...) PRINTF_LIKE(2, 3);

MUST_USE bool cli_config_load(struct cli *cli);
MUST_USE err_status cli_config_parse(struct cli *cli, struct str text, struct err *err);
MUST_USE err_status cli_config_save(struct cli *cli, struct err *err); // mode 0600
// Control bytes become '?', so that a hostile name cannot move the cursor. NULL allowed.
void cli_make_plain(char *text);
// A plain copy in the arena, for all that others wrote and that goes to the terminal.
const char *cli_plain(struct cli *cli, struct str text);
// Text of a member for people: lists joined by commas, made plain.
const char *cli_cell(struct cli *cli, const json_t *row, const char *path);
struct str cli_read_token(struct cli *cli); // from standard input

// Success is a 2xx answer. A problem is told with its detail and gives its exit code.
MUST_USE int cli_call_text(struct cli *cli, const char *method, const char *path,
			   const char *accept, struct str body, struct str *ret_text);
MUST_USE int cli_call(struct cli *cli, const char *method, const char *path, json_t *body,
		      json_t **ret_answer);
// Code and detail of an answer that is no success; empty when its body has none.
void cli_problem_read(struct arena *arena, struct str body, struct str *ret_code,
		      struct str *ret_detail);
// All items of a list, page after page, as an array.
MUST_USE int cli_call_pages(struct cli *cli, const char *path, json_t **ret_items);
// Waits on the loop, which must exist: after a first call.
void cli_pause(struct cli *cli, uint64_t pause_ms);
// before + text escaped for a URL + after, in the arena.
const char *cli_path(struct cli *cli, const char *before, const char *text, const char *after);

struct cli_column {
	const char *head; // of the table
	const char *path; // of the member, as json_at takes it
};

// An object or an array of them in the form asked for.
void cli_print(struct cli *cli, const json_t *value, const struct cli_column *columns,
	       size_t column_count);
void cli_print_json(const json_t *value);

// What most verbs are: a call or all items of a list, printed; a text as the server gives it.
MUST_USE int cli_show(struct cli *cli, const char *method, const char *path, json_t *body,
		      const struct cli_column *columns, size_t column_count);
MUST_USE int cli_show_pages(struct cli *cli, const char *path, const struct cli_column *columns,
			    size_t column_count);
MUST_USE int cli_show_text(struct cli *cli, const char *path, const char *accept);
