// SPDX-License-Identifier: Apache-2.0
#include "api/page.h"

int page_row_cmp(const struct page_row *a, const struct page_row *b)
{
	int order = str_cmp(a->tenant, b->tenant);
	return order != 0 ? order : str_cmp(a->name, b->name);
}

bool page_row_is_after(const struct page_row *row, struct str token)
{
	size_t dot = str_find_byte(token, '.', 0);
	if (dot == SIZE_MAX)
		return true;
	const struct page_row last = { str_slice(token, 0, dot),
				       str_slice(token, dot + 1, token.len) };
	return page_row_cmp(row, &last) > 0;
}

struct str page_row_token(struct arena *arena, const struct page_row *row)
{
	return str_of(
		arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(row->tenant), STR_ARG(row->name)));
}
