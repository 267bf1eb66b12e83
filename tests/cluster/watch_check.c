// SPDX-License-Identifier: Apache-2.0
// A cache as the scheduler keeps it, of pods (protobuf) and ConfigMaps (JSON, once streamed and
// once by pages) of one namespace, for faults_test.py. A line on standard input asks for what it
// holds: "CACHE NAME VERSION" a line, then "." with the number of failures told so far. Ends with
// its input.
#include "base/map.h"
#include "k8s/kobj_types.h"
#include "k8s/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CACHES = 3, FAILURES_SHOWN_MAX = 400 };
#define PLACE "/api/v1/namespaces/faults/"

struct entry {
	unsigned generation;
	char version[32];
};
struct cache {
	const char *name;
	struct watch *watch;
	struct map *entries;
	unsigned generation, failures;
};
struct bench {
	struct loop *loop;
	struct cache caches[CACHES];
	bool is_over;
};

static void entry_drop(struct cache *cache, struct str name)
{
	free(map_remove(cache->entries, name));
}

static void entry_keep(struct cache *cache, struct str name, struct str version)
{
	struct entry *entry = map_find(cache->entries, name);
	if (entry == NULL) {
		entry = calloc(1, sizeof *entry);
		ASSERT(entry != NULL);
		(void)map_set(cache->entries, name, entry);
	}
	entry->generation = cache->generation;
	(void)snprintf(entry->version, sizeof entry->version, STR_FMT, STR_ARG(version));
}

static void take(struct cache *cache, const struct watch_item *item, struct str name,
		 struct str version)
{
	if (name.len == 0)
		watch_doubt(cache->watch);
	else if (item->event == WATCH_DELETED)
		entry_drop(cache, name);
	else
		entry_keep(cache, name, version);
}

static void on_object(struct cache *cache, const struct watch_item *item)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	AUTO(json_decrefp) json_t *json = NULL;
	struct kobj_pod pod = { 0 };
	struct err err = { 0 };
	struct str message;
	if (item->is_protobuf) {
		if (!kobj_unwrap(item->object, &message) ||
		    kobj_from_protobuf(arena, &KOBJ_POD, message, NULL, &pod, &err) != ERR_OK)
			pod.meta.name = STR("");
		take(cache, item, pod.meta.name, pod.meta.resource_version);
	} else {
		if (json_parse(item->object, &json, &err) != ERR_OK)
			ASSERT(json == NULL); // no name, and so in doubt
		take(cache, item, json_text(json, "metadata.name"),
		     json_text(json, "metadata.resourceVersion"));
	}
}

static void sweep(struct cache *cache)
{
	struct str name;
	void *entry;
	for (size_t i = 0; map_next(cache->entries, &i, &name, &entry);) {
		if (((struct entry *)entry)->generation != cache->generation)
			entry_drop(cache, name);
	}
}

static void on_item(void *arg, const struct watch_item *item)
{
	struct cache *cache = arg;
	switch (item->event) {
	case WATCH_ADDED:
	case WATCH_MODIFIED:
	case WATCH_DELETED: on_object(cache, item); break;
	case WATCH_RESYNC: cache->generation++; break;
	case WATCH_SYNCED: sweep(cache); break;
	case WATCH_FAILED:
		if (cache->failures++ < FAILURES_SHOWN_MAX)
			(void)fprintf(stderr, "%s: %s\n", cache->name, item->err->text);
		break;
	}
}

static void on_question(void *arg, unsigned events)
{
	struct bench *b = arg;
	char line[64];
	unsigned failures = 0;
	(void)events;
	b->is_over = read(STDIN_FILENO, line, sizeof line) <= 0;
	for (size_t i = 0; i < CACHES && !b->is_over; i++) {
		struct str name;
		void *entry;
		for (size_t k = 0; map_next(b->caches[i].entries, &k, &name, &entry);)
			printf("%s " STR_FMT " %s\n", b->caches[i].name, STR_ARG(name),
			       ((struct entry *)entry)->version);
		failures += b->caches[i].failures;
	}
	printf(". %u\n", failures);
	(void)fflush(stdout);
}

static void cache_start(struct cache *cache, struct k8s_client *client, struct watch_config config)
{
	config.fn = on_item;
	config.arg = cache;
	cache->entries = map_new(0);
	cache->watch = watch_start(client, &config);
}

static void watch_all(struct bench *b, struct k8s_client *client)
{
	static const struct watch_config CONFIGS[CACHES] = {
		{ .path = PLACE "pods", .protobuf = true },
		{ .path = PLACE "configmaps" },
		{ .path = PLACE "configmaps", .paged = true },
	};
	static const char *const NAMES[CACHES] = { "pods", "streamed", "paged" };
	for (size_t i = 0; i < CACHES; i++) {
		b->caches[i].name = NAMES[i];
		cache_start(&b->caches[i], client, CONFIGS[i]);
	}
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct err err = { 0 };
	struct k8s_config config;
	struct k8s_client *client = NULL;
	struct loop_fd *fd = NULL;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	if (argc != 2 || loop_new(&b.loop, &err) != ERR_OK ||
	    k8s_config_load_file(arena, argv[1], &config, &err) != ERR_OK ||
	    k8s_client_new(b.loop, &config, "watch-check", &client, &err) != ERR_OK ||
	    loop_fd_new(b.loop, STDIN_FILENO, LOOP_READ, on_question, &b, &fd, &err) != ERR_OK) {
		(void)fprintf(stderr, "watch_check KUBECONFIG: %s\n", err.text);
		return 1;
	}
	k8s_client_set_ping(client, UINT64_C(1500000000), UINT64_C(3000000000));
	watch_all(&b, client);
	while (!b.is_over)
		loop_run_once(b.loop, 1000);
	for (size_t i = 0; i < CACHES; i++) {
		watch_stop(b.caches[i].watch);
		b.caches[i].generation++;
		sweep(&b.caches[i]); // frees them all
		map_free(b.caches[i].entries);
	}
	loop_fd_free(fd);
	k8s_client_free(client);
	loop_run_once(b.loop, 0);
	loop_free(b.loop);
	return 0;
}
