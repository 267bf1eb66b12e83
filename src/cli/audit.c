// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "audit/verify.h"

#include <inttypes.h>
#include <stdio.h>

enum { FILES_MAX = 1024, EXIT_BROKEN = 9 };

// Whoever wrote the log could have signed a checkpoint with a key of his own.
static void warn_of_key(const struct audit_report *report)
{
	char key[2 * AUDIT_KEY_BYTES + 1];
	audit_public_format(report->key, key);
	(void)fprintf(stderr,
		      "warning: the checkpoint's own key %s was used, which is not pinned; compare "
		      "it with the one that you keep, or give --key\n",
		      key);
}

static int tell(const struct audit_report *report)
{
	if (report->fault == AUDIT_GOOD) {
		printf("%" PRId64 " records, the chain is whole%s\n", report->records,
		       report->is_covered ? " and covered by the checkpoint" : "");
		return CLI_OK;
	}
	printf("first bad record: %" PRId64 " (line %" PRId64 "): %s: %s\n", report->bad_seq,
	       report->bad_line, audit_fault_name(report->fault), report->text);
	return EXIT_BROKEN;
}

int verb_audit_verify(struct cli *cli, int argc, char **argv)
{
	const char *files[FILES_MAX] = { NULL }, *key_text = NULL;
	unsigned char key[AUDIT_KEY_BYTES];
	struct audit_trust trust = { NULL, NULL };
	struct cli_option options[] = { { "--file", files, NULL, FILES_MAX },
					{ "--checkpoint", &trust.checkpoint_path, NULL, 0 },
					{ "--key", &key_text, NULL, 0 } };
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
	if (key_text != NULL && trust.checkpoint_path == NULL)
		return cli_usage("audit verify", "--key is of a checkpoint: --checkpoint C is "
						 "needed");
	if (key_text != NULL && !audit_public_parse(str_of(key_text), key))
		return cli_usage("audit verify", "--key is %d hexadecimal digits",
				 2 * AUDIT_KEY_BYTES);
	trust.key = key_text == NULL ? NULL : key;
	struct audit_report report = { 0 };
	struct err err = { 0 };
	err_status status = audit_verify(files, file_count, &trust, &report, &err);
	if (status != ERR_OK && status != ERR_INTERNAL)
		return cli_fail(&err);
	cli_make_plain(report.text); // it may quote the file
	if (report.is_covered && trust.key == NULL)
		warn_of_key(&report);
	return tell(&report);
}

int verb_audit_export(struct cli *cli, int argc, char **argv)
{
	bool checkpoint = false;
	struct cli_option options[] = { { "--checkpoint", NULL, &checkpoint, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	return cli_show_text(cli, checkpoint ? "/v1/audit/checkpoint" : "/v1/audit/export",
			     checkpoint ? "application/json" : "application/jsonl");
}
