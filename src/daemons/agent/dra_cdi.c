// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_cdi.h"

#include "base/json.h"
#include "daemons/agent/cdi.h"
#include "sys/fs.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { SPEC_MAX_BYTES = 1024 * 1024 };

char *dra_cdi_name(const char *claim_uid, const char *gpu_uuid, char out[DRA_CDI_BYTES])
{
	char device[GPU_UUID_BYTES];
	int n = snprintf(out, DRA_CDI_BYTES, DRA_CDI_KIND "=%s-%s", claim_uid,
			 dra_device_name(gpu_uuid, device));
	ASSERT(n > 0 && n < DRA_CDI_BYTES);
	return out;
}

static bool path_of(const char *dir, const char *claim_uid, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/" DRA_CDI_PREFIX "%s.json", dir, claim_uid);
	return n > 0 && n < PATH_MAX;
}

static json_t *device_of(const json_t *base, const char *name)
{
	const json_t *devices = json_at(base, "devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		json_t *device = json_array_get(devices, i);
		if (str_eq_c(json_text(device, "name"), name))
			return device;
	}
	return NULL;
}

// Appends a copy of the base's device under the claim's name for it.
static err_status add_device(json_t *devices, const json_t *base, const char *base_name,
			     const char *full_name, struct err *err)
{
	json_t *device = json_deep_copy(device_of(base, base_name));
	if (device == NULL)
		return err_set(err, ERR_UNAVAILABLE, "device %s has no CDI specification yet",
			       base_name);
	const char *name = strchr(full_name, '=');
	ASSERT(name != NULL);
	if (json_object_set_new(device, "name", json_string(name + 1)) != 0 ||
	    json_array_append_new(devices, device) != 0)
		return err_set(err, ERR_LIMIT, "no memory for a CDI specification");
	return ERR_OK;
}

err_status dra_cdi_render(struct buf *out, struct str base, const struct dra_claim *claim,
			  const char *const *names, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	AUTO(json_decrefp) json_t *root = NULL;
	AUTO(json_decrefp) json_t *devices = json_array();
	if (json_parse(base, &root, err) != ERR_OK)
		return err_wrap(err, "CDI specification of whole GPUs");
	for (size_t i = 0; i < claim->count; i++) {
		char full[DRA_CDI_BYTES];
		if (add_device(devices, root, names[i],
			       dra_cdi_name(claim->uid, claim->devices[i].uuid, full),
			       err) != ERR_OK)
			return err->status;
	}
	AUTO(arena_freep) struct arena *arena = arena_new(SPEC_MAX_BYTES);
	if (arena == NULL || json_object_set_new(root, "kind", json_string(DRA_CDI_KIND)) != 0 ||
	    json_object_set(root, "devices", devices) != 0)
		return err_set(err, ERR_LIMIT, "no memory for a CDI specification");
	buf_put(out, json_dump(arena, root));
	buf_put_byte(out, '\n');
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "CDI specification is too large");
}

err_status dra_cdi_write(const char *dir, const struct dra_claim *claim, const char *const *names,
			 struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	char path[PATH_MAX];
	AUTO(buf_done) struct buf base = { 0 };
	AUTO(buf_done) struct buf text = { .limit = SPEC_MAX_BYTES };
	AUTO(buf_done) struct buf old = { 0 };
	int n = snprintf(path, sizeof path, "%s/" CDI_FILE, dir);
	if (n < 0 || (size_t)n >= sizeof path)
		return err_set(err, ERR_INVALID, "path of the CDI folder is too long");
	if (fs_read(path, SPEC_MAX_BYTES, &base, err) != ERR_OK ||
	    dra_cdi_render(&text, buf_str(&base), claim, names, err) != ERR_OK)
		return err->status;
	if (!path_of(dir, claim->uid, path))
		return err_set(err, ERR_INVALID, "path of the CDI folder is too long");
	if (fs_read(path, SPEC_MAX_BYTES, &old, NULL) == ERR_OK &&
	    str_eq(buf_str(&old), buf_str(&text)))
		return ERR_OK;
	return fs_write_atomic(path, buf_str(&text), 0644, err);
}

void dra_cdi_remove(const char *dir, const char *claim_uid)
{
	char path[PATH_MAX];
	if (path_of(dir, claim_uid, path))
		(void)unlink(path);
}

err_status dra_cdi_read(const char *dir, struct str claim_uid, struct dra_claim *ret,
			struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	char path[PATH_MAX];
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(json_decrefp) json_t *root = NULL;
	struct dra_claim claim = { 0 };
	if (!str_is_dns_label(claim_uid) || claim_uid.len >= sizeof claim.uid)
		return err_set(err, ERR_INVALID, "no UID of a claim: " STR_FMT, STR_ARG(claim_uid));
	memcpy(claim.uid, claim_uid.data, claim_uid.len);
	if (!path_of(dir, claim.uid, path))
		return err_set(err, ERR_INVALID, "path of the CDI folder is too long");
	if (fs_read(path, SPEC_MAX_BYTES, &text, err) != ERR_OK ||
	    json_parse(buf_str(&text), &root, err) != ERR_OK)
		return err_wrap(err, "CDI specification of claim %s", claim.uid);
	const json_t *devices = json_at(root, "devices");
	size_t count = json_array_size(devices);
	if (count == 0 || count > GPU_MAX)
		return err_set(err, ERR_INVALID, "%zu devices in %s", count, path);
	for (; claim.count < count; claim.count++) {
		struct str name = json_text(json_array_get(devices, claim.count), "name");
		bool is_ours = str_starts(name, claim_uid) && name.len > claim_uid.len;
		struct str device = str_slice(name, claim_uid.len + (is_ours ? 1 : 0), name.len);
		if (!is_ours || !dra_device_uuid(device, claim.devices[claim.count].uuid))
			return err_set(err, ERR_INVALID, "no device of the claim in %s: " STR_FMT,
				       path, STR_ARG(name));
	}
	*ret = claim;
	return ERR_OK;
}
