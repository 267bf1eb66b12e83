// SPDX-License-Identifier: Apache-2.0
// Queues of tenants: their settings are checked against the other tenants here, what they have now
// is the scheduler's to say.
#include "api/ask.h"
#include "api/handlers.h"
#include "api/tenant_queues.h"
#include "policy/tenant_queue.h"

#include <stdlib.h>

// ---- settings

const json_t *tenant_queue_find(const void *arg, struct str tenant)
{
	const struct call *call = arg;
	return json_at(objects_find(call->api->objects, OBJECT_TENANT, STR(""), tenant),
		       "spec.queue");
}

bool tenant_queue_take(struct call *call, const json_t *tenant, json_t *object)
{
	const json_t *given = json_object_get(call->body, "queue");
	struct schema_fault fault;
	struct err err;
	if (given == NULL)
		return true;
	json_t *spec = json_object_get(object, "spec");
	if (json_is_null(given)) {
		(void)json_object_set_new(spec, "queue", json_null());
		return true;
	}
	json_t *patch = tenant_queue_to_spec(given);
	(void)json_object_set_new(spec, "queue", patch);
	const json_t *old = json_at(tenant, "spec.queue");
	AUTO(json_decrefp)
	json_t *merged = json_is_object(old) ? json_deep_copy(old) : json_object();
	const char *key;
	json_t *value;
	json_object_foreach(patch, key, value)
	{
		if (json_is_null(value))
			(void)json_object_del(merged, key);
		else
			(void)json_object_set(merged, key, value);
	}
	if (tenant_queue_check(call->tenant, merged, tenant_queue_find, call, &fault, &err) ==
	    ERR_OK)
		return true;
	call->fault_path = arena_dup(call->arena, str_of(fault.path));
	rest_problem(call, 400, fault.code, "%s", err.text);
	return false;
}

void tenant_queue_drop_nulls(json_t *object)
{
	json_t *queue = json_at(object, "spec.queue");
	const char *key;
	json_t *value;
	void *next;
	if (queue == NULL)
		(void)json_object_del(json_object_get(object, "spec"), "queue");
	json_object_foreach_safe(queue, next, key, value)
	{
		if (json_is_null(value))
			(void)json_object_del(queue, key);
	}
}

void tenant_queue_put(json_t *out, const json_t *tenant)
{
	const json_t *queue = json_at(tenant, "spec.queue");
	if (queue != NULL)
		(void)json_object_set_new(out, "queue", tenant_queue_from_spec(queue));
}

// ---- what they have

// A row with its place in the tree: the names from the top down. The separator is less than any
// byte of a name, so that the order of places is that of the tree, siblings by name.
struct place {
	struct str text;
	json_t *row;
};
#define PLACE_SEPARATOR ","

static int by_place(const void *left, const void *right)
{
	return str_cmp(((const struct place *)left)->text, ((const struct place *)right)->text);
}

// Rows come parents first: a tenant sees its own and those below it. ret has room for all of them.
static size_t places_of(struct call *call, const json_t *rows, struct place *ret)
{
	json_t *seen = json_object(), *row;
	struct str own = call->principal.tenant;
	size_t i, count = 0;
	json_array_foreach(rows, i, row)
	{
		const char *name = json_cstr(row, "tenant");
		struct str above = json_text(seen, json_cstr(row, "parent"));
		bool is_seen = own.len == 0 || str_eq_c(own, name) || above.len > 0;
		if (!is_seen)
			continue;
		const char *place = arena_printf(call->arena, STR_FMT "%s%s", STR_ARG(above),
						 above.len > 0 ? PLACE_SEPARATOR : "", name);
		(void)json_object_set_new(seen, name, json_string(place));
		ret[count++] = (struct place){ str_of(place), row };
	}
	json_decref(seen);
	qsort(ret, count, sizeof *ret, by_place);
	return count;
}

// What comes after the place with which the last page ended, whoever has gone since.
static void answer_page(struct call *call, const json_t *rows)
{
	struct rest_page page;
	struct place *places = ARENA_ARRAY(call->arena, struct place, json_array_size(rows) + 1);
	if (places == NULL) {
		rest_problem(call, 422, "too_large", "there are too many queues");
		return;
	}
	if (!rest_page(call, &page))
		return;
	size_t count = places_of(call, rows, places), at = 0, end;
	while (at < count && page.after.len > 0 && str_cmp(places[at].text, page.after) <= 0)
		at++;
	json_t *items = json_array();
	for (end = at; end < count && end - at < page.limit; end++)
		(void)json_array_append(items, places[end].row);
	rest_answer_list(call, items, end < count ? places[end - 1].text : STR(""));
}

static void on_rows(void *arg, const struct http_call_result *result)
{
	struct call *call = arg;
	AUTO(json_decrefp) json_t *body = NULL;
	bool is_good = result->status == ERR_OK && result->code == 200 &&
		       json_parse(result->body, &body, NULL) == ERR_OK &&
		       json_is_array(json_at(body, "items"));
	if (!is_good) {
		rest_problem(call, 503, "scheduler_unreachable",
			     "the scheduler did not answer; ask again");
		return;
	}
	answer_page(call, json_at(body, "items"));
}

void handle_queue_list(struct call *call)
{
	if (call->api->scheduler == NULL) {
		rest_problem(call, 503, "scheduler_unreachable",
			     "this server knows no scheduler; connect it to a cluster");
		return;
	}
	struct http_call_request request = {
		.path = STR("/queues"),
		.body_max_bytes = 16 << 20,
		.on_done = on_rows,
		.arg = call,
	};
	scheduler_ask(call->api, &request);
}
