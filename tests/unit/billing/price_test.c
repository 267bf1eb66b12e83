// SPDX-License-Identifier: Apache-2.0
// Prices over time: zone rules, tariff steps at clock changes, energy cost rounded once.
#include "base/timefmt.h"
#include "billing/meter.h"
#include "billing/zone_rule.h"
#include "check.h"

static int64_t at(const char *text)
{
	int64_t t_s = 0;
	return time_parse(str_of(text), &t_s, NULL) ? t_s : -1;
}

static void zone_rules(struct check *c)
{
	static const struct {
		const char *rule, *before; // the last second before a change
		int64_t offset_before_s, offset_after_s;
	} cases[] = {
		{ "CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T00:59:59Z", 3600, 7200 },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T00:59:59Z", 7200, 3600 },
		{ "EST5EDT,M3.2.0,M11.1.0", "2026-03-08T06:59:59Z", -18000, -14400 },
		{ "AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-04-04T15:59:59Z", 39600, 36000 },
		{ "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-10-03T15:29:59Z", 37800, 39600 },
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7200, -3600 },
		{ "XXX0YYY,J60/0,J300/0", "2028-02-29T23:59:59Z", 0, 3600 },
		{ "XXX0YYY,59/0,300/0", "2028-02-28T23:59:59Z", 0, 3600 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct zone_rule rule;
		int64_t until_s, t_s = at(cases[i].before);
		CHECK(c, cases[i].rule, zone_rule_parse(str_of(cases[i].rule), &rule));
		CHECK_INT(c, cases[i].rule, zone_rule_offset_s(&rule, t_s, &until_s),
			  cases[i].offset_before_s);
		CHECK_INT(c, cases[i].before, until_s, t_s + 1);
		CHECK_INT(c, cases[i].rule, zone_rule_offset_s(&rule, t_s + 1, &until_s),
			  cases[i].offset_after_s);
	}
	static const char *const bad[] = { "",
					   "C",
					   "CET",
					   "CET-1CEST",
					   "CET-1CEST,M3.5.0",
					   "CET-1CEST,M13.5.0,M10.5.0",
					   "CET-1CEST,M3.6.0,M10.5.0",
					   "CET-1CEST,M3.5.7,M10.5.0",
					   "CET-1CEST,J0,J1",
					   "<+1-1",
					   "CET-168",
					   "CET-1x" };
	struct zone_rule rule;
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(c, bad[i], !zone_rule_parse(str_of(bad[i]), &rule));
}

#define PRICES(zone)                                                                               \
	"{\"time_zone\":\"" zone                                                                   \
	"\",\"pue\":[{\"from\":\"2026-01-01T00:00:00Z\",\"value\":\"1\"},"                         \
	"{\"from\":\"2026-01-02T12:00:00Z\",\"value\":\"1.5\"},"                                   \
	"{\"from\":\"2026-01-03T12:00:00Z\",\"value\":\"1.5\"}],"                                  \
	"\"energy_tariff\":[{\"from\":\"2026-01-01T00:00:00Z\",\"rules\":["                        \
	"{\"hours\":\"06:00-22:00\",\"per_kwh\":\"0.30\"},"                                        \
	"{\"hours\":\"22:00-06:00\",\"per_kwh\":\"0.10\"}]}]}"

static void steps(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct prices prices;
	struct tariff_steps made;
	struct err err = { .text = "" };
	CHECK_INT(c, "prices", book_parse_prices(arena, STR(PRICES("UTC")), &prices, &err), ERR_OK);
	const int64_t range_s[2] = { at("2025-12-31T12:00:00Z"), at("2026-01-04T00:00:00Z") };
	CHECK_INT(c, "make", tariff_steps_make(arena, &prices, zone_utc(), range_s, &made, &err),
		  ERR_OK);
	static const struct {
		const char *from;
		int64_t price; // times 1e16
	} want[] = {
		{ "2025-12-31T12:00:00Z", 0 },  { "2026-01-01T00:00:00Z", 10 },
		{ "2026-01-01T06:00:00Z", 30 }, { "2026-01-01T22:00:00Z", 10 },
		{ "2026-01-02T06:00:00Z", 30 }, { "2026-01-02T12:00:00Z", 45 },
		{ "2026-01-02T22:00:00Z", 15 }, { "2026-01-03T06:00:00Z", 45 },
		{ "2026-01-03T22:00:00Z", 15 },
	};
	CHECK_INT(c, "steps", made.count, ARRAY_COUNT(want));
	for (size_t i = 0; i < ARRAY_COUNT(want) && i < made.count; i++) {
		CHECK_INT(c, want[i].from, made.items[i].from_s, at(want[i].from));
		CHECK_INT(c, want[i].from, made.items[i].is_known, i > 0);
		CHECK(c, want[i].from,
		      made.items[i].price * ((wide)360 / made.divisor) == want[i].price);
	}
}

// Cost in units of 1/divisor nano a millijoule and price.
static void cost_at(struct check *c, const char *name, const struct usage_gpu *gpu,
		    const struct tariff_steps *prices, const int64_t *instants_and_nanos)
{
	AUTO(meter_freep) struct meter *meter = meter_new();
	meter_start(meter, gpu, prices);
	for (const int64_t *p = instants_and_nanos; p[0] >= 0; p += 2) {
		int64_t nano = -1;
		CHECK_INT(c, name, meter_at(meter, p[0], &nano, NULL), ERR_OK);
		CHECK_INT(c, name, nano, p[1]);
	}
}

static void meters(struct check *c)
{
	static const struct tariff_step one[] = { { 0, 1, true } };
	static const struct tariff_step change[] = { { 0, 1, true },
						     { 11, 2, true },
						     { 21, 1, true } };
	const struct tariff_steps flat = { one, 1, 2 }, changing = { change, 3, 2 };
	struct usage_energy halves[] = { { 10, 100, 0, 0 }, { 20, 101, 0, 0 }, { 30, 103, 0, 0 } };
	struct usage_gpu gpu = { .id = STR("g"), .energy = halves, .energy_count = 3 };
	cost_at(c, "half to even", &gpu, &flat,
		(const int64_t[]){ 5, 0, 10, 0, 15, 0, 20, 0, 25, 1, 30, 2, 99, 2, -1 });
	// A gap of 3 s with a change inside: (1 + 2 * 2) / 3 units, then 4 / 3: together 3, which
	// is half a nano above 1.
	struct usage_energy thirds[] = {
		{ 10, 0, 0, 0 }, { 13, 1, 0, 0 }, { 20, 1, 0, 0 }, { 23, 2, 0, 0 }
	};
	gpu = (struct usage_gpu){ .id = STR("g"), .energy = thirds, .energy_count = 4 };
	cost_at(c, "thirds that make a tie", &gpu, &changing,
		(const int64_t[]){ 13, 1, 20, 1, 23, 2, -1 });
	// A reading below the one before, a new run, an old run again, two readings of one second.
	struct usage_energy runs[] = { { 10, 100, 0, 1 }, { 20, 110, 0, 1 }, { 30, 4, 0, 1 },
				       { 40, 6, 0, 2 },   { 50, 4, 0, 1 },   { 50, 10, 0, 2 } };
	gpu = (struct usage_gpu){ .id = STR("g"), .energy = runs, .energy_count = 6 };
	cost_at(c, "runs", &gpu, &flat, (const int64_t[]){ 20, 5, 30, 7, 40, 10, 50, 12, -1 });
}

static void zones_refused(struct check *c)
{
	static const char *const names[] = { "", "/etc/passwd", "../x", "a.b", "Europe Berlin" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		CHECK(c, names[i], !zone_is_name(str_of(names[i])));
	CHECK(c, "ours", zone_is_name(STR("America/Port-au-Prince")));
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	const struct zone *zone;
	static const char *const bytes[] = { "", "TZif",
					     "TZif2000000000000000000000000000000000000000000" };
	for (size_t i = 0; i < ARRAY_COUNT(bytes); i++)
		CHECK_INT(c, "damaged", zone_parse(arena, str_of(bytes[i]), &zone, NULL),
			  ERR_INVALID);
}

static err_status damaged_file(struct str name, struct buf *ret_tzif, struct err *err)
{
	if (str_eq_c(name, "None/Such"))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	buf_put_c(ret_tzif, "TZif");
	return ERR_OK;
}

static void zones_by_name(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	const struct zone *zone = NULL;
	struct err err = { .text = "" };
	CHECK_INT(c, "UTC", zone_load(arena, STR("UTC"), NULL, &zone, &err), ERR_OK);
	CHECK(c, "UTC needs no file", zone == zone_utc());
	CHECK_INT(c, "absent", zone_load(arena, STR("None/Such"), damaged_file, &zone, &err),
		  ERR_NOT_FOUND);
	CHECK_INT(c, "damaged", zone_load(arena, STR("A/B"), damaged_file, &zone, &err),
		  ERR_INVALID);
	CHECK(c, "names the zone", strncmp(err.text, "time zone A/B: ", 15) == 0);
	CHECK(c, "stays", zone == zone_utc());
}

int main(void)
{
	struct check c = { 0 };
	zone_rules(&c);
	steps(&c);
	meters(&c);
	zones_refused(&c);
	zones_by_name(&c);
	return check_done(&c);
}
