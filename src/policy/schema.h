// SPDX-License-Identifier: Apache-2.0
// Shapes of JSON objects as tables: one table checks what callers send (unknown field, missing
// field, wrong type, out of range; the first fault with its path) and describes the same shape
// in OpenAPI. Pure; tables are constants and nest no deeper than SCHEMA_DEPTH_MAX.
#pragma once

#include "base/json.h"

enum { SCHEMA_DEPTH_MAX = 4, SCHEMA_PATH_BYTES = 128 };

typedef enum schema_type {
	SCHEMA_TEXT,  // one line for people; min, max: length in bytes
	SCHEMA_LABEL, // DNS label; max: length
	SCHEMA_INT,   // min, max: value
	SCHEMA_BOOL,
	SCHEMA_TIME,     // RFC 3339 text
	SCHEMA_DURATION, // "90s", "2h", or whole seconds; min, max: seconds
	SCHEMA_CPU,      // Kubernetes quantity; min, max: milli
	SCHEMA_BYTES,    // Kubernetes quantity; min, max: units
	SCHEMA_MONEY,    // decimal text
	SCHEMA_TEXTS,    // array of text; min, max: count
	SCHEMA_TEXT_MAP, // object of text; min, max: count
	SCHEMA_OBJECT,
	SCHEMA_OBJECTS, // array of objects; min, max: count
	SCHEMA_ANY,     // not looked into
} schema_type;

struct schema_field {
	const char *name;
	schema_type type;
	bool required;
	bool nullable;               // null takes the value away
	int64_t min, max;            // max 0: no bound
	const char *const *values;   // NULL-terminated list of allowed texts, or NULL
	const struct schema *object; // of SCHEMA_OBJECT, SCHEMA_OBJECTS
	const char *doc;
};

struct schema {
	const char *name; // "TenantSpec": component name in OpenAPI
	const char *doc;
	const struct schema_field *fields;
	size_t field_count;
};

#define SCHEMA_FIELDS(array) .fields = (array), .field_count = ARRAY_COUNT(array)

// What is wrong, for programs: code is "unknown_field", "missing_field" or "invalid_field".
struct schema_fault {
	const char *code;
	char path[SCHEMA_PATH_BYTES]; // "quota.gpus"
};

// The first fault in the order of the input's keys, then missing ones in the order of the table.
// err->text says what is wrong and what is allowed. ret_fault may be NULL.
MUST_USE err_status schema_check(const struct schema *schema, const json_t *value,
				 struct schema_fault *ret_fault, struct err *err);

// Values of checked objects. Duration: text or seconds; absent gives the third argument.
int64_t schema_get_duration_s(const json_t *object, const char *name, int64_t absent_s);
int64_t schema_get_cpu_milli(const json_t *object, const char *name, int64_t absent_milli);
int64_t schema_get_bytes(const json_t *object, const char *name, int64_t absent_bytes);

// The shape as JSON schema (2020-12, as OpenAPI 3.1 takes it); a new reference.
json_t *schema_to_openapi(const struct schema *schema);
