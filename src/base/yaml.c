// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

enum { NUMBER_MAX_BYTES = 64 };

// A mapping or sequence that is open. Containers belong to their parent from the start.
struct level {
	json_t *container;
	json_t *key; // text of the pending key of a mapping; owned
};

struct reader {
	yaml_parser_t parser;
	json_t *documents;
	struct level levels[YAML_DEPTH_MAX];
	size_t depth;
	size_t value_count;
	struct err *err;
};

// All helpers return false after they have set the error.
static bool refuse(struct reader *reader, const yaml_event_t *event, const char *what)
{
	(void)err_set(reader->err, ERR_INVALID, "line %zu: %s", event->start_mark.line + 1, what);
	return false;
}

static bool refuse_key(struct reader *reader, const yaml_event_t *event, const char *key)
{
	(void)err_set(reader->err, ERR_INVALID, "line %zu: duplicate key \"%.100s\"",
		      event->start_mark.line + 1, key);
	return false;
}

// ---- scalars

static bool is_one_of(struct str text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (str_eq_c(text, *words))
			return true;
	return false;
}

static size_t count_digits(struct str text, size_t from, const char *digits)
{
	size_t n = 0;
	while (from + n < text.len && strchr(digits, text.data[from + n]) != NULL &&
	       text.data[from + n] != '\0')
		n++;
	return n;
}

static bool has_sign(struct str text)
{
	return text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
}

static bool is_integer(struct str text)
{
	size_t sign = has_sign(text) ? 1 : 0;
	size_t n = count_digits(text, sign, "0123456789");
	return n > 0 && sign + n == text.len;
}

// 0o17 and 0x1F, without a sign.
static int prefixed_base(struct str text)
{
	if (text.len < 3 || text.data[0] != '0')
		return 0;
	if (text.data[1] == 'o' && count_digits(text, 2, "01234567") == text.len - 2)
		return 8;
	if (text.data[1] == 'x' && count_digits(text, 2, "0123456789abcdefABCDEF") == text.len - 2)
		return 16;
	return 0;
}

static bool is_float(struct str text)
{
	size_t at = has_sign(text) ? 1 : 0;
	size_t whole = count_digits(text, at, "0123456789"), part = 0;
	at += whole;
	if (at < text.len && text.data[at] == '.') {
		part = count_digits(text, at + 1, "0123456789");
		at += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (at < text.len && (text.data[at] == 'e' || text.data[at] == 'E')) {
		at++;
		if (at < text.len && (text.data[at] == '-' || text.data[at] == '+'))
			at++;
		size_t digits = count_digits(text, at, "0123456789");
		if (digits == 0)
			return false;
		at += digits;
	}
	return at == text.len;
}

static json_t *integer_value(struct reader *reader, const yaml_event_t *event, struct str text)
{
	int64_t value = 0;
	size_t first = has_sign(text) ? 1 : 0;
	struct str digits = text.data[0] == '+' ? str_slice(text, 1, text.len) : text;
	if (text.len - first > 1 && text.data[first] == '0')
		(void)refuse(reader, event,
			     "a number with leading zeros: write 0o17 for octal, or quote it");
	else if (!str_to_i64(digits, &value))
		(void)refuse(reader, event, "the number does not fit 64 bits");
	else
		return json_integer(value);
	return NULL;
}

static json_t *prefixed_value(struct reader *reader, const yaml_event_t *event, struct str text,
			      int base)
{
	errno = 0;
	long long value = strtoll(text.data + 2, NULL, base);
	if (errno == 0)
		return json_integer(value);
	(void)refuse(reader, event, "the number does not fit 64 bits");
	return NULL;
}

static json_t *float_value(struct reader *reader, const yaml_event_t *event, struct str text)
{
	double value = text.len > NUMBER_MAX_BYTES ? HUGE_VAL : strtod(text.data, NULL);
	if (isfinite(value))
		return json_real(value);
	(void)refuse(reader, event, "the number is out of range");
	return NULL;
}

// A plain scalar by the core schema. libyaml terminates its scalars, so that strtod is safe.
static json_t *plain_value(struct reader *reader, const yaml_event_t *event, struct str text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	static const char *const odd[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
					   "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
					   ".NaN",  ".NAN",  NULL };
	if (is_one_of(text, nulls))
		return json_null();
	if (is_one_of(text, trues))
		return json_true();
	if (is_one_of(text, falses))
		return json_false();
	if (is_integer(text))
		return integer_value(reader, event, text);
	if (prefixed_base(text) != 0)
		return prefixed_value(reader, event, text, prefixed_base(text));
	if (is_float(text))
		return float_value(reader, event, text);
	if (is_one_of(text, odd)) {
		(void)refuse(reader, event, "numbers must be finite");
		return NULL;
	}
	return json_stringn(text.data, text.len);
}

static bool is_core_tag(const yaml_char_t *tag, const char *const *names)
{
	static const struct str prefix = { "tag:yaml.org,2002:", 18 };
	struct str text = str_of((const char *)tag);
	return str_starts(text, prefix) && is_one_of(str_slice(text, prefix.len, text.len), names);
}

static json_t *scalar_value(struct reader *reader, const yaml_event_t *event)
{
	static const char *const text_tags[] = { "str", NULL };
	struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
	const yaml_char_t *tag = event->data.scalar.tag;
	if (str_find_byte(text, '\0', 0) != SIZE_MAX) {
		(void)refuse(reader, event, "text with a NUL character");
		return NULL;
	}
	bool is_text = tag != NULL &&
		       (is_core_tag(tag, text_tags) || strcmp((const char *)tag, "!") == 0);
	if (tag != NULL && !is_text) {
		(void)refuse(reader, event, "scalars take no tag but !!str");
		return NULL;
	}
	if (is_text || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return json_stringn(text.data, text.len);
	return plain_value(reader, event, text);
}

// ---- structure

static const char container_tag[] = "sequences and mappings take no tag but !!seq and !!map";

// Puts a value where it belongs; takes it over, also on failure.
static bool place(struct reader *reader, const yaml_event_t *event, json_t *owned_value)
{
	if (owned_value == NULL) {
		if (reader->err != NULL && reader->err->status == ERR_OK)
			(void)refuse(reader, event, "the text is not valid UTF-8");
		return false;
	}
	int rc = 0;
	if (reader->depth == 0) {
		if (!json_is_null(owned_value))
			rc = json_array_append(reader->documents, owned_value);
		json_decref(owned_value);
		return rc == 0 || refuse(reader, event, "no memory");
	}
	struct level *level = &reader->levels[reader->depth - 1];
	if (json_is_array(level->container))
		return json_array_append_new(level->container, owned_value) == 0 ||
		       refuse(reader, event, "no memory");
	ASSERT(level->key != NULL);
	rc = json_object_set_new(level->container, json_string_value(level->key), owned_value);
	json_decref(level->key);
	level->key = NULL;
	return rc == 0 || refuse(reader, event, "no memory");
}

static bool is_key_next(const struct reader *reader)
{
	const struct level *level = reader->depth == 0 ? NULL : &reader->levels[reader->depth - 1];
	return level != NULL && json_is_object(level->container) && level->key == NULL;
}

static bool take_key(struct reader *reader, const yaml_event_t *event)
{
	struct level *level = &reader->levels[reader->depth - 1];
	struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
	if (str_find_byte(text, '\0', 0) != SIZE_MAX)
		return refuse(reader, event, "a key with a NUL character");
	if (str_eq(text, STR("<<")) && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return refuse(reader, event, "merge keys (<<) are not supported");
	level->key = json_stringn(text.data, text.len);
	if (level->key == NULL)
		return refuse(reader, event, "the key is not valid UTF-8");
	if (json_object_get(level->container, json_string_value(level->key)) != NULL)
		return refuse_key(reader, event, json_string_value(level->key));
	return true;
}

static bool take_scalar(struct reader *reader, const yaml_event_t *event)
{
	if (is_key_next(reader))
		return take_key(reader, event);
	return place(reader, event, scalar_value(reader, event));
}

static bool open_level(struct reader *reader, const yaml_event_t *event, json_t *owned_container)
{
	if (is_key_next(reader)) {
		json_decref(owned_container);
		return refuse(reader, event, "a key must be text");
	}
	if (reader->depth == YAML_DEPTH_MAX) {
		json_decref(owned_container);
		return refuse(reader, event, "nested deeper than 64 levels");
	}
	// The parent keeps it alive while it is open.
	json_t *container = owned_container;
	if (!place(reader, event, owned_container))
		return false;
	reader->levels[reader->depth++] = (struct level){ .container = container };
	return true;
}

static bool open_sequence(struct reader *reader, const yaml_event_t *event)
{
	static const char *const tags[] = { "seq", NULL };
	const yaml_char_t *tag = event->data.sequence_start.tag;
	if (tag != NULL && !is_core_tag(tag, tags))
		return refuse(reader, event, container_tag);
	return open_level(reader, event, json_array());
}

static bool open_mapping(struct reader *reader, const yaml_event_t *event)
{
	static const char *const tags[] = { "map", NULL };
	const yaml_char_t *tag = event->data.mapping_start.tag;
	if (tag != NULL && !is_core_tag(tag, tags))
		return refuse(reader, event, container_tag);
	return open_level(reader, event, json_object());
}

static bool take_event(struct reader *reader, const yaml_event_t *event)
{
	if (++reader->value_count > YAML_VALUES_MAX)
		return refuse(reader, event, "more than 4 million values");
	switch (event->type) {
	case YAML_SCALAR_EVENT: return take_scalar(reader, event);
	case YAML_SEQUENCE_START_EVENT: return open_sequence(reader, event);
	case YAML_MAPPING_START_EVENT: return open_mapping(reader, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		ASSERT(reader->depth > 0 && reader->levels[reader->depth - 1].key == NULL);
		reader->depth--;
		return true;
	case YAML_ALIAS_EVENT: return refuse(reader, event, "aliases (*name) are not supported");
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT: return true;
	}
	return true;
}

static bool read_all(struct reader *reader)
{
	for (;;) {
		yaml_event_t event;
		if (yaml_parser_parse(&reader->parser, &event) == 0) {
			const yaml_parser_t *p = &reader->parser;
			(void)err_set(reader->err, ERR_INVALID, "line %zu: %s",
				      p->problem_mark.line + 1,
				      p->problem == NULL ? "not YAML" : p->problem);
			return false;
		}
		bool is_end = event.type == YAML_STREAM_END_EVENT;
		bool is_good = take_event(reader, &event);
		yaml_event_delete(&event);
		if (is_end || !is_good)
			return is_good;
	}
}

err_status yaml_parse_documents(struct str text, json_t **ret_array, struct err *err)
{
	struct err own_err = { .status = ERR_OK };
	struct reader reader = { .err = &own_err };
	if (text.len > YAML_INPUT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "YAML of %zu bytes, at most %d", text.len,
			       (int)YAML_INPUT_MAX_BYTES);
	reader.documents = json_array();
	if (reader.documents == NULL || yaml_parser_initialize(&reader.parser) == 0) {
		json_decref(reader.documents);
		return err_set(err, ERR_LIMIT, "no memory for a YAML parser");
	}
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser,
				     (const unsigned char *)(text.data == NULL ? "" : text.data),
				     text.len);
	bool is_good = read_all(&reader);
	yaml_parser_delete(&reader.parser);
	for (size_t i = 0; i < reader.depth; i++)
		json_decref(reader.levels[i].key);
	if (!is_good) {
		json_decref(reader.documents);
		return err_set(err, own_err.status, "%s", own_err.text);
	}
	ASSERT(reader.depth == 0);
	*ret_array = reader.documents;
	return ERR_OK;
}

err_status yaml_parse(struct str text, json_t **ret_value, struct err *err)
{
	AUTO(json_decrefp) json_t *documents = NULL;
	err_status status = yaml_parse_documents(text, &documents, err);
	if (status != ERR_OK)
		return status;
	if (json_array_size(documents) != 1)
		return err_set(err, ERR_INVALID, "wanted one YAML document, found %zu",
			       json_array_size(documents));
	*ret_value = json_incref(json_array_get(documents, 0));
	return ERR_OK;
}
