// SPDX-License-Identifier: Apache-2.0
// Selectors of devices: the part of CEL that they are written in. Strings, integers, booleans,
// lists, ! && || == != < <= > >= in, has(), device.driver, device.attributes[D].N and
// device.capacity[D].N (or [N]), quantity(), semver() with isGreaterThan, isLessThan and compareTo,
// startsWith, endsWith, contains and lowerAscii of strings. Anything else is not supported. Pure.
#pragma once

#include "sched/claim_in.h"

typedef enum claim_cel {
	CLAIM_CEL_NO,
	CLAIM_CEL_YES,
	CLAIM_CEL_ERROR,       // as the language has it: an attribute that is not there
	CLAIM_CEL_UNSUPPORTED, // or no expression at all
} claim_cel;

claim_cel claim_cel_eval(struct str text, struct str driver,
			 const struct sched_pool_device *device);
