// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "k8s/config.h"
#include "sys/fs.h"

#include <stdlib.h>
#include <unistd.h>

#define HEAD                                                                                       \
	"apiVersion: v1\nkind: Config\ncurrent-context: c\n"                                       \
	"contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:1'}}]\n"

static void test_good(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct k8s_config config;
	struct err err = { 0 };
	err_status status = k8s_config_parse(
		arena,
		STR(HEAD "clusters:\n- name: k\n  cluster:\n    server: https://10.0.0.1:6443/x\n"
			 "    certificate-authority-data: Q0E=\n    tls-server-name: api\n"
			 "users:\n- name: u\n  user: {client-certificate-data: Q0VSVA==,"
			 " client-key-data: S0VZ, token: secret}\n"),
		"/etc", &config, &err);
	CHECK_STR(c, "error", str_of(err.text), "");
	if (status != ERR_OK)
		return;
	CHECK_STR(c, "server", str_of(config.server), "https://10.0.0.1:6443/x");
	CHECK_STR(c, "ca", config.ca_pem, "CA");
	CHECK_STR(c, "cert", config.cert_pem, "CERT");
	CHECK_STR(c, "key", config.key_pem, "KEY");
	CHECK_STR(c, "token", str_of(config.token), "secret");
	CHECK_STR(c, "namespace", str_of(config.namespace_), "team");
	CHECK_STR(c, "name", str_of(config.tls_server_name), "api");
	CHECK(c, "verified", !config.insecure_skip_verify && config.token_file == NULL);

	status = k8s_config_parse(arena,
				  STR(HEAD CLUSTER "users: [{name: u, user: {tokenFile: t}}]"),
				  "/etc/x", &config, &err);
	CHECK_INT(c, "token file", status, ERR_OK);
	CHECK_STR(c, "relative", str_of(config.token_file), "/etc/x/t");
}

static void test_bad(struct check *c)
{
	static const struct {
		const char *name, *text;
		err_status status;
		const char *error;
	} cases[] = {
		{ "empty", "", ERR_INVALID, "wanted one YAML document, found 0" },
		{ "list", "[]", ERR_INVALID, "a kubeconfig must be a mapping" },
		{ "no context", "{}", ERR_INVALID, "the kubeconfig has no current-context" },
		{ "unknown context", "current-context: x", ERR_NOT_FOUND,
		  "the kubeconfig has no context \"x\"" },
		{ "no cluster", HEAD, ERR_NOT_FOUND, "the kubeconfig has no cluster \"k\"" },
		{ "no user", HEAD CLUSTER, ERR_NOT_FOUND, "the kubeconfig has no user \"u\"" },
		{ "no server", HEAD "clusters: [{name: k, cluster: {}}]", ERR_INVALID,
		  "cluster \"k\": server is missing" },
		{ "server", HEAD "clusters: [{name: k, cluster: {server: 1}}]", ERR_INVALID,
		  "cluster \"k\": server must be a string" },
		{ "exec", HEAD CLUSTER "users: [{name: u, user: {exec: {command: x}}}]",
		  ERR_UNSUPPORTED,
		  "user \"u\": exec is not supported; use a token or a client certificate" },
		{ "half a pair", HEAD CLUSTER "users: [{name: u, user: {client-key-data: S0VZ}}]",
		  ERR_INVALID, "user \"u\": client certificate and key go together" },
		{ "base64", HEAD CLUSTER "users: [{name: u, user: {client-key-data: '*'}}]",
		  ERR_INVALID, "client-key-data is not base64" },
		{ "missing file", HEAD CLUSTER "users: [{name: u, user: {client-key: nope}}]",
		  ERR_NOT_FOUND, "client-key: /tmp/nope does not exist" },
		{ "alias", "a: &x 1\nb: *x\n", ERR_INVALID,
		  "line 2: aliases (*name) are not supported" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		struct k8s_config config = { .server = "untouched" };
		struct err err = { 0 };
		CHECK_INT(c, cases[i].name,
			  k8s_config_parse(arena, str_of(cases[i].text), "/tmp", &config, &err),
			  cases[i].status);
		CHECK_STR(c, cases[i].name, str_of(err.text), cases[i].error);
		CHECK_STR(c, cases[i].name, str_of(config.server), "untouched");
	}
}

static void write_file(struct check *c, const char *folder, const char *name, const char *text)
{
	char path[200];
	struct err err = { 0 };
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	CHECK(c, path, fs_write_atomic(path, str_of(text), 0600, &err) == ERR_OK);
}

static void test_files(struct check *c, const char *folder)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct k8s_config config;
	struct err err = { 0 };
	char list[400];
	write_file(c, folder, "a", HEAD CLUSTER);
	write_file(
		c, folder, "b",
		"clusters: [{name: k, cluster: {server: 'https://other'}}]\n"
		"users: [{name: u, user: {client-certificate: cert.pem, client-key: key.pem}}]\n");
	write_file(c, folder, "cert.pem", "the certificate");
	write_file(c, folder, "key.pem", "the key");
	(void)snprintf(list, sizeof list, "%s/missing:%s/a:%s/b", folder, folder, folder);
	CHECK(c, "env", setenv("KUBECONFIG", list, 1) == 0);
	err_status status = k8s_config_load_file(arena, NULL, &config, &err);
	CHECK_STR(c, "list", str_of(err.text), "");
	if (status == ERR_OK) {
		CHECK_STR(c, "the first wins", str_of(config.server), "https://h:1");
		CHECK_STR(c, "the second adds", config.cert_pem, "the certificate");
	}
	CHECK_INT(c, "named context", k8s_config_load_context(arena, NULL, "zzz", &config, &err),
		  ERR_NOT_FOUND);
	(void)snprintf(list, sizeof list, "%s/missing", folder);
	CHECK_INT(c, "missing", k8s_config_load_file(arena, list, &config, &err), ERR_NOT_FOUND);
}

static void test_in_cluster(struct check *c, const char *folder)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct k8s_config config;
	struct err err = { 0 };
	CHECK(c, "env", unsetenv("KUBERNETES_SERVICE_HOST") == 0);
	CHECK_INT(c, "outside", k8s_config_load_in_cluster(arena, folder, &config, &err),
		  ERR_NOT_FOUND);
	CHECK(c, "env", setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1) == 0);
	CHECK(c, "env", setenv("KUBERNETES_SERVICE_PORT", "443", 1) == 0);
	CHECK_INT(c, "no CA", k8s_config_load_in_cluster(arena, folder, &config, &err),
		  ERR_NOT_FOUND);
	write_file(c, folder, "ca.crt", "the CA");
	CHECK_INT(c, "CA", k8s_config_load_in_cluster(arena, folder, &config, &err), ERR_OK);
	CHECK_STR(c, "server", str_of(config.server), "https://[fd00::1]:443");
	CHECK_STR(c, "default", str_of(config.namespace_), "default");
	CHECK(c, "token file", str_ends(str_of(config.token_file), STR("/token")));
	write_file(c, folder, "namespace", "gpuaas-system\n");
	CHECK_INT(c, "CA", k8s_config_load_in_cluster(arena, folder, &config, &err), ERR_OK);
	CHECK_STR(c, "namespace", str_of(config.namespace_), "gpuaas-system");
}

int main(void)
{
	struct check c = { 0 };
	char folder[] = "/tmp/config_test.XXXXXX";
	ASSERT(mkdtemp(folder) != NULL);
	test_good(&c);
	test_bad(&c);
	test_files(&c, folder);
	test_in_cluster(&c, folder);
	static const char *const names[] = {
		"a", "b", "cert.pem", "key.pem", "ca.crt", "namespace"
	};
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		char path[200];
		(void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder);
	return check_done(&c);
}
