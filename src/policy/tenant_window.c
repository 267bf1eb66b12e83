// SPDX-License-Identifier: Apache-2.0
#include "policy/tenant_window.h"

#include "base/buf.h"
#include "base/timefmt.h"
#include "gpu/model.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAMED_MAX = 4 }; // windows that a refusal names

static const struct schema_field window_fields[] = {
	{ "name", SCHEMA_LABEL, .required = true, .min = 1, .max = 63,
	  .doc = "One of the tenant's windows." },
	{ "start", SCHEMA_TIME, .required = true, .doc = "From when." },
	{ "end", SCHEMA_TIME, .required = true, .doc = "Until when." },
	{ "gpus", SCHEMA_INT, .required = true, .min = 1, .max = TENANT_WINDOW_GPUS_MAX,
	  .doc = "So many whole GPUs." },
	{ "model", SCHEMA_TEXT, .min = 1, .max = 63,
	  .doc = "GPU model, as requests name them; absent, any." },
};
const struct schema tenant_window_schema = {
	.name = "TenantWindow",
	.doc = "GPUs that are reserved for the tenant from an instant to another.",
	SCHEMA_FIELDS(window_fields)
};

struct window {
	struct str tenant, name, model;
	int64_t start_s, end_s, gpus;
};

static struct window read_window(struct str tenant, const json_t *value)
{
	struct window window = { .tenant = tenant,
				 .name = json_text(value, "name"),
				 .model = json_text(value, "model"),
				 .gpus = json_int(value, "gpus", 0) };
	uint32_t ns;
	if (!time_parse(json_text(value, "start"), &window.start_s, &ns) ||
	    !time_parse(json_text(value, "end"), &window.end_s, &ns))
		window.gpus = 0;
	return window;
}

static err_status refuse(struct schema_fault *fault, err_status status, struct str name,
			 const char *text, struct err *err)
{
	if (fault != NULL) {
		*fault = (struct schema_fault){ .code = status == ERR_LIMIT ? "window_too_large"
									    : "invalid_field" };
		(void)snprintf(fault->path, sizeof fault->path, "windows." STR_FMT, STR_ARG(name));
	}
	return err_set(err, status, "window \"" STR_FMT "\": %s", STR_ARG(name), text);
}

static err_status check_one(const json_t *windows, size_t at, struct schema_fault *fault,
			    struct err *err)
{
	const struct window window = read_window(STR(""), json_array_get(windows, at));
	const char *text = NULL;
	for (size_t i = 0; i < at; i++) {
		if (str_eq(json_text(json_array_get(windows, i), "name"), window.name))
			text = "the name is there twice; give each its own";
	}
	if (window.end_s <= window.start_s)
		text = "its end must be after its start";
	else if (window.end_s - window.start_s > TENANT_WINDOW_LONGEST_S)
		text = "it is longer than 366 days; a guarantee of the queue has no end";
	return text == NULL ? ERR_OK : refuse(fault, ERR_INVALID, window.name, text, err);
}

// ---- whether there are as many

// Whether all GPUs of the one are GPUs of the other, of those that the cluster has. Names of models
// are more or less exact, so that two sets of GPUs are apart or one lies within the other: there is
// room for all windows of an instant when there is room for those within each of them.
static bool is_within(const struct inventory *inventory, struct str one, struct str other)
{
	for (size_t i = 0; i < inventory->count; i++) {
		struct str model = inventory->rows[i].model;
		bool is_ones = one.len == 0 || gpu_model_matches(one, model);
		if (is_ones && other.len > 0 && !gpu_model_matches(other, model))
			return false;
	}
	return true;
}

static int64_t count_there(const struct inventory *inventory, struct str model)
{
	int64_t count = 0;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct inventory_row *row = &inventory->rows[i];
		if (model.len == 0 || gpu_model_matches(model, row->model))
			count += row->gpus_per_node * row->nodes;
	}
	return count;
}

struct sum {
	const struct tenant_windows_input *in;
	struct str model; // those within it
	int64_t at_s, gpus;
	size_t count;
	struct buf *names; // NULL: not wanted
};

static void add_windows(struct sum *sum, struct str tenant, const json_t *windows)
{
	const json_t *value;
	size_t i;
	json_array_foreach(windows, i, value)
	{
		const struct window window = read_window(tenant, value);
		if (window.gpus < 1 || window.start_s > sum->at_s || window.end_s <= sum->at_s ||
		    !is_within(sum->in->inventory, window.model, sum->model))
			continue;
		sum->gpus += min_i64(window.gpus, TENANT_WINDOW_GPUS_MAX);
		if (sum->names != NULL && sum->count < NAMED_MAX)
			buf_printf(sum->names, "%s" STR_FMT "/" STR_FMT " %" PRId64,
				   sum->count == 0 ? "" : ", ", STR_ARG(tenant),
				   STR_ARG(window.name), window.gpus);
		sum->count++;
	}
}

// All windows of the instant that lie within the model.
static struct sum sum_at(const struct tenant_windows_input *in, struct str model, int64_t at_s,
			 struct buf *names)
{
	struct sum sum = { .in = in, .model = model, .at_s = at_s, .names = names };
	const char *tenant;
	json_t *windows;
	add_windows(&sum, in->tenant, in->windows);
	json_object_foreach((json_t *)(uintptr_t)in->tenants, tenant, windows)
	{
		if (!str_eq_c(in->tenant, tenant))
			add_windows(&sum, str_of(tenant), windows);
	}
	return sum;
}

static err_status check_instant(const struct tenant_windows_input *in, const struct window *own,
				struct str model, int64_t at_s, struct schema_fault *fault,
				struct err *err)
{
	int64_t there = count_there(in->inventory, model);
	if (sum_at(in, model, at_s, NULL).gpus <= there)
		return ERR_OK;
	AUTO(buf_done) struct buf names = { .limit = 1024 }, text = { .limit = 2048 };
	struct sum sum = sum_at(in, model, at_s, &names);
	char when[TIME_TEXT_BYTES];
	buf_printf(&text,
		   "at %s windows reserve %" PRId64 " GPUs%s" STR_FMT " (" STR_FMT
		   "%s), there are %" PRId64 "; ask for fewer, or for another time",
		   time_format(at_s, when), sum.gpus, model.len > 0 ? " of " : "", STR_ARG(model),
		   STR_ARG(buf_str(&names)), sum.count > NAMED_MAX ? ", ..." : "", there);
	return refuse(fault, ERR_LIMIT, own->name, text.data, err);
}

// The sum rises only where a window starts: those starts within the own window are looked at. What
// may be too small is the own model's set, or a wider one that a window of then names.
static err_status check_room(const struct tenant_windows_input *in, const struct window *own,
			     const struct window *other, struct schema_fault *fault,
			     struct err *err)
{
	int64_t at_s = max_i64(max_i64(own->start_s, other->start_s), in->now_s);
	if (other->gpus < 1 || at_s >= own->end_s || at_s >= other->end_s)
		return ERR_OK;
	err_status status = check_instant(in, own, own->model, at_s, fault, err);
	if (status == ERR_OK && is_within(in->inventory, own->model, other->model))
		status = check_instant(in, own, other->model, at_s, fault, err);
	return status == ERR_OK ? check_instant(in, own, STR(""), at_s, fault, err) : status;
}

static err_status check_against(const struct tenant_windows_input *in, const struct window *own,
				struct str tenant, const json_t *windows,
				struct schema_fault *fault, struct err *err)
{
	const json_t *value;
	size_t i;
	json_array_foreach(windows, i, value)
	{
		const struct window other = read_window(tenant, value);
		if (check_room(in, own, &other, fault, err) != ERR_OK)
			return ERR_LIMIT;
	}
	return ERR_OK;
}

static bool is_asked(const struct tenant_windows_input *in, const json_t *window)
{
	return in->only.len == 0 || str_eq(in->only, json_text(window, "name"));
}

err_status tenant_windows_check(const struct tenant_windows_input *in,
				struct schema_fault *ret_fault, struct err *err)
{
	const json_t *value;
	const char *tenant;
	json_t *windows;
	size_t i;
	json_array_foreach(in->windows, i, value)
	{
		if (is_asked(in, value) && check_one(in->windows, i, ret_fault, err) != ERR_OK)
			return ERR_INVALID;
	}
	json_array_foreach(in->windows, i, value)
	{
		const struct window own = read_window(in->tenant, value);
		if (in->inventory->count == 0 || own.end_s <= in->now_s || !is_asked(in, value))
			continue;
		if (check_against(in, &own, in->tenant, in->windows, ret_fault, err) != ERR_OK)
			return ERR_LIMIT;
		json_object_foreach((json_t *)(uintptr_t)in->tenants, tenant, windows)
		{
			if (!str_eq_c(in->tenant, tenant) &&
			    check_against(in, &own, str_of(tenant), windows, ret_fault, err) !=
				    ERR_OK)
				return ERR_LIMIT;
		}
	}
	return ERR_OK;
}

// ---- one by one

json_t *tenant_windows_find(const json_t *windows, struct str name)
{
	json_t *window;
	size_t i;
	json_array_foreach(windows, i, window)
	{
		if (str_eq(json_text(window, "name"), name))
			return window;
	}
	return NULL;
}

err_status tenant_windows_add(const json_t *windows, json_t *window, int64_t now_s,
			      json_t **ret_windows, struct err *err)
{
	const struct window new = read_window(STR(""), window);
	if (tenant_windows_find(windows, new.name) != NULL)
		return err_set(err, ERR_CONFLICT,
			       "the tenant has another window \"" STR_FMT
			       "\"; delete it, or choose "
			       "another name",
			       STR_ARG(new.name));
	if (json_array_size(windows) >= TENANT_WINDOWS_MAX)
		return err_set(err, ERR_LIMIT,
			       "the tenant has %d windows, no more are allowed; delete those that "
			       "are over",
			       TENANT_WINDOWS_MAX);
	if (new.start_s < new.end_s &&new.end_s <= now_s)
		return err_set(err, ERR_INVALID,
			       "window \"" STR_FMT "\": its end is past; give one that is to come",
			       STR_ARG(new.name));
	json_t *all = json_array();
	(void)json_array_extend(all, (json_t *)(uintptr_t)windows); // NULL: it has none
	(void)json_array_append(all, window);
	*ret_windows = all;
	return ERR_OK;
}

err_status tenant_windows_remove(const json_t *windows, struct str name, json_t **ret_windows,
				 struct err *err)
{
	const json_t *gone = tenant_windows_find(windows, name);
	json_t *window;
	size_t i;
	if (gone == NULL)
		return err_set(err, ERR_NOT_FOUND, "the tenant has no window \"" STR_FMT "\"",
			       STR_ARG(name));
	json_t *rest = json_array();
	json_array_foreach(windows, i, window)
	{
		if (window != gone)
			(void)json_array_append(rest, window);
	}
	*ret_windows = rest;
	return ERR_OK;
}
