// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/layouts.h"

#include "daemons/agent/node_label.h"
#include "k8s/watch.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t LOOK_NS = 2000 * UINT64_C(1000000);
enum { POLICIES_MAX = 64 };
#define LABEL "nvidia.com/mig.config"

struct policy {
	char name[254];
	json_t *object; // owned
	bool is_seen;   // by the list that is under way
};

struct layouts {
	struct loop *loop;
	struct layouts_config config;
	struct node_label *label;
	struct watch *watch;
	struct loop_timer *timer;
	char name[MIG_LAYOUT_NAME_BYTES];
	bool has_label_been_told, is_synced;
	struct policy policies[POLICIES_MAX]; // sorted by name
	size_t policy_count;
	struct buf text; // of the file as it was read last
	struct err file_err;
};

static void changed(struct layouts *layouts) { layouts->config.on_change(layouts->config.arg); }

static void on_label(void *arg, const char *value)
{
	struct layouts *layouts = arg;
	const char *fixed = layouts->config.name == NULL ? "" : layouts->config.name;
	const char *name = value == NULL ? fixed : value;
	bool is_same = layouts->has_label_been_told && strcmp(layouts->name, name) == 0;
	layouts->has_label_been_told = true;
	(void)snprintf(layouts->name, sizeof layouts->name, "%s", name);
	if (!is_same)
		changed(layouts);
}

static struct policy *policy_at(struct layouts *layouts, const char *name, bool *ret_is_there)
{
	size_t at = 0;
	while (at < layouts->policy_count && strcmp(layouts->policies[at].name, name) < 0)
		at++;
	*ret_is_there = at < layouts->policy_count && strcmp(layouts->policies[at].name, name) == 0;
	return &layouts->policies[at];
}

static void drop(struct layouts *layouts, struct policy *policy)
{
	size_t at = (size_t)(policy - layouts->policies);
	json_decref(policy->object);
	layouts->policy_count--;
	memmove(policy, policy + 1, (layouts->policy_count - at) * sizeof *policy);
}

static void take(struct layouts *layouts, json_t *object, bool is_gone)
{
	bool is_there = false;
	const char *name = json_cstr(object, "metadata.name");
	struct policy *policy = policy_at(layouts, name, &is_there);
	if (is_gone && is_there)
		drop(layouts, policy);
	if (is_gone || name[0] == '\0')
		return;
	if (!is_there) {
		if (layouts->policy_count == POLICIES_MAX) {
			log_kv(LOG_WARN, "one GPUPolicy too many", "name", name, NULL);
			return;
		}
		size_t at = (size_t)(policy - layouts->policies);
		memmove(policy + 1, policy, (layouts->policy_count - at) * sizeof *policy);
		layouts->policy_count++;
		*policy = (struct policy){ 0 };
		(void)snprintf(policy->name, sizeof policy->name, "%.253s", name);
	}
	json_decref(policy->object);
	policy->object = json_incref(object);
	policy->is_seen = true;
}

static void on_synced(struct layouts *layouts)
{
	for (size_t i = layouts->policy_count; i > 0; i--) {
		if (!layouts->policies[i - 1].is_seen)
			drop(layouts, &layouts->policies[i - 1]);
	}
	layouts->is_synced = true;
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct layouts *layouts = arg;
	AUTO(json_decrefp) json_t *object = NULL;
	struct err err;
	switch (item->event) {
	case WATCH_FAILED: log_err(LOG_WARN, "watch of GPUPolicies", item->err); return;
	case WATCH_RESYNC:
		for (size_t i = 0; i < layouts->policy_count; i++)
			layouts->policies[i].is_seen = false;
		return;
	case WATCH_SYNCED: on_synced(layouts); break;
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED:
		if (json_parse(item->object, &object, &err) != ERR_OK) {
			log_err(LOG_WARN, "GPUPolicy is not understood", &err);
			return;
		}
		take(layouts, object, item->event == WATCH_DELETED);
		break;
	}
	if (layouts->is_synced)
		changed(layouts);
}

void layouts_look(struct layouts *layouts)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err = { 0 };
	if (layouts->config.file == NULL)
		return;
	err_status status = fs_read(layouts->config.file, MIG_LAYOUT_MAX_BYTES, &text, &err);
	bool is_same = status == layouts->file_err.status && layouts->text.data != NULL &&
		       str_eq(buf_str(&text), buf_str(&layouts->text));
	if (is_same)
		return;
	layouts->file_err = err;
	layouts->file_err.status = status;
	buf_clear(&layouts->text);
	buf_put(&layouts->text, buf_str(&text));
	changed(layouts);
}

static void on_timer(void *arg)
{
	struct layouts *layouts = arg;
	layouts_look(layouts);
	loop_timer_set(layouts->timer, LOOK_NS);
}

err_status layouts_new(struct loop *loop, const struct layouts_config *config, struct layouts **ret,
		       struct err *err)
{
	struct layouts *layouts = calloc(1, sizeof *layouts);
	if (layouts == NULL)
		return err_set(err, ERR_LIMIT, "no memory for layouts");
	layouts->loop = loop;
	layouts->config = *config;
	layouts->has_label_been_told = layouts->is_synced = config->client == NULL;
	layouts->timer = loop_timer_new(loop, on_timer, layouts);
	if (config->name != NULL)
		(void)snprintf(layouts->name, sizeof layouts->name, "%s", config->name);
	const struct node_label_config label = {
		.node = config->node, .label = LABEL, .arg = layouts, .on_value = on_label
	};
	const struct watch_config watch = { .path = "/apis/gpuaas.io/v1alpha1/gpupolicies",
					    .fn = on_item,
					    .arg = layouts };
	if (config->client != NULL) {
		if (node_label_new(config->client, &label, &layouts->label, err) != ERR_OK) {
			layouts_free(layouts);
			return err->status;
		}
		layouts->watch = watch_start(config->client, &watch);
	}
	loop_timer_set(layouts->timer, 0);
	*ret = layouts;
	return ERR_OK;
}

void layouts_free(struct layouts *layouts)
{
	if (layouts == NULL)
		return;
	node_label_free(layouts->label);
	watch_stop(layouts->watch);
	loop_timer_free(layouts->timer);
	while (layouts->policy_count > 0)
		drop(layouts, &layouts->policies[layouts->policy_count - 1]);
	buf_done(&layouts->text);
	free(layouts);
}

bool layouts_is_known(const struct layouts *layouts)
{
	return layouts->has_label_been_told && layouts->is_synced;
}

const char *layouts_name(const struct layouts *layouts) { return layouts->name; }

static err_status read_reserves(const struct layouts *layouts, struct mig_reserves *ret,
				struct err *err)
{
	struct mig_reserves all = { 0 }, own = { 0 };
	for (size_t i = 0; i < layouts->policy_count; i++) {
		const struct policy *policy = &layouts->policies[i];
		if (mig_reserves_read(json_at(policy->object, "spec.reservations"), &all, err) !=
		    ERR_OK)
			return err_wrap(err, "GPUPolicy %.60s", policy->name);
	}
	for (size_t i = 0; i < all.count; i++) {
		const struct mig_reserve *item = &all.items[i];
		if (item->node[0] == '\0' || strcmp(item->node, layouts->config.node) == 0)
			own.items[own.count++] = *item;
	}
	*ret = own;
	return ERR_OK;
}

static err_status read_file(const struct layouts *layouts, struct mig_layout *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *root = NULL;
	struct str text = buf_str(&layouts->text);
	if (layouts->config.file == NULL)
		return err_set(err, ERR_NOT_FOUND, "there is no GPUPolicy with a layout \"%s\"",
			       layouts->name);
	if (layouts->file_err.status != ERR_OK) {
		*err = layouts->file_err;
		return err->status;
	}
	if (mig_layouts_open(text, &root, err) != ERR_OK ||
	    mig_layout_read(text, json_object_get(root, "mig-configs"), "mig-configs",
			    layouts->name, ret, err) != ERR_OK)
		return err_wrap(err, "%.150s", layouts->config.file);
	return ERR_OK;
}

err_status layouts_read(const struct layouts *layouts, struct mig_layout *ret,
			struct mig_reserves *ret_reserves, struct err *err)
{
	const struct policy *found = NULL;
	if (read_reserves(layouts, ret_reserves, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < layouts->policy_count; i++) {
		const struct policy *policy = &layouts->policies[i];
		const json_t *all = json_at(policy->object, "spec.layouts");
		if (json_object_get(all, layouts->name) == NULL)
			continue;
		if (found != NULL)
			return err_set(
				err, ERR_INVALID,
				"layout %s is in the GPUPolicies %.60s and %.60s; rename one",
				layouts->name, found->name, policy->name);
		found = policy;
	}
	if (found == NULL)
		return read_file(layouts, ret, err);
	if (mig_layout_read(STR(""), json_at(found->object, "spec.layouts"), "spec.layouts",
			    layouts->name, ret, err) != ERR_OK)
		return err_wrap(err, "GPUPolicy %.60s", found->name);
	return ERR_OK;
}
