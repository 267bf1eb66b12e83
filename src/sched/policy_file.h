// SPDX-License-Identifier: Apache-2.0
// A placement policy as a file: YAML with base (a built-in policy, see score.h) and weights by kind
// of pod and feature, whole numbers up to SCORE_WEIGHT_MAX in size; what is not named is that of
// the base, without one 0. Pure. An error names the key and what may stand there.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "sched/score.h"

enum { POLICY_FILE_MAX_BYTES = 64 * 1024 };

MUST_USE err_status policy_file_parse(struct str text, struct score_policy *ret, struct err *err);
// All weights, without a base. The built-in fgd has no weights and cannot be written so.
void policy_file_format(const struct score_policy *policy, struct buf *out);
