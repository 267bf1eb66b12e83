// SPDX-License-Identifier: Apache-2.0
// File v1: its keys outside of sharing, and what holds across them.
#include "daemons/agent/dp_config.h"

#include "base/buf.h"
#include "base/yaml.h"
#include "daemons/agent/dp_reader.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const top_keys[] = { "version", "flags", "resources", "sharing", "imex", NULL };

void dp_config_init(struct dp_config *config)
{
	*config = (struct dp_config){ .policy = DP_DISTRIBUTED,
				      .lists = DP_LIST_CDI_CRI,
				      .annotation_prefix = "cdi.k8s.io/" };
}

err_status dp_refuse(const struct dp_reader *reader, const char *path, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	size_t line = yaml_line_of(reader->text, path);
	if (line == 0)
		return err_set(reader->err, ERR_INVALID, "%s: %s", path, text);
	return err_set(reader->err, ERR_INVALID, "line %zu: %s: %s", line, path, text);
}

const char *dp_path(char out[DP_KEY_BYTES], const char *above, const char *key)
{
	(void)snprintf(out, DP_KEY_BYTES, "%.150s%s%.90s", above, above[0] == '\0' ? "" : ".", key);
	return out;
}

err_status dp_only_keys(const struct dp_reader *reader, const json_t *object, const char *path,
			const char *const *keys)
{
	char unknown[DP_KEY_BYTES];
	const char *key = NULL;
	json_t *value = NULL;
	if (!json_is_object(object))
		return dp_refuse(reader, path, "must be a mapping");
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		AUTO(buf_done) struct buf known = { 0 };
		size_t i = 0;
		while (keys[i] != NULL && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i] != NULL)
			continue;
		for (i = 0; keys[i] != NULL; i++)
			buf_printf(&known, "%s%s", i == 0 ? "" : ", ", keys[i]);
		return dp_refuse(reader, dp_path(unknown, path, key),
				 "is no key of file v1; known here are %s", known.data);
	}
	return ERR_OK;
}

err_status dp_take_bool(const struct dp_reader *reader, const json_t *object, const char *path,
			const char *key, bool *member)
{
	char full[DP_KEY_BYTES];
	const json_t *value = json_object_get(object, key);
	if (value == NULL || json_is_null(value))
		return ERR_OK;
	if (!json_is_boolean(value))
		return dp_refuse(reader, dp_path(full, path, key), "must be true or false");
	*member = json_is_true(value);
	return ERR_OK;
}

// Options of one mapping of the file: below "flags" or "flags.plugin".
static err_status read_options(const struct dp_reader *reader, const json_t *object,
			       const char *path, const char *prefix)
{
	char full[DP_KEY_BYTES], option_key[DP_KEY_BYTES], without_name[256];
	const char *key = NULL;
	json_t *value = NULL;
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		size_t i = dp_option_of_key(dp_path(option_key, prefix, key));
		struct err err = { 0 };
		if (i == SIZE_MAX)
			continue; // a mapping of its own, or refused already
		if (dp_option_set(i, value, "", reader->config, &err) == ERR_OK)
			continue;
		(void)snprintf(without_name, sizeof without_name, "%.250s", err.text + 2);
		return dp_refuse(reader, dp_path(full, path, key), "%s", without_name);
	}
	return ERR_OK;
}

static err_status read_gfd(const struct dp_reader *reader, const json_t *gfd)
{
	static const char *const keys[] = { "oneshot",    "noTimestamp",     "sleepInterval",
					    "outputFile", "machineTypeFile", NULL };
	bool ignored = false;
	if (gfd == NULL || json_is_null(gfd))
		return ERR_OK;
	if (dp_only_keys(reader, gfd, "flags.gfd", keys) != ERR_OK ||
	    dp_take_bool(reader, gfd, "flags.gfd", "oneshot", &ignored) != ERR_OK ||
	    dp_take_bool(reader, gfd, "flags.gfd", "noTimestamp", &ignored) != ERR_OK)
		return ERR_INVALID;
	for (size_t i = 2; keys[i] != NULL; i++) {
		char full[DP_KEY_BYTES];
		const json_t *value = json_object_get(gfd, keys[i]);
		if (value != NULL && !json_is_null(value) && !json_is_string(value))
			return dp_refuse(reader, dp_path(full, "flags.gfd", keys[i]),
					 "must be text");
	}
	dp_note(reader->config, "flags.gfd has no effect: the agent keeps the labels itself");
	return ERR_OK;
}

static err_status read_flags(const struct dp_reader *reader, const json_t *flags)
{
	static const char *const keys[] = { "migStrategy",
					    "failOnInitError",
					    "mpsRoot",
					    "nvidiaDriverRoot",
					    "nvidiaDevRoot",
					    "gdrcopyEnabled",
					    "gdsEnabled",
					    "mofedEnabled",
					    "useNodeFeatureAPI",
					    "deviceDiscoveryStrategy",
					    "plugin",
					    "gfd",
					    NULL };
	static const char *const plugin_keys[] = { "passDeviceSpecs",
						   "deviceListStrategy",
						   "deviceIDStrategy",
						   "cdiAnnotationPrefix",
						   "nvidiaCTKPath",
						   "nvidiaCDIHookPath",
						   "containerDriverRoot",
						   "sharedDevicesAllocationPolicy",
						   NULL };
	if (flags == NULL || json_is_null(flags))
		return ERR_OK;
	if (dp_only_keys(reader, flags, "flags", keys) != ERR_OK ||
	    read_options(reader, flags, "flags", "") != ERR_OK)
		return ERR_INVALID;
	const json_t *plugin = json_object_get(flags, "plugin");
	if (plugin != NULL && !json_is_null(plugin) &&
	    (dp_only_keys(reader, plugin, "flags.plugin", plugin_keys) != ERR_OK ||
	     read_options(reader, plugin, "flags.plugin", "plugin") != ERR_OK))
		return ERR_INVALID;
	return read_gfd(reader, json_object_get(flags, "gfd"));
}

static err_status read_resources(const struct dp_reader *reader, const json_t *resources)
{
	static const char *const keys[] = { "gpus", "mig", NULL };
	if (resources == NULL || json_is_null(resources))
		return ERR_OK;
	if (dp_only_keys(reader, resources, "resources", keys) != ERR_OK)
		return ERR_INVALID;
	for (size_t i = 0; keys[i] != NULL; i++) {
		char full[DP_KEY_BYTES];
		const json_t *list = json_object_get(resources, keys[i]);
		if (list != NULL && !json_is_null(list) && !json_is_array(list))
			return dp_refuse(reader, dp_path(full, "resources", keys[i]),
					 "must be a list");
	}
	dp_note(reader->config, "resources has no effect, as in upstream's plugin");
	return ERR_OK;
}

static err_status read_imex(const struct dp_reader *reader, const json_t *imex)
{
	static const char *const keys[] = { "channelIDs", "required", NULL };
	bool is_required = false;
	if (imex == NULL || json_is_null(imex))
		return ERR_OK;
	if (dp_only_keys(reader, imex, "imex", keys) != ERR_OK ||
	    dp_take_bool(reader, imex, "imex", "required", &is_required) != ERR_OK)
		return ERR_INVALID;
	const json_t *channels = json_object_get(imex, "channelIDs");
	if (channels != NULL && !json_is_array(channels))
		return dp_refuse(reader, "imex.channelIDs", "must be a list");
	const json_t *first = json_array_get(channels, 0);
	if (json_array_size(channels) > 1 ||
	    (first != NULL && (!json_is_integer(first) || json_integer_value(first) != 0)))
		return dp_refuse(reader, "imex.channelIDs", "only [] and [0] are possible");
	reader->config->has_imex_channel = first != NULL;
	return ERR_OK;
}

static err_status read_root(const struct dp_reader *reader, const json_t *root)
{
	if (!json_is_object(root))
		return err_set(reader->err, ERR_INVALID,
			       "line 1: must be a mapping that begins with \"version: v1\"");
	if (dp_only_keys(reader, root, "", top_keys) != ERR_OK)
		return ERR_INVALID;
	struct str version = json_text(root, "version");
	if (json_object_get(root, "version") == NULL)
		return err_set(reader->err, ERR_INVALID,
			       "line 1: version is missing; add \"version: v1\"");
	if (!str_eq_c(version, "v1"))
		return dp_refuse(reader, "version", "must be v1");
	if (read_flags(reader, json_object_get(root, "flags")) != ERR_OK ||
	    read_resources(reader, json_object_get(root, "resources")) != ERR_OK ||
	    dp_read_sharing(reader, json_object_get(root, "sharing")) != ERR_OK)
		return ERR_INVALID;
	return read_imex(reader, json_object_get(root, "imex"));
}

err_status dp_config_read(struct str text, struct dp_config *config, struct err *err)
{
	struct err local = { 0 };
	AUTO(json_decrefp) json_t *root = NULL;
	struct dp_config next = *config;
	const struct dp_reader reader = { .text = text,
					  .config = &next,
					  .err = err == NULL ? &local : err };
	err_status status = yaml_parse(text, &root, reader.err);
	if (status == ERR_OK)
		status = read_root(&reader, root);
	if (status == ERR_OK)
		*config = next;
	return status;
}

static void note_injection(struct dp_config *config)
{
	bool all_cdi = (config->lists & ~(unsigned)DP_LIST_ANY_CDI) == 0;
	if (all_cdi && (config->gdrcopy || config->gds || config->mofed))
		dp_note(config, "gdrcopyEnabled, gdsEnabled and mofedEnabled have no effect with "
				"CDI alone; add envvar to deviceListStrategy");
	if (all_cdi && config->pass_device_specs)
		dp_note(config, "passDeviceSpecs has no effect with CDI alone");
	if (all_cdi && config->has_imex_channel)
		dp_note(config, "imex.channelIDs has no effect with CDI alone");
	if (config->hook_path[0] != '\0')
		dp_note(config, "nvidiaCDIHookPath has no effect: our CDI specification needs no "
				"hooks");
}

err_status dp_config_check(struct dp_config *config, struct err *err)
{
	if (config->sharing == DP_MPS && config->mps_root[0] == '\0')
		return err_set(
			err, ERR_INVALID,
			"sharing.mps needs flags.mpsRoot, the folder of the control daemons");
	if (config->has_shares && config->share_limit == DP_LIMIT_MPS &&
	    config->mps_root[0] == '\0')
		return err_set(err, ERR_INVALID,
			       "sharing.shares.memoryLimit mps needs flags.mpsRoot, the folder of "
			       "the control daemons");
	if (config->sharing == DP_MPS && config->mig == DP_MIG_MIXED)
		return err_set(err, ERR_INVALID,
			       "sharing.mps: not together with migStrategy mixed; use none");
	if (config->fail_on_init)
		dp_note(config, "failOnInitError has no effect: the agent waits for the driver");
	if (config->node_feature_api)
		dp_note(config, "useNodeFeatureAPI has no effect: labels go to the Node");
	if (config->container_driver_root[0] != '\0')
		dp_note(config, "containerDriverRoot has no effect: it is --driver-root");
	note_injection(config);
	return ERR_OK;
}
