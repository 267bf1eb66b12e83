// SPDX-License-Identifier: Apache-2.0
// Inside of dp_config, shared by its files: reading one text of file v1 with messages that name
// line and path. The text is walked again for its line only when something is refused.
#pragma once

#include "daemons/agent/dp_config.h"

enum { DP_KEY_BYTES = 256 };

struct dp_reader {
	struct str text;
	struct dp_config *config;
	struct err *err; // never NULL
};

// ERR_INVALID with "line N: PATH: what".
err_status dp_refuse(const struct dp_reader *reader, const char *path, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
const char *dp_path(char out[DP_KEY_BYTES], const char *above, const char *key);
MUST_USE err_status dp_only_keys(const struct dp_reader *reader, const json_t *object,
				 const char *path, const char *const *keys);
MUST_USE err_status dp_take_bool(const struct dp_reader *reader, const json_t *object,
				 const char *path, const char *key, bool *member);
MUST_USE err_status dp_read_sharing(const struct dp_reader *reader, const json_t *sharing);
