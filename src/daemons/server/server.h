// SPDX-License-Identifier: Apache-2.0
// All parts of the running server, made in one order and freed in the other. Controllers run in
// the same process and on the same loop as the API.
#pragma once

#include "api/rest.h"
#include "api/reviews.h"
#include "daemons/server/config.h"
#include "ledger/ledger.h"

struct controllers;
struct recorder;

struct server {
	const struct server_config *config;
	struct loop *loop;
	struct sql *sql;
	uint64_t sql_connection; // that what is in memory was last compared with
	bool is_database_away;
	bool is_superseded; // another server owned the database: this one ends
	struct ledger *ledger;
	struct audit *audit;
	struct k8s_client *k8s;
	struct objects *objects;
	struct controllers *controllers; // NULL without Kubernetes
	struct recorder *recorder;
	struct http_client *scheduler;
	struct tls_ctx *tls;
	struct http_server *http;
	struct loop_timer *watchdog; // once a second: the database
	struct loop_timer *upkeep;   // once a minute: certificates, old answers
	char agent_account[160];
	char scheduler_bearer[80]; // header value, empty without scheduler.key_file
	struct api api;
};

MUST_USE err_status server_start(struct loop *loop, const struct server_config *config,
				 struct server **ret, struct err *err);
void server_stop(struct server *server); // NULL allowed
