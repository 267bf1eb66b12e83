// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/config.h"

#include "base/yaml.h"
#include "policy/schema.h"
#include "sys/fs.h"

#include <inttypes.h>

enum { FILE_MAX_BYTES = 1024 * 1024, MIB = 1024 * 1024 };

static const struct schema_field tls_fields[] = {
	{ "cert", SCHEMA_TEXT, .required = true, .min = 1, .doc = "PEM file, the whole chain." },
	{ "key", SCHEMA_TEXT, .required = true, .min = 1, .doc = "PEM file." },
};
static const struct schema tls_schema = { .name = "tls",
					  .doc = "Certificate.",
					  SCHEMA_FIELDS(tls_fields) };

static const struct schema_field audit_fields[] = {
	{ "dir", SCHEMA_TEXT, .required = true, .min = 1, .doc = "Folder of the audit log." },
	{ "key_file", SCHEMA_TEXT, .min = 1, .doc = "Signing key; default DIR/signing.key." },
	{ "rotate_bytes", SCHEMA_INT, .min = 4096, .max = INT64_C(1) << 32,
	  .doc = "New file after." },
	{ "checkpoint_records", SCHEMA_INT, .min = 1, .max = 1000000,
	  .doc = "Signed after so many." },
	{ "checkpoint_interval", SCHEMA_DURATION, .min = 1, .max = 86400, .doc = "And so often." },
};
static const struct schema audit_schema = { .name = "audit",
					    .doc = "Audit log.",
					    SCHEMA_FIELDS(audit_fields) };

static const struct schema_field scheduler_fields[] = {
	{ "url", SCHEMA_TEXT, .min = 1, .doc = "Where the scheduler answers explain." },
	{ "key_file", SCHEMA_TEXT, .min = 1,
	  .doc = "Key of the plan; without it the scheduler does not answer." },
};
static const struct schema scheduler_schema = { .name = "scheduler",
						.doc = "Scheduler.",
						SCHEMA_FIELDS(scheduler_fields) };

static const char *const taint_names[] = { "none", "all", "any", NULL };
static const struct schema_field dead_gpus_fields[] = {
	{ "evict", SCHEMA_BOOL, .doc = "Whether pods on a dead GPU are asked to leave." },
	{ "after", SCHEMA_DURATION, .max = 86400, .doc = "When it has been dead so long." },
	{ "taint", SCHEMA_TEXT, .values = taint_names,
	  .doc = "Which nodes are closed to new pods: those whose GPUs are all dead, or any." },
};
static const struct schema dead_gpus_schema = { .name = "dead_gpus",
						.doc = "Dead GPUs.",
						SCHEMA_FIELDS(dead_gpus_fields) };

static const struct schema_field limit_fields[] = {
	{ "body_bytes", SCHEMA_INT, .min = 1024, .max = 64 * MIB, .doc = "Largest body." },
	{ "connections", SCHEMA_INT, .min = 1, .max = 65536, .doc = "At once." },
	{ "calls_per_second", SCHEMA_INT, .min = 1, .max = 1000000,
	  .doc = "Of one token, in units of cost." },
	{ "burst", SCHEMA_INT, .min = 1, .max = 10000000, .doc = "Of one token at once." },
	{ "bad_tokens_per_second", SCHEMA_INT, .min = 1, .max = 1000000, .doc = "Of one address." },
	{ "agent_calls_per_second", SCHEMA_INT, .min = 1, .max = 1000000, .doc = "Of one agent." },
	{ "open_requests", SCHEMA_INT, .min = 1, .max = 1000000, .doc = "Of one tenant." },
	{ "ended_requests_kept", SCHEMA_DURATION, .min = 60, .max = 3660 * 86400,
	  .doc = "So long." },
	{ "token_life", SCHEMA_DURATION, .min = 60, .max = 366 * 86400,
	  .doc = "Longest of a token." },
};
static const struct schema limits_schema = { .name = "limits",
					     .doc = "Limits.",
					     SCHEMA_FIELDS(limit_fields) };

static const struct schema_field config_fields[] = {
	{ "listen", SCHEMA_TEXT, .min = 1, .doc = "Address, default 0.0.0.0:8443." },
	{ "tls", SCHEMA_OBJECT, .required = true, .object = &tls_schema,
	  .doc = "Certificate and key; there is no server without." },
	{ "kubernetes", SCHEMA_TEXT, .min = 1,
	  .doc = "none, in-cluster (default) or the path of a kubeconfig." },
	{ "namespace", SCHEMA_LABEL, .doc = "Of our own parts, default gpuaas-system." },
	{ "store", SCHEMA_TEXT, .min = 1, .doc = "sqlite:PATH or postgres://..." },
	{ "store_file", SCHEMA_TEXT, .min = 1,
	  .doc = "File that holds the store, in place of it: a URL may have a password." },
	{ "audit", SCHEMA_OBJECT, .required = true, .object = &audit_schema, .doc = "Audit log." },
	{ "scheduler", SCHEMA_OBJECT, .object = &scheduler_schema, .doc = "For explain." },
	{ "bootstrap_admin_token_file", SCHEMA_TEXT, .min = 1,
	  .doc = "Token of the first platform admin; may be absent later." },
	{ "dead_gpus", SCHEMA_OBJECT, .object = &dead_gpus_schema,
	  .doc = "What becomes of pods on dead GPUs." },
	{ "limits", SCHEMA_OBJECT, .object = &limits_schema, .doc = "Limits." },
};
static const struct schema config_schema = { .name = "configuration",
					     .doc = "gpuaas-server --config",
					     SCHEMA_FIELDS(config_fields) };

static const char *text_or(const json_t *file, const char *path, const char *absent)
{
	const char *text = json_cstr(file, path);
	return text[0] == '\0' ? absent : text;
}

static void read_limits(struct server_config *config)
{
	const json_t *limits = json_at(config->file, "limits");
	config->body_max_bytes = json_int(limits, "body_bytes", 4 * MIB);
	config->connections_max = json_int(limits, "connections", 1024);
	config->ended_kept_s = schema_get_duration_s(limits, "ended_requests_kept", 7 * 86400);
	config->limits = (struct api_limits){
		.calls_per_s = json_int(limits, "calls_per_second", 200),
		.calls_burst = json_int(limits, "burst", 1000),
		.bad_tokens_per_s = json_int(limits, "bad_tokens_per_second", 20),
		.open_requests_max = json_int(limits, "open_requests", 5000),
		.agent_calls_per_s = json_int(limits, "agent_calls_per_second", 20),
		.token_life_max_s = schema_get_duration_s(limits, "token_life", 366 * 86400),
	};
}

// Where the store is stands in the file itself or in another.
static err_status check_store(const json_t *file, struct err *err)
{
	const bool is_here = json_at(file, "store") != NULL;
	if (is_here == (json_at(file, "store_file") != NULL))
		return err_set(err, ERR_INVALID,
			       is_here ? "store and store_file are both there; one is enough"
				       : "store is missing (or store_file)");
	return ERR_OK;
}

err_status server_config_parse(struct str text, struct server_config *ret_config, struct err *err)
{
	struct server_config config = { 0 };
	if (yaml_parse(text, &config.file, err) != ERR_OK ||
	    schema_check(&config_schema, config.file, NULL, err) != ERR_OK ||
	    check_store(config.file, err) != ERR_OK) {
		server_config_done(&config);
		return ERR_INVALID;
	}
	const json_t *file = config.file, *audit = json_at(file, "audit");
	config.listen = text_or(file, "listen", "0.0.0.0:8443");
	config.tls_cert = json_cstr(file, "tls.cert");
	config.tls_key = json_cstr(file, "tls.key");
	config.kubernetes = text_or(file, "kubernetes", "in-cluster");
	config.namespace_ = text_or(file, "namespace", "gpuaas-system");
	config.store = text_or(file, "store", NULL);
	config.store_file = text_or(file, "store_file", NULL);
	config.audit_dir = json_cstr(file, "audit.dir");
	config.audit_key_file = text_or(file, "audit.key_file", NULL);
	config.audit_rotate_bytes = json_int(audit, "rotate_bytes", 64 * MIB);
	config.audit_checkpoint_records = json_int(audit, "checkpoint_records", 1000);
	config.audit_checkpoint_interval_s =
		schema_get_duration_s(audit, "checkpoint_interval", 60);
	config.scheduler_url = text_or(file, "scheduler.url", NULL);
	config.scheduler_key_file = text_or(file, "scheduler.key_file", NULL);
	config.bootstrap_token_file = text_or(file, "bootstrap_admin_token_file", NULL);
	config.dead_gpus = (struct dead_gpu_rule){
		.evicts = json_bool(file, "dead_gpus.evict", false),
		.after_s = schema_get_duration_s(json_at(file, "dead_gpus"), "after", 30),
		.taint = dead_gpu_taint_of(json_text(file, "dead_gpus.taint")),
	};
	read_limits(&config);
	*ret_config = config;
	return ERR_OK;
}

err_status server_config_load(const char *path, struct server_config *ret_config, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = FILE_MAX_BYTES };
	err_status status = fs_read(path, FILE_MAX_BYTES, &text, err);
	if (status == ERR_OK)
		status = server_config_parse(buf_str(&text), ret_config, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", path);
}

void server_config_done(struct server_config *config)
{
	json_decref(config->file);
	config->file = NULL;
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ",\"%s\":", key);
	if (text == NULL)
		buf_put_c(out, "null");
	else
		buf_put_json(out, str_of(text));
}

void server_config_print(const struct server_config *config, struct buf *out)
{
	buf_put_c(out, "{\"listen\":");
	buf_put_json(out, str_of(config->listen));
	put_text(out, "tls_cert", config->tls_cert);
	put_text(out, "tls_key", config->tls_key);
	put_text(out, "kubernetes", config->kubernetes);
	put_text(out, "namespace", config->namespace_);
	AUTO(buf_done) struct buf store = { .limit = FILE_MAX_BYTES };
	if (config->store != NULL)
		sql_url_show(config->store, &store);
	buf_put_byte(&store, '\0');
	put_text(out, "store", config->store == NULL || !buf_ok(&store) ? NULL : store.data);
	put_text(out, "store_file", config->store_file);
	put_text(out, "audit_dir", config->audit_dir);
	put_text(out, "audit_key_file", config->audit_key_file);
	buf_printf(out,
		   ",\"audit_rotate_bytes\":%" PRId64 ",\"audit_checkpoint_records\":%" PRId64
		   ",\"audit_checkpoint_interval_s\":%" PRId64,
		   config->audit_rotate_bytes, config->audit_checkpoint_records,
		   config->audit_checkpoint_interval_s);
	put_text(out, "scheduler_url", config->scheduler_url);
	put_text(out, "scheduler_key_file", config->scheduler_key_file);
	put_text(out, "bootstrap_admin_token_file", config->bootstrap_token_file);
	buf_printf(out,
		   ",\"body_bytes\":%" PRId64 ",\"connections\":%" PRId64
		   ",\"calls_per_second\":%" PRId64 ",\"burst\":%" PRId64
		   ",\"bad_tokens_per_second\":%" PRId64 ",\"agent_calls_per_second\":%" PRId64
		   ",\"token_life_s\":%" PRId64 ",\"open_requests\":%" PRId64
		   ",\"ended_requests_kept_s\":%" PRId64
		   ",\"dead_gpus_evict\":%s,\"dead_gpus_after_s\":%" PRId64
		   ",\"dead_gpus_taint\":\"%s\"}\n",
		   config->body_max_bytes, config->connections_max, config->limits.calls_per_s,
		   config->limits.calls_burst, config->limits.bad_tokens_per_s,
		   config->limits.agent_calls_per_s, config->limits.token_life_max_s,
		   config->limits.open_requests_max, config->ended_kept_s,
		   config->dead_gpus.evicts ? "true" : "false", config->dead_gpus.after_s,
		   taint_names[config->dead_gpus.taint]);
}
