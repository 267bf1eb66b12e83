// SPDX-License-Identifier: Apache-2.0
// nvmlDeviceGetFieldValues: figures by number. What is not in the list answers NOT_SUPPORTED for
// itself, the others of the same call are filled.
#include "emulator/lib/client.h"

#include <time.h>

enum {
	ECC_MODE = 1,
	ECC_MODE_PENDING = 2,
	ECC_VOLATILE_TOTAL = 3,
	ECC_AGGREGATE_TOTAL = 5,
	ECC_VOLATILE_MEMORY = 11,
	ECC_AGGREGATE_MEMORY = 22,
	ECC_LAST = 28,
	RETIRED_FIRST = 29,
	LINK_ERROR_FIRST = 32,
	LINK_ERROR_LAST = 59,
	LINK_SPEED_FIRST = 84,
	LINK_SPEED_COMMON = 90,
	LINK_COUNT = 91,
	PCIE_REPLAY = 94,
	PCIE_REPLAY_ROLLOVER = 95,
	RAW_TX = 140,
	RAW_RX = 141,
	REMAPPED_FIRST = 142,
	REMAPPED_LAST = 145,
	LINK_GET_SPEED = 164,
	LINK_GET_STATE = 165,
	LINK_GET_VERSION = 166,
	C2C_LINK_COUNT = 170,
	RESETLESS_MIG = 184,
	POLICY_FIRST = 74,
	POLICY_THERMAL = 75,
	POLICY_LAST = 81,
	POWER_AVERAGE = 185,
	POWER_INSTANT = 186,
	POWER_MIN_LIMIT = 187,
	POWER_MAX_LIMIT = 188,
	POWER_DEFAULT_LIMIT = 189,
	POWER_CURRENT_LIMIT = 190,
	ENERGY = 191,
	POWER_REQUESTED_LIMIT = 192,
	SCOPE_MEMORY = 2, // of the power fields: GPU 0, module 1
};

// Data of one link, or of all with the scope UINT32_MAX.
static bool link_traffic(const struct wire_gpu *gpu, uint32_t scope, uint64_t total_kib,
			 uint64_t *ret)
{
	if (gpu->nvlink_count == 0 || (scope != UINT32_MAX && scope >= gpu->nvlink_count))
		return false;
	*ret = scope == UINT32_MAX ? total_kib : total_kib / gpu->nvlink_count;
	return true;
}

static bool link_field(const struct wire_gpu *gpu, const struct nvml_field_value *field,
		       uint64_t *ret)
{
	uint32_t id = field->field_id;

	if (id == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX || id == RAW_TX)
		return link_traffic(gpu, field->scope_id, gpu->nvlink_tx_kib, ret);
	if (id == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX || id == RAW_RX)
		return link_traffic(gpu, field->scope_id, gpu->nvlink_rx_kib, ret);
	if (id == LINK_COUNT) {
		*ret = gpu->nvlink_count;
		return true;
	}
	if (gpu->nvlink_count == 0)
		return false;
	if (id >= LINK_ERROR_FIRST && id <= LINK_ERROR_LAST)
		*ret = 0;
	else if ((id >= LINK_SPEED_FIRST && id <= LINK_SPEED_COMMON) || id == LINK_GET_SPEED)
		*ret = gpu->nvlink_mb_s;
	else if (id == LINK_GET_STATE)
		*ret = client_link_up(gpu) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	else if (id == LINK_GET_VERSION)
		*ret = gpu->nvlink_version;
	else
		return false;
	return true;
}

static bool power_field(const struct wire_gpu *gpu, const struct nvml_field_value *field,
			uint64_t *ret)
{
	uint32_t id = field->field_id;

	if (field->scope_id == SCOPE_MEMORY)
		return false;
	if (id == POWER_AVERAGE || id == POWER_INSTANT)
		*ret = gpu->power_mw;
	else if (id == POWER_MIN_LIMIT)
		*ret = gpu->power_limit_min_mw;
	else if (id == POWER_MAX_LIMIT)
		*ret = gpu->power_limit_max_mw;
	else if (id == POWER_DEFAULT_LIMIT)
		*ret = gpu->power_limit_default_mw;
	else if (id == POWER_CURRENT_LIMIT || id == POWER_REQUESTED_LIMIT)
		*ret = gpu->power_limit_mw;
	else
		return false;
	return true;
}

// Single-bit fields are odd and double-bit ones even up to those of the texture memory.
static bool ecc_field(const struct wire_errors *errors, uint32_t id, uint64_t *ret)
{
	uint32_t kind = id % 2 == 1 ? 0 : 1;

	if (errors->ecc_mode == 0)
		return false;
	if (id == ECC_VOLATILE_TOTAL || id == ECC_VOLATILE_TOTAL + 1 || id == ECC_VOLATILE_MEMORY ||
	    id == ECC_VOLATILE_MEMORY + 1)
		*ret = errors->ecc_volatile[kind];
	else if (id == ECC_AGGREGATE_TOTAL || id == ECC_AGGREGATE_TOTAL + 1)
		*ret = errors->ecc_aggregate[kind];
	else if (id == ECC_AGGREGATE_MEMORY || id == ECC_AGGREGATE_MEMORY + 1)
		*ret = errors->ecc_aggregate[id - ECC_AGGREGATE_MEMORY];
	else
		*ret = 0;
	return true;
}

static bool error_field(const struct wire_gpu *gpu, uint32_t id, uint64_t *ret)
{
	const struct wire_errors *errors = &gpu->errors;
	bool is_ampere = gpu->architecture >= NVML_DEVICE_ARCH_AMPERE;

	if (!gpu->has_ecc)
		return false;
	if (id == ECC_MODE || id == ECC_MODE_PENDING) {
		*ret = id == ECC_MODE ? errors->ecc_mode : errors->ecc_mode_pending;
		return true;
	}
	if (id > ECC_MODE_PENDING && id <= ECC_LAST)
		return ecc_field(errors, id, ret);
	if (id >= RETIRED_FIRST && id <= RETIRED_FIRST + 2 && !is_ampere) {
		*ret = id == RETIRED_FIRST + 2 ? errors->pages_pending
					       : errors->pages[id - RETIRED_FIRST];
		return true;
	}
	if (id < REMAPPED_FIRST || id > REMAPPED_LAST || !is_ampere)
		return false;
	const uint32_t rows[] = { errors->rows[0], errors->rows[1], errors->rows_pending,
				  errors->rows_failed };
	*ret = rows[id - REMAPPED_FIRST];
	return true;
}

static bool plain_field(const struct wire_gpu *gpu, uint32_t id, uint64_t *ret)
{
	if (id == NVML_FI_DEV_MEMORY_TEMP) {
		*ret = (uint64_t)gpu->memory_temp_c;
		return gpu->has_memory_temp != 0;
	}
	if (error_field(gpu, id, ret))
		return true;
	if (id == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
		*ret = gpu->recovery_action;
	else if (id == RESETLESS_MIG)
		*ret = gpu->mig_count_max > 0 && gpu->architecture >= NVML_DEVICE_ARCH_HOPPER;
	else if (id == PCIE_REPLAY || id == PCIE_REPLAY_ROLLOVER || id == C2C_LINK_COUNT)
		*ret = 0;
	else
		return false;
	return true;
}

// Counters of 64 bits: energy, and how long each policy held the clocks down.
static bool wide_field(const struct wire_gpu *gpu, uint32_t id, uint64_t *ret)
{
	if (id == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || id == ENERGY)
		*ret = gpu->energy_mj;
	else if (id == POLICY_FIRST)
		*ret = gpu->power_capped_ns;
	else if (id == POLICY_THERMAL)
		*ret = gpu->hot_ns;
	else if (id > POLICY_THERMAL && id <= POLICY_LAST)
		*ret = 0;
	else
		return false;
	return true;
}

static void fill(const struct wire_gpu *gpu, struct nvml_field_value *field)
{
	uint64_t value = 0;
	uint32_t id = field->field_id;
	bool is_wide = true;
	bool has = link_field(gpu, field, &value);

	has = has || wide_field(gpu, id, &value);
	if (!has) {
		is_wide = false;
		has = power_field(gpu, field, &value) || plain_field(gpu, id, &value);
	}
	field->status = has ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	field->value_type = is_wide ? NVML_VALUE_ULL : NVML_VALUE_UINT;
	field->value.ull_value = 0;
	if (is_wide)
		field->value.ull_value = value;
	else
		field->value.uint_value = (uint32_t)value;
}

NVML_CALL(nvmlDeviceGetFieldValues,
	  (const struct nvml_device *device, int32_t count, struct nvml_field_value *values))
{
	struct wire_gpu gpu;
	struct timespec now;

	if (values == NULL || count <= 0)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetFieldValues", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	(void)clock_gettime(CLOCK_REALTIME, &now); // cannot fail for this clock
	for (int32_t i = 0; i < count; i++) {
		values[i].time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
		values[i].latency_us = 0;
		fill(&gpu, &values[i]);
	}
	return NVML_SUCCESS;
}
