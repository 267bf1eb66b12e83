// SPDX-License-Identifier: Apache-2.0
// What /metrics shows and to whom: the list of counters and the tokens, read from files again
// when these change. A file that is not right is refused with its name, line and remedy: at the
// start the agent then ends, later what was in force stays. Without a file of tokens everybody
// sees everything; with one a token of a tenant sees the GPUs that this tenant alone holds.
#pragma once

#include "daemons/agent/counters.h"

enum { EXPORTER_TOKENS_MAX = 256, EXPORTER_TENANT_BYTES = 64, EXPORTER_TOKEN_BYTES = 129 };
enum { EXPORTER_TOKEN_MIN = 16, EXPORTER_TOKENS_MAX_BYTES = 64 * 1024, EXPORTER_WHY_BYTES = 400 };

struct exporter_token {
	char tenant[EXPORTER_TENANT_BYTES]; // "*": all
	char token[EXPORTER_TOKEN_BYTES];
};

struct exporter_tokens {
	struct exporter_token items[EXPORTER_TOKENS_MAX];
	size_t count;
};

struct exporter {
	const char *counters_file, *tokens_file; // NULL: none; borrowed
	struct counters counters;
	struct exporter_tokens tokens;
	struct buf counters_seen, tokens_seen; // texts read last, good or not
	bool is_counters_bad, is_tokens_bad;   // the last text was refused, or not to be read
	char counters_why[EXPORTER_WHY_BYTES], tokens_why[EXPORTER_WHY_BYTES]; // logged last
};

MUST_USE err_status exporter_init(struct exporter *exporter, const char *counters_file,
				  const char *tokens_file, struct err *err);
void exporter_done(struct exporter *exporter);
// Looks whether the files changed; logs what is refused, once.
void exporter_look(struct exporter *exporter);
// Who asks, by the value of an Authorization header. False: nobody who may. *ret_tenant is NULL
// for all, else the tenant; borrowed.
MUST_USE bool exporter_allows(const struct exporter *exporter, struct str authorization,
			      const char **ret_tenant);
// "TENANT TOKEN" a line, TENANT "*" for all, '#' comments; ret is untouched on failure.
MUST_USE err_status exporter_tokens_parse(struct str text, struct exporter_tokens *ret,
					  struct err *err);
