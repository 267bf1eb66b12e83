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

void usage_save(const struct usage *usage, bool only_untold, struct buf *out)
{
	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_allocation *item = &usage->items[i];
		int told = item->is_released_told ? 2 : item->is_bound_told ? 1 : 0;
		if (only_untold && told == (item->is_ended ? 2 : 1))
			continue;
		buf_printf(out, "{\"allocation\":1,\"told\":%d,\"bound\":%" PRId64, told,
			   item->bound_s);
		buf_printf(out, ",\"first\":%" PRId64 ",\"last\":%" PRId64, item->first_s,
			   item->last_s);
		if (item->is_ended)
			buf_printf(out, ",\"released\":%" PRId64, item->released_s);
		if (item->is_guessed)
			buf_put_c(out, ",\"guessed\":true");
		if (item->share_den > 1)
			buf_printf(out, ",\"num\":%" PRIu32 ",\"den\":%" PRIu32, item->share_num,
				   item->share_den);
		if (item->profile[0] != '\0')
			put_text(out, "profile", item->profile);
		put_text(out, "gpu", item->gpu);
		put_text(out, "uid", item->pod_uid);
		put_text(out, "namespace", item->namespace_);
		put_text(out, "pod", item->pod);
		put_text(out, "container", item->container);
		put_text(out, "tenant", item->has_tenant ? item->tenant : "");
		put_text(out, "request", item->request);
		buf_put_c(out, "}\n");
	}
}

static bool load_texts(const json_t *object, struct usage_allocation *item)
{
	const struct {
		const char *key;
		char *out;
		size_t out_bytes;
	} texts[] = {
		{ "gpu", item->gpu, sizeof item->gpu },
		{ "profile", item->profile, sizeof item->profile },
		{ "uid", item->pod_uid, sizeof item->pod_uid },
		{ "namespace", item->namespace_, sizeof item->namespace_ },
		{ "pod", item->pod, sizeof item->pod },
		{ "container", item->container, sizeof item->container },
		{ "tenant", item->tenant, sizeof item->tenant },
		{ "request", item->request, sizeof item->request },
	};
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		if (!usage_text(texts[i].out, texts[i].out_bytes, json_text(object, texts[i].key)))
			return false;
	}
	return item->gpu[0] != '\0' && item->pod_uid[0] != '\0';
}

static bool load_share(const json_t *object, struct usage_allocation *item)
{
	int64_t num = json_int(object, "num", 1), den = json_int(object, "den", 1);
	if (num < 1 || den < num || den > UINT16_MAX + 1)
		return false;
	item->share_num = (uint32_t)num;
	item->share_den = (uint32_t)den;
	return true;
}

void usage_load_line(struct usage *usage, struct str line)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct usage_allocation loaded = { .is_shown = true };
	if (json_parse(line, &object, NULL) != ERR_OK || json_int(object, "allocation", 0) != 1)
		return; // a line of another part
	int64_t told = json_int(object, "told", 0);
	loaded.bound_s = json_int(object, "bound", 0);
	loaded.first_s = json_int(object, "first", 0);
	loaded.last_s = json_int(object, "last", 0);
	loaded.released_s = json_int(object, "released", 0);
	loaded.is_ended = json_at(object, "released") != NULL;
	loaded.is_guessed = json_bool(object, "guessed", false);
	loaded.is_bound_told = told >= 1;
	loaded.is_released_told = told >= 2;
	if (!load_texts(object, &loaded) || !load_share(object, &loaded) ||
	    usage_find(usage, str_of(loaded.gpu), str_of(loaded.pod_uid)) != NULL)
		return;
	loaded.has_tenant = loaded.tenant[0] != '\0';
	struct usage_allocation *item = usage_add(usage);
	if (item != NULL)
		*item = loaded;
}

static void load_bound(struct usage_allocation *item, const struct usage_event *event)
{
	memcpy(item->gpu, event->gpu, sizeof item->gpu);
	memcpy(item->pod_uid, event->pod_uid, sizeof item->pod_uid);
	memcpy(item->namespace_, event->namespace_, sizeof item->namespace_);
	memcpy(item->pod, event->pod, sizeof item->pod);
	memcpy(item->container, event->container, sizeof item->container);
	memcpy(item->tenant, event->tenant, sizeof item->tenant);
	memcpy(item->request, event->request, sizeof item->request);
	memcpy(item->profile, event->profile, sizeof item->profile);
	if (event->share_den > 0) {
		item->share_num = event->share_num;
		item->share_den = event->share_den;
	}
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
	// A snapshot may hold it as not told yet.
	if (item == NULL && event->type == EVENT_BOUND)
		item = usage_add(usage);
	if (item == NULL)
		return;
	if (event->type == EVENT_BOUND)
		load_bound(item, event);
	item->last_s = max_i64(item->last_s, event->t_s);
	if (event->type == EVENT_RELEASED) {
		item->released_s = event->t_s;
		item->is_ended = item->is_released_told = true;
	}
}
