// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/evict.h"

#include "base/timefmt.h"
#include "k8s/path.h"
#include "sys/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// The client repeats a 429 with the pause that the API server asks for, as long as this lasts.
#define EVICT_TIMEOUT_NS UINT64_C(8000000000)
enum { NOTE_MAX_BYTES = 900 };
#define STRATEGIC_MERGE "application/strategic-merge-patch+json"

struct evict_set { // of one decision
	struct scheduler *scheduler;
	struct evict_set *next;
	struct arena *arena; // of all texts
	struct sched_victim *victims;
	size_t count, at;
	struct str uid, namespace_, name, node; // of the pod that room is made for
	struct k8s_call *call;
};

static void step(struct evict_set *set);

static void free_set(struct evict_set *set)
{
	struct evict_set **at = &set->scheduler->evict_sets;
	while (*at != set)
		at = &(*at)->next;
	*at = set->next;
	k8s_call_cancel(set->call);
	arena_free(set->arena);
	free(set);
}

void evict_cancel_all(struct scheduler *s)
{
	while (s->evict_sets != NULL)
		free_set(s->evict_sets);
}

static struct str path_of(struct arena *arena, const struct sched_victim *victim, const char *sub)
{
	struct k8s_object_path path = { "v1", "pods", arena_cstr(arena, victim->namespace_),
					arena_cstr(arena, victim->name), sub };
	struct str text = k8s_path(arena, &path);
	ASSERT(text.data != NULL);
	return text;
}

static void ignore(void *arg, const struct k8s_result *result)
{
	(void)arg;
	bool is_gone = result->status == ERR_NOT_FOUND || result->status == ERR_CONFLICT;
	if (result->status != ERR_OK && !is_gone)
		log_err(LOG_WARN, "a pod's status was not written", result->err);
}

static void patch_status(struct scheduler *s, struct str path, struct str body)
{
	struct k8s_request request = { .method = "PATCH",
				       .path = path,
				       .content_type = STRATEGIC_MERGE,
				       .body = body,
				       .on_done = ignore };
	(void)k8s_call_start(s->client, &request);
}

static void put_note(const struct evict_set *set, const struct sched_victim *victim, char *out)
{
	bool is_gang = set->node.len == 0;
	if (victim->home.len > 0)
		(void)snprintf(out, NOTE_MAX_BYTES,
			       "moved for defragmentation: makes room for %.250s/%.250s on %.100s, "
			       "and room is kept for it on %.100s; %lld s of work on %lld GPUs are "
			       "lost since its checkpoint",
			       set->namespace_.data, set->name.data, victim->node.data,
			       victim->home.data, (long long)victim->lost_ms / 1000,
			       (long long)victim->gpu_count);
	else if (is_gang)
		(void)snprintf(out, NOTE_MAX_BYTES,
			       "its gang was started in part and could not be completed; what it "
			       "held is given back");
	else
		(void)snprintf(out, NOTE_MAX_BYTES,
			       "makes room for %.250s/%.250s %s on %.100s; %lld s "
			       "of work on %lld GPUs are lost since its start or checkpoint",
			       set->namespace_.data, set->name.data,
			       victim->is_reclaimed ? "of a tenant below its own"
						    : "of higher priority",
			       victim->node.data, (long long)victim->lost_ms / 1000,
			       (long long)victim->gpu_count);
}

// Written after the eviction, whose own condition says less.
static void record_victim(struct evict_set *set, const struct sched_victim *victim)
{
	struct scheduler *s = set->scheduler;
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024);
	AUTO(buf_done) struct buf body = { .limit = 16 * 1024 };
	char note[NOTE_MAX_BYTES], when[TIME_TEXT_BYTES];
	ASSERT(arena != NULL);
	put_note(set, victim, note);
	buf_put_c(&body, "{\"metadata\":{\"uid\":");
	buf_put_json(&body, victim->uid);
	buf_printf(&body,
		   "},\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
		   "\"True\",\"reason\":\"" FEED_PREEMPTED_REASON
		   "\",\"lastTransitionTime\":\"%s\",\"message\":",
		   time_format(scheduler_wall_s(s), when));
	buf_put_json(&body, str_of(note));
	buf_put_c(&body, "}]}}");
	patch_status(s, path_of(arena, victim, "status"), buf_str(&body));
	struct event_about about = { "v1", "Pod", victim->namespace_.data, victim->name.data,
				     victim->uid.data };
	event_put(s->events, &about, "Warning", "Preempted", "Preempting", note);
	log_kv(LOG_INFO, "evicted", "pod", victim->name.data, "namespace", victim->namespace_.data,
	       "uid", victim->uid.data, "why", note, NULL);
}

static void fail_rest(struct evict_set *set)
{
	struct scheduler *s = set->scheduler;
	for (size_t i = set->at; i < set->count; i++)
		sched_evict_failed(s->core, set->victims[i].uid, scheduler_now_ms(s));
	free_set(set);
	scheduler_drive(s);
}

static enum evict_reason reason_of(const struct evict_set *set, const struct sched_victim *victim)
{
	if (set->node.len == 0)
		return EVICT_GANG;
	if (victim->home.len > 0)
		return EVICT_MOVE;
	return victim->is_reclaimed ? EVICT_RECLAIM : EVICT_PRIORITY;
}

static void on_evicted(void *arg, const struct k8s_result *result)
{
	struct evict_set *set = arg;
	struct counters *counters = &set->scheduler->counters;
	bool is_gone = result->status == ERR_NOT_FOUND || result->status == ERR_CONFLICT;
	set->call = NULL;
	if (result->status != ERR_OK && !is_gone) {
		counters->evictions_refused++;
		log_err(LOG_WARN, "an eviction was refused", result->err);
		fail_rest(set);
		return;
	}
	if (!is_gone) {
		const struct sched_victim *victim = &set->victims[set->at];
		counters->evictions[reason_of(set, victim)]++;
		record_victim(set, victim);
	}
	set->at++;
	step(set);
}

static void put_body(const struct scheduler *s, const struct sched_victim *victim, struct buf *out)
{
	buf_put_c(out,
		  "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":");
	buf_put_json(out, victim->name);
	buf_put_c(out, ",\"namespace\":");
	buf_put_json(out, victim->namespace_);
	buf_printf(out, ",\"annotations\":{\"" FEED_TERM_ANNOTATION "\":\"%" PRId64 "\"}", s->term);
	buf_put_c(out, "},\"deleteOptions\":{\"preconditions\":{\"uid\":");
	buf_put_json(out, victim->uid);
	buf_put_byte(out, '}');
	if (victim->grace_s > s->grace_max_s)
		buf_printf(out, ",\"gracePeriodSeconds\":%lld", (long long)s->grace_max_s);
	buf_put_c(out, "}}");
}

// What was decided may be for nothing by now: the pod has gone, found a place, or lost this one.
static bool is_wanted(const struct evict_set *set)
{
	struct sched_preempt_view view;
	if (set->node.len == 0) // given back by a gang
		return true;
	return sched_preempt_explain(set->scheduler->core, set->namespace_, set->name, &view) &&
	       str_eq(view.kept_node, set->node);
}

static void step(struct evict_set *set)
{
	struct scheduler *s = set->scheduler;
	if (set->at == set->count) {
		free_set(set);
		return;
	}
	if (!is_wanted(set)) {
		fail_rest(set);
		return;
	}
	const struct sched_victim *victim = &set->victims[set->at];
	AUTO(buf_done) struct buf body = { .limit = 16 * 1024 };
	put_body(s, victim, &body);
	ASSERT(buf_ok(&body));
	struct k8s_request request = { .method = "POST",
				       .path = path_of(set->arena, victim, "eviction"),
				       .body = buf_str(&body),
				       .timeout_ns = EVICT_TIMEOUT_NS,
				       .on_done = on_evicted,
				       .arg = set };
	set->call = k8s_call_start(s->client, &request);
}

static struct str copy(struct arena *arena, struct str text)
{
	char *data = arena_cstr(arena, text);
	ASSERT(data != NULL);
	return (struct str){ data, text.len };
}

static struct evict_set *new_set(struct scheduler *s, const struct sched_decision *decision)
{
	enum { ARENA_BYTES = 2 * 1024 * 1024 };
	struct evict_set *set = calloc(1, sizeof *set);
	ASSERT(set != NULL);
	set->scheduler = s;
	set->arena = arena_new(ARENA_BYTES);
	ASSERT(set->arena != NULL);
	set->uid = copy(set->arena, decision->uid);
	set->namespace_ = copy(set->arena, decision->namespace_);
	set->name = copy(set->arena, decision->name);
	set->node = copy(set->arena, decision->node);
	set->victims = ARENA_ARRAY(set->arena, struct sched_victim, decision->victim_count);
	ASSERT(set->victims != NULL);
	set->count = decision->victim_count;
	for (size_t i = 0; i < set->count; i++) {
		struct sched_victim *victim = &set->victims[i];
		*victim = decision->victims[i];
		victim->uid = copy(set->arena, victim->uid);
		victim->namespace_ = copy(set->arena, victim->namespace_);
		victim->name = copy(set->arena, victim->name);
		victim->node = copy(set->arena, victim->node);
		victim->home = copy(set->arena, victim->home);
	}
	set->next = s->evict_sets;
	s->evict_sets = set;
	return set;
}

// The node is kept, or (empty) no longer.
static void patch_nominated(struct scheduler *s, const struct sched_decision *decision)
{
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024);
	AUTO(buf_done) struct buf body = { .limit = 16 * 1024 };
	const struct sched_victim pod = { .namespace_ = decision->namespace_,
					  .name = decision->name };
	ASSERT(arena != NULL);
	buf_put_c(&body, "{\"metadata\":{\"uid\":");
	buf_put_json(&body, decision->uid);
	buf_put_c(&body, "},\"status\":{\"nominatedNodeName\":");
	if (decision->node.len == 0)
		buf_put_c(&body, "null");
	else
		buf_put_json(&body, decision->node);
	buf_put_c(&body, "}}");
	patch_status(s, path_of(arena, &pod, "status"), buf_str(&body));
}

static void tell_preemptor(const struct evict_set *set)
{
	char note[NOTE_MAX_BYTES];
	struct event_about about = { "v1", "Pod", set->namespace_.data, set->name.data,
				     set->uid.data };
	(void)snprintf(note, sizeof note,
		       "%.100s is kept for it; %zu pods leave, first %.250s/%.250s", set->node.data,
		       set->count, set->victims[0].namespace_.data, set->victims[0].name.data);
	event_put(set->scheduler->events, &about, "Normal", "Preempting", "Preempting", note);
}

void evict_start(struct scheduler *s, const struct sched_decision *decision)
{
	bool is_given_back = decision->victim_count > 0 && decision->node.len == 0; // by a gang
	if (!is_given_back)
		patch_nominated(s, decision);
	if (decision->victim_count == 0)
		return;
	struct evict_set *set = new_set(s, decision);
	if (!is_given_back)
		tell_preemptor(set);
	step(set);
}

void evict_put_metrics(const struct scheduler *s, struct buf *out)
{
	static const char *const REASONS[EVICT_REASONS] = { [EVICT_PRIORITY] = "priority",
							    [EVICT_RECLAIM] = "reclaim",
							    [EVICT_GANG] = "gang",
							    [EVICT_MOVE] = "move" };
	const struct counters *counters = &s->counters;
	metric_family(out, "gpuaas_scheduler_evictions_total", "counter",
		      "Pods asked to leave, by reason.");
	for (size_t i = 0; i < ARRAY_COUNT(REASONS); i++) {
		struct metric_label label = { "reason", str_of(REASONS[i]) };
		metric_int(out, "gpuaas_scheduler_evictions_total", &label, 1,
			   (int64_t)counters->evictions[i]);
	}
	metric_family(out, "gpuaas_scheduler_evictions_refused_total", "counter",
		      "Evictions that the API server refused, by a budget or otherwise.");
	metric_int(out, "gpuaas_scheduler_evictions_refused_total", NULL, 0,
		   (int64_t)counters->evictions_refused);
}

void evict_put_view(const struct scheduler *s, struct str namespace_, struct str name,
		    struct buf *out)
{
	struct sched_preempt_view view;
	char when[TIME_TEXT_BYTES];
	if (!sched_preempt_explain(s->core, namespace_, name, &view))
		return;
	if (view.kept_node.len + view.evicted_by.len == 0 && view.queued_s == 0)
		return;
	buf_put_c(out, ",\"preemption\":{");
	const char *comma = "";
	if (view.kept_node.len > 0) {
		buf_put_c(out, "\"node\":");
		buf_put_json(out, view.kept_node);
		buf_printf(out, ",\"leaving\":%zu", view.leaving_count);
		comma = ",";
	}
	if (view.evicted_by.len > 0) {
		buf_printf(out, "%s\"evictedBy\":", comma);
		buf_put_json(out, view.evicted_by);
		comma = ",";
	}
	if (view.home.len > 0) {
		buf_printf(out, "%s\"goesOnAt\":", comma);
		buf_put_json(out, view.home);
		comma = ",";
	}
	if (view.queued_s != 0)
		buf_printf(out, "%s\"queuedSince\":\"%s\"", comma,
			   time_format(view.queued_s, when));
	buf_put_byte(out, '}');
}

// ---- options

static bool read_limit(struct scheduler *s, struct str name, struct str value)
{
	struct sched_preempt_rules *rules = &s->preempt_rules;
	int64_t number = 0;
	if (str_eq_c(name, "per-minute"))
		return str_to_i64(value, &rules->evictions_per_minute) &&
		       rules->evictions_per_minute >= 0 && rules->evictions_per_minute <= INT32_MAX;
	if (str_eq_c(name, "moves"))
		return str_to_i64(value, &rules->move.count_max) && rules->move.count_max >= 0 &&
		       rules->move.count_max <= SCHED_MOVES_MAX;
	if (!time_parse_duration(value, &number) || number < 0 || number > INT32_MAX)
		return false;
	if (str_eq_c(name, "min-run"))
		rules->min_run_ms = 1000 * number;
	else if (str_eq_c(name, "delay"))
		rules->delay_ms = 1000 * number;
	else if (str_eq_c(name, "move-period"))
		rules->move.period_ms = 1000 * number;
	else if (str_eq_c(name, "move-min-run"))
		rules->move.min_run_ms = 1000 * number;
	else if (str_eq_c(name, "move-lost"))
		rules->move.lost_max_ms = 1000 * number;
	else if (str_eq_c(name, "grace-max"))
		s->grace_max_s = number;
	else
		return false;
	return true;
}

err_status evict_open(struct scheduler *s, struct err *err)
{
	struct str rest = str_of(s->options->preemption), part, name;
	s->grace_max_s = GRACE_DEFAULT_MAX_S;
	s->preempt_rules.move = (struct sched_move_rules)SCHED_MOVE_RULES;
	(void)str_split_next(&rest, ',', &part);
	if (!sched_preemption_parse(part, &s->preempt_rules.mode))
		return err_set(err, ERR_INVALID, "--preemption begins with off or priority");
	while (str_split_next(&rest, ',', &part)) {
		struct str value = part;
		(void)str_split_next(&value, '=', &name);
		if (!read_limit(s, name, value))
			return err_set(err, ERR_INVALID,
				       "--preemption: \"" STR_FMT
				       "\" is none of min-run, delay, grace-max, move-period, "
				       "move-min-run, move-lost=TIME, per-minute=N, moves=0..%d",
				       STR_ARG(part), SCHED_MOVES_MAX);
	}
	return ERR_OK;
}
