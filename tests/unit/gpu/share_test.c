// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU: names, units, and that what fills a GPU by one measure never passes the other.
#include "gpu/share.h"

#include "check.h"

static const struct {
	const char *name;
	struct share ask;
	int64_t memory_mib;
	struct share want;
	int64_t dominant;
} CASES[] = {
	{ "half by thousandths", { 500, 0 }, 81920, { 500, 40960 }, 500 },
	{ "a third", { 333, 0 }, 81920, { 333, 27279 }, 333 },
	{ "by memory", { 0, 20480 }, 81920, { 250, 20480 }, 250 },
	{ "the smallest", { 0, 256 }, 81920, { 3, 256 }, 3 },
	{ "never nothing", { 0, 256 }, 1048576, { 1, 256 }, 1 },
	{ "both as they are", { 100, 40960 }, 81920, { 100, 40960 }, 500 },
	{ "more than there is", { 0, 90112 }, 81920, { 1100, 90112 }, 1100 },
	{ "memory not known", { 500, 0 }, 0, { 500, 0 }, 500 },
	{ "whole", { 1000, 0 }, 46068, { 1000, 46068 }, 1000 },
};

static void check_arithmetic(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct share got = share_of(&CASES[i].ask, CASES[i].memory_mib);
		CHECK_INT(c, CASES[i].name, got.milli, CASES[i].want.milli);
		CHECK_INT(c, CASES[i].name, got.memory_mib, CASES[i].want.memory_mib);
		CHECK_INT(c, CASES[i].name, share_dominant_milli(&got, CASES[i].memory_mib),
			  CASES[i].dominant);
	}
}

// As many equal shares as the one measure has room for fit by the other, too.
static void check_filling(struct check *c)
{
	static const int64_t sizes_mib[] = { 15360, 23034, 40960, 46068, 81559, 81920, 143771 };
	int failed = 0;
	for (size_t i = 0; i < ARRAY_COUNT(sizes_mib); i++) {
		const struct share whole = share_whole(sizes_mib[i]);
		for (int64_t parts = 1; parts <= share_units(SHARE_BY_MEMORY, sizes_mib[i]);
		     parts++) {
			for (int kind = 0; kind < SHARE_KINDS; kind++) {
				int64_t units = share_units((share_kind)kind, sizes_mib[i]) / parts;
				struct share ask = share_ask((share_kind)kind, units), sum = { 0 };
				struct share one = share_of(&ask, sizes_mib[i]);
				for (int64_t k = 0; units > 0 && k < parts; k++)
					share_add(&sum, &one);
				failed += share_fits(&sum, &whole) ? 0 : 1;
			}
		}
	}
	CHECK_INT(c, "fills without passing", failed, 0);
}

int main(void)
{
	struct check c = { 0 };
	share_kind kind = SHARE_BY_MILLI;
	CHECK(&c, "memory", share_kind_of(STR("gpuaas.io/gpu-memory"), &kind));
	CHECK_INT(&c, "kind", kind, SHARE_BY_MEMORY);
	CHECK(&c, "not one", !share_kind_of(STR("nvidia.com/gpu"), &kind));
	CHECK_INT(&c, "units", share_units(SHARE_BY_MEMORY, 81559), 318);
	CHECK_INT(&c, "unit", share_ask(SHARE_BY_MEMORY, 4).memory_mib, 1024);
	check_arithmetic(&c);
	check_filling(&c);
	struct share left = share_whole(1024), part = { 999, 1024 };
	CHECK(&c, "fits", share_fits(&part, &left));
	share_sub(&left, &part);
	CHECK(&c, "full by memory", !share_fits(&(struct share){ 1, 1 }, &left));
	return check_done(&c);
}
