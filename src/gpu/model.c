// SPDX-License-Identifier: Apache-2.0
#include "gpu/model.h"

static bool is_cut(char byte) { return byte == '-' || byte == '_' || byte == ' '; }

static bool take_part(struct str *rest, struct str *ret_part)
{
	size_t from = 0;
	while (from < rest->len && is_cut(rest->data[from]))
		from++;
	size_t to = from;
	while (to < rest->len && !is_cut(rest->data[to]))
		to++;
	*ret_part = str_slice(*rest, from, to);
	*rest = str_slice(*rest, to, rest->len);
	return ret_part->len > 0;
}

static bool is_same(struct str part, struct str wanted)
{
	if (str_eq_nocase(part, wanted))
		return true;
	// "80" of "A100-80" against "80GB".
	return part.len == wanted.len + 2 &&
	       str_eq_nocase(str_slice(part, 0, wanted.len), wanted) &&
	       str_eq_nocase(str_slice(part, wanted.len, part.len), STR("GB"));
}

static bool has_part(struct str model, struct str wanted)
{
	struct str part;
	while (take_part(&model, &part)) {
		if (is_same(part, wanted))
			return true;
	}
	return false;
}

bool gpu_model_matches(struct str name, struct str model)
{
	struct str part;
	bool has_any = false;
	while (take_part(&name, &part)) {
		if (!has_part(model, part))
			return false;
		has_any = true;
	}
	return has_any;
}
