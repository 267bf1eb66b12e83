// SPDX-License-Identifier: Apache-2.0
#include "billing/book_read.h"

#include "base/money.h"
#include "base/timefmt.h"

enum { ITEMS_MAX = 100000 };

err_status book_array(struct arena *arena, const json_t *object, const char *key, size_t item_bytes,
		      void *ret_items, size_t *ret_count, struct err *err)
{
	const json_t *array = json_at(object, key);
	if (!json_is_array(array))
		return err_set(err, ERR_INVALID, "%s %s", key,
			       array == NULL ? "is missing" : "must be an array");
	size_t count = json_array_size(array);
	if (count > ITEMS_MAX)
		return err_set(err, ERR_LIMIT, "%s has %zu members, at most %d", key, count,
			       ITEMS_MAX);
	void *items = arena_alloc_array(arena, max_size(count, 1), item_bytes);
	if (items == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %s", key);
	memcpy(ret_items, &items, sizeof items);
	*ret_count = count;
	return ERR_OK;
}

err_status book_text(struct arena *arena, const json_t *object, const char *key,
		     struct str *ret_text, struct err *err)
{
	struct str text;
	if (json_need_text(object, key, &text, err) != ERR_OK)
		return err->status;
	if (text.len == 0)
		return err_set(err, ERR_INVALID, "%s must not be empty", key);
	struct str copy = arena_dup(arena, text);
	if (copy.data == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %s", key);
	*ret_text = copy;
	return ERR_OK;
}

err_status book_decimal(const json_t *object, const char *key, const char *absent,
			int64_t *ret_nano, struct err *err)
{
	int64_t nano;
	const json_t *value = json_at(object, key);
	if (value == NULL && absent == NULL)
		return err_set(err, ERR_INVALID, "%s is missing", key);
	struct str text = value == NULL ? str_of(absent) : json_text(object, key);
	if (!money_parse(text, &nano) || nano < 0)
		return err_set(err, ERR_INVALID,
			       "%s must be a decimal in quotes, 0 or more, with at most nine "
			       "digits after the point",
			       key);
	*ret_nano = nano;
	return ERR_OK;
}

err_status book_instant(const json_t *object, const char *key, int64_t *ret_s, struct err *err)
{
	struct str text;
	uint32_t ns;
	if (json_need_text(object, key, &text, err) != ERR_OK)
		return err->status;
	if (!time_parse(text, ret_s, &ns) || ns != 0)
		return err_set(err, ERR_INVALID,
			       "%s must be an instant in whole seconds, as 2026-01-01T00:00:00Z",
			       key);
	return ERR_OK;
}

err_status book_only(const json_t *object, const char *key, const char *text, struct err *err)
{
	if (json_at(object, key) == NULL || str_eq_c(json_text(object, key), text))
		return ERR_OK;
	return err_set(err, ERR_UNSUPPORTED, "%s must be \"%s\", the only one there is", key, text);
}
