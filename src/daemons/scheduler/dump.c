// SPDX-License-Identifier: Apache-2.0
// gpuaas-scheduler dump: what the scheduler would see now, as documents that gpuaas-sim reads. Pods
// that are over and what servers keep for themselves (managedFields) are left out.
#include "daemons/scheduler/dump.h"
#include "feed/feed_budget.h"

#include <stdio.h>
#include <stdlib.h>

static const struct list {
	const char *kind, *api_version, *path;
} LISTS[] = {
	{ "Namespace", "v1", "/api/v1/namespaces?limit=500" },
	{ "PriorityClass", "scheduling.k8s.io/v1",
	  "/apis/scheduling.k8s.io/v1/priorityclasses?limit=500" },
	{ "Node", "v1", "/api/v1/nodes?limit=500" },
	{ "PodDisruptionBudget", "policy/v1", FEED_BUDGETS_PATH "?limit=500" },
	{ "GPUNode", "gpuaas.io/v1alpha1", "/apis/gpuaas.io/v1alpha1/gpunodes?limit=500" },
	{ "Tenant", "gpuaas.io/v1alpha1", "/apis/gpuaas.io/v1alpha1/tenants?limit=500" },
	{ "Pod", "v1",
	  "/api/v1/"
	  "pods?limit=500&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed" },
};

static bool print_object(const struct list *list, json_t *object)
{
	char *text = NULL;
	(void)json_object_set_new(object, "apiVersion", json_string(list->api_version));
	(void)json_object_set_new(object, "kind", json_string(list->kind));
	json_t *meta = json_object_get(object, "metadata");
	if (meta != NULL)
		(void)json_object_del(meta, "managedFields");
	text = json_dumps(object, JSON_COMPACT);
	if (text == NULL)
		return false;
	bool good = printf("---\n%s\n", text) > 0;
	free(text);
	return good;
}

static err_status print_page(struct scheduler *s, const struct list *list, const char *path,
			     char **ret_continue, struct err *err)
{
	AUTO(json_decrefp) json_t *page = NULL;
	struct k8s_request request = { .method = "GET", .path = str_of(path) };
	if (k8s_call_json(s->client, &request, &page, err) != ERR_OK)
		return err_wrap(err, "%s", list->kind);
	json_t *items = json_object_get(page, "items");
	for (size_t i = 0; i < json_array_size(items); i++) {
		if (!print_object(list, json_array_get(items, i)))
			return err_set(err, ERR_IO, "the output could not be written");
	}
	const char *next = json_cstr(page, "metadata.continue");
	*ret_continue = next[0] == 0 ? NULL : arena_cstr(s->arena, str_of(next));
	return ERR_OK;
}

static err_status print_list(struct scheduler *s, const struct list *list, struct err *err)
{
	const char *path = list->path;
	for (;;) {
		char *next = NULL;
		err_status status = print_page(s, list, path, &next, err);
		if (status != ERR_OK || next == NULL)
			return status;
		struct str escaped = http_escape(s->arena, str_of(next));
		path = arena_printf(s->arena, "%s&continue=" STR_FMT, list->path, STR_ARG(escaped));
		if (path == NULL)
			return err_set(err, ERR_LIMIT, "too many pages");
	}
}

err_status dump_print(struct scheduler *s, struct err *err)
{
	for (size_t i = 0; i < SCHED_STORAGES; i++) {
		const struct feed_storage *feed = &FEED_STORAGES[i];
		const struct list list = { feed->kind, feed->api_version,
					   arena_printf(s->arena, "%s?limit=500", feed->path) };
		if (print_list(s, &list, err) != ERR_OK)
			return err->status;
	}
	for (size_t i = 0; i < ARRAY_COUNT(LISTS); i++) {
		err_status status = print_list(s, &LISTS[i], err);
		bool is_optional = strcmp(LISTS[i].api_version, "gpuaas.io/v1alpha1") == 0;
		if (status == ERR_NOT_FOUND && is_optional) // GPUaaS is not installed here
			continue;
		if (status != ERR_OK)
			return status;
	}
	return fflush(stdout) == 0 ? ERR_OK
				   : err_set(err, ERR_IO, "the output could not be written");
}
