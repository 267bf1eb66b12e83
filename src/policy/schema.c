// SPDX-License-Identifier: Apache-2.0
#include "policy/schema.h"

#include "base/money.h"
#include "base/quantity.h"
#include "base/timefmt.h"

#include <inttypes.h>
#include <stdio.h>

struct checker {
	struct schema_fault *fault; // NULL: not asked for
	struct err *err;
	char path[SCHEMA_PATH_BYTES];
};

static err_status check_object(struct checker *checker, const struct schema *schema,
			       const json_t *value, int depth);

static void note_fault(const struct checker *checker, const char *code)
{
	if (checker->fault == NULL)
		return;
	checker->fault->code = code;
	memcpy(checker->fault->path, checker->path, sizeof checker->fault->path);
}

static err_status refuse(const struct checker *checker, const char *must)
{
	note_fault(checker, "invalid_field");
	return err_set(checker->err, ERR_INVALID, "%s must be %s", checker->path, must);
}

static err_status check_range(const struct checker *checker, const struct schema_field *field,
			      int64_t got, const char *what)
{
	if (got >= field->min && (field->max == 0 || got <= field->max))
		return ERR_OK;
	note_fault(checker, "invalid_field");
	if (field->max == 0)
		return err_set(checker->err, ERR_INVALID,
			       "%s: %s must be at least %" PRId64 ", not %" PRId64, checker->path,
			       what, field->min, got);
	return err_set(checker->err, ERR_INVALID,
		       "%s: %s must be %" PRId64 " to %" PRId64 ", not %" PRId64, checker->path,
		       what, field->min, field->max, got);
}

static err_status check_listed(const struct checker *checker, const struct schema_field *field,
			       struct str text)
{
	if (field->values == NULL)
		return ERR_OK;
	char allowed[200] = "";
	size_t used = 0;
	for (size_t i = 0; field->values[i] != NULL; i++) {
		if (str_eq_c(text, field->values[i]))
			return ERR_OK;
		int n = snprintf(allowed + used, sizeof allowed - used, "%s%s", i == 0 ? "" : ", ",
				 field->values[i]);
		used = n < 0 ? used : min_size(used + (size_t)n, sizeof allowed - 1);
	}
	note_fault(checker, "invalid_field");
	return err_set(checker->err, ERR_INVALID, "%s must be one of %s, not \"" STR_FMT "\"",
		       checker->path, allowed, STR_ARG(str_slice(text, 0, 60)));
}

static err_status check_label(const struct checker *checker, const struct schema_field *field,
			      struct str text)
{
	if (!str_is_dns_label(text))
		return refuse(checker, "a DNS label: 1 to 63 of a-z, 0-9 and '-', starting and "
				       "ending with a letter or digit");
	return check_range(checker, field, (int64_t)text.len, "length");
}

// Whether the character at i moves the cursor, ends the line or turns the direction of writing, so
// that what a person reads in a list or a log is not what is there. In UTF-8; C1, U+061C, U+200E/F,
// U+2028..E, U+2066..9.
static bool is_deceptive(struct str text, size_t i)
{
	unsigned char a = (unsigned char)text.data[i];
	unsigned char b = i + 1 < text.len ? (unsigned char)text.data[i + 1] : 0;
	unsigned char c = i + 2 < text.len ? (unsigned char)text.data[i + 2] : 0;
	if (a < ' ' || a == 0x7f)
		return true;
	if (a == 0xc2)
		return b <= 0x9f;
	if (a == 0xd8)
		return b == 0x9c;
	if (a != 0xe2)
		return false;
	return (b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae))) ||
	       (b == 0x81 && c >= 0xa6 && c <= 0xa9);
}

static bool is_honest(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (is_deceptive(text, i))
			return false;
	}
	return true;
}

static err_status check_text(const struct checker *checker, const struct schema_field *field,
			     struct str text)
{
	int64_t number = 0;
	switch (field->type) {
	case SCHEMA_TEXT:
		if (check_range(checker, field, (int64_t)text.len, "length") != ERR_OK)
			return ERR_INVALID;
		if (!is_honest(text))
			return refuse(checker, "text without control characters and marks of the "
					       "direction of writing");
		return check_listed(checker, field, text);
	case SCHEMA_LABEL: return check_label(checker, field, text);
	case SCHEMA_TIME:
		return time_parse(text, &number, NULL)
			       ? ERR_OK
			       : refuse(checker, "an RFC 3339 instant like 2026-02-10T00:00:00Z");
	case SCHEMA_DURATION:
		if (!time_parse_duration(text, &number))
			return refuse(checker, "a duration like \"90s\", \"15m\" or \"2h\"");
		return check_range(checker, field, number, "seconds");
	case SCHEMA_CPU:
		if (!quantity_to_milli(text, &number))
			return refuse(checker, "a quantity of CPUs like \"4\" or \"500m\"");
		return check_range(checker, field, number, "thousandths of a CPU");
	case SCHEMA_BYTES:
		if (!quantity_to_units(text, &number))
			return refuse(checker, "a quantity of bytes like \"16Gi\"");
		return check_range(checker, field, number, "bytes");
	case SCHEMA_MONEY:
		return money_parse(text, &number)
			       ? ERR_OK
			       : refuse(checker, "a decimal number in text like \"12.50\"");
	case SCHEMA_INT:
	case SCHEMA_BOOL:
	case SCHEMA_TEXTS:
	case SCHEMA_TEXT_MAP:
	case SCHEMA_OBJECT:
	case SCHEMA_OBJECTS:
	case SCHEMA_ANY: break;
	}
	return refuse(checker, "of another type than text");
}

static err_status check_texts(struct checker *checker, const struct schema_field *field,
			      const json_t *value)
{
	if (!json_is_array(value))
		return refuse(checker, "an array of texts");
	size_t i;
	json_t *item;
	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item))
			return refuse(checker, "an array of texts");
		struct str text = { json_string_value(item), json_string_length(item) };
		if (check_listed(checker, field, text) != ERR_OK)
			return ERR_INVALID;
	}
	return check_range(checker, field, (int64_t)json_array_size(value), "number of entries");
}

static err_status check_text_map(struct checker *checker, const struct schema_field *field,
				 const json_t *value)
{
	if (!json_is_object(value))
		return refuse(checker, "an object of texts");
	const char *key;
	json_t *item;
	json_object_foreach((json_t *)(uintptr_t)value, key, item)
	{
		if (!json_is_string(item))
			return refuse(checker, "an object of texts");
	}
	return check_range(checker, field, (int64_t)json_object_size(value), "number of entries");
}

static err_status check_objects(struct checker *checker, const struct schema_field *field,
				const json_t *value, int depth)
{
	if (!json_is_array(value))
		return refuse(checker, "an array of objects");
	if (check_range(checker, field, (int64_t)json_array_size(value), "number of entries") !=
	    ERR_OK)
		return ERR_INVALID;
	size_t i;
	json_t *item;
	json_array_foreach(value, i, item)
	{
		if (check_object(checker, field->object, item, depth + 1) != ERR_OK)
			return ERR_INVALID;
	}
	return ERR_OK;
}

static err_status check_number(const struct checker *checker, const struct schema_field *field,
			       const json_t *value)
{
	if (!json_is_integer(value))
		return refuse(checker, "a whole number");
	return check_range(checker, field, (int64_t)json_integer_value(value),
			   field->type == SCHEMA_DURATION ? "seconds" : "value");
}

static err_status check_value(struct checker *checker, const struct schema_field *field,
			      const json_t *value, int depth)
{
	if (field->nullable && json_is_null(value))
		return ERR_OK;
	switch (field->type) {
	case SCHEMA_ANY: return ERR_OK;
	case SCHEMA_INT: return check_number(checker, field, value);
	case SCHEMA_BOOL: return json_is_boolean(value) ? ERR_OK : refuse(checker, "true or false");
	case SCHEMA_TEXTS: return check_texts(checker, field, value);
	case SCHEMA_TEXT_MAP: return check_text_map(checker, field, value);
	case SCHEMA_OBJECT: return check_object(checker, field->object, value, depth + 1);
	case SCHEMA_OBJECTS: return check_objects(checker, field, value, depth);
	case SCHEMA_DURATION:
		if (json_is_integer(value))
			return check_number(checker, field, value);
		break;
	case SCHEMA_TEXT:
	case SCHEMA_LABEL:
	case SCHEMA_TIME:
	case SCHEMA_CPU:
	case SCHEMA_BYTES:
	case SCHEMA_MONEY: break;
	}
	if (!json_is_string(value))
		return refuse(checker, "text");
	struct str text = { json_string_value(value), json_string_length(value) };
	return check_text(checker, field, text);
}

static const struct schema_field *field_find(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->field_count; i++) {
		if (strcmp(schema->fields[i].name, name) == 0)
			return &schema->fields[i];
	}
	return NULL;
}

static err_status refuse_unknown(const struct checker *checker, const struct schema *schema)
{
	char known[256] = "";
	size_t used = 0;
	for (size_t i = 0; i < schema->field_count; i++) {
		int n = snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ",
				 schema->fields[i].name);
		used = n < 0 ? used : min_size(used + (size_t)n, sizeof known - 1);
	}
	note_fault(checker, "unknown_field");
	return err_set(checker->err, ERR_INVALID, "unknown field \"%s\"; known here are %s",
		       checker->path, known);
}

static size_t path_push(struct checker *checker, const char *name)
{
	size_t before = strlen(checker->path);
	(void)snprintf(checker->path + before, sizeof checker->path - before, "%s%s",
		       before == 0 ? "" : ".", name);
	return before;
}

static err_status check_required(struct checker *checker, const struct schema *schema,
				 const json_t *value)
{
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];
		if (!field->required || json_object_get(value, field->name) != NULL)
			continue;
		(void)path_push(checker, field->name);
		note_fault(checker, "missing_field");
		return err_set(checker->err, ERR_INVALID, "%s is missing: %s", checker->path,
			       field->doc);
	}
	return ERR_OK;
}

static err_status check_object(struct checker *checker, const struct schema *schema,
			       const json_t *value, int depth)
{
	ASSERT(schema != NULL);
	ASSERT(depth < SCHEMA_DEPTH_MAX);
	if (!json_is_object(value))
		return refuse(checker, "a JSON object");
	const char *key;
	json_t *member;
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		size_t before = path_push(checker, key);
		const struct schema_field *field = field_find(schema, key);
		if (field == NULL)
			return refuse_unknown(checker, schema);
		if (check_value(checker, field, member, depth) != ERR_OK)
			return ERR_INVALID;
		checker->path[before] = '\0';
	}
	return check_required(checker, schema, value);
}

err_status schema_check(const struct schema *schema, const json_t *value,
			struct schema_fault *ret_fault, struct err *err)
{
	ASSERT(schema != NULL);
	struct checker checker = { .fault = ret_fault, .err = err };
	if (json_is_object(value))
		return check_object(&checker, schema, value, 0);
	note_fault(&checker, "invalid_field");
	return err_set(err, ERR_INVALID, "the body must be a JSON object (%s)", schema->name);
}

int64_t schema_get_duration_s(const json_t *object, const char *name, int64_t absent_s)
{
	int64_t seconds = 0;
	const json_t *value = json_object_get(object, name);
	if (json_is_integer(value))
		return (int64_t)json_integer_value(value);
	return time_parse_duration(json_text(object, name), &seconds) ? seconds : absent_s;
}

int64_t schema_get_cpu_milli(const json_t *object, const char *name, int64_t absent_milli)
{
	int64_t milli = 0;
	return quantity_to_milli(json_text(object, name), &milli) ? milli : absent_milli;
}

int64_t schema_get_bytes(const json_t *object, const char *name, int64_t absent_bytes)
{
	int64_t bytes = 0;
	return quantity_to_units(json_text(object, name), &bytes) ? bytes : absent_bytes;
}
