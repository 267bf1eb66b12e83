// SPDX-License-Identifier: Apache-2.0
// Who is let through a tenant's quota: one look at all its requests, however many changed. What is
// let through is added to the queue of requests, and what must wait if it does not say so yet.
#include "daemons/server/controllers_state.h"

enum { LOAD_ARENA_BYTES = 64 * 1024 * 1024 };

// Whether the status says why, as it is now: the quota may have changed.
static bool says_it_waits(const json_t *request, const struct quota_entry *entry,
			  const struct tenant_quota *quota)
{
	struct err err;
	struct str reason = json_text(request, "status.reason");
	if (!entry->is_too_large)
		return str_eq_c(reason, "QuotaExceeded");
	return str_eq_c(reason, "QuotaTooSmall") &&
	       quota_check_alone(quota, &entry->need, &err) != ERR_OK &&
	       str_eq_c(json_text(request, "status.message"), err.text);
}

static void take_entry(struct controllers *controllers, struct str tenant,
		       const struct tenant_quota *quota, const struct quota_entry *entry)
{
	char text[OBJECT_KEY_BYTES];
	struct str key = object_key(tenant, entry->name, text);
	json_t *request = objects_find(controllers->objects, OBJECT_REQUEST, tenant, entry->name);
	if (key.len == 0 || request == NULL || view_request_holds(controllers->objects, request))
		return;
	if (entry->is_admitted)
		(void)map_set(controllers->admitted, key, controllers);
	if (entry->is_admitted || !says_it_waits(request, entry, quota))
		workqueue_add(controllers->requests, key);
}

void admission_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	struct pass *pass = pass_new(controllers, controllers->admissions, key);
	AUTO(arena_freep) struct arena *arena = arena_new(LOAD_ARENA_BYTES);
	struct tenant_load load = { 0 };
	struct str none, tenant;
	pass_split(pass, &none, &tenant);
	if (!objects_are_synced(controllers->objects)) {
		pass_end(pass, NULL); // all objects are told once more when they are
		return;
	}
	if (arena == NULL ||
	    !view_tenant_load(controllers->objects, arena, tenant, controllers->admitted, &load)) {
		struct err err;
		(void)err_set(&err, ERR_LIMIT, "no memory to count the requests of the tenant");
		pass_end(pass, &err);
		return;
	}
	const json_t *owner = objects_find(controllers->objects, OBJECT_TENANT, STR(""), tenant);
	struct tenant_quota quota;
	view_tenant_quota(owner, &quota);
	for (size_t i = 0; i < load.count; i++) {
		load.entries[i].is_admitted = load.entries[i].is_admitted && owner != NULL;
		take_entry(controllers, tenant, &quota, &load.entries[i]);
	}
	pass_end(pass, NULL);
}
