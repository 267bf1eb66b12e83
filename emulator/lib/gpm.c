// SPDX-License-Identifier: Apache-2.0
// Profiling counters (GPM), of Hopper and later. A sample is what the daemon counted up to an
// instant; a metric is the rate between two samples. Samples live in a static table, so that a
// stale or foreign pointer is noticed.
#include "emulator/lib/abi_gpm.h"
#include "emulator/lib/client_mig.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { SAMPLE_MAX = 1024, METRIC_COUNT_MAX = 512, SUPPORT_VERSION = 1, METRICS_VERSION = 1 };
enum sample_state { SAMPLE_FREE = 0, SAMPLE_USED };

struct nvml_gpm_sample {
	atomic_int state;
	uint32_t slot, gi;
	struct wire_gpm data; // time 0: nothing yet
};

static struct nvml_gpm_sample samples[SAMPLE_MAX];

static bool is_sample(const struct nvml_gpm_sample *sample)
{
	uintptr_t at = (uintptr_t)sample, first = (uintptr_t)samples;

	if (at < first || at >= first + sizeof(samples) || (at - first) % sizeof(samples[0]) != 0)
		return false;
	return atomic_load(&samples[(at - first) / sizeof(samples[0])].state) == SAMPLE_USED;
}

NVML_CALL(nvmlGpmQueryDeviceSupport,
	  (const struct nvml_device *device, struct nvml_gpm_support *ret_support))
{
	struct wire_gpu gpu;

	if (ret_support == NULL)
		return client_bad_argument();
	if (ret_support->version != SUPPORT_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvml_return result = client_parent(device, "nvmlGpmQueryDeviceSupport", &gpu);
	if (result == NVML_SUCCESS)
		ret_support->is_supported = gpu.architecture >= NVML_DEVICE_ARCH_HOPPER ? 1 : 0;
	return result;
}

NVML_CALL(nvmlGpmSampleAlloc, (struct nvml_gpm_sample * *ret_sample))
{
	struct wire_system system;

	if (ret_sample == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlGpmSampleAlloc", &system);
	if (result != NVML_SUCCESS)
		return result;
	for (size_t i = 0; i < SAMPLE_MAX; i++) {
		int expected = SAMPLE_FREE;
		if (!atomic_compare_exchange_strong(&samples[i].state, &expected, SAMPLE_USED))
			continue;
		samples[i].data = (struct wire_gpm){ 0 };
		*ret_sample = &samples[i];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_MEMORY;
}

NVML_CALL(nvmlGpmSampleFree, (struct nvml_gpm_sample * sample))
{
	if (!is_sample(sample))
		return client_bad_argument();
	atomic_store(&sample->state, SAMPLE_FREE);
	return NVML_SUCCESS;
}

static nvml_return sample_get(const struct nvml_device *device, const char *call, uint32_t gi,
			      struct nvml_gpm_sample *sample)
{
	struct wire_request request = client_request(WIRE_GPM, call);
	struct wire_reply reply;

	if (!is_sample(sample) || !client_slot(device, &request.slot))
		return client_bad_argument();
	request.args[0] = gi;
	nvml_return result = client_ask_once(&request, &reply);
	if (result != NVML_SUCCESS)
		return result;
	sample->slot = request.slot;
	sample->gi = gi;
	sample->data = reply.body.gpm;
	return NVML_SUCCESS;
}

NVML_CALL(nvmlGpmSampleGet, (const struct nvml_device *device, struct nvml_gpm_sample *sample))
{
	return sample_get(device, "nvmlGpmSampleGet", WIRE_NO_INSTANCE, sample);
}

NVML_CALL(nvmlGpmMigSampleGet,
	  (const struct nvml_device *device, uint32_t gi, struct nvml_gpm_sample *sample))
{
	if (gi == WIRE_NO_INSTANCE)
		return client_bad_argument();
	return sample_get(device, "nvmlGpmMigSampleGet", gi, sample);
}

// What a metric is made of: a part of the utilization or of the memory's, or a rate.
enum source { BUSY, MEMORY_BUSY, PCIE_TX, PCIE_RX, NVLINK_TOTAL, NVLINK_ONE, ZERO };
struct metric {
	uint32_t first, last;
	enum source source;
	uint32_t part_percent; // of BUSY: how a job that computes is taken to spend its time
	const char *short_name, *long_name, *unit;
};

static const struct metric METRICS[] = {
	{ 1, 1, BUSY, 100, "graphics", "graphics and compute engine active", "%" },
	{ 2, 2, BUSY, 100, "sm", "multiprocessors active", "%" },
	{ 3, 3, BUSY, 50, "occupancy", "warps resident on multiprocessors", "%" },
	{ 4, 4, BUSY, 10, "integer", "integer pipe active", "%" },
	{ 5, 5, BUSY, 60, "tensor", "any tensor pipe active", "%" },
	{ 6, 6, ZERO, 0, "dfma", "tensor pipe active in double precision", "%" },
	{ 7, 7, BUSY, 60, "hmma", "tensor pipe active in half precision", "%" },
	{ 9, 9, ZERO, 0, "imma", "tensor pipe active in integers", "%" },
	{ 10, 10, MEMORY_BUSY, 100, "dram", "memory interface active", "%" },
	{ 11, 11, ZERO, 0, "fp64", "double precision pipe active", "%" },
	{ 12, 12, BUSY, 20, "fp32", "single precision pipe active", "%" },
	{ 13, 13, BUSY, 10, "fp16", "half precision pipe active", "%" },
	{ 20, 20, PCIE_TX, 0, "pcie tx", "sent over PCIe", "MiB/s" },
	{ 21, 21, PCIE_RX, 0, "pcie rx", "received over PCIe", "MiB/s" },
	{ 30, 37, ZERO, 0, "nvdec", "decoder active", "%" },
	{ 40, 47, ZERO, 0, "nvjpg", "JPEG engine active", "%" },
	{ 50, 51, ZERO, 0, "nvofa", "optical flow engine active", "%" },
	{ 60, 60, NVLINK_TOTAL, 0, "nvlink rx", "received over all NVLinks", "MiB/s" },
	{ 61, 61, NVLINK_TOTAL, 0, "nvlink tx", "sent over all NVLinks", "MiB/s" },
	{ 62, 97, NVLINK_ONE, 0, "nvlink", "moved over one NVLink in one direction", "MiB/s" },
};

// Rates between two samples of one thing.
struct rates {
	double busy_percent, memory_percent, nvlink_mib_s;
	uint32_t nvlink_count;
	bool is_empty; // a GPU instance that nothing can run in
};

static nvml_return rates_of(const struct nvml_gpm_sample *first,
			    const struct nvml_gpm_sample *second, struct rates *ret)
{
	const struct wire_gpm *a = &first->data, *b = &second->data;

	if (a->time_ns == 0 || first->slot != second->slot || first->gi != second->gi ||
	    b->time_ns <= a->time_ns)
		return NVML_ERROR_INVALID_ARGUMENT;
	double dt_ns = (double)(b->time_ns - a->time_ns);
	ret->busy_percent = (double)(b->busy - a->busy) / dt_ns / 10;
	ret->memory_percent = (double)(b->memory_busy - a->memory_busy) / dt_ns / 10;
	ret->nvlink_mib_s = (double)(b->nvlink_kib - a->nvlink_kib) / 1024 / (dt_ns / 1e9);
	ret->nvlink_count = b->nvlink_count;
	ret->is_empty = second->gi != WIRE_NO_INSTANCE && b->ci_count == 0;
	return NVML_SUCCESS;
}

static double value_of(const struct metric *metric, uint32_t id, const struct rates *rates)
{
	switch (metric->source) {
	case BUSY: return rates->busy_percent * metric->part_percent / 100;
	case MEMORY_BUSY: return rates->memory_percent;
	// As nvmlDeviceGetPcieThroughput: 1 MiB/s out and 2 in for each thousandth.
	case PCIE_TX: return rates->busy_percent * 10;
	case PCIE_RX: return rates->busy_percent * 20;
	case NVLINK_TOTAL: return rates->nvlink_mib_s;
	case NVLINK_ONE:
		return (id - metric->first) / 2 < rates->nvlink_count
			       ? rates->nvlink_mib_s / rates->nvlink_count
			       : 0;
	case ZERO: return 0;
	}
	return 0;
}

static void fill(struct nvml_gpm_metric *metric, const struct rates *rates)
{
	for (size_t i = 0; i < sizeof(METRICS) / sizeof(METRICS[0]); i++) {
		const struct metric *known = &METRICS[i];
		if (metric->id < known->first || metric->id > known->last)
			continue;
		metric->status = NVML_SUCCESS;
		metric->value = rates->is_empty ? (double)NAN : value_of(known, metric->id, rates);
		metric->short_name = known->short_name;
		metric->long_name = known->long_name;
		metric->unit = known->unit;
		return;
	}
	metric->status = NVML_ERROR_NOT_SUPPORTED;
	metric->value = 0;
}

NVML_CALL(nvmlGpmMetricsGet, (struct nvml_gpm_metrics * metrics))
{
	struct wire_system system;
	struct rates rates;

	if (metrics == NULL)
		return client_bad_argument();
	nvml_return result = client_system("nvmlGpmMetricsGet", &system);
	if (result != NVML_SUCCESS)
		return result;
	if (metrics->version != METRICS_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (metrics->count > METRIC_COUNT_MAX || !is_sample(metrics->first) ||
	    !is_sample(metrics->second))
		return NVML_ERROR_INVALID_ARGUMENT;
	result = rates_of(metrics->first, metrics->second, &rates);
	for (uint32_t i = 0; result == NVML_SUCCESS && i < metrics->count; i++)
		fill(&metrics->metrics[i], &rates);
	return result;
}
