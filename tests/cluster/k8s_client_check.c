// SPDX-License-Identifier: Apache-2.0
// The Kubernetes client against a real API server. k8s_client_test.py starts etcd and the API
// server and runs this program; for what must be done to them the program writes "?stop",
// "?start" or "?compact" to standard output and goes on when a line comes back, its loop running
// meanwhile. Last line: "N passed, N failed".
#include "check.h"
#include "k8s/client.h"
#include "k8s/event.h"
#include "k8s/kobj_types.h"
#include "k8s/lease.h"
#include "k8s/path.h"
#include "k8s/watch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define NAMESPACE "client-test"

struct bench {
	struct check c;
	const char *kubeconfig;
	struct loop *loop;
	struct arena *config_arena;
	struct k8s_config config;
	struct k8s_client *client;
	bool is_answered; // by whoever runs us
};

// What a watch has told: the objects there are, and counts.
struct mirror {
	struct bench *b;
	struct watch *watch;
	char text[4000]; // "A:name " "M:name " "D:name " "R " "S " "F "
	int object_count, resync_count, synced_count, failed_count, deleted_count;
	char last_error[400];
};

static uint64_t now(const struct bench *b) { return world_mono_ns(loop_world(b->loop)); }

static void run_for(struct bench *b, uint64_t duration_ns)
{
	uint64_t end_ns = now(b) + duration_ns;
	while (now(b) < end_ns)
		loop_run_once(b->loop, 20);
}

static void on_answer(void *arg, unsigned events)
{
	struct bench *b = arg;
	char line[64];
	(void)events;
	b->is_answered = read(STDIN_FILENO, line, sizeof line) > 0;
	ASSERT(b->is_answered);
}

// Has something done to the servers.
static void ask(struct bench *b, const char *what)
{
	struct loop_fd *fd = NULL;
	struct err err = { 0 };
	printf("?%s\n", what);
	(void)fflush(stdout);
	b->is_answered = false;
	err_status status = loop_fd_new(b->loop, STDIN_FILENO, LOOP_READ, on_answer, b, &fd, &err);
	ASSERT(status == ERR_OK);
	while (!b->is_answered)
		loop_run_once(b->loop, 100);
	loop_fd_free(fd);
}

static err_status call(struct bench *b, const char *method, const char *path, const char *type,
		       const char *body, struct err *err)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct k8s_request request = {
		.method = method, .path = str_of(path), .content_type = type, .body = str_of(body)
	};
	if (err != NULL)
		err->text[0] = '\0';
	return k8s_call_json(b->client, &request, &value, err);
}

static void must(struct bench *b, const char *name, err_status status, const struct err *err)
{
	CHECK_INT(&b->c, name, status, ERR_OK);
	if (status != ERR_OK)
		printf("    %s\n", err->text);
}

static void create_pod(struct bench *b, const char *name)
{
	char body[600];
	struct err err = { 0 };
	(void)snprintf(body, sizeof body,
		       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},"
		       "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x.local/y:1\","
		       "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]}}",
		       name);
	must(b, name, call(b, "POST", "/api/v1/namespaces/" NAMESPACE "/pods", NULL, body, &err),
	     &err);
}

static void create_config(struct bench *b, const char *name)
{
	char body[200];
	struct err err = { 0 };
	(void)snprintf(
		body, sizeof body,
		"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"}}",
		name);
	must(b, name,
	     call(b, "POST", "/api/v1/namespaces/" NAMESPACE "/configmaps", NULL, body, &err),
	     &err);
}

// ---- mirrors

static struct str name_of(struct mirror *m, struct arena *arena, const struct watch_item *item)
{
	struct kobj_pod pod = { 0 };
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *value = NULL;
	err_status status;
	if (item->is_protobuf)
		status = kobj_from_protobuf(arena, &KOBJ_POD, item->object, NULL, &pod, &err);
	else
		status = json_parse(item->object, &value, &err);
	must(m->b, "the object can be decoded", status, &err);
	return item->is_protobuf ? pod.meta.name
				 : arena_dup(arena, json_text(value, "metadata.name"));
}

static void on_item(void *arg, const struct watch_item *item)
{
	static const char letters[] = { 'A', 'M', 'D', 'R', 'S', 'F' };
	struct mirror *m = arg;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct str name = { "", 0 };
	size_t used = strlen(m->text);
	if (item->object.len > 0)
		name = name_of(m, arena, item);
	(void)snprintf(m->text + used, sizeof m->text - used, "%c%s" STR_FMT " ",
		       letters[item->event], name.len > 0 ? ":" : "", STR_ARG(name));
	m->object_count += item->event == WATCH_ADDED ? 1 : item->event == WATCH_DELETED ? -1 : 0;
	m->deleted_count += item->event == WATCH_DELETED;
	m->synced_count += item->event == WATCH_SYNCED;
	m->failed_count += item->event == WATCH_FAILED;
	if (item->event == WATCH_RESYNC) {
		m->resync_count++;
		m->object_count = 0;
	}
	if (item->event == WATCH_FAILED)
		(void)snprintf(m->last_error, sizeof m->last_error, "%s", item->err->text);
}

static void mirror_start(struct mirror *m, struct bench *b, struct watch_config config)
{
	*m = (struct mirror){ .b = b };
	config.fn = on_item;
	config.arg = m;
	m->watch = watch_start(b->client, &config);
}

// Waits until text is in what the watch has told.
static void told(struct mirror *m, const char *text)
{
	uint64_t end_ns = now(m->b) + 60 * SECOND_NS;
	while (strstr(m->text, text) == NULL && now(m->b) < end_ns)
		loop_run_once(m->b->loop, 20);
	CHECK(&m->b->c, text, strstr(m->text, text) != NULL);
	if (strstr(m->text, text) == NULL)
		printf("    told: %s\n    last error: %s\n", m->text, m->last_error);
}

static const struct watch_config pods_json = { .path = "/api/v1/namespaces/" NAMESPACE "/pods" };
static const struct watch_config pods_protobuf = { .path = "/api/v1/namespaces/" NAMESPACE "/pods",
						   .protobuf = true };
static const struct watch_config configs_paged = {
	.path = "/api/v1/namespaces/" NAMESPACE "/configmaps",
	.selector = "fieldSelector=metadata.name!%3Dkube-root-ca.crt",
	.paged = true
};

// ---- tests

static void test_calls(struct bench *b)
{
	struct err err = { 0 };
	must(b, "namespace",
	     call(b, "POST", "/api/v1/namespaces", NULL,
		  "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
		  "\"" NAMESPACE "\"}}",
		  &err),
	     &err);
	CHECK_INT(&b->c, "twice",
		  call(b, "POST", "/api/v1/namespaces", NULL,
		       "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
		       "\"" NAMESPACE "\"}}",
		       &err),
		  ERR_CONFLICT);
	CHECK_STR(&b->c, "twice", str_of(err.text),
		  "namespaces \"" NAMESPACE "\" already exists (409 AlreadyExists)");
	CHECK_INT(&b->c, "absent",
		  call(b, "GET", "/api/v1/namespaces/" NAMESPACE "/pods/none", NULL, "", &err),
		  ERR_NOT_FOUND);
	CHECK_INT(&b->c, "invalid",
		  call(b, "POST", "/api/v1/namespaces/" NAMESPACE "/pods", NULL,
		       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"A\"},"
		       "\"spec\":{\"containers\":[]}}",
		       &err),
		  ERR_INVALID);
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct str body;
	struct k8s_request absent = { .method = "GET",
				      .path = STR("/api/v1/namespaces/" NAMESPACE "/pods/none"),
				      .accept = K8S_PROTOBUF };
	CHECK_INT(&b->c, "a Status in protobuf",
		  k8s_call_wait(b->client, &absent, arena, &body, &err), ERR_NOT_FOUND);
	CHECK_STR(&b->c, "a Status in protobuf", str_of(err.text),
		  "pods \"none\" not found (404 NotFound)");
	absent.impersonate_user = "anna";
	CHECK_INT(&b->c, "impersonation", k8s_call_wait(b->client, &absent, arena, &body, &err),
		  ERR_DENIED);
}

static void test_encodings(struct bench *b)
{
	struct mirror json, protobuf;
	struct err err = { 0 };
	create_pod(b, "one");
	create_pod(b, "two");
	mirror_start(&json, b, pods_json);
	mirror_start(&protobuf, b, pods_protobuf);
	struct mirror *both[] = { &json, &protobuf };
	for (size_t i = 0; i < 2; i++) {
		told(both[i], "R A:one A:two S ");
		CHECK(&b->c, "synced", watch_is_synced(both[i]->watch));
	}
	create_pod(b, "three");
	must(b, "patch",
	     call(b, "PATCH", "/api/v1/namespaces/" NAMESPACE "/pods/one", K8S_MERGE_PATCH,
		  "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", &err),
	     &err);
	must(b, "delete",
	     call(b, "DELETE", "/api/v1/namespaces/" NAMESPACE "/pods/two", NULL,
		  "{\"gracePeriodSeconds\":0}", &err),
	     &err);
	for (size_t i = 0; i < 2; i++) {
		told(both[i], "S A:three M:one M:two D:two "); // deletionTimestamp comes first
		CHECK_INT(&b->c, "no failure", both[i]->failed_count, 0);
		watch_stop(both[i]->watch);
	}
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct kobj_pod pod = { 0 };
	struct str body;
	struct k8s_request request = { .method = "GET",
				       .path = STR("/api/v1/namespaces/" NAMESPACE "/pods/one"),
				       .accept = K8S_PROTOBUF };
	must(b, "get", k8s_call_wait(b->client, &request, arena, &body, &err), &err);
	must(b, "decode", kobj_from_protobuf(arena, &KOBJ_POD, body, NULL, &pod, &err), &err);
	CHECK_STR(&b->c, "name", pod.meta.name, "one");
}

static void test_apply(struct bench *b)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	struct k8s_object_path path = { "v1", "configmaps", NAMESPACE, "applied", NULL };
	const char *first = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
			    "\"applied\"},\"data\":{\"k\":\"1\"}}";
	const char *second = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
			     "\"applied\"},\"data\":{\"k\":\"2\"}}";
	struct err err = { 0 };
	must(b, "apply",
	     call(b, "PATCH", k8s_apply_path(arena, &path, "a", false).data, K8S_APPLY_PATCH, first,
		  &err),
	     &err);
	CHECK_INT(&b->c, "conflict",
		  call(b, "PATCH", k8s_apply_path(arena, &path, "b", false).data, K8S_APPLY_PATCH,
		       second, &err),
		  ERR_CONFLICT);
	CHECK(&b->c, "says whose", strstr(err.text, "conflict with \"a\"") != NULL);
	must(b, "force",
	     call(b, "PATCH", k8s_apply_path(arena, &path, "b", true).data, K8S_APPLY_PATCH, second,
		  &err),
	     &err);
}

static void test_pages(struct bench *b)
{
	enum { COUNT = 1001 };
	struct mirror m;
	for (int i = 0; i < COUNT; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "page-%04d", i);
		create_config(b, name);
	}
	mirror_start(&m, b, configs_paged);
	uint64_t end_ns = now(b) + 30 * SECOND_NS;
	while (m.synced_count == 0 && now(b) < end_ns)
		loop_run_once(b->loop, 20);
	CHECK_INT(&b->c, "three pages", m.object_count, COUNT + 1); // and "applied"
	CHECK_INT(&b->c, "one list", m.resync_count, 1);
	watch_stop(m.watch);
}

static void test_events(struct bench *b)
{
	struct event_about about = { "v1", "Pod", NAMESPACE, "one", "uid-of-one" };
	struct err err = { 0 };
	struct event_sink *sink = event_sink_new(b->client, "gpuaas.io/test", "test-1");
	for (int i = 0; i < 4; i++) {
		event_put(sink, &about, "Warning", "Waiting", "Schedule", "no GPU is free");
		run_for(b, SECOND_NS / 2);
	}
	// A token for the second update would come after a minute; the first makes the series.
	AUTO(json_decrefp) json_t *list = NULL;
	struct k8s_request request = { .method = "GET",
				       .path = STR("/apis/events.k8s.io/v1/namespaces/" NAMESPACE
						   "/events") };
	must(b, "list", k8s_call_json(b->client, &request, &list, &err), &err);
	const json_t *items = json_at(list, "items");
	CHECK_INT(&b->c, "one Event", json_array_size(items), 1);
	const json_t *event = json_array_get(items, 0);
	CHECK_INT(&b->c, "series", json_int(event, "series.count", 0), 2);
	CHECK_STR(&b->c, "note", json_text(event, "note"), "no GPU is free");
	CHECK_STR(&b->c, "about", json_text(event, "regarding.name"), "one");
	event_put(sink, &about, "Normal", "Other", "Schedule", "another reason");
	run_for(b, SECOND_NS / 2);
	CHECK_INT(&b->c, "none dropped", event_dropped_count(sink), 0);
	event_sink_free(sink);
}

// ---- the server goes and comes back

static void test_restart(struct bench *b)
{
	struct mirror json, protobuf;
	mirror_start(&json, b, pods_json);
	mirror_start(&protobuf, b, pods_protobuf);
	told(&json, "S ");
	told(&protobuf, "S ");
	ask(b, "stop");
	run_for(b, 2 * SECOND_NS);
	CHECK(&b->c, "the failure is told", json.failed_count > 0 && protobuf.failed_count > 0);
	ask(b, "start");
	create_pod(b, "after-restart");
	told(&json, "A:after-restart ");
	told(&protobuf, "A:after-restart ");
	watch_stop(json.watch);
	watch_stop(protobuf.watch);
}

// Events have no watch cache in the API server: what etcd has compacted is gone for them.
static void test_gone(struct bench *b)
{
	static const struct watch_config events = { .path = "/api/v1/namespaces/" NAMESPACE
							    "/events" };
	struct mirror m;
	mirror_start(&m, b, events);
	told(&m, "S ");
	for (int i = 0; i < 5; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "gone-%d", i);
		create_config(b, name); // moves the store's revision past the watch's version
	}
	ask(b, "stop");
	ask(b, "compact");
	ask(b, "start");
	uint64_t end_ns = now(b) + 60 * SECOND_NS;
	while (m.synced_count < 2 && now(b) < end_ns)
		loop_run_once(b->loop, 20);
	CHECK_INT(&b->c, "listed anew", m.synced_count, 2);
	CHECK(&b->c, "by 410", strstr(m.last_error, "(410") != NULL);
	if (strstr(m.last_error, "(410") == NULL)
		printf("    last error: %s\n    told: %s\n", m.last_error, m.text);
	watch_stop(m.watch);

	// A page whose token is too old.
	AUTO(json_decrefp) json_t *page = NULL;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	struct err err = { 0 };
	struct k8s_request request = {
		.method = "GET", .path = STR("/api/v1/namespaces/" NAMESPACE "/events?limit=1")
	};
	must(b, "page", k8s_call_json(b->client, &request, &page, &err), &err);
	const char *next =
		arena_printf(arena, "/api/v1/namespaces/" NAMESPACE "/events?limit=1&continue=%s",
			     http_escape(arena, json_text(page, "metadata.continue")).data);
	create_config(b, "moves-on");
	ask(b, "compact");
	CHECK_INT(&b->c, "too old", call(b, "GET", next, NULL, "", &err), ERR_CONFLICT);
	CHECK(&b->c, "too old", strstr(err.text, "(410 Expired)") != NULL);
}

// ---- leadership

struct candidate {
	bool is_leader;
	int64_t transitions;
	int lost_count;
};

static void on_acquired(void *arg, int64_t transitions)
{
	struct candidate *me = arg;
	me->is_leader = true;
	me->transitions = transitions;
}

static void on_lost(void *arg)
{
	struct candidate *me = arg;
	me->is_leader = false;
	me->lost_count++;
}

static struct lease *candidate_start(struct bench *b, struct candidate *me)
{
	*me = (struct candidate){ 0 };
	struct lease_config config = { NAMESPACE, "leader", "candidate", on_acquired, on_lost, me };
	return lease_start(b->client, &config);
}

static uint64_t wait_leader(struct bench *b, const struct candidate *me)
{
	uint64_t start_ns = now(b);
	while (!me->is_leader && now(b) < start_ns + 30 * SECOND_NS)
		loop_run_once(b->loop, 10);
	CHECK(&b->c, "leads", me->is_leader);
	return now(b) - start_ns;
}

static void bench_open(struct bench *b)
{
	struct err err = { 0 };
	must(b, "loop", loop_new(&b->loop, &err), &err);
	b->config_arena = arena_new(1 << 20);
	must(b, "config", k8s_config_load_file(b->config_arena, b->kubeconfig, &b->config, &err),
	     &err);
	must(b, "client", k8s_client_new(b->loop, &b->config, "k8s-client-test", &b->client, &err),
	     &err);
}

static void bench_close(struct bench *b)
{
	k8s_client_free(b->client);
	loop_run_once(b->loop, 0);
	loop_free(b->loop);
	arena_free(b->config_arena);
}

// Leads in a process of its own and tells so by a byte; ended by SIGKILL.
static pid_t start_leader(const struct bench *b, int *ret_fd)
{
	int pipe_fds[2];
	ASSERT(pipe(pipe_fds) == 0);
	pid_t pid = fork();
	ASSERT(pid >= 0);
	if (pid > 0) {
		(void)close(pipe_fds[1]);
		*ret_fd = pipe_fds[0];
		return pid;
	}
	struct bench own = { .kubeconfig = b->kubeconfig };
	struct candidate me;
	bench_open(&own);
	(void)candidate_start(&own, &me);
	bool is_told = false;
	for (;;) {
		loop_run_once(own.loop, 100);
		if (me.is_leader && !is_told)
			is_told = write(pipe_fds[1], "L", 1) == 1;
	}
}

static void test_lease(struct bench *b)
{
	struct candidate first, second;
	struct lease *lease = candidate_start(b, &first);
	(void)wait_leader(b, &first);
	struct lease *other = candidate_start(b, &second);
	run_for(b, 6 * SECOND_NS);
	CHECK(&b->c, "one leader", first.is_leader && !second.is_leader);
	CHECK_INT(&b->c, "kept", first.lost_count, 0);
	lease_stop(lease);
	uint64_t took_ns = wait_leader(b, &second);
	printf("    given up to taken: %u ms\n", (unsigned)(took_ns / 1000000));
	CHECK_INT(&b->c, "fencing number", second.transitions, first.transitions + 1);
	lease_stop(other);

	char byte;
	int fd = -1;
	pid_t pid = start_leader(b, &fd);
	CHECK_INT(&b->c, "the other process leads", read(fd, &byte, 1), 1);
	lease = candidate_start(b, &first);
	run_for(b, 3 * SECOND_NS);
	CHECK(&b->c, "not while it lives", !first.is_leader);
	(void)kill(pid, SIGKILL);
	took_ns = wait_leader(b, &first);
	(void)waitpid(pid, NULL, 0);
	(void)close(fd);
	printf("    killed to taken: %u ms\n", (unsigned)(took_ns / 1000000));

	ask(b, "stop");
	run_for(b, 4 * SECOND_NS);
	CHECK(&b->c, "a leader that cannot renew is none", !first.is_leader);
	CHECK(&b->c, "and says why", lease_problem(lease)[0] != '\0');
	ask(b, "start");
	(void)wait_leader(b, &first);
	lease_stop(lease);
}

static void test_token(struct bench *b)
{
	struct k8s_config config = b->config;
	struct k8s_client *client = NULL;
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *value = NULL;
	struct k8s_request request = { .method = "GET", .path = STR("/api/v1/namespaces") };
	config.token = "wrong";
	must(b, "client", k8s_client_new(b->loop, &config, "t", &client, &err), &err);
	CHECK_INT(&b->c, "wrong token", k8s_call_json(client, &request, &value, &err),
		  ERR_UNAUTHENTICATED);
	k8s_client_free(client);
	config.ca_pem = (struct str){ NULL, 0 };
	must(b, "client", k8s_client_new(b->loop, &config, "t", &client, &err), &err);
	CHECK_INT(&b->c, "a certificate that nobody vouches for",
		  k8s_call_json(client, &request, &value, &err), ERR_PROTOCOL);
	CHECK(&b->c, "says so", strstr(err.text, "self-signed certificate") != NULL);
	k8s_client_free(client);
}

int main(int argc, char **argv)
{
	ASSERT(argc == 2);
	struct bench b = { .kubeconfig = argv[1] };
	bench_open(&b);
	test_calls(&b);
	test_encodings(&b);
	test_apply(&b);
	test_pages(&b);
	test_events(&b);
	test_token(&b);
	test_restart(&b);
	test_gone(&b);
	test_lease(&b);
	bench_close(&b);
	return check_done(&b.c);
}
