// SPDX-License-Identifier: Apache-2.0
// A time zone as a function from instant to offset, read from the bytes of a TZif file
// (RFC 9636) including the rule in its footer, which governs all years after the last listed
// change. Billing is pure: who has a file system reads the file. UTC needs none. A zone lives in
// the arena it was parsed into.
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct zone;

MUST_USE err_status zone_parse(struct arena *arena, struct str tzif, const struct zone **ret_zone,
			       struct err *err);
const struct zone *zone_utc(void);
// The zone of that name; the caller brings what reads the bytes of a zone's file (sys/zoneinfo.h).
// UTC needs none.
typedef err_status zone_read_fn(struct str name, struct buf *ret_tzif, struct err *err);
MUST_USE err_status zone_load(struct arena *arena, struct str name, zone_read_fn *read,
			      const struct zone **ret_zone, struct err *err);
// Seconds to add to UTC at that instant. *ret_until_s: the offset stays until then at least;
// it may change there, or, for an instant without later changes, it is INT64_MAX.
int64_t zone_offset_s(const struct zone *zone, int64_t t_s, int64_t *ret_until_s);
// A name as in the time zone database ("Europe/Berlin"), safe to use in a path.
bool zone_is_name(struct str name);
