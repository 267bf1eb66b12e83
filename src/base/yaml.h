// SPDX-License-Identifier: Apache-2.0
// YAML to JSON values: kubeconfig, configuration files, manifests. Scalars follow the core
// schema of YAML 1.2 (yaml.org/spec/1.2.2, chapter 10.3): "yes" and "on" are text. What would
// surprise is refused with its line: duplicate and merge keys, aliases (a few lines can grow to
// gigabytes), tags but !!str, !!seq and !!map, .inf and .nan, integers with leading zeros (octal
// for some readers) or beyond 64 bits. Depth, size and number of values are bounded. Results are
// new references of jansson's (AUTO(json_decrefp)).
#pragma once

#include "base/json.h"

enum {
	YAML_INPUT_MAX_BYTES = 32 * 1024 * 1024,
	YAML_DEPTH_MAX = 64,
	YAML_VALUES_MAX = 4 * 1000 * 1000,
};

// All documents of the text in a JSON array; empty documents are left out.
MUST_USE err_status yaml_parse_documents(struct str text, json_t **ret_array, struct err *err);
// The one document of the text; none or several are ERR_INVALID.
MUST_USE err_status yaml_parse(struct str text, json_t **ret_value, struct err *err);
// The line (from 1) of a value by its path, "sharing.mps.resources[1].name"; of a mapping's member
// that of its key. 0: it is not there. For messages about a text that was parsed.
size_t yaml_line_of(struct str text, const char *path);
