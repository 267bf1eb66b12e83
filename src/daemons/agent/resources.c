// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/resources.h"

#include "net/grpc.h"
#include "sys/log.h"

#include <stdlib.h>

static const uint64_t WITHDRAW_NS = 5000 * UINT64_C(1000000); // the kubelet has read the empty list

struct entry {
	struct plugin *plugin;    // NULL: free
	uint64_t withdrawn_at_ns; // 0: offered
};

struct resources {
	struct loop *loop;
	struct plugin_config config;
	struct entry entries[OFFER_RESOURCES_MAX * 2];
	struct loop_timer *timer;
	struct plugin_stats gone; // counters of those that were withdrawn
	bool has_offered;         // since the start; it may have been nothing
};

static void add_counts(struct plugin_stats *sum, const struct plugin_stats *part)
{
	sum->registrations += part->registrations;
	sum->failures += part->failures;
	sum->lists += part->lists;
	sum->preferred += part->preferred;
	sum->allocations += part->allocations;
	sum->refusals += part->refusals;
}

static void close_entry(struct resources *resources, struct entry *entry)
{
	struct plugin_stats stats;
	plugin_stats(entry->plugin, &stats);
	add_counts(&resources->gone, &stats);
	plugin_free(entry->plugin);
	*entry = (struct entry){ 0 };
}

static void on_timer(void *arg)
{
	struct resources *resources = arg;
	uint64_t now_ns = loop_now_ns(resources->loop);
	bool any = false;
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		struct entry *entry = &resources->entries[i];
		if (entry->withdrawn_at_ns == 0)
			continue;
		if (now_ns - entry->withdrawn_at_ns >= WITHDRAW_NS)
			close_entry(resources, entry);
		else
			any = true;
	}
	if (any)
		loop_timer_set(resources->timer, WITHDRAW_NS / 4);
}

err_status resources_new(struct loop *loop, const struct plugin_config *config,
			 struct resources **ret, struct err *err)
{
	struct resources *resources = calloc(1, sizeof *resources);
	if (resources == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the device plugins");
	resources->loop = loop;
	resources->config = *config;
	resources->timer = loop_timer_new(loop, on_timer, resources);
	*ret = resources;
	return ERR_OK;
}

void resources_free(struct resources *resources)
{
	if (resources == NULL)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++)
		plugin_free(resources->entries[i].plugin);
	loop_timer_free(resources->timer);
	free(resources);
}

// The entry of that resource, else a free one with a new plugin; NULL: no memory or no place.
static struct entry *entry_of(struct resources *resources, const char *name)
{
	struct entry *free_entry = NULL;
	struct err err;
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		struct entry *entry = &resources->entries[i];
		if (entry->plugin == NULL)
			free_entry = free_entry == NULL ? entry : free_entry;
		else if (strcmp(plugin_resource(entry->plugin), name) == 0)
			return entry;
	}
	struct plugin_config config = resources->config;
	config.resource = name;
	if (free_entry == NULL ||
	    plugin_new(resources->loop, &config, &free_entry->plugin, &err) != ERR_OK) {
		log_kv(LOG_ERROR, "resource is not offered: no place", "resource", name, NULL);
		return NULL;
	}
	return free_entry;
}

static void withdraw(struct resources *resources, struct entry *entry)
{
	log_kv(LOG_INFO, "resource is withdrawn", "resource", plugin_resource(entry->plugin), NULL);
	plugin_set_list(entry->plugin, STR(""));
	entry->withdrawn_at_ns = loop_now_ns(resources->loop);
	loop_timer_set(resources->timer, WITHDRAW_NS);
}

void resources_offer(struct resources *resources, const struct offer *offer,
		     const struct monitor_gpu *gpus, const char *const held_back[GPU_MAX])
{
	const char *names[OFFER_RESOURCES_MAX];
	bool is_named[ARRAY_COUNT(resources->entries)] = { false };
	size_t count = offer_resources(offer, names);
	resources->has_offered = true;
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_done) struct buf list = { .limit = GRPC_MESSAGE_MAX_BYTES };
		struct entry *entry = entry_of(resources, names[i]);
		if (entry == NULL)
			continue;
		is_named[entry - resources->entries] = true;
		entry->withdrawn_at_ns = 0;
		offer_put_list(&list, offer, names[i], gpus, held_back);
		ASSERT(buf_ok(&list)); // the offer was planned within the limit
		plugin_set_list(entry->plugin, buf_str(&list));
	}
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		struct entry *entry = &resources->entries[i];
		if (entry->plugin != NULL && !is_named[i] && entry->withdrawn_at_ns == 0)
			withdraw(resources, entry);
	}
}

void resources_restart(struct resources *resources)
{
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		if (resources->entries[i].plugin != NULL)
			plugin_restart(resources->entries[i].plugin);
	}
}

void resources_check_sockets(struct resources *resources)
{
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		struct plugin *plugin = resources->entries[i].plugin;
		if (plugin == NULL || !plugin_has_lost_socket(plugin))
			continue;
		log_kv(LOG_INFO, "own socket is gone", "resource", plugin_resource(plugin), NULL);
		plugin_restart(plugin);
	}
}

void resources_ask_again(struct resources *resources)
{
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		if (resources->entries[i].plugin != NULL)
			plugin_ask_again(resources->entries[i].plugin);
	}
}

void resources_stats(const struct resources *resources, struct plugin_stats *ret)
{
	struct plugin_stats sum = resources->gone;
	sum.is_registered = sum.has_stream = resources->has_offered;
	for (size_t i = 0; i < ARRAY_COUNT(resources->entries); i++) {
		const struct entry *entry = &resources->entries[i];
		struct plugin_stats part;
		if (entry->plugin == NULL)
			continue;
		plugin_stats(entry->plugin, &part);
		add_counts(&sum, &part);
		if (entry->withdrawn_at_ns != 0)
			continue;
		sum.is_registered = sum.is_registered && part.is_registered;
		sum.has_stream = sum.has_stream && part.has_stream;
	}
	*ret = sum;
}
