// SPDX-License-Identifier: Apache-2.0
// The verbs, one file a noun; the table in main.c names them for people. Each gets the arguments
// that follow its name and returns the exit code.
#pragma once

#include "cli/cli.h"

int verb_login(struct cli *cli, int argc, char **argv);
int verb_logout(struct cli *cli, int argc, char **argv);
int verb_whoami(struct cli *cli, int argc, char **argv);

int verb_tenant_create(struct cli *cli, int argc, char **argv);
int verb_tenant_list(struct cli *cli, int argc, char **argv);
int verb_tenant_show(struct cli *cli, int argc, char **argv);
int verb_tenant_set(struct cli *cli, int argc, char **argv);
int verb_queue(struct cli *cli, int argc, char **argv);
int verb_tenant_delete(struct cli *cli, int argc, char **argv);
int verb_tenant_members(struct cli *cli, int argc, char **argv);
int verb_tenant_add_member(struct cli *cli, int argc, char **argv);
int verb_tenant_remove_member(struct cli *cli, int argc, char **argv);

// Windows of these texts (NULL after the last one) into the body of a tenant; none leaves it alone,
// but for has_none, which takes all away.
void cli_put_windows(json_t *body, const char *const *texts, bool has_none);
int verb_window_list(struct cli *cli, int argc, char **argv);
int verb_window_create(struct cli *cli, int argc, char **argv);
int verb_window_delete(struct cli *cli, int argc, char **argv);

int verb_token_create(struct cli *cli, int argc, char **argv);
int verb_token_list(struct cli *cli, int argc, char **argv);
int verb_token_revoke(struct cli *cli, int argc, char **argv);

int verb_request_create(struct cli *cli, int argc, char **argv);
int verb_request_show(struct cli *cli, int argc, char **argv);
int verb_ps(struct cli *cli, int argc, char **argv);
int verb_cancel(struct cli *cli, int argc, char **argv);
int verb_explain(struct cli *cli, int argc, char **argv);
int verb_logs(struct cli *cli, int argc, char **argv);
int verb_quota_check(struct cli *cli, int argc, char **argv);

int verb_node_list(struct cli *cli, int argc, char **argv);
int verb_node_show(struct cli *cli, int argc, char **argv);
int verb_node_upgrade(struct cli *cli, int argc, char **argv);
int verb_doctor(struct cli *cli, int argc, char **argv);

int verb_bill_show(struct cli *cli, int argc, char **argv);
int verb_bill_rate(struct cli *cli, int argc, char **argv);
int verb_bill_documents(struct cli *cli, int argc, char **argv);

int verb_audit_verify(struct cli *cli, int argc, char **argv);
int verb_audit_export(struct cli *cli, int argc, char **argv);
