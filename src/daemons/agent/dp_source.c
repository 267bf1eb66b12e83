// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dp_source.h"

#include "sys/fs.h"
#include "sys/log.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t LOOK_NS = 2000 * UINT64_C(1000000);
enum { NAME_BYTES = 64, KEPT_MAX_BYTES = 256 };

struct dp_source {
	struct loop *loop;
	struct dp_source_config config;
	struct loop_timer *timer;
	bool has_label; // the API server has told it
	char label[NAME_BYTES];
	struct buf seen; // text that was read last, good or not
	char seen_name[NAME_BYTES];
	bool has_seen;
	struct dp_source_stats stats;
};

// A name of a config map's key; nothing else becomes part of a path.
static bool is_name(struct str name)
{
	if (name.len == 0 || name.len >= NAME_BYTES || name.data[0] == '.')
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		if (!is_good)
			return false;
	}
	return true;
}

// Copies the name of the only file of the folder; false: there is none or there are several.
static bool only_file(const char *dir, char out[NAME_BYTES])
{
	size_t count = 0;
	DIR *stream = opendir(dir);
	if (stream == NULL)
		return false;
	for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
		if (!is_name(str_of(entry->d_name)))
			continue; // "..data" of a mounted config map
		count++;
		(void)snprintf(out, NAME_BYTES, "%.63s", entry->d_name);
	}
	(void)closedir(stream);
	return count == 1;
}

static bool has_file(const struct dp_source *source, const char *name)
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf text = { 0 };
	(void)snprintf(path, sizeof path, "%.3000s/%.63s", source->config.dir, name);
	return fs_read(path, DP_CONFIG_MAX_BYTES, &text, NULL) == ERR_OK;
}

// The file to use when neither label nor default names one; empty: none, which is no failure.
static err_status fall_back(const struct dp_source *source, char out[NAME_BYTES], struct err *err)
{
	struct str rest = str_of(source->config.fallbacks), strategy;
	while (str_split_next(&rest, ',', &strategy)) {
		strategy = str_trim(strategy);
		if (str_eq_c(strategy, "named") && has_file(source, "default")) {
			(void)snprintf(out, NAME_BYTES, "default");
			return ERR_OK;
		}
		if (str_eq_c(strategy, "single") && only_file(source->config.dir, out))
			return ERR_OK;
		if (str_eq_c(strategy, "empty")) {
			out[0] = '\0';
			return ERR_OK;
		}
	}
	return err_set(err, ERR_NOT_FOUND,
		       "%s: no configuration is chosen; label the node, or give --default-config",
		       source->config.dir);
}

// The name of the file in the folder: label, default, fallbacks.
static err_status choose(const struct dp_source *source, char out[NAME_BYTES], struct err *err)
{
	const char *name = source->label[0] != '\0' ? source->label : source->config.default_name;
	if (name == NULL || name[0] == '\0')
		return fall_back(source, out, err);
	if (!is_name(str_of(name)))
		return err_set(err, ERR_INVALID, "\"%.80s\" is no name of a configuration", name);
	(void)snprintf(out, NAME_BYTES, "%.63s", name);
	return ERR_OK;
}

static err_status apply(struct dp_source *source, const char *path, struct str text,
			struct err *err)
{
	struct dp_config config;
	dp_config_init(&config);
	err_status status = ERR_OK;
	if (path[0] != '\0')
		status = dp_config_read(text, &config, err);
	if (status == ERR_OK)
		status = dp_config_overlay(&config, source->config.flags, err);
	if (status == ERR_OK)
		status = source->config.apply(source->config.arg, &config, err);
	for (size_t i = 0; status == ERR_OK && i < config.note_count; i++)
		log_kv(LOG_WARN, "configuration of the device plugin", "note", config.notes[i],
		       "file", path, NULL);
	return status == ERR_OK || path[0] == '\0' ? status : err_wrap(err, "%s", path);
}

static void keep_name(struct dp_source *source)
{
	struct err err;
	if (source->config.dir != NULL && source->config.kept_path != NULL &&
	    fs_write_atomic(source->config.kept_path, str_of(source->stats.name), 0600, &err) !=
		    ERR_OK)
		log_err(LOG_WARN, "name of the configuration is not kept", &err);
}

// ERR_OK too when there is nothing new.
static err_status load(struct dp_source *source, struct err *err)
{
	char path[PATH_MAX] = "", name[NAME_BYTES] = "";
	AUTO(buf_done) struct buf text = { 0 };
	const struct dp_source_config *config = &source->config;
	if (config->dir != NULL && choose(source, name, err) != ERR_OK)
		return err->status;
	if (config->file != NULL)
		(void)snprintf(path, sizeof path, "%.4000s", config->file);
	else if (name[0] != '\0')
		(void)snprintf(path, sizeof path, "%.3000s/%s", config->dir, name);
	if (path[0] != '\0' && fs_read(path, DP_CONFIG_MAX_BYTES, &text, err) != ERR_OK)
		return err_wrap(err, "configuration of the device plugin");
	bool is_same = source->has_seen && str_eq(buf_str(&text), buf_str(&source->seen)) &&
		       strcmp(name, source->seen_name) == 0;
	if (is_same && !source->stats.is_failing)
		return ERR_OK; // what failed may fit the GPUs that are there by now
	source->has_seen = true;
	memcpy(source->seen_name, name, sizeof name);
	buf_clear(&source->seen);
	buf_put(&source->seen, buf_str(&text));
	err_status status = apply(source, path, buf_str(&text), err);
	if (status != ERR_OK)
		return status;
	bool is_other = !source->stats.is_loaded || strcmp(source->stats.name, name) != 0;
	memcpy(source->stats.name, name, sizeof name);
	source->stats.loads++;
	source->stats.is_loaded = true;
	if (is_other)
		keep_name(source);
	log_kv(LOG_INFO, "configuration of the device plugin is in force", "file", path, NULL);
	return ERR_OK;
}

static bool is_waiting(const struct dp_source *source)
{
	return source->config.dir != NULL && source->config.waits_for_label && !source->has_label &&
	       source->label[0] == '\0';
}

void dp_source_look(struct dp_source *source)
{
	struct err err = { 0 };
	loop_timer_set(source->timer, LOOK_NS);
	if (is_waiting(source))
		return;
	if (load(source, &err) == ERR_OK) {
		source->stats.is_failing = false;
		return;
	}
	bool is_news = !source->stats.is_failing || strcmp(source->stats.why, err.text) != 0;
	source->stats.is_failing = true;
	if (!is_news)
		return;
	source->stats.failures++;
	(void)snprintf(source->stats.why, sizeof source->stats.why, "%s", err.text);
	log_err(LOG_ERROR, "configuration of the device plugin is refused, the last one stays",
		&err);
}

static void on_timer(void *arg) { dp_source_look(arg); }

static void recall_name(struct dp_source *source)
{
	AUTO(buf_done) struct buf kept = { 0 };
	const struct dp_source_config *config = &source->config;
	if (!config->waits_for_label || config->kept_path == NULL ||
	    fs_read(config->kept_path, KEPT_MAX_BYTES, &kept, NULL) != ERR_OK ||
	    !is_name(buf_str(&kept)))
		return;
	(void)snprintf(source->label, sizeof source->label, "%.63s", kept.data);
}

err_status dp_source_new(struct loop *loop, const struct dp_source_config *config,
			 struct dp_source **ret, struct err *err)
{
	if (config->file != NULL && config->dir != NULL)
		return err_set(err, ERR_INVALID,
			       "--config-file and --config-file-srcdir exclude each other");
	struct dp_source *source = calloc(1, sizeof *source);
	if (source == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a configuration");
	source->loop = loop;
	source->config = *config;
	source->timer = loop_timer_new(loop, on_timer, source);
	loop_timer_set(source->timer, LOOK_NS);
	if (config->dir != NULL)
		recall_name(source);
	// A kept name may be out of date: then the label that comes decides.
	err_status status = ERR_OK;
	if (config->dir != NULL && config->waits_for_label)
		dp_source_look(source);
	else
		status = load(source, err);
	if (status != ERR_OK) {
		dp_source_free(source);
		return status;
	}
	*ret = source;
	return ERR_OK;
}

void dp_source_free(struct dp_source *source)
{
	if (source == NULL)
		return;
	loop_timer_free(source->timer);
	buf_done(&source->seen);
	free(source);
}

void dp_source_label(struct dp_source *source, const char *name)
{
	source->has_label = true;
	(void)snprintf(source->label, sizeof source->label, "%.63s", name == NULL ? "" : name);
	dp_source_look(source);
}

void dp_source_stats(const struct dp_source *source, struct dp_source_stats *ret)
{
	*ret = source->stats;
}
