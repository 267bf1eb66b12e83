// SPDX-License-Identifier: Apache-2.0
// Bytes as "METHOD PATH?QUERY" and as an Authorization header: a route that is found has all its
// parameters, and nothing but plain characters in them.
#include "api/routes.h"
#include "policy/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size }, method, path, token;
	struct route_match match;
	struct err err = { 0 };
	if (token_of_header(rest, &token))
		(void)token_is_well_formed(token);
	if (!str_split_next(&rest, ' ', &method) || !str_split_next(&rest, '?', &path))
		return 0;
	if (!route_find(method, path, &match)) {
		ASSERT(match.route == NULL);
		return 0;
	}
	for (size_t i = 0; i < ROUTE_PARAMS_MAX; i++)
		ASSERT(str_find_byte(match.params[i], '/', 0) == SIZE_MAX);
	if (route_check_query(match.route, rest, &err) != ERR_OK)
		ASSERT(err.text[0] != '\0');
	return 0;
}
