// SPDX-License-Identifier: Apache-2.0
// The CSV of counters: what dcgm-exporter's files hold is taken, what is wrong is told by line.
#include "check.h"
#include "daemons/agent/counters.h"

static void check_good(struct check *c)
{
	static const char text[] =
		"# Format\n# If line starts with a '#' it is considered a comment\n\n"
		"DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).\r\n"
		"DCGM_FI_DEV_DEC_UTIL , gauge, Decoder utilization (in %).\n"
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, \"Energy, \"\"total\"\" (in "
		"mJ).\"\n"
		"DCGM_FI_DEV_XID_ERRORS,            gauge,   Value of the last XID error.\n"
		"DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status\n"
		"DCGM_FI_PROF_PIPE_INT_ACTIVE,   gauge, Ratio of time.\n"
		"  # indented comment\n"
		"DCGM_FI_DRIVER_VERSION, label, Driver Version";
	struct counters counters;
	struct err err = { 0 };
	CHECK_INT(c, err.text, counters_parse(str_of(text), &counters, &err), ERR_OK);
	CHECK_INT(c, "count", counters.count, 4);
	CHECK_INT(c, "unserved", counters.unserved, 2);
	CHECK(c, "label", counters.has_driver_label);
	CHECK_INT(c, "blank after the name", counters.items[1].field, GPU_FIELD_DEC_UTIL_PERCENT);
	CHECK_STR(c, "quotes", str_of(counters.items[2].help), "Energy, \"total\" (in mJ).");
	CHECK_STR(c, "CR", str_of(counters.items[0].help), "SM clock frequency (in MHz).");
	CHECK_INT(c, "XID", counters.items[3].kind, COUNTER_XID);
	CHECK_INT(c, "on request",
		  counters_parse(STR("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, x\n"
				     "DCGM_FI_PROF_SM_ACTIVE, gauge, y\n"),
				 &counters, &err),
		  ERR_OK);
	CHECK_INT(c, "both are served", counters.count, 2);
	CHECK_INT(c, "which", counters.items[0].field, GPU_FIELD_ECC_DBE_VOLATILE);
	counters_init(&counters);
	CHECK_INT(c, "all by default", counters.count, GPU_FIELD_DEFAULT_COUNT + 1);
}

static void check_bad(struct check *c)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "names no counter" },
		{ "# nothing\n", "names no counter" },
		{ "DCGM_FI_PROF_PIPE_INT_ACTIVE, gauge, x\n", "names no counter" },
		{ "\nDCGM_FI_DEV_SM_CLOCK\n", "line 2: there are 1 cells" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge\n", "line 1: there are 2 cells" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge, a, b\n", "quotes" },
		{ "DCGM_FI_DEV_SM_CLOCK, histogram, a\n", "gauge, counter or label" },
		{ "DCGM_FI_DEV_SM_CLOCK, Gauge, a\n", "gauge, counter or label" },
		{ "#\n#\nDCGM_FI_DEV_SMCLOCK, gauge, a\n", "line 3: \"DCGM_FI_DEV_SMCLOCK\"" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge, a\nDCGM_FI_DEV_SM_CLOCK, gauge, b\n",
		  "line 2: DCGM_FI_DEV_SM_CLOCK stands twice" },
		{ "DCGM_FI_DEV_SM_CLOCK, label, a\n", "gauge or counter" },
		{ "DCGM_FI_DRIVER_VERSION, gauge, a\n", "type label" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge, \"a\n", "not closed" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge, \"a\" b\n", "after a closing quote" },
		{ "DCGM_FI_DEV_SM_CLOCK, gauge, \xff\n", "UTF-8" },
		{ "DCGM_FI_PROF_x y, gauge, a\n", "no counter known" },
		{ ",,\n", "type" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct counters counters = { .count = 77 };
		struct err err = { 0 };
		CHECK(c, cases[i].text,
		      counters_parse(str_of(cases[i].text), &counters, &err) != ERR_OK);
		CHECK(c, err.text, strstr(err.text, cases[i].error) != NULL);
		CHECK_INT(c, "untouched", counters.count, 77);
	}
	static char large[COUNTERS_MAX_BYTES + 2];
	memset(large, '#', sizeof large - 1);
	struct counters counters;
	struct err err;
	CHECK_INT(c, "large", counters_parse(str_of(large), &counters, &err), ERR_LIMIT);
}

int main(void)
{
	struct check c = { 0 };
	check_good(&c);
	check_bad(&c);
	return check_done(&c);
}
