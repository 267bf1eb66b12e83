// SPDX-License-Identifier: Apache-2.0
#include "emulator/identity.h"

#include <stdio.h>

uint64_t identity_hash(const char *seed, uint32_t slot, uint32_t what)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = seed; *c != 0; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	hash ^= (uint64_t)slot << 32 | what;
	// The finalizer of splitmix64: neighbours in slot must not look alike.
	hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

void identity_uuid(const char *prefix, const char *seed, uint32_t slot, char ret_uuid[48])
{
	uint64_t high = identity_hash(seed, slot, 1), low = identity_hash(seed, slot, 2);

	snprintf(ret_uuid, 48, "%.4s-%08x-%04x-%04x-%04x-%012llx", prefix, (uint32_t)(high >> 32),
		 (uint32_t)(high >> 16 & 0xffff), (uint32_t)(high & 0xffff), (uint32_t)(low >> 48),
		 (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}
