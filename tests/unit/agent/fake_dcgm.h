// SPDX-License-Identifier: Apache-2.0
// What the test tells the library that answers as DCGM's does, by its symbol "fake_dcgm".
#pragma once

#include "gpu/dcgm_abi.h"

#include <stdbool.h>

struct fake_dcgm {
	bool fails_connect, fails_latest;
	int devices, inits, starts, stops, connects, disconnects, watches, looks;
	char address[64];
	double ratio; // of all fields that are ratios, or
	bool is_blank, is_old, is_nan, is_bad_type;
	int64_t bytes; // a second
};
