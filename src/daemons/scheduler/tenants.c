// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/tenants.h"

#include "base/timefmt.h"
#include "feed/feed_queue.h"
#include "feed/feed_window.h"
#include "k8s/path.h"
#include "sched/usage_share.h"
#include "sys/log.h"

#include <stdlib.h>

#define WRITE_FIRST_NS UINT64_C(5000000000)
#define WRITE_EVERY_NS UINT64_C(60000000000)
#define OTHERS STR("~others") // all namespaces without a queue
enum { ROWS_MAX = 16384, MS_PER_S = 1000, SECONDS_PER_HOUR = 3600, MILLI = 1000 };

struct written { // of one queue
	int64_t used_milli_s;
};

struct tenants {
	int64_t half_life_s;
	struct sched_factors factors;
	bool reclaims_deserved;
	struct loop_timer *timer;
	struct map *written; // name -> struct written
	struct sched_queue_row *rows;
	size_t row_count, next;
	struct scheduler *s;
	bool is_writing;
};

static err_status read_options(const struct options *options, struct tenants *tenants,
			       struct err *err)
{
	struct str half_life = str_of(options->half_life == NULL ? "7d" : options->half_life);
	struct str reclaim = str_of(options->reclaim == NULL ? "guaranteed" : options->reclaim);
	if (!time_parse_duration(half_life, &tenants->half_life_s) || tenants->half_life_s < 0 ||
	    tenants->half_life_s > SHARE_HALF_LIFE_MAX_S)
		return err_set(err, ERR_INVALID,
			       "--fair-share-half-life must be 0 to 366d, like 7d or 12h");
	if (!factors_parse(str_of(options->factors == NULL ? "" : options->factors),
			   &tenants->factors))
		return err_set(err, ERR_INVALID,
			       "--priority-weights must be a list like age=1000,size=-500 of "
			       "priority, age, size, fair-share, deadline (up to 1000000), "
			       "age-max and deadline-within (seconds)");
	tenants->reclaims_deserved = str_eq_c(reclaim, "deserved");
	if (!tenants->reclaims_deserved && !str_eq_c(reclaim, "guaranteed"))
		return err_set(err, ERR_INVALID, "--reclaim is guaranteed or deserved");
	return ERR_OK;
}

static void on_timer(void *arg);

err_status tenants_open(struct scheduler *s, struct err *err)
{
	struct tenants *tenants = calloc(1, sizeof *tenants);
	ASSERT(tenants != NULL);
	s->tenants = tenants;
	tenants->s = s;
	tenants->written = map_new(0);
	tenants->timer = loop_timer_new(s->loop, on_timer, tenants);
	return read_options(s->options, tenants, err);
}

static void forget_written(struct tenants *tenants)
{
	struct str name;
	void *value;
	for (size_t i = 0; map_next(tenants->written, &i, &name, &value);) {
		(void)map_remove(tenants->written, name);
		free(value);
	}
}

void tenants_close(struct scheduler *s)
{
	struct tenants *tenants = s->tenants;
	if (tenants == NULL)
		return;
	forget_written(tenants);
	map_free(tenants->written);
	loop_timer_free(tenants->timer);
	free(tenants->rows);
	free(tenants);
	s->tenants = NULL;
}

void tenants_begin(struct scheduler *s)
{
	struct sched_factors factors = s->tenants->factors;
	factors.clock_s = scheduler_wall_s(s) - scheduler_now_ms(s) / MS_PER_S;
	sched_half_life_set(s->core, s->tenants->half_life_s);
	sched_factors_set(s->core, &factors);
	sched_reclaim_set(s->core, s->tenants->reclaims_deserved);
	loop_timer_set(s->tenants->timer, WRITE_FIRST_NS);
}

void tenants_end(struct scheduler *s)
{
	loop_timer_stop(s->tenants->timer);
	forget_written(s->tenants);
	s->tenants->row_count = 0;
}

void tenants_take(struct scheduler *s, const json_t *tenant, bool is_gone)
{
	struct sched_queue_in in;
	struct str name = json_text(tenant, "metadata.name");
	if (!is_gone && feed_queue(s->arena, tenant, scheduler_wall_s(s), &in))
		sched_queue_set(s->core, &in);
	else
		sched_queue_remove(s->core, name);
	struct sched_window_in windows[FEED_WINDOWS_MAX];
	sched_windows_set(s->core, name, windows, is_gone ? 0 : feed_windows(tenant, windows));
}

// ---- what queues have had, into their Tenants

static size_t list_rows(struct scheduler *s, struct sched_queue_row **ret_rows)
{
	size_t max = min_size(sched_queue_count(s->core), ROWS_MAX);
	*ret_rows = calloc(max, sizeof **ret_rows);
	ASSERT(*ret_rows != NULL);
	return sched_queue_rows(s->core, *ret_rows, max);
}

static void write_next(struct tenants *tenants);

static void on_written(void *arg, const struct k8s_result *result)
{
	struct tenants *tenants = arg;
	tenants->is_writing = false;
	if (result->status != ERR_OK && result->status != ERR_NOT_FOUND)
		log_err(LOG_WARN, "a tenant's use was not written", result->err);
	write_next(tenants);
}

static void write_one(struct tenants *tenants, const struct sched_queue_row *row)
{
	struct scheduler *s = tenants->s;
	AUTO(arena_freep) struct arena *arena = arena_new(16 * 1024);
	AUTO(buf_done) struct buf body = { .limit = 4096 };
	char at[TIME_TEXT_BYTES];
	ASSERT(arena != NULL);
	struct k8s_object_path path = { "gpuaas.io/v1alpha1", "tenants", NULL,
					arena_cstr(arena, row->name), "status" };
	buf_printf(&body,
		   "{\"status\":{\"usage\":{\"gpuMilliSeconds\":\"%lld\",\"halfLifeSeconds\":%lld,"
		   "\"at\":\"%s\"}}}",
		   (long long)row->used_milli_s, (long long)row->half_life_s,
		   time_format(scheduler_wall_s(s), at));
	struct k8s_request request = { .method = "PATCH",
				       .path = k8s_path(arena, &path),
				       .content_type = "application/merge-patch+json",
				       .body = buf_str(&body),
				       .on_done = on_written,
				       .arg = tenants };
	ASSERT(buf_ok(&body));
	if (request.path.data == NULL) // no name that the API could have given us
		return;
	tenants->is_writing = true;
	(void)k8s_call_start(s->client, &request);
}

// Whether it is not what was written last: an hour without use writes nothing.
static bool is_news(struct tenants *tenants, const struct sched_queue_row *row)
{
	struct written *written = map_find(tenants->written, row->name);
	if (written == NULL) {
		written = calloc(1, sizeof *written);
		ASSERT(written != NULL);
		(void)map_set(tenants->written, row->name, written);
	}
	bool is_news = row->used_milli_s > written->used_milli_s ||
		       row->used_milli_s < written->used_milli_s / 2;
	if (is_news)
		written->used_milli_s = row->used_milli_s;
	return is_news;
}

// Rows borrow names from the core, which may have lost some since: they are listed anew.
static void write_next(struct tenants *tenants)
{
	struct scheduler *s = tenants->s;
	while (s->core != NULL && !tenants->is_writing && tenants->next < tenants->row_count) {
		free(tenants->rows);
		tenants->row_count = list_rows(s, &tenants->rows);
		if (tenants->next >= tenants->row_count)
			return;
		const struct sched_queue_row *row = &tenants->rows[tenants->next++];
		if (row->name.len > 0 && is_news(tenants, row))
			write_one(tenants, row);
	}
}

static void on_timer(void *arg)
{
	struct tenants *tenants = arg;
	struct scheduler *s = tenants->s;
	loop_timer_set(tenants->timer, WRITE_EVERY_NS);
	if (s->core == NULL || tenants->is_writing || !cache_is_synced(s) ||
	    !lease_is_held(s->lease))
		return;
	tenants->next = 0;
	tenants->row_count = sched_queue_count(s->core);
	write_next(tenants);
}

// ---- out

static struct str shown_name(const struct sched_queue_row *row)
{
	return row->name.len == 0 ? OTHERS : row->name;
}

struct gauge {
	const char *name, *help;
	size_t offset;
	double unit;
};

static void put_gauge(const struct gauge *gauge, const struct sched_queue_row *rows, size_t count,
		      struct buf *out)
{
	metric_family(out, gauge->name, "gauge", gauge->help);
	for (size_t i = 0; i < count; i++) {
		struct metric_label label = { "tenant", shown_name(&rows[i]) };
		int64_t value;
		memcpy(&value, (const char *)&rows[i] + gauge->offset, sizeof value);
		if (value != SCHED_NO_LIMIT)
			metric_float(out, gauge->name, &label, 1, (double)value / gauge->unit);
	}
}

static void put_window(const struct sched_window_row *row, struct buf *out)
{
	const struct {
		const char *state;
		int64_t count;
	} PARTS[] = {
		{ "asked", row->in.gpu_count },
		{ "held", row->held_count },
		{ "used", row->used_count },
		{ "taken", row->taken_count },
	};
	for (size_t i = 0; i < ARRAY_COUNT(PARTS); i++) {
		const struct metric_label labels[3] = { { "tenant", row->tenant },
							{ "window", row->in.name },
							{ "state", str_of(PARTS[i].state) } };
		metric_int(out, "gpuaas_scheduler_window_gpus", labels, ARRAY_COUNT(labels),
			   PARTS[i].count);
	}
}

static void put_windows(struct scheduler *s, struct buf *out)
{
	struct sched_window_row *rows = calloc(SCHED_WINDOWS_MAX, sizeof *rows);
	ASSERT(rows != NULL);
	bool is_known = s->core != NULL && cache_is_synced(s);
	size_t count = is_known ? sched_window_rows(s->core, rows, SCHED_WINDOWS_MAX) : 0;
	metric_family(out, "gpuaas_scheduler_window_gpus", "gauge",
		      "GPUs of windows that are not over: asked for, held on nodes, and of these "
		      "used by the tenant and taken by others.");
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].is_over)
			put_window(&rows[i], out);
	}
	free(rows);
}

void tenants_put_metrics(struct scheduler *s, struct buf *out)
{
#define ROW(name, help, member, unit)                                                              \
	{                                                                                          \
		"gpuaas_scheduler_queue_" name, help, offsetof(struct sched_queue_row, member),    \
			unit                                                                       \
	}
	static const struct gauge GAUGES[] = {
		ROW("guaranteed_gpus", "GPUs guaranteed to a tenant's queue.", guaranteed_milli,
		    MILLI),
		ROW("limit_gpus", "GPUs that a queue may hold at most.", limit_milli, MILLI),
		ROW("allocated_gpus", "GPUs that a queue and those below it hold.", allocated_milli,
		    MILLI),
		ROW("deserved_gpus", "GPUs that a queue should have now.", deserved_milli, MILLI),
		ROW("borrowed_gpus", "GPUs that a queue holds beyond its guarantee.",
		    borrowed_milli, MILLI),
		ROW("waiting_gpus", "GPUs that a queue's waiting pods ask for.", waiting_milli,
		    MILLI),
		ROW("used_gpu_seconds", "Remembered use of a queue, half forgotten each half-life.",
		    used_milli_s, MILLI),
		ROW("share_ratio", "Use of a queue among its siblings over its part of them.",
		    share_permille, MILLI),
	};
#undef ROW
	struct sched_queue_row *rows = NULL;
	size_t count = s->core == NULL || !cache_is_synced(s) ? 0 : list_rows(s, &rows);
	for (size_t i = 0; i < ARRAY_COUNT(GAUGES); i++)
		put_gauge(&GAUGES[i], rows, count, out);
	free(rows);
	put_windows(s, out);
}

static void put_gpus(struct buf *out, const char *name, int64_t milli)
{
	buf_printf(out, ",\"%s\":", name);
	if (milli == SCHED_NO_LIMIT)
		buf_put_c(out, "null");
	else if (milli % MILLI == 0)
		buf_printf(out, "%lld", (long long)(milli / MILLI));
	else
		buf_printf(out, "%lld.%03lld", (long long)(milli / MILLI),
			   (long long)(milli % MILLI));
}

// A model that no node has is most likely a slip of the pen.
static struct str put_models(struct scheduler *s, struct buf *out, struct str tenant)
{
	struct sched_queue_model_row rows[SCHED_QUEUE_MODELS_MAX];
	struct str unknown = { NULL, 0 };
	size_t count = sched_queue_model_rows(s->core, tenant, rows, ARRAY_COUNT(rows));
	buf_put_c(out, ",\"by_model\":[");
	for (size_t i = 0; i < count; i++) {
		buf_put_c(out, i > 0 ? ",{\"model\":" : "{\"model\":");
		buf_put_json(out, rows[i].model);
		put_gpus(out, "guaranteed", rows[i].guaranteed_milli);
		put_gpus(out, "limit", rows[i].limit_milli);
		put_gpus(out, "allocated", rows[i].allocated_milli);
		put_gpus(out, "offered", rows[i].offered_milli);
		buf_put_byte(out, '}');
		if (rows[i].offered_milli == 0)
			unknown = rows[i].model;
	}
	buf_put_byte(out, ']');
	return unknown;
}

static void put_problem(struct buf *out, struct str fault, struct str unknown)
{
	AUTO(buf_done) struct buf text = { .limit = 256 };
	if (fault.len == 0 && unknown.len > 0)
		buf_printf(&text, "spec.queue.byModel: no node has GPUs " STR_FMT,
			   STR_ARG(unknown));
	buf_put_c(out, ",\"problem\":");
	buf_put_json(out, fault.len > 0 ? fault : buf_str(&text));
}

static void put_row(struct scheduler *s, struct buf *out, const struct sched_queue_row *row)
{
	buf_put_c(out, "{\"tenant\":");
	buf_put_json(out, shown_name(row));
	buf_put_c(out, ",\"parent\":");
	buf_put_json(out, row->parent);
	buf_printf(out, ",\"depth\":%zu,\"weight\":%lld", row->depth, (long long)row->weight);
	put_gpus(out, "guaranteed", row->guaranteed_milli);
	put_gpus(out, "limit", row->limit_milli);
	put_gpus(out, "allocated", row->allocated_milli);
	put_gpus(out, "deserved", row->deserved_milli);
	put_gpus(out, "borrowed", row->borrowed_milli);
	put_gpus(out, "waiting", row->waiting_milli);
	put_gpus(out, "used_gpu_hours", row->used_milli_s / SECONDS_PER_HOUR);
	put_gpus(out, "share", row->share_permille);
	buf_printf(out, ",\"waiting_pods\":%zu,\"half_life_s\":%lld", row->waiting_pods,
		   (long long)row->half_life_s);
	put_problem(out, row->fault, put_models(s, out, row->name));
	buf_put_byte(out, '}');
}

void tenants_put_table(struct scheduler *s, struct buf *out)
{
	struct sched_queue_row *rows;
	size_t count = list_rows(s, &rows);
	buf_put_c(out, "{\"items\":[");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_byte(out, ',');
		put_row(s, out, &rows[i]);
	}
	buf_put_c(out, "]}\n");
	free(rows);
}

void tenants_put_place(struct scheduler *s, struct str namespace_, struct str name, struct buf *out)
{
	struct sched_queue_view view;
	if (!sched_queue_explain(s->core, namespace_, name, &view))
		return;
	buf_put_c(out, ",\"queue\":{\"tenant\":");
	buf_put_json(out, view.queue.len == 0 ? OTHERS : view.queue);
	buf_printf(out, ",\"below_guarantee\":%s,\"priority\":%lld",
		   view.is_within ? "true" : "false", (long long)view.priority);
	if (view.user.len > 0) {
		buf_put_c(out, ",\"user\":");
		buf_put_json(out, view.user);
	}
	if (view.has_factors) {
		buf_printf(out, ",\"score\":%lld,\"factors\":[", (long long)view.score);
		for (int i = 0; i < SCHED_FACTORS; i++)
			buf_printf(out, "%s{\"name\":\"%s\",\"weight\":%lld,\"value\":0.%06lld}",
				   i > 0 ? "," : "", sched_factor_name((sched_factor)i),
				   (long long)view.weights[i],
				   (long long)min_i64(view.values[i], FACTOR_ONE - 1));
		buf_put_byte(out, ']');
	}
	buf_put_byte(out, '}');
}
