// SPDX-License-Identifier: Apache-2.0
// One GPU node, and the change of its driver: the handlers write the wish, a controller of the
// server takes the steps.
#include "api/handlers.h"
#include "api/node_upgrade.h"
#include "api/views.h"

static json_t *need(struct call *call, object_kind kind)
{
	struct str name = call->match.params[0];
	json_t *found = objects_find(call->api->objects, kind, STR(""), name);
	if (found == NULL)
		rest_problem(call, 404, "not_found",
			     kind == OBJECT_NODE ? "there is no GPU node " STR_FMT
						 : "node " STR_FMT
						   " has no label nvidia.com/gpu.present yet",
			     STR_ARG(name));
	return found;
}

static json_t *view(struct call *call, json_t *node, const json_t *host)
{
	int64_t held = 0;
	view_held_gpus(call->api->objects, &node, 1, &held);
	json_t *out = view_node(node, held);
	if (call->principal.role == AUTHZ_PLATFORM_ADMIN)
		view_node_details(out, node, host);
	return out;
}

void handle_node_get(struct call *call)
{
	json_t *node = need(call, OBJECT_NODE);
	if (node != NULL)
		rest_answer(call, view(call, node,
				       objects_find(call->api->objects, OBJECT_HOST, STR(""),
						    call->match.params[0])));
}

static void on_written(void *arg, const struct object_result *result)
{
	struct call *call = arg;
	json_t *node =
		objects_find(call->api->objects, OBJECT_NODE, STR(""), call->match.params[0]);
	if (result->status == ERR_CONFLICT)
		rest_problem(call, 409, "conflict",
			     "somebody else changed the node at the same time; look and repeat");
	else if (result->status != ERR_OK)
		rest_fail(call, result->err);
	else
		rest_answer(call, view(call, node, result->object));
}

static void write_patch(struct call *call, json_t *patch)
{
	const struct object_write write = { .kind = OBJECT_HOST,
					    .name = call->match.params[0],
					    .body = patch,
					    .on_done = on_written,
					    .arg = call };
	objects_patch(call->api->objects, &write);
}

void handle_node_upgrade(struct call *call)
{
	struct upgrade upgrade;
	struct err err;
	json_t *node = need(call, OBJECT_NODE);
	json_t *host = node == NULL ? NULL : need(call, OBJECT_HOST);
	if (host == NULL)
		return;
	err_status status;
	bool is_there = node_upgrade_read(host, &upgrade);
	int64_t now_s = api_now_s(call->api);
	struct str user = call->principal.subject;
	if (is_there && upgrade_is_active(&upgrade)) {
		rest_problem(call, 409, "already_running",
			     "the node's upgrade is %s since a while: %s",
			     upgrade_phase_name(upgrade.phase), upgrade.reason);
		return;
	}
	if (is_there && upgrade.phase == UPGRADE_STOPPED)
		status = upgrade_resume(call->body, user, now_s, &upgrade, &err);
	else
		status = upgrade_begin(call->body, json_text(node, "status.driverVersion"), user,
				       node_is_cordoned(host), now_s, &upgrade, &err);
	if (status != ERR_OK) {
		rest_problem(call, 400, "invalid_field", "%s", err.text);
		return;
	}
	call->audit_detail = str_of(arena_printf(
		call->arena, "node " STR_FMT " driver %s", STR_ARG(call->match.params[0]),
		upgrade.driver[0] == '\0' ? "any other" : upgrade.driver));
	AUTO(json_decrefp) json_t *patch = node_upgrade_patch(host, &upgrade);
	write_patch(call, patch);
}

void handle_node_upgrade_end(struct call *call)
{
	struct upgrade upgrade;
	json_t *node = need(call, OBJECT_NODE);
	json_t *host = node == NULL ? NULL : need(call, OBJECT_HOST);
	if (host == NULL)
		return;
	if (!node_upgrade_read(host, &upgrade)) {
		rest_problem(call, 404, "not_found", "the node has no upgrade");
		return;
	}
	AUTO(json_decrefp) json_t *patch = node_upgrade_end_patch(host, &upgrade);
	write_patch(call, patch);
}
