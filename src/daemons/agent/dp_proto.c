// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dp_proto.h"

#include "base/pb.h"

enum { PART_MAX_BYTES = 64 * 1024 };

static void put_text(struct buf *out, uint32_t number, struct str text)
{
	if (text.len > 0)
		pb_put_bytes(out, number, text);
}

void dp_put_options(struct buf *out, bool prefers, bool pre_starts)
{
	if (pre_starts)
		pb_put_varint(out, 1, 1);
	if (prefers)
		pb_put_varint(out, 2, 1);
}

void dp_put_register(struct buf *out, const struct dp_register *request)
{
	AUTO(buf_done) struct buf options = { .limit = PART_MAX_BYTES };
	put_text(out, 1, request->version);
	put_text(out, 2, request->endpoint);
	put_text(out, 3, request->resource);
	dp_put_options(&options, request->prefers, request->pre_starts);
	pb_put_bytes(out, 4, buf_str(&options));
}

static void put_device(struct buf *out, const struct dp_device *device)
{
	AUTO(buf_done) struct buf node = { .limit = PART_MAX_BYTES };
	AUTO(buf_done) struct buf topology = { .limit = PART_MAX_BYTES };
	put_text(out, 1, device->id);
	put_text(out, 2, device->is_healthy ? STR("Healthy") : STR("Unhealthy"));
	if (device->numa_node < 0)
		return;
	// Node 0 is an empty message, not a missing one.
	if (device->numa_node > 0)
		pb_put_varint(&node, 1, (uint64_t)device->numa_node);
	pb_put_bytes(&topology, 1, buf_str(&node));
	pb_put_bytes(out, 3, buf_str(&topology));
}

void dp_put_list(struct buf *out, const struct dp_device *devices, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_done) struct buf device = { .limit = PART_MAX_BYTES };
		put_device(&device, &devices[i]);
		pb_put_bytes(out, 1, buf_str(&device));
	}
}

void dp_put_preferred(struct buf *out, const struct str *ids, size_t count)
{
	AUTO(buf_done) struct buf container = { 0 };
	for (size_t i = 0; i < count; i++)
		pb_put_bytes(&container, 1, ids[i]);
	pb_put_bytes(out, 1, buf_str(&container));
}

static void put_pairs(struct buf *out, uint32_t number, const struct dp_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_done) struct buf entry = { 0 };
		put_text(&entry, 1, pairs[i].name);
		put_text(&entry, 2, pairs[i].value);
		pb_put_bytes(out, number, buf_str(&entry));
	}
}

static void put_mounts(struct buf *out, const struct dp_allocated *container)
{
	for (size_t i = 0; i < container->mount_count; i++) {
		AUTO(buf_done) struct buf mount = { 0 };
		put_text(&mount, 1, container->mounts[i].container_path);
		put_text(&mount, 2, container->mounts[i].host_path);
		if (container->mounts[i].is_read_only)
			pb_put_varint(&mount, 3, 1);
		pb_put_bytes(out, 2, buf_str(&mount));
	}
}

static void put_nodes(struct buf *out, const struct dp_allocated *container)
{
	for (size_t i = 0; i < container->node_count; i++) {
		AUTO(buf_done) struct buf node = { 0 };
		put_text(&node, 1, container->nodes[i].container_path);
		put_text(&node, 2, container->nodes[i].host_path);
		put_text(&node, 3, STR("rw"));
		pb_put_bytes(out, 3, buf_str(&node));
	}
}

void dp_put_allocated(struct buf *out, const struct dp_allocated *container)
{
	AUTO(buf_done) struct buf answer = { 0 };
	put_pairs(&answer, 1, container->envs, container->env_count);
	put_mounts(&answer, container);
	put_nodes(&answer, container);
	put_pairs(&answer, 4, container->annotations, container->annotation_count);
	for (size_t i = 0; i < container->cdi_count; i++) {
		AUTO(buf_done) struct buf name = { 0 };
		put_text(&name, 1, container->cdi_names[i]);
		pb_put_bytes(&answer, 5, buf_str(&name));
	}
	pb_put_bytes(out, 1, buf_str(&answer));
}

// A field of the wanted kind; others of that number are a broken message.
static bool is_text(const struct pb_field *field, uint32_t number, bool *broken)
{
	if (field->number != number)
		return false;
	if (field->wire == PB_BYTES && str_is_utf8(field->bytes))
		return true;
	*broken = true;
	return false;
}

static bool is_part(const struct pb_field *field, uint32_t number, bool *broken)
{
	if (field->number != number)
		return false;
	if (field->wire == PB_BYTES)
		return true;
	*broken = true;
	return false;
}

static err_status finish(const struct pb_reader *reader, bool broken, const char *what,
			 struct err *err)
{
	if (reader->failed || broken)
		return err_set(err, ERR_PROTOCOL, "%s: not a message of the device plugin API",
			       what);
	return ERR_OK;
}

err_status dp_read_register(struct str message, struct dp_register *ret, struct err *err)
{
	struct pb_reader reader = pb_reader_of(message);
	struct dp_register request = { 0 };
	struct pb_field field;
	bool broken = false;
	while (pb_next(&reader, &field)) {
		if (is_text(&field, 1, &broken))
			request.version = field.bytes;
		else if (is_text(&field, 2, &broken))
			request.endpoint = field.bytes;
		else if (is_text(&field, 3, &broken))
			request.resource = field.bytes;
		else if (is_part(&field, 4, &broken)) {
			struct pb_reader options = pb_reader_of(field.bytes);
			struct pb_field option;
			while (pb_next(&options, &option)) {
				request.pre_starts |= option.number == 1 && option.value != 0;
				request.prefers |= option.number == 2 && option.value != 0;
			}
			broken = broken || options.failed;
		}
	}
	if (finish(&reader, broken, "RegisterRequest", err) != ERR_OK)
		return ERR_PROTOCOL;
	*ret = request;
	return ERR_OK;
}

// Appends to a list in the arena that has room for powers of two.
static err_status add_id(struct arena *arena, struct dp_ids *ids, struct str id, struct err *err)
{
	size_t count = ids->count;
	if (count == DP_IDS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d device ids", DP_IDS_MAX);
	if ((count & (count - 1)) == 0) {
		size_t room = count == 0 ? 1 : count * 2;
		ids->items = arena_grow(arena, ids->items, count * sizeof id, room * sizeof id);
		if (ids->items == NULL)
			return err_set(err, ERR_LIMIT, "no room for %zu device ids", room);
	}
	ids->items[ids->count++] = id;
	return ERR_OK;
}

static err_status read_preferred(struct arena *arena, struct str message, void *ret_item,
				 struct err *err)
{
	struct dp_preferred *ret = ret_item;
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	bool broken = false;
	while (pb_next(&reader, &field)) {
		err_status status = ERR_OK;
		if (is_text(&field, 1, &broken))
			status = add_id(arena, &ret->available, field.bytes, err);
		else if (is_text(&field, 2, &broken))
			status = add_id(arena, &ret->must, field.bytes, err);
		else if (field.number == 3 && field.wire == PB_VARINT && field.value <= DP_IDS_MAX)
			ret->size = (int64_t)field.value;
		else if (field.number == 3)
			broken = true;
		if (status != ERR_OK)
			return status;
	}
	return finish(&reader, broken, "ContainerPreferredAllocationRequest", err);
}

static size_t count_parts(struct str message)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	size_t count = 0;
	while (pb_next(&reader, &field))
		count += field.number == 1 ? 1 : 0;
	return count;
}

static err_status read_ids(struct arena *arena, struct str message, void *ret_item, struct err *err)
{
	struct dp_ids *ret = ret_item;
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	bool broken = false;
	while (pb_next(&reader, &field)) {
		if (!is_text(&field, 1, &broken))
			continue;
		err_status status = add_id(arena, ret, field.bytes, err);
		if (status != ERR_OK)
			return status;
	}
	return finish(&reader, broken, "ContainerAllocateRequest", err);
}

// A kind of message that is a list of containers.
struct list_kind {
	const char *name;
	size_t item_bytes;
	err_status (*read)(struct arena *arena, struct str message, void *ret_item,
			   struct err *err);
};

static err_status read_list(struct arena *arena, struct str message, const struct list_kind *kind,
			    void **ret_items, size_t *ret_count, struct err *err)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	bool broken = false;
	size_t room = count_parts(message), count = 0;
	if (room > DP_CONTAINERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d containers", DP_CONTAINERS_MAX);
	char *items = arena_alloc_array(arena, room + 1, kind->item_bytes);
	if (items == NULL)
		return err_set(err, ERR_LIMIT, "no room for %zu containers", room);
	while (pb_next(&reader, &field)) {
		if (!is_part(&field, 1, &broken))
			continue;
		ASSERT(count < room);
		err_status status =
			kind->read(arena, field.bytes, items + count++ * kind->item_bytes, err);
		if (status != ERR_OK)
			return status;
	}
	if (finish(&reader, broken, kind->name, err) != ERR_OK)
		return ERR_PROTOCOL;
	*ret_items = items;
	*ret_count = count;
	return ERR_OK;
}

err_status dp_read_preferred(struct arena *arena, struct str message, struct dp_preferred_list *ret,
			     struct err *err)
{
	static const struct list_kind kind = { "PreferredAllocationRequest",
					       sizeof(struct dp_preferred), read_preferred };
	void *items = NULL;
	size_t count = 0;
	err_status status = read_list(arena, message, &kind, &items, &count, err);
	if (status == ERR_OK)
		*ret = (struct dp_preferred_list){ items, count };
	return status;
}

err_status dp_read_allocate(struct arena *arena, struct str message, struct dp_allocate_list *ret,
			    struct err *err)
{
	static const struct list_kind kind = { "AllocateRequest", sizeof(struct dp_ids), read_ids };
	void *items = NULL;
	size_t count = 0;
	err_status status = read_list(arena, message, &kind, &items, &count, err);
	if (status == ERR_OK)
		*ret = (struct dp_allocate_list){ items, count };
	return status;
}

err_status dp_read_pre_start(struct arena *arena, struct str message, struct dp_ids *ret,
			     struct err *err)
{
	struct dp_ids ids = { 0 };
	err_status status = read_ids(arena, message, &ids, err);
	if (status == ERR_OK)
		*ret = ids;
	return status;
}
