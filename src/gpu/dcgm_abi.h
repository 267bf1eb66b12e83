// SPDX-License-Identifier: Apache-2.0
// What of DCGM's C interface we call: numbers and layouts of version 3 and 4 of its library. Facts:
// its public headers dcgm_agent.h, dcgm_structs.h and dcgm_fields.h. Nothing here owns anything.
// Results other than 0 are failures; a value at or above the blank marks is none.
#pragma once

#include <assert.h>
#include <stdint.h>

enum {
	DCGM_GPUS_MAX = 32,
	DCGM_GROUP_ALL = 0x7fffffff,
	DCGM_MODE_AUTO = 1, // it samples by itself
	DCGM_FIELD_UUID = 54,
	DCGM_TYPE_DOUBLE = 'd',
	DCGM_TYPE_INT64 = 'i',
	DCGM_TYPE_TEXT = 's',
};

static const double DCGM_BLANK_DOUBLE = 140737488355328.0;
static const int64_t DCGM_BLANK_INT64 = 0x7ffffffffffffff0;

struct dcgm_value {
	uint32_t version;
	uint16_t field, type;
	int32_t status;
	int64_t at_us; // since 1970; 0: never read
	union {
		int64_t i64;
		double real;
		char text[4096];
	} value;
};
static_assert(sizeof(struct dcgm_value) == 4120, "as the library lays it out");
