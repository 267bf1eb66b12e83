// SPDX-License-Identifier: Apache-2.0
// The command line of gpuaas-sim: what it can do, numbers in options, and the commands that have
// files of their own. Each command returns the exit code of the program.
#pragma once

#include "base/str.h"

int usage_fail(const char *text); // the exit code
void usage_print(void);
MUST_USE bool usage_number(const char *text, int64_t max, int64_t *ret_value); // 0 to max

int pack_command(int argc, char **argv);
int plot_command(int argc, char **argv);
int queue_command(int argc, char **argv);
int tune_command(int argc, char **argv);
int whatif_command(int argc, char **argv);
