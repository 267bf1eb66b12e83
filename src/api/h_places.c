// SPDX-License-Identifier: Apache-2.0
// The requests of a page that wait for a node: where the scheduler has them in its queue and by
// which factors. Without its answer the page is what it is without.
#include "api/ask.h"
#include "api/handlers.h"
#include "api/request_steps.h"

struct placed {
	struct call *call;
	json_t *items, *pods; // of the page; pods: NAMESPACE/NAME -> index; both ours
	struct str next;
};

static void put_place(json_t *item, const json_t *place)
{
	json_t *queue = json_at(place, "queue");
	put_int(item, "position", json_int(place, "position", 0));
	if (queue != NULL)
		(void)json_object_set(item, "queue", queue);
}

static void on_places(void *arg, const struct http_call_result *result)
{
	struct placed *placed = arg;
	AUTO(json_decrefp) json_t *told = NULL;
	AUTO(json_decrefp) json_t *pods = placed->pods;
	const char *key;
	json_t *place;
	bool is_good = result->status == ERR_OK && result->code == 200 &&
		       json_parse(result->body, &told, NULL) == ERR_OK;
	json_object_foreach(is_good ? json_at(told, "items") : NULL, key, place)
	{
		const json_t *index = json_object_get(pods, key);
		if (index != NULL)
			put_place(json_array_get(placed->items, (size_t)json_integer_value(index)),
				  place);
	}
	rest_answer_list(placed->call, placed->items, placed->next);
}

// Pods of those that wait, by name; the list for the question is in ret_names.
static json_t *pods_of(struct call *call, const json_t *items, json_t *ret_names)
{
	json_t *pods = json_object(), *item;
	size_t i;
	json_array_foreach(items, i, item)
	{
		struct str tenant, name;
		if (!str_eq_c(json_text(item, "state"), "Pending") ||
		    !request_id_parse(json_text(item, "id"), &tenant, &name))
			continue;
		json_t *request = objects_find(call->api->objects, OBJECT_REQUEST, tenant, name);
		const json_t *pod = request == NULL ? NULL
						    : view_request_pod(call->api->objects, request);
		if (pod == NULL)
			continue;
		const char *key = arena_printf(call->arena, "%s/%s",
					       json_cstr(pod, "metadata.namespace"),
					       json_cstr(pod, "metadata.name"));
		(void)json_object_set_new(pods, key, json_integer((json_int_t)i));
		(void)json_array_append_new(ret_names, json_string(key));
	}
	return pods;
}

void request_answer_page(struct call *call, json_t *items, struct str next)
{
	struct placed *placed = ARENA_NEW(call->arena, struct placed);
	bool is_asked = str_eq_c(rest_query(call, "places"), "true");
	ASSERT(placed != NULL);
	if (!is_asked || call->api->scheduler == NULL) {
		rest_answer_list(call, items, next);
		return;
	}
	AUTO(json_decrefp) json_t *question = json_pack("{s:[]}", "pods");
	json_t *pods = pods_of(call, items, json_object_get(question, "pods"));
	*placed = (struct placed){ call, items, pods, next };
	struct http_call_request request = {
		.method = "POST",
		.path = STR("/places"),
		.body = json_dump(call->arena, question),
		.body_max_bytes = 16 << 20,
		.on_done = on_places,
		.arg = placed,
	};
	scheduler_ask(call->api, &request);
}
