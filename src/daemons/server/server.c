// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/server.h"

#include "api/views.h"
#include "daemons/server/controllers.h"
#include "daemons/server/manifests.h"
#include "daemons/server/recorder.h"
#include "net/http_client.h"
#include "policy/token.h"
#include "sys/fs.h"
#include "sys/log.h"
#include "sys/mac.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	FORGET_MAX = 200,
	LIMITER_KEYS_MAX = 20000,
	REFUSALS_KEYS_MAX = 4096,
	REFUSALS_PER_MINUTE = 60, // of one caller, with an audit record each
	DRAIN_TURNS = 100,
	DRAIN_TURN_MS = 20,
	DAY_S = 86400,
	KEY_MAX_BYTES = 4096,
	URL_MAX_BYTES = 4096,
	OPEN_AGAIN_MS = 1000
};
#define UPKEEP_NS UINT64_C(60000000000)
#define WATCHDOG_NS UINT64_C(1000000000)

// ---- the first admin

static err_status add_bootstrap(struct server *server, struct str text, struct err *err)
{
	char hash[STORE_HASH_HEX + 1], id[24];
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct store_token token;
	if (!token_is_well_formed(text))
		return err_set(err, ERR_INVALID,
			       "it does not hold a token (gpx_ and 36 characters)");
	store_hash(text, hash);
	err_status status = store_token_by_hash(server->sql, arena, str_of(hash), &token, err);
	if (status != ERR_NOT_FOUND)
		return status; // known, perhaps revoked since: it stays so
	int64_t now_s = world_wall_s(loop_world(server->loop));
	(void)snprintf(id, sizeof id, "bootstrap-%.8s", hash);
	token = (struct store_token){ .id = str_of(id),
				      .subject = STR("admin"),
				      .role = AUTHZ_PLATFORM_ADMIN,
				      .tenant = STR(""),
				      .tenant_uid = STR(""),
				      .note = STR("first platform admin, from the configuration"),
				      .created_by = STR("configuration"),
				      .created_s = now_s,
				      .expires_s = now_s + INT64_C(3650) * DAY_S };
	return store_token_add(server->sql, str_of(hash), &token, err);
}

static err_status take_bootstrap(struct server *server, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = 4096 };
	const char *path = server->config->bootstrap_token_file;
	if (path == NULL)
		return ERR_OK;
	err_status status = fs_read(path, 4096, &content, err);
	if (status == ERR_NOT_FOUND) // may be removed after the first login
		return ERR_OK;
	if (status == ERR_OK)
		status = add_bootstrap(server, str_trim(buf_str(&content)), err);
	if (status != ERR_OK)
		return err_wrap(err, "bootstrap_admin_token_file %s", path);
	return ERR_OK;
}

// ---- upkeep

static void upkeep(void *arg)
{
	struct server *server = arg;
	struct err err;
	int64_t now_s = world_wall_s(loop_world(server->loop));
	if (tls_server_reload(server->tls, &err) != ERR_OK)
		log_err(LOG_WARN, "certificate cannot be read again; the old one stays", &err);
	if (answers_sweep(server->sql, now_s - DAY_S, false, &err) != ERR_OK ||
	    rest_forget_orphans(&server->api, &err) != ERR_OK)
		log_err(LOG_WARN, "old answers cannot be removed", &err);
	rest_sweep_refusals(&server->api, loop_now_ns(server->loop));
	if (server->controllers != NULL)
		controllers_forget_ended(server->controllers, now_s - server->config->ended_kept_s,
					 FORGET_MAX);
	loop_timer_set(server->upkeep, UPKEEP_NS);
}

// What a connection that broke left unclear is cleared up on the next.
static void clear_up(struct server *server)
{
	struct err err = { 0 };
	const uint64_t connection = sql_connection(server->sql);
	const bool is_new = server->sql_connection != connection;
	err_status status = objects_settle(server->objects, &err);
	if (status == ERR_OK && is_new)
		status = rest_forget_orphans(&server->api, &err);
	if (status != ERR_OK)
		log_err(LOG_WARN, "database", &err);
	if (status != ERR_OK || !is_new)
		return;
	server->sql_connection = connection;
	log_kv(LOG_INFO, "the database is connected again", NULL);
}

static void watch_database(void *arg)
{
	struct server *server = arg;
	struct err err = { 0 };
	const enum sql_state state = sql_tend(server->sql, &err);
	loop_timer_set(server->watchdog, WATCHDOG_NS);
	if (state == SQL_READY)
		clear_up(server);
	else if (state == SQL_LOST)
		log_err(LOG_ERROR, "ending", &err);
	else if (!server->is_database_away)
		log_err(LOG_WARN, "the database is away", &err);
	server->is_database_away = state != SQL_READY;
	server->is_superseded = state == SQL_LOST;
	if (state == SQL_LOST)
		loop_stop(server->loop);
}

static void on_checkpoint(void *arg, struct str json)
{
	(void)arg;
	char text[1024];
	(void)snprintf(text, sizeof text, STR_FMT, STR_ARG(json));
	// Logs leave the machine, so the checkpoint does too.
	log_kv(LOG_INFO, "audit checkpoint", "checkpoint", text, NULL);
}

static void on_change(void *arg, object_kind kind, json_t *object, bool is_gone)
{
	struct server *server = arg;
	if (kind == OBJECT_REQUEST)
		recorder_put(server->recorder, object, is_gone);
	if (server->controllers != NULL)
		controllers_on_change(server->controllers, kind, object, is_gone);
}

static void put_metrics(void *arg, struct buf *out)
{
	struct server *server = arg;
	metric_family(out, "gpuaas_server_database_available", "gauge",
		      "1 when the database answers; 0: calls are refused until it does.");
	metric_int(out, "gpuaas_server_database_available", NULL, 0,
		   server->is_database_away ? 0 : 1);
	if (server->controllers != NULL)
		controllers_put_metrics(server->controllers, out);
}

static const char *not_ready(void *arg)
{
	struct server *server = arg;
	if (server->is_database_away)
		return "the database does not answer";
	return audit_stats(server->audit).is_available ? NULL : "the audit log takes no records";
}

// ---- start

static err_status read_store_url(const struct server_config *config, struct buf *ret_url,
				 struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = URL_MAX_BYTES };
	if (config->store_file == NULL) {
		buf_put_c(ret_url, config->store);
	} else if (fs_read(config->store_file, URL_MAX_BYTES, &content, err) != ERR_OK) {
		return err_wrap(err, "store_file");
	} else {
		buf_put(ret_url, str_trim(buf_str(&content)));
	}
	buf_put_byte(ret_url, '\0');
	if (!buf_ok(ret_url) || strlen(ret_url->data) + 1 != ret_url->len)
		return err_set(err, ERR_INVALID, "the store is no text of at most %d bytes",
			       URL_MAX_BYTES);
	return ERR_OK;
}

// A database that is away, or that another server owns, is waited for; everything else is said
// at once.
static err_status open_database(struct server *server, struct err *err)
{
	AUTO(buf_done) struct buf url = { .limit = URL_MAX_BYTES + 1 };
	char said[sizeof err->text] = "";
	err_status status = read_store_url(server->config, &url, err);
	if (status != ERR_OK)
		return status;
	while ((status = sql_open(url.data, &server->sql, err)) == ERR_UNAVAILABLE &&
	       !loop_is_stopping(server->loop)) {
		if (strcmp(said, err->text) != 0)
			log_err(LOG_WARN, "waiting for the database", err);
		(void)snprintf(said, sizeof said, "%s", err->text);
		loop_run_once(server->loop, OPEN_AGAIN_MS);
	}
	return status;
}

static err_status open_stores(struct server *server, struct err *err)
{
	const struct server_config *config = server->config;
	struct audit_config audit = {
		.dir = config->audit_dir,
		.key_file = config->audit_key_file,
		.rotate_bytes = (size_t)config->audit_rotate_bytes,
		.checkpoint_records = config->audit_checkpoint_records,
		.checkpoint_interval_ns =
			(uint64_t)config->audit_checkpoint_interval_s * UINT64_C(1000000000),
		.on_checkpoint = on_checkpoint,
		.arg = server,
	};
	int64_t now_s = world_wall_s(loop_world(server->loop));
	err_status status = open_database(server, err);
	if (status == ERR_OK)
		status = sql_migrate(server->sql, "store", store_migrations, store_migration_count,
				     err);
	if (status == ERR_OK)
		status = answers_sweep(server->sql, now_s - DAY_S, true, err);
	if (status != ERR_OK)
		return err_wrap(err, "store");
	status = ledger_open(server->sql, &server->ledger, err);
	if (status != ERR_OK)
		return err_wrap(err, "ledger");
	status = audit_open(server->loop, &audit, &server->audit, err);
	return status == ERR_OK ? take_bootstrap(server, err) : status;
}

static err_status connect_kubernetes(struct server *server, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 22);
	struct k8s_config config;
	const char *where = server->config->kubernetes;
	if (strcmp(where, "none") == 0)
		return ERR_OK;
	err_status status = k8s_config_load(arena, where, &config, err);
	if (status == ERR_OK)
		status = k8s_client_new(server->loop, &config, "gpuaas-server/" GPUAAS_VERSION,
					&server->k8s, err);
	if (status != ERR_OK)
		return err_wrap(err, "kubernetes");
	return ERR_OK;
}

static err_status start_objects(struct server *server, struct err *err)
{
	err_status status =
		objects_new(server->loop, server->k8s, server->sql, &server->objects, err);
	if (status != ERR_OK)
		return status;
	view_keep_facts(server->objects);
	server->recorder = recorder_new(server->loop, server->sql);
	if (server->k8s != NULL)
		server->controllers = controllers_new(server->loop, server->objects, server->k8s,
						      &server->config->dead_gpus);
	objects_on_change(server->objects, on_change, server);
	return ERR_OK;
}

static err_status load_scheduler_key(struct server *server, struct err *err)
{
	const char *file = server->config->scheduler_key_file;
	char token[MAC_TEXT_BYTES];
	AUTO(buf_done) struct buf key = { .limit = KEY_MAX_BYTES };
	if (file == NULL)
		return ERR_OK;
	if (fs_read(file, KEY_MAX_BYTES, &key, err) != ERR_OK)
		return err_wrap(err, "scheduler.key_file");
	if (!mac_explain_token(buf_str(&key), token))
		return err_set(err, ERR_INVALID,
			       "scheduler.key_file: %s has %zu bytes, at least %d are needed", file,
			       key.len, MAC_KEY_BYTES_MIN);
	(void)snprintf(server->scheduler_bearer, sizeof server->scheduler_bearer, "Bearer %s",
		       token);
	return ERR_OK;
}

static err_status connect_scheduler(struct server *server, struct err *err)
{
	err_status status = load_scheduler_key(server, err);
	if (status != ERR_OK || server->config->scheduler_url == NULL)
		return status;
	status = http_client_new(server->loop, server->config->scheduler_url, NULL, NULL,
				 &server->scheduler, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "scheduler.url");
}

static void fill_api(struct server *server)
{
	static const double bounds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
					 0.1,   0.25,   0.5,   1,    2.5,   10 };
	struct api *api = &server->api;
	(void)snprintf(server->agent_account, sizeof server->agent_account,
		       "system:serviceaccount:%s:gpuaas-agent", server->config->namespace_);
	*api = (struct api){ .loop = server->loop,
			     .sql = server->sql,
			     .audit = server->audit,
			     .objects = server->objects,
			     .ledger = server->ledger,
			     .k8s = server->k8s,
			     .scheduler = server->scheduler,
			     .scheduler_bearer = str_of(server->scheduler_bearer),
			     .limits = server->config->limits,
			     .pod_of = manifest_pod,
			     .put_metrics = put_metrics,
			     .not_ready = not_ready,
			     .arg = server };
	api->limiter = limiter_new(LIMITER_KEYS_MAX);
	api->refusals = refusals_new(REFUSALS_KEYS_MAX, REFUSALS_PER_MINUTE);
	ASSERT(api->limiter != NULL && api->refusals != NULL);
	ASSERT(route_count <= API_ROUTES_MAX);
	for (size_t i = 0; i < API_ROUTES_MAX; i++)
		api->seconds[i] = (struct metric_histogram){ .bounds = bounds,
							     .bounds_count = ARRAY_COUNT(bounds) };
	if (server->k8s != NULL)
		api->reviews =
			reviews_new(server->loop, server->k8s, server->agent_account, "gpuaas");
	json_t *description = openapi_make();
	api->openapi = str_of(json_dumps(description, JSON_COMPACT));
	json_decref(description);
}

static err_status listen_on(struct server *server, struct err *err)
{
	const struct server_config *config = server->config;
	struct tls_server_config tls = { .cert_file = config->tls_cert,
					 .key_file = config->tls_key };
	struct http_server_config http = {
		.listen = config->listen,
		.body_max_bytes = (size_t)config->body_max_bytes,
		.connections_max = (size_t)config->connections_max,
		.handler = rest_begin,
		.arg = &server->api,
	};
	err_status status = tls_server_new(&tls, &server->tls, err);
	if (status != ERR_OK)
		return err_wrap(err, "tls");
	http.tls = server->tls;
	status = http_server_new(server->loop, &http, &server->http, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "listen");
}

static err_status start_parts(struct server *server, struct err *err)
{
	err_status status = open_stores(server, err);
	if (status == ERR_OK)
		status = connect_kubernetes(server, err);
	if (status == ERR_OK)
		status = start_objects(server, err);
	if (status == ERR_OK)
		status = connect_scheduler(server, err);
	if (status != ERR_OK)
		return status;
	fill_api(server);
	status = listen_on(server, err);
	if (status != ERR_OK)
		return status;
	server->upkeep = loop_timer_new(server->loop, upkeep, server);
	loop_timer_set(server->upkeep, UPKEEP_NS);
	server->sql_connection = sql_connection(server->sql);
	server->watchdog = loop_timer_new(server->loop, watch_database, server);
	loop_timer_set(server->watchdog, WATCHDOG_NS);
	return ERR_OK;
}

err_status server_start(struct loop *loop, const struct server_config *config, struct server **ret,
			struct err *err)
{
	struct server *server = calloc(1, sizeof *server);
	if (server == NULL)
		return err_set(err, ERR_LIMIT, "no memory");
	server->loop = loop;
	server->config = config;
	err_status status = start_parts(server, err);
	if (status != ERR_OK) {
		server_stop(server);
		return status;
	}
	*ret = server;
	return ERR_OK;
}

// Calls that are under way get a little time; then everything goes, the audit log last but one.
void server_stop(struct server *server)
{
	if (server == NULL)
		return;
	for (int i = 0; i < DRAIN_TURNS && server->api.counters.in_flight > 0; i++)
		loop_run_once(server->loop, DRAIN_TURN_MS);
	if (server->objects != NULL)
		objects_on_change(server->objects, NULL, NULL);
	controllers_free(server->controllers);
	reviews_free(server->api.reviews);
	http_client_free(server->scheduler);
	objects_free(server->objects);
	k8s_client_free(server->k8s);
	http_server_free(server->http);
	tls_ctx_free(server->tls);
	loop_timer_free(server->upkeep);
	loop_timer_free(server->watchdog);
	recorder_free(server->recorder);
	if (server->api.refusals != NULL)
		rest_sweep_refusals(&server->api, UINT64_MAX);
	audit_close(server->audit);
	ledger_free(server->ledger);
	limiter_free(server->api.limiter);
	refusals_free(server->api.refusals);
	free((void *)(uintptr_t)server->api.openapi.data);
	sql_close(server->sql);
	free(server);
}
