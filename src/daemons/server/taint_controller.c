// SPDX-License-Identifier: Apache-2.0
// A node with dead GPUs gets a taint that keeps new pods away, and loses it when they are well
// again; policy/deadgpu.h decides. As with evictions nothing is closed while too many GPUs are said
// to be dead; what is closed is opened all the same.
#include "daemons/server/controllers_state.h"

#include "api/node_taint.h"
#include "sys/log.h"

static void on_written(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	// A conflict: somebody else wrote; the watch brings it and the next look decides anew.
	bool is_fine = result->status == ERR_OK || result->status == ERR_CONFLICT ||
		       result->status == ERR_NOT_FOUND;
	pass_end(pass, is_fine ? NULL : result->err);
}

static bool should_close(struct controllers *controllers, const json_t *node, const json_t *host)
{
	int64_t now_s = world_wall_s(loop_world(controllers->loop));
	bool is_closed = node_has_dead_gpu_taint(host);
	return dead_gpu_closes(node, &controllers->dead_gpus, now_s, is_closed) &&
	       (is_closed || !eviction_is_braked(controllers));
}

void taint_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	struct pass *pass = pass_new(controllers, controllers->taints, key);
	struct str none, name;
	pass_split(pass, &none, &name);
	const json_t *node = objects_find(controllers->objects, OBJECT_NODE, STR(""), name);
	const json_t *host = objects_find(controllers->objects, OBJECT_HOST, STR(""), name);
	AUTO(json_decrefp) json_t *patch = NULL;
	bool is_wanted = false;
	if (host != NULL && objects_are_synced(controllers->objects)) {
		is_wanted = node != NULL && should_close(controllers, node, host);
		patch = node_taint_patch(host, is_wanted);
	}
	if (patch == NULL) {
		pass_end(pass, NULL);
		return;
	}
	log_kv(LOG_WARN,
	       is_wanted ? "a node with dead GPUs is closed to new pods"
			 : "a node that had dead GPUs is open again",
	       "node", pass->key + 1, NULL);
	const struct object_write write = {
		.kind = OBJECT_HOST, .name = name, .body = patch, .on_done = on_written, .arg = pass
	};
	objects_patch(controllers->objects, &write);
}

void taint_look(struct controllers *controllers)
{
	json_t *host;
	for (size_t i = 0; objects_next(controllers->objects, OBJECT_HOST, &i, &host);) {
		char text[OBJECT_KEY_BYTES];
		struct str name = json_text(host, "metadata.name");
		const json_t *node = objects_find(controllers->objects, OBJECT_NODE, STR(""), name);
		bool is_closed = node_has_dead_gpu_taint(host);
		if (is_closed != (node != NULL && should_close(controllers, node, host)))
			workqueue_add(controllers->taints, object_key(STR(""), name, text));
	}
}
