// SPDX-License-Identifier: Apache-2.0
// What is read from the cluster: nodes, and the output of a request's container.
#include "api/handlers.h"
#include "api/request_steps.h"

#include <stdlib.h>

enum { LOG_MAX_BYTES = 16 * 1024 * 1024, LOG_TAIL_MAX = 100000 };

static int by_name(const void *left, const void *right)
{
	const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	return str_cmp(json_text(a, "metadata.name"), json_text(b, "metadata.name"));
}

void handle_node_list(struct call *call)
{
	struct rest_page page;
	struct objects *objects = call->api->objects;
	size_t count = 0, max = objects_count(objects, OBJECT_NODE);
	json_t **found = ARENA_ARRAY(call->arena, json_t *, max + 1), *node;
	if (!rest_page(call, &page))
		return;
	ASSERT(found != NULL);
	for (size_t i = 0; objects_next(objects, OBJECT_NODE, &i, &node);) {
		if (str_cmp(json_text(node, "metadata.name"), page.after) > 0)
			found[count++] = node;
	}
	qsort(found, count, sizeof found[0], by_name);
	size_t shown = min_size(count, page.limit);
	int64_t *held = ARENA_ARRAY(call->arena, int64_t, shown + 1);
	ASSERT(held != NULL);
	view_held_gpus(objects, found, shown, held);
	json_t *items = json_array();
	for (size_t i = 0; i < shown; i++) {
		json_t *item = view_node(found[i], held[i]);
		if (call->principal.role == AUTHZ_PLATFORM_ADMIN)
			view_node_details(item, found[i],
					  objects_find(objects, OBJECT_HOST, STR(""),
						       json_text(found[i], "metadata.name")));
		(void)json_array_append_new(items, item);
	}
	bool has_more = count > page.limit;
	rest_answer_list(call, items,
			 has_more ? json_text(found[page.limit - 1], "metadata.name") : STR(""));
}

static void on_log(void *arg, const struct k8s_result *result)
{
	struct call *call = arg;
	if (result->status == ERR_OK) {
		struct str text = arena_dup(call->arena, result->body);
		rest_answer_text(call, "text/plain; charset=utf-8",
				 text.data == NULL ? STR("") : text);
	} else if (result->status == ERR_INVALID) {
		rest_problem(call, 409, "not_started", "%s", result->err->text);
	} else if (result->status == ERR_NOT_FOUND) {
		rest_problem(call, 404, "not_found", "its pod is gone, and the output with it");
	} else {
		rest_fail(call, result->err);
	}
}

void handle_request_logs(struct call *call)
{
	int64_t tail = 0;
	if (!rest_query_int(call, "tail", LOG_TAIL_MAX, LOG_TAIL_MAX, &tail))
		return;
	json_t *found = request_need(call);
	if (found == NULL)
		return;
	json_t *pod = view_request_pod(call->api->objects, found);
	bool is_over = view_phase_is_end(view_request_phase(found));
	if (pod == NULL && is_over) {
		rest_problem(call, 404, "not_found", "its pod is gone, and the output with it");
		return;
	}
	if (pod == NULL || call->api->k8s == NULL) {
		rest_problem(call, 409, "not_started",
			     "it has no pod yet, so there is no output; ask for explain");
		return;
	}
	bool is_previous = str_eq_c(rest_query(call, "previous"), "true");
	struct k8s_request request = {
		.method = "GET",
		.path = str_of(arena_printf(
			call->arena,
			"/api/v1/namespaces/%s/pods/%s/log?tailLines=%lld&limitBytes=%d%s",
			json_cstr(pod, "metadata.namespace"), json_cstr(pod, "metadata.name"),
			(long long)tail, LOG_MAX_BYTES, is_previous ? "&previous=true" : "")),
		.accept = "*/*",
		.on_done = on_log,
		.arg = call,
	};
	(void)k8s_call_start(call->api->k8s, &request);
}
