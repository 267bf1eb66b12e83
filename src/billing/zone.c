// SPDX-License-Identifier: Apache-2.0
#include "billing/zone.h"

#include "billing/zone_rule.h"

struct change {
	int64_t t_s;
	int64_t offset_s; // from t_s on
};

struct zone {
	int64_t first_offset_s; // before the first change
	const struct change *changes;
	size_t change_count;
	struct zone_rule rule; // after the last change
	bool has_rule;
};

enum {
	HEAD_BYTES = 44,
	TYPE_BYTES = 6,
	OFFSET_MAX_S = 26 * 3600,
	COUNT_MAX = 10000,
	NAME_MAX_BYTES = 64,
	RULE_SHOWN_BYTES = 80,
};

// The counts of one block of the file, in the order of its header.
struct head {
	uint32_t utc_count, standard_count, leap_count, time_count, type_count, char_count;
};

const struct zone *zone_utc(void)
{
	static const struct zone utc = { 0 };
	return &utc;
}

static uint64_t big_endian(struct str bytes, size_t at, size_t count)
{
	uint64_t value = 0;
	ASSERT(at + count <= bytes.len);
	for (size_t i = 0; i < count; i++)
		value = value << 8 | (unsigned char)bytes.data[at + i];
	return value;
}

static bool read_head(struct str bytes, struct head *ret_head)
{
	if (bytes.len < HEAD_BYTES || !str_starts(bytes, STR("TZif")))
		return false;
	uint32_t counts[6];
	for (size_t i = 0; i < 6; i++) {
		counts[i] = (uint32_t)big_endian(bytes, 20 + i * 4, 4);
		if (counts[i] > COUNT_MAX)
			return false;
	}
	*ret_head =
		(struct head){ counts[0], counts[1], counts[2], counts[3], counts[4], counts[5] };
	return true;
}

static size_t body_bytes(const struct head *head, size_t time_bytes)
{
	return head->time_count * (time_bytes + 1) + head->type_count * TYPE_BYTES +
	       head->char_count + head->leap_count * (time_bytes + 4) + head->standard_count +
	       head->utc_count;
}

static err_status damaged(struct err *err)
{
	return err_set(err, ERR_INVALID, "not a time zone file of version 2 or later");
}

static bool read_offset(struct str types, size_t type_i, int64_t *ret_offset_s)
{
	int64_t offset_s = (int32_t)(uint32_t)big_endian(types, type_i * TYPE_BYTES, 4);
	if (offset_s < -OFFSET_MAX_S || offset_s > OFFSET_MAX_S)
		return false;
	*ret_offset_s = offset_s;
	return true;
}

static err_status read_changes(struct arena *arena, struct str body, const struct head *head,
			       struct zone *zone, struct err *err)
{
	size_t types_at = head->time_count * 9;
	struct str types = str_slice(body, types_at, types_at + head->type_count * TYPE_BYTES);
	struct change *changes = ARENA_ARRAY(arena, struct change, head->time_count + 1);
	if (changes == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a time zone");
	if (head->type_count == 0 || !read_offset(types, 0, &zone->first_offset_s))
		return damaged(err);
	for (size_t i = 0; i < head->time_count; i++) {
		size_t type_i = (size_t)big_endian(body, head->time_count * 8 + i, 1);
		changes[i].t_s = (int64_t)big_endian(body, i * 8, 8);
		if (type_i >= head->type_count ||
		    !read_offset(types, type_i, &changes[i].offset_s) ||
		    (i > 0 && changes[i].t_s <= changes[i - 1].t_s))
			return damaged(err);
	}
	zone->changes = changes;
	zone->change_count = head->time_count;
	return ERR_OK;
}

// The footer is the rule between two newlines; it may be empty.
static err_status read_footer(struct str rest, struct zone *zone, struct err *err)
{
	size_t end = rest.len > 0 && rest.data[0] == '\n' ? str_find_byte(rest, '\n', 1) : SIZE_MAX;
	if (end == SIZE_MAX)
		return damaged(err);
	struct str rule = str_slice(rest, 1, end);
	if (rule.len == 0)
		return ERR_OK;
	if (!zone_rule_parse(rule, &zone->rule))
		return err_set(err, ERR_INVALID, "time zone rule \"" STR_FMT "\" is not understood",
			       STR_ARG(str_slice(rule, 0, RULE_SHOWN_BYTES)));
	zone->has_rule = true;
	return ERR_OK;
}

err_status zone_parse(struct arena *arena, struct str tzif, const struct zone **ret_zone,
		      struct err *err)
{
	struct head head;
	if (!read_head(tzif, &head) || tzif.data[4] < '2')
		return damaged(err);
	struct str rest = str_slice(tzif, HEAD_BYTES + body_bytes(&head, 4), tzif.len);
	if (!read_head(rest, &head) || rest.len - HEAD_BYTES < body_bytes(&head, 8))
		return damaged(err);
	if (head.leap_count != 0)
		return err_set(err, ERR_UNSUPPORTED, "time zones with leap seconds are not used");
	struct zone *zone = ARENA_NEW(arena, struct zone);
	if (zone == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a time zone");
	struct str body = str_slice(rest, HEAD_BYTES, HEAD_BYTES + body_bytes(&head, 8));
	err_status status = read_changes(arena, body, &head, zone, err);
	if (status == ERR_OK)
		status = read_footer(str_slice(rest, HEAD_BYTES + body.len, rest.len), zone, err);
	if (status == ERR_OK)
		*ret_zone = zone;
	return status;
}

err_status zone_load(struct arena *arena, struct str name, zone_read_fn *read,
		     const struct zone **ret_zone, struct err *err)
{
	AUTO(buf_done) struct buf tzif = { 0 };
	if (str_eq_c(name, "UTC")) {
		*ret_zone = zone_utc();
		return ERR_OK;
	}
	err_status status = read(name, &tzif, err);
	if (status != ERR_OK)
		return status;
	status = zone_parse(arena, buf_str(&tzif), ret_zone, err);
	return status == ERR_OK || err == NULL ? status
					       : err_wrap(err, "time zone " STR_FMT, STR_ARG(name));
}

int64_t zone_offset_s(const struct zone *zone, int64_t t_s, int64_t *ret_until_s)
{
	size_t low = 0, high = zone->change_count; // the first change after t_s
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (zone->changes[middle].t_s <= t_s)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == zone->change_count && zone->has_rule)
		return zone_rule_offset_s(&zone->rule, t_s, ret_until_s);
	*ret_until_s = low < zone->change_count ? zone->changes[low].t_s : INT64_MAX;
	return low == 0 ? zone->first_offset_s : zone->changes[low - 1].offset_s;
}

bool zone_is_name(struct str name)
{
	if (name.len == 0 || name.len > NAME_MAX_BYTES || name.data[0] == '/')
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		bool digit = c >= '0' && c <= '9';
		if (!letter && !digit && (c == '\0' || strchr("/_+-", c) == NULL))
			return false;
	}
	return true;
}
