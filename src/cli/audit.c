// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "audit/verify.h"

#include <inttypes.h>
#include <stdio.h>

enum { FILES_MAX = 1024, EXIT_BROKEN = 9 };

int verb_audit_verify(struct cli *cli, int argc, char **argv)
{
	const char *files[FILES_MAX] = { NULL }, *checkpoint = NULL;
	struct cli_option options[] = { { "--file", files, NULL, FILES_MAX },
					{ "--checkpoint", &checkpoint, NULL, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	size_t file_count = 0;
	while (file_count < FILES_MAX && files[file_count] != NULL)
		file_count++;
	for (int i = 0; i < count && file_count < FILES_MAX; i++)
		files[file_count++] = argv[i];
	if (file_count == 0)
		return cli_usage("audit verify", "--file F is needed");
	struct audit_report report = { 0 };
	struct err err = { 0 };
	err_status status = audit_verify(files, file_count, checkpoint, &report, &err);
	if (status == ERR_OK) {
		printf("%" PRId64 " records, the chain is whole%s\n", report.records,
		       report.is_covered ? " and covered by the checkpoint" : "");
		return CLI_OK;
	}
	if (status != ERR_INTERNAL)
		return cli_fail(&err);
	printf("first bad record: %" PRId64 " (line %" PRId64 "): %s: %s\n", report.bad_seq,
	       report.bad_line, audit_fault_name(report.fault), report.text);
	return EXIT_BROKEN;
}

int verb_audit_export(struct cli *cli, int argc, char **argv)
{
	bool checkpoint = false;
	struct cli_option options[] = { { "--checkpoint", NULL, &checkpoint, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	struct str text;
	int code = cli_call_text(cli, "GET",
				 checkpoint ? "/v1/audit/checkpoint" : "/v1/audit/export",
				 checkpoint ? "application/json" : "application/jsonl",
				 (struct str){ NULL, 0 }, &text);
	if (code == CLI_OK)
		(void)fwrite(text.data, 1, text.len, stdout);
	return code;
}
