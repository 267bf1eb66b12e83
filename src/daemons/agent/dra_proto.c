// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_proto.h"

#include "base/pb.h"

enum { HEALTH_HEALTHY_VALUE = 1, HEALTH_UNHEALTHY_VALUE = 2, HEALTH_TIMEOUT_S = 60 };

static void put_text(struct buf *out, uint32_t number, const char *text)
{
	if (text[0] != '\0')
		pb_put_bytes(out, number, str_of(text));
}

void dra_put_info(struct buf *out, const char *endpoint)
{
	put_text(out, 1, "DRAPlugin");
	put_text(out, 2, DRA_DRIVER);
	put_text(out, 3, endpoint);
	put_text(out, 4, "v1.DRAPlugin");
	put_text(out, 4, "v1alpha1.DRAResourceHealth");
}

// An entry of the map from UIDs to answers.
static void put_entry(struct buf *out, struct str uid, const struct buf *answer)
{
	AUTO(buf_done) struct buf entry = { 0 };
	pb_put_bytes(&entry, 1, uid);
	pb_put_bytes(&entry, 2, buf_str(answer));
	pb_put_bytes(out, 1, buf_str(&entry));
}

void dra_put_prepared(struct buf *out, struct str uid, const struct dra_given *devices,
		      size_t count, const char *error)
{
	AUTO(buf_done) struct buf answer = { 0 };
	ASSERT(error == NULL || error[0] != '\0');
	for (size_t i = 0; error == NULL && i < count; i++) {
		AUTO(buf_done) struct buf device = { 0 };
		put_text(&device, 1, devices[i].request);
		put_text(&device, 2, devices[i].pool);
		put_text(&device, 3, devices[i].device);
		put_text(&device, 4, devices[i].cdi_name);
		pb_put_bytes(&answer, 1, buf_str(&device));
	}
	if (error != NULL)
		put_text(&answer, 2, error);
	put_entry(out, uid, &answer);
}

void dra_put_unprepared(struct buf *out, struct str uid, const char *error)
{
	AUTO(buf_done) struct buf answer = { 0 };
	if (error != NULL)
		put_text(&answer, 1, error);
	put_entry(out, uid, &answer);
}

void dra_put_health(struct buf *out, const struct dra_health *health)
{
	AUTO(buf_done) struct buf device = { 0 };
	AUTO(buf_done) struct buf name = { 0 };
	put_text(&name, 1, health->pool);
	put_text(&name, 2, health->device);
	pb_put_bytes(&device, 1, buf_str(&name));
	pb_put_varint(&device, 2,
		      health->is_healthy ? HEALTH_HEALTHY_VALUE : HEALTH_UNHEALTHY_VALUE);
	pb_put_varint(&device, 3, (uint64_t)health->seen_s);
	pb_put_varint(&device, 4, HEALTH_TIMEOUT_S);
	put_text(&device, 5, health->message);
	pb_put_bytes(out, 1, buf_str(&device));
}

// UIDs become names of files, the other two parts of a path at the API server.
static bool is_good(const struct dra_ref *ref)
{
	return str_is_dns_label(ref->namespace_) && str_is_dns_label(ref->uid) &&
	       str_is_dns_name(ref->name);
}

static bool read_ref(struct str message, struct dra_ref *ret)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	struct str *const texts[] = { &ret->namespace_, &ret->uid, &ret->name };
	while (pb_next(&reader, &field)) {
		if (field.number < 1 || field.number > ARRAY_COUNT(texts))
			continue; // of a later version
		if (field.wire != PB_BYTES)
			return false;
		*texts[field.number - 1] = field.bytes;
	}
	return !reader.failed && is_good(ret);
}

err_status dra_read_refs(struct arena *arena, struct str message, struct dra_refs *ret,
			 struct err *err)
{
	struct pb_reader reader = pb_reader_of(message);
	struct dra_refs refs = { 0 };
	struct pb_field field;
	size_t count = 0;
	while (pb_next(&reader, &field))
		count += field.number == 1 ? 1 : 0;
	if (reader.failed)
		return err_set(err, ERR_PROTOCOL, "not a list of claims");
	if (count > DRA_REFS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d claims in one call", DRA_REFS_MAX);
	refs.items = ARENA_ARRAY(arena, struct dra_ref, count + 1);
	if (refs.items == NULL)
		return err_set(err, ERR_LIMIT, "no room for %zu claims", count);
	reader = pb_reader_of(message);
	while (pb_next(&reader, &field)) {
		if (field.number != 1)
			continue;
		ASSERT(refs.count < count);
		struct dra_ref *item = &refs.items[refs.count++];
		*item = (struct dra_ref){ 0 };
		if (field.wire != PB_BYTES || !read_ref(field.bytes, item))
			return err_set(err, ERR_PROTOCOL,
				       "a claim without namespace, name or UID as Kubernetes "
				       "has them");
	}
	*ret = refs;
	return ERR_OK;
}

err_status dra_read_status(struct str message, bool *ret_is_registered, struct str *ret_error,
			   struct err *err)
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	struct str error = STR("");
	bool is_registered = false, is_broken = false;
	while (pb_next(&reader, &field)) {
		if (field.number == 1 && field.wire == PB_VARINT)
			is_registered = field.value != 0;
		else if (field.number == 2 && field.wire == PB_BYTES && str_is_utf8(field.bytes))
			error = field.bytes;
		else if (field.number == 1 || field.number == 2)
			is_broken = true;
	}
	if (reader.failed || is_broken)
		return err_set(err, ERR_PROTOCOL, "not a status of a registration");
	*ret_is_registered = is_registered;
	*ret_error = error;
	return ERR_OK;
}

char *dra_device_name(const char *uuid, char out[GPU_UUID_BYTES])
{
	size_t i = 0;
	for (; uuid[i] != '\0' && i < GPU_UUID_BYTES - 1; i++)
		out[i] = uuid[i] >= 'A' && uuid[i] <= 'Z' ? (char)(uuid[i] + 32) : uuid[i];
	out[i] = '\0';
	return out;
}

bool dra_device_uuid(struct str device, char ret_uuid[GPU_UUID_BYTES])
{
	char uuid[GPU_UUID_BYTES] = "";
	bool is_mig = str_starts(device, STR("mig-"));
	if (device.len >= sizeof uuid || (!is_mig && !str_starts(device, STR("gpu-"))))
		return false;
	memcpy(uuid, device.data, device.len);
	memcpy(uuid, is_mig ? "MIG-" : "GPU-", 4);
	if (!gpu_is_uuid(str_of(uuid)) || !str_is_dns_label(device))
		return false;
	memcpy(ret_uuid, uuid, sizeof uuid);
	return true;
}
