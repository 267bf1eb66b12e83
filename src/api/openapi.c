// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 description, from the route table and the shapes alone.
#include "api/api.h"
#include "policy/request.h"
#include "policy/tenant.h"

#include <stdio.h>

static void set_text(json_t *object, const char *key, const char *text)
{
	(void)json_object_set_new(object, key, json_string(text));
}

static json_t *under(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	if (value == NULL) {
		value = json_object();
		(void)json_object_set_new(object, key, value);
	}
	return value;
}

static void add_schema(json_t *schemas, const struct schema *schema)
{
	if (json_object_get(schemas, schema->name) != NULL)
		return;
	(void)json_object_set_new(schemas, schema->name, schema_to_openapi(schema));
	for (size_t i = 0; i < schema->field_count; i++) {
		if (schema->fields[i].object != NULL)
			add_schema(schemas, schema->fields[i].object); // constant tables, shallow
	}
}

static json_t *reference(const char *section, const char *name)
{
	char text[128];
	(void)snprintf(text, sizeof text, "#/components/%s/%s", section, name);
	json_t *object = json_object();
	set_text(object, "$ref", text);
	return object;
}

static json_t *content(const char *type, json_t *owned_schema)
{
	json_t *out = json_object(), *media = json_object();
	(void)json_object_set_new(media, "schema", owned_schema);
	(void)json_object_set_new(out, type, media);
	return out;
}

static json_t *list_of(const struct schema *schema)
{
	json_t *out = json_object(), *properties = json_object(), *items = json_object();
	json_t *next = json_object();
	set_text(out, "type", "object");
	set_text(items, "type", "array");
	(void)json_object_set_new(items, "items", reference("schemas", schema->name));
	set_text(next, "type", "string");
	set_text(next, "description",
		 "Give it as page_token for the next page; absent at the end.");
	(void)json_object_set_new(properties, "items", items);
	(void)json_object_set_new(properties, "next_page_token", next);
	(void)json_object_set_new(out, "properties", properties);
	return out;
}

static json_t *parameter(const char *name, const char *in, const struct route_query *query)
{
	json_t *out = json_object(), *schema = json_object();
	set_text(out, "name", name);
	set_text(out, "in", in);
	(void)json_object_set_new(out, "required", json_boolean(query == NULL));
	const char *type = "string";
	if (query != NULL && query->type == SCHEMA_INT)
		type = "integer";
	if (query != NULL && query->type == SCHEMA_BOOL)
		type = "boolean";
	set_text(schema, "type", type);
	if (query != NULL && query->type == SCHEMA_TIME)
		set_text(schema, "format", "date-time");
	if (query != NULL)
		set_text(out, "description", query->doc);
	(void)json_object_set_new(out, "schema", schema);
	return out;
}

static json_t *parameters_of(const struct route *route)
{
	json_t *out = json_array();
	struct str rest = str_of(route->pattern), part;
	while (str_split_next(&rest, '/', &part)) {
		char name[32];
		if (part.len < 3 || part.data[0] != '{' || part.len - 2 >= sizeof name)
			continue;
		(void)snprintf(name, sizeof name, "%.*s", (int)part.len - 2, part.data + 1);
		(void)json_array_append_new(out, parameter(name, "path", NULL));
	}
	for (size_t i = 0; i < ROUTE_QUERY_MAX && route->query[i].name != NULL; i++)
		(void)json_array_append_new(
			out, parameter(route->query[i].name, "query", &route->query[i]));
	if (strcmp(route->method, "POST") == 0 && route_mutates(route) &&
	    route->access == ROUTE_TOKEN)
		(void)json_array_append_new(out, reference("parameters", "IdempotencyKey"));
	return out;
}

static json_t *answer_of(const struct route *route)
{
	json_t *out = json_object();
	set_text(out, "description", "Success.");
	json_t *body = NULL;
	if (route->answer != NULL)
		body = content("application/json",
			       route->is_list ? list_of(route->answer)
					      : reference("schemas", route->answer->name));
	else if (strcmp(route->answer_type, "application/json") == 0)
		body = content(route->answer_type, json_pack("{s:s}", "type", "object"));
	else
		body = content(route->answer_type, json_pack("{s:s}", "type", "string"));
	(void)json_object_set_new(out, "content", body);
	return out;
}

static json_t *operation_of(const struct route *route)
{
	char code[8];
	json_t *out = json_object(), *responses = json_object(), *tags = json_array();
	set_text(out, "operationId", route->operation);
	set_text(out, "summary", route->summary);
	const char *tag = route->access == ROUTE_PUBLIC ? "server"
							: authz_resource_name(route->resource);
	(void)json_array_append_new(tags, json_string(tag));
	(void)json_object_set_new(out, "tags", tags);
	(void)json_object_set_new(out, "parameters", parameters_of(route));
	(void)snprintf(code, sizeof code, "%d", route->success);
	(void)json_object_set_new(responses, code, answer_of(route));
	(void)json_object_set_new(responses, "default", reference("responses", "Problem"));
	(void)json_object_set_new(out, "responses", responses);
	if (route->access == ROUTE_PUBLIC)
		(void)json_object_set_new(out, "security", json_array());
	if (route->body == NULL && route->body_type == NULL)
		return out;
	json_t *body = json_object();
	(void)json_object_set_new(body, "required", json_true());
	(void)json_object_set_new(
		body, "content",
		route->body != NULL
			? content("application/json", reference("schemas", route->body->name))
			: content(route->body_type, json_pack("{s:s}", "type", "string")));
	(void)json_object_set_new(out, "requestBody", body);
	return out;
}

static void add_components(json_t *components)
{
	json_t *problem = json_object();
	set_text(problem, "description", "What is wrong and what to do (RFC 9457).");
	(void)json_object_set_new(
		problem, "content",
		content("application/problem+json", reference("schemas", shape_problem.name)));
	(void)json_object_set_new(under(components, "responses"), "Problem", problem);
	add_schema(under(components, "schemas"), &shape_problem);
	(void)json_object_set_new(under(components, "securitySchemes"), "token",
				  json_pack("{s:s, s:s}", "type", "http", "scheme", "bearer"));
	(void)json_object_set_new(
		under(components, "parameters"), "IdempotencyKey",
		json_pack("{s:s, s:s, s:b, s:s, s:{s:s, s:i, s:i}}", "name", "Idempotency-Key",
			  "in", "header", "required", 0, "description",
			  "The same key and call again gives the same answer for a day.", "schema",
			  "type", "string", "minLength", 1, "maxLength", 128));
}

json_t *openapi_make(void)
{
	json_t *root = json_object(), *paths = json_object();
	json_t *components = under(root, "components");
	set_text(root, "openapi", "3.1.0");
	json_t *info = under(root, "info");
	set_text(info, "title", "GPUaaS");
	set_text(info, "version", GPUAAS_VERSION);
	set_text(info, "description",
		 "GPUs of an installation as a service. Money is decimal text, instants are RFC "
		 "3339 in UTC, quantities are written as in Kubernetes.");
	add_components(components);
	for (size_t i = 0; i < route_count; i++) {
		const struct route *route = &route_table[i];
		char method[8] = "";
		for (size_t m = 0; route->method[m] != '\0' && m < sizeof method - 1; m++)
			method[m] = (char)(route->method[m] | 0x20);
		(void)json_object_set_new(under(paths, route->pattern), method,
					  operation_of(route));
		if (route->body != NULL)
			add_schema(under(components, "schemas"), route->body);
		if (route->answer != NULL)
			add_schema(under(components, "schemas"), route->answer);
	}
	(void)json_object_set_new(root, "paths", paths);
	(void)json_object_set_new(root, "security", json_pack("[{s:[]}]", "token"));
	return root;
}
