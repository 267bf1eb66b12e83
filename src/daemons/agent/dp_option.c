// SPDX-License-Identifier: Apache-2.0
// The options of the device plugin as one table: key of the file, flag, environment, type.
#include "daemons/agent/dp_config.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum kind {
	KIND_SWITCH, // bool
	KIND_PATH,   // absolute, DP_PATH_BYTES
	KIND_PREFIX, // DP_PREFIX_BYTES
	KIND_WORD,   // an enumeration, by its place in words
	KIND_LISTS,  // bits, by their places in words
} kind;

struct option {
	const char *key, *flag, *env;
	kind kind;
	size_t offset;
	const char *words[5];
};

#define AT(member) offsetof(struct dp_config, member)
#define SWITCH(key, flag, env, member)                                                             \
	{                                                                                          \
		key, flag, env, KIND_SWITCH, AT(member), { NULL }                                  \
	}
#define PATH(key, flag, env, member)                                                               \
	{                                                                                          \
		key, flag, env, KIND_PATH, AT(member), { NULL }                                    \
	}

static const struct option options[] = {
	{ "migStrategy",
	  "mig-strategy",
	  "MIG_STRATEGY",
	  KIND_WORD,
	  AT(mig),
	  { "none", "single", "mixed", NULL } },
	SWITCH("failOnInitError", "fail-on-init-error", "FAIL_ON_INIT_ERROR", fail_on_init),
	PATH("mpsRoot", "mps-root", "MPS_ROOT", mps_root),
	PATH("nvidiaDriverRoot", "nvidia-driver-root", "NVIDIA_DRIVER_ROOT", driver_root),
	PATH("nvidiaDevRoot", "nvidia-dev-root", "NVIDIA_DEV_ROOT", dev_root),
	SWITCH("gdrcopyEnabled", "gdrcopy-enabled", "GDRCOPY_ENABLED", gdrcopy),
	SWITCH("gdsEnabled", "gds-enabled", "GDS_ENABLED", gds),
	SWITCH("mofedEnabled", "mofed-enabled", "MOFED_ENABLED", mofed),
	SWITCH("useNodeFeatureAPI", "use-node-feature-api", "USE_NODE_FEATURE_API",
	       node_feature_api),
	{ "deviceDiscoveryStrategy",
	  "device-discovery-strategy",
	  "DEVICE_DISCOVERY_STRATEGY",
	  KIND_WORD,
	  SIZE_MAX,
	  { "auto", "nvml", NULL } },
	SWITCH("plugin.passDeviceSpecs", "pass-device-specs", "PASS_DEVICE_SPECS",
	       pass_device_specs),
	{ "plugin.deviceListStrategy",
	  "device-list-strategy",
	  "DEVICE_LIST_STRATEGY",
	  KIND_LISTS,
	  AT(lists),
	  { "envvar", "volume-mounts", "cdi-annotations", "cdi-cri", NULL } },
	{ "plugin.deviceIDStrategy",
	  "device-id-strategy",
	  "DEVICE_ID_STRATEGY",
	  KIND_WORD,
	  AT(ids_by_index),
	  { "uuid", "index", NULL } },
	{ "plugin.cdiAnnotationPrefix",
	  "cdi-annotation-prefix",
	  "CDI_ANNOTATION_PREFIX",
	  KIND_PREFIX,
	  AT(annotation_prefix),
	  { NULL } },
	PATH("plugin.nvidiaCTKPath", "nvidia-ctk-path", "NVIDIA_CTK_PATH", hook_path),
	PATH("plugin.nvidiaCDIHookPath", "nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH", hook_path),
	PATH("plugin.containerDriverRoot", "container-driver-root", "CONTAINER_DRIVER_ROOT",
	     container_driver_root),
	{ "plugin.sharedDevicesAllocationPolicy",
	  "shared-devices-allocation-policy",
	  "SHARED_DEVICES_ALLOCATION_POLICY",
	  KIND_WORD,
	  AT(policy),
	  { "distributed", "packed", NULL } },
};

_Static_assert(ARRAY_COUNT(options) <= DP_OPTIONS_MAX, "callers keep a value for each");

size_t dp_option_find(struct str flag, bool *ret_is_switch)
{
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		if (!str_eq_c(flag, options[i].flag))
			continue;
		*ret_is_switch = options[i].kind == KIND_SWITCH;
		return i;
	}
	return SIZE_MAX;
}

size_t dp_option_of_key(const char *key)
{
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		if (strcmp(key, options[i].key) == 0)
			return i;
	}
	return SIZE_MAX;
}

static err_status refuse_word(const struct option *option, const char *name, const char *got,
			      struct err *err)
{
	AUTO(buf_done) struct buf known = { 0 };
	for (size_t i = 0; option->words[i] != NULL; i++)
		buf_printf(&known, "%s%s", i == 0 ? "" : ", ", option->words[i]);
	return err_set(err, ERR_INVALID, "%s: \"%.60s\" is not known here; use %s%s", name, got,
		       option->kind == KIND_LISTS ? "one or more of " : "one of ", known.data);
}

static size_t word_of(const struct option *option, const char *word)
{
	size_t i = 0;
	while (option->words[i] != NULL && strcmp(option->words[i], word) != 0)
		i++;
	return option->words[i] == NULL ? SIZE_MAX : i;
}

static err_status set_word(const struct option *option, const char *word, const char *name,
			   struct dp_config *config, struct err *err)
{
	size_t at = word_of(option, word);
	if (at == SIZE_MAX)
		return refuse_word(option, name, word, err);
	// One value has no member: it says only how devices are found.
	if (option->offset == AT(mig))
		config->mig = (dp_mig)at;
	else if (option->offset == AT(policy))
		config->policy = (dp_policy)at;
	else if (option->offset == AT(ids_by_index))
		config->ids_by_index = at == 1;
	return ERR_OK;
}

static err_status set_lists(const struct option *option, const json_t *value, const char *name,
			    struct dp_config *config, struct err *err)
{
	unsigned lists = 0;
	bool is_one = json_is_string(value);
	for (size_t i = 0; i < (is_one ? 1 : json_array_size(value)); i++) {
		const json_t *item = is_one ? value : json_array_get(value, i);
		const char *word = json_is_string(item) ? json_string_value(item) : "";
		size_t at = word_of(option, word);
		if (at == SIZE_MAX)
			return refuse_word(option, name, word, err);
		lists |= 1U << at;
	}
	if (lists == 0)
		return err_set(err, ERR_INVALID, "%s: must be one strategy or a list of them",
			       name);
	config->lists = lists;
	return ERR_OK;
}

static err_status set_text(const struct option *option, const char *text, const char *name,
			   struct dp_config *config, struct err *err)
{
	size_t room = option->kind == KIND_PATH ? DP_PATH_BYTES : DP_PREFIX_BYTES;
	char *out = (char *)config + option->offset;
	if (strlen(text) >= room)
		return err_set(err, ERR_INVALID, "%s: longer than %zu bytes", name, room - 1);
	if (option->kind == KIND_PATH && text[0] != '\0' && text[0] != '/')
		return err_set(err, ERR_INVALID, "%s: \"%.60s\" must be an absolute path", name,
			       text);
	(void)snprintf(out, room, "%s", text);
	return ERR_OK;
}

err_status dp_option_set(size_t i, const json_t *value, const char *name, struct dp_config *config,
			 struct err *err)
{
	ASSERT(i < ARRAY_COUNT(options));
	const struct option *option = &options[i];
	if (json_is_null(value))
		return ERR_OK; // as if it were not there
	if (option->kind == KIND_SWITCH) {
		if (!json_is_boolean(value))
			return err_set(err, ERR_INVALID, "%s: must be true or false", name);
		*(bool *)((char *)config + option->offset) = json_is_true(value);
		return ERR_OK;
	}
	if (option->kind == KIND_LISTS)
		return set_lists(option, value, name, config, err);
	if (!json_is_string(value))
		return err_set(err, ERR_INVALID, "%s: must be text", name);
	if (option->kind == KIND_WORD)
		return set_word(option, json_string_value(value), name, config, err);
	return set_text(option, json_string_value(value), name, config, err);
}

// What upstream takes as a bool in flags and environment.
static json_t *switch_of(struct str text)
{
	static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
	static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
	for (size_t i = 0; i < ARRAY_COUNT(yes); i++) {
		if (str_eq_c(text, yes[i]))
			return json_true();
		if (str_eq_c(text, no[i]))
			return json_false();
	}
	return json_stringn(text.data, text.len); // refused by its type
}

static err_status set_text_option(size_t i, struct str value, const char *name,
				  struct dp_config *config, struct err *err)
{
	ASSERT(i < ARRAY_COUNT(options));
	AUTO(json_decrefp) json_t *json = NULL;
	if (options[i].kind == KIND_SWITCH) {
		json = switch_of(value);
	} else if (options[i].kind == KIND_LISTS) {
		struct str rest = value, part;
		json = json_array();
		while (str_split_next(&rest, ',', &part)) {
			part = str_trim(part);
			if (json_array_append_new(json, json_stringn(part.data, part.len)) != 0)
				return err_set(err, ERR_INVALID, "%s: is no UTF-8", name);
		}
	} else {
		json = json_stringn(value.data, value.len);
	}
	if (json == NULL)
		return err_set(err, ERR_INVALID, "%s: is no UTF-8", name);
	return dp_option_set(i, json, name, config, err);
}

err_status dp_config_overlay(struct dp_config *config, const char *const *flags, struct err *err)
{
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		char name[64];
		const char *env = getenv(options[i].env), *flag = flags[i];
		if (flag == NULL && (env == NULL || env[0] == '\0'))
			continue;
		(void)snprintf(name, sizeof name, "%s%s", flag == NULL ? "$" : "--",
			       flag == NULL ? options[i].env : options[i].flag);
		err_status status =
			set_text_option(i, str_of(flag == NULL ? env : flag), name, config, err);
		if (status != ERR_OK)
			return status;
	}
	return dp_config_check(config, err);
}

void dp_note(struct dp_config *config, const char *fmt, ...)
{
	va_list args;
	if (config->note_count == DP_NOTES_MAX)
		return;
	va_start(args, fmt);
	(void)vsnprintf(config->notes[config->note_count++], DP_NOTE_BYTES, fmt, args);
	va_end(args);
}
