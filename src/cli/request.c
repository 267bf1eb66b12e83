// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include "base/buf.h"
#include "base/yaml.h"
#include "sys/fs.h"

#include <stdio.h>

enum { FILE_MAX_BYTES = 1024 * 1024, REPEATED_MAX = 64 };

static const struct cli_column request_columns[] = {
	{ "ID", "id" },
	{ "STATE", "state" },
	{ "GPUS", "spec.gpus" },
	{ "MILLI", "spec.gpu_milli" },
	{ "MIG", "spec.mig_profile" },
	{ "PODS", "spec.gang" },
	{ "CLASS", "spec.class" },
	{ "NODE", "node" },
	{ "POSITION", "position" },
	{ "CREATED", "created" },
	{ "STARTED", "started" },
	{ "ENDED", "ended" },
	{ "REASON", "reason" },
};

struct create_options {
	const char *file, *tenant, *name, *class_, *gpus, *gpu_milli, *gpu_memory, *mig_profile;
	const char *cpu, *memory;
	const char *gang, *duration, *max_duration, *deadline, *image;
	const char *models[REPEATED_MAX], *env[REPEATED_MAX];
};

static int read_file(const char *path, json_t **ret_body)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err = { 0 };
	AUTO(json_decrefp) json_t *documents = NULL;
	if (fs_read(path, FILE_MAX_BYTES, &text, &err) != ERR_OK)
		return cli_fail(&err);
	if (yaml_parse_documents(buf_str(&text), &documents, &err) != ERR_OK)
		return cli_usage("request create", "%s: %s", path, err.text);
	if (json_array_size(documents) != 1 || !json_is_object(json_array_get(documents, 0)))
		return cli_usage("request create", "%s: want one object", path);
	json_decref(*ret_body);
	*ret_body = json_incref(json_array_get(documents, 0));
	return CLI_OK;
}

static void put_texts(json_t *body, const char *key, const char *const *texts, size_t count)
{
	if (count == 0)
		return;
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(array, json_string(texts[i]));
	(void)json_object_set_new(body, key, array);
}

static int put_env(json_t *body, const char *const *env)
{
	for (size_t i = 0; i < REPEATED_MAX && env[i] != NULL; i++) {
		const char *equals = strchr(env[i], '=');
		if (equals == NULL)
			return cli_usage("request create", "--env %s: want NAME=VALUE", env[i]);
		json_t *object = json_object_get(body, "env");
		if (object == NULL) {
			object = json_object();
			(void)json_object_set_new(body, "env", object);
		}
		(void)json_object_setn_new(object, env[i], (size_t)(equals - env[i]),
					   json_string(equals + 1));
	}
	return CLI_OK;
}

// What is no number is the server's to refuse.
static void put_number(json_t *body, const char *key, const char *text)
{
	int64_t number;
	if (text == NULL)
		return;
	(void)json_object_set_new(body, key,
				  str_to_i64(str_of(text), &number) ? json_integer(number)
								    : json_string(text));
}

static void put_options(json_t *body, const struct create_options *o)
{
	const struct {
		const char *key, *value;
	} texts[] = {
		{ "name", o->name },
		{ "class", o->class_ },
		{ "gpu_memory", o->gpu_memory },
		{ "mig_profile", o->mig_profile },
		{ "cpu", o->cpu },
		{ "memory", o->memory },
		{ "duration", o->duration },
		{ "max_duration", o->max_duration },
		{ "deadline", o->deadline },
		{ "image", o->image },
	};
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		if (texts[i].value != NULL)
			(void)json_object_set_new(body, texts[i].key, json_string(texts[i].value));
	put_number(body, "gpus", o->gpus);
	put_number(body, "gpu_milli", o->gpu_milli);
	put_number(body, "gang", o->gang);
	size_t models = 0;
	while (models < REPEATED_MAX && o->models[models] != NULL)
		models++;
	put_texts(body, "gpu_models", o->models, models);
}

// The tenant of the request: named, or the one of the caller's token.
static int find_tenant(struct cli *cli, const char **tenant)
{
	if (*tenant != NULL)
		return CLI_OK;
	json_t *who = NULL;
	int code = cli_call(cli, "GET", "/v1/whoami", NULL, &who);
	if (code != CLI_OK)
		return code;
	struct str own = json_text(who, "tenant");
	if (own.len > 0)
		*tenant = arena_cstr(cli->arena, own);
	json_decref(who);
	return own.len > 0 ? CLI_OK
			   : cli_usage("request create", "your token has no tenant: name one with "
							 "--tenant");
}

int verb_request_create(struct cli *cli, int argc, char **argv)
{
	struct create_options o = { 0 };
	struct cli_option options[] = {
		{ "-f", &o.file, NULL, 0 },
		{ "--tenant", &o.tenant, NULL, 0 },
		{ "--name", &o.name, NULL, 0 },
		{ "--class", &o.class_, NULL, 0 },
		{ "--gpus", &o.gpus, NULL, 0 },
		{ "--gpu-milli", &o.gpu_milli, NULL, 0 },
		{ "--gang", &o.gang, NULL, 0 },
		{ "--gpu-memory", &o.gpu_memory, NULL, 0 },
		{ "--mig-profile", &o.mig_profile, NULL, 0 },
		{ "--cpu", &o.cpu, NULL, 0 },
		{ "--memory", &o.memory, NULL, 0 },
		{ "--duration", &o.duration, NULL, 0 },
		{ "--max-duration", &o.max_duration, NULL, 0 },
		{ "--deadline", &o.deadline, NULL, 0 },
		{ "--image", &o.image, NULL, 0 },
		{ "--gpu-model", o.models, NULL, REPEATED_MAX },
		{ "--env", o.env, NULL, REPEATED_MAX },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	AUTO(json_decrefp) json_t *body = json_object();
	int code = o.file == NULL ? CLI_OK : read_file(o.file, &body);
	if (code == CLI_OK) {
		put_options(body, &o);
		put_texts(body, "args", (const char *const *)argv, (size_t)count);
		code = put_env(body, o.env);
	}
	if (code == CLI_OK)
		code = find_tenant(cli, &o.tenant);
	if (code != CLI_OK)
		return code;
	return cli_show(cli, "POST", cli_path(cli, "/v1/tenants/", o.tenant, "/requests"), body,
			request_columns, ARRAY_COUNT(request_columns));
}

static int print_request(struct cli *cli, const char *verb, const char *method, int argc,
			 char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage(verb, "want one id (TENANT.NAME), not %d", count);
	json_t *answer = NULL;
	int code =
		cli_call(cli, method, cli_path(cli, "/v1/requests/", argv[0], ""), NULL, &answer);
	if (code != CLI_OK)
		return code;
	cli_print(cli, answer, request_columns, ARRAY_COUNT(request_columns));
	if (cli->format == CLI_TABLE && json_text(answer, "message").len > 0)
		printf("%s\n", cli_plain(cli, json_text(answer, "message")));
	json_decref(answer);
	return CLI_OK;
}

int verb_request_show(struct cli *cli, int argc, char **argv)
{
	return print_request(cli, "request show", "GET", argc, argv);
}

int verb_cancel(struct cli *cli, int argc, char **argv)
{
	return print_request(cli, "cancel", "DELETE", argc, argv);
}

static const struct cli_column place_columns[] = {
	{ "ID", "id" },
	{ "STATE", "state" },
	{ "CLASS", "spec.class" },
	{ "POSITION", "position" },
	{ "BELOW GUARANTEE", "queue.below_guarantee" },
	{ "PRIORITY", "queue.priority" },
	{ "SCORE", "queue.score" },
	{ "FACTORS (VALUE x WEIGHT)", "factors_text" },
	{ "NODE", "node" },
};

// The factors of one in a cell; those with weight 0 are switched off.
static void put_factors(struct cli *cli, json_t *item)
{
	AUTO(buf_done) struct buf text = { .limit = 1024 };
	size_t i;
	json_t *factor;
	json_array_foreach(json_at(item, "queue.factors"), i, factor)
	{
		if (json_int(factor, "weight", 0) == 0)
			continue;
		buf_printf(&text, "%s%s %s x %lld", text.len > 0 ? ", " : "",
			   cli_plain(cli, json_text(factor, "name")),
			   cli_cell(cli, factor, "value"),
			   (long long)json_int(factor, "weight", 0));
	}
	if (text.len > 0 && buf_ok(&text))
		(void)json_object_set_new(item, "factors_text", json_stringn(text.data, text.len));
}

static int show_places(struct cli *cli, const char *path)
{
	AUTO(json_decrefp) json_t *items = NULL;
	int code = cli_call_pages(cli, path, &items);
	size_t i;
	json_t *item;
	if (code != CLI_OK)
		return code;
	json_array_foreach(items, i, item)
	{
		if (cli->format == CLI_TABLE)
			put_factors(cli, item);
	}
	cli_print(cli, items, place_columns, ARRAY_COUNT(place_columns));
	return CLI_OK;
}

int verb_ps(struct cli *cli, int argc, char **argv)
{
	const char *tenant = NULL, *state = NULL;
	bool is_wide = false;
	struct cli_option options[] = { { "--tenant", &tenant, NULL, 0 },
					{ "--state", &state, NULL, 0 },
					{ "--wide", NULL, &is_wide, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	const char *path = tenant == NULL ? "/v1/requests"
					  : cli_path(cli, "/v1/requests?tenant=", tenant, "");
	if (state != NULL)
		path = cli_path(
			cli,
			arena_printf(cli->arena, "%s%sstate=", path, tenant == NULL ? "?" : "&"),
			state, "");
	if (is_wide)
		return show_places(cli, arena_printf(cli->arena, "%s%splaces=true", path,
						     strchr(path, '?') == NULL ? "?" : "&"));
	return cli_show_pages(cli, path, request_columns, ARRAY_COUNT(request_columns));
}
