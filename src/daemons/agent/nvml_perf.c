// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_perf.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t SLOW_NS = 10 * UINT64_C(1000000000);
static const double MIB = 1024 * 1024;

enum gpm_unit { PERCENT, MIB_PER_S };

// Metrics of GPM and what they become.
static const struct {
	uint32_t id;
	enum gpu_field field;
	enum gpm_unit unit;
} gpm[] = {
	{ 1, GPU_FIELD_PROF_GRAPHICS, PERCENT },     { 2, GPU_FIELD_PROF_SM, PERCENT },
	{ 3, GPU_FIELD_PROF_OCCUPANCY, PERCENT },    { 5, GPU_FIELD_PROF_TENSOR, PERCENT },
	{ 10, GPU_FIELD_PROF_DRAM, PERCENT },        { 11, GPU_FIELD_PROF_FP64, PERCENT },
	{ 12, GPU_FIELD_PROF_FP32, PERCENT },        { 13, GPU_FIELD_PROF_FP16, PERCENT },
	{ 20, GPU_FIELD_PROF_PCIE_TX, MIB_PER_S },   { 21, GPU_FIELD_PROF_PCIE_RX, MIB_PER_S },
	{ 60, GPU_FIELD_PROF_NVLINK_RX, MIB_PER_S }, { 61, GPU_FIELD_PROF_NVLINK_TX, MIB_PER_S },
};

static bool has_gpm(const struct nvml_lib *lib)
{
	return lib->gpm_support != NULL && lib->gpm_alloc != NULL && lib->gpm_free != NULL &&
	       lib->gpm_sample != NULL && lib->gpm_metrics != NULL;
}

// Once a device's life: whether it has the counters, and the room for two samples.
static void prepare(const struct nvml_lib *lib, struct nvml_device *device, struct nvml_perf *perf)
{
	struct nvml_gpm_support support = { .version = 1 };
	perf->is_asked = true;
	if (!has_gpm(lib) || lib->gpm_support(device, &support) != NVML_SUCCESS ||
	    support.is_supported == 0)
		return;
	perf->metrics = calloc(1, sizeof *perf->metrics +
					  ARRAY_COUNT(gpm) * sizeof(struct nvml_gpm_metric));
	if (perf->metrics == NULL || lib->gpm_alloc(&perf->samples[0]) != NVML_SUCCESS) {
		perf->samples[0] = NULL;
		return;
	}
	if (lib->gpm_alloc(&perf->samples[1]) == NVML_SUCCESS)
		return;
	(void)lib->gpm_free(perf->samples[0]);
	perf->samples[0] = NULL;
}

static void take_metric(const struct nvml_gpm_metric *metric, size_t i, struct gpu_reading *ret)
{
	double value = metric->value;
	if (metric->status != NVML_SUCCESS || !isfinite(value) || value < 0)
		return;
	if (gpm[i].unit == PERCENT)
		value = (value > 100 ? 100 : value) * GPU_RATIO / 100;
	else
		value *= MIB;
	if (value < 1e18)
		gpu_reading_set(ret, gpm[i].field, (int64_t)(value + 0.5));
}

static void read_gpm(const struct nvml_lib *lib, struct nvml_device *device, struct nvml_perf *perf,
		     struct gpu_reading *ret)
{
	if (!perf->is_asked)
		prepare(lib, device, perf);
	if (perf->samples[0] == NULL)
		return;
	bool had_first = perf->has_first;
	struct nvml_gpm_sample *first = perf->samples[0], *second = perf->samples[1];
	perf->has_first = lib->gpm_sample(device, had_first ? second : first) == NVML_SUCCESS;
	if (!had_first || !perf->has_first)
		return;
	perf->samples[0] = second; // it is the next one's first, whatever comes of this pair
	perf->samples[1] = first;
	perf->metrics->version = 1;
	perf->metrics->count = ARRAY_COUNT(gpm);
	perf->metrics->first = first;
	perf->metrics->second = second;
	for (size_t i = 0; i < ARRAY_COUNT(gpm); i++)
		perf->metrics->metrics[i] = (struct nvml_gpm_metric){ .id = gpm[i].id };
	if (lib->gpm_metrics(perf->metrics) != NVML_SUCCESS)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(gpm); i++)
		take_metric(&perf->metrics->metrics[i], i, ret);
}

static void read_links(const struct nvml_lib *lib, struct nvml_device *device,
		       struct nvml_perf *perf, uint64_t now_ns, struct gpu_reading *ret)
{
	struct nvml_field_value values[] = {
		{ .field_id = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scope_id = UINT32_MAX },
		{ .field_id = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, .scope_id = UINT32_MAX },
	};
	if (lib->field_values == NULL || lib->field_values(device, 2, values) != NVML_SUCCESS ||
	    values[0].status != NVML_SUCCESS || values[1].status != NVML_SUCCESS)
		return;
	uint64_t kib = values[0].value.ull_value + values[1].value.ull_value;
	uint64_t since_ns = now_ns - perf->link_ns;
	// A counter that went back was reset with its driver.
	if (perf->link_ns != 0 && since_ns > 0 && kib >= perf->link_kib) {
		double bytes_per_s = (double)(kib - perf->link_kib) * 1024 * 1e9 / (double)since_ns;
		gpu_reading_set(ret, GPU_FIELD_NVLINK_MB_S, (int64_t)(bytes_per_s / 1e6));
	}
	perf->link_kib = kib;
	perf->link_ns = now_ns;
}

static void read_ecc(const struct nvml_lib *lib, struct nvml_device *device,
		     struct gpu_reading *ret)
{
	static const struct {
		uint32_t type,
			counter; // 0 corrected, 1 not; 0 since the driver's load, 1 of all time
		enum gpu_field field;
	} rows[] = { { 0, 0, GPU_FIELD_ECC_SBE_VOLATILE },
		     { 1, 0, GPU_FIELD_ECC_DBE_VOLATILE },
		     { 0, 1, GPU_FIELD_ECC_SBE_AGGREGATE },
		     { 1, 1, GPU_FIELD_ECC_DBE_AGGREGATE } };
	for (size_t i = 0; i < ARRAY_COUNT(rows) && lib->ecc_errors != NULL; i++) {
		uint64_t count = 0;
		if (lib->ecc_errors(device, rows[i].type, rows[i].counter, &count) ==
			    NVML_SUCCESS &&
		    count <= INT64_MAX)
			gpu_reading_set(ret, rows[i].field, (int64_t)count);
	}
}

static void read_pages(const struct nvml_lib *lib, struct nvml_device *device,
		       struct gpu_reading *ret)
{
	static const enum gpu_field fields[] = { GPU_FIELD_RETIRED_SBE, GPU_FIELD_RETIRED_DBE };
	uint32_t is_pending = 0;
	for (uint32_t cause = 0; cause < 2 && lib->retired_pages != NULL; cause++) {
		uint32_t count = 0; // no room: it only says how many
		nvml_return result = lib->retired_pages(device, cause, &count, NULL);
		if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
			gpu_reading_set(ret, fields[cause], count);
	}
	if (lib->retired_pending != NULL &&
	    lib->retired_pending(device, &is_pending) == NVML_SUCCESS)
		gpu_reading_set(ret, GPU_FIELD_RETIRED_PENDING, is_pending != 0);
}

static void read_throttling(const struct nvml_lib *lib, struct nvml_device *device,
			    struct gpu_reading *ret)
{
	static const enum gpu_field fields[] = {
		GPU_FIELD_POWER_VIOLATION,      GPU_FIELD_THERMAL_VIOLATION,
		GPU_FIELD_SYNC_BOOST_VIOLATION, GPU_FIELD_BOARD_LIMIT_VIOLATION,
		GPU_FIELD_LOW_UTIL_VIOLATION,   GPU_FIELD_RELIABILITY_VIOLATION,
	};
	uint64_t reasons = 0;
	for (uint32_t policy = 0; policy < ARRAY_COUNT(fields) && lib->violation != NULL;
	     policy++) {
		struct nvml_violation_time time = { 0 };
		if (lib->violation(device, policy, &time) == NVML_SUCCESS &&
		    time.violation_ns <= INT64_MAX)
			gpu_reading_set(ret, fields[policy], (int64_t)time.violation_ns);
	}
	if (lib->clock_reasons != NULL && lib->clock_reasons(device, &reasons) == NVML_SUCCESS &&
	    reasons <= INT64_MAX)
		gpu_reading_set(ret, GPU_FIELD_CLOCK_REASONS, (int64_t)reasons);
}

static void read_link_errors(const struct nvml_lib *lib, struct nvml_device *device,
			     struct gpu_reading *ret)
{
	enum { FLIT_TOTAL = 38, DATA_TOTAL = 45, REPLAY_TOTAL = 52, RECOVERY_TOTAL = 59 };
	static const enum gpu_field fields[] = { GPU_FIELD_LINK_CRC_FLIT, GPU_FIELD_LINK_CRC_DATA,
						 GPU_FIELD_LINK_REPLAY, GPU_FIELD_LINK_RECOVERY };
	struct nvml_field_value values[] = { { .field_id = FLIT_TOTAL },
					     { .field_id = DATA_TOTAL },
					     { .field_id = REPLAY_TOTAL },
					     { .field_id = RECOVERY_TOTAL } };
	if (lib->field_values == NULL || lib->field_values(device, 4, values) != NVML_SUCCESS)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
		if (values[i].status == NVML_SUCCESS && values[i].value.ull_value <= INT64_MAX)
			gpu_reading_set(ret, fields[i], (int64_t)values[i].value.ull_value);
	}
}

bool nvml_perf_has_counters(const struct nvml_perf *perf)
{
	return !perf->is_asked || perf->samples[0] != NULL;
}

void nvml_read_perf(const struct nvml_lib *lib, struct nvml_device *device, struct nvml_perf *perf,
		    uint64_t now_ns, struct gpu_reading *ret)
{
	read_gpm(lib, device, perf, ret);
	read_links(lib, device, perf, now_ns, ret);
	if (perf->slow_ns == 0 || now_ns - perf->slow_ns >= SLOW_NS) {
		perf->slow_ns = now_ns;
		perf->slow = (struct gpu_reading){ 0 };
		read_ecc(lib, device, &perf->slow);
		read_pages(lib, device, &perf->slow);
		read_throttling(lib, device, &perf->slow);
		read_link_errors(lib, device, &perf->slow);
	}
	for (int i = 0; i < GPU_FIELD_COUNT; i++) {
		if (gpu_reading_has(&perf->slow, (enum gpu_field)i))
			gpu_reading_set(ret, (enum gpu_field)i, perf->slow.values[i]);
	}
}

static void free_place(const struct nvml_lib *lib, struct nvml_mig_perf *perf, size_t i)
{
	for (size_t j = 0; j < 2; j++) {
		if (perf->places[i].samples[j] != NULL)
			(void)lib->gpm_free(perf->places[i].samples[j]);
		perf->places[i].samples[j] = NULL;
	}
	perf->places[i].is_used = perf->places[i].has_first = false;
}

// The place of the instance, else a free one with room for its samples; MIG_INSTANCES_MAX: none.
static size_t place_of(const struct nvml_lib *lib, struct nvml_mig_perf *perf, uint32_t gi)
{
	size_t found = MIG_INSTANCES_MAX;
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		if (perf->places[i].is_used && perf->places[i].gi == gi)
			return i;
		if (!perf->places[i].is_used)
			found = i;
	}
	if (found == MIG_INSTANCES_MAX)
		return found;
	perf->places[found].is_used = true;
	perf->places[found].gi = gi;
	for (size_t j = 0; j < 2; j++) {
		if (lib->gpm_alloc(&perf->places[found].samples[j]) == NVML_SUCCESS)
			continue;
		perf->places[found].samples[j] = NULL;
		free_place(lib, perf, found);
		return MIG_INSTANCES_MAX;
	}
	return found;
}

static bool has_gi(const struct mig_state *mig, uint32_t gi)
{
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].gi == gi && mig->instances[i].uuid[0] != '\0')
			return true;
	}
	return false;
}

static void read_use(const struct nvml_lib *lib, struct nvml_device *device,
		     struct nvml_mig_perf *perf, size_t place, struct mig_instance *instance)
{
	_Alignas(struct nvml_gpm_metrics) char
		room[sizeof(struct nvml_gpm_metrics) + sizeof(struct nvml_gpm_metric)] = { 0 };
	struct nvml_gpm_metrics *metrics = (void *)room;
	bool had_first = perf->places[place].has_first;
	struct nvml_gpm_sample **samples = perf->places[place].samples;
	struct nvml_gpm_sample *first = samples[0], *second = samples[1];
	perf->places[place].has_first =
		lib->gpm_mig_sample(device, instance->gi, had_first ? second : first) ==
		NVML_SUCCESS;
	if (!had_first || !perf->places[place].has_first)
		return;
	samples[0] = second;
	samples[1] = first;
	metrics->version = 1;
	metrics->count = 1;
	metrics->first = first;
	metrics->second = second;
	metrics->metrics[0].id = gpm[0].id; // graphics and compute
	double percent = lib->gpm_metrics(metrics) == NVML_SUCCESS ? metrics->metrics[0].value : -1;
	if (metrics->metrics[0].status != NVML_SUCCESS || !isfinite(percent) || percent < 0)
		return;
	instance->has_use = 1;
	instance->use_milli = (uint32_t)((percent > 100 ? 100 : percent) * 10 + 0.5);
}

void nvml_read_mig_perf(const struct nvml_lib *lib, struct nvml_device *device,
			struct nvml_mig_perf *perf, struct mig_state *mig)
{
	struct nvml_gpm_support support = { .version = 1 };
	if (!has_gpm(lib) || lib->gpm_mig_sample == NULL)
		return;
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		if (perf->places[i].is_used && !has_gi(mig, perf->places[i].gi))
			free_place(lib, perf, i);
	}
	if (mig->instance_count == 0 || lib->gpm_support(device, &support) != NVML_SUCCESS ||
	    support.is_supported == 0)
		return;
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].uuid[0] == '\0')
			continue;
		size_t place = place_of(lib, perf, mig->instances[i].gi);
		if (place < MIG_INSTANCES_MAX)
			read_use(lib, device, perf, place, &mig->instances[i]);
	}
}
