// SPDX-License-Identifier: Apache-2.0
// Usage over a restart: lines of the snapshot, and events that followed it.
#include "base/json.h"
#include "daemons/agent/usage_table.h"

#include <inttypes.h>

static void put_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	buf_put_json(out, str_of(value));
}

void usage_save(const struct usage *usage, struct buf *out)
{
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_allocation *item = &usage->items[i];
		if (!item->is_bound_told)
			continue; // learnt anew from kubelet and pods
		buf_printf(out, "{\"allocation\":1,\"bound\":%" PRId64, item->bound_s);
		buf_printf(out, ",\"last\":%" PRId64 ",\"released\":%" PRId64, item->last_s,
			   item->is_released_told ? item->released_s : 0);
		put_text(out, "gpu", item->gpu);
		put_text(out, "uid", item->pod_uid);
		put_text(out, "namespace", item->namespace_);
		put_text(out, "pod", item->pod);
		put_text(out, "container", item->container);
		put_text(out, "tenant", item->tenant);
		put_text(out, "request", item->request);
		buf_put_c(out, "}\n");
	}
}

void usage_load_line(struct usage *usage, struct str line)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct usage_allocation loaded = { .is_bound_told = true, .is_shown = true };
	if (json_parse(line, &object, NULL) != ERR_OK || json_int(object, "allocation", 0) != 1)
		return; // a line of another part
	loaded.bound_s = loaded.first_s = json_int(object, "bound", 0);
	loaded.last_s = json_int(object, "last", 0);
	loaded.released_s = json_int(object, "released", 0);
	loaded.is_ended = loaded.is_released_told = loaded.released_s != 0;
	loaded.has_tenant = true;
	if (!usage_text(loaded.gpu, sizeof loaded.gpu, json_text(object, "gpu")) ||
	    !usage_text(loaded.pod_uid, sizeof loaded.pod_uid, json_text(object, "uid")) ||
	    !usage_text(loaded.namespace_, sizeof loaded.namespace_,
			json_text(object, "namespace")) ||
	    !usage_text(loaded.pod, sizeof loaded.pod, json_text(object, "pod")) ||
	    !usage_text(loaded.container, sizeof loaded.container,
			json_text(object, "container")) ||
	    !usage_text(loaded.tenant, sizeof loaded.tenant, json_text(object, "tenant")) ||
	    !usage_text(loaded.request, sizeof loaded.request, json_text(object, "request")))
		return;
	struct usage_allocation *item = usage_add(usage);
	if (item != NULL)
		*item = loaded;
}

static void load_bound(struct usage *usage, const struct usage_event *event)
{
	struct usage_allocation *item = usage_add(usage);
	if (item == NULL)
		return;
	memcpy(item->gpu, event->gpu, sizeof item->gpu);
	memcpy(item->pod_uid, event->pod_uid, sizeof item->pod_uid);
	memcpy(item->namespace_, event->namespace_, sizeof item->namespace_);
	memcpy(item->pod, event->pod, sizeof item->pod);
	memcpy(item->container, event->container, sizeof item->container);
	memcpy(item->tenant, event->tenant, sizeof item->tenant);
	memcpy(item->request, event->request, sizeof item->request);
	item->bound_s = item->first_s = item->last_s = event->t_s;
	item->has_tenant = item->is_bound_told = item->is_shown = true;
}

void usage_load_event(struct usage *usage, const struct usage_event *event)
{
	if (event->type != EVENT_BOUND && event->type != EVENT_RELEASED &&
	    event->type != EVENT_SAMPLE)
		return;
	struct usage_allocation *item =
		usage_find(usage, str_of(event->gpu), str_of(event->pod_uid));
	if (item == NULL && event->type == EVENT_BOUND) {
		load_bound(usage, event);
		return;
	}
	if (item == NULL)
		return;
	item->last_s = max_i64(item->last_s, event->t_s);
	if (event->type == EVENT_RELEASED) {
		item->released_s = event->t_s;
		item->is_ended = item->is_released_told = true;
	}
}
