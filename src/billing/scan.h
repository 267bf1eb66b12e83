// SPDX-License-Identifier: Apache-2.0
// Reads the tokens of one JSON text in a single pass and without a tree: usage events arrive by
// the million, and a tree of each costs ten times the parse. Strings are borrowed from the text
// unless they hold escapes, then they are decoded into the arena. Every function leaves the
// position at the byte that it could not take.
#pragma once

#include "base/arena.h"

struct scan {
	struct arena *arena;
	struct str text;
	size_t at;
};

void scan_blanks(struct scan *scan);
bool scan_peek(const struct scan *scan, char byte);
// Takes the byte, after blanks, if it is next.
MUST_USE bool scan_take(struct scan *scan, char byte);
MUST_USE bool scan_word(struct scan *scan, struct str word); // null, true, false
// A string in quotes, valid UTF-8 without U+0000.
MUST_USE bool scan_string(struct scan *scan, struct str *ret_text);
// A whole number without fraction, exponent or sign.
MUST_USE bool scan_uint(struct scan *scan, uint64_t *ret_value);
MUST_USE bool scan_at_end(struct scan *scan); // nothing but blanks is left
