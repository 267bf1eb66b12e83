// SPDX-License-Identifier: Apache-2.0
#include "policy/schema.h"

#include <stdio.h>

static void set_int(json_t *object, const char *key, int64_t value)
{
	(void)json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *key, const char *text)
{
	(void)json_object_set_new(object, key, json_string(text));
}

static json_t *typed(const char *type, const char *format)
{
	json_t *object = json_object();
	set_text(object, "type", type);
	if (format != NULL)
		set_text(object, "format", format);
	return object;
}

static void put_bounds(json_t *object, const struct schema_field *field, const char *min_key,
		       const char *max_key)
{
	if (field->min != 0)
		set_int(object, min_key, field->min);
	if (field->max != 0)
		set_int(object, max_key, field->max);
}

static json_t *reference_to(const struct schema *schema)
{
	char text[128];
	(void)snprintf(text, sizeof text, "#/components/schemas/%s", schema->name);
	json_t *object = json_object();
	set_text(object, "$ref", text);
	return object;
}

static json_t *text_of(const struct schema_field *field)
{
	json_t *object = typed("string", NULL);
	put_bounds(object, field, "minLength", "maxLength");
	if (field->type == SCHEMA_LABEL)
		set_text(object, "pattern", "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$");
	return object;
}

static json_t *duration_of(const struct schema_field *field)
{
	json_t *seconds = typed("integer", NULL);
	put_bounds(seconds, field, "minimum", "maximum");
	json_t *object = json_object();
	json_t *any = json_array();
	(void)json_array_append_new(any, seconds);
	json_t *text = typed("string", NULL);
	set_text(text, "pattern", "^([0-9]+[smhd]?)+$");
	(void)json_array_append_new(any, text);
	(void)json_object_set_new(object, "anyOf", any);
	return object;
}

static json_t *array_of(const struct schema_field *field, json_t *items)
{
	json_t *object = typed("array", NULL);
	put_bounds(object, field, "minItems", "maxItems");
	(void)json_object_set_new(object, "items", items);
	return object;
}

static json_t *field_shape(const struct schema_field *field)
{
	json_t *object = NULL;
	switch (field->type) {
	case SCHEMA_TEXT:
	case SCHEMA_LABEL: return text_of(field);
	case SCHEMA_INT:
		object = typed("integer", NULL);
		put_bounds(object, field, "minimum", "maximum");
		return object;
	case SCHEMA_BOOL: return typed("boolean", NULL);
	case SCHEMA_TIME: return typed("string", "date-time");
	case SCHEMA_DURATION: return duration_of(field);
	case SCHEMA_CPU:
	case SCHEMA_BYTES:
		object = typed("string", NULL);
		set_text(object, "pattern", "^[0-9]+(\\.[0-9]+)?([a-zA-Z]{1,2}|[eE][0-9]+)?$");
		return object;
	case SCHEMA_MONEY:
		object = typed("string", NULL);
		set_text(object, "pattern", "^-?[0-9]+(\\.[0-9]{1,9})?$");
		return object;
	case SCHEMA_TEXTS: return array_of(field, typed("string", NULL));
	case SCHEMA_TEXT_MAP:
		object = typed("object", NULL);
		(void)json_object_set_new(object, "additionalProperties", typed("string", NULL));
		return object;
	case SCHEMA_OBJECT: return reference_to(field->object);
	case SCHEMA_OBJECTS: return array_of(field, reference_to(field->object));
	case SCHEMA_ANY: break;
	}
	return json_object();
}

static void put_values(json_t *shape, const struct schema_field *field)
{
	json_t *values = json_array();
	for (size_t i = 0; field->values[i] != NULL; i++)
		(void)json_array_append_new(values, json_string(field->values[i]));
	json_t *target = field->type == SCHEMA_TEXTS ? json_object_get(shape, "items") : shape;
	(void)json_object_set_new(target, "enum", values);
}

static json_t *or_null(json_t *shape)
{
	json_t *object = json_object(), *any = json_array();
	(void)json_array_append_new(any, shape);
	(void)json_array_append_new(any, typed("null", NULL));
	(void)json_object_set_new(object, "anyOf", any);
	return object;
}

json_t *schema_to_openapi(const struct schema *schema)
{
	ASSERT(schema != NULL);
	json_t *properties = json_object(), *required = json_array();
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];
		json_t *shape = field_shape(field);
		if (field->values != NULL)
			put_values(shape, field);
		if (field->nullable)
			shape = or_null(shape);
		set_text(shape, "description", field->doc);
		(void)json_object_set_new(properties, field->name, shape);
		if (field->required)
			(void)json_array_append_new(required, json_string(field->name));
	}
	json_t *object = typed("object", NULL);
	set_text(object, "description", schema->doc);
	(void)json_object_set_new(object, "properties", properties);
	if (json_array_size(required) > 0)
		(void)json_object_set(object, "required", required);
	json_decref(required);
	(void)json_object_set_new(object, "additionalProperties", json_false());
	return object;
}
