// SPDX-License-Identifier: Apache-2.0
#include "policy/request.h"

#include "gpu/mig.h"
#include "gpu/model.h"
#include "gpu/share.h"
#include "policy/request_mig.h"

#include <inttypes.h>
#include <stdio.h>

enum { DAY_S = 86400, MAX_DURATION_DEFAULT_S = DAY_S, DURATION_MAX_S = 366 * DAY_S };
enum { GPUS_MAX = 1024, CPU_MAX_MILLI = 4096000, MEMORY_MIN_BYTES = 1 << 20, IMAGE_MAX = 512 };
enum { ENV_NAME_MAX = 128, ENV_VALUE_MAX = 32768 };
#define MEMORY_MAX_BYTES (INT64_C(1) << 46)
#define GPU_MEMORY_MAX_BYTES (INT64_C(1) << 50)

static const char *const class_names[] = { "inference", "training", "experiment", NULL };

static const struct schema_field request_fields[] = {
	{ "name", SCHEMA_LABEL, .min = 1, .max = REQUEST_NAME_MAX,
	  .doc = "Name in the tenant, also of the Job; absent: the server makes one." },
	{ "class", SCHEMA_TEXT, .min = 1, .values = class_names,
	  .doc = "Quality class, which decides the priority; default experiment." },
	{ "gpus", SCHEMA_INT, .min = 1, .max = GPUS_MAX,
	  .doc = "Whole GPUs, all on one node; absent: a share of one." },
	{ "gpu_milli", SCHEMA_INT, .min = 1, .max = SHARE_WHOLE_MILLI,
	  .doc = "Share of one GPU, in thousandths." },
	{ "gang", SCHEMA_INT, .min = 2, .max = REQUEST_GANG_MAX,
	  .doc = "So many pods, each with all that is asked for, that start together or not at "
		 "all; absent: one pod." },
	{ "mig_profile", SCHEMA_TEXT, .min = 1, .max = GPU_PROFILE_BYTES - 1,
	  .doc = "One MIG device of this profile, as 1g.10gb, in place of GPUs." },
	{ "gpu_models", SCHEMA_TEXTS, .min = 1, .max = REQUEST_MODELS_MAX,
	  .doc = "GPU models of which any will do; absent: every model." },
	{ "gpu_memory", SCHEMA_BYTES, .min = 1, .max = GPU_MEMORY_MAX_BYTES,
	  .doc = "Memory that one GPU must have at least; without gpus, the share's memory." },
	{ "cpu", SCHEMA_CPU, .min = 1, .max = CPU_MAX_MILLI, .doc = "CPUs, default 1." },
	{ "memory", SCHEMA_BYTES, .min = MEMORY_MIN_BYTES, .max = MEMORY_MAX_BYTES,
	  .doc = "Memory, default 1Gi." },
	{ "duration", SCHEMA_DURATION, .min = 1, .max = DURATION_MAX_S,
	  .doc = "How long it will run, as well as is known." },
	{ "max_duration", SCHEMA_DURATION, .min = 1, .max = DURATION_MAX_S,
	  .doc = "It is ended after this; default 24h, or twice the duration if that is longer." },
	{ "deadline", SCHEMA_TIME,
	  .doc = "When it is to have ended; told when that can no longer be, and never ended for "
		 "it." },
	{ "image", SCHEMA_TEXT, .required = true, .min = 1, .max = IMAGE_MAX,
	  .doc = "Container image." },
	{ "command", SCHEMA_TEXTS, .min = 1, .max = REQUEST_ARGS_MAX,
	  .doc = "Program instead of the image's." },
	{ "args", SCHEMA_TEXTS, .min = 1, .max = REQUEST_ARGS_MAX, .doc = "Arguments." },
	{ "env", SCHEMA_TEXT_MAP, .max = REQUEST_ENV_MAX, .doc = "Environment, name to value." },
};
const struct schema request_schema = { .name = "RequestSpec",
				       .doc = "A request for GPUs and what is to run on them.",
				       SCHEMA_FIELDS(request_fields) };

static const struct schema_field env_fields[] = {
	{ "name", SCHEMA_TEXT, .required = true, .min = 1, .max = ENV_NAME_MAX, .doc = "Name." },
	{ "value", SCHEMA_ANY, .doc = "Value, of any characters." },
};
static const struct schema env_schema = { .name = "EnvVar", SCHEMA_FIELDS(env_fields) };

static const struct schema_field object_fields[] = {
	{ "class", SCHEMA_TEXT, .values = class_names },
	{ "gpus", SCHEMA_INT, .min = 1, .max = GPUS_MAX, .doc = "whole GPUs" },
	{ "gpuMilli", SCHEMA_INT, .min = 1, .max = SHARE_WHOLE_MILLI, .doc = "a share" },
	{ "gang", SCHEMA_INT, .min = 2, .max = REQUEST_GANG_MAX, .doc = "pods" },
	{ "migProfile", SCHEMA_TEXT, .min = 1, .max = GPU_PROFILE_BYTES - 1, .doc = "a slice" },
	{ "gpuModels", SCHEMA_TEXTS, .max = REQUEST_MODELS_MAX },
	{ "gpuMemory", SCHEMA_BYTES, .min = 1, .max = GPU_MEMORY_MAX_BYTES },
	{ "cpu", SCHEMA_CPU, .min = 1, .max = CPU_MAX_MILLI },
	{ "memory", SCHEMA_BYTES, .min = MEMORY_MIN_BYTES, .max = MEMORY_MAX_BYTES },
	{ "durationSeconds", SCHEMA_INT, .min = 1, .max = DURATION_MAX_S },
	{ "deadline", SCHEMA_TIME, .doc = "an instant" },
	{ "maxDurationSeconds", SCHEMA_INT, .min = 1, .max = DURATION_MAX_S },
	{ "image", SCHEMA_TEXT, .required = true, .min = 1, .max = IMAGE_MAX, .doc = "container" },
	{ "command", SCHEMA_TEXTS, .max = REQUEST_ARGS_MAX },
	{ "args", SCHEMA_TEXTS, .max = REQUEST_ARGS_MAX },
	{ "env", SCHEMA_OBJECTS, .max = REQUEST_ENV_MAX, .object = &env_schema },
	{ "cancel", SCHEMA_BOOL, .doc = "ends it" },
};
static const struct schema object_schema = { .name = "GPURequest", SCHEMA_FIELDS(object_fields) };

const char *request_class_name(request_class class_)
{
	ASSERT(class_ <= REQUEST_EXPERIMENT);
	return class_names[class_];
}

static err_status fault_of(struct schema_fault *ret_fault, const char *path, struct err *err,
			   const char *text)
{
	if (ret_fault != NULL) {
		*ret_fault = (struct schema_fault){ .code = "invalid_field" };
		(void)snprintf(ret_fault->path, sizeof ret_fault->path, "%s", path);
	}
	return err_set(err, ERR_INVALID, "%s", text);
}

static bool is_env_name(const char *name)
{
	size_t len = strlen(name);
	if (len == 0 || len > ENV_NAME_MAX || (name[0] >= '0' && name[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		bool is_fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
			       (c >= '0' && c <= '9');
		if (!is_fine)
			return false;
	}
	return true;
}

static err_status check_env_name(const char *name, struct schema_fault *ret_fault, struct err *err)
{
	if (!is_env_name(name))
		return fault_of(ret_fault, "env", err,
				"env: names are 1 to 128 of A-Z, a-z, 0-9 and '_' and do not start "
				"with a digit");
	if (strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0)
		return fault_of(ret_fault, "env", err,
				"env: NVIDIA_VISIBLE_DEVICES is set by the platform to the GPUs "
				"that are granted; leave it out");
	return ERR_OK;
}

static err_status check_env(const json_t *env, struct schema_fault *ret_fault, struct err *err)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)env, key, value)
	{
		if (check_env_name(key, ret_fault, err) != ERR_OK)
			return ERR_INVALID;
		if (json_string_length(value) > ENV_VALUE_MAX)
			return fault_of(ret_fault, "env", err,
					"env: a value has at most 32768 bytes; put more in a file");
	}
	return ERR_OK;
}

request_class request_class_of(struct str name)
{
	for (unsigned i = 0; i < REQUEST_EXPERIMENT; i++) {
		if (str_eq_c(name, class_names[i]))
			return (request_class)i;
	}
	return REQUEST_EXPERIMENT;
}

static bool is_model(struct str model)
{
	return model.len > 0 && model.len <= 63 && str_find_byte(model, ',', 0) == SIZE_MAX;
}

static err_status read_models(const json_t *body, struct request_spec *spec,
			      struct schema_fault *ret_fault, struct err *err)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(body, "gpu_models"), i, item)
	{
		ASSERT(i < REQUEST_MODELS_MAX); // by the schema
		struct str model = { json_string_value(item), json_string_length(item) };
		if (!is_model(model))
			return fault_of(ret_fault, "gpu_models", err,
					"gpu_models: a model has 1 to 63 characters and no comma");
		spec->models[spec->model_count++] = model;
	}
	return ERR_OK;
}

static err_status check_image(struct str image, struct schema_fault *ret_fault, struct err *err)
{
	for (size_t i = 0; i < image.len; i++) {
		unsigned char c = (unsigned char)image.data[i];
		if (c <= ' ' || c > '~')
			return fault_of(ret_fault, "image", err,
					"image must be an image reference without blanks, like "
					"registry.example/team/train:1");
	}
	return ERR_OK;
}

// Whole GPUs, a share of one, by thousandths, memory or both, or a MIG device.
static err_status check_gpus(const struct request_spec *spec, struct schema_fault *ret_fault,
			     struct err *err)
{
	const char *field = "";
	struct err why = { 0 };
	if (spec->mig_profile.len > 0)
		return request_mig_check_alone(spec, &field, &why) == ERR_OK
			       ? ERR_OK
			       : fault_of(ret_fault, field, err, why.text);
	if (spec->gpu_count > 0 && spec->gpu_milli > 0)
		return fault_of(ret_fault, "gpu_milli", err,
				"gpu_milli: a request is for whole GPUs or for a share of one, not "
				"for both");
	if (spec->gpu_count == 0 && spec->gpu_milli == 0 && spec->gpu_memory_mib == 0)
		return fault_of(
			ret_fault, "gpus", err,
			"gpus is needed, or for a share of one GPU gpu_milli or gpu_memory, or "
			"mig_profile");
	return ERR_OK;
}

err_status request_parse(const json_t *body, struct request_spec *ret_spec,
			 struct schema_fault *ret_fault, struct err *err)
{
	if (schema_check(&request_schema, body, ret_fault, err) != ERR_OK)
		return ERR_INVALID;
	struct request_spec spec = {
		.name = json_text(body, "name"),
		.class_ = request_class_of(json_text(body, "class")),
		.gpu_count = json_int(body, "gpus", 0),
		.gpu_milli = json_int(body, "gpu_milli", 0),
		.gang = json_int(body, "gang", 0),
		.mig_profile = json_text(body, "mig_profile"),
		.gpu_memory_mib = schema_get_bytes(body, "gpu_memory", 0) >> 20,
		.cpu_milli = schema_get_cpu_milli(body, "cpu", 1000),
		.memory_bytes = schema_get_bytes(body, "memory", INT64_C(1) << 30),
		.duration_s = schema_get_duration_s(body, "duration", 0),
		.deadline = json_text(body, "deadline"),
		.image = json_text(body, "image"),
		.command = json_object_get(body, "command"),
		.args = json_object_get(body, "args"),
		.env = json_object_get(body, "env"),
	};
	int64_t max_absent_s = max_i64(MAX_DURATION_DEFAULT_S, 2 * spec.duration_s);
	spec.max_duration_s = schema_get_duration_s(body, "max_duration", max_absent_s);
	if (spec.max_duration_s < spec.duration_s)
		return fault_of(ret_fault, "max_duration", err,
				"max_duration is shorter than duration: it would always be ended "
				"by force");
	if (check_gpus(&spec, ret_fault, err) != ERR_OK ||
	    read_models(body, &spec, ret_fault, err) != ERR_OK ||
	    check_image(spec.image, ret_fault, err) != ERR_OK ||
	    check_env(spec.env, ret_fault, err) != ERR_OK)
		return ERR_INVALID;
	*ret_spec = spec;
	return ERR_OK;
}

static size_t count_asked(const json_t *spec)
{
	static const char *const names[] = { "gpus", "gpuMilli", "migProfile" };
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		count += json_object_get(spec, names[i]) != NULL ? 1 : 0;
	return count;
}

err_status request_check_object(const json_t *spec, struct err *err)
{
	size_t i;
	json_t *item;
	if (schema_check(&object_schema, spec, NULL, err) != ERR_OK ||
	    check_image(json_text(spec, "image"), NULL, err) != ERR_OK)
		return ERR_INVALID;
	if (count_asked(spec) != 1)
		return err_set(err, ERR_INVALID,
			       "one of gpus, gpuMilli and migProfile is needed, and only one");
	struct str profile = json_text(spec, "migProfile");
	if (profile.len > 0 && mig_profile_slices(profile) == 0)
		return err_set(err, ERR_INVALID, "migProfile is a name such as 1g.10gb");
	json_array_foreach(json_object_get(spec, "gpuModels"), i, item)
	{
		if (!is_model((struct str){ json_string_value(item), json_string_length(item) }))
			return err_set(err, ERR_INVALID,
				       "gpuModels: a model has 1 to 63 characters and no comma");
	}
	json_array_foreach(json_object_get(spec, "env"), i, item)
	{
		if (check_env_name(json_cstr(item, "name"), NULL, err) != ERR_OK)
			return ERR_INVALID;
		const json_t *value = json_object_get(item, "value");
		if (value != NULL &&
		    (!json_is_string(value) || json_string_length(value) > ENV_VALUE_MAX))
			return err_set(err, ERR_INVALID, "env: a value is text of at most %d bytes",
				       ENV_VALUE_MAX);
	}
	int64_t longest_s = json_int(spec, "maxDurationSeconds", MAX_DURATION_DEFAULT_S);
	if (json_int(spec, "durationSeconds", 0) > longest_s)
		return err_set(
			err, ERR_INVALID,
			"maxDurationSeconds is shorter than durationSeconds: it would always "
			"be ended by force");
	return ERR_OK;
}

bool inventory_add(struct inventory *inventory, const struct inventory_row *row)
{
	for (size_t i = 0; i < inventory->count; i++) {
		struct inventory_row *known = &inventory->rows[i];
		if (str_eq(known->model, row->model) &&
		    known->gpus_per_node == row->gpus_per_node &&
		    known->shared_per_node == row->shared_per_node &&
		    known->gpu_memory_mib == row->gpu_memory_mib) {
			known->nodes += row->nodes;
			return true;
		}
	}
	if (inventory->count == INVENTORY_MAX)
		return false;
	inventory->rows[inventory->count++] = *row;
	return true;
}

bool request_wants_model(const struct request_spec *spec, struct str model)
{
	for (size_t i = 0; i < spec->model_count; i++) {
		if (gpu_model_matches(spec->models[i], model))
			return true;
	}
	return spec->model_count == 0;
}

// "A100-SXM4-80GB (8 a node, 80 GiB), ..." of all rows, cut when it gets long.
static void describe(const struct inventory *inventory, char *out, size_t out_bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < inventory->count && used < out_bytes - 1; i++) {
		const struct inventory_row *row = &inventory->rows[i];
		int n = snprintf(out + used, out_bytes - used,
				 "%s" STR_FMT " (%" PRId64 " a node, %" PRId64 " GiB each)",
				 i == 0 ? "" : ", ", STR_ARG(row->model), row->gpus_per_node,
				 row->gpu_memory_mib >> 10);
		used = n < 0 ? used : min_size(used + (size_t)n, out_bytes - 1);
	}
}

void request_fill_share(struct request_spec *spec, const struct inventory *inventory)
{
	int64_t smallest_mib = 0;
	if (spec->gpu_count > 0 || spec->gpu_milli > 0 || spec->mig_profile.len > 0)
		return;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct inventory_row *row = &inventory->rows[i];
		bool suits = row->shared_per_node > 0 && request_wants_model(spec, row->model) &&
			     row->gpu_memory_mib >= spec->gpu_memory_mib;
		if (suits && (smallest_mib == 0 || row->gpu_memory_mib < smallest_mib))
			smallest_mib = row->gpu_memory_mib;
	}
	const struct share ask = { .memory_mib = spec->gpu_memory_mib };
	struct share part = share_of(&ask, smallest_mib);
	spec->gpu_milli = smallest_mib == 0 ? SHARE_WHOLE_MILLI : part.milli;
}

int64_t request_pod_count(const struct request_spec *spec) { return max_i64(spec->gang, 1); }

// Pods that all nodes of a kind hold at once when they are empty.
static int64_t pods_of_row(const struct request_spec *spec, const struct inventory_row *row)
{
	int64_t a_node = 0;
	if (!request_wants_model(spec, row->model) || row->gpu_memory_mib < spec->gpu_memory_mib)
		return 0;
	if (spec->gpu_count > 0) {
		a_node = row->gpus_per_node / spec->gpu_count;
	} else {
		struct share ask = { .milli = spec->gpu_milli, .memory_mib = spec->gpu_memory_mib };
		struct share part = share_of(&ask, row->gpu_memory_mib);
		int64_t a_gpu = part.milli > 0 ? SHARE_WHOLE_MILLI / part.milli : 0;
		if (part.memory_mib > 0)
			a_gpu = min_i64(a_gpu, row->gpu_memory_mib / part.memory_mib);
		a_node = row->shared_per_node * a_gpu;
	}
	return a_node * row->nodes;
}

static err_status check_gang(const struct request_spec *spec, const struct inventory *inventory,
			     struct err *err)
{
	int64_t pods = 0;
	for (size_t i = 0; i < inventory->count; i++)
		pods += pods_of_row(spec, &inventory->rows[i]);
	if (inventory->count == 0 || pods >= request_pod_count(spec))
		return ERR_OK;
	return err_set(err, ERR_UNSUPPORTED,
		       "all nodes together hold %" PRId64
		       " such pods at once, the gang has %" PRId64
		       "; ask for a smaller gang, or for less in each pod",
		       pods, spec->gang);
}

static err_status check_share(const struct request_spec *spec, const struct inventory *inventory,
			      struct err *err)
{
	int64_t most_mib = -1;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct inventory_row *row = &inventory->rows[i];
		if (row->shared_per_node > 0 && request_wants_model(spec, row->model))
			most_mib = max_i64(most_mib, row->gpu_memory_mib);
	}
	if (inventory->count == 0 || (most_mib >= 0 && most_mib >= spec->gpu_memory_mib))
		return ERR_OK;
	if (most_mib >= 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "no GPU that is given in shares has %" PRId64
			       " MiB of memory, the largest has %" PRId64,
			       spec->gpu_memory_mib, most_mib);
	return err_set(err, ERR_UNSUPPORTED,
		       "no node gives such GPUs in shares; ask for whole ones (gpus), or let an "
		       "administrator set GPUs aside (docs/agent.md)");
}

static err_status check_whole(const struct request_spec *spec, const struct inventory *inventory,
			      struct err *err)
{
	int64_t most_gpus = 0, most_memory_mib = 0;
	bool has_model = false;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct inventory_row *row = &inventory->rows[i];
		if (!request_wants_model(spec, row->model))
			continue;
		has_model = true;
		most_memory_mib = max_i64(most_memory_mib, row->gpu_memory_mib);
		if (row->gpu_memory_mib >= spec->gpu_memory_mib)
			most_gpus = max_i64(most_gpus, row->gpus_per_node);
	}
	if (inventory->count == 0 || most_gpus >= spec->gpu_count)
		return ERR_OK;
	char have[260];
	describe(inventory, have, sizeof have);
	if (!has_model)
		return err_set(err, ERR_UNSUPPORTED,
			       "no node has GPUs of model \"" STR_FMT "\"; there are %s",
			       STR_ARG(spec->models[0]), have);
	if (most_memory_mib < spec->gpu_memory_mib)
		return err_set(err, ERR_UNSUPPORTED,
			       "no such GPU has %" PRId64 " MiB of memory, the largest has %" PRId64
			       "; there are %s",
			       spec->gpu_memory_mib, most_memory_mib, have);
	return err_set(err, ERR_UNSUPPORTED,
		       "no node has %" PRId64 " such GPUs, at most %" PRId64
		       " are on one; ask for fewer or split the work; there are %s",
		       spec->gpu_count, most_gpus, have);
}

err_status request_check_possible(const struct request_spec *spec,
				  const struct inventory *inventory, struct err *err)
{
	if (spec->mig_profile.len > 0)
		return request_mig_check_possible(spec, inventory, err);
	err_status status = spec->gpu_count > 0 ? check_whole(spec, inventory, err)
						: check_share(spec, inventory, err);
	return status == ERR_OK ? check_gang(spec, inventory, err) : status;
}

void request_id_format(struct str tenant, struct str name, char out[REQUEST_ID_BYTES])
{
	ASSERT(tenant.len <= TENANT_NAME_MAX && name.len <= REQUEST_NAME_MAX);
	(void)snprintf(out, REQUEST_ID_BYTES, STR_FMT "." STR_FMT, STR_ARG(tenant), STR_ARG(name));
}

bool request_id_parse(struct str id, struct str *ret_tenant, struct str *ret_name)
{
	size_t dot = str_find_byte(id, '.', 0);
	if (dot == SIZE_MAX)
		return false;
	struct str tenant = str_slice(id, 0, dot), name = str_slice(id, dot + 1, id.len);
	if (!str_is_dns_label(tenant) || tenant.len > TENANT_NAME_MAX || !str_is_dns_label(name) ||
	    name.len > REQUEST_NAME_MAX)
		return false;
	*ret_tenant = tenant;
	*ret_name = name;
	return true;
}
