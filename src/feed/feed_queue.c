// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_queue.h"

#include "base/timefmt.h"
#include "sched/usage_share.h"

#include <stdio.h>

struct number {
	const char *field;
	int64_t least, most, absent;
	int64_t unit;
};

struct reader {
	struct arena *arena;
	const json_t *queue; // or the entry of a model
	const char *where;   // it is
	struct str fault;    // the first
};

static void set_fault(struct reader *reader, const char *text)
{
	if (reader->fault.len == 0 && text != NULL)
		reader->fault = str_of(text);
}

// A number that is none, or is out of its range, is a fault; the rest is read all the same.
static int64_t read_number(struct reader *reader, const struct number *number)
{
	const json_t *value = json_object_get(reader->queue, number->field);
	if (value == NULL || json_is_null(value))
		return number->absent;
	int64_t given = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
	if (given >= number->least && given <= number->most)
		return given * number->unit;
	set_fault(reader,
		  arena_printf(reader->arena, "%s.%s must be a whole number of %lld to %lld",
			       reader->where, number->field, (long long)number->least,
			       (long long)number->most));
	return number->absent;
}

static int64_t read_gpus(struct reader *reader, const char *field, int64_t absent)
{
	const struct number number = { field, 0, FEED_QUEUE_GPUS_MAX, absent, 1000 };
	return read_number(reader, &number);
}

// ---- GPU models

static bool is_named(const struct sched_queue_model *models, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++) {
		if (str_eq(models[i].model, name))
			return true;
	}
	return false;
}

static void read_model(struct reader *reader, const json_t *entry, struct sched_queue_in *queue,
		       struct sched_queue_model *models)
{
	struct reader of = { reader->arena, entry, "spec.queue.byModel", { NULL, 0 } };
	struct sched_queue_model model = {
		.model = json_text(entry, "model"),
		.guaranteed_milli = read_gpus(&of, "guaranteed", SCHED_BY_CHILDREN),
		.limit_milli = read_gpus(&of, "limit", SCHED_NO_LIMIT),
	};
	if (model.model.len == 0 || model.model.len > FEED_QUEUE_MODEL_MAX)
		set_fault(&of, "spec.queue.byModel.model must be the name of a GPU model");
	else if (is_named(models, queue->model_count, model.model))
		set_fault(&of, "spec.queue.byModel names a model twice; leave one out");
	else if (model.guaranteed_milli > model.limit_milli)
		set_fault(&of, "spec.queue.byModel: a model's guaranteed is above its limit; raise "
			       "the limit or guarantee less");
	if (of.fault.len > 0) {
		if (reader->fault.len == 0)
			reader->fault = of.fault;
		return;
	}
	models[queue->model_count++] = model;
}

static void read_models(struct reader *reader, struct sched_queue_in *queue)
{
	const json_t *list = json_object_get(reader->queue, "byModel");
	struct sched_queue_model *models =
		ARENA_ARRAY(reader->arena, struct sched_queue_model, SCHED_QUEUE_MODELS_MAX);
	int64_t sum_milli = 0;
	size_t i;
	json_t *entry;
	if (list == NULL || json_is_null(list))
		return;
	if (!json_is_array(list) || json_array_size(list) > SCHED_QUEUE_MODELS_MAX ||
	    models == NULL) {
		set_fault(reader, "spec.queue.byModel must be a list of at most 16 models");
		return;
	}
	json_array_foreach(list, i, entry) { read_model(reader, entry, queue, models); }
	queue->models = models;
	for (i = 0; i < queue->model_count; i++)
		sum_milli += max_i64(models[i].guaranteed_milli, 0);
	if (queue->guaranteed_milli != SCHED_BY_CHILDREN && sum_milli > queue->guaranteed_milli)
		set_fault(reader, "spec.queue.byModel guarantees more than spec.queue.guaranteed; "
				  "raise that or guarantee less");
	else if (sum_milli > queue->limit_milli)
		set_fault(reader, "spec.queue.byModel guarantees more than spec.queue.limit; raise "
				  "the limit or guarantee less");
}

static void check_both(struct reader *reader, const struct sched_queue_in *queue)
{
	bool is_above = queue->guaranteed_milli != SCHED_BY_CHILDREN &&
			queue->guaranteed_milli > queue->limit_milli;
	if (is_above)
		set_fault(reader, "spec.queue.guaranteed is above spec.queue.limit; raise the "
				  "limit or guarantee less");
}

// What the tenant had, as the scheduler wrote it down, less what is forgotten since.
static int64_t read_used(const json_t *tenant, int64_t now_s)
{
	const json_t *used = json_at(tenant, "status.usage");
	int64_t at_s, milli_s, half_life_s = json_int(used, "halfLifeSeconds", 0);
	if (!time_parse(json_text(used, "at"), &at_s, NULL) ||
	    !str_to_i64(json_text(used, "gpuMilliSeconds"), &milli_s) || milli_s < 0 ||
	    half_life_s < 0)
		return 0;
	return usage_share_decay(milli_s, half_life_s, max_i64(now_s - at_s, 0));
}

bool feed_queue(struct arena *arena, const json_t *tenant, int64_t now_s,
		struct sched_queue_in *ret_queue)
{
	static const struct number WEIGHT = { "weight", 0, SCHED_WEIGHT_MAX, 1, 1 };
	static const struct number CEILING = { "priorityCeiling", -2147483648, 2147483647,
					       INT64_MAX, 1 };
	static const struct number HALF_LIFE = { "halfLifeSeconds", 0, SHARE_HALF_LIFE_MAX_S, -1,
						 1 };
	static const struct number LONGEST = { "maxRunSeconds", 1, FEED_QUEUE_RUN_MAX_S, 0, 1 };
	struct reader reader = { .arena = arena,
				 .queue = json_at(tenant, "spec.queue"),
				 .where = "spec.queue" };
	if (reader.queue == NULL)
		return false;
	if (!json_is_object(reader.queue))
		set_fault(&reader, "spec.queue must be an object");
	struct sched_queue_in queue = { .name = json_text(tenant, "metadata.name"),
					.parent = json_text(reader.queue, "parent") };
	const json_t *parent = json_object_get(reader.queue, "parent");
	if (parent != NULL && !json_is_null(parent) && !json_is_string(parent))
		set_fault(&reader, "spec.queue.parent must be the name of a tenant");
	queue.guaranteed_milli = read_gpus(&reader, "guaranteed", SCHED_BY_CHILDREN);
	queue.limit_milli = read_gpus(&reader, "limit", SCHED_NO_LIMIT);
	queue.user_limit_milli = read_gpus(&reader, "userLimit", SCHED_NO_LIMIT);
	queue.weight = read_number(&reader, &WEIGHT);
	queue.priority_max = read_number(&reader, &CEILING);
	queue.half_life_s = read_number(&reader, &HALF_LIFE);
	queue.used_milli_s = read_used(tenant, now_s);
	queue.max_run_s = read_number(&reader, &LONGEST);
	check_both(&reader, &queue);
	read_models(&reader, &queue);
	queue.fault = reader.fault;
	*ret_queue = queue;
	return queue.name.len > 0;
}
