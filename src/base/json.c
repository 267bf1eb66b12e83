// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <stdio.h>

err_status json_parse(struct str text, json_t **ret_value, struct err *err)
{
	ASSERT(ret_value != NULL);
	if (text.len > JSON_INPUT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "JSON of %zu bytes is larger than %d", text.len,
			       JSON_INPUT_MAX_BYTES);
	// jansson 2.14 passes over a NUL behind a number.
	if (str_find_byte(text, '\0', 0) != SIZE_MAX)
		return err_set(err, ERR_INVALID, "not valid JSON: it holds a NUL byte");
	json_error_t at;
	json_t *value = json_loadb(text.data == NULL ? "" : text.data, text.len,
				   JSON_REJECT_DUPLICATES, &at);
	if (value == NULL)
		return err_set(err, ERR_INVALID, "not valid JSON, line %d column %d: %s", at.line,
			       at.column, at.text);
	*ret_value = value;
	return ERR_OK;
}

json_t *json_at(const json_t *object, const char *path)
{
	const json_t *value = object;
	struct str rest = str_of(path), key;
	while (value != NULL && str_split_next(&rest, '.', &key)) {
		char name[128];
		if (key.len >= sizeof name || !json_is_object(value))
			return NULL;
		memcpy(name, key.data, key.len);
		name[key.len] = '\0';
		value = json_object_get(value, name);
	}
	if (value == NULL || json_is_null(value))
		return NULL;
	return (json_t *)(uintptr_t)value; // jansson's getters take no const
}

struct str json_text(const json_t *object, const char *path)
{
	const json_t *value = json_at(object, path);
	if (!json_is_string(value))
		return (struct str){ NULL, 0 };
	return (struct str){ json_string_value(value), json_string_length(value) };
}

const char *json_cstr(const json_t *object, const char *path)
{
	const json_t *value = json_at(object, path);
	return json_is_string(value) ? json_string_value(value) : "";
}

int64_t json_int(const json_t *object, const char *path, int64_t absent)
{
	const json_t *value = json_at(object, path);
	return json_is_integer(value) ? (int64_t)json_integer_value(value) : absent;
}

bool json_bool(const json_t *object, const char *path, bool absent)
{
	const json_t *value = json_at(object, path);
	return json_is_boolean(value) ? json_is_true(value) : absent;
}

err_status json_need_text(const json_t *object, const char *path, struct str *ret, struct err *err)
{
	const json_t *value = json_at(object, path);
	if (!json_is_string(value))
		return err_set(err, ERR_INVALID, "%s %s", path,
			       value == NULL ? "is missing" : "must be a string");
	*ret = (struct str){ json_string_value(value), json_string_length(value) };
	return ERR_OK;
}

err_status json_need_int(const json_t *object, const char *path, int64_t *ret, struct err *err)
{
	const json_t *value = json_at(object, path);
	if (!json_is_integer(value))
		return err_set(err, ERR_INVALID, "%s %s", path,
			       value == NULL ? "is missing" : "must be a whole number");
	*ret = (int64_t)json_integer_value(value);
	return ERR_OK;
}

static err_status unknown_key(const char *key, const char *const *keys, struct err *err)
{
	char known[256] = "";
	size_t used = 0;
	for (size_t i = 0; keys[i] != NULL && used < sizeof known - 1; i++) {
		int n = snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ",
				 keys[i]);
		used += n < 0 ? 0 : (size_t)n;
	}
	return err_set(err, ERR_INVALID, "unknown field \"%.80s\"; known are %s", key, known);
}

err_status json_only_keys(const json_t *object, const char *const *keys, struct err *err)
{
	if (!json_is_object(object))
		return err_set(err, ERR_INVALID, "must be an object");
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		size_t i = 0;
		while (keys[i] != NULL && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i] == NULL)
			return unknown_key(key, keys, err);
	}
	return ERR_OK;
}

struct str json_dump(struct arena *arena, const json_t *value)
{
	enum { FLAGS = JSON_COMPACT | JSON_ENCODE_ANY };
	size_t size = json_dumpb(value, NULL, 0, FLAGS);
	char *text = size == 0 ? NULL : arena_alloc(arena, size + 1);
	if (text == NULL)
		return (struct str){ NULL, 0 };
	(void)json_dumpb(value, text, size, FLAGS);
	return (struct str){ text, size };
}
