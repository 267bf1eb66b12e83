// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

static const struct cli_column tenant_columns[] = {
	{ "NAME", "name" },        { "STATE", "state" },     { "GPUS", "usage.gpus" },
	{ "QUOTA", "quota.gpus" }, { "CPU", "quota.cpu" },   { "MEMORY", "quota.memory" },
	{ "PODS", "quota.pods" },  { "CREATED", "created" },
};

static const struct cli_column queue_columns[] = {
	{ "TENANT", "tenant" },
	{ "PARENT", "parent" },
	{ "GUARANTEED", "guaranteed" },
	{ "LIMIT", "limit" },
	{ "HELD", "allocated" },
	{ "DESERVED", "deserved" },
	{ "BORROWED", "borrowed" },
	{ "WAITING", "waiting" },
	{ "PODS", "waiting_pods" },
	{ "SHARE", "share" },
	{ "GPU-HOURS", "used_gpu_hours" },
	{ "PROBLEM", "problem" },
};

static const struct cli_column member_columns[] = {
	{ "USER", "user" },
	{ "ROLE", "role" },
	{ "SINCE", "created" },
};

enum { WINDOWS_MAX = 33 }; // one more than the server takes, so that it says so

static void set_text(json_t *object, const char *key, const char *value)
{
	if (value != NULL)
		(void)json_object_set_new(object, key, json_string(value));
}

// Whole numbers go as numbers; what is no number goes as text and the server says what is wrong.
static void set_number(json_t *object, const char *key, const char *value)
{
	int64_t number;
	if (value == NULL)
		return;
	if (str_to_i64(str_of(value), &number))
		(void)json_object_set_new(object, key, json_integer(number));
	else
		(void)json_object_set_new(object, key, json_string(value));
}

struct quota_options {
	const char *gpus, *cpu, *memory, *pods, *display_name;
	const char *parent, *guaranteed, *limit, *user_limit, *weight, *ceiling, *half_life,
		*max_run, *by_model;
	bool has_no_queue;
};

#define QUOTA_OPTIONS(q)                                                                           \
	{ "--gpus", &(q).gpus, NULL, 0 }, { "--cpu", &(q).cpu, NULL, 0 },                          \
		{ "--memory", &(q).memory, NULL, 0 }, { "--pods", &(q).pods, NULL, 0 },            \
		{ "--parent", &(q).parent, NULL, 0 },                                              \
		{ "--guaranteed", &(q).guaranteed, NULL, 0 }, { "--limit", &(q).limit, NULL, 0 },  \
		{ "--user-limit", &(q).user_limit, NULL, 0 },                                      \
		{ "--weight", &(q).weight, NULL, 0 },                                              \
		{ "--priority-ceiling", &(q).ceiling, NULL, 0 },                                   \
		{ "--half-life", &(q).half_life, NULL, 0 },                                        \
		{ "--by-model", &(q).by_model, NULL, 0 }, { "--max-run", &(q).max_run, NULL, 0 },  \
		{ "--no-queue", NULL, &(q).has_no_queue, 0 },                                      \
	{                                                                                          \
		"--display-name", &(q).display_name, NULL, 0                                       \
	}

// "none" takes a setting away.
static void set_queue_member(json_t *queue, const char *key, const char *value, bool is_number)
{
	if (value != NULL && strcmp(value, "none") == 0)
		(void)json_object_set_new(queue, key, json_null());
	else if (is_number)
		set_number(queue, key, value);
	else
		set_text(queue, key, value);
}

// "H100=4:8,A100=:2" is at least and at most so many of each.
static void put_models(json_t *queue, const char *value)
{
	struct str rest = str_of(value == NULL ? "" : value), item;
	json_t *models = json_array();
	if (value != NULL && strcmp(value, "none") == 0)
		(void)json_object_set_new(queue, "by_model", json_null());
	else if (value != NULL)
		(void)json_object_set(queue, "by_model", models);
	while (rest.len > 0 && str_split_next(&rest, ',', &item)) {
		static const char *const KEYS[] = { "guaranteed", "limit" };
		json_t *model = json_object();
		struct str name, amount;
		if (str_split_next(&item, '=', &name))
			(void)json_object_set_new(model, "model",
						  json_stringn(name.data, name.len));
		for (size_t i = 0; i < ARRAY_COUNT(KEYS) && str_split_next(&item, ':', &amount);
		     i++) {
			char text[32] = "";
			if (amount.len == 0 || amount.len >= sizeof text)
				continue;
			memcpy(text, amount.data, amount.len);
			set_number(model, KEYS[i], text);
		}
		(void)json_array_append_new(models, model);
	}
	json_decref(models);
}

static void put_queue(json_t *body, const struct quota_options *q)
{
	json_t *queue = json_object();
	set_queue_member(queue, "parent", q->parent, false);
	set_queue_member(queue, "guaranteed", q->guaranteed, true);
	set_queue_member(queue, "limit", q->limit, true);
	set_queue_member(queue, "user_limit", q->user_limit, true);
	set_queue_member(queue, "weight", q->weight, true);
	set_queue_member(queue, "priority_ceiling", q->ceiling, true);
	set_queue_member(queue, "half_life", q->half_life, false);
	set_queue_member(queue, "max_run", q->max_run, false);
	put_models(queue, q->by_model);
	if (q->has_no_queue)
		(void)json_object_set_new(body, "queue", json_null());
	else if (json_object_size(queue) > 0)
		(void)json_object_set(body, "queue", queue);
	json_decref(queue);
}

static json_t *tenant_body(const struct quota_options *q)
{
	json_t *body = json_object(), *quota = json_object();
	set_number(quota, "gpus", q->gpus);
	set_text(quota, "cpu", q->cpu);
	set_text(quota, "memory", q->memory);
	set_number(quota, "pods", q->pods);
	if (json_object_size(quota) > 0)
		(void)json_object_set(body, "quota", quota);
	json_decref(quota);
	set_text(body, "display_name", q->display_name);
	put_queue(body, q);
	return body;
}

int verb_tenant_create(struct cli *cli, int argc, char **argv)
{
	struct quota_options quota = { 0 };
	struct cli_option options[] = { QUOTA_OPTIONS(quota) };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("tenant create", "want one name, not %d", count);
	AUTO(json_decrefp) json_t *body = tenant_body(&quota);
	set_text(body, "name", argv[0]);
	return cli_show(cli, "POST", "/v1/tenants", body, tenant_columns,
			ARRAY_COUNT(tenant_columns));
}

int verb_tenant_set(struct cli *cli, int argc, char **argv)
{
	struct quota_options quota = { 0 };
	const char *windows[WINDOWS_MAX + 1] = { NULL };
	bool has_no_windows = false;
	struct cli_option options[] = {
		QUOTA_OPTIONS(quota),
		{ "--window", windows, NULL, WINDOWS_MAX },
		{ "--no-windows", NULL, &has_no_windows, 0 },
	};
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("tenant set", "want one name, not %d", count);
	AUTO(json_decrefp) json_t *body = tenant_body(&quota);
	cli_put_windows(body, windows, has_no_windows);
	return cli_show(cli, "PATCH", cli_path(cli, "/v1/tenants/", argv[0], ""), body,
			tenant_columns, ARRAY_COUNT(tenant_columns));
}

int verb_tenant_list(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	return cli_show_pages(cli, "/v1/tenants", tenant_columns, ARRAY_COUNT(tenant_columns));
}

int verb_tenant_show(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("tenant show", "want one name, not %d", count);
	return cli_show(cli, "GET", cli_path(cli, "/v1/tenants/", argv[0], ""), NULL,
			tenant_columns, ARRAY_COUNT(tenant_columns));
}

int verb_queue(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	return cli_show_pages(cli, "/v1/queues", queue_columns, ARRAY_COUNT(queue_columns));
}

int verb_tenant_delete(struct cli *cli, int argc, char **argv)
{
	bool yes = false;
	struct cli_option options[] = { { "--yes", NULL, &yes, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("tenant delete", "want one name, not %d", count);
	if (!yes)
		return cli_usage("tenant delete",
				 "this ends all that runs in %s; say so with --yes", argv[0]);
	return cli_show(cli, "DELETE", cli_path(cli, "/v1/tenants/", argv[0], ""), NULL,
			tenant_columns, ARRAY_COUNT(tenant_columns));
}

int verb_tenant_members(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 1)
		return cli_usage("tenant members", "want one tenant, not %d", count);
	return cli_show_pages(cli, cli_path(cli, "/v1/tenants/", argv[0], "/members"),
			      member_columns, ARRAY_COUNT(member_columns));
}

int verb_tenant_add_member(struct cli *cli, int argc, char **argv)
{
	const char *role = NULL;
	struct cli_option options[] = { { "--role", &role, NULL, 0 } };
	int count;
	if (!cli_options(cli, argc, argv, options, ARRAY_COUNT(options), &count))
		return CLI_USAGE;
	if (count != 2)
		return cli_usage("tenant add-member", "want a tenant and a user");
	AUTO(json_decrefp) json_t *body = json_object();
	set_text(body, "user", argv[1]);
	set_text(body, "role", role == NULL ? "member" : role);
	return cli_show(cli, "POST", cli_path(cli, "/v1/tenants/", argv[0], "/members"), body,
			member_columns, ARRAY_COUNT(member_columns));
}

int verb_tenant_remove_member(struct cli *cli, int argc, char **argv)
{
	int count;
	if (!cli_options(cli, argc, argv, NULL, 0, &count))
		return CLI_USAGE;
	if (count != 2)
		return cli_usage("tenant remove-member", "want a tenant and a user");
	const char *members = cli_path(cli, "/v1/tenants/", argv[0], "/members/");
	json_t *answer = NULL;
	int code = cli_call(cli, "DELETE", cli_path(cli, members, argv[1], ""), NULL, &answer);
	json_decref(answer);
	return code;
}
