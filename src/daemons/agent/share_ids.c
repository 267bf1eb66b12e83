// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/share_ids.h"

#include "daemons/agent/dp_proto.h"
#include "gpu/gpu.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const words[SHARE_KINDS] = { "milli-", "memory-" };

static uint64_t hash(struct str text, uint64_t seed)
{
	uint64_t value = seed;
	for (size_t i = 0; i < text.len; i++)
		value = (value ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
	value = (value ^ value >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

void share_key_add(struct share_key *key, struct str id)
{
	key->a += hash(id, UINT64_C(0xcbf29ce484222325));
	key->b += hash(id, UINT64_C(0x84222325cbf29ce4));
	key->count++;
}

bool share_key_is(const struct share_key *a, const struct share_key *b)
{
	return a->a == b->a && a->b == b->b && a->count == b->count && a->kind == b->kind;
}

void share_id_format(share_kind kind, uint32_t slot, uint32_t number, char out[SHARE_ID_BYTES])
{
	ASSERT((int)kind < SHARE_KINDS && slot < GPU_MAX);
	(void)snprintf(out, SHARE_ID_BYTES, "%s%" PRIu32 "-%" PRIu32, words[kind], slot, number);
}

bool share_id_parse(struct str id, share_kind kind, uint32_t *ret_slot, uint32_t *ret_number)
{
	struct str word = str_of(words[kind]);
	uint64_t slot, number;
	if (!str_starts(id, word) || id.len >= SHARE_ID_BYTES)
		return false;
	struct str rest = str_slice(id, word.len, id.len);
	size_t dash = str_find_byte(rest, '-', 0);
	if (dash == SIZE_MAX || !str_to_u64(str_slice(rest, 0, dash), &slot) ||
	    !str_to_u64(str_slice(rest, dash + 1, rest.len), &number) || slot >= GPU_MAX ||
	    number >= UINT32_MAX)
		return false;
	*ret_slot = (uint32_t)slot;
	*ret_number = (uint32_t)number;
	return true;
}

void share_ids_put(struct buf *out, share_kind kind, uint32_t slot, int64_t units, bool is_healthy)
{
	for (int64_t i = 0; i < units; i++) {
		char id[SHARE_ID_BYTES];
		share_id_format(kind, slot, (uint32_t)i, id);
		const struct dp_device device = { .id = str_of(id),
						  .is_healthy = is_healthy,
						  .numa_node = -1 };
		dp_put_list(out, &device, 1);
	}
}

bool share_is_resource(struct str resource)
{
	share_kind kind;
	return share_kind_of(resource, &kind);
}
