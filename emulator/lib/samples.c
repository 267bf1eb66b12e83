// SPDX-License-Identifier: Apache-2.0
// Values of the last seconds, sampled by the daemon at fixed instants.
#include "emulator/lib/abi_gpm.h"
#include "emulator/lib/client.h"

enum sampled { POWER = 0, GPU_USE, MEMORY_USE, ENCODER_USE, DECODER_USE, SM_CLOCK, MEMORY_CLOCK };

static uint32_t value_of(const struct wire_sample *sample, uint32_t type)
{
	switch ((enum sampled)type) {
	case POWER: return sample->power_mw;
	case GPU_USE: return sample->util_percent;
	case MEMORY_USE: return sample->memory_util_percent;
	case SM_CLOCK: return sample->sm_clock_mhz;
	case MEMORY_CLOCK: return sample->memory_clock_mhz;
	case ENCODER_USE:
	case DECODER_USE: return 0;
	}
	return 0;
}

// Utilization is not told in MIG mode, as by the calls that tell it now.
static bool has(const struct wire_gpu *gpu, uint32_t type)
{
	if (type > MEMORY_CLOCK)
		return false;
	return gpu->mig_mode == NVML_FEATURE_DISABLED || type == POWER || type >= SM_CLOCK;
}

NVML_CALL(nvmlDeviceGetSamples,
	  (const struct nvml_device *device, uint32_t type, uint64_t last_seen_us,
	   uint32_t *ret_value_type, uint32_t *count, struct nvml_sample *ret_samples))
{
	struct wire_request request = client_request(WIRE_SAMPLES, "nvmlDeviceGetSamples");
	struct wire_gpu gpu;
	struct wire_reply reply;
	uint32_t have = 0;

	if (ret_value_type == NULL || count == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetSamples", &gpu);
	if (result != NVML_SUCCESS)
		return result;
	if (!has(&gpu, type))
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_value_type = NVML_VALUE_UINT;
	if (ret_samples == NULL) {
		*count = WIRE_SAMPLE_MAX;
		return NVML_SUCCESS;
	}
	request.slot = gpu.slot;
	result = client_ask_once(&request, &reply);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_samples *samples = &reply.body.samples;
	for (uint32_t i = 0; i < samples->count && i < WIRE_SAMPLE_MAX && have < *count; i++) {
		if (samples->samples[i].time_us <= last_seen_us)
			continue;
		ret_samples[have].time_us = samples->samples[i].time_us;
		ret_samples[have].value.ull_value = 0;
		ret_samples[have++].value.uint_value = value_of(&samples->samples[i], type);
	}
	*count = have;
	return have == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
