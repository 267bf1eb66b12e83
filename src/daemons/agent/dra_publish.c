// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_publish.h"

#include "k8s/path.h"
#include "k8s/watch.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

#define GROUP_VERSION "resource.k8s.io/v1"
#define S (1000 * UINT64_C(1000000))
static const uint64_t WRITE_EACH_NS = 1 * S;
static const uint64_t PAUSE_MIN_NS = 1 * S;
static const uint64_t PAUSE_MAX_NS = 60 * S;
enum { SLICES_MAX = 64, VERSION_BYTES = 64, ARENA_BYTES = 64 * 1024 };

struct slice { // as the API server has it
	char name[DRA_NAME_BYTES];
	json_t *object; // owned
	bool is_listed;
};

struct dra_publish {
	struct loop *loop;
	struct k8s_client *client;
	struct dra_publish_config config;
	char name[DRA_NAME_BYTES], node_uid[DRA_UID_BYTES], selector[600];
	struct watch *watch;
	bool is_synced, has_no_taints;
	struct slice slices[SLICES_MAX];
	size_t count;
	struct k8s_call *call;
	struct loop_timer *timer;
	bool is_armed;
	uint64_t pause_ns, write_ns;
	uint64_t generation;              // the highest seen or written
	struct buf wanted, sent;          // texts without generation
	char sent_version[VERSION_BYTES]; // what came back for sent
	struct dra_publish_stats stats;
};

static void step(struct dra_publish *publish);

static struct slice *find(struct dra_publish *publish, struct str name)
{
	for (size_t i = 0; i < publish->count; i++) {
		if (str_eq_c(name, publish->slices[i].name))
			return &publish->slices[i];
	}
	return NULL;
}

static void drop(struct dra_publish *publish, struct slice *slice)
{
	json_decref(slice->object);
	*slice = publish->slices[--publish->count];
}

static uint64_t generation_of(const json_t *object)
{
	int64_t generation = json_int(object, "spec.pool.generation", 0);
	return generation < 0 ? 0 : (uint64_t)generation;
}

// Takes the object, a new reference.
static void keep(struct dra_publish *publish, json_t *object)
{
	struct str name = json_text(object, "metadata.name");
	uint64_t generation = generation_of(object);
	struct slice *slice = find(publish, name);
	bool is_ours = str_eq_c(name, publish->name);
	bool is_older = is_ours && slice != NULL && generation < generation_of(slice->object);
	if (name.len == 0 || name.len >= DRA_NAME_BYTES || is_older ||
	    (slice == NULL && publish->count == SLICES_MAX)) {
		if (slice != NULL)
			slice->is_listed = true;
		json_decref(object); // what is too much is seen when the others have gone
		return;
	}
	if (slice == NULL) {
		slice = &publish->slices[publish->count++];
		*slice = (struct slice){ 0 };
		memcpy(slice->name, name.data, name.len);
	}
	json_decref(slice->object);
	slice->object = object;
	slice->is_listed = true;
	if (generation > publish->generation)
		publish->generation = generation;
}

static void forget_unlisted(struct dra_publish *publish)
{
	for (size_t i = publish->count; i > 0; i--) {
		if (!publish->slices[i - 1].is_listed)
			drop(publish, &publish->slices[i - 1]);
	}
}

static void on_slice(struct dra_publish *publish, const struct watch_item *item)
{
	json_t *object = NULL;
	struct err err;
	if (json_parse(item->object, &object, &err) != ERR_OK) {
		log_err(LOG_WARN, "ResourceSlice is not understood", &err);
		return;
	}
	if (item->event != WATCH_DELETED) {
		keep(publish, object);
		return;
	}
	struct slice *slice = find(publish, json_text(object, "metadata.name"));
	if (slice != NULL)
		drop(publish, slice);
	json_decref(object);
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct dra_publish *publish = arg;
	switch (item->event) {
	case WATCH_RESYNC:
		publish->is_synced = false;
		for (size_t i = 0; i < publish->count; i++)
			publish->slices[i].is_listed = false;
		return;
	case WATCH_SYNCED:
		forget_unlisted(publish);
		publish->is_synced = true;
		break;
	case WATCH_FAILED: log_err(LOG_WARN, "watch of ResourceSlices", item->err); return;
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: on_slice(publish, item); break;
	}
	step(publish);
}

static void arm(struct dra_publish *publish, uint64_t delay_ns)
{
	publish->is_armed = true;
	loop_timer_set(publish->timer, delay_ns);
}

static void on_timer(void *arg)
{
	struct dra_publish *publish = arg;
	publish->is_armed = false;
	step(publish);
}

static void failed(struct dra_publish *publish, const char *what, const struct err *err)
{
	publish->stats.failures++;
	log_err(LOG_WARN, what, err);
	arm(publish, publish->pause_ns);
	publish->pause_ns = min_u64(publish->pause_ns * 2, PAUSE_MAX_NS);
}

static void call(struct dra_publish *publish, const char *method, const char *name, struct str body,
		 k8s_done_fn *on_done)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	bool is_node = on_done != NULL && strcmp(method, "GET") == 0;
	const struct k8s_object_path path = { .group_version = is_node ? "v1" : GROUP_VERSION,
					      .resource = is_node ? "nodes" : "resourceslices",
					      .name = name };
	ASSERT(publish->call == NULL);
	if (arena == NULL)
		return;
	const struct k8s_request request = { .method = method,
					     .path = k8s_path(arena, &path),
					     .body = body,
					     .on_done = on_done,
					     .arg = publish };
	if (request.path.data != NULL)
		publish->call = k8s_call_start(publish->client, &request);
	if (publish->call == NULL)
		arm(publish, PAUSE_MIN_NS);
}

static void on_node(void *arg, const struct k8s_result *result)
{
	struct dra_publish *publish = arg;
	AUTO(json_decrefp) json_t *node = NULL;
	struct err err = { 0 };
	publish->call = NULL;
	struct str uid = { 0 };
	bool is_read = result->status == ERR_OK &&
		       json_parse(result->body, &node, &err) == ERR_OK &&
		       json_need_text(node, "metadata.uid", &uid, &err) == ERR_OK;
	if (!is_read || uid.len == 0) {
		failed(publish, "node of the ResourceSlice is not read",
		       result->err == NULL ? &err : result->err);
		return;
	}
	(void)snprintf(publish->node_uid, sizeof publish->node_uid, STR_FMT, STR_ARG(uid));
	publish->pause_ns = PAUSE_MIN_NS;
	step(publish);
}

static void on_written(void *arg, const struct k8s_result *result)
{
	struct dra_publish *publish = arg;
	json_t *object = NULL;
	struct err err = { 0 };
	publish->call = NULL;
	if (result->status != ERR_OK || json_parse(result->body, &object, &err) != ERR_OK) {
		failed(publish, "ResourceSlice is not written",
		       result->err == NULL ? &err : result->err);
		return;
	}
	publish->stats.writes++;
	publish->pause_ns = PAUSE_MIN_NS;
	(void)snprintf(publish->sent_version, sizeof publish->sent_version, "%s",
		       json_cstr(object, "metadata.resourceVersion"));
	bool lost_taints = strstr(publish->sent.data, "\"taints\"") != NULL &&
			   !dra_slice_has_taints(object);
	if (lost_taints && !publish->has_no_taints) {
		publish->has_no_taints = true;
		log_kv(LOG_WARN,
		       "the API server keeps no taints of devices; GPUs that must not "
		       "be given are left out",
		       NULL);
	}
	keep(publish, object);
	step(publish);
}

static void on_deleted(void *arg, const struct k8s_result *result)
{
	struct dra_publish *publish = arg;
	publish->call = NULL;
	if (result->status != ERR_OK && result->status != ERR_NOT_FOUND)
		failed(publish, "old ResourceSlice is not deleted", result->err);
	else
		publish->pause_ns = PAUSE_MIN_NS;
	// The watch says when it has gone.
}

// Whether the object is what was sent last, whatever the server made of it.
static bool is_as_sent(const struct dra_publish *publish, const json_t *object)
{
	return publish->sent_version[0] != '\0' &&
	       str_eq(buf_str(&publish->wanted), buf_str(&publish->sent)) &&
	       str_eq_c(json_text(object, "metadata.resourceVersion"), publish->sent_version);
}

static bool is_there(const struct dra_publish *publish, const json_t *object)
{
	AUTO(json_decrefp) json_t *wanted = NULL;
	if (is_as_sent(publish, object))
		return true;
	return json_parse(buf_str(&publish->wanted), &wanted, NULL) == ERR_OK &&
	       dra_slice_is_same(object, wanted);
}

static void write_slice(struct dra_publish *publish, struct dra_view *view, const json_t *old)
{
	AUTO(buf_done) struct buf body = { 0 };
	struct err err;
	uint64_t now_ns = loop_now_ns(publish->loop);
	if (publish->write_ns != 0 && now_ns - publish->write_ns < WRITE_EACH_NS) {
		arm(publish, publish->write_ns + WRITE_EACH_NS - now_ns);
		return;
	}
	publish->write_ns = now_ns;
	view->generation = ++publish->generation;
	const char *version = old == NULL ? NULL : json_cstr(old, "metadata.resourceVersion");
	if (dra_slice_put(&body, view, version, &err) != ERR_OK) {
		failed(publish, "ResourceSlice", &err);
		return;
	}
	buf_clear(&publish->sent);
	buf_put(&publish->sent, buf_str(&publish->wanted));
	publish->sent_version[0] = '\0';
	call(publish, old == NULL ? "POST" : "PUT", old == NULL ? NULL : publish->name,
	     buf_str(&body), on_written);
}

// The first slice that should not be there; NULL: none.
static const struct slice *stale(const struct dra_publish *publish)
{
	for (size_t i = 0; i < publish->count; i++) {
		const struct slice *slice = &publish->slices[i];
		if (strcmp(slice->name, publish->name) != 0)
			return slice;
	}
	return NULL;
}

// True when something is under way for the slice itself.
static bool step_own(struct dra_publish *publish)
{
	struct dra_view view = { 0 };
	struct err err;
	if (!publish->config.view(publish->config.arg, &view))
		return false;
	if (publish->node_uid[0] == '\0') {
		call(publish, "GET", publish->config.node, STR(""), on_node);
		return true;
	}
	view.node_uid = publish->node_uid;
	view.has_no_taints = publish->has_no_taints;
	buf_clear(&publish->wanted);
	if (dra_slice_put(&publish->wanted, &view, NULL, &err) != ERR_OK) {
		failed(publish, "ResourceSlice", &err);
		return true;
	}
	const struct slice *own = find(publish, str_of(publish->name));
	publish->stats.is_published = own != NULL && is_there(publish, own->object);
	if (publish->stats.is_published)
		return false;
	write_slice(publish, &view, own == NULL ? NULL : own->object);
	return true;
}

static void step(struct dra_publish *publish)
{
	if (!publish->is_synced || publish->call != NULL || publish->is_armed || step_own(publish))
		return;
	const struct slice *old = stale(publish);
	if (old != NULL)
		call(publish, "DELETE", old->name, STR(""), on_deleted);
}

err_status dra_publish_new(struct k8s_client *client, const struct dra_publish_config *config,
			   struct dra_publish **ret, struct err *err)
{
	struct dra_publish *publish = calloc(1, sizeof *publish);
	if (publish == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the ResourceSlice");
	publish->loop = k8s_client_loop(client);
	publish->client = client;
	publish->config = *config;
	publish->pause_ns = PAUSE_MIN_NS;
	publish->timer = loop_timer_new(publish->loop, on_timer, publish);
	(void)snprintf(publish->selector, sizeof publish->selector,
		       "fieldSelector=spec.driver%%3D" DRA_DRIVER "%%2Cspec.nodeName%%3D%.253s",
		       config->node);
	const struct watch_config watch = { .path = "/apis/" GROUP_VERSION "/resourceslices",
					    .selector = publish->selector,
					    .fn = on_item,
					    .arg = publish };
	if (!dra_slice_name(config->node, publish->name)) {
		dra_publish_free(publish);
		return err_set(err, ERR_LIMIT, "name of the node is too long for a ResourceSlice");
	}
	publish->watch = watch_start(client, &watch);
	if (publish->watch == NULL) {
		dra_publish_free(publish);
		return err_set(err, ERR_LIMIT, "no memory for the watch of ResourceSlices");
	}
	*ret = publish;
	return ERR_OK;
}

void dra_publish_free(struct dra_publish *publish)
{
	if (publish == NULL)
		return;
	watch_stop(publish->watch);
	k8s_call_cancel(publish->call);
	loop_timer_free(publish->timer);
	while (publish->count > 0)
		drop(publish, &publish->slices[publish->count - 1]);
	buf_done(&publish->wanted);
	buf_done(&publish->sent);
	free(publish);
}

void dra_publish_poke(struct dra_publish *publish) { step(publish); }

void dra_publish_stats(const struct dra_publish *publish, struct dra_publish_stats *ret)
{
	*ret = publish->stats;
}
