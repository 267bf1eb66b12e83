// SPDX-License-Identifier: Apache-2.0
#include "api/routes.h"

#include <stdio.h>

static bool is_param(struct str segment) { return segment.len > 2 && segment.data[0] == '{'; }

static bool segments_match(const char *pattern, struct str path, struct str *params)
{
	struct str pattern_rest = str_of(pattern), path_rest = path, want, got;
	size_t param_count = 0;
	for (;;) {
		bool has_want = str_split_next(&pattern_rest, '/', &want);
		bool has_got = str_split_next(&path_rest, '/', &got);
		if (has_want != has_got)
			return false;
		if (!has_want)
			return true;
		if (!is_param(want)) {
			if (!str_eq(want, got))
				return false;
			continue;
		}
		if (got.len == 0)
			return false;
		ASSERT(param_count < ROUTE_PARAMS_MAX);
		params[param_count++] = got;
	}
}

// Only what our names are made of, so that one path has one spelling.
static bool is_plain_path(struct str path)
{
	for (size_t i = 0; i < path.len; i++) {
		char c = path.data[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
				c == ':' || c == '/' || c == '@' || c == '+';
		if (!is_plain)
			return false;
	}
	return path.len > 0 && path.data[0] == '/';
}

bool route_find(struct str method, struct str path, struct route_match *ret_match)
{
	*ret_match = (struct route_match){ 0 };
	if (!is_plain_path(path))
		return false;
	for (size_t i = 0; i < route_count; i++) {
		struct str params[ROUTE_PARAMS_MAX] = { { NULL, 0 } };
		if (!segments_match(route_table[i].pattern, path, params))
			continue;
		ret_match->is_path_known = true;
		size_t used = strlen(ret_match->allow);
		(void)snprintf(ret_match->allow + used, sizeof ret_match->allow - used, "%s%s",
			       used == 0 ? "" : ", ", route_table[i].method);
		if (!str_eq_c(method, route_table[i].method))
			continue;
		ret_match->route = &route_table[i];
		memcpy(ret_match->params, params, sizeof params);
	}
	return ret_match->route != NULL;
}

bool route_mutates(const struct route *route)
{
	return strcmp(route->method, "GET") != 0 && route->verb != AUTHZ_GET;
}

err_status route_check_query(const struct route *route, struct str query, struct err *err)
{
	struct str part;
	while (str_split_next(&query, '&', &part)) {
		size_t end = min_size(str_find_byte(part, '=', 0), part.len);
		struct str name = str_slice(part, 0, end);
		bool is_known = part.len == 0;
		for (size_t i = 0; i < ROUTE_QUERY_MAX && route->query[i].name != NULL; i++)
			is_known = is_known || str_eq_c(name, route->query[i].name);
		if (!is_known)
			return err_set(err, ERR_INVALID,
				       "unknown query parameter \"" STR_FMT "\"; see "
				       "/openapi.json for %s",
				       STR_ARG(str_slice(name, 0, 60)), route->operation);
	}
	return ERR_OK;
}
