// SPDX-License-Identifier: Apache-2.0
// Everything is evaluated, both sides of && and || too, so that what is not supported is found
// whatever the device is. Errors are values, which && and || may absorb, as in CEL.
#include "sched/claim_cel.h"

#include "base/quantity.h"

enum { DEPTH_MAX = 32, LIST_MAX = 32, TEXT_MAX = 256 };

typedef enum kind { V_ERROR, V_BOOL, V_INT, V_TEXT, V_VERSION, V_QUANTITY, V_DEVICE, V_MAP } kind;

struct value {
	kind kind;
	int64_t number;
	struct str text;
	struct sched_version version;
	bool is_capacity, has_domain; // of a map: whose; the domain is in text
};

struct eval {
	struct str rest;
	struct str driver;
	const struct sched_pool_device *device;
	int depth;
	bool is_bad; // not supported
	char lowered[TEXT_MAX];
};

static struct value expression(struct eval *e);

static struct value fail(struct eval *e)
{
	e->is_bad = true;
	return (struct value){ .kind = V_ERROR };
}

static struct value of_bool(bool b) { return (struct value){ .kind = V_BOOL, .number = b }; }
static struct value of_text(struct str t) { return (struct value){ .kind = V_TEXT, .text = t }; }
static struct value of_int(int64_t n) { return (struct value){ .kind = V_INT, .number = n }; }

static bool take(struct eval *e, const char *token)
{
	e->rest = str_trim(e->rest);
	if (!str_starts(e->rest, str_of(token)))
		return false;
	e->rest = str_slice(e->rest, strlen(token), e->rest.len);
	return true;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct str word(struct eval *e)
{
	size_t n = 0;
	e->rest = str_trim(e->rest);
	while (n < e->rest.len && is_word(e->rest.data[n]))
		n++;
	struct str found = str_slice(e->rest, 0, n);
	e->rest = str_slice(e->rest, n, e->rest.len);
	return found;
}

static bool take_word(struct eval *e, const char *token)
{
	struct str before = e->rest;
	if (str_eq_c(word(e), token))
		return true;
	e->rest = before;
	return false;
}

static struct value quoted(struct eval *e, char quote)
{
	size_t end = str_find_byte(e->rest, quote, 1);
	if (end == SIZE_MAX)
		return fail(e);
	struct str text = str_slice(e->rest, 1, end);
	if (str_find_byte(text, '\\', 0) != SIZE_MAX)
		return fail(e);
	e->rest = str_slice(e->rest, end + 1, e->rest.len);
	return of_text(text);
}

static struct value of_attribute(const struct sched_attribute *attribute)
{
	switch (attribute->kind) {
	case SCHED_ATTRIBUTE_TEXT: return of_text(attribute->text);
	case SCHED_ATTRIBUTE_INT: return of_int(attribute->number);
	case SCHED_ATTRIBUTE_BOOL: return of_bool(attribute->number != 0);
	case SCHED_ATTRIBUTE_VERSION:
		return (struct value){ .kind = V_VERSION, .version = attribute->version };
	}
	return (struct value){ .kind = V_ERROR };
}

static bool has_domain(const struct eval *e, bool is_capacity, struct str domain)
{
	const struct sched_pool_device *device = e->device;
	for (size_t i = 0; is_capacity && i < device->capacity_count; i++) {
		if (str_eq(device->capacities[i].domain, domain))
			return true;
	}
	for (size_t i = 0; !is_capacity && i < device->attribute_count; i++) {
		if (str_eq(device->attributes[i].domain, domain))
			return true;
	}
	return false;
}

static struct value look_up(const struct eval *e, const struct value *map, struct str name)
{
	const struct sched_pool_device *device = e->device;
	for (size_t i = 0; map->is_capacity && i < device->capacity_count; i++) {
		const struct sched_capacity *capacity = &device->capacities[i];
		if (str_eq(capacity->domain, map->text) && str_eq(capacity->name, name))
			return (struct value){ .kind = V_QUANTITY, .number = capacity->amount };
	}
	for (size_t i = 0; !map->is_capacity && i < device->attribute_count; i++) {
		const struct sched_attribute *attribute = &device->attributes[i];
		if (str_eq(attribute->domain, map->text) && str_eq(attribute->name, name))
			return of_attribute(attribute);
	}
	return (struct value){ .kind = V_ERROR };
}

static struct value member(struct eval *e, const struct value *of, struct str name)
{
	if (of->kind == V_DEVICE && str_eq_c(name, "driver"))
		return of_text(e->driver);
	if (of->kind == V_DEVICE && str_eq_c(name, "attributes"))
		return (struct value){ .kind = V_MAP };
	if (of->kind == V_DEVICE && str_eq_c(name, "capacity"))
		return (struct value){ .kind = V_MAP, .is_capacity = true };
	if (of->kind == V_MAP && of->has_domain)
		return look_up(e, of, name);
	return of->kind == V_ERROR ? *of : fail(e);
}

static struct value index_of(struct eval *e, const struct value *of, const struct value *key)
{
	if (of->kind == V_ERROR || key->kind == V_ERROR)
		return (struct value){ .kind = V_ERROR };
	if (of->kind != V_MAP || key->kind != V_TEXT)
		return fail(e);
	if (of->has_domain)
		return look_up(e, of, key->text);
	struct value map = *of;
	map.text = key->text;
	map.has_domain = true;
	return map;
}

static int sign_of(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

// How two values of one kind stand to each other; false: they do not.
static bool compare(const struct value *a, const struct value *b, int *ret_order)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case V_BOOL:
	case V_INT:
	case V_QUANTITY: *ret_order = sign_of(a->number, b->number); return true;
	case V_TEXT: *ret_order = str_cmp(a->text, b->text); return true;
	case V_VERSION: *ret_order = sched_version_cmp(&a->version, &b->version); return true;
	case V_ERROR:
	case V_DEVICE:
	case V_MAP: break;
	}
	return false;
}

static bool ends(struct str text, struct str part) { return str_ends(text, part); }

static bool contains(struct str text, struct str part)
{
	for (size_t i = 0; i + part.len <= text.len; i++) {
		if (str_eq(str_slice(text, i, i + part.len), part))
			return true;
	}
	return false;
}

static struct value lower(struct eval *e, const struct value *of)
{
	if (of->kind != V_TEXT || of->text.len >= sizeof e->lowered)
		return fail(e);
	for (size_t i = 0; i < of->text.len; i++) {
		char c = of->text.data[i];
		e->lowered[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	return of_text((struct str){ e->lowered, of->text.len });
}

static struct value call(struct eval *e, const struct value *of, struct str name)
{
	static const struct {
		const char *name;
		bool (*fn)(struct str text, struct str part);
	} TEXTS[] = { { "startsWith", str_starts },
		      { "endsWith", ends },
		      { "contains", contains } };
	if (str_eq_c(name, "lowerAscii") && take(e, ")"))
		return of->kind == V_ERROR ? *of : lower(e, of);
	struct value arg = expression(e);
	if (!take(e, ")"))
		return fail(e);
	bool is_error = of->kind == V_ERROR || arg.kind == V_ERROR;
	for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
		if (!str_eq_c(name, TEXTS[i].name))
			continue;
		if (!is_error && of->kind == V_TEXT && arg.kind == V_TEXT)
			return of_bool(TEXTS[i].fn(of->text, arg.text));
		return is_error ? (struct value){ .kind = V_ERROR } : fail(e);
	}
	bool is_greater = str_eq_c(name, "isGreaterThan"), is_less = str_eq_c(name, "isLessThan");
	int order = 0;
	if (!is_greater && !is_less && !str_eq_c(name, "compareTo"))
		return fail(e);
	if (is_error)
		return (struct value){ .kind = V_ERROR };
	if ((of->kind != V_QUANTITY && of->kind != V_VERSION) || !compare(of, &arg, &order))
		return fail(e);
	if (!is_greater && !is_less)
		return of_int(order);
	return of_bool(is_greater ? order > 0 : order < 0);
}

static struct value function(struct eval *e, struct str name)
{
	struct value arg = expression(e);
	if (!take(e, ")"))
		return fail(e);
	if (str_eq_c(name, "has"))
		return of_bool(arg.kind != V_ERROR);
	struct value made = { .kind = V_QUANTITY };
	if (arg.kind != V_TEXT)
		return arg.kind == V_ERROR ? arg : fail(e);
	if (str_eq_c(name, "quantity") && quantity_to_units(arg.text, &made.number))
		return made;
	made.kind = V_VERSION;
	if (str_eq_c(name, "semver") && sched_version_parse(arg.text, &made.version))
		return made;
	return fail(e);
}

static struct value number(struct eval *e, bool is_negative)
{
	int64_t value;
	if (!str_to_i64(word(e), &value))
		return fail(e);
	return of_int(is_negative ? -value : value);
}

static struct value primary(struct eval *e)
{
	e->rest = str_trim(e->rest);
	char c = e->rest.len > 0 ? e->rest.data[0] : '\0';
	if (c == '\'' || c == '"')
		return quoted(e, c);
	if (c >= '0' && c <= '9')
		return number(e, false);
	if (take(e, "-"))
		return number(e, true);
	if (take(e, "(")) {
		struct value inner = expression(e);
		return take(e, ")") ? inner : fail(e);
	}
	struct str name = word(e);
	if (str_eq_c(name, "true") || str_eq_c(name, "false"))
		return of_bool(name.len == 4);
	if (str_eq_c(name, "device"))
		return (struct value){ .kind = V_DEVICE };
	return name.len > 0 && take(e, "(") ? function(e, name) : fail(e);
}

static struct value postfix(struct eval *e)
{
	struct value value = primary(e);
	while (!e->is_bad) {
		if (take(e, "[")) {
			struct value key = expression(e);
			if (!take(e, "]"))
				return fail(e);
			value = index_of(e, &value, &key);
		} else if (take(e, ".")) {
			struct str name = word(e);
			value = take(e, "(") ? call(e, &value, name) : member(e, &value, name);
		} else {
			return value;
		}
	}
	return value;
}

static struct value unary(struct eval *e)
{
	size_t count = 0;
	e->rest = str_trim(e->rest);
	while (!str_starts(e->rest, STR("!=")) && take(e, "!"))
		count++;
	struct value value = postfix(e);
	if (count == 0 || value.kind == V_ERROR)
		return value;
	if (value.kind != V_BOOL)
		return fail(e);
	return of_bool((value.number != 0) != (count % 2 == 1));
}

// "x in [a, b]", or "x in" a map.
static struct value is_in(struct eval *e, const struct value *value)
{
	bool found = false;
	int order = 1;
	if (!take(e, "[")) {
		struct value map = unary(e);
		if (map.kind == V_ERROR || value->kind == V_ERROR)
			return (struct value){ .kind = V_ERROR };
		if (map.kind != V_MAP || value->kind != V_TEXT)
			return fail(e);
		if (!map.has_domain)
			return of_bool(has_domain(e, map.is_capacity, value->text));
		return of_bool(look_up(e, &map, value->text).kind != V_ERROR);
	}
	for (int i = 0; !take(e, "]"); i++) {
		if (i == LIST_MAX || (i > 0 && !take(e, ",")) || e->is_bad)
			return fail(e);
		struct value item = expression(e);
		found = found || (compare(value, &item, &order) && order == 0);
	}
	return value->kind == V_ERROR ? *value : of_bool(found);
}

static struct value relation(struct eval *e)
{
	static const char *const OPS[] = { "==", "!=", "<=", ">=", "<", ">" };
	struct value left = unary(e);
	int order = 1;
	if (take_word(e, "in"))
		return is_in(e, &left);
	for (size_t i = 0; i < ARRAY_COUNT(OPS); i++) {
		if (!take(e, OPS[i]))
			continue;
		struct value right = unary(e);
		if (left.kind == V_ERROR || right.kind == V_ERROR)
			return (struct value){ .kind = V_ERROR };
		bool is_alike = compare(&left, &right, &order);
		if (i < 2) // values of different kinds are not equal
			return of_bool((is_alike && order == 0) == (i == 0));
		if (!is_alike)
			return (struct value){ .kind = V_ERROR };
		return of_bool(i == 2   ? order <= 0
			       : i == 3 ? order >= 0
			       : i == 4 ? order < 0
					: order > 0);
	}
	return left;
}

// One of the two decides alone; without it an error of either is the answer.
static struct value join(struct eval *e, const struct value *a, const struct value *b, bool is_or)
{
	bool a_decides = a->kind == V_BOOL && (a->number != 0) == is_or;
	bool b_decides = b->kind == V_BOOL && (b->number != 0) == is_or;
	if (a_decides || b_decides)
		return of_bool(is_or);
	if (a->kind == V_ERROR || b->kind == V_ERROR)
		return (struct value){ .kind = V_ERROR };
	return a->kind == V_BOOL && b->kind == V_BOOL ? of_bool(!is_or) : fail(e);
}

static struct value conjunction(struct eval *e)
{
	struct value value = relation(e);
	while (!e->is_bad && take(e, "&&")) {
		struct value right = relation(e);
		value = join(e, &value, &right, false);
	}
	return value;
}

static struct value expression(struct eval *e)
{
	if (++e->depth > DEPTH_MAX)
		return fail(e);
	struct value value = conjunction(e);
	while (!e->is_bad && take(e, "||")) {
		struct value right = conjunction(e);
		value = join(e, &value, &right, true);
	}
	e->depth--;
	return value;
}

claim_cel claim_cel_eval(struct str text, struct str driver, const struct sched_pool_device *device)
{
	struct eval e = { .rest = text, .driver = driver, .device = device };
	struct value value = expression(&e);
	if (e.is_bad || str_trim(e.rest).len > 0)
		return CLAIM_CEL_UNSUPPORTED;
	if (value.kind == V_ERROR)
		return CLAIM_CEL_ERROR;
	if (value.kind != V_BOOL)
		return CLAIM_CEL_UNSUPPORTED;
	return value.number != 0 ? CLAIM_CEL_YES : CLAIM_CEL_NO;
}
