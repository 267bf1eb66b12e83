// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/mig_layout.h"

#include "base/buf.h"
#include "base/yaml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 300, INDEXES_MAX = 32 };

// A place in a text, for messages.
struct place {
	struct str text;
	char path[PATH_BYTES];
};

static struct place below(const struct place *place, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct place below(const struct place *place, const char *fmt, ...)
{
	struct place lower = *place;
	size_t len = strlen(lower.path);
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(lower.path + len, sizeof lower.path - len, fmt, args);
	va_end(args);
	return lower;
}

static err_status refuse(const struct place *place, struct err *err, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static err_status refuse(const struct place *place, struct err *err, const char *fmt, ...)
{
	char why[250];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(why, sizeof why, fmt, args);
	va_end(args);
	size_t line = place->text.len == 0 ? 0 : yaml_line_of(place->text, place->path);
	if (line == 0)
		return err_set(err, ERR_INVALID, "%s: %s", place->path, why);
	return err_set(err, ERR_INVALID, "line %zu: %s: %s", line, place->path, why);
}

static err_status read_devices(const struct place *place, const json_t *value,
			       struct mig_entry *entry, struct err *err)
{
	if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0) {
		entry->is_all = true;
		return ERR_OK;
	}
	if (!json_is_array(value))
		return refuse(place, err, "must be all or a list of indexes");
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *index = json_array_get(value, i);
		if (!json_is_integer(index) || json_integer_value(index) < 0 ||
		    json_integer_value(index) >= INDEXES_MAX)
			return refuse(place, err, "an index must be a number of 0 to %d",
				      INDEXES_MAX - 1);
		entry->gpus |= 1U << json_integer_value(index);
	}
	return ERR_OK;
}

static err_status read_filter(const struct place *place, const json_t *value,
			      struct mig_entry *entry, struct err *err)
{
	const char *text = json_string_value(value);
	char *end = NULL;
	unsigned long id = text == NULL ? 0 : strtoul(text, &end, 16);
	if (text == NULL || strlen(text) != 10 || strncmp(text, "0x", 2) != 0 || *end != '\0')
		return refuse(place, err, "must be like \"0x20B210DE\", device before vendor");
	if (entry->filter_count == MIG_FILTERS_MAX)
		return refuse(place, err, "more than %d", MIG_FILTERS_MAX);
	entry->filters[entry->filter_count++] = (uint32_t)id;
	return ERR_OK;
}

static err_status read_filters(const struct place *place, const json_t *value,
			       struct mig_entry *entry, struct err *err)
{
	if (value == NULL)
		return ERR_OK;
	if (!json_is_array(value))
		return read_filter(place, value, entry, err);
	for (size_t i = 0; i < json_array_size(value); i++) {
		if (read_filter(place, json_array_get(value, i), entry, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

static err_status read_counts(const struct place *place, json_t *value, struct mig_entry *entry,
			      struct err *err)
{
	const char *profile;
	json_t *count;
	if (value == NULL || json_is_null(value))
		return ERR_OK;
	if (!json_is_object(value))
		return refuse(place, err, "must be a mapping of profiles to counts");
	json_object_foreach(value, profile, count)
	{
		struct place at = below(place, ".%.60s", profile);
		if (strstr(profile, "c.") != NULL)
			return refuse(&at, err,
				      "compute instances narrower than their GPU instance are not "
				      "made; name the GPU instance");
		if (strlen(profile) >= GPU_PROFILE_BYTES || profile[0] == '\0')
			return refuse(&at, err, "is no profile");
		if (!json_is_integer(count) || json_integer_value(count) < 0 ||
		    json_integer_value(count) > MIG_INSTANCES_MAX)
			return refuse(&at, err, "must be a number of 0 to %d", MIG_INSTANCES_MAX);
		if (entry->count_count == MIG_COUNTS_MAX)
			return refuse(place, err, "more than %d profiles", MIG_COUNTS_MAX);
		(void)snprintf(entry->counts[entry->count_count].profile, GPU_PROFILE_BYTES, "%s",
			       profile);
		entry->counts[entry->count_count++].count = (uint32_t)json_integer_value(count);
	}
	if (entry->count_count > 0 && !entry->is_enabled)
		return refuse(place, err, "needs mig-enabled: true");
	return ERR_OK;
}

static err_status read_entry(const struct place *place, json_t *value, struct mig_entry *entry,
			     struct err *err)
{
	static const char *const keys[] = { "devices", "device-filter", "mig-enabled",
					    "mig-devices", NULL };
	if (!json_is_object(value))
		return refuse(place, err, "must be a mapping");
	struct err unknown;
	if (json_only_keys(value, keys, &unknown) != ERR_OK)
		return refuse(place, err, "%.200s", unknown.text);
	const json_t *enabled = json_object_get(value, "mig-enabled");
	struct place at = below(place, ".mig-enabled");
	if (!json_is_boolean(enabled))
		return refuse(enabled == NULL ? place : &at, err,
			      "mig-enabled must be true or "
			      "false");
	entry->is_enabled = json_is_true(enabled);
	const json_t *devices = json_object_get(value, "devices");
	struct place devices_at = below(place, ".devices");
	if (read_devices(devices == NULL ? place : &devices_at, devices, entry, err) != ERR_OK)
		return err->status;
	at = below(place, ".device-filter");
	if (read_filters(&at, json_object_get(value, "device-filter"), entry, err) != ERR_OK)
		return err->status;
	at = below(place, ".mig-devices");
	return read_counts(&at, json_object_get(value, "mig-devices"), entry, err);
}

static err_status read_layout(const struct place *place, const char *name, const json_t *list,
			      struct mig_layout *ret, struct err *err)
{
	struct mig_layout layout = { 0 };
	if (strlen(name) >= sizeof layout.name || name[0] == '\0')
		return refuse(place, err, "a name must have 1 to %zu bytes, as a label's value",
			      sizeof layout.name - 1);
	if (!json_is_array(list) || json_array_size(list) == 0 ||
	    json_array_size(list) > MIG_ENTRIES_MAX)
		return refuse(place, err, "must be a list of 1 to %d entries", MIG_ENTRIES_MAX);
	(void)snprintf(layout.name, sizeof layout.name, "%s", name);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct place at = below(place, "[%zu]", i);
		if (read_entry(&at, json_array_get(list, i), &layout.entries[layout.entry_count++],
			       err) != ERR_OK)
			return err->status;
	}
	*ret = layout;
	return ERR_OK;
}

err_status mig_layouts_open(struct str text, json_t **ret_root, struct err *err)
{
	static const char *const keys[] = { "version", "mig-configs", NULL };
	AUTO(json_decrefp) json_t *root = NULL;
	if (yaml_parse(text, &root, err) != ERR_OK)
		return err->status;
	if (!json_is_object(root) || !str_eq_c(json_text(root, "version"), "v1"))
		return err_set(err, ERR_INVALID,
			       "line 1: must be a mapping with version: v1 and mig-configs");
	if (json_only_keys(root, keys, err) != ERR_OK)
		return err->status;
	if (mig_layouts_check(text, json_object_get(root, "mig-configs"), "mig-configs", err) !=
	    ERR_OK)
		return err->status;
	*ret_root = json_incref(root);
	return ERR_OK;
}

err_status mig_layouts_check(struct str text, const json_t *layouts, const char *path,
			     struct err *err)
{
	const char *name;
	json_t *list;
	struct place place = { .text = text };
	(void)snprintf(place.path, sizeof place.path, "%s", path);
	if (!json_is_object(layouts))
		return refuse(&place, err, "must be a mapping of names to layouts");
	json_object_foreach((json_t *)(uintptr_t)layouts, name, list)
	{
		struct mig_layout layout;
		struct place at = below(&place, ".%.100s", name);
		if (read_layout(&at, name, list, &layout, err) != ERR_OK)
			return err->status;
	}
	return ERR_OK;
}

err_status mig_layout_read(struct str text, const json_t *layouts, const char *path,
			   const char *name, struct mig_layout *ret, struct err *err)
{
	AUTO(buf_done) struct buf known = { .limit = 250 };
	const json_t *list = json_object_get(layouts, name);
	struct place place = { .text = text };
	const char *other;
	json_t *ignored;
	(void)snprintf(place.path, sizeof place.path, "%s.%.100s", path, name);
	if (list != NULL)
		return read_layout(&place, name, list, ret, err);
	json_object_foreach((json_t *)(uintptr_t)layouts, other, ignored)
	{
		(void)ignored;
		buf_printf(&known, " %s", other);
	}
	return err_set(err, ERR_NOT_FOUND, "there is no layout \"%.63s\"; known are:%.250s", name,
		       known.data == NULL ? " none" : known.data);
}

err_status mig_reserves_read(const json_t *list, struct mig_reserves *reserves, struct err *err)
{
	static const char *const keys[] = { "tenant", "node", "profile", "count", NULL };
	if (list == NULL)
		return ERR_OK;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct mig_reserve reserve = { 0 };
		int64_t count = json_int(item, "count", 1);
		struct str tenant = json_text(item, "tenant"), node = json_text(item, "node");
		struct str profile = json_text(item, "profile");
		if (json_only_keys(item, keys, err) != ERR_OK)
			return err_wrap(err, "reservations[%zu]", i);
		if (tenant.len == 0 || tenant.len >= sizeof reserve.tenant || profile.len == 0 ||
		    profile.len >= sizeof reserve.profile || node.len >= sizeof reserve.node ||
		    count < 1 || count > GPU_MAX * MIG_INSTANCES_MAX)
			return err_set(err, ERR_INVALID,
				       "reservations[%zu] needs tenant, profile and a count of at "
				       "least 1",
				       i);
		if (reserves->count == MIG_RESERVES_MAX)
			return err_set(err, ERR_LIMIT, "more than %d reservations",
				       MIG_RESERVES_MAX);
		memcpy(reserve.tenant, tenant.data, tenant.len);
		memcpy(reserve.profile, profile.data, profile.len);
		if (node.len > 0)
			memcpy(reserve.node, node.data, node.len);
		reserve.count = (uint32_t)count;
		reserves->items[reserves->count++] = reserve;
	}
	return ERR_OK;
}

static bool is_for(const struct mig_entry *entry, const struct gpu_info *gpu)
{
	bool is_named = entry->is_all ||
			(gpu->index < INDEXES_MAX && (entry->gpus >> gpu->index & 1) != 0);
	for (size_t i = 0; i < entry->filter_count; i++) {
		if (entry->filters[i] == gpu->pci_device_id)
			return is_named;
	}
	return is_named && entry->filter_count == 0;
}

static err_status find_profiles(const struct mig_entry *entry, const struct gpu_info *gpu,
				const struct mig_state *mig, struct mig_goal *goal, struct err *err)
{
	AUTO(buf_done) struct buf known = { .limit = 200 };
	for (size_t i = 0; i < entry->count_count; i++) {
		const struct mig_profile *profile =
			mig_profile_find(mig, str_of(entry->counts[i].profile));
		if (profile != NULL) {
			goal->want.counts[profile - mig->profiles] += entry->counts[i].count;
			continue;
		}
		for (uint32_t j = 0; j < mig->profile_count; j++)
			buf_printf(&known, " %s", mig->profiles[j].name);
		return err_set(err, ERR_INVALID,
			       "GPU %" PRIu32 " (%.40s) has no profile %s; it has%.200s",
			       gpu->index, gpu->model, entry->counts[i].profile,
			       known.data == NULL ? " none" : known.data);
	}
	return ERR_OK;
}

err_status mig_layout_goal(const struct mig_layout *layout, const struct gpu_info *gpu,
			   const struct mig_state *mig, struct mig_goal *ret, struct err *err)
{
	struct mig_goal goal = { 0 };
	struct mig_state empty = *mig;
	struct mig_plan plan;
	const bool nothing_kept[MIG_INSTANCES_MAX] = { false };
	for (size_t i = 0; i < layout->entry_count; i++) {
		const struct mig_entry *entry = &layout->entries[i];
		if (!is_for(entry, gpu))
			continue;
		goal = (struct mig_goal){ .is_set = true, .is_enabled = entry->is_enabled };
		if (entry->is_enabled && !gpu->mig_capable)
			return err_set(err, ERR_INVALID,
				       "GPU %" PRIu32 " (%.40s) has no MIG; leave it out by "
				       "devices or device-filter",
				       gpu->index, gpu->model);
		if (find_profiles(entry, gpu, mig, &goal, err) != ERR_OK)
			return err->status;
	}
	goal.is_set = goal.is_set && gpu->mig_capable;
	empty.instance_count = 0;
	if (goal.is_enabled &&
	    mig_plan_make(&empty, nothing_kept, &goal.want, &plan, err) != ERR_OK)
		return err_wrap(err, "GPU %" PRIu32, gpu->index);
	*ret = goal;
	return ERR_OK;
}

bool mig_goal_is_same(const struct mig_goal *a, const struct mig_goal *b)
{
	return a->is_set == b->is_set && a->is_enabled == b->is_enabled &&
	       memcmp(&a->want, &b->want, sizeof a->want) == 0;
}

bool mig_reserves_is_same(const struct mig_reserves *a, const struct mig_reserves *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++) {
		const struct mig_reserve *x = &a->items[i], *y = &b->items[i];
		if (strcmp(x->tenant, y->tenant) != 0 || strcmp(x->node, y->node) != 0 ||
		    strcmp(x->profile, y->profile) != 0 || x->count != y->count)
			return false;
	}
	return a->count == b->count;
}
