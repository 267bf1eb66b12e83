// SPDX-License-Identifier: Apache-2.0
#include "base/json_scan.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static void skip_blanks(struct str *s)
{
	while (s->len > 0 && is_blank(s->data[0]))
		*s = str_slice(*s, 1, s->len);
}

// Bytes of the string that starts s, with both quotes; 0 when it does not end.
static size_t string_length(struct str s)
{
	ASSERT(s.len > 0 && s.data[0] == '"');
	for (size_t i = 1; i < s.len; i++) {
		if (s.data[i] == '\\')
			i++;
		else if (s.data[i] == '"')
			return i + 1;
	}
	return 0;
}

static size_t scalar_length(struct str s)
{
	size_t n = 0;
	while (n < s.len && !is_blank(s.data[n]) && strchr(",:{}[]\"", s.data[n]) == NULL)
		n++;
	return n;
}

// Which brackets are open; true for '{'.
struct brackets {
	bool is_object[JSON_SCAN_DEPTH_MAX];
	size_t depth;
};

static bool take_bracket(struct brackets *open, char c)
{
	if (c == '{' || c == '[') {
		if (open->depth == JSON_SCAN_DEPTH_MAX)
			return false;
		open->is_object[open->depth++] = c == '{';
		return true;
	}
	return open->depth > 0 && open->is_object[--open->depth] == (c == '}');
}

// Bytes of the object or array that starts s; 0 when it does not end well.
static size_t container_length(struct str s)
{
	struct brackets open = { .depth = 0 };
	for (size_t i = 0; i < s.len;) {
		size_t n = 1;
		if (s.data[i] == '"') {
			n = string_length(str_slice(s, i, s.len));
			if (n == 0)
				return 0;
		} else if (s.data[i] != '\0' && strchr("{}[]", s.data[i]) != NULL) {
			if (!take_bracket(&open, s.data[i]))
				return 0;
			if (open.depth == 0)
				return i + 1;
		}
		i += n;
	}
	return 0;
}

static bool take_value(struct str *s, struct str *ret_value)
{
	skip_blanks(s);
	if (s->len == 0)
		return false;
	size_t n;
	if (s->data[0] == '"')
		n = string_length(*s);
	else if (s->data[0] == '{' || s->data[0] == '[')
		n = container_length(*s);
	else
		n = scalar_length(*s);
	if (n == 0)
		return false;
	*ret_value = str_slice(*s, 0, n);
	*s = str_slice(*s, n, s->len);
	return true;
}

static bool take_byte(struct str *s, char byte)
{
	skip_blanks(s);
	if (s->len == 0 || s->data[0] != byte)
		return false;
	*s = str_slice(*s, 1, s->len);
	return true;
}

struct json_iter json_iter_of(struct str value)
{
	struct json_iter iter = { .rest = value };
	if (take_byte(&iter.rest, '{'))
		iter.close = '}';
	else if (take_byte(&iter.rest, '['))
		iter.close = ']';
	else
		iter.failed = true;
	return iter;
}

// "key" and the colon after it.
static bool take_key(struct str *s, struct str *ret_key)
{
	struct str quoted;
	skip_blanks(s);
	if (s->len == 0 || s->data[0] != '"' || !take_value(s, &quoted))
		return false;
	ASSERT(quoted.len >= 2);
	*ret_key = str_slice(quoted, 1, quoted.len - 1);
	return take_byte(s, ':');
}

bool json_iter_next(struct json_iter *iter, struct str *ret_key, struct str *ret_value)
{
	if (iter->failed || iter->close == 0)
		return false;
	if (take_byte(&iter->rest, iter->close)) {
		iter->close = 0;
		return false;
	}
	struct str key = { NULL, 0 }, value = { NULL, 0 };
	bool good = !iter->started || take_byte(&iter->rest, ',');
	iter->started = true;
	if (good && iter->close == '}')
		good = take_key(&iter->rest, &key);
	if (!good || !take_value(&iter->rest, &value)) {
		iter->failed = true;
		return false;
	}
	*ret_key = key;
	*ret_value = value;
	return true;
}

static struct str member(struct str object, struct str name)
{
	struct str key, value;
	struct json_iter iter = json_iter_of(object);
	if (iter.close != '}')
		return (struct str){ NULL, 0 };
	while (json_iter_next(&iter, &key, &value))
		if (str_eq(key, name))
			return value;
	return (struct str){ NULL, 0 };
}

struct str json_scan_at(struct str object, const char *path)
{
	struct str rest = str_of(path), name;
	while (object.data != NULL && str_split_next(&rest, '.', &name))
		object = member(object, name);
	return object;
}

struct str json_scan_text(struct str value)
{
	if (value.len < 2 || value.data[0] != '"' || value.data[value.len - 1] != '"' ||
	    str_find_byte(value, '\\', 0) != SIZE_MAX)
		return (struct str){ NULL, 0 };
	return str_slice(value, 1, value.len - 1);
}
