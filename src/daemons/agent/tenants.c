// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/tenants.h"

#include <stdio.h>
#include <stdlib.h>

enum { TENANTS_MAX = 1024 };
static const uint64_t RETRY_NS = 5 * UINT64_C(1000000000);
static const uint64_t MAX_AGE_NS = 300 * UINT64_C(1000000000);

struct entry {
	struct tenants *tenants;
	char namespace_[TENANT_BYTES], tenant[TENANT_BYTES];
	bool is_known;
	uint64_t asked_ns;
	struct k8s_call *call; // under way
};

struct tenants {
	struct k8s_client *client;
	loop_fn *on_change;
	void *arg;
	struct entry *entries[TENANTS_MAX];
	size_t count;
};

struct tenants *tenants_new(struct k8s_client *client, loop_fn *on_change, void *arg)
{
	struct tenants *tenants = calloc(1, sizeof *tenants);
	if (tenants == NULL)
		return NULL;
	tenants->client = client;
	tenants->on_change = on_change;
	tenants->arg = arg;
	return tenants;
}

void tenants_free(struct tenants *tenants)
{
	if (tenants == NULL)
		return;
	for (size_t i = 0; i < tenants->count; i++) {
		k8s_call_cancel(tenants->entries[i]->call);
		free(tenants->entries[i]);
	}
	free(tenants);
}

bool tenants_read(struct str body, const char *namespace_, char ret_tenant[TENANT_BYTES])
{
	AUTO(json_decrefp) json_t *object = NULL;
	if (json_parse(body, &object, NULL) != ERR_OK)
		return false;
	const char *label = json_string_value(
		json_object_get(json_at(object, "metadata.labels"), "gpuaas.io/tenant"));
	struct str tenant = str_of(label == NULL || *label == '\0' ? namespace_ : label);
	if (tenant.len == 0 || tenant.len >= TENANT_BYTES)
		return false;
	memcpy(ret_tenant, tenant.data, tenant.len + 1);
	return true;
}

static void on_done(void *arg, const struct k8s_result *result)
{
	struct entry *entry = arg;
	entry->call = NULL;
	if (result->status == ERR_NOT_FOUND) // deleted: whoever ran there went by its name
		(void)snprintf(entry->tenant, sizeof entry->tenant, "%s", entry->namespace_);
	else if (result->status != ERR_OK ||
		 !tenants_read(result->body, entry->namespace_, entry->tenant))
		return; // asked again after RETRY_NS
	entry->is_known = true;
	entry->tenants->on_change(entry->tenants->arg);
}

static void ask(struct entry *entry)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/api/v1/namespaces/%s", entry->namespace_);
	const struct k8s_request request = {
		.method = "GET", .path = str_of(path), .on_done = on_done, .arg = entry
	};
	entry->asked_ns = loop_now_ns(k8s_client_loop(entry->tenants->client));
	entry->call = k8s_call_start(entry->tenants->client, &request);
}

// The table is full: the one that was not asked about for longest gives its place.
static struct entry *oldest(struct tenants *tenants)
{
	struct entry *found = NULL;
	for (size_t i = 0; i < tenants->count; i++) {
		struct entry *entry = tenants->entries[i];
		if (entry->call == NULL && (found == NULL || entry->asked_ns < found->asked_ns))
			found = entry;
	}
	return found;
}

static struct entry *entry_of(struct tenants *tenants, const char *namespace_)
{
	for (size_t i = 0; i < tenants->count; i++) {
		if (strcmp(tenants->entries[i]->namespace_, namespace_) == 0)
			return tenants->entries[i];
	}
	if (!str_is_dns_label(str_of(namespace_)))
		return NULL;
	struct entry *entry = tenants->count < TENANTS_MAX ? calloc(1, sizeof *entry)
							   : oldest(tenants);
	if (entry == NULL)
		return NULL;
	if (tenants->count < TENANTS_MAX)
		tenants->entries[tenants->count++] = entry;
	*entry = (struct entry){ .tenants = tenants };
	(void)snprintf(entry->namespace_, sizeof entry->namespace_, "%s", namespace_);
	return entry;
}

const char *tenants_get(struct tenants *tenants, const char *namespace_)
{
	struct entry *entry = entry_of(tenants, namespace_);
	if (entry == NULL)
		return NULL;
	uint64_t age_ns = loop_now_ns(k8s_client_loop(tenants->client)) - entry->asked_ns;
	bool is_due = entry->asked_ns == 0 || age_ns > (entry->is_known ? MAX_AGE_NS : RETRY_NS);
	if (entry->call == NULL && is_due)
		ask(entry);
	return entry->is_known ? entry->tenant : NULL;
}
