// SPDX-License-Identifier: Apache-2.0
// Usage events into and out of the ledger, and the documents that rate them.
#include "api/handlers.h"
#include "api/views.h"
#include "ledger/ledger.h"

enum { EXPORT_MAX_BYTES = 60 * 1024 * 1024 };

static const json_t *devices_of(const struct api *api, struct str node)
{
	return json_at(objects_find(api->objects, OBJECT_NODE, STR(""), node), "status.devices");
}

// Without Kubernetes no node is asked about; who imports is none.
static bool is_known_node(const struct call *call)
{
	return call->principal.role != AUTHZ_AGENT || objects_are_local(call->api->objects) ||
	       json_array_size(devices_of(call->api, call->principal.subject)) > 0;
}

static void fail_intake(struct call *call, const struct err *err)
{
	if (err->status == ERR_INVALID)
		rest_problem(call, 400, "invalid_event", "%s", err->text);
	else if (err->status == ERR_DENIED)
		rest_problem(call, 403, "foreign_source", "%s", err->text);
	else if (err->status == ERR_NOT_FOUND)
		rest_problem(call, 403, "foreign_gpu", "%s", err->text);
	else if (err->status == ERR_UNAVAILABLE && !is_known_node(call))
		rest_problem(call, 503, "node_unknown", "%s", err->text);
	else if (err->status == ERR_CONFLICT)
		rest_problem(call, 409, "event_conflict", "%s", err->text);
	else if (err->status == ERR_IO || err->status == ERR_UNAVAILABLE ||
		 err->status == ERR_TIMEOUT)
		rest_problem(call, 503, "storage_unavailable",
			     "the ledger cannot be written (%s); repeat the batch later, what of "
			     "it is there is not taken twice",
			     err->text);
	else
		rest_fail(call, err);
}

static json_t *cursor_json(const struct ledger_cursor *cursor)
{
	json_t *body = json_object(), *out = json_object();
	(void)json_object_set_new(out, "boot", json_string(cursor->boot));
	put_int(out, "seq", cursor->seq);
	(void)json_object_set_new(body, "cursor", out);
	return body;
}

// A node's agent speaks of the GPUs that its GPUNode lists: with another's it could fill the bill
// of a tenant that never was on its node.
static err_status check_gpu(void *arg, struct str node, struct str gpu, struct err *err)
{
	const struct api *api = arg;
	const json_t *devices = devices_of(api, node);
	if (json_array_size(devices) == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "GPUNode \"" STR_FMT "\" lists no GPUs yet; repeat it later",
			       STR_ARG(node));
	size_t i;
	json_t *device;
	json_array_foreach(devices, i, device)
	{
		if (str_eq(json_text(device, "uuid"), gpu))
			return ERR_OK;
	}
	return err_set(err, ERR_NOT_FOUND,
		       "gpu \"" STR_FMT "\" is not one of GPUNode \"" STR_FMT "\"", STR_ARG(gpu),
		       STR_ARG(node));
}

void handle_usage_push(struct call *call)
{
	struct ledger_cursor cursor;
	struct err err;
	struct ledger *ledger = call->api->ledger;
	// Without a cluster there are no GPUNodes to compare with.
	if (!objects_are_local(call->api->objects))
		ledger_owner_set(ledger, check_gpu, call->api);
	uint64_t before = ledger_counts_get(ledger).events;
	if (ledger_append(ledger, call->principal.subject, call->request->body,
			  api_now_s(call->api), &cursor, &err) != ERR_OK) {
		fail_intake(call, &err);
		return;
	}
	uint64_t taken = ledger_counts_get(ledger).events - before;
	if (taken > 0)
		call->audit_detail = str_of(arena_printf(call->arena, "%llu events up to %s/%lld",
							 (unsigned long long)taken, cursor.boot,
							 (long long)cursor.seq));
	rest_answer(call, cursor_json(&cursor));
}

void handle_event_import(struct call *call)
{
	struct ledger_cursor cursor;
	struct err err;
	struct ledger *ledger = call->api->ledger;
	struct ledger_counts before = ledger_counts_get(ledger);
	if (ledger_append(ledger, STR(""), call->request->body, api_now_s(call->api), &cursor,
			  &err) != ERR_OK) {
		fail_intake(call, &err);
		return;
	}
	struct ledger_counts after = ledger_counts_get(ledger);
	json_t *body = json_object();
	put_int(body, "events", (int64_t)(after.events - before.events));
	put_int(body, "duplicates", (int64_t)(after.duplicates - before.duplicates));
	put_int(body, "disputed", (int64_t)(after.disputed - before.disputed));
	rest_answer(call, body);
}

static bool put_line(void *arg, struct str line)
{
	struct buf *out = arg;
	buf_put(out, line);
	buf_put_byte(out, '\n');
	return buf_ok(out);
}

void handle_event_export(struct call *call)
{
	int64_t from_s = 0, to_s = 0;
	struct err err;
	if (!rest_query_time(call, "from", 0, &from_s) ||
	    !rest_query_time(call, "to", INT64_MAX, &to_s))
		return;
	struct buf out = { .limit = EXPORT_MAX_BYTES };
	err_status status = ledger_export(call->api->ledger, from_s, to_s, rest_scope(call),
					  put_line, &out, &err);
	struct str text = buf_ok(&out) ? arena_dup(call->arena, buf_str(&out))
				       : (struct str){ NULL, 0 };
	bool is_too_large = !buf_ok(&out) || text.data == NULL;
	buf_done(&out);
	if (status != ERR_OK)
		rest_fail(call, &err);
	else if (is_too_large)
		rest_problem(call, 422, "too_large",
			     "there are more than %d bytes of events; ask "
			     "for a shorter period with from and to",
			     EXPORT_MAX_BYTES);
	else
		rest_answer_text(call, "application/x-ndjson", text);
}

// ---- documents

static ledger_document document_of(const struct call *call)
{
	if (call->route->resource == AUTHZ_ASSET)
		return LEDGER_ASSETS;
	ASSERT(call->route->resource == AUTHZ_PRICE || call->route->resource == AUTHZ_POOL);
	return call->route->resource == AUTHZ_PRICE ? LEDGER_PRICES : LEDGER_POOLS;
}

void handle_document_get(struct call *call)
{
	struct str json;
	struct err err;
	if (ledger_document_get(call->api->ledger, document_of(call), call->arena, &json, &err) !=
	    ERR_OK)
		rest_fail(call, &err);
	else
		rest_answer_text(call, "application/json", json);
}

void handle_document_put(struct call *call)
{
	struct err err;
	struct str json = call->request->body;
	err_status status = ledger_document_put(call->api->ledger, document_of(call), json,
						call->principal.subject, api_now_s(call->api),
						&err);
	if (status == ERR_INVALID || status == ERR_UNSUPPORTED)
		rest_problem(call, 400, "invalid_document", "%s", err.text);
	else if (status != ERR_OK)
		rest_fail(call, &err);
	else
		rest_answer(call, json_incref(call->body));
}
