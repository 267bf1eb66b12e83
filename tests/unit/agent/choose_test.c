// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"
#include "check.h"
#include "daemons/agent/plan.h"
#include "daemons/agent/prefer.h"

static void check_choices(struct check *c)
{
	// A place each: '.' not available, 'a' available, 'm' must, 'r' reserved for others.
	static const struct {
		const char *name, *places;
		size_t size;
		const char *want; // '1' at the chosen places; NULL: refused
	} cases[] = {
		{ "first of all", "aaaaaaaa", 1, "10000000" },
		{ "neighbours", "aaaaaaaa", 4, "11110000" },
		{ "over a gap only if needed", "a.aaa.a.", 3, "00111000" },
		{ "smallest span", "a..a.a..", 2, "00010100" },
		{ "away from plans", "rraaaaaa", 2, "00110000" },
		{ "plans of others if there is nothing else", "rra", 3, "111" },
		{ "fewest of them", "rarara", 4, "111100" },
		{ "must", "aaaam", 2, "00011" },
		{ "must in the middle", "aaamaaaa", 3, "01110000" },
		{ "all musts", "maaaaaam", 2, "10000001" },
		{ "a must may be reserved by its own plan", "m", 1, "1" },
		{ "more than there are", "aa..", 3, NULL },
		{ "more musts than places", "mm", 1, NULL },
		{ "none", "aa", 0, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct prefer_device devices[GPU_MAX] = { 0 };
		size_t chosen[GPU_MAX], count = strlen(cases[i].places);
		char got[GPU_MAX + 1] = { 0 };
		for (size_t j = 0; j < count; j++) {
			char place = cases[i].places[j];
			devices[j] = (struct prefer_device){ .index = (uint32_t)j,
							     .numa_node = -1,
							     .is_available = place != '.',
							     .is_must = place == 'm',
							     .is_reserved = place == 'r' };
			got[j] = '0';
		}
		bool ok = prefer_choose(devices, count, cases[i].size, chosen);
		for (size_t j = 0; ok && j < cases[i].size; j++)
			got[chosen[j]] = '1';
		CHECK(c, cases[i].name, ok == (cases[i].want != NULL));
		if (ok && cases[i].want != NULL)
			CHECK_STR(c, cases[i].name, str_of(got), cases[i].want);
	}
}

// Whatever is asked: as many as wanted, each available and once, musts among them.
static void check_random(struct check *c)
{
	struct rng rng;
	rng_init(&rng, 7);
	for (int round = 0; round < 20000; round++) {
		struct prefer_device devices[GPU_MAX];
		size_t chosen[GPU_MAX], count = 1 + rng_below(&rng, 16), available = 0, must = 0;
		for (size_t i = 0; i < count; i++) {
			devices[i] = (struct prefer_device){
				.index = (uint32_t)i,
				.numa_node = (int32_t)(i / 4),
				.is_available = rng_below(&rng, 4) > 0,
				.is_reserved = rng_below(&rng, 3) == 0,
			};
			devices[i].is_must = devices[i].is_available && rng_below(&rng, 6) == 0;
			available += devices[i].is_available ? 1 : 0;
			must += devices[i].is_must ? 1 : 0;
		}
		size_t size = rng_below(&rng, count + 2), musts_in = 0;
		bool can = size > 0 && size <= available && must <= size;
		bool ok = prefer_choose(devices, count, size, chosen);
		bool good = ok == can;
		for (size_t i = 0; ok && i < size; i++) {
			good = good && chosen[i] < count && devices[chosen[i]].is_available &&
			       (i == 0 || chosen[i] > chosen[i - 1]);
			musts_in += devices[chosen[i]].is_must ? 1 : 0;
		}
		good = good && (!ok || musts_in == must);
		if (!good)
			CHECK(c, "random choice", good);
	}
	CHECK(c, "random choices", true);
}

static void check_plans(struct check *c)
{
#define DEVICE(uuid)                                                                               \
	"{\"container\":\"main\",\"resource\":\"nvidia.com/gpu\",\"uuid\":\"" uuid "\","           \
	"\"milli\":1000,\"memory_mib\":81920}"
	static const struct {
		const char *text;
		bool ok;
		size_t count;
	} cases[] = {
		{ "[]", true, 0 },
		{ "[" DEVICE("GPU-1") "]", true, 1 },
		{ "[" DEVICE("GPU-1") "," DEVICE("GPU-2") "]", true, 2 },
		{ "[" DEVICE("1") "]", false, 0 },
		{ "[{\"container\":\"main\",\"uuid\":\"GPU-1\"}]", false, 0 },
		{ "{}", false, 0 },
		{ "", false, 0 },
		{ "[7]", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct plan plan = { .count = 77 };
		const char *uuids[PLAN_DEVICES_MAX];
		err_status status = plan_parse(str_of(cases[i].text), &plan, NULL);
		CHECK(c, cases[i].text, (status == ERR_OK) == cases[i].ok);
		if (status != ERR_OK) {
			CHECK_INT(c, "untouched", plan.count, 77);
			continue;
		}
		CHECK_INT(c, cases[i].text, plan_of(&plan, "main", "nvidia.com/gpu", uuids),
			  cases[i].count);
		CHECK_INT(c, "another container", plan_of(&plan, "x", "nvidia.com/gpu", uuids), 0);
	}
}

int main(void)
{
	struct check c = { 0 };
	check_choices(&c);
	check_random(&c);
	check_plans(&c);
	return check_done(&c);
}
