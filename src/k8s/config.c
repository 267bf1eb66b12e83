// SPDX-License-Identifier: Apache-2.0
#include "k8s/config.h"

#include "base/base64.h"
#include "base/yaml.h"
#include "sys/fs.h"

#include <stdlib.h>

enum { FILE_MAX_BYTES = 1024 * 1024, FILES_MAX = 16 };

#define MOUNT_DEFAULT "/var/run/secrets/kubernetes.io/serviceaccount"

// The files of one kubeconfig; what an earlier one names wins.
struct files {
	struct arena *arena;
	json_t *values[FILES_MAX];
	const char *folders[FILES_MAX];
	size_t count;
};

static void files_done(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		json_decref(files->values[i]);
	files->count = 0;
}

static err_status no_memory(struct err *err)
{
	return err_set(err, ERR_LIMIT, "the kubeconfig is larger than its arena");
}

// Copies text to the arena, NULL when absent.
static const char *dup_text(struct arena *arena, const json_t *object, const char *path)
{
	struct str text = json_text(object, path);
	return text.data == NULL ? NULL : arena_cstr(arena, text);
}

static err_status read_file(struct arena *arena, const char *path, struct str *ret_text,
			    struct err *err)
{
	AUTO(buf_done) struct buf content = { 0 };
	err_status status = fs_read(path, FILE_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	struct str text = arena_dup(arena, buf_str(&content));
	if (text.data == NULL)
		return no_memory(err);
	*ret_text = text;
	return ERR_OK;
}

// A file's name, from the folder of the kubeconfig when relative.
static const char *file_path(struct arena *arena, const char *folder, struct str name)
{
	if (name.data == NULL)
		return NULL;
	if (name.len > 0 && name.data[0] == '/')
		return arena_cstr(arena, name);
	return arena_printf(arena, "%s/" STR_FMT, folder, STR_ARG(name));
}

// Inline data ("certificate-authority-data") goes before the file ("certificate-authority").
static err_status take_pem(struct files *files, size_t file_i, const json_t *object,
			   const char *key, struct str *ret_pem, struct err *err)
{
	char data_key[64];
	(void)snprintf(data_key, sizeof data_key, "%s-data", key);
	struct str data = json_text(object, data_key);
	if (data.len > 0) {
		AUTO(buf_done) struct buf pem = { 0 };
		if (!base64_decode(&pem, data))
			return err_set(err, ERR_INVALID, "%s is not base64", data_key);
		struct str text = arena_dup(files->arena, buf_str(&pem));
		if (text.data == NULL)
			return no_memory(err);
		*ret_pem = text;
		return ERR_OK;
	}
	struct str name = json_text(object, key);
	if (name.len == 0)
		return ERR_OK;
	const char *path = file_path(files->arena, files->folders[file_i], name);
	if (path == NULL)
		return no_memory(err);
	err_status status = read_file(files->arena, path, ret_pem, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", key);
}

// {name, <kind>: {...}} in the list "<kind>s" of the first file that has it.
static const json_t *find_named(const struct files *files, const char *kind, const char *name,
				size_t *ret_file_i)
{
	char list_key[16];
	(void)snprintf(list_key, sizeof list_key, "%ss", kind);
	for (size_t f = 0; f < files->count; f++) {
		const json_t *list = json_at(files->values[f], list_key);
		for (size_t i = 0; i < json_array_size(list); i++) {
			const json_t *item = json_array_get(list, i);
			if (strcmp(json_cstr(item, "name"), name) == 0) {
				*ret_file_i = f;
				return json_at(item, kind);
			}
		}
	}
	return NULL;
}

static err_status take_cluster(struct files *files, const char *name, struct k8s_config *config,
			       struct err *err)
{
	size_t file_i = 0;
	const json_t *cluster = find_named(files, "cluster", name, &file_i);
	if (cluster == NULL)
		return err_set(err, ERR_NOT_FOUND, "the kubeconfig has no cluster \"%s\"", name);
	struct str server;
	err_status status = json_need_text(cluster, "server", &server, err);
	if (status != ERR_OK)
		return err_wrap(err, "cluster \"%s\"", name);
	if (json_text(cluster, "proxy-url").len > 0)
		return err_set(err, ERR_UNSUPPORTED, "cluster \"%s\": proxy-url is not supported",
			       name);
	config->server = arena_cstr(files->arena, server);
	config->tls_server_name = dup_text(files->arena, cluster, "tls-server-name");
	config->insecure_skip_verify = json_bool(cluster, "insecure-skip-tls-verify", false);
	if (config->server == NULL)
		return no_memory(err);
	return take_pem(files, file_i, cluster, "certificate-authority", &config->ca_pem, err);
}

static err_status refuse_user(const json_t *user, const char *name, struct err *err)
{
	static const char *const unsupported[] = { "exec", "auth-provider", "username", "password",
						   "as",   "as-uid",        "as-groups" };
	for (size_t i = 0; i < ARRAY_COUNT(unsupported); i++)
		if (json_at(user, unsupported[i]) != NULL)
			return err_set(err, ERR_UNSUPPORTED,
				       "user \"%s\": %s is not supported; use a token or a client "
				       "certificate",
				       name, unsupported[i]);
	return ERR_OK;
}

static err_status take_user(struct files *files, const char *name, struct k8s_config *config,
			    struct err *err)
{
	size_t file_i = 0;
	if (name[0] == '\0')
		return ERR_OK; // anonymous
	const json_t *user = find_named(files, "user", name, &file_i);
	if (user == NULL)
		return err_set(err, ERR_NOT_FOUND, "the kubeconfig has no user \"%s\"", name);
	err_status status = refuse_user(user, name, err);
	if (status == ERR_OK)
		status =
			take_pem(files, file_i, user, "client-certificate", &config->cert_pem, err);
	if (status == ERR_OK)
		status = take_pem(files, file_i, user, "client-key", &config->key_pem, err);
	if (status != ERR_OK)
		return status;
	if ((config->cert_pem.len == 0) != (config->key_pem.len == 0))
		return err_set(err, ERR_INVALID,
			       "user \"%s\": client certificate and key go together", name);
	config->token = dup_text(files->arena, user, "token");
	struct str token_file = json_text(user, "tokenFile");
	if (token_file.len > 0)
		config->token_file = file_path(files->arena, files->folders[file_i], token_file);
	return ERR_OK;
}

static err_status build(struct files *files, const char *context_name, struct k8s_config *ret,
			struct err *err)
{
	struct k8s_config config = { .namespace_ = "default" };
	size_t file_i = 0;
	for (size_t i = 0; context_name == NULL && i < files->count; i++)
		if (json_text(files->values[i], "current-context").len > 0)
			context_name = json_cstr(files->values[i], "current-context");
	if (context_name == NULL)
		return err_set(err, ERR_INVALID, "the kubeconfig has no current-context");
	const json_t *context = find_named(files, "context", context_name, &file_i);
	if (context == NULL)
		return err_set(err, ERR_NOT_FOUND, "the kubeconfig has no context \"%s\"",
			       context_name);
	err_status status = take_cluster(files, json_cstr(context, "cluster"), &config, err);
	if (status == ERR_OK)
		status = take_user(files, json_cstr(context, "user"), &config, err);
	if (status != ERR_OK)
		return status;
	if (json_text(context, "namespace").len > 0)
		config.namespace_ = dup_text(files->arena, context, "namespace");
	*ret = config;
	return ERR_OK;
}

static err_status add_text(struct files *files, struct str text, const char *folder,
			   struct err *err)
{
	if (files->count == FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d kubeconfig files", (int)FILES_MAX);
	json_t *value = NULL;
	err_status status = yaml_parse(text, &value, err);
	if (status != ERR_OK)
		return status;
	files->values[files->count] = value;
	files->folders[files->count] = folder;
	files->count++;
	if (!json_is_object(value))
		return err_set(err, ERR_INVALID, "a kubeconfig must be a mapping");
	return ERR_OK;
}

static err_status add_file(struct files *files, struct str path, struct err *err)
{
	struct str text;
	const char *name = arena_cstr(files->arena, path);
	if (name == NULL)
		return no_memory(err);
	err_status status = read_file(files->arena, name, &text, err);
	if (status != ERR_OK)
		return status;
	size_t slash = path.len;
	while (slash > 0 && path.data[slash - 1] != '/')
		slash--;
	const char *folder = slash == 0 ? "." : arena_cstr(files->arena, str_slice(path, 0, slash));
	if (folder == NULL)
		return no_memory(err);
	status = add_text(files, text, folder, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", name);
}

// Like kubectl, a list may name files that do not exist, but not only such.
static err_status add_list(struct files *files, const char *list, struct err *err)
{
	struct str rest = str_of(list), path;
	struct err last = { 0 };
	while (str_split_next(&rest, ':', &path)) {
		if (path.len == 0)
			continue;
		err_status status = add_file(files, path, &last);
		if (status != ERR_OK && status != ERR_NOT_FOUND)
			return err_set(err, status, "%s", last.text);
	}
	if (files->count == 0)
		return err_set(err, ERR_NOT_FOUND, "no kubeconfig: %s",
			       last.text[0] == '\0' ? "KUBECONFIG is empty" : last.text);
	return ERR_OK;
}

err_status k8s_config_load_context(struct arena *arena, const char *path, const char *context,
				   struct k8s_config *ret, struct err *err)
{
	AUTO(files_done) struct files files = { .arena = arena };
	const char *list = getenv("KUBECONFIG");
	const char *home = getenv("HOME");
	err_status status;
	if (path != NULL)
		status = add_file(&files, str_of(path), err);
	else if (list != NULL && list[0] != '\0')
		status = add_list(&files, list, err);
	else if (home != NULL)
		status =
			add_file(&files, str_of(arena_printf(arena, "%s/.kube/config", home)), err);
	else
		return err_set(err, ERR_NOT_FOUND,
			       "no kubeconfig: neither KUBECONFIG nor HOME is set");
	return status == ERR_OK ? build(&files, context, ret, err) : status;
}

err_status k8s_config_load_file(struct arena *arena, const char *path, struct k8s_config *ret,
				struct err *err)
{
	return k8s_config_load_context(arena, path, NULL, ret, err);
}

err_status k8s_config_parse(struct arena *arena, struct str text, const char *folder,
			    struct k8s_config *ret, struct err *err)
{
	AUTO(files_done) struct files files = { .arena = arena };
	err_status status = add_text(&files, text, folder, err);
	return status == ERR_OK ? build(&files, NULL, ret, err) : status;
}

err_status k8s_config_load_in_cluster(struct arena *arena, const char *mount,
				      struct k8s_config *ret, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	if (host == NULL || port == NULL)
		return err_set(err, ERR_NOT_FOUND,
			       "not in a cluster: KUBERNETES_SERVICE_HOST or _PORT is not set");
	const char *folder = mount == NULL ? MOUNT_DEFAULT : mount;
	bool is_v6 = strchr(host, ':') != NULL;
	struct k8s_config config = {
		.server = arena_printf(arena, is_v6 ? "https://[%s]:%s" : "https://%s:%s", host,
				       port),
		.token_file = arena_printf(arena, "%s/token", folder),
		.namespace_ = "default",
	};
	const char *ca = arena_printf(arena, "%s/ca.crt", folder);
	const char *name = arena_printf(arena, "%s/namespace", folder);
	if (config.server == NULL || config.token_file == NULL || ca == NULL || name == NULL)
		return no_memory(err);
	struct str text = { NULL, 0 };
	err_status status = read_file(arena, ca, &config.ca_pem, err);
	if (status != ERR_OK)
		return status;
	// Only the namespace may be missing: a projected volume need not have it.
	if (read_file(arena, name, &text, NULL) == ERR_OK && str_is_dns_label(str_trim(text)))
		config.namespace_ = arena_cstr(arena, str_trim(text));
	*ret = config;
	return ERR_OK;
}

err_status k8s_config_load(struct arena *arena, const char *where, struct k8s_config *ret,
			   struct err *err)
{
	if (where != NULL && strcmp(where, "in-cluster") == 0)
		return k8s_config_load_in_cluster(arena, NULL, ret, err);
	return k8s_config_load_file(arena, where, ret, err);
}
