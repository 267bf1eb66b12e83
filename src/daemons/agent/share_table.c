// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/share_table.h"

#include <inttypes.h>
#include <stdlib.h>

// Of whom nobody knows, neither the kubelet nor the API server. An allocation that has not been
// bound may belong to a pod that one of them will know.
enum { LOST_MAX_S = 60, LOST_BOUND_MAX_S = 10, ROOM_FIRST = 16 };

struct share_table {
	struct share_grant *grants; // oldest first
	size_t count, room;
};

struct share_table *share_table_new(void) { return calloc(1, sizeof(struct share_table)); }

void share_table_free(struct share_table *table)
{
	if (table == NULL)
		return;
	free(table->grants);
	free(table);
}

static struct share_grant *add(struct share_table *table)
{
	if (table->count == table->room) {
		size_t room = table->room == 0 ? ROOM_FIRST : table->room * 2;
		struct share_grant *grants = NULL;
		if (room <= SHARE_GRANTS_MAX)
			grants = realloc(table->grants, room * sizeof *grants);
		if (grants == NULL)
			return NULL;
		table->grants = grants;
		table->room = room;
	}
	struct share_grant *grant = &table->grants[table->count++];
	*grant = (struct share_grant){ 0 };
	return grant;
}

static bool add_name(struct share_grant *grant, struct str name)
{
	if (grant->name_count == SHARE_NAMES_MAX)
		return false;
	if (!usage_text(grant->names[grant->name_count], SHARE_NAME_BYTES, name))
		return false;
	grant->name_count++;
	return true;
}

struct share_grant *share_table_allocate(struct share_table *table, const struct share_key *key,
					 const char *name)
{
	struct share_grant *grant = share_table_find(table, key);
	if (grant != NULL && grant->is_bound) {
		grant->is_superseded = true;
		grant = NULL;
	}
	if (grant != NULL && grant->name_count == SHARE_NAMES_MAX) {
		// So many containers of one pod never share ids: the oldest is of one gone by.
		grant->name_count--;
		memmove(grant->names[0], grant->names[1], grant->name_count * SHARE_NAME_BYTES);
	}
	if (grant == NULL)
		grant = add(table);
	if (grant == NULL)
		return NULL;
	grant->key = *key;
	grant->lost_s = 0;
	bool is_named = add_name(grant, str_of(name));
	ASSERT(is_named);
	return grant;
}

struct share_grant *share_table_find(struct share_table *table, const struct share_key *key)
{
	for (size_t i = table->count; i > 0; i--) {
		struct share_grant *grant = &table->grants[i - 1];
		if (!grant->is_superseded && share_key_is(&grant->key, key))
			return grant;
	}
	return NULL;
}

const struct share_grant *share_table_of(const struct share_table *table,
					 const struct share_holder *holder, share_kind kind)
{
	for (size_t i = table->count; i > 0; i--) {
		const struct share_grant *grant = &table->grants[i - 1];
		if (grant->is_bound && !grant->is_superseded && grant->key.kind == kind &&
		    strcmp(grant->holder.uid, holder->uid) == 0 &&
		    strcmp(grant->holder.container, holder->container) == 0)
			return grant;
	}
	return NULL;
}

void share_table_bind(struct share_grant *grant, const struct share_holder *holder,
		      const char *uuid, const struct share *share)
{
	ASSERT(!grant->is_bound && grant->name_count > 0);
	grant->holder = *holder;
	bool fits = usage_text(grant->uuid, sizeof grant->uuid, str_of(uuid));
	ASSERT(fits); // it is one of ours
	grant->share = *share;
	grant->is_bound = true;
	grant->is_listed = true;
}

void share_table_unbind(struct share_grant *grant) { grant->is_bound = false; }

bool share_grant_lives(const struct share_grant *grant, share_is_live_fn *is_live, void *arg)
{
	bool is_known = grant->is_listed && !grant->is_superseded;
	return grant->is_bound && (is_known || is_live(arg, grant->holder.uid));
}

struct share share_table_used(const struct share_table *table, const char *uuid,
			      share_is_live_fn *is_live, void *arg)
{
	struct share sum = { 0 };
	for (size_t i = 0; i < table->count; i++) {
		const struct share_grant *grant = &table->grants[i];
		if (strcmp(grant->uuid, uuid) == 0 && share_grant_lives(grant, is_live, arg))
			share_add(&sum, &grant->share);
	}
	return sum;
}

void share_table_list_begin(struct share_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		table->grants[i].is_listed = false;
}

void share_table_list(struct share_table *table, const struct share_key *key)
{
	struct share_grant *grant = share_table_find(table, key);
	if (grant != NULL)
		grant->is_listed = true;
}

void share_table_prune(struct share_table *table, int64_t now_s, share_is_live_fn *is_live,
		       void (*on_drop)(void *arg, const struct share_grant *grant), void *arg)
{
	size_t kept = 0;
	for (size_t i = 0; i < table->count; i++) {
		struct share_grant *grant = &table->grants[i];
		bool is_known = (grant->is_listed && !grant->is_superseded) ||
				share_grant_lives(grant, is_live, arg);
		if (is_known)
			grant->lost_s = 0;
		else if (grant->lost_s == 0)
			grant->lost_s = now_s;
		int64_t most_s = grant->is_bound ? LOST_BOUND_MAX_S : LOST_MAX_S;
		if (grant->lost_s != 0 && now_s - grant->lost_s > most_s) {
			on_drop(arg, grant);
			continue;
		}
		if (kept != i)
			table->grants[kept] = *grant;
		kept++;
	}
	table->count = kept;
}

size_t share_table_count(const struct share_table *table) { return table->count; }

const struct share_grant *share_table_at(const struct share_table *table, size_t i)
{
	ASSERT(i < table->count);
	return &table->grants[i];
}

bool share_table_has_name(const struct share_table *table, struct str name)
{
	for (size_t i = 0; i < table->count; i++) {
		for (size_t k = 0; k < table->grants[i].name_count; k++) {
			if (str_eq_c(name, table->grants[i].names[k]))
				return true;
		}
	}
	return false;
}

static void put_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	buf_put_json(out, str_of(value));
}

void share_table_save(const struct share_table *table, struct buf *out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct share_grant *grant = &table->grants[i];
		buf_printf(out, "{\"ids\":\"%016" PRIx64 "%016" PRIx64 "\",\"count\":%" PRIu32,
			   grant->key.a, grant->key.b, grant->key.count);
		put_text(out, "resource", share_resource(grant->key.kind));
		buf_put_c(out, ",\"names\":[");
		for (size_t k = 0; k < grant->name_count; k++)
			buf_printf(out, "%s\"%s\"", k == 0 ? "" : ",", grant->names[k]);
		buf_put_c(out, "]");
		if (grant->is_superseded)
			buf_put_c(out, ",\"superseded\":true");
		if (grant->is_bound) {
			put_text(out, "uid", grant->holder.uid);
			put_text(out, "namespace", grant->holder.namespace_);
			put_text(out, "pod", grant->holder.pod);
			put_text(out, "container", grant->holder.container);
			put_text(out, "uuid", grant->uuid);
			buf_printf(out, ",\"milli\":%" PRId64 ",\"memoryMiB\":%" PRId64,
				   grant->share.milli, grant->share.memory_mib);
		}
		buf_put_c(out, "}\n");
	}
}

static bool load_half(struct str text, uint64_t *ret)
{
	uint64_t value = 0;
	for (size_t i = 0; i < text.len; i++) {
		int digit = str_hex_value(text.data[i]);
		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret = value;
	return true;
}

static bool load_key(const json_t *object, struct share_key *ret)
{
	enum { HALF = 16 };
	struct str ids = json_text(object, "ids");
	int64_t count = json_int(object, "count", 0);
	ret->count = (uint32_t)count;
	return ids.len == HALF + HALF && load_half(str_slice(ids, 0, HALF), &ret->a) &&
	       load_half(str_slice(ids, HALF, ids.len), &ret->b) && count > 0 &&
	       count < UINT32_MAX && share_kind_of(json_text(object, "resource"), &ret->kind);
}

static bool load_names(const json_t *names, struct share_grant *grant)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		struct str text = { json_string_value(name), json_string_length(name) };
		if (text.len == 0 || !str_is_dns_label(text) || !add_name(grant, text))
			return false;
	}
	return grant->name_count > 0;
}

static bool load_holder(const json_t *object, struct share_grant *grant)
{
	struct share_holder *holder = &grant->holder;
	struct str uuid = json_text(object, "uuid");
	grant->share =
		(struct share){ json_int(object, "milli", -1), json_int(object, "memoryMiB", -1) };
	grant->is_bound = json_at(object, "uid") != NULL;
	return !grant->is_bound ||
	       (usage_text(holder->uid, sizeof holder->uid, json_text(object, "uid")) &&
		usage_text(holder->namespace_, sizeof holder->namespace_,
			   json_text(object, "namespace")) &&
		usage_text(holder->pod, sizeof holder->pod, json_text(object, "pod")) &&
		usage_text(holder->container, sizeof holder->container,
			   json_text(object, "container")) &&
		usage_text(grant->uuid, sizeof grant->uuid, uuid) && gpu_is_uuid(uuid) &&
		grant->share.milli >= 0 && grant->share.memory_mib >= 0 &&
		grant->share.milli <= SHARE_WHOLE_MILLI);
}

void share_table_load(struct share_table *table, struct str text)
{
	struct str line;
	while (str_split_next(&text, '\n', &line)) {
		AUTO(json_decrefp) json_t *object = NULL;
		// Until the kubelet says otherwise its holder is there.
		struct share_grant grant = { .is_listed = true };
		if (line.len == 0 || json_parse(line, &object, NULL) != ERR_OK ||
		    !load_key(object, &grant.key) ||
		    !load_names(json_at(object, "names"), &grant) || !load_holder(object, &grant))
			continue;
		grant.is_superseded = json_bool(object, "superseded", false);
		struct share_grant *to = add(table);
		if (to == NULL)
			return;
		*to = grant;
	}
}
