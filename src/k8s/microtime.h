// SPDX-License-Identifier: Apache-2.0
// MicroTime of the Kubernetes API: RFC 3339 in UTC with exactly six digits after the point (its
// reader takes no other number of them).
#pragma once

#include "base/timefmt.h"

char *k8s_micro_time(int64_t unix_s, uint32_t micros, char out[TIME_TEXT_BYTES]); // returns out
