// SPDX-License-Identifier: Apache-2.0
// The few kinds of member that the three documents of the book share. Every function names the
// member in its error; err must not be NULL.
#pragma once

#include "base/json.h"

// Members of an optional or needed array; *ret_items is zeroed memory of count elements.
MUST_USE err_status book_array(struct arena *arena, const json_t *object, const char *key,
			       size_t item_bytes, void *ret_items, size_t *ret_count,
			       struct err *err);
MUST_USE err_status book_text(struct arena *arena, const json_t *object, const char *key,
			      struct str *ret_text, struct err *err);
// A decimal in a string, not negative; absent NULL: the member is needed.
MUST_USE err_status book_decimal(const json_t *object, const char *key, const char *absent,
				 int64_t *ret_nano, struct err *err);
MUST_USE err_status book_instant(const json_t *object, const char *key, int64_t *ret_s,
				 struct err *err);
// The member, if it is there, must be this one text.
MUST_USE err_status book_only(const json_t *object, const char *key, const char *text,
			      struct err *err);
