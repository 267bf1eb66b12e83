// SPDX-License-Identifier: Apache-2.0
// Asks all agents once a period, so many at a time. With few of them the connections are kept, with
// thousands their memory would be more than the handshakes are worth.
#include "daemons/scheduler/load.h"

#include "sys/mac.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)
enum { VIEW_MAX_BYTES = 1024 * 1024, TIMEOUT_MS_MAX = 5000, NODE_BYTES = 256, IP_BYTES = 64 };

struct agent { // its pod
	struct load_agents *agents;
	char node[NODE_BYTES], ip[IP_BYTES];
	struct http_client *client;
	struct http_call *call;
	bool is_due;
	struct agent *next_due;
};
struct load_agents {
	struct load_source *source;
	struct map *by_uid;
	struct agent *due, **due_end;
	size_t in_flight;
};

struct load_agents *load_agents_new(struct load_source *source)
{
	struct load_agents *agents = calloc(1, sizeof *agents);
	ASSERT(agents != NULL);
	agents->source = source;
	agents->by_uid = map_new(0);
	agents->due_end = &agents->due;
	return agents;
}

static void unlink_due(struct load_agents *agents, struct agent *agent)
{
	struct agent **at = &agents->due;
	if (!agent->is_due)
		return;
	while (*at != agent)
		at = &(*at)->next_due;
	*at = agent->next_due;
	if (agents->due_end == &agent->next_due)
		agents->due_end = at;
	agent->is_due = false;
}

static void agent_free(struct agent *agent)
{
	unlink_due(agent->agents, agent);
	if (agent->call != NULL) {
		http_call_cancel(agent->call);
		agent->agents->in_flight--;
	}
	http_client_free(agent->client);
	free(agent);
}

void load_agents_free(struct load_agents *agents)
{
	struct str uid;
	void *agent;
	if (agents == NULL)
		return;
	for (size_t i = 0; map_next(agents->by_uid, &i, &uid, &agent);)
		agent_free(agent);
	map_free(agents->by_uid);
	free(agents);
}

size_t load_agents_count(const struct load_agents *agents) { return map_count(agents->by_uid); }

static void ask_next(struct load_agents *agents);

// An agent speaks of its own node; what it says of others' GPUs is not believed.
static void take(struct agent *agent, struct str body)
{
	struct load_source *source = agent->agents->source;
	AUTO(arena_freep) struct arena *arena = arena_new(4 * VIEW_MAX_BYTES);
	struct feed_loads loads;
	struct err err = { 0 };
	ASSERT(arena != NULL);
	if (feed_load_view(arena, body, load_clock(source), &loads, &err) != ERR_OK) {
		load_failed(source, agent->node, err.text);
		return;
	}
	for (size_t i = 0; i < loads.count; i++)
		loads.items[i].node = str_of(agent->node);
	load_take(source, &loads);
}

static void on_done(void *arg, const struct http_call_result *result)
{
	struct agent *agent = arg;
	struct load_agents *agents = agent->agents;
	char why[64];
	agent->call = NULL;
	agents->in_flight--;
	if (result->status != ERR_OK) {
		load_failed(agents->source, agent->node, result->err->text);
	} else if (result->code != 200) {
		(void)snprintf(why, sizeof why, "answer %d", result->code);
		load_failed(agents->source, agent->node, why);
	} else {
		take(agent, result->body);
	}
	if (map_count(agents->by_uid) > LOAD_KEPT_MAX) {
		http_client_free(agent->client);
		agent->client = NULL;
	}
	ask_next(agents);
}

static err_status connect_to(struct agent *agent, struct err *err)
{
	struct load_source *source = agent->agents->source;
	char base[IP_BYTES + 32];
	bool is_v6 = strchr(agent->ip, ':') != NULL;
	(void)snprintf(base, sizeof base, is_v6 ? "https://[%s]:%d" : "https://%s:%d", agent->ip,
		       LOAD_AGENT_PORT);
	if (agent->client != NULL)
		return ERR_OK;
	return http_client_new(source->s->loop, base, source->tls, "gpuaas-agent", &agent->client,
			       err);
}

static void ask(struct agent *agent)
{
	struct load_source *source = agent->agents->source;
	char token[MAC_TEXT_BYTES], bearer[MAC_TEXT_BYTES + 8];
	struct err err = { 0 };
	bool has_token = mac_load_token(buf_str(&source->s->plan_key), token);
	ASSERT(has_token); // its length was checked at the start
	(void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
	if (connect_to(agent, &err) != ERR_OK) {
		load_failed(source, agent->node, err.text);
		return;
	}
	const struct http_header header = { STR("authorization"), str_of(bearer) };
	int64_t timeout_ms = min_i64(source->period_ms, TIMEOUT_MS_MAX);
	const struct http_call_request request = { .method = "GET",
						   .path = STR("/load"),
						   .headers = &header,
						   .header_count = 1,
						   .timeout_ns = (uint64_t)timeout_ms * NS_PER_MS,
						   .body_max_bytes = VIEW_MAX_BYTES,
						   .on_done = on_done,
						   .arg = agent };
	agent->call = http_call_start(agent->client, &request);
	if (agent->call == NULL)
		load_failed(source, agent->node, "no memory for a call");
	else
		agent->agents->in_flight++;
}

static void ask_next(struct load_agents *agents)
{
	while (agents->due != NULL && agents->in_flight < LOAD_IN_FLIGHT_MAX) {
		struct agent *agent = agents->due;
		unlink_due(agents, agent);
		ask(agent);
	}
}

// Who has not answered since the last time, or not been asked, keeps its place.
void load_agents_ask(struct load_agents *agents)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(agents->by_uid, &i, &uid, &value);) {
		struct agent *agent = value;
		if (agent->is_due || agent->call != NULL)
			continue;
		agent->is_due = true;
		agent->next_due = NULL;
		*agents->due_end = agent;
		agents->due_end = &agent->next_due;
	}
	ask_next(agents);
}

// The agents run in the namespace of the Lease, which is the scheduler's own.
static bool is_agent(const struct scheduler *s, const struct kobj_pod *pod)
{
	struct str part = kobj_pairs_get(&pod->meta.labels, STR("app.kubernetes.io/name"));
	return str_eq_c(part, "gpuaas-agent") &&
	       str_eq_c(pod->meta.namespace_, s->options->lease_namespace) &&
	       pod->status.ip.len > 0 && pod->status.ip.len < IP_BYTES &&
	       pod->spec.node_name.len > 0 && pod->spec.node_name.len < NODE_BYTES;
}

void load_agents_pod(struct scheduler *s, const struct kobj_pod *pod)
{
	struct load_agents *agents = s->load->agents;
	if (agents == NULL || !is_agent(s, pod))
		return;
	struct agent *known = map_find(agents->by_uid, pod->meta.uid);
	if (known != NULL && str_eq_c(pod->status.ip, known->ip))
		return;
	load_agents_gone(s, pod->meta.uid);
	struct agent *agent = calloc(1, sizeof *agent);
	ASSERT(agent != NULL);
	agent->agents = agents;
	(void)snprintf(agent->node, sizeof agent->node, STR_FMT, STR_ARG(pod->spec.node_name));
	(void)snprintf(agent->ip, sizeof agent->ip, STR_FMT, STR_ARG(pod->status.ip));
	(void)map_set(agents->by_uid, pod->meta.uid, agent);
}

void load_agents_gone(struct scheduler *s, struct str uid)
{
	struct load_agents *agents = s->load->agents;
	struct agent *agent = agents == NULL ? NULL : map_remove(agents->by_uid, uid);
	if (agent != NULL)
		agent_free(agent);
}
