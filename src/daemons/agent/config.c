// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/config.h"

#include "base/yaml.h"
#include "sys/fs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 256 * 1024, HOST_NAME_BYTES = 256 };

// Name, member, default, help.
#define FLAGS(X)                                                                                   \
	X("node-name", node_name, NULL, "this node, as Kubernetes names it (else $NODE_NAME)")     \
	X("device-plugin-dir", device_plugin_dir, "/var/lib/kubelet/device-plugins",               \
	  "the kubelet's folder for device plugins")                                               \
	X("pod-resources-socket", pod_resources_socket,                                            \
	  "/var/lib/kubelet/pod-resources/kubelet.sock", "the kubelet's PodResources socket")      \
	X("plugin-registry-dir", plugin_registry_dir, "/var/lib/kubelet/plugins_registry",         \
	  "the kubelet's folder where drivers of claims register (mode dra)")                      \
	X("plugins-dir", plugins_dir, "/var/lib/kubelet/plugins", "folder of their sockets")       \
	X("cdi-dir", cdi_dir, "/var/run/cdi", "folder for the CDI specification")                  \
	X("state-dir", state_dir, "/var/lib/gpuaas", "journal and kept health")                    \
	X("driver-root", driver_root, "/", "where the driver's files are, for host and agent")     \
	X("nvml-library", nvml_library, NULL, "driver library (else found in the driver root)")    \
	X("listen", listen, "0.0.0.0:9400", "address of /metrics, /healthz and /readyz")           \
	X("config", config_path, NULL, "configuration file, YAML or JSON")                         \
	X("config-file", dp_file, NULL, "device plugin, file v1 of upstream (else $CONFIG_FILE)")  \
	X("config-file-srcdir", dp_dir, NULL,                                                      \
	  "folder of several such files, chosen by label (else $CONFIG_FILE_SRCDIR)")              \
	X("default-config", dp_default, NULL, "file of nodes without label ($DEFAULT_CONFIG)")     \
	X("node-label", dp_label, NULL, "nvidia.com/device-plugin.config (else $NODE_LABEL)")      \
	X("fallback-strategies", dp_fallbacks, NULL,                                               \
	  "of named, single, empty; named,single (else $FALLBACK_STRATEGIES)")                     \
	X("kubeconfig", kubeconfig, NULL, "FILE, in-cluster, or none: no API server")              \
	X("log-level", log_level_text, "info", "debug, info, warn or error")

// Key of the file, member, default, minimum, maximum.
#define NUMBERS(X)                                                                                 \
	X("planWaitMs", plan_wait_ms, 100, 0, 1000)                                                \
	X("server.batchBytes", push_batch_bytes, 262144, 4096, 3145728)                            \
	X("server.periodMs", push_period_ms, 1000, 10, 3600000)                                    \
	X("health.probeMs", probe_ms, 1000, 20, 60000)                                             \
	X("health.deadlineMs", deadline_ms, 3000, 20, 60000)                                       \
	X("health.startDeadlineMs", start_deadline_ms, 30000, 100, 600000)                         \
	X("health.strikes", strikes, 2, 1, 100)                                                    \
	X("health.cleanProbes", clean_probes, 3, 1, 1000)                                          \
	X("health.holdOffS", hold_off_s, 10, 0, 86400)                                             \
	X("health.handoverMs", handover_ms, 2000, 0, 600000)                                       \
	X("health.handoverMiB", handover_mib, 1024, 1, 1048576)                                    \
	X("usage.readMs", read_ms, 2000, 20, 60000)                                                \
	X("usage.sampleS", sample_s, 10, 1, 3600)                                                  \
	X("journal.segmentBytes", journal_segment_bytes, 1048576, 4096, 67108864)                  \
	X("journal.limitBytes", journal_limit_bytes, 67108864, 65536, INT64_C(10737418240))        \
	X("node.periodS", node_period_s, 10, 1, 3600)

#define TEXTS(X)                                                                                   \
	X("resource", resource, "nvidia.com/gpu")                                                  \
	X("mode", mode, "device-plugin")                                                           \
	X("dra.nodes", dra_nodes, NULL)                                                            \
	X("dra.unhealthyEffect", dra_effect, "NoSchedule")                                         \
	X("sysRoot", sys_root, "/sys")                                                             \
	X("driverProcRoot", proc_driver, "/proc")                                                  \
	X("planKeyFile", plan_key_file, NULL)                                                      \
	X("attribution.procRoot", proc_root, NULL)                                                 \
	X("server.url", push_url, NULL)                                                            \
	X("server.caFile", push_ca_file, NULL)                                                     \
	X("server.tokenFile", push_token_file, NULL)                                               \
	X("tls.certFile", tls_cert_file, NULL)                                                     \
	X("tls.keyFile", tls_key_file, NULL)                                                       \
	X("load.listen", load_listen, NULL)                                                        \
	X("load.certFile", load_cert_file, NULL)                                                   \
	X("load.keyFile", load_key_file, NULL)                                                     \
	X("metrics.countersFile", counters_file, NULL)                                             \
	X("metrics.dcgmLibrary", dcgm_library, NULL)                                               \
	X("metrics.dcgmAddress", dcgm_address, NULL)                                               \
	X("metrics.tokensFile", tokens_file, NULL)                                                 \
	X("health.ignoreXids", ignore_xids, NULL)                                                  \
	X("health.watchXids", watch_xids, NULL)                                                    \
	X("mig.configFile", mig_file, NULL)                                                        \
	X("mig.layout", mig_layout, NULL)

static const char *const top_keys[] = {
	"resource",    "sysRoot",    "driverProcRoot",
	"planKeyFile", "planWaitMs", "server",
	"tls",         "health",     "usage",
	"journal",     "node",       "extraDeviceMounts",
	"attribution", "metrics",    "mode",
	"dra",         "mig",        "load",
	NULL,
};
static const struct {
	const char *name;
	const char *const *keys;
} sections[] = {
	{ "server",
	  (const char *const[]){ "url", "caFile", "tokenFile", "batchBytes", "periodMs", NULL } },
	{ "attribution", (const char *const[]){ "procRoot", NULL } },
	{ "metrics", (const char *const[]){ "countersFile", "tokensFile", "dcgmLibrary",
					    "dcgmAddress", NULL } },
	{ "tls", (const char *const[]){ "certFile", "keyFile", NULL } },
	{ "load", (const char *const[]){ "listen", "certFile", "keyFile", NULL } },
	{ "health", (const char *const[]){ "ignoreXids", "watchXids", "probeMs", "deadlineMs",
					   "startDeadlineMs", "strikes", "cleanProbes", "holdOffS",
					   "handoverMs", "handoverMiB", NULL } },
	{ "usage", (const char *const[]){ "readMs", "sampleS", NULL } },
	{ "journal", (const char *const[]){ "segmentBytes", "limitBytes", NULL } },
	{ "node", (const char *const[]){ "periodS", NULL } },
	{ "dra", (const char *const[]){ "nodes", "unhealthyEffect", NULL } },
	{ "mig", (const char *const[]){ "manage", "configFile", "layout", NULL } },
};

static err_status check_keys(const json_t *root, struct err *err)
{
	if (!json_is_object(root))
		return err_set(err, ERR_INVALID, "must be a mapping of keys");
	if (json_only_keys(root, top_keys, err) != ERR_OK)
		return ERR_INVALID;
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++) {
		const json_t *section = json_at(root, sections[i].name);
		if (section == NULL)
			continue;
		if (!json_is_object(section))
			return err_set(err, ERR_INVALID, "%s must be a mapping", sections[i].name);
		if (json_only_keys(section, sections[i].keys, err) != ERR_OK)
			return err_wrap(err, "%s", sections[i].name);
	}
	return ERR_OK;
}

static err_status take_text(struct arena *arena, const json_t *root, const char *key,
			    const char **member, struct err *err)
{
	const json_t *value = json_at(root, key);
	if (value == NULL)
		return ERR_OK;
	if (!json_is_string(value))
		return err_set(err, ERR_INVALID, "%s must be text", key);
	*member = arena_cstr(arena, json_text(root, key));
	return *member == NULL ? err_set(err, ERR_LIMIT, "no memory for %s", key) : ERR_OK;
}

static err_status take_number(const json_t *root, const char *key, const int64_t range[2],
			      int64_t *member, struct err *err)
{
	const json_t *value = json_at(root, key);
	if (value == NULL)
		return ERR_OK;
	if (!json_is_integer(value) || json_integer_value(value) < range[0] ||
	    json_integer_value(value) > range[1])
		return err_set(err, ERR_INVALID,
			       "%s must be a whole number from %" PRId64 " to %" PRId64, key,
			       range[0], range[1]);
	*member = json_integer_value(value);
	return ERR_OK;
}

static err_status take_mount(struct arena *arena, const json_t *item, struct cdi_mount *ret,
			     struct err *err)
{
	static const char *const keys[] = { "hostPath", "containerPath", "options", "of", NULL };
	const json_t *options = json_at(item, "options");
	if (!json_is_object(item))
		return err_set(err, ERR_INVALID, "must be a mapping");
	if (json_only_keys(item, keys, err) != ERR_OK ||
	    take_text(arena, item, "hostPath", &ret->host_path, err) != ERR_OK ||
	    take_text(arena, item, "containerPath", &ret->container_path, err) != ERR_OK)
		return err->status;
	if (ret->host_path == NULL || ret->container_path == NULL || ret->host_path[0] != '/' ||
	    ret->container_path[0] != '/' || strlen(ret->host_path) >= CDI_PATH_BYTES ||
	    strlen(ret->container_path) >= CDI_PATH_BYTES)
		return err_set(err, ERR_INVALID,
			       "hostPath and containerPath must be absolute paths below %d bytes",
			       CDI_PATH_BYTES);
	struct str of = json_text(item, "of");
	ret->is_of_mig = str_eq_c(of, "mig");
	if (json_at(item, "of") != NULL && !ret->is_of_mig && !str_eq_c(of, "gpu"))
		return err_set(err, ERR_INVALID, "of must be gpu or mig");
	if (json_array_size(options) > CDI_OPTIONS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d options", CDI_OPTIONS_MAX);
	for (size_t i = 0; i < json_array_size(options); i++) {
		const char *option = json_string_value(json_array_get(options, i));
		if (option == NULL)
			return err_set(err, ERR_INVALID, "options must be texts");
		ret->options[ret->option_count++] = arena_cstr(arena, str_of(option));
	}
	return ERR_OK;
}

static err_status take_mounts(struct arena *arena, const json_t *root, struct agent_config *config,
			      struct err *err)
{
	const json_t *mounts = json_at(root, "extraDeviceMounts");
	if (mounts == NULL)
		return ERR_OK;
	if (!json_is_array(mounts) || json_array_size(mounts) > CDI_MOUNTS_MAX)
		return err_set(err, ERR_INVALID, "extraDeviceMounts must be a list of at most %d",
			       CDI_MOUNTS_MAX);
	for (size_t i = 0; i < json_array_size(mounts); i++) {
		struct cdi_mount *mount = &config->mounts[config->mount_count++];
		*mount = (struct cdi_mount){ 0 };
		if (take_mount(arena, json_array_get(mounts, i), mount, err) != ERR_OK)
			return err_wrap(err, "extraDeviceMounts[%zu]", i);
	}
	return ERR_OK;
}

static err_status take_xids(struct agent_config *config, struct err *err)
{
	const char *disable = config->ignore_xids, *enable = config->watch_xids;
	if (disable == NULL)
		disable = getenv("DP_DISABLE_HEALTHCHECKS");
	if (enable == NULL)
		enable = getenv("DP_ENABLE_HEALTHCHECKS");
	xid_policy_init(&config->xids);
	return xid_policy_set(&config->xids, str_of(disable), str_of(enable), err);
}

// Messages begin with the path of what they are about; of an unknown key with its section alone.
static err_status add_line(struct str text, struct err *err)
{
	static const char path_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789.[]";
	static const char unknown[] = "unknown field \"";
	AUTO(buf_done) struct buf path = { 0 };
	const char *at = strstr(err->text, unknown);
	if (at != NULL) {
		const char *section = strchr(err->text, ':');
		if (section != NULL && section < at)
			buf_printf(&path, "%.*s.", (int)(section - err->text), err->text);
		at += strlen(unknown);
	} else {
		at = err->text;
	}
	buf_put(&path, (struct str){ at, strspn(at, path_bytes) });
	size_t line = path.len == 0 ? 0 : yaml_line_of(text, path.data);
	return line == 0 ? err->status : err_wrap(err, "line %zu", line);
}

static err_status check_mode(const struct agent_config *config, struct err *err)
{
	// What is not set yet gets its default later.
	if (config->mode != NULL && strcmp(config->mode, "device-plugin") != 0 &&
	    strcmp(config->mode, "dra") != 0)
		return err_set(err, ERR_INVALID, "mode must be device-plugin or dra");
	if (config->dra_effect != NULL && strcmp(config->dra_effect, "NoSchedule") != 0 &&
	    strcmp(config->dra_effect, "NoExecute") != 0)
		return err_set(err, ERR_INVALID,
			       "dra.unhealthyEffect must be NoSchedule or NoExecute");
	return ERR_OK;
}

static err_status read_values(struct arena *arena, const json_t *root, struct agent_config *config,
			      struct err *err)
{
	if (check_keys(root, err) != ERR_OK)
		return err->status;
#define TAKE_TEXT(key, member, absent)                                                             \
	if (take_text(arena, root, key, &config->member, err) != ERR_OK)                           \
		return err->status;
#define TAKE_NUMBER(key, member, absent, min, max)                                                 \
	if (take_number(root, key, (const int64_t[]){ min, max }, &config->member, err) != ERR_OK) \
		return err->status;
	TEXTS(TAKE_TEXT)
	NUMBERS(TAKE_NUMBER)
	if ((config->tls_cert_file == NULL) != (config->tls_key_file == NULL))
		return err_set(err, ERR_INVALID, "tls needs certFile and keyFile, or neither");
	bool has_load = config->load_listen != NULL;
	if (has_load != (config->load_cert_file != NULL) ||
	    has_load != (config->load_key_file != NULL) ||
	    (has_load && config->plan_key_file == NULL))
		return err_set(
			err, ERR_INVALID,
			"load needs listen, certFile and keyFile, and planKeyFile beside it; "
			"or none of them");
	if (check_mode(config, err) != ERR_OK)
		return err->status;
	const json_t *manage = json_at(root, "mig.manage");
	if (manage != NULL && !json_is_boolean(manage))
		return err_set(err, ERR_INVALID, "mig.manage must be true or false");
	config->manages_mig = json_is_true(manage);
	return take_mounts(arena, root, config, err);
}

err_status agent_config_read(struct arena *arena, struct str text, struct agent_config *config,
			     struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	AUTO(json_decrefp) json_t *root = NULL;
	if (yaml_parse(text, &root, err) != ERR_OK)
		return err->status; // names its line
	if (read_values(arena, root, config, err) != ERR_OK)
		return add_line(text, err);
	return ERR_OK;
}

static err_status take_flag(const char *arg, const char *next, struct agent_config *config,
			    bool *ret_took_next, struct err *err)
{
	const char *equals = strchr(arg, '=');
	struct str name = { arg, equals == NULL ? strlen(arg) : (size_t)(equals - arg) };
	const char *value = equals == NULL ? next : equals + 1;
	*ret_took_next = equals == NULL;
#define TAKE_FLAG(flag, member, absent, help)                                                      \
	if (str_eq_c(name, "--" flag)) {                                                           \
		if (value == NULL)                                                                 \
			return err_set(err, ERR_INVALID, "--" flag " needs a value");              \
		config->member = value;                                                            \
		return ERR_OK;                                                                     \
	}
	FLAGS(TAKE_FLAG)
	bool is_switch = false;
	size_t option = str_starts(name, STR("--"))
				? dp_option_find(str_slice(name, 2, name.len), &is_switch)
				: SIZE_MAX;
	if (option != SIZE_MAX) {
		*ret_took_next = equals == NULL && !is_switch;
		config->dp_flags[option] = equals == NULL && is_switch ? "true" : value;
		return config->dp_flags[option] != NULL
			       ? ERR_OK
			       : err_set(err, ERR_INVALID, "%s needs a value", arg);
	}
	return err_set(err, ERR_INVALID, "unknown argument %s; --help lists what there is", arg);
}

static err_status take_flags(int argc, char **argv, struct agent_config *config, char *ret_wish,
			     struct err *err)
{
	for (int i = 1; i < argc; i++) {
		struct str arg = str_of(argv[i]);
		bool took_next = false;
		if (str_eq_c(arg, "--help") || str_eq_c(arg, "-h"))
			*ret_wish = 'h';
		else if (str_eq_c(arg, "--version"))
			*ret_wish = 'v';
		else if (str_eq_c(arg, "--check-config"))
			*ret_wish = 'c';
		else if (take_flag(argv[i], i + 1 < argc ? argv[i + 1] : NULL, config, &took_next,
				   err) != ERR_OK)
			return ERR_INVALID;
		i += took_next ? 1 : 0;
	}
	return ERR_OK;
}

// As upstream's plugin and config manager read them.
static void take_environment(struct agent_config *config)
{
	const struct {
		const char **member;
		const char *env, *absent;
	} texts[] = {
		{ &config->dp_file, "CONFIG_FILE", NULL },
		{ &config->dp_dir, "CONFIG_FILE_SRCDIR", NULL },
		{ &config->dp_default, "DEFAULT_CONFIG", NULL },
		{ &config->dp_label, "NODE_LABEL", "nvidia.com/device-plugin.config" },
		{ &config->dp_fallbacks, "FALLBACK_STRATEGIES", "named,single" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		const char *value = getenv(texts[i].env);
		if (*texts[i].member == NULL)
			*texts[i].member = value != NULL && value[0] != '\0' ? value
									     : texts[i].absent;
	}
}

// For --check-config: a file that is named, with environment and flags.
static err_status check_dp(const struct agent_config *config, struct err *err)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct dp_config dp;
	dp_config_init(&dp);
	if (config->dp_file != NULL) {
		if (fs_read(config->dp_file, DP_CONFIG_MAX_BYTES, &text, err) != ERR_OK)
			return err_wrap(err, "configuration of the device plugin");
		if (dp_config_read(buf_str(&text), &dp, err) != ERR_OK)
			return err_wrap(err, "%s", config->dp_file);
	}
	return dp_config_overlay(&dp, config->dp_flags, err);
}

static err_status fill_defaults(struct arena *arena, struct agent_config *config, struct err *err)
{
	if (config->node_name == NULL)
		config->node_name = getenv("NODE_NAME");
	if (config->node_name == NULL) {
		char *name = arena_alloc(arena, HOST_NAME_BYTES);
		if (name == NULL || gethostname(name, HOST_NAME_BYTES - 1) != 0)
			return err_set(err, ERR_INVALID, "--node-name must be given");
		config->node_name = name;
	}
	if (!str_is_dns_name(str_of(config->node_name)))
		return err_set(err, ERR_INVALID, "--node-name \"%s\" is no name of a node",
			       config->node_name);
	if (config->kubeconfig == NULL)
		config->kubeconfig = getenv("KUBERNETES_SERVICE_HOST") != NULL ? "in-cluster"
									       : "none";
	if (config->nvml_library == NULL) {
		config->nvml_library = arena_printf(arena,
						    "%s/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
						    config->driver_root);
		if (config->nvml_library == NULL || access(config->nvml_library, R_OK) != 0)
			config->nvml_library = "libnvidia-ml.so.1";
	}
	if (!log_level_parse(str_of(config->log_level_text), &config->log_level))
		return err_set(err, ERR_INVALID, "--log-level %s: debug, info, warn or error",
			       config->log_level_text);
	return ERR_OK;
}

err_status agent_config_load(struct arena *arena, int argc, char **argv, struct agent_config *ret,
			     char *ret_wish, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct agent_config config = {
#define DEFAULT_FLAG(flag, member, absent, help) .member = absent,
#define DEFAULT_TEXT(key, member, absent) .member = absent,
#define DEFAULT_NUMBER(key, member, absent, min, max) .member = absent,
		FLAGS(DEFAULT_FLAG) TEXTS(DEFAULT_TEXT) NUMBERS(DEFAULT_NUMBER)
	};
	AUTO(buf_done) struct buf text = { 0 };
	*ret_wish = 0;
	if (take_flags(argc, argv, &config, ret_wish, err) != ERR_OK)
		return ERR_INVALID;
	if (*ret_wish == 'h' || *ret_wish == 'v')
		return ERR_OK;
	if (config.config_path != NULL) {
		if (fs_read(config.config_path, FILE_MAX_BYTES, &text, err) != ERR_OK)
			return err_wrap(err, "configuration");
		if (agent_config_read(arena, buf_str(&text), &config, err) != ERR_OK)
			return err_wrap(err, "%s", config.config_path);
	}
	take_environment(&config);
	if (take_xids(&config, err) != ERR_OK || fill_defaults(arena, &config, err) != ERR_OK)
		return err->status;
	if (*ret_wish == 'c' && check_dp(&config, err) != ERR_OK)
		return err->status;
	*ret = config;
	return ERR_OK;
}

const char *agent_config_help(void)
{
	return "usage: gpuaas-agent [--FLAG VALUE]...\n"
	       "       gpuaas-agent driver-access [--FLAG VALUE]...   grants the agent the driver\n"
	       "       gpuaas-agent journal FILE|DIR   print the usage journal\n"
	       "       gpuaas-agent --check-config | --version | --help\n\n"
#define HELP(flag, member, absent, help) "  --" flag "\n        " help "\n"
		FLAGS(HELP) "\nThe flags of upstream's device plugin (--device-list-strategy "
			    "and so on) are taken too; see\ndocs/agent.md.\n";
}

void agent_config_print(const struct agent_config *config, struct buf *out)
{
#define PRINT_FLAG(flag, member, absent, help)                                                     \
	buf_printf(out, "# --%s %s\n", flag, config->member == NULL ? "-" : config->member);
#define PRINT_TEXT(key, member, absent)                                                            \
	buf_printf(out, "%s: %s\n", key, config->member == NULL ? "-" : config->member);
#define PRINT_NUMBER(key, member, absent, min, max)                                                \
	buf_printf(out, "%s: %" PRId64 "\n", key, config->member);
	FLAGS(PRINT_FLAG)
	TEXTS(PRINT_TEXT)
	NUMBERS(PRINT_NUMBER)
	for (size_t i = 0; i < config->mount_count; i++)
		buf_printf(out, "extraDeviceMounts[%zu]: %s -> %s\n", i,
			   config->mounts[i].host_path, config->mounts[i].container_path);
}
