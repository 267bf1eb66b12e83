// SPDX-License-Identifier: Apache-2.0
// The shape of most NVML functions: (device, out), one number or text out of the daemon's answer.
// The expressions see the answer as `gpu`; `has` false means that the board lacks the feature.
#pragma once

#include "emulator/lib/client.h"

#include <stddef.h>

#define GET_NUMBER_IF(name, type, has, value)                                                      \
	NVML_CALL(name, (const struct nvml_device *device, type *ret_value))                       \
	{                                                                                          \
		struct wire_gpu gpu;                                                               \
		if (ret_value == NULL)                                                             \
			return client_bad_argument();                                              \
		nvml_return result = client_gpu(device, #name, &gpu);                              \
		if (result != NVML_SUCCESS)                                                        \
			return result;                                                             \
		if (!(has))                                                                        \
			return NVML_ERROR_NOT_SUPPORTED;                                           \
		*ret_value = (value);                                                              \
		return NVML_SUCCESS;                                                               \
	}

#define GET_NUMBER(name, value) GET_NUMBER_IF(name, uint32_t, true, value)

// Two numbers, both or none.
#define GET_PAIR_IF(name, has, first, second)                                                      \
	NVML_CALL(name,                                                                            \
		  (const struct nvml_device *device, uint32_t *ret_first, uint32_t *ret_second))   \
	{                                                                                          \
		struct wire_gpu gpu;                                                               \
		if (ret_first == NULL || ret_second == NULL)                                       \
			return client_bad_argument();                                              \
		nvml_return result = client_gpu(device, #name, &gpu);                              \
		if (result != NVML_SUCCESS)                                                        \
			return result;                                                             \
		if (!(has))                                                                        \
			return NVML_ERROR_NOT_SUPPORTED;                                           \
		*ret_first = (first);                                                              \
		*ret_second = (second);                                                            \
		return NVML_SUCCESS;                                                               \
	}

#define GET_TEXT(name, text)                                                                       \
	NVML_CALL(name, (const struct nvml_device *device, char *ret_text, uint32_t size_bytes))   \
	{                                                                                          \
		struct wire_gpu gpu;                                                               \
		if (ret_text == NULL)                                                              \
			return client_bad_argument();                                              \
		nvml_return result = client_gpu(device, #name, &gpu);                              \
		return result != NVML_SUCCESS ? result : client_text(text, ret_text, size_bytes);  \
	}
