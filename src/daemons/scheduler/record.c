// SPDX-License-Identifier: Apache-2.0
// Pods of ours that wait, and their condition PodScheduled: written when the reasons change, at
// most PATCHES_MAX at a time, the newest message last. A change of numbers alone is written once
// in PATCH_NUMBERS_MS, then with what holds by then; what could not be written is written again
// after PATCH_AGAIN_MS. An Event comes once in EVENT_PERIOD_MS.
#include "base/timefmt.h"
#include "daemons/scheduler/scheduler.h"
#include "k8s/path.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATCH_NUMBERS_MS = 30000, PATCH_AGAIN_MS = 5000, LATER_MS = 1000 };
enum { EVENT_PERIOD_MS = 30000, MESSAGE_MAX_BYTES = 900 };
#define NS_PER_MS UINT64_C(1000000)
#define STRATEGIC_MERGE "application/strategic-merge-patch+json"

static char *text_copy(struct str text)
{
	char *copy = strndup(text.data == NULL ? "" : text.data, text.len);
	ASSERT(copy != NULL);
	return copy;
}

struct record *record_find(const struct scheduler *s, struct str uid)
{
	return map_find(s->records, uid);
}

struct record *record_get(struct scheduler *s, const struct kobj_pod *pod)
{
	struct record *record = map_find(s->records, pod->meta.uid);
	if (record != NULL || pod->meta.uid.len >= sizeof record->uid)
		return record;
	record = calloc(1, sizeof *record);
	ASSERT(record != NULL);
	memcpy(record->uid, pod->meta.uid.data, pod->meta.uid.len);
	record->namespace_ = text_copy(pod->meta.namespace_);
	record->name = text_copy(pod->meta.name);
	record->class_ = text_copy(pod->spec.priority_class_name);
	record->created_s = pod->meta.created_s;
	record->arrived_s = scheduler_wall_s(s);
	record->arrived_ms = scheduler_now_ms(s);
	for (size_t i = 0; i < pod->status.conditions.count; i++) {
		const struct kobj_condition *condition = &pod->status.conditions.items[i];
		if (str_eq_c(condition->type, "PodScheduled") &&
		    str_eq_c(condition->status, "False"))
			record->transition_s = condition->changed_s;
	}
	(void)map_set(s->records, pod->meta.uid, record);
	return record;
}

static void unqueue(struct scheduler *s, struct record *record)
{
	struct record **at = &s->queued;
	while (*at != NULL && *at != record)
		at = &(*at)->next_queued;
	if (*at == NULL)
		return;
	*at = record->next_queued;
	if (*at == NULL)
		s->queued_end = at;
}

static void free_record(struct record *record)
{
	free(record->namespace_);
	free(record->name);
	free(record->class_);
	free(record->message);
	free(record);
}

void record_drop(struct scheduler *s, struct str uid)
{
	struct record *record = map_remove(s->records, uid);
	if (record == NULL)
		return;
	if (record->is_queued)
		unqueue(s, record);
	free_record(record);
}

void record_drop_all(struct scheduler *s)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(s->records, &i, &uid, &value);) {
		(void)map_remove(s->records, uid);
		free_record(value);
	}
	s->queued = NULL;
	s->queued_end = &s->queued;
	loop_timer_stop(s->later);
	s->is_later = false;
}

void record_message(struct scheduler *s, const struct sched_decision *decision, struct buf *out)
{
	struct sched_counts counts = sched_counts_get(s->core);
	const struct sched_facts *facts = decision->facts;
	if (decision->verb == SCHED_REFUSE)
		buf_put_c(out, "refused:");
	else
		buf_printf(out, "0/%zu nodes fit:", counts.nodes);
	for (size_t i = 0; i < facts->count && out->len < MESSAGE_MAX_BYTES; i++) {
		struct sched_reason reason = sched_fact_text(
			s->core, decision->namespace_, decision->name, &facts->items[i], s->arena);
		buf_printf(out, "%s %s", i > 0 ? ";" : "", reason.code);
		if (reason.nodes > 0)
			buf_printf(out, " on %u", reason.nodes);
		if (reason.need.len > 0 && reason.have.len > 0)
			buf_printf(out, " (needs " STR_FMT ", at most " STR_FMT ")",
				   STR_ARG(reason.need), STR_ARG(reason.have));
		else if (reason.need.len > 0)
			buf_printf(out, " (" STR_FMT ")", STR_ARG(reason.need));
	}
}

static void pump(struct scheduler *s);

// Its message is to be written, now or when it is due.
static void enqueue(struct scheduler *s, struct record *record)
{
	if (record->is_queued || record->is_patching)
		return; // two patches of one pod under way may be made in either order
	if (record->due_ms > scheduler_now_ms(s)) {
		if (!s->is_later)
			loop_timer_set(s->later, LATER_MS * NS_PER_MS);
		s->is_later = true;
		return;
	}
	record->is_queued = true;
	*s->queued_end = record;
	s->queued_end = &record->next_queued;
}

void record_later(void *arg)
{
	struct scheduler *s = arg;
	struct str uid;
	void *value;
	s->is_later = false;
	for (size_t i = 0; map_next(s->records, &i, &uid, &value);) {
		if (((struct record *)value)->message != NULL)
			enqueue(s, value);
	}
	pump(s);
}

struct patch { // what a call needs after its record may have gone
	struct scheduler *s;
	char uid[64];
	char *message;
};

// What could not be written still holds, unless something newer is to be written.
static void write_again(struct scheduler *s, struct patch *patch)
{
	struct record *record = record_find(s, str_of(patch->uid));
	if (record == NULL || record->message != NULL)
		return;
	record->message = patch->message;
	patch->message = NULL;
	record->due_ms = scheduler_now_ms(s) + PATCH_AGAIN_MS;
}

static void on_patched(void *arg, const struct k8s_result *result)
{
	struct patch *patch = arg;
	struct scheduler *s = patch->s;
	struct record *record = record_find(s, str_of(patch->uid));
	ASSERT(s->patches_in_flight > 0);
	s->patches_in_flight--;
	bool is_gone = result->status == ERR_NOT_FOUND || result->status == ERR_CONFLICT;
	if (result->status != ERR_OK && !is_gone) {
		s->counters.patch_failures++;
		log_err(LOG_WARN, "a condition was not written", result->err);
		write_again(s, patch);
	}
	if (record != NULL) {
		record->is_patching = false;
		if (record->message != NULL) // newer than what was written, or not written
			enqueue(s, record);
	}
	free(patch->message);
	free(patch);
	pump(s);
}

static void put_body(const struct record *record, int64_t now_s, struct buf *out)
{
	char when[TIME_TEXT_BYTES];
	buf_printf(out, "{\"metadata\":{\"uid\":\"%s\"},\"status\":{\"conditions\":[", record->uid);
	buf_printf(out,
		   "{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		   "\"lastTransitionTime\":\"%s\",\"message\":",
		   time_format(record->transition_s != 0 ? record->transition_s : now_s, when));
	buf_put_json(out, str_of(record->message));
	buf_put_c(out, "}]}}");
}

static void start_patch(struct scheduler *s, struct record *record)
{
	AUTO(buf_done) struct buf body = { .limit = 64 * 1024 };
	AUTO(arena_freep) struct arena *arena = arena_new(64 * 1024);
	struct k8s_object_path path = { "v1", "pods", record->namespace_, record->name, "status" };
	struct patch *patch = calloc(1, sizeof *patch);
	ASSERT(arena != NULL && patch != NULL);
	patch->s = s;
	memcpy(patch->uid, record->uid, sizeof patch->uid);
	int64_t now_s = scheduler_wall_s(s);
	put_body(record, now_s, &body);
	if (record->transition_s == 0)
		record->transition_s = now_s;
	patch->message = record->message;
	record->message = NULL;
	struct k8s_request request = { .method = "PATCH",
				       .path = k8s_path(arena, &path),
				       .content_type = STRATEGIC_MERGE,
				       .body = buf_str(&body),
				       .on_done = on_patched,
				       .arg = patch };
	ASSERT(request.path.data != NULL && buf_ok(&body));
	record->is_patching = true;
	record->patched_ms = scheduler_now_ms(s);
	s->patches_in_flight++;
	s->counters.patches++;
	(void)k8s_call_start(s->client, &request);
}

static void pump(struct scheduler *s)
{
	while (s->queued != NULL && s->patches_in_flight < PATCHES_MAX) {
		struct record *record = s->queued;
		s->queued = record->next_queued;
		if (s->queued == NULL)
			s->queued_end = &s->queued;
		record->is_queued = false;
		record->next_queued = NULL;
		if (record->message != NULL)
			start_patch(s, record);
	}
}

static bool is_gated(const struct sched_facts *facts)
{
	return facts->count == 1 && facts->items[0].code == SCHED_CODE_SCHEDULING_GATED;
}

void record_tell(struct scheduler *s, const struct sched_decision *decision)
{
	struct record *record = record_find(s, decision->uid);
	if (record == NULL || is_gated(decision->facts)) // the API server says the latter itself
		return;
	int64_t now_ms = scheduler_now_ms(s);
	bool is_first = record->patched_ms == 0;
	int64_t due_ms = decision->is_same_codes && !is_first
				 ? record->patched_ms + PATCH_NUMBERS_MS
				 : now_ms;
	record->due_ms = record->message == NULL ? due_ms : min_i64(record->due_ms, due_ms);
	AUTO(buf_done) struct buf message = { .limit = 8 * 1024 };
	record_message(s, decision, &message);
	free(record->message);
	record->message = text_copy(buf_str(&message));
	// A person who reads Events wants to know that it waits and roughly why; the condition
	// follows.
	bool is_due = record->event_ms == 0 || now_ms - record->event_ms >= EVENT_PERIOD_MS;
	if (!decision->is_same_codes && is_due) {
		record->event_ms = now_ms;
		struct event_about about = { "v1", "Pod", record->namespace_, record->name,
					     record->uid };
		event_put(s->events, &about, "Warning", "FailedScheduling", "Scheduling",
			  record->message);
	}
	enqueue(s, record);
	pump(s);
}
