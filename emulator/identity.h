// SPDX-License-Identifier: Apache-2.0
// Names that look like a driver's but follow from where a thing is: the same seed and place give
// the same UUID on every machine and in every run. Pure; not for secrets.
#pragma once

#include <stdint.h>

// A well-mixed number of a text and two small numbers.
uint64_t identity_hash(const char *seed, uint32_t slot, uint32_t what);
// PREFIX-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
void identity_uuid(const char *prefix, const char *seed, uint32_t slot, char ret_uuid[48]);
