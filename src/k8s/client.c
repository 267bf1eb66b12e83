// SPDX-License-Identifier: Apache-2.0
#include "k8s/client.h"

#include "k8s/kobj.h"
#include "k8s/status.h"
#include "k8s/token.h"

#include <stdlib.h>

enum {
	CONFIG_ARENA_BYTES = 4 * 1024 * 1024,
	CALL_ARENA_BYTES = 32 * 1024 * 1024,
	ERROR_BODY_MAX_BYTES = 64 * 1024,
	HEADERS_MAX = 6 + K8S_GROUPS_MAX,
	BUSY_REPEATS_MAX = 5,
};
#define SECOND_NS UINT64_C(1000000000)
#define TIMEOUT_DEFAULT_NS (30 * SECOND_NS)

struct k8s_client {
	struct loop *loop;
	struct arena *arena; // texts of the configuration
	struct tls_ctx *tls;
	struct http_client *http;
	struct str prefix; // path of the server's address, without a slash at the end
	struct str user_agent;
	struct k8s_token token;
	struct k8s_call *calls;
	bool is_closing;
};

struct k8s_call {
	struct k8s_client *client;
	struct k8s_call *prev, *next;
	struct http_call *http; // NULL while it waits for a repeat
	struct loop_timer *timer;
	struct arena *arena;
	struct str method, path, content_type, accept, body, user;
	struct str groups[K8S_GROUPS_MAX];
	size_t group_count;
	struct str sent_token;
	uint64_t deadline_ns; // 0: none
	uint64_t idle_timeout_ns;
	http_data_fn *on_data;
	k8s_done_fn *on_done;
	void *arg;
	unsigned busy_repeats;
	bool has_new_token;
	int seen_code;         // of a stream
	struct buf error_body; // of a stream that was refused
};

static void call_send(struct k8s_call *call);

// ---- the end of a call

static void call_unlist(struct k8s_call *call)
{
	if (call->prev != NULL)
		call->prev->next = call->next;
	else
		call->client->calls = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	call->prev = call->next = NULL;
}

static void call_free(struct k8s_call *call)
{
	loop_timer_free(call->timer);
	buf_done(&call->error_body);
	arena_free(call->arena);
	free(call);
}

static void call_deliver(struct k8s_call *call, const struct k8s_result *result)
{
	ASSERT(call->http == NULL);
	ASSERT((result->status == ERR_OK) == (result->err == NULL));
	call_unlist(call);
	call->on_done(call->arg, result);
	call_free(call);
}

static void call_fail(struct k8s_call *call, err_status status, const char *text)
{
	struct err err;
	(void)err_set(&err, status, "%s", text);
	call_deliver(call, &(struct k8s_result){ .status = status,
						 .err = &err,
						 .code = call->seen_code,
						 .reason = "" });
}

static int64_t retry_after(const struct http_call_result *result)
{
	int64_t value_s = 0;
	struct str text = http_header_find(result->headers, "Retry-After");
	// A date is allowed too; the API server sends seconds.
	if (text.data == NULL || !str_to_i64(text, &value_s) || value_s < 0)
		return 0;
	return min_i64(value_s, 3600);
}

static void call_refused(struct k8s_call *call, const struct http_call_result *result,
			 struct str body)
{
	struct err err;
	struct k8s_status status = k8s_status_parse(result->code, body);
	// The code of the response decides; a body that says otherwise is not believed.
	status.code = result->code;
	struct k8s_result refusal = {
		.status = k8s_status_fail(&status, &err),
		.err = &err,
		.code = result->code,
		.body = body,
		.reason = status.reason,
		.retry_after_s = max_i64(retry_after(result), status.retry_after_s),
	};
	call_deliver(call, &refusal);
}

static void call_succeeded(struct k8s_call *call, const struct http_call_result *result)
{
	struct k8s_result success = { .status = ERR_OK, .code = result->code, .reason = "" };
	if (!kobj_unwrap(result->body, &success.body)) {
		call_fail(call, ERR_PROTOCOL,
			  "the answer is no protobuf message of the API server");
		return;
	}
	call_deliver(call, &success);
}

// ---- repeats

// Zero when the call's time is up.
static uint64_t time_left(const struct k8s_call *call)
{
	uint64_t now_ns = world_mono_ns(loop_world(call->client->loop));
	if (call->deadline_ns == 0)
		return UINT64_MAX;
	return now_ns < call->deadline_ns ? call->deadline_ns - now_ns : 0;
}

static void on_repeat(void *arg)
{
	struct k8s_call *call = arg;
	if (time_left(call) == 0)
		call_fail(call, ERR_TIMEOUT, "no answer in time");
	else
		call_send(call);
}

// The token file may hold a newer token than the one that was refused.
static bool repeat_with_new_token(struct k8s_call *call)
{
	struct k8s_token *token = &call->client->token;
	if (call->has_new_token || !k8s_token_reload(token))
		return false;
	if (str_eq(k8s_token_text(token), call->sent_token))
		return false;
	call->has_new_token = true;
	loop_timer_set(call->timer, 0);
	return true;
}

// The server is busy and did nothing. It waits as it was told, or fails when that is too long.
static bool repeat_when_free(struct k8s_call *call, int64_t retry_after_s)
{
	if (call->on_data != NULL || call->busy_repeats == BUSY_REPEATS_MAX)
		return false;
	uint64_t wait_ns = (uint64_t)max_i64(retry_after_s, 1) * SECOND_NS;
	// Up to a quarter more, so that those who were refused together do not return together.
	wait_ns += world_random(loop_world(call->client->loop)) % (wait_ns / 4);
	if (wait_ns >= time_left(call))
		return false;
	call->busy_repeats++;
	loop_timer_set(call->timer, wait_ns);
	return true;
}

static void on_http_done(void *arg, const struct http_call_result *result)
{
	struct k8s_call *call = arg;
	call->http = NULL;
	if (result->status != ERR_OK) {
		call_fail(call, result->status, result->err->text);
		return;
	}
	struct str body = call->error_body.len > 0 ? buf_str(&call->error_body) : result->body;
	if (result->code >= 200 && result->code < 300) {
		call_succeeded(call, result);
		return;
	}
	bool may_repeat = !call->client->is_closing;
	if (result->code == 401 && may_repeat && repeat_with_new_token(call))
		return;
	if (result->code == 429 && may_repeat && repeat_when_free(call, retry_after(result)))
		return;
	call_refused(call, result, body);
}

static void on_http_data(void *arg, int code, struct str data)
{
	struct k8s_call *call = arg;
	call->seen_code = code;
	if (code >= 200 && code < 300)
		call->on_data(call->arg, code, data); // the call may be gone after it
	else
		buf_put(&call->error_body,
			str_slice(data, 0, ERROR_BODY_MAX_BYTES - call->error_body.len));
}

// ---- sending

struct header_list {
	struct http_header items[HEADERS_MAX];
	size_t count;
};

static void put_header(struct header_list *list, struct str name, struct str value)
{
	ASSERT(list->count < HEADERS_MAX);
	list->items[list->count++] = (struct http_header){ name, value };
}

static void put_headers(struct k8s_call *call, struct header_list *list)
{
	put_header(list, STR("User-Agent"), call->client->user_agent);
	put_header(list, STR("Accept"), call->accept);
	if (call->body.len > 0)
		put_header(list, STR("Content-Type"), call->content_type);
	struct str token = k8s_token_text(&call->client->token);
	if (token.len > 0) {
		const char *value = arena_printf(call->arena, "Bearer " STR_FMT, STR_ARG(token));
		call->sent_token = arena_dup(call->arena, token);
		ASSERT(value != NULL && call->sent_token.data != NULL);
		put_header(list, STR("Authorization"), str_of(value));
	}
	if (call->user.len > 0)
		put_header(list, STR("Impersonate-User"), call->user);
	for (size_t i = 0; i < call->group_count; i++)
		put_header(list, STR("Impersonate-Group"), call->groups[i]);
}

static void call_send(struct k8s_call *call)
{
	struct header_list headers = { .count = 0 };
	uint64_t left_ns = time_left(call);
	k8s_token_refresh(&call->client->token);
	put_headers(call, &headers);
	buf_clear(&call->error_body);
	call->seen_code = 0;
	struct http_call_request request = {
		.method = call->method.data,
		.path = call->path,
		.headers = headers.items,
		.header_count = headers.count,
		.body = call->body,
		.timeout_ns = left_ns == UINT64_MAX ? 0 : left_ns,
		.idle_timeout_ns = call->idle_timeout_ns,
		.on_data = call->on_data == NULL ? NULL : on_http_data,
		.on_done = on_http_done,
		.arg = call,
	};
	call->http = http_call_start(call->client->http, &request);
}

static void copy_request(struct k8s_call *call, const struct k8s_request *request)
{
	struct arena *arena = call->arena;
	const char *type = request->content_type == NULL ? "application/json"
							 : request->content_type;
	const char *accept = request->accept == NULL ? "application/json" : request->accept;
	call->method = arena_dup(arena, str_of(request->method));
	call->path = str_of(arena_printf(arena, STR_FMT STR_FMT, STR_ARG(call->client->prefix),
					 STR_ARG(request->path)));
	call->content_type = arena_dup(arena, str_of(type));
	call->accept = arena_dup(arena, str_of(accept));
	call->body = arena_dup(arena, request->body);
	if (request->impersonate_user != NULL)
		call->user = arena_dup(arena, str_of(request->impersonate_user));
	const char *const *group = request->impersonate_groups;
	for (; group != NULL && *group != NULL; group++) {
		ASSERT(call->group_count < K8S_GROUPS_MAX);
		call->groups[call->group_count++] = arena_dup(arena, str_of(*group));
	}
	ASSERT(call->path.data != NULL && call->body.data != NULL && call->accept.data != NULL);
}

struct k8s_call *k8s_call_start(struct k8s_client *client, const struct k8s_request *request)
{
	ASSERT(request->on_done != NULL && !client->is_closing);
	struct k8s_call *call = calloc(1, sizeof *call);
	ASSERT(call != NULL);
	call->client = client;
	call->arena = arena_new(CALL_ARENA_BYTES + request->body.len);
	call->timer = loop_timer_new(client->loop, on_repeat, call);
	ASSERT(call->arena != NULL && call->timer != NULL);
	copy_request(call, request);
	uint64_t timeout_ns = request->timeout_ns == 0 ? TIMEOUT_DEFAULT_NS : request->timeout_ns;
	if (timeout_ns != K8S_NO_TIMEOUT)
		call->deadline_ns = world_mono_ns(loop_world(client->loop)) + timeout_ns;
	call->idle_timeout_ns = request->idle_timeout_ns;
	call->on_data = request->on_data;
	call->on_done = request->on_done;
	call->arg = request->arg;
	call->error_body.limit = ERROR_BODY_MAX_BYTES;
	call->next = client->calls;
	if (client->calls != NULL)
		client->calls->prev = call;
	client->calls = call;
	call_send(call);
	return call;
}

void k8s_call_cancel(struct k8s_call *call)
{
	if (call == NULL)
		return;
	if (call->http != NULL)
		http_call_cancel(call->http);
	call_unlist(call);
	call_free(call);
}

// ---- the client

// Splits "https://host:1/some/path/" into origin and path.
static bool split_server(struct k8s_client *client, struct str server, struct str *ret_origin)
{
	size_t scheme = str_starts(server, STR("https://"))  ? 8
			: str_starts(server, STR("http://")) ? 7
							     : 0;
	if (str_starts(server, STR("unix:")))
		scheme = server.len;
	size_t slash = scheme == 0 ? SIZE_MAX : str_find_byte(server, '/', scheme);
	size_t end = slash == SIZE_MAX ? server.len : slash;
	struct str path = str_slice(server, end, server.len);
	while (str_ends(path, STR("/")))
		path.len--;
	*ret_origin = arena_dup(client->arena, str_slice(server, 0, end));
	client->prefix = arena_dup(client->arena, path);
	return scheme > 0 && ret_origin->data != NULL && client->prefix.data != NULL;
}

static err_status make_tls(struct k8s_client *client, const struct k8s_config *config,
			   struct err *err)
{
	struct tls_client_config tls = {
		.ca_pem = config->ca_pem,
		.cert_pem = config->cert_pem,
		.key_pem = config->key_pem,
		.insecure_skip_verify = config->insecure_skip_verify,
	};
	return tls_client_new(&tls, &client->tls, err);
}

static err_status client_open(struct k8s_client *client, const struct k8s_config *config,
			      struct err *err)
{
	struct str origin;
	if (!split_server(client, str_of(config->server), &origin))
		return err_set(err, ERR_INVALID,
			       "the API server's address \"%s\" is not https://HOST[:PORT][/PATH]",
			       config->server);
	err_status status =
		k8s_token_init(&client->token, client->arena, client->loop, config, err);
	if (status == ERR_OK && str_starts(origin, STR("https://")))
		status = make_tls(client, config, err);
	if (status == ERR_OK)
		status = http_client_new(client->loop, origin.data, client->tls,
					 config->tls_server_name, &client->http, err);
	return status;
}

err_status k8s_client_new(struct loop *loop, const struct k8s_config *config,
			  const char *user_agent, struct k8s_client **ret, struct err *err)
{
	struct k8s_client *client = calloc(1, sizeof *client);
	ASSERT(client != NULL && config->server != NULL);
	client->loop = loop;
	client->arena = arena_new(CONFIG_ARENA_BYTES);
	ASSERT(client->arena != NULL);
	client->user_agent = arena_dup(client->arena, str_of(user_agent));
	err_status status = client_open(client, config, err);
	if (status != ERR_OK) {
		k8s_client_free(client);
		return err_wrap(err, "Kubernetes API");
	}
	*ret = client;
	return ERR_OK;
}

void k8s_client_free(struct k8s_client *client)
{
	if (client == NULL)
		return;
	client->is_closing = true;
	http_client_free(client->http); // ends the calls that are under way
	while (client->calls != NULL) {
		ASSERT(client->calls->http == NULL);
		call_fail(client->calls, ERR_UNAVAILABLE, "the client was closed");
	}
	tls_ctx_free(client->tls);
	k8s_token_done(&client->token);
	arena_free(client->arena);
	free(client);
}

void k8s_client_set_ping(struct k8s_client *client, uint64_t every_ns, uint64_t answer_ns)
{
	http_client_set_ping(client->http, every_ns, answer_ns);
}

struct loop *k8s_client_loop(struct k8s_client *client) { return client->loop; }
