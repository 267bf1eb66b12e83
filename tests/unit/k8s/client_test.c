// SPDX-License-Identifier: Apache-2.0
// Client, watch, lease and events against a scripted API server on our own HTTP server; the real
// one is in tests/cluster.
#include "check.h"
#include "k8s/client.h"
#include "k8s/event.h"
#include "k8s/lease.h"
#include "k8s/watch.h"
#include "net/http_server.h"
#include "sys/fs.h"

#include <stdlib.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

// One answer of the server; the last one stays.
struct answer {
	int code;
	const char *body; // NULL: what was sent, with a resourceVersion, as of a stored object
	const char *retry_after;
	bool is_stream; // body first, then held open
	bool is_silent;
};

struct bench {
	struct check *c;
	struct loop *loop;
	struct http_server *server;
	struct k8s_client *client;
	char address[64], token_path[64];
	const struct answer *answers;
	size_t answer_count, request_count;
	char log[2000]; // "METHOD path?query token user;"
	char last_body[2000];
	char groups[200];
	struct http_exchange *held;
	struct http_exchange *silent[4]; // answered at the end
	size_t silent_count;
	int closed_count;
	// of watches
	char heard[400];
	struct watch *watch;
	bool stop_in_handler;
	// of leases
	int64_t led_transitions;
	int lost_count;
};

static void on_stream_closed(void *arg)
{
	struct bench *b = arg;
	b->held = NULL;
	b->closed_count++;
}

static void note_request(struct bench *b, const struct http_request *request)
{
	size_t used = strlen(b->log);
	struct str token = http_header_find(&request->headers, "Authorization");
	struct str user = http_header_find(&request->headers, "Impersonate-User");
	(void)snprintf(b->log + used, sizeof b->log - used,
		       STR_FMT " " STR_FMT "%s" STR_FMT " " STR_FMT " " STR_FMT ";",
		       STR_ARG(request->method), STR_ARG(request->path),
		       request->query.len > 0 ? "?" : "", STR_ARG(request->query),
		       STR_ARG(str_slice(token, 7, token.len)), STR_ARG(user));
	(void)snprintf(b->last_body, sizeof b->last_body, STR_FMT, STR_ARG(request->body));
	b->groups[0] = '\0';
	for (size_t i = 0; i < request->headers.count; i++)
		if (str_eq_nocase(request->headers.items[i].name, STR("Impersonate-Group"))) {
			used = strlen(b->groups);
			(void)snprintf(b->groups + used, sizeof b->groups - used, STR_FMT ",",
				       STR_ARG(request->headers.items[i].value));
		}
}

static void respond_stored(struct http_exchange *exchange, int code,
			   const struct http_request *request)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct err err;
	err_status status = json_parse(request->body, &object, &err);
	ASSERT(status == ERR_OK);
	int rc = json_object_set_new(json_at(object, "metadata"), "resourceVersion",
				     json_string("7"));
	ASSERT(rc == 0);
	http_respond(exchange, code, "application/json", NULL, json_dump(request->arena, object));
}

static void handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct bench *b = arg;
	size_t i = min_size(b->request_count++, b->answer_count - 1);
	const struct answer *answer = &b->answers[i];
	struct http_headers extra = { .count = 0 };
	note_request(b, request);
	if (answer->retry_after != NULL)
		CHECK(b->c, "header",
		      http_header_add(&extra, STR("Retry-After"), str_of(answer->retry_after)));
	if (answer->is_stream) {
		http_respond_start(exchange, answer->code, "application/json", on_stream_closed, b);
		http_respond_chunk(exchange, str_of(answer->body));
		b->held = exchange;
	} else if (answer->is_silent) {
		ASSERT(b->silent_count < ARRAY_COUNT(b->silent));
		b->silent[b->silent_count++] = exchange;
	} else if (answer->body == NULL) {
		respond_stored(exchange, answer->code, request);
	} else {
		http_respond(exchange, answer->code, "application/json", &extra,
			     str_of(answer->body));
	}
}

static void set_token(struct bench *b, const char *token)
{
	struct err err = { 0 };
	CHECK(b->c, "token", fs_write_atomic(b->token_path, str_of(token), 0600, &err) == ERR_OK);
}

static void bench_open(struct bench *b, struct check *c)
{
	struct err err = { 0 };
	*b = (struct bench){ .c = c };
	CHECK(c, "loop", loop_new(&b->loop, &err) == ERR_OK);
	struct http_server_config config = { .listen = "127.0.0.1:0", .handler = handle, .arg = b };
	CHECK(c, "server", http_server_new(b->loop, &config, &b->server, &err) == ERR_OK);
	(void)snprintf(b->address, sizeof b->address, "http://127.0.0.1:%u/prefix/",
		       (unsigned)http_server_port(b->server));
	(void)snprintf(b->token_path, sizeof b->token_path, "/tmp/client_test.%d", (int)getpid());
	set_token(b, "first\n");
	struct k8s_config k8s = { .server = b->address, .token_file = b->token_path };
	CHECK(c, "client", k8s_client_new(b->loop, &k8s, "test", &b->client, &err) == ERR_OK);
	CHECK_STR(c, "client", str_of(err.text), "");
}

static void bench_close(struct bench *b)
{
	k8s_client_free(b->client);
	for (size_t i = 0; i < b->silent_count; i++)
		http_respond(b->silent[i], 200, "text/plain", NULL, STR(""));
	http_server_free(b->server);
	loop_run_once(b->loop, 0);
	loop_free(b->loop);
	(void)unlink(b->token_path);
}

static void script(struct bench *b, const struct answer *answers, size_t count)
{
	b->answers = answers;
	b->answer_count = count;
	b->request_count = 0;
	b->log[0] = '\0';
	b->heard[0] = '\0';
}

static err_status get(struct bench *b, struct err *err)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct k8s_request request = { .method = "GET", .path = STR("/api/v1/pods?x=1") };
	return k8s_call_json(b->client, &request, &value, err);
}

static void test_errors(struct check *c)
{
	static const struct {
		const char *name;
		struct answer answer;
		err_status status;
		const char *text;
	} cases[] = {
		{ "ok", { 200, "{}", NULL, false, false }, ERR_OK, "" },
		{ "not JSON", { 200, "{", NULL, false, false }, ERR_INVALID, NULL },
		{ "status",
		  { 409,
		    "{\"kind\":\"Status\",\"code\":409,\"reason\":\"AlreadyExists\","
		    "\"message\":\"there\"}",
		    NULL, false, false },
		  ERR_CONFLICT,
		  "there (409 AlreadyExists)" },
		{ "the response's code counts",
		  { 403, "{\"kind\":\"Status\",\"code\":200,\"message\":\"no\"}", NULL, false,
		    false },
		  ERR_DENIED,
		  "no (403)" },
		{ "404", { 404, "", NULL, false, false }, ERR_NOT_FOUND, "no message (404)" },
		{ "500", { 500, "boom", NULL, false, false }, ERR_UNAVAILABLE, "boom (500)" },
		{ "redirect", { 302, "", NULL, false, false }, ERR_PROTOCOL, "no message (302)" },
		{ "bad envelope", { 200, "k8s", NULL, false, false }, ERR_INVALID, NULL },
	};
	struct bench b;
	bench_open(&b, c);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct err err = { 0 };
		script(&b, &cases[i].answer, 1);
		CHECK_INT(c, cases[i].name, get(&b, &err), cases[i].status);
		if (cases[i].text != NULL)
			CHECK_STR(c, cases[i].name, str_of(err.text), cases[i].text);
		CHECK_STR(c, cases[i].name, str_of(b.log), "GET /prefix/api/v1/pods?x=1 first ;");
	}
	bench_close(&b);
}

static void test_token(struct check *c)
{
	static const struct answer answers[] = { { 401, "", NULL, false, false },
						 { 200, "{}", NULL, false, false } };
	static const struct answer denied = { 401, "", NULL, false, false };
	struct bench b;
	struct err err = { 0 };
	bench_open(&b, c);
	set_token(&b, " second ");
	script(&b, answers, 2);
	CHECK_INT(c, "rotated", get(&b, &err), ERR_OK);
	CHECK_STR(c, "rotated", str_of(b.log),
		  "GET /prefix/api/v1/pods?x=1 first ;GET /prefix/api/v1/pods?x=1 second ;");
	script(&b, &denied, 1);
	CHECK_INT(c, "the same token is not tried again", get(&b, &err), ERR_UNAUTHENTICATED);
	CHECK_INT(c, "once", b.request_count, 1);
	set_token(&b, "third");
	script(&b, &denied, 1);
	CHECK_INT(c, "one repeat only", get(&b, &err), ERR_UNAUTHENTICATED);
	CHECK_INT(c, "twice", b.request_count, 2);
	CHECK(c, "gone", unlink(b.token_path) == 0);
	script(&b, &denied, 1);
	CHECK_INT(c, "the old one stays", get(&b, &err), ERR_UNAUTHENTICATED);
	CHECK_STR(c, "the old one stays", str_of(b.log), "GET /prefix/api/v1/pods?x=1 third ;");
	struct k8s_config missing = { .server = b.address, .token_file = "/nonexistent/token" };
	struct k8s_client *none = NULL;
	CHECK_INT(c, "no token file", k8s_client_new(b.loop, &missing, "t", &none, &err),
		  ERR_NOT_FOUND);
	CHECK(c, "no token file", none == NULL);
	bench_close(&b);
}

static void test_busy(struct check *c)
{
	static const struct answer answers[] = { { 429, "", "1", false, false },
						 { 200, "{}", NULL, false, false } };
	static const struct answer always = { 429, "", "100", false, false };
	struct bench b;
	struct err err = { 0 };
	bench_open(&b, c);
	script(&b, answers, 2);
	uint64_t start_ns = world_mono_ns(loop_world(b.loop));
	CHECK_INT(c, "repeated", get(&b, &err), ERR_OK);
	CHECK(c, "not before", world_mono_ns(loop_world(b.loop)) - start_ns >= SECOND_NS);
	CHECK_INT(c, "twice", b.request_count, 2);
	script(&b, &always, 1);
	CHECK_INT(c, "longer than the call may last", get(&b, &err), ERR_UNAVAILABLE);
	CHECK_INT(c, "once", b.request_count, 1);
	bench_close(&b);
}

static void test_request(struct check *c)
{
	static const struct answer good = { 201, "{}", NULL, false, false };
	static const char *const groups[] = { "team-a", "b", NULL };
	struct bench b;
	struct err err = { 0 };
	struct str body;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	bench_open(&b, c);
	script(&b, &good, 1);
	struct k8s_request request = { .method = "POST",
				       .path = STR("/api/v1/namespaces/a/pods"),
				       .body = STR("{\"kind\":\"Pod\"}"),
				       .impersonate_user = "anna",
				       .impersonate_groups = groups };
	CHECK_INT(c, "post", k8s_call_wait(b.client, &request, arena, &body, &err), ERR_OK);
	CHECK_STR(c, "log", str_of(b.log), "POST /prefix/api/v1/namespaces/a/pods first anna;");
	CHECK_STR(c, "body", str_of(b.last_body), "{\"kind\":\"Pod\"}");
	CHECK_STR(c, "groups", str_of(b.groups), "team-a,b,");
	request.impersonate_user = "anna\r\nAuthorization: Bearer x";
	CHECK_INT(c, "a line break in a name",
		  k8s_call_wait(b.client, &request, arena, &body, &err), ERR_INVALID);
	bench_close(&b);
}

static void test_timeout(struct check *c)
{
	static const struct answer silent = { 0, "", NULL, false, true };
	struct bench b;
	struct err err = { 0 };
	struct str body;
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 16);
	bench_open(&b, c);
	script(&b, &silent, 1);
	struct k8s_request request = { .method = "GET",
				       .path = STR("/x"),
				       .timeout_ns = SECOND_NS / 20 };
	CHECK_INT(c, "silent", k8s_call_wait(b.client, &request, arena, &body, &err), ERR_TIMEOUT);
	bench_close(&b);
	struct loop *loop = NULL;
	struct k8s_client *client = NULL;
	struct k8s_config nobody = { .server = "http://127.0.0.1:1" };
	CHECK(c, "loop", loop_new(&loop, &err) == ERR_OK);
	CHECK(c, "client", k8s_client_new(loop, &nobody, "t", &client, &err) == ERR_OK);
	CHECK_INT(c, "nobody", k8s_call_wait(client, &request, arena, &body, &err),
		  ERR_UNAVAILABLE);
	k8s_client_free(client);
	struct k8s_config odd = { .server = "ftp://x" };
	CHECK_INT(c, "scheme", k8s_client_new(loop, &odd, "t", &client, &err), ERR_INVALID);
	loop_free(loop);
}

static void count_done(void *arg, const struct k8s_result *result)
{
	int *count = arg;
	*count += result->status == ERR_UNAVAILABLE ? 1 : 1000;
}

static void test_cancel_and_free(struct check *c)
{
	static const struct answer silent = { 0, "", NULL, false, true };
	static const struct answer busy = { 429, "", "5", false, false };
	struct bench b;
	int done_count = 0;
	bench_open(&b, c);
	script(&b, &silent, 1);
	struct k8s_request request = {
		.method = "GET", .path = STR("/x"), .on_done = count_done, .arg = &done_count
	};
	struct k8s_call *canceled = k8s_call_start(b.client, &request);
	(void)k8s_call_start(b.client, &request);
	for (int i = 0; i < 5; i++)
		loop_run_once(b.loop, 10);
	k8s_call_cancel(canceled);
	script(&b, &busy, 1);
	(void)k8s_call_start(b.client, &request); // waits for its repeat
	for (int i = 0; i < 5; i++)
		loop_run_once(b.loop, 10);
	CHECK_INT(c, "none yet", done_count, 0);
	bench_close(&b);
	CHECK_INT(c, "the open ones end, the canceled one does not", done_count, 2);
}

// ---- watches

static void on_item(void *arg, const struct watch_item *item)
{
	static const char *const names[] = { "A", "M", "D", "R", "S", "F" };
	struct bench *b = arg;
	size_t used = strlen(b->heard);
	(void)snprintf(b->heard + used, sizeof b->heard - used, "%s", names[item->event]);
	if (b->stop_in_handler && item->event == WATCH_ADDED) {
		watch_stop(b->watch);
		b->watch = NULL;
	}
}

static bool heard(struct bench *b, const char *text)
{
	uint64_t end_ns = world_mono_ns(loop_world(b->loop)) + 5 * SECOND_NS;
	while (strcmp(b->heard, text) != 0 && world_mono_ns(loop_world(b->loop)) < end_ns)
		loop_run_once(b->loop, 20);
	CHECK_STR(b->c, "heard", str_of(b->heard), text);
	return strcmp(b->heard, text) == 0;
}

#define ADDED(version)                                                                             \
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define END(version)                                                                               \
	"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version          \
	"\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"

static void test_watch(struct check *c)
{
	static const struct answer answers[] = {
		{ 200, ADDED("1") END("2"), NULL, true, false },
		{ 200, ADDED("3"), NULL, true, false },
		{ 410, "", NULL, false, false },
		{ 200, END("9"), NULL, true, false },
	};
	struct bench b;
	bench_open(&b, c);
	script(&b, answers, ARRAY_COUNT(answers));
	struct watch_config config = {
		.path = "/api/v1/pods", .selector = "labelSelector=a%3Db", .fn = on_item, .arg = &b
	};
	b.watch = watch_start(b.client, &config);
	CHECK_STR(c, "not from inside", str_of(b.heard), "");
	CHECK(c, "list", heard(&b, "RAS"));
	CHECK(c, "synced", watch_is_synced(b.watch));
	http_respond_chunk(b.held, STR(ADDED("3")));
	CHECK(c, "change", heard(&b, "RASA"));
	http_respond_end(b.held);
	CHECK(c, "reopened", heard(&b, "RASAA"));
	CHECK(c, "from the last version", strstr(b.log, "&resourceVersion=3&") != NULL);
	http_respond_end(b.held);
	CHECK(c, "410", heard(&b, "RASAAFRS"));
	watch_stop(b.watch);
	for (int i = 0; i < 20 && b.closed_count == 0; i++)
		loop_run_once(b.loop, 20);
	CHECK_INT(c, "the server sees that it was stopped", b.closed_count, 1);

	b.stop_in_handler = true;
	script(&b, answers, 1);
	b.watch = watch_start(b.client, &config);
	CHECK(c, "stopped in its handler", heard(&b, "RA"));
	CHECK(c, "stopped in its handler", b.watch == NULL);
	bench_close(&b);
}

// ---- leases

static void on_acquired(void *arg, int64_t transitions)
{
	((struct bench *)arg)->led_transitions = transitions;
}

static void on_lost(void *arg) { ((struct bench *)arg)->lost_count++; }

// Until a request has failed or leadership has begun.
static void wait_for_lease(struct bench *b, const struct lease *lease, bool leads)
{
	for (int i = 0; i < 500; i++) {
		bool has_problem = lease_problem(lease)[0] != '\0';
		if (leads ? b->led_transitions > 0 : has_problem)
			return;
		loop_run_once(b->loop, 20);
	}
	CHECK(b->c, "heard of the lease", false);
}

#define LEASES "/prefix/apis/coordination.k8s.io/v1/namespaces/ns/leases"

// Read, created, renewed in vain, and given up.
static void test_lease(struct check *c)
{
	static const struct answer answers[] = {
		{ 200, "{", NULL, false, false },  { 404, "", NULL, false, false },
		{ 201, NULL, NULL, false, false }, { 500, "boom", NULL, false, false },
		{ 200, "{}", NULL, false, false },
	};
	struct bench b;
	bench_open(&b, c);
	script(&b, answers, ARRAY_COUNT(answers));
	struct lease_config config = { .namespace_ = "ns",
				       .name = "leader",
				       .identity = "me",
				       .on_acquired = on_acquired,
				       .on_lost = on_lost,
				       .arg = &b };
	struct lease *lease = lease_start(b.client, &config);
	wait_for_lease(&b, lease, false);
	CHECK(c, "not JSON", strstr(lease_problem(lease), "not valid JSON") != NULL);
	wait_for_lease(&b, lease, true);
	CHECK_STR(c, "looked and created", str_of(b.log),
		  "GET " LEASES "/leader first ;GET " LEASES "/leader first ;POST " LEASES
		  " first ;");
	CHECK(c, "of this process", strstr(b.last_body, "\"holderIdentity\":\"me_") != NULL);
	CHECK(c, "leads", lease_is_held(lease) && b.led_transitions == 1);
	CHECK_STR(c, "no problem", str_of(lease_problem(lease)), "");
	wait_for_lease(&b, lease, false);
	CHECK_STR(c, "renewed in vain", str_of(lease_problem(lease)), "boom (500)");
	CHECK(c, "still trusted", lease_is_held(lease));
	script(&b, answers + 4, 1);
	lease_stop(lease);
	CHECK_STR(c, "given up", str_of(b.log), "PATCH " LEASES "/leader first ;");
	CHECK(c, "to nobody", strstr(b.last_body, "\"holderIdentity\":\"\"") != NULL);
	CHECK(c, "of the version it had", strstr(b.last_body, "\"resourceVersion\":\"7\"") != NULL);
	CHECK_INT(c, "not lost", b.lost_count, 0);
	bench_close(&b);
}

// ---- events

static void test_events(struct check *c)
{
	static const struct answer good = { 201, "{}", NULL, false, false };
	struct event_about pod = { "v1", "Pod", "team-a", "job-1", "uid-1" };
	struct bench b;
	bench_open(&b, c);
	script(&b, &good, 1);
	struct event_sink *sink = event_sink_new(b.client, "gpuaas.io/scheduler", "pod-1");
	event_put(sink, &pod, "Warning", "Waiting", "Schedule", "needs 2 \"GPUs\"");
	for (int i = 0; i < 20 && b.request_count < 1; i++)
		loop_run_once(b.loop, 20);
	CHECK(c, "created",
	      strstr(b.log, "POST /prefix/apis/events.k8s.io/v1/namespaces/team-a/"
			    "events first") != NULL);
	CHECK(c, "note", strstr(b.last_body, "\"note\":\"needs 2 \\\"GPUs\\\"\"") != NULL);
	CHECK(c, "name", strstr(b.last_body, "{\"name\":\"job-1.") != NULL);
	for (int i = 0; i < 10; i++)
		loop_run_once(b.loop, 5);
	for (int i = 0; i < 7; i++)
		event_put(sink, &pod, "Warning", "Waiting", "Schedule", "needs 2 \"GPUs\"");
	for (int i = 0; i < 20 && b.request_count < 2; i++)
		loop_run_once(b.loop, 20);
	CHECK(c, "a series", strstr(b.last_body, "{\"series\":{\"count\":8,") != NULL);
	for (int i = 0; i < 1000; i++) {
		char note[40];
		(void)snprintf(note, sizeof note, "note %d", i);
		event_put(sink, &pod, "Normal", "Storm", "Schedule", note);
	}
	for (int i = 0; i < 1000 && b.request_count < EVENT_BURST; i++)
		loop_run_once(b.loop, 5);
	for (int i = 0; i < 20; i++)
		loop_run_once(b.loop, 5);
	CHECK(c, "within the budget", b.request_count <= EVENT_BURST + 2 + EVENT_RATE_PER_S);
	CHECK(c, "the burst went out", b.request_count >= EVENT_BURST);
	CHECK_INT(c, "the rest is counted", event_dropped_count(sink), 500);
	struct event_about odd = { "v1", "Pod", "a/b", "job-1", "u" };
	event_put(sink, &odd, "Normal", "X", "Y", "z");
	CHECK_INT(c, "no path from a name", event_dropped_count(sink), 501);
	event_sink_free(sink);
	bench_close(&b);
}

int main(void)
{
	struct check c = { 0 };
	test_errors(&c);
	test_token(&c);
	test_busy(&c);
	test_request(&c);
	test_timeout(&c);
	test_cancel_and_free(&c);
	test_watch(&c);
	test_lease(&c);
	test_events(&c);
	return check_done(&c);
}
