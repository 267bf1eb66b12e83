// SPDX-License-Identifier: Apache-2.0
// Finds the parts of JSON text without building values: the items of a long list, a member of an
// object. It cuts the text at the right places of any valid JSON and never reads outside of it;
// it does not validate what it skips, so whoever uses a part parses it (json_parse). Keys are
// compared as written: a key spelled with escapes is another key. All results are borrowed.
#pragma once

#include "base/str.h"

enum { JSON_SCAN_DEPTH_MAX = 512 };

struct json_iter {
	struct str rest;
	char close; // '}' or ']'; 0 when the value was neither
	bool started;
	bool failed; // malformed, cut, or too deep; json_iter_next then ended early
};

// Of an object or array, blanks before it allowed.
struct json_iter json_iter_of(struct str value);
// Next member or item; key is empty in arrays. False at the end or on failure.
bool json_iter_next(struct json_iter *iter, struct str *ret_key, struct str *ret_value);

// Value of a member by a dotted path of plain keys; data NULL when absent or malformed.
struct str json_scan_at(struct str object, const char *path);
// Inside of a string value that has no escapes ("x" -> x); data NULL for anything else.
struct str json_scan_text(struct str value);
