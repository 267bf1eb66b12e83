// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/lengths.h"

#include "base/timefmt.h"
#include "feed/feed.h"
#include "k8s/path.h"
#include "sched/durations.h"
#include "sched/forecast.h"
#include "sys/log.h"

#include <stdlib.h>

// Pods that are neither waiting nor running.
static const char OVER_PATH[] = "/api/v1/pods?limit=500&fieldSelector=status.phase%21%3DPending%2C"
				"status.phase%21%3DRunning%2Cstatus.phase%21%3DUnknown";
#define AGAIN_NS UINT64_C(5000000000)
enum { SAMPLES_MAX = 20000, MS_PER_S = 1000, PAGE_ARENA_BYTES = 64 * 1024 * 1024 };

struct sample {
	int64_t ended_s, seconds;
	struct learn_kind kind;
};
struct cut { // one pod whose longest time is being written
	struct lengths *lengths;
	struct cut *next;
	struct k8s_call *call;
	struct loop_timer *timer;
	char *path;
	int64_t longest_s;
};
struct lengths {
	struct scheduler *s;
	struct k8s_call *listing;
	struct sample *samples;
	size_t count, cap;
	struct map *cuts; // uid -> struct cut
};

err_status lengths_open(const struct scheduler *s, struct err *err)
{
	struct str durations = str_of(s->options->durations);
	if (!str_eq_c(durations, "learned") && !str_eq_c(durations, "said"))
		return err_set(err, ERR_INVALID, "--durations is learned or said");
	return ERR_OK;
}

// ---- what has ended before

// When its containers had all ended; 0: it does not say.
static int64_t ended_s_of(const struct kobj_pod *pod)
{
	for (size_t i = 0; i < pod->status.conditions.count; i++) {
		const struct kobj_condition *condition = &pod->status.conditions.items[i];
		if (str_eq_c(condition->type, "Ready") && str_eq_c(condition->status, "False"))
			return condition->changed_s;
	}
	return 0;
}

static void keep_sample(struct lengths *lengths, const struct sample *sample)
{
	if (lengths->count == SAMPLES_MAX)
		return;
	if (lengths->count == lengths->cap) {
		size_t cap = max_size(256, 2 * lengths->cap);
		struct sample *grown = realloc(lengths->samples, cap * sizeof *grown);
		ASSERT(grown != NULL);
		lengths->samples = grown;
		lengths->cap = cap;
	}
	lengths->samples[lengths->count++] = *sample;
}

static void take_pod(struct lengths *lengths, struct arena *arena, const json_t *item)
{
	struct kobj_pod pod;
	struct kobj_unknowns unknowns;
	struct sched_pod_in in;
	struct err err;
	struct str name = str_of(lengths->s->options->scheduler_name);
	if (kobj_from_json(arena, &KOBJ_POD, item, &unknowns, &pod, &err) != ERR_OK ||
	    !feed_pod(arena, &pod, &unknowns, name, &in))
		return; // nothing depends on it
	struct sample sample = { .ended_s = ended_s_of(&pod), .kind = sched_duration_kind(&in) };
	int64_t bound_s = feed_bound_s(&pod);
	sample.seconds = sample.ended_s - bound_s;
	if (in.is_ours && !in.stay.is_evicted && bound_s > 0 && sample.seconds >= 0)
		keep_sample(lengths, &sample);
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	return x->ended_s < y->ended_s ? -1 : x->ended_s > y->ended_s;
}

static void learn_all(struct lengths *lengths)
{
	if (lengths->count > 0)
		qsort(lengths->samples, lengths->count, sizeof *lengths->samples, compare_samples);
	for (size_t i = 0; i < lengths->count; i++)
		sched_duration_add(lengths->s->core, &lengths->samples[i].kind,
				   lengths->samples[i].seconds);
	free(lengths->samples);
	lengths->samples = NULL;
	lengths->count = lengths->cap = 0;
}

static void list_page(struct lengths *lengths, struct str path);

static void on_page(void *arg, const struct k8s_result *result)
{
	struct lengths *lengths = arg;
	AUTO(json_decrefp) json_t *page = NULL;
	AUTO(arena_freep) struct arena *arena = arena_new(PAGE_ARENA_BYTES);
	struct err err;
	size_t i;
	json_t *item;
	lengths->listing = NULL;
	ASSERT(arena != NULL);
	if (result->status != ERR_OK || json_parse(result->body, &page, &err) != ERR_OK) {
		log_kv(LOG_WARN, "how long earlier pods ran is not known", NULL);
		learn_all(lengths);
		return;
	}
	json_array_foreach(json_object_get(page, "items"), i, item) take_pod(lengths, arena, item);
	struct str next = json_text(page, "metadata.continue");
	if (next.len == 0 || lengths->count == SAMPLES_MAX) {
		learn_all(lengths);
		return;
	}
	struct str escaped = http_escape(arena, next);
	list_page(lengths,
		  str_of(arena_printf(arena, "%s&continue=" STR_FMT, OVER_PATH, STR_ARG(escaped))));
}

static void list_page(struct lengths *lengths, struct str path)
{
	struct k8s_request request = {
		.method = "GET", .path = path, .on_done = on_page, .arg = lengths
	};
	lengths->listing = k8s_call_start(lengths->s->client, &request);
}

// ---- the longest time of tenants

static void write_cut(struct cut *cut);

static void on_again(void *arg) { write_cut(arg); }

static void drop_cut(struct cut *cut)
{
	k8s_call_cancel(cut->call);
	loop_timer_free(cut->timer);
	free(cut->path);
	free(cut);
}

static void on_cut(void *arg, const struct k8s_result *result)
{
	struct cut *cut = arg;
	cut->call = NULL;
	bool is_over = result->status == ERR_OK || result->status == ERR_NOT_FOUND ||
		       result->status == ERR_INVALID; // it has a shorter one by now
	if (is_over)
		return;
	log_err(LOG_WARN, "a pod's longest time was not written", result->err);
	loop_timer_set(cut->timer, AGAIN_NS);
}

static void write_cut(struct cut *cut)
{
	AUTO(buf_done) struct buf body = { .limit = 256 };
	buf_printf(&body, "{\"spec\":{\"activeDeadlineSeconds\":%lld}}", (long long)cut->longest_s);
	struct k8s_request request = { .method = "PATCH",
				       .path = str_of(cut->path),
				       .content_type = K8S_MERGE_PATCH,
				       .body = buf_str(&body),
				       .on_done = on_cut,
				       .arg = cut };
	cut->call = k8s_call_start(cut->lengths->s->client, &request);
}

static void forget_cut(struct lengths *lengths, struct str uid)
{
	struct cut *cut = map_remove(lengths->cuts, uid);
	if (cut != NULL)
		drop_cut(cut);
}

void lengths_check(struct scheduler *s, const struct kobj_pod *pod)
{
	struct lengths *lengths = s->lengths;
	int64_t longest_s = sched_queue_longest_s(s->core, pod->meta.namespace_);
	struct cut *cut = map_find(lengths->cuts, pod->meta.uid);
	bool is_short = longest_s == 0 ||
			(pod->spec.max_run_s > 0 && pod->spec.max_run_s <= longest_s);
	if (is_short || feed_pod_is_finished(pod) || pod->meta.deleted_s != 0) {
		forget_cut(lengths, pod->meta.uid);
		return;
	}
	if (cut != NULL && cut->longest_s == longest_s)
		return; // it is being written
	forget_cut(lengths, pod->meta.uid);
	AUTO(arena_freep) struct arena *arena = arena_new(16 * 1024);
	ASSERT(arena != NULL);
	struct k8s_object_path path = { "v1", "pods", arena_cstr(arena, pod->meta.namespace_),
					arena_cstr(arena, pod->meta.name), NULL };
	struct str text = k8s_path(arena, &path);
	if (text.data == NULL)
		return;
	cut = calloc(1, sizeof *cut);
	ASSERT(cut != NULL);
	*cut = (struct cut){ .lengths = lengths,
			     .path = strndup(text.data, text.len),
			     .longest_s = longest_s };
	ASSERT(cut->path != NULL);
	cut->timer = loop_timer_new(s->loop, on_again, cut);
	(void)map_set(lengths->cuts, pod->meta.uid, cut);
	write_cut(cut);
}

void lengths_gone(struct scheduler *s, struct str uid) { forget_cut(s->lengths, uid); }

// ---- terms

void lengths_begin(struct scheduler *s)
{
	struct lengths *lengths = calloc(1, sizeof *lengths);
	ASSERT(lengths != NULL && s->lengths == NULL);
	s->lengths = lengths;
	lengths->s = s;
	lengths->cuts = map_new(0);
	if (!str_eq_c(str_of(s->options->durations), "learned"))
		return;
	sched_durations_learn(s->core);
	list_page(lengths, str_of(OVER_PATH));
}

void lengths_end(struct scheduler *s)
{
	struct lengths *lengths = s->lengths;
	struct str uid;
	void *cut;
	k8s_call_cancel(lengths->listing);
	for (size_t i = 0; map_next(lengths->cuts, &i, &uid, &cut);)
		drop_cut(cut);
	map_free(lengths->cuts);
	free(lengths->samples);
	free(lengths);
	s->lengths = NULL;
}

// ---- out

void lengths_put_view(struct scheduler *s, struct str namespace_, struct str name, struct buf *out)
{
	struct sched_duration duration;
	struct sched_estimate estimate;
	char from[TIME_TEXT_BYTES], to[TIME_TEXT_BYTES];
	if (sched_duration_explain(s->core, namespace_, name, &duration) && duration.seconds > 0)
		buf_printf(out, ",\"duration\":{\"seconds\":%lld,\"source\":\"%s\"}",
			   (long long)duration.seconds,
			   sched_duration_source_name(duration.source));
	if (!sched_estimate_get(s->core, namespace_, name, &estimate)) {
		buf_put_c(out, ",\"estimate\":null");
		return;
	}
	int64_t base_s = scheduler_wall_s(s), now_ms = scheduler_now_ms(s);
	buf_printf(out, ",\"estimate\":{\"from\":\"%s\",\"to\":\"%s\"}",
		   time_format(base_s + max_i64(estimate.from_ms - now_ms, 0) / MS_PER_S, from),
		   time_format(base_s + max_i64(estimate.to_ms - now_ms, 0) / MS_PER_S, to));
}

void lengths_put_metrics(const struct scheduler *s, struct buf *out)
{
	static const char INSIDE[] = "gpuaas_scheduler_start_estimate_inside_ratio";
	static const char JUDGED[] = "gpuaas_scheduler_start_estimates_total";
	metric_family(out, INSIDE, "gauge",
		      "Of the last starts, how many were in the range guessed before.");
	for (int i = 0; s->core != NULL && i < FORECAST_SIZES; i++) {
		struct forecast_row row = sched_forecast_row(s->core, (forecast_size)i);
		struct metric_label label = { "size",
					      str_of(forecast_size_name((forecast_size)i)) };
		metric_float(out, INSIDE, &label, 1, (double)row.inside_permille / 1000);
	}
	metric_family(out, JUDGED, "counter", "Starts that a range was guessed for before.");
	for (int i = 0; s->core != NULL && i < FORECAST_SIZES; i++) {
		struct forecast_row row = sched_forecast_row(s->core, (forecast_size)i);
		struct metric_label label = { "size",
					      str_of(forecast_size_name((forecast_size)i)) };
		metric_int(out, JUDGED, &label, 1, row.judged);
	}
}
