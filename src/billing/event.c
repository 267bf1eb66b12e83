// SPDX-License-Identifier: Apache-2.0
#include "billing/event.h"

#include "base/timefmt.h"
#include "billing/scan.h"

enum { SHARE_MAX = 1000000000 };

typedef enum kind { TEXT, NUMBER, TIME, TYPE, SHARE, ENERGY } kind;

struct field_rule {
	struct str name;
	kind kind;
	size_t offset; // of the member that TEXT and NUMBER fill
};

#define RULE(field_name, field_kind, member)                                                       \
	{                                                                                          \
		STR(field_name), field_kind, offsetof(struct event, member)                        \
	}

static const struct field_rule rules[EVENT_FIELD_COUNT] = {
	[EVENT_F_SOURCE] = RULE("source", TEXT, source),
	[EVENT_F_BOOT] = RULE("boot", TEXT, boot),
	[EVENT_F_SEQ] = RULE("seq", NUMBER, seq),
	[EVENT_F_T] = RULE("t", TIME, t_text),
	[EVENT_F_TYPE] = RULE("type", TYPE, type),
	[EVENT_F_GPU] = RULE("gpu", TEXT, gpu),
	[EVENT_F_PROFILE] = RULE("profile", TEXT, profile),
	[EVENT_F_SHARE] = RULE("share", SHARE, share_num),
	[EVENT_F_TENANT] = RULE("tenant", TEXT, tenant),
	[EVENT_F_NAMESPACE] = RULE("namespace", TEXT, namespace),
	[EVENT_F_POD] = RULE("pod", TEXT, pod),
	[EVENT_F_POD_UID] = RULE("pod_uid", TEXT, pod_uid),
	[EVENT_F_CONTAINER] = RULE("container", TEXT, container),
	[EVENT_F_REQUEST] = RULE("request", TEXT, request),
	[EVENT_F_EPOCH] = RULE("epoch", TEXT, epoch),
	[EVENT_F_ENERGY_MJ] = RULE("energy_mj", ENERGY, energy_mj),
	[EVENT_F_UTIL_MILLI] = RULE("util_milli", NUMBER, util_milli),
	[EVENT_F_MEMORY_MIB] = RULE("memory_mib", NUMBER, memory_mib),
	[EVENT_F_PID] = RULE("pid", NUMBER, pid),
};

static const struct str type_names[] = {
	[EVENT_BOUND] = STR("bound"),
	[EVENT_RELEASED] = STR("released"),
	[EVENT_ENERGY] = STR("energy"),
	[EVENT_SAMPLE] = STR("sample"),
	[EVENT_UNEXPLAINED] = STR("unexplained"),
};

#define BIT(field) (UINT32_C(1) << (field))

// What an event of that type cannot do without, beyond source, boot, seq, t and type.
static const uint32_t needed[] = {
	[EVENT_BOUND] = BIT(EVENT_F_GPU) | BIT(EVENT_F_SHARE) | BIT(EVENT_F_TENANT) |
			BIT(EVENT_F_POD_UID),
	[EVENT_RELEASED] = BIT(EVENT_F_GPU) | BIT(EVENT_F_POD_UID),
	[EVENT_ENERGY] = BIT(EVENT_F_GPU) | BIT(EVENT_F_ENERGY_MJ),
	[EVENT_SAMPLE] = BIT(EVENT_F_GPU),
	[EVENT_UNEXPLAINED] = BIT(EVENT_F_GPU),
};

static const uint32_t needed_always = BIT(EVENT_F_SOURCE) | BIT(EVENT_F_BOOT) | BIT(EVENT_F_SEQ) |
				      BIT(EVENT_F_T) | BIT(EVENT_F_TYPE);

bool event_has(const struct event *event, event_field field)
{
	return (event->present & ~event->null & BIT(field)) != 0;
}

const char *event_type_name(event_type type)
{
	ASSERT((size_t)type < ARRAY_COUNT(type_names));
	return type_names[type].data;
}

static void *member_of(struct event *event, const struct field_rule *rule)
{
	return (char *)event + rule->offset;
}

static const void *member_of_const(const struct event *event, const struct field_rule *rule)
{
	return (const char *)event + rule->offset;
}

static err_status bad_value(const struct field_rule *rule, const char *want, struct err *err)
{
	return err_set(err, ERR_INVALID, STR_FMT " must be %s", STR_ARG(rule->name), want);
}

static err_status parse_text(struct scan *scan, const struct field_rule *rule, struct event *event,
			     struct err *err)
{
	struct str text;
	if (!scan_string(scan, &text))
		return bad_value(rule, "a string", err);
	if (text.len == 0 &&
	    (BIT(rule - rules) & (BIT(EVENT_F_SOURCE) | BIT(EVENT_F_BOOT) | BIT(EVENT_F_GPU) |
				  BIT(EVENT_F_TENANT) | BIT(EVENT_F_POD_UID))) != 0)
		return bad_value(rule, "a string that is not empty", err);
	if (rule == &rules[EVENT_F_TENANT] && text.data[0] == '~')
		return bad_value(rule, "a name that does not begin with ~", err);
	*(struct str *)member_of(event, rule) = text;
	return ERR_OK;
}

static err_status parse_number(struct scan *scan, const struct field_rule *rule,
			       struct event *event, struct err *err)
{
	uint64_t value;
	if (!scan_uint(scan, &value) || value > INT64_MAX)
		return bad_value(rule, "a whole number from 0 to 9223372036854775807", err);
	*(int64_t *)member_of(event, rule) = (int64_t)value;
	return ERR_OK;
}

static err_status parse_time(struct scan *scan, const struct field_rule *rule, struct event *event,
			     struct err *err)
{
	uint32_t ns;
	if (!scan_string(scan, &event->t_text) || !time_parse(event->t_text, &event->t_s, &ns) ||
	    event->t_text.data[event->t_text.len - 1] != 'Z')
		return bad_value(rule, "UTC as in 2026-02-10T00:00:00Z", err);
	if (ns != 0)
		return bad_value(rule, "a whole second", err);
	return ERR_OK;
}

static err_status parse_type(struct scan *scan, const struct field_rule *rule, struct event *event,
			     struct err *err)
{
	struct str text;
	if (!scan_string(scan, &text))
		return bad_value(rule, "a string", err);
	for (size_t i = 0; i < ARRAY_COUNT(type_names); i++) {
		if (!str_eq(text, type_names[i]))
			continue;
		event->type = (event_type)i;
		return ERR_OK;
	}
	return bad_value(rule, "bound, released, energy, sample or unexplained", err);
}

static err_status parse_share(struct scan *scan, const struct field_rule *rule, struct event *event,
			      struct err *err)
{
	uint64_t num = 0, den = 0;
	if (!scan_take(scan, '{'))
		return bad_value(rule, "an object {\"num\",\"den\"}", err);
	for (int i = 0; i < 2; i++) {
		struct str key;
		if ((i > 0 && !scan_take(scan, ',')) || !scan_string(scan, &key) ||
		    !scan_take(scan, ':'))
			return bad_value(rule, "an object {\"num\",\"den\"}", err);
		uint64_t *part = str_eq_c(key, "num") ? &num : str_eq_c(key, "den") ? &den : NULL;
		if (part == NULL)
			return err_set(err, ERR_INVALID, "unknown key \"share.%.80s\"",
				       arena_cstr(scan->arena, key));
		if (*part != 0 || !scan_uint(scan, part) || *part == 0 || *part > SHARE_MAX)
			return bad_value(rule, "num and den, whole numbers from 1 to 1000000000",
					 err);
	}
	if (!scan_take(scan, '}'))
		return bad_value(rule, "an object with num and den only", err);
	event->share_num = (int64_t)num;
	event->share_den = (int64_t)den;
	return ERR_OK;
}

static err_status parse_energy(struct scan *scan, const struct field_rule *rule,
			       struct event *event, struct err *err)
{
	struct str text;
	scan_blanks(scan);
	event->energy_is_number = !scan_peek(scan, '"');
	if (event->energy_is_number
		    ? scan_uint(scan, &event->energy_mj)
		    : scan_string(scan, &text) && str_to_u64(text, &event->energy_mj) &&
			      (text.len == 1 || text.data[0] != '0'))
		return ERR_OK;
	return bad_value(rule, "a whole number of millijoules in a string", err);
}

static err_status parse_value(struct scan *scan, const struct field_rule *rule, struct event *event,
			      struct err *err)
{
	switch (rule->kind) {
	case TEXT: return parse_text(scan, rule, event, err);
	case NUMBER: return parse_number(scan, rule, event, err);
	case TIME: return parse_time(scan, rule, event, err);
	case TYPE: return parse_type(scan, rule, event, err);
	case SHARE: return parse_share(scan, rule, event, err);
	case ENERGY: return parse_energy(scan, rule, event, err);
	}
	return ERR_INTERNAL;
}

// The rules in the order in which our own journal writes them: the next key is nearly always
// the next rule, so the search starts there.
static const struct field_rule *find_rule(struct str key, size_t from)
{
	for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
		const struct field_rule *rule = &rules[(from + i) % EVENT_FIELD_COUNT];
		if (str_eq(rule->name, key))
			return rule;
	}
	return NULL;
}

static err_status parse_member(struct scan *scan, struct event *event, size_t *from,
			       struct err *err)
{
	struct str key;
	if (!scan_string(scan, &key) || !scan_take(scan, ':'))
		return err_set(err, ERR_INVALID,
			       "column %zu: a key in quotes and a colon must "
			       "stand here",
			       scan->at + 1);
	const struct field_rule *rule = find_rule(key, *from);
	if (rule == NULL)
		return err_set(err, ERR_INVALID, "unknown key \"%.80s\"",
			       arena_cstr(scan->arena, key));
	uint32_t bit = BIT(rule - rules);
	if ((event->present & bit) != 0)
		return err_set(err, ERR_INVALID, "key \"" STR_FMT "\" stands twice",
			       STR_ARG(rule->name));
	event->present |= bit;
	*from = (size_t)(rule - rules) + 1;
	if (scan_word(scan, STR("null"))) {
		event->null |= bit;
		return ERR_OK;
	}
	return parse_value(scan, rule, event, err);
}

static err_status check_needed(const struct event *event, struct err *err)
{
	uint32_t has = event->present & ~event->null;
	uint32_t missing = needed_always & ~has;
	if (missing == 0)
		missing = needed[event->type] & ~has;
	if (missing == 0)
		return ERR_OK;
	const struct field_rule *rule = &rules[__builtin_ctz(missing)];
	if ((needed_always & missing) != 0)
		return err_set(err, ERR_INVALID, STR_FMT " is missing", STR_ARG(rule->name));
	return err_set(err, ERR_INVALID, STR_FMT " is missing from an event of type %s",
		       STR_ARG(rule->name), event_type_name(event->type));
}

err_status event_parse(struct arena *arena, struct str line, struct event *ret_event,
		       struct err *err)
{
	struct scan scan = { .arena = arena, .text = line };
	struct event event = { 0 };
	size_t from = 0;
	if (line.len > EVENT_LINE_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "event of %zu bytes, at most %d", line.len,
			       EVENT_LINE_MAX_BYTES);
	if (!scan_take(&scan, '{'))
		return err_set(err, ERR_INVALID, "an event must be a JSON object");
	bool more = !scan_take(&scan, '}');
	while (more) {
		err_status status = parse_member(&scan, &event, &from, err);
		if (status != ERR_OK)
			return status;
		more = scan_take(&scan, ',');
		if (!more && !scan_take(&scan, '}'))
			return err_set(err, ERR_INVALID, "column %zu: a comma or } must stand here",
				       scan.at + 1);
	}
	if (!scan_at_end(&scan))
		return err_set(err, ERR_INVALID, "column %zu: something follows the object",
			       scan.at + 1);
	err_status status = check_needed(&event, err);
	if (status == ERR_OK)
		*ret_event = event;
	return status;
}

static void format_value(struct buf *out, const struct event *event, const struct field_rule *rule)
{
	char time[TIME_TEXT_BYTES];
	switch (rule->kind) {
	case TEXT: buf_put_json(out, *(const struct str *)member_of_const(event, rule)); return;
	case NUMBER:
		buf_printf(out, "%lld", (long long)*(const int64_t *)member_of_const(event, rule));
		return;
	case TIME:
		buf_put_json(out, event->t_text.len > 0 ? event->t_text
							: str_of(time_format(event->t_s, time)));
		return;
	case TYPE: buf_put_json(out, type_names[event->type]); return;
	case SHARE:
		buf_printf(out, "{\"num\":%lld,\"den\":%lld}", (long long)event->share_num,
			   (long long)event->share_den);
		return;
	case ENERGY:
		buf_printf(out, event->energy_is_number ? "%llu" : "\"%llu\"",
			   (unsigned long long)event->energy_mj);
		return;
	}
}

void event_format(struct buf *out, const struct event *event)
{
	char before = '{';
	for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
		if ((event->present & BIT(i)) == 0)
			continue;
		buf_put_byte(out, before);
		buf_put_json(out, rules[i].name);
		buf_put_byte(out, ':');
		if ((event->null & BIT(i)) != 0)
			buf_put_c(out, "null");
		else
			format_value(out, event, &rules[i]);
		before = ',';
	}
	ASSERT(before == ','); // an event without a key is none
	buf_put_byte(out, '}');
}

static void mix(struct event_digest *digest, uint64_t word)
{
	unsigned __int128 high = (unsigned __int128)(digest->high ^ word) * 0x9e3779b97f4a7c15U;
	unsigned __int128 low = (unsigned __int128)(digest->low + word) * 0xd6e8feb86659fd93U;
	digest->high = (uint64_t)high ^ (uint64_t)(high >> 64) ^ 0x2545f4914f6cdd1dU;
	digest->low = ((uint64_t)low ^ (uint64_t)(low >> 64)) + digest->high;
}

static void mix_text(struct event_digest *digest, struct str text)
{
	mix(digest, text.len);
	for (size_t i = 0; i < text.len; i += 8) {
		uint64_t word = 0;
		memcpy(&word, text.data + i, min_size(8, text.len - i));
		mix(digest, word);
	}
}

struct event_digest event_digest_of(const struct event *event)
{
	struct event_digest digest = { event->present, event->null };
	uint32_t has = event->present & ~event->null;
	for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
		if ((has & BIT(i)) == 0)
			continue;
		switch (rules[i].kind) {
		case TEXT:
		case TIME:
			mix_text(&digest, *(const struct str *)member_of_const(event, &rules[i]));
			break;
		case NUMBER:
			mix(&digest,
			    (uint64_t) * (const int64_t *)member_of_const(event, &rules[i]));
			break;
		case TYPE: mix(&digest, (uint64_t)event->type); break;
		case SHARE:
			mix(&digest, (uint64_t)event->share_num);
			mix(&digest, (uint64_t)event->share_den);
			break;
		case ENERGY:
			mix(&digest, event->energy_mj);
			mix(&digest, event->energy_is_number);
			break;
		}
	}
	return digest;
}
