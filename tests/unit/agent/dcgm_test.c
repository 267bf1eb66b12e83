// SPDX-License-Identifier: Apache-2.0
// Profiling counters from a library that answers as DCGM's does.
#include "check.h"
#include "daemons/agent/dcgm.h"
#include "fake_dcgm.h"

#include <dlfcn.h>

#define S UINT64_C(1000000000)

static struct fake_dcgm *fake;

static struct gpu_reading of(struct dcgm *dcgm, const char *uuid, uint64_t now_s)
{
	struct gpu_reading reading = { 0 };
	dcgm_add(dcgm, uuid, now_s * S, &reading);
	return reading;
}

static bool has(const struct gpu_reading *reading, enum gpu_field field)
{
	return gpu_reading_has(reading, field);
}

static void check_values(struct check *c, struct dcgm *dcgm)
{
	dcgm_look(dcgm, 100 * S);
	struct gpu_reading first = of(dcgm, "GPU-0", 101), second = of(dcgm, "GPU-1", 101);
	CHECK_INT(c, "ratio", first.values[GPU_FIELD_PROF_SM], GPU_RATIO / 2);
	CHECK_INT(c, "bytes", first.values[GPU_FIELD_PROF_PCIE_TX], 1000);
	CHECK_INT(c, "of the other", second.values[GPU_FIELD_PROF_PCIE_TX], 1001);
	CHECK(c, "what the board has not", !has(&first, GPU_FIELD_PROF_FP64));
	CHECK(c, "all others",
	      __builtin_popcountll(first.valid) == 11 && has(&first, GPU_FIELD_PROF_NVLINK_RX));
	struct gpu_reading own = { 0 };
	gpu_reading_set(&own, GPU_FIELD_PROF_SM, 7);
	dcgm_add(dcgm, "GPU-0", 101 * S, &own);
	CHECK_INT(c, "what the device has itself stays", own.values[GPU_FIELD_PROF_SM], 7);
	struct gpu_reading foreign = of(dcgm, "GPU-7", 101);
	CHECK(c, "an unknown device", foreign.valid == 0);
	struct gpu_reading late = of(dcgm, "GPU-0", 106), limit = of(dcgm, "GPU-0", 105);
	CHECK(c, "as old as may be", limit.valid != 0);
	CHECK(c, "too old", late.valid == 0);
}

static void check_bad_values(struct check *c, struct dcgm *dcgm)
{
	static const struct {
		const char *name;
		struct fake_dcgm set;
		bool has_ratio, has_bytes;
		int64_t ratio;
	} cases[] = {
		{ "blank", { .is_blank = true }, false, false, 0 },
		{ "never read", { .is_old = true, .ratio = 0.5 }, false, false, 0 },
		{ "not a number", { .is_nan = true }, false, true, 0 },
		{ "of another type", { .is_bad_type = true, .ratio = 0.5 }, false, true, 0 },
		{ "negative", { .ratio = -0.5, .bytes = -5 }, false, false, 0 },
		{ "above one", { .ratio = 1.5 }, true, true, GPU_RATIO },
		{ "absurd", { .ratio = 0.1, .bytes = INT64_C(1) << 60 }, true, false, 100000 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		*fake = cases[i].set;
		dcgm_look(dcgm, (200 + i) * S);
		struct gpu_reading reading = of(dcgm, "GPU-0", 200 + i);
		CHECK(c, cases[i].name,
		      has(&reading, GPU_FIELD_PROF_SM) == cases[i].has_ratio &&
			      has(&reading, GPU_FIELD_PROF_PCIE_RX) == cases[i].has_bytes);
		CHECK_INT(c, cases[i].name, reading.values[GPU_FIELD_PROF_SM], cases[i].ratio);
	}
	*fake = (struct fake_dcgm){ .devices = 2, .ratio = 0.25 };
}

// A connection that is lost is made anew, not at once; what was seen gets old meanwhile.
static void check_lost(struct check *c, struct dcgm *dcgm)
{
	fake->fails_latest = true;
	dcgm_look(dcgm, 300 * S);
	CHECK_INT(c, "ended", fake->stops, 1);
	fake->fails_latest = false;
	fake->fails_connect = true;
	dcgm_look(dcgm, 301 * S);
	CHECK_INT(c, "not at once", fake->starts, 0);
	dcgm_look(dcgm, 310 * S);
	CHECK_INT(c, "again", fake->starts, 1);
	CHECK_INT(c, "there was nothing to end", fake->stops, 1);
	fake->fails_connect = false;
	dcgm_look(dcgm, 320 * S);
	CHECK_INT(c, "back", fake->starts, 2);
	CHECK_INT(c, "watched", fake->watches, 1);
	struct gpu_reading reading = of(dcgm, "GPU-1", 320);
	CHECK_INT(c, "values", reading.values[GPU_FIELD_PROF_SM], GPU_RATIO / 4);
	CHECK_INT(c, "once a process", fake->inits, 0);
}

static void check_engine(struct check *c, const char *library)
{
	struct dcgm *dcgm = NULL;
	struct err err = { 0 };
	*fake = (struct fake_dcgm){ .devices = 1, .ratio = 0.5 };
	CHECK_INT(c, "opens", dcgm_new(library, "127.0.0.1:5555", &dcgm, &err), ERR_OK);
	dcgm_look(dcgm, S);
	CHECK_STR(c, "of a host engine", str_of(fake->address), "127.0.0.1:5555");
	CHECK_INT(c, "not in this process", fake->starts, 0);
	dcgm_free(dcgm);
	CHECK_INT(c, "disconnected", fake->disconnects, 1);
	dcgm_free(NULL);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	struct dcgm *dcgm = NULL;
	struct err err = { 0 };
	if (argc != 3)
		return 2;
	void *library = dlopen(argv[1], RTLD_NOW);
	fake = library == NULL ? NULL : dlsym(library, "fake_dcgm");
	if (fake == NULL)
		return 2;
	CHECK_INT(&c, "absent", dcgm_new("/nowhere/libdcgm.so.4", NULL, &dcgm, &err),
		  ERR_NOT_FOUND);
	CHECK_INT(&c, "another library", dcgm_new(argv[2], NULL, &dcgm, &err), ERR_UNSUPPORTED);
	CHECK(&c, "says what it lacks", strstr(err.text, "dcgmInit") != NULL);
	CHECK_INT(&c, "opens", dcgm_new(argv[1], "", &dcgm, &err), ERR_OK);
	CHECK_INT(&c, "nothing is called yet", fake->inits, 0);
	check_values(&c, dcgm);
	check_bad_values(&c, dcgm);
	check_lost(&c, dcgm);
	dcgm_free(dcgm);
	check_engine(&c, argv[1]);
	return check_done(&c);
}
