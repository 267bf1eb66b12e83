// SPDX-License-Identifier: Apache-2.0
// Pages of lists of what belongs to a tenant: rows are in order of tenant, then name, and
// page_token is the id "tenant.name" of the last row that was shown. Pure; texts are borrowed.
// A token is what a client sends and may be anything; one that is no id is the first page.
#pragma once

#include "base/arena.h"

struct page_row {
	struct str tenant, name;
};

int page_row_cmp(const struct page_row *a, const struct page_row *b);
bool page_row_is_after(const struct page_row *row, struct str token);
struct str page_row_token(struct arena *arena, const struct page_row *row);
