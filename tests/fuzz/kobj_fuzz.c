// SPDX-License-Identifier: Apache-2.0
// The first byte chooses the encoding and the table.
#include "k8s/kobj_node.h"
#include "k8s/kobj_storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union any_object {
	struct kobj_pod pod;
	struct kobj_node node;
	struct kobj_gpu_node gpu_node;
	struct kobj_claim claim;
	struct kobj_persistent volume;
	struct kobj_storage_class class_;
	struct kobj_csi_node csi_node;
	struct kobj_csi_driver csi_driver;
	struct kobj_csi_capacity capacity;
	struct kobj_attachment attachment;
};

static void read_json(struct arena *arena, const struct kobj_table *table, struct str text)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct kobj_unknowns unknowns;
	union any_object object;
	struct err err;
	if (json_parse(text, &value, &err) != ERR_OK)
		return;
	if (kobj_from_json(arena, table, value, &unknowns, &object, &err) != ERR_OK)
		ASSERT(err.text[0] != 0);
}

static void read_protobuf(struct arena *arena, const struct kobj_table *table, struct str bytes)
{
	struct kobj_unknowns unknowns;
	union any_object object;
	struct err err;
	struct str message;
	if (!kobj_unwrap(bytes, &message))
		return;
	if (kobj_from_protobuf(arena, table, message, &unknowns, &object, &err) != ERR_OK)
		ASSERT(err.text[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kobj_table *const TABLES[] = {
		&KOBJ_POD,          &KOBJ_NODE,          &KOBJ_GPU_NODE, &KOBJ_CLAIM,
		&KOBJ_PERSISTENT,   &KOBJ_STORAGE_CLASS, &KOBJ_CSI_NODE, &KOBJ_CSI_DRIVER,
		&KOBJ_CSI_CAPACITY, &KOBJ_ATTACHMENT,
	};
	if (size == 0)
		return 0;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 22);
	struct str rest = { (const char *)data + 1, size - 1 };
	const struct kobj_table *table = TABLES[(data[0] >> 1) % ARRAY_COUNT(TABLES)];
	if ((data[0] & 1) != 0)
		read_json(arena, table, rest);
	else
		read_protobuf(arena, table, rest);
	return 0;
}
