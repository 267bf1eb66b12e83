// SPDX-License-Identifier: Apache-2.0
#include "policy/tenant_queue.h"

#include <inttypes.h>
#include <stdio.h>

static const struct schema_field model_fields[] = {
	{ "model", SCHEMA_TEXT, .required = true, .min = 1, .max = TENANT_QUEUE_MODEL_MAX,
	  .doc = "GPU model, as requests name them: H100, or more exactly H100-80GB." },
	{ "guaranteed", SCHEMA_INT, .min = 0, .max = 100000,
	  .doc = "GPUs of the model that it gets before others may borrow; absent, the sum of its "
		 "children's." },
	{ "limit", SCHEMA_INT, .min = 0, .max = 100000,
	  .doc = "GPUs of the model that may run at once, with those of its children." },
};
static const struct schema model_schema = { .name = "TenantQueueModel",
					    .doc = "What a queue has of one GPU model.",
					    SCHEMA_FIELDS(model_fields) };

#define GPUS .type = SCHEMA_INT, .nullable = true, .min = 0, .max = 100000
static const struct schema_field queue_fields[] = {
	{ "parent", SCHEMA_LABEL, .nullable = true, .min = 1,
	  .doc = "Tenant whose share this one is a part of." },
	{ "guaranteed", GPUS,
	  .doc = "GPUs that it gets before others may borrow; absent, the sum of its children's." },
	{ "limit", GPUS, .doc = "GPUs that may run at once, with those of its children." },
	{ "by_model", SCHEMA_OBJECTS, .nullable = true, .object = &model_schema,
	  .max = TENANT_QUEUE_MODELS_MAX,
	  .doc = "The same of single GPU models, within what it has in all; the whole list." },
	{ "user_limit", GPUS, .doc = "GPUs of one person in it at once." },
	{ "weight", SCHEMA_INT, .nullable = true, .min = 0, .max = 1000000,
	  .doc = "Its part of what is beyond all guarantees, among its siblings; 1 unless said." },
	{ "priority_ceiling", SCHEMA_INT, .nullable = true, .min = INT32_MIN, .max = INT32_MAX,
	  .doc = "Pods of a higher priority count as this." },
	{ "half_life", SCHEMA_DURATION, .nullable = true, .min = 0, .max = 366 * 86400,
	  .doc = "After which half of what its children had is forgotten." },
	{ "max_run", SCHEMA_DURATION, .nullable = true, .min = 1, .max = 366 * 86400,
	  .doc = "Its pods are ended after this; absent, as above it, or never." },
};
#undef GPUS
const struct schema tenant_queue_schema = {
	.name = "TenantQueue",
	.doc = "What the scheduler lets run at once, and before whom; null takes a setting away.",
	SCHEMA_FIELDS(queue_fields)
};

static const struct {
	const char *name, *in_spec;
} NAMES[] = {
	{ "parent", "parent" },
	{ "guaranteed", "guaranteed" },
	{ "limit", "limit" },
	{ "by_model", "byModel" },
	{ "user_limit", "userLimit" },
	{ "weight", "weight" },
	{ "priority_ceiling", "priorityCeiling" },
	{ "half_life", "halfLifeSeconds" },
	{ "max_run", "maxRunSeconds" },
};

json_t *tenant_queue_to_spec(const json_t *queue)
{
	json_t *spec = json_object();
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		json_t *value = json_object_get(queue, NAMES[i].name);
		bool is_duration = str_ends(str_of(NAMES[i].in_spec), STR("Seconds"));
		if (value == NULL)
			continue;
		if (is_duration && !json_is_null(value))
			(void)json_object_set_new(
				spec, NAMES[i].in_spec,
				json_integer(schema_get_duration_s(queue, NAMES[i].name, 0)));
		else
			(void)json_object_set(spec, NAMES[i].in_spec, value);
	}
	return spec;
}

json_t *tenant_queue_from_spec(const json_t *spec_queue)
{
	json_t *queue = json_object();
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		json_t *value = json_object_get(spec_queue, NAMES[i].in_spec);
		if (value != NULL)
			(void)json_object_set(queue, NAMES[i].name, value);
	}
	return queue;
}

static err_status refuse(struct schema_fault *fault, const char *field, struct err *err,
			 const char *text)
{
	if (fault != NULL) {
		*fault = (struct schema_fault){ .code = "invalid_field" };
		(void)snprintf(fault->path, sizeof fault->path, "queue.%s", field);
	}
	return err_set(err, ERR_INVALID, "queue.%s: %s", field, text);
}

static err_status check_parents(struct str tenant, const json_t *spec_queue,
				tenant_queue_find_fn *find, const void *arg, struct err *err)
{
	struct str parent = json_text(spec_queue, "parent");
	for (int depth = 1; parent.len > 0; depth++) {
		const json_t *above = str_eq(parent, tenant) ? spec_queue : find(arg, parent);
		if (str_eq(parent, tenant))
			return err_set(err, ERR_INVALID,
				       "the tenant would be below itself; name another parent");
		if (above == NULL)
			return err_set(err, ERR_INVALID,
				       "tenant \"" STR_FMT "\" is not there or has no queue; give "
				       "it one first or name another parent",
				       STR_ARG(parent));
		if (depth == TENANT_QUEUE_DEPTH_MAX)
			return err_set(err, ERR_INVALID,
				       "more than %d levels, or a circle; name another parent",
				       TENANT_QUEUE_DEPTH_MAX);
		parent = json_text(above, "parent");
	}
	return ERR_OK;
}

static err_status refuse_models(struct schema_fault *fault, struct err *err, const char *text)
{
	return refuse(fault, "by_model", err, text);
}

static bool is_named_before(const json_t *models, size_t count, struct str model)
{
	for (size_t i = 0; i < count; i++) {
		if (str_eq(json_text(json_array_get(models, i), "model"), model))
			return true;
	}
	return false;
}

static err_status check_models(const json_t *spec_queue, struct schema_fault *fault,
			       struct err *err)
{
	const json_t *models = json_object_get(spec_queue, "byModel"), *model;
	int64_t sum = 0;
	size_t i;
	json_array_foreach(models, i, model)
	{
		int64_t guaranteed = json_int(model, "guaranteed", 0);
		if (is_named_before(models, i, json_text(model, "model")))
			return refuse_models(fault, err, "a model is named twice; leave one out");
		if (guaranteed > json_int(model, "limit", INT64_MAX))
			return refuse_models(fault, err,
					     "a model's guaranteed is above its limit; raise the "
					     "limit or guarantee less");
		sum += guaranteed;
	}
	if (sum > json_int(spec_queue, "guaranteed", INT64_MAX))
		return refuse_models(fault, err,
				     "the models' guarantees are more than guaranteed; raise that "
				     "or guarantee less of them");
	if (sum > json_int(spec_queue, "limit", INT64_MAX))
		return refuse_models(fault, err,
				     "the models' guarantees are more than the limit; raise the "
				     "limit or guarantee less of them");
	return ERR_OK;
}

err_status tenant_queue_check(struct str tenant, const json_t *spec_queue,
			      tenant_queue_find_fn *find, const void *arg,
			      struct schema_fault *ret_fault, struct err *err)
{
	struct err parents;
	int64_t guaranteed = json_int(spec_queue, "guaranteed", 0);
	int64_t limit = json_int(spec_queue, "limit", INT64_MAX);
	if (guaranteed > limit)
		return refuse(ret_fault, "guaranteed", err,
			      "it is above the limit; raise the limit or guarantee less");
	if (check_models(spec_queue, ret_fault, err) != ERR_OK)
		return ERR_INVALID;
	if (check_parents(tenant, spec_queue, find, arg, &parents) != ERR_OK)
		return refuse(ret_fault, "parent", err, parents.text);
	return ERR_OK;
}
