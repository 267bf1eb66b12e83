// SPDX-License-Identifier: Apache-2.0
// Values that need two looks, and those that are asked seldom, against a library of the test's own.
#include "check.h"
#include "daemons/agent/nvml_perf.h"

#include <math.h>
#include <stdlib.h>

#define S UINT64_C(1000000000)

struct nvml_gpm_sample {
	int number; // of the look that filled it; 0: none
};

static struct {
	bool has_gpm, fails_sample;
	int samples, allocs, pair[2], slow_asks;
	double percent, mib_s;
	uint64_t link_kib;
	bool has_links;
} fake;
static struct nvml_gpm_sample samples[2];

static nvml_return support(struct nvml_device *device, struct nvml_gpm_support *ret)
{
	(void)device;
	ret->is_supported = fake.has_gpm;
	return ret->version == 1 ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

static nvml_return gpm_alloc(struct nvml_gpm_sample **ret)
{
	*ret = &samples[fake.allocs++];
	return NVML_SUCCESS;
}

static nvml_return gpm_free(struct nvml_gpm_sample *sample)
{
	(void)sample;
	return NVML_SUCCESS;
}

static nvml_return gpm_sample(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
	(void)device;
	if (fake.fails_sample)
		return NVML_ERROR_UNKNOWN;
	sample->number = ++fake.samples;
	return NVML_SUCCESS;
}

static nvml_return gpm_metrics(struct nvml_gpm_metrics *metrics)
{
	fake.pair[0] = metrics->first->number;
	fake.pair[1] = metrics->second->number;
	for (uint32_t i = 0; i < metrics->count; i++) {
		struct nvml_gpm_metric *metric = &metrics->metrics[i];
		metric->value = metric->id < 20 ? fake.percent : fake.mib_s;
		metric->status = metric->id == 11 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
		if (metric->id == 12)
			metric->value = (double)NAN;
	}
	return NVML_SUCCESS;
}

static nvml_return field_values(struct nvml_device *device, int count,
				struct nvml_field_value *values)
{
	(void)device;
	for (int i = 0; i < count; i++) {
		values[i].status = fake.has_links ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		values[i].value.ull_value = values[i].field_id < 100 ? values[i].field_id
								     : fake.link_kib;
	}
	return NVML_SUCCESS;
}

static nvml_return ecc_errors(struct nvml_device *device, uint32_t type, uint32_t counter,
			      uint64_t *ret)
{
	(void)device;
	fake.slow_asks++;
	*ret = type * 10 + counter;
	return NVML_SUCCESS;
}

static nvml_return retired_pages(struct nvml_device *device, uint32_t cause, uint32_t *count,
				 uint64_t *pages)
{
	(void)device;
	(void)pages;
	*count = cause + 3;
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvml_return violation(struct nvml_device *device, uint32_t policy,
			     struct nvml_violation_time *ret)
{
	(void)device;
	ret->violation_ns = policy == 5 ? UINT64_MAX : policy;
	return NVML_SUCCESS;
}

static const struct nvml_lib lib = { .gpm_support = support,
				     .gpm_alloc = gpm_alloc,
				     .gpm_free = gpm_free,
				     .gpm_sample = gpm_sample,
				     .gpm_metrics = gpm_metrics,
				     .field_values = field_values,
				     .ecc_errors = ecc_errors,
				     .retired_pages = retired_pages,
				     .violation = violation };

static struct gpu_reading look(struct nvml_perf *perf, uint64_t now_s)
{
	struct gpu_reading reading = { 0 };
	nvml_read_perf(&lib, NULL, perf, now_s * S, &reading);
	return reading;
}

static int64_t value(const struct gpu_reading *reading, enum gpu_field field)
{
	return gpu_reading_has(reading, field) ? reading->values[field] : -1;
}

static void test_profiling(struct check *c)
{
	struct nvml_perf perf = { 0 };
	memset(&fake, 0, sizeof fake);
	fake.has_gpm = true;
	fake.percent = 62.5;
	fake.mib_s = 2;
	struct gpu_reading reading = look(&perf, 1);
	CHECK_INT(c, "one look says nothing", value(&reading, GPU_FIELD_PROF_SM), -1);
	reading = look(&perf, 3);
	CHECK_INT(c, "a ratio", value(&reading, GPU_FIELD_PROF_SM), 625000);
	CHECK_INT(c, "bytes", value(&reading, GPU_FIELD_PROF_PCIE_RX), 2097152);
	CHECK_INT(c, "not supported", value(&reading, GPU_FIELD_PROF_FP64), -1);
	CHECK_INT(c, "no number", value(&reading, GPU_FIELD_PROF_FP32), -1);
	fake.percent = 100.4;
	reading = look(&perf, 5);
	CHECK_INT(c, "never above one", value(&reading, GPU_FIELD_PROF_SM), GPU_RATIO);
	CHECK(c, "neighbouring looks", fake.pair[0] == 2 && fake.pair[1] == 3);
	fake.fails_sample = true;
	reading = look(&perf, 7);
	CHECK_INT(c, "no look", value(&reading, GPU_FIELD_PROF_SM), -1);
	fake.fails_sample = false;
	reading = look(&perf, 9);
	CHECK_INT(c, "the first again", value(&reading, GPU_FIELD_PROF_SM), -1);
	reading = look(&perf, 11);
	CHECK_INT(c, "and a pair", value(&reading, GPU_FIELD_PROF_SM), GPU_RATIO);
	CHECK_INT(c, "two samples in all", fake.allocs, 2);
	free(perf.metrics);
}

static void test_older_board(struct check *c)
{
	struct nvml_perf perf = { 0 };
	memset(&fake, 0, sizeof fake);
	(void)look(&perf, 1);
	struct gpu_reading reading = look(&perf, 3);
	CHECK_INT(c, "no profiling", value(&reading, GPU_FIELD_PROF_GRAPHICS), -1);
	CHECK_INT(c, "no NVLink", value(&reading, GPU_FIELD_NVLINK_MB_S), -1);
	CHECK_INT(c, "no samples", fake.allocs, 0);
}

static void test_links(struct check *c)
{
	struct nvml_perf perf = { 0 };
	memset(&fake, 0, sizeof fake);
	fake.has_links = true;
	fake.link_kib = 1000;
	struct gpu_reading reading = look(&perf, 1);
	CHECK_INT(c, "one look says nothing", value(&reading, GPU_FIELD_NVLINK_MB_S), -1);
	fake.link_kib += 1000000;
	reading = look(&perf, 3);
	CHECK_INT(c, "both directions", value(&reading, GPU_FIELD_NVLINK_MB_S), 1024);
	fake.link_kib = 5;
	reading = look(&perf, 5);
	CHECK_INT(c, "a counter that went back", value(&reading, GPU_FIELD_NVLINK_MB_S), -1);
	CHECK_INT(c, "errors", value(&reading, GPU_FIELD_LINK_REPLAY), 52);
}

static void test_slow(struct check *c)
{
	struct nvml_perf perf = { 0 };
	memset(&fake, 0, sizeof fake);
	struct gpu_reading reading = look(&perf, 100);
	CHECK_INT(c, "uncorrected of all time", value(&reading, GPU_FIELD_ECC_DBE_AGGREGATE), 11);
	CHECK_INT(c, "pages", value(&reading, GPU_FIELD_RETIRED_DBE), 4);
	CHECK_INT(c, "heat", value(&reading, GPU_FIELD_THERMAL_VIOLATION), 1);
	CHECK_INT(c, "all ones are no value", value(&reading, GPU_FIELD_RELIABILITY_VIOLATION), -1);
	reading = look(&perf, 109);
	CHECK_INT(c, "not asked again", fake.slow_asks, 4);
	CHECK_INT(c, "but shown", value(&reading, GPU_FIELD_ECC_DBE_AGGREGATE), 11);
	(void)look(&perf, 110);
	CHECK_INT(c, "asked again", fake.slow_asks, 8);
	CHECK_INT(c, "a function that is absent", value(&reading, GPU_FIELD_CLOCK_REASONS), -1);
}

int main(void)
{
	struct check c = { 0 };
	test_profiling(&c);
	test_older_board(&c);
	test_links(&c);
	test_slow(&c);
	CHECK(&c, "a bit for each field", GPU_FIELD_COUNT < 64);
	return check_done(&c);
}
