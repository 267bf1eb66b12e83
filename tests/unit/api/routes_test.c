// SPDX-License-Identifier: Apache-2.0
// Every route is found by its own pattern and by no other; odd spellings of a path are no path;
// the description made from the table is whole.
#include "api/api.h"
#include "check.h"

#include <stdlib.h>

static const struct {
	const char *method, *path, *operation; // operation NULL: no route
	bool is_path_known;
} cases[] = {
	{ "GET", "/v1/whoami", "whoami", true },
	{ "POST", "/v1/whoami", NULL, true },
	{ "GET", "/v1/tenants/red/requests", "listTenantRequests", true },
	{ "POST", "/v1/tenants/red/requests", "createRequest", true },
	{ "DELETE", "/v1/requests/red.job", "cancelRequest", true },
	{ "GET", "/v1/requests/red.job/logs", "getRequestLogs", true },
	{ "POST", "/v1/quota:check", "checkQuota", true },
	{ "GET", "/v1/nodes/node1", "getNode", true },
	{ "POST", "/v1/nodes/node1/upgrade", "upgradeNode", true },
	{ "DELETE", "/v1/nodes/node1/upgrade", "endNodeUpgrade", true },
	{ "PATCH", "/v1/nodes/node1/upgrade", NULL, true },
	{ "DELETE", "/v1/tenants/red/members/ann@example.org", "deleteMember", true },
	{ "POST", "/v1/tenants/red/windows", "createWindow", true },
	{ "DELETE", "/v1/tenants/red/windows/course", "deleteWindow", true },
	{ "DELETE", "/v1/tenants/red/windows", NULL, true },
	{ "GET", "/v1/tenants/", NULL, false },
	{ "GET", "/v1/tenants//requests", NULL, false },
	{ "GET", "//v1/whoami", NULL, false },
	{ "GET", "/v1/whoami/", NULL, false },
	{ "GET", "/V1/whoami", NULL, false },
	{ "GET", "/v1/%77hoami", NULL, false },
	{ "GET", "/healthz/../v1/whoami", NULL, false },
	{ "GET", "/healthz%2f..%2fv1/whoami", NULL, false },
	{ "GET", "/v1/tenants/red#/requests", NULL, false },
	{ "GET", "/v1/tenants/red;x", NULL, false },
	{ "GET", "/v1\\whoami", NULL, false },
	{ "GET", "", NULL, false },
	{ "get", "/v1/whoami", NULL, true },
};

static void check_cases(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct route_match match;
		bool found = route_find(str_of(cases[i].method), str_of(cases[i].path), &match);
		CHECK(c, cases[i].path, found == (cases[i].operation != NULL));
		CHECK(c, cases[i].path, match.is_path_known == cases[i].is_path_known);
		if (found && cases[i].operation != NULL)
			CHECK_STR(c, cases[i].path, str_of(match.route->operation),
				  cases[i].operation);
	}
}

// Replaces {name} by a label.
static void fill(const char *pattern, char *out)
{
	while (*pattern != '\0') {
		if (*pattern == '{') {
			pattern = strchr(pattern, '}') + 1;
			*out++ = 'x';
			continue;
		}
		*out++ = *pattern++;
	}
	*out = '\0';
}

static void check_own_patterns(struct check *c)
{
	for (size_t i = 0; i < route_count; i++) {
		char path[200];
		struct route_match match;
		fill(route_table[i].pattern, path);
		CHECK(c, path, route_find(str_of(route_table[i].method), str_of(path), &match));
		CHECK(c, path, match.route == &route_table[i]);
		CHECK(c, path, route_table[i].fn != NULL && route_table[i].success >= 200);
		bool is_open = route_table[i].access == ROUTE_PUBLIC;
		CHECK(c, path, is_open == (strncmp(path, "/v1/", 4) != 0));
		if (route_mutates(&route_table[i]))
			CHECK(c, path, route_table[i].cost > 0);
		for (size_t j = i + 1; j < route_count; j++)
			CHECK(c, route_table[j].operation,
			      strcmp(route_table[i].operation, route_table[j].operation) != 0);
	}
}

static void check_query(struct check *c)
{
	struct route_match match;
	struct err err;
	CHECK(c, "list", route_find(STR("GET"), STR("/v1/requests"), &match));
	static const struct {
		const char *query;
		bool good;
	} queries[] = { { "", true },          { "limit=5", true },    { "limit=5&state=x", true },
			{ "&limit=5&", true }, { "colour=5", false },  { "limit=5&Limit=6", false },
			{ "limit", true },     { "li%6Dit=5", false }, { "=5", false } };
	for (size_t i = 0; i < ARRAY_COUNT(queries); i++)
		CHECK(c, queries[i].query,
		      (route_check_query(match.route, str_of(queries[i].query), &err) == ERR_OK) ==
			      queries[i].good);
}

// Every $ref names something that is there.
static void check_refs(struct check *c, const json_t *root, const json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		if (strcmp(key, "$ref") == 0) {
			char path[200];
			(void)snprintf(path, sizeof path, "%s", json_string_value(member) + 2);
			for (char *slash; (slash = strchr(path, '/')) != NULL;)
				*slash = '.';
			CHECK(c, path, json_at(root, path) != NULL);
		}
		check_refs(c, root, member);
	}
	json_array_foreach(value, i, member) check_refs(c, root, member);
}

int main(void)
{
	struct check c = { 0, 0 };
	check_cases(&c);
	check_own_patterns(&c);
	check_query(&c);
	AUTO(json_decrefp) json_t *description = openapi_make();
	CHECK_STR(&c, "version", json_text(description, "openapi"), "3.1.0");
	check_refs(&c, description, description);
	const json_t *paths = json_object_get(description, "paths");
	for (size_t i = 0; i < route_count; i++)
		CHECK(&c, route_table[i].pattern,
		      json_object_get(paths, route_table[i].pattern) != NULL);
	return check_done(&c);
}
