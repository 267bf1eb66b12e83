// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/dryrun.h"

#include "k8s/path.h"
#include "sched/dryrun.h"

#include <stdlib.h>

enum { ANSWER_MAX_BYTES = 256 * 1024, ARENA_MAX_BYTES = 8 * 1024 * 1024 };
#define CLASS_TIMEOUT_NS UINT64_C(2000000000)

struct question {
	struct scheduler *s;
	struct http_exchange *exchange;
	struct arena *arena;
	json_t *pod;
};

static void end(struct question *question)
{
	json_decref(question->pod);
	arena_free(question->arena);
	free(question);
}

static void refuse(struct question *question, int status, const char *text)
{
	AUTO(buf_done) struct buf out = { .limit = ANSWER_MAX_BYTES };
	buf_put_c(&out, "{\"error\":");
	buf_put_json(&out, str_of(text));
	buf_put_c(&out, "}\n");
	http_respond(question->exchange, status, "application/json", NULL, buf_str(&out));
	end(question);
}

static const char *state_name(sched_state state)
{
	if (state == SCHED_STATE_ASSUMED)
		return "fits";
	return state == SCHED_STATE_REFUSED ? "refused" : "waits";
}

static void put_answer(const struct sched_dry_answer *answer, struct buf *out)
{
	buf_printf(out, "{\"state\":\"%s\"", state_name(answer->state));
	if (answer->position > 0)
		buf_printf(out, ",\"position\":%zu", answer->position);
	if (answer->node.len > 0) {
		buf_put_c(out, ",\"node\":");
		buf_put_json(out, answer->node);
	}
	buf_put_c(out, ",\"reasons\":[");
	for (size_t i = 0; i < answer->reason_count; i++) {
		if (i > 0)
			buf_put_byte(out, ',');
		sched_reason_put(&answer->reasons[i], out);
	}
	buf_put_c(out, "]}\n");
}

static void answer(struct question *question)
{
	struct scheduler *s = question->s;
	AUTO(buf_done) struct buf out = { .limit = ANSWER_MAX_BYTES };
	struct kobj_pod pod;
	struct kobj_unknowns unknowns;
	struct sched_pod_in in;
	struct sched_dry_answer answer;
	struct err err;
	if (s->core == NULL || !cache_is_synced(s)) {
		refuse(question, 503, "this replica does not lead yet; ask again");
		return;
	}
	if (kobj_from_json(question->arena, &KOBJ_POD, question->pod, &unknowns, &pod, &err) !=
	    ERR_OK) {
		refuse(question, 400, err.text);
		return;
	}
	if (pod.meta.created_s == 0)
		pod.meta.created_s = scheduler_wall_s(s);
	if (pod.spec.scheduler_name.len == 0)
		pod.spec.scheduler_name = str_of(s->options->scheduler_name);
	if (!feed_pod(question->arena, &pod, &unknowns, str_of(s->options->scheduler_name), &in)) {
		refuse(question, 400, "the pod is too large");
		return;
	}
	if (in.gang != NULL) {
		refuse(question, 422,
		       "it starts with others of its gang, which are not asked about");
		return;
	}
	sched_dry_run(s->core, &in, scheduler_now_ms(s), question->arena, &answer);
	put_answer(&answer, &out);
	http_respond(question->exchange, buf_ok(&out) ? 200 : 500, "application/json", NULL,
		     buf_str(&out));
	end(question);
}

static void on_class(void *arg, const struct k8s_result *result)
{
	struct question *question = arg;
	AUTO(json_decrefp) json_t *class_ = NULL;
	json_t *spec = json_object_get(question->pod, "spec");
	if (result->status != ERR_OK || json_parse(result->body, &class_, NULL) != ERR_OK) {
		refuse(question, result->status == ERR_NOT_FOUND ? 400 : 503,
		       "its priority class is not known");
		return;
	}
	(void)json_object_set_new(spec, "priority", json_integer(json_int(class_, "value", 0)));
	answer(question);
}

static void ask_class(struct question *question, struct str name)
{
	struct k8s_object_path path = { "scheduling.k8s.io/v1", "priorityclasses", NULL,
					arena_cstr(question->arena, name), NULL };
	struct k8s_request request = { .method = "GET",
				       .path = k8s_path(question->arena, &path),
				       .timeout_ns = CLASS_TIMEOUT_NS,
				       .on_done = on_class,
				       .arg = question };
	if (request.path.data == NULL)
		refuse(question, 400, "spec.priorityClassName is no name");
	else
		(void)k8s_call_start(question->s->client, &request);
}

void dryrun_begin(struct scheduler *s, struct http_exchange *exchange,
		  const struct http_request *request)
{
	struct question *question = calloc(1, sizeof *question);
	struct err err;
	ASSERT(question != NULL);
	question->s = s;
	question->exchange = exchange;
	question->arena = arena_new(ARENA_MAX_BYTES);
	ASSERT(question->arena != NULL);
	if (json_parse(request->body, &question->pod, &err) != ERR_OK) {
		refuse(question, 400, err.text);
		return;
	}
	const json_t *spec = json_object_get(question->pod, "spec");
	struct str class_ = json_text(spec, "priorityClassName");
	if (class_.len > 0 && json_object_get(spec, "priority") == NULL)
		ask_class(question, class_);
	else
		answer(question);
}
