// SPDX-License-Identifier: Apache-2.0
// Where the measured loads of GPUs come from: the load views of the agents, asked over TLS with a
// token of the plan's key, or a Prometheus that scrapes DCGM's names. Asked once in a period, only
// while this replica leads; nothing of it is written anywhere. A source that fails leaves the loads
// to grow too old, which the core tells; it is logged once and counted.
#pragma once

#include "daemons/scheduler/scheduler.h"
#include "feed/feed_load.h"
#include "net/http_client.h"

enum { LOAD_IN_FLIGHT_MAX = 64, LOAD_KEPT_MAX = 256, LOAD_AGENT_PORT = 9402 };

typedef enum load_kind { LOAD_OFF, LOAD_AGENTS, LOAD_PROMETHEUS } load_kind;

struct load_source {
	struct scheduler *s;
	load_kind kind;
	char base[512]; // of Prometheus
	char ca_file[512], token_file[512];
	int64_t period_ms;
	struct tls_ctx *tls;
	struct loop_timer *timer;
	struct http_client *client; // of Prometheus
	struct http_call *call;
	struct load_agents *agents;
	uint64_t asked_ok, asked_failed;
	struct sched_load_taken sums; // since the start
	bool is_failing;              // and has been logged
};

MUST_USE err_status load_open(struct scheduler *s, struct err *err);
void load_close(struct scheduler *s);
void load_begin(struct scheduler *s); // with a new core
void load_end(struct scheduler *s);
void load_put_metrics(struct scheduler *s, struct buf *out);
void load_put_view(struct scheduler *s, struct str namespace_, struct str name, struct buf *out);
void load_failed(struct load_source *source, const char *who, const char *why);
void load_take(struct load_source *source, const struct feed_loads *loads);
struct feed_clock load_clock(const struct load_source *source);

// load_agents.c: the pods of agents, by UID
struct load_agents *load_agents_new(struct load_source *source);
void load_agents_free(struct load_agents *agents); // NULL allowed
void load_agents_ask(struct load_agents *agents);
size_t load_agents_count(const struct load_agents *agents);
void load_agents_pod(struct scheduler *s, const struct kobj_pod *pod);
void load_agents_gone(struct scheduler *s, struct str uid);
