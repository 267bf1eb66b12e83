// SPDX-License-Identifier: Apache-2.0
// JSON at the edges: jansson with limits and without surprises (duplicate keys refused, depth
// and size bounded, trailing bytes refused), and typed getters whose errors name the path.
// Ownership is jansson's: json_parse returns a new reference (AUTO(json_decrefp), jansson's own,
// frees it), getters borrow.
#pragma once

#include "base/arena.h"

#include <jansson.h>

enum { JSON_INPUT_MAX_BYTES = 64 * 1024 * 1024 };

MUST_USE err_status json_parse(struct str text, json_t **ret_value, struct err *err);

// Member of an object by a dotted path of plain keys ("metadata.name"); NULL when absent or null.
json_t *json_at(const json_t *object, const char *path);
// Text at the path; empty str when absent or of another type.
struct str json_text(const json_t *object, const char *path);
const char *json_cstr(const json_t *object, const char *path); // "" when absent
int64_t json_int(const json_t *object, const char *path, int64_t absent);
bool json_bool(const json_t *object, const char *path, bool absent);

// Required members: error text "PATH must be a string" and so on.
MUST_USE err_status json_need_text(const json_t *object, const char *path, struct str *ret,
				   struct err *err);
MUST_USE err_status json_need_int(const json_t *object, const char *path, int64_t *ret,
				  struct err *err);
// Refuses members that are not in the NULL-terminated list: "unknown field X, known are ...".
MUST_USE err_status json_only_keys(const json_t *object, const char *const *keys, struct err *err);
// Compact text in the arena, keys in order of insertion; empty str at the limit.
struct str json_dump(struct arena *arena, const json_t *value);
