// SPDX-License-Identifier: Apache-2.0
// The saved login of the command line, and the body of an answer that is no success.
#include "cli/cli.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 4 * 1024 * 1024 };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct cli cli = { .verb = "any", .arena = arena };
	struct err err = { 0 };
	struct str text = { (const char *)data, size }, code, detail;
	if (cli_config_parse(&cli, text, &err) != ERR_OK)
		ASSERT(err.text[0] != '\0' && cli.server == NULL && cli.token == NULL);
	ASSERT(cli.server == NULL || cli.server[0] != '\0');
	ASSERT(cli.token == NULL || cli.token[0] != '\0');
	cli_problem_read(arena, text, &code, &detail);
	ASSERT(str_is_utf8(code) && str_is_utf8(detail));
	return 0;
}
