// SPDX-License-Identifier: Apache-2.0
// What nodes hold, counted over the requests of all tenants.
#include "api/views.h"
#include "check.h"

enum { NODES = 3 };

static const struct {
	const char *node, *phase; // NULL: not there yet
	int gpus;
} requests[] = {
	{ "n1", "Running", 4 },   { "n1", "Pending", 2 }, { "n1", "Succeeded", 8 },
	{ "n1", "Cancelled", 1 }, { "n3", "Running", 1 }, { "gone", "Running", 2 },
	{ NULL, NULL, 3 },        { NULL, "Pending", 3 }, { "n3", NULL, 5 },
};

static void on_done(void *arg, const struct object_result *result)
{
	int *made = arg;
	*made += result->status == ERR_OK ? 1 : 0;
}

static void create(struct objects *objects, object_kind kind, const char *name, json_t *body,
		   int *made)
{
	struct object_write write = { .kind = kind,
				      .namespace_ = kind == OBJECT_NODE ? STR("") : STR("red"),
				      .name = str_of(name),
				      .body = body,
				      .on_done = on_done,
				      .arg = made };
	objects_create(objects, &write);
	json_decref(body);
}

static void make_all(struct objects *objects, int *made)
{
	static const char *const names[NODES] = { "n1", "n2", "n3" };
	for (size_t i = 0; i < NODES; i++)
		create(objects, OBJECT_NODE, names[i],
		       json_pack("{s:{s:s}, s:{s:[{s:b}, {s:b}, {}]}}", "metadata", "name",
				 names[i], "status", "devices", "healthy", 1, "healthy", 0),
		       made);
	for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "r%zu", i);
		create(objects, OBJECT_REQUEST, name,
		       json_pack("{s:{s:s, s:s}, s:{s:i}, s:{s:s*, s:s*}}", "metadata", "name",
				 name, "namespace", "red", "spec", "gpus", requests[i].gpus,
				 "status", "nodeName", requests[i].node, "phase",
				 requests[i].phase),
		       made);
	}
}

static void check_held(struct check *c, struct loop *loop, struct objects *objects)
{
	static const int64_t wanted[NODES] = { 6, 0, 6 };
	json_t *nodes[NODES];
	int64_t held[NODES];
	int made = 0;
	make_all(objects, &made);
	loop_run_once(loop, 0);
	CHECK_INT(c, "all are made", made, NODES + ARRAY_COUNT(requests));
	for (size_t i = 0; i < NODES; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "n%zu", i + 1);
		nodes[i] = objects_find(objects, OBJECT_NODE, STR(""), str_of(name));
	}
	view_held_gpus(objects, nodes, NODES, held);
	for (size_t i = 0; i < NODES; i++) {
		AUTO(json_decrefp) json_t *view = view_node(nodes[i], held[i]);
		CHECK_INT(c, json_cstr(view, "name"), json_int(view, "held_gpus", -1), wanted[i]);
		CHECK_INT(c, "GPUs", json_int(view, "gpus", -1), 3);
		CHECK_INT(c, "what is not known to be healthy is not",
			  json_int(view, "healthy_gpus", -1), 1);
	}
}

// Which pod speaks for a gang.
static void check_gang(struct check *c, struct loop *loop, struct objects *objects)
{
	static const struct {
		const char *name, *phase, *speaker; // as soon as it is there
	} pods[] = { { "g-0", "Running", "g-0" },
		     { "g-1", "Pending", "g-1" },
		     { "g-2", "Failed", "g-1" },
		     { "g-3", "Pending", "g-1" } };
	int made = 0;
	create(objects, OBJECT_REQUEST, "g",
	       json_pack("{s:{s:s, s:s}, s:{s:i, s:i}, s:{s:s}}", "metadata", "name", "g",
			 "namespace", "red", "spec", "gpus", 1, "gang", 4, "status", "jobUID",
			 "ju"),
	       &made);
	for (size_t i = 0; i < ARRAY_COUNT(pods); i++) {
		create(objects, OBJECT_POD, pods[i].name,
		       json_pack("{s:{s:s, s:s, s:[{s:s}]}, s:{s:s}}", "metadata", "name",
				 pods[i].name, "namespace", "red", "ownerReferences", "uid", "ju",
				 "status", "phase", pods[i].phase),
		       &made);
		loop_run_once(loop, 0);
		const json_t *request = objects_find(objects, OBJECT_REQUEST, STR("red"), STR("g"));
		CHECK_STR(c, pods[i].name,
			  json_text(view_request_pod(objects, request), "metadata.name"),
			  pods[i].speaker);
	}
}

int main(void)
{
	struct check c = { 0, 0 };
	struct loop *loop = NULL;
	struct sql *sql = NULL;
	struct objects *objects = NULL;
	struct err err = { 0 };
	if (loop_new(&loop, &err) != ERR_OK || sql_open("sqlite::memory:", &sql, &err) != ERR_OK ||
	    sql_migrate(sql, "store", store_migrations, store_migration_count, &err) != ERR_OK ||
	    objects_new(loop, NULL, sql, &objects, &err) != ERR_OK) {
		printf("%s\n", err.text);
		return 1;
	}
	check_held(&c, loop, objects);
	check_gang(&c, loop, objects);
	objects_free(objects);
	sql_close(sql);
	loop_free(loop);
	return check_done(&c);
}
