// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_table.h"

#include "base/json.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 4 * 1024 * 1024, VERSION = 1 };

struct dra_table {
	char path[PATH_MAX];
	struct dra_claim *claims; // DRA_CLAIMS_MAX of them
	size_t count;
};

static void put_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ",\"%s\":", name);
	buf_put_json(out, str_of(value));
}

void dra_table_put(struct buf *out, const struct dra_claim *claims, size_t count)
{
	buf_printf(out, "{\"version\":%d,\"claims\":[", VERSION);
	for (size_t i = 0; i < count; i++) {
		const struct dra_claim *claim = &claims[i];
		buf_put_c(out, i == 0 ? "\n{\"uid\":" : ",\n{\"uid\":");
		buf_put_json(out, str_of(claim->uid));
		put_text(out, "namespace", claim->namespace_);
		put_text(out, "name", claim->name);
		put_text(out, "podUid", claim->pod_uid);
		put_text(out, "pod", claim->pod);
		buf_put_c(out, ",\"devices\":[");
		for (size_t j = 0; j < claim->count; j++) {
			buf_put_c(out, j == 0 ? "{\"uuid\":" : ",{\"uuid\":");
			buf_put_json(out, str_of(claim->devices[j].uuid));
			put_text(out, "request", claim->devices[j].request);
			buf_put_c(out, claim->devices[j].tolerates ? ",\"tolerates\":true}" : "}");
		}
		buf_put_c(out, "]}");
	}
	buf_put_c(out, "\n]}\n");
}

static err_status take(const json_t *from, const char *key, char *to, size_t to_bytes,
		       struct err *err)
{
	struct str text;
	err_status status = json_need_text(from, key, &text, err);
	if (status != ERR_OK)
		return status;
	if (text.len >= to_bytes)
		return err_set(err, ERR_LIMIT, "%s is longer than %zu bytes", key, to_bytes - 1);
	memcpy(to, text.data, text.len);
	to[text.len] = '\0';
	return ERR_OK;
}

static err_status take_devices(const json_t *list, struct dra_claim *claim, struct err *err)
{
	if (!json_is_array(list) || json_array_size(list) > GPU_MAX)
		return err_set(err, ERR_INVALID, "devices must be a list of at most %d", GPU_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct dra_device *device = &claim->devices[claim->count++];
		const json_t *from = json_array_get(list, i);
		if (take(from, "uuid", device->uuid, sizeof device->uuid, err) != ERR_OK ||
		    take(from, "request", device->request, sizeof device->request, err) != ERR_OK)
			return err_wrap(err, "devices[%zu]", i);
		if (!gpu_is_uuid(str_of(device->uuid)))
			return err_set(err, ERR_INVALID, "devices[%zu]: no UUID of a GPU", i);
		device->tolerates = json_bool(from, "tolerates", false);
	}
	return ERR_OK;
}

static err_status take_claim(const json_t *from, struct dra_claim *claim, struct err *err)
{
	if (take(from, "uid", claim->uid, sizeof claim->uid, err) != ERR_OK ||
	    take(from, "namespace", claim->namespace_, sizeof claim->namespace_, err) != ERR_OK ||
	    take(from, "name", claim->name, sizeof claim->name, err) != ERR_OK ||
	    take(from, "podUid", claim->pod_uid, sizeof claim->pod_uid, err) != ERR_OK ||
	    take(from, "pod", claim->pod, sizeof claim->pod, err) != ERR_OK)
		return err->status;
	// The UID is a part of names of files and devices.
	if (!str_is_dns_label(str_of(claim->uid)))
		return err_set(err, ERR_INVALID, "uid is none");
	return take_devices(json_at(from, "devices"), claim, err);
}

static bool has_gpu(const struct dra_claim *claim, const char *uuid)
{
	for (size_t i = 0; i < claim->count; i++) {
		if (strcmp(claim->devices[i].uuid, uuid) == 0)
			return true;
	}
	return false;
}

// A file that names a claim or a GPU twice is damaged: nobody writes such a one.
static err_status check_once(const struct dra_claim *claims, size_t i, struct err *err)
{
	for (size_t k = 0; k < i; k++) {
		if (strcmp(claims[k].uid, claims[i].uid) == 0)
			return err_set(err, ERR_INVALID, "claim %s is there twice", claims[i].uid);
		for (size_t j = 0; j < claims[i].count; j++) {
			const char *uuid = claims[i].devices[j].uuid;
			if (has_gpu(&claims[k], uuid))
				return err_set(err, ERR_INVALID, "%s is in two claims", uuid);
		}
	}
	return ERR_OK;
}

err_status dra_table_read(struct str text, struct dra_claim claims[DRA_CLAIMS_MAX],
			  size_t *ret_count, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	AUTO(json_decrefp) json_t *root = NULL;
	if (json_parse(text, &root, err) != ERR_OK)
		return err->status;
	if (json_int(root, "version", 0) != VERSION)
		return err_set(err, ERR_UNSUPPORTED, "version is not %d", VERSION);
	const json_t *list = json_at(root, "claims");
	if (!json_is_array(list) || json_array_size(list) > DRA_CLAIMS_MAX)
		return err_set(err, ERR_INVALID, "claims must be a list of at most %d",
			       DRA_CLAIMS_MAX);
	size_t count = json_array_size(list);
	struct dra_claim *read = calloc(count + 1, sizeof *read);
	if (read == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu claims", count);
	err_status status = ERR_OK;
	for (size_t i = 0; status == ERR_OK && i < count; i++) {
		status = take_claim(json_array_get(list, i), &read[i], err);
		if (status == ERR_OK)
			status = check_once(read, i, err);
		if (status != ERR_OK)
			status = err_wrap(err, "claims[%zu]", i);
	}
	if (status == ERR_OK) {
		memcpy(claims, read, count * sizeof *read);
		*ret_count = count;
	}
	free(read);
	return status;
}

// What cannot be read stays beside, for a person to look at.
static void set_aside(const struct dra_table *table, const struct err *why)
{
	char aside[PATH_MAX + 8];
	(void)snprintf(aside, sizeof aside, "%s.bad", table->path);
	(void)rename(table->path, aside);
	log_err(LOG_ERROR, "file of prepared claims is not understood and set aside", why);
}

err_status dra_table_new(const char *path, struct dra_table **ret, bool *ret_is_whole,
			 struct err *err)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err why;
	struct dra_table *table = calloc(1, sizeof *table);
	if (table != NULL)
		table->claims = calloc(DRA_CLAIMS_MAX, sizeof table->claims[0]);
	if (table == NULL || table->claims == NULL) {
		dra_table_free(table);
		return err_set(err, ERR_LIMIT, "no memory for prepared claims");
	}
	(void)snprintf(table->path, sizeof table->path, "%s", path);
	bool is_whole = true;
	if (access(path, F_OK) == 0 &&
	    (fs_read(path, FILE_MAX_BYTES, &text, &why) != ERR_OK ||
	     dra_table_read(buf_str(&text), table->claims, &table->count, &why) != ERR_OK)) {
		set_aside(table, &why);
		is_whole = false;
	}
	*ret = table;
	*ret_is_whole = is_whole;
	return ERR_OK;
}

void dra_table_free(struct dra_table *table)
{
	if (table == NULL)
		return;
	free(table->claims);
	free(table);
}

size_t dra_table_count(const struct dra_table *table) { return table->count; }

const struct dra_claim *dra_table_at(const struct dra_table *table, size_t i)
{
	ASSERT(i < table->count);
	return &table->claims[i];
}

const struct dra_claim *dra_table_find(const struct dra_table *table, struct str uid)
{
	for (size_t i = 0; i < table->count; i++) {
		if (str_eq_c(uid, table->claims[i].uid))
			return &table->claims[i];
	}
	return NULL;
}

const struct dra_claim *dra_table_holder(const struct dra_table *table, const char *uuid)
{
	for (size_t i = 0; i < table->count; i++) {
		if (has_gpu(&table->claims[i], uuid))
			return &table->claims[i];
	}
	return NULL;
}

static err_status save(const struct dra_table *table, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = FILE_MAX_BYTES };
	dra_table_put(&text, table->claims, table->count);
	if (!buf_ok(&text))
		return err_set(err, ERR_LIMIT, "no memory for the file of prepared claims");
	return fs_write_atomic(table->path, buf_str(&text), 0600, err);
}

err_status dra_table_add(struct dra_table *table, const struct dra_claim *claim, struct err *err)
{
	const struct dra_claim *before = dra_table_find(table, str_of(claim->uid));
	size_t at = before == NULL ? table->count : (size_t)(before - table->claims);
	if (at == DRA_CLAIMS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d claims are prepared", DRA_CLAIMS_MAX);
	for (size_t i = 0; i < claim->count; i++) {
		const struct dra_claim *other = dra_table_holder(table, claim->devices[i].uuid);
		if (other != NULL && other != before)
			return err_set(err, ERR_CONFLICT, "%s is held by claim %s/%s (%s)",
				       claim->devices[i].uuid, other->namespace_, other->name,
				       other->uid);
	}
	const struct dra_claim old = table->claims[at];
	table->claims[at] = *claim;
	table->count += before == NULL ? 1 : 0;
	err_status status = save(table, err);
	if (status != ERR_OK) {
		table->claims[at] = old;
		table->count -= before == NULL ? 1 : 0;
	}
	return status;
}

err_status dra_table_remove(struct dra_table *table, struct str uid, struct err *err)
{
	const struct dra_claim *claim = dra_table_find(table, uid);
	if (claim == NULL)
		return ERR_OK;
	size_t i = (size_t)(claim - table->claims);
	struct dra_claim removed = *claim;
	size_t behind = table->count - i - 1;
	memmove(&table->claims[i], &table->claims[i + 1], behind * sizeof removed);
	table->count--;
	err_status status = save(table, err);
	if (status == ERR_OK)
		return ERR_OK;
	memmove(&table->claims[i + 1], &table->claims[i], behind * sizeof removed);
	table->claims[i] = removed;
	table->count++;
	return status;
}
