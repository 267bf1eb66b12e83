// SPDX-License-Identifier: Apache-2.0
// Text to small number and back. Equal texts get equal numbers, counted from 0 in the order of
// their first use. Owns copies of the texts.
#pragma once

#include "base/str.h"

struct names;

enum { NAMES_TEXT_MAX_BYTES = 512 * 1024 * 1024 };
#define NAMES_NONE UINT32_MAX

struct names *names_new(void); // NULL: no memory
void names_free(struct names *names);
uint32_t names_add(struct names *names, struct str text); // NAMES_NONE at the limit
uint32_t names_find(const struct names *names, struct str text);
struct str names_text(const struct names *names, uint32_t id);
size_t names_count(const struct names *names);
