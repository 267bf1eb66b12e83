// SPDX-License-Identifier: Apache-2.0
#include "cli/offline.h"

#include "sys/fs.h"
#include "sys/zoneinfo.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_ARENA_BYTES = 64 * 1024, DOCUMENT_MAX_BYTES = 32 * 1024 * 1024 };

void offline_done(struct offline *offline)
{
	usage_free(offline->usage);
	offline->usage = NULL;
}

static err_status read_document(struct arena *arena, const char *folder, const char *name,
				struct str *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = DOCUMENT_MAX_BYTES };
	const char *path = arena_printf(arena, "%s/%s", folder, name);
	if (path == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %s", name);
	err_status status = fs_read(path, DOCUMENT_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	*ret_json = arena_dup(arena, buf_str(&content));
	return ret_json->data == NULL ? err_set(err, ERR_LIMIT, "no memory for %s", name) : ERR_OK;
}

static err_status load_documents(struct arena *arena, const char *folder, struct offline *offline,
				 struct err *err)
{
	struct str json;
	if (read_document(arena, folder, "assets.json", &json, err) != ERR_OK)
		return err->status;
	if (book_parse_assets(arena, json, &offline->assets, err) != ERR_OK)
		return err_wrap(err, "%s/assets.json", folder);
	if (read_document(arena, folder, "prices.json", &json, err) != ERR_OK)
		return err->status;
	if (book_parse_prices(arena, json, &offline->prices, err) != ERR_OK)
		return err_wrap(err, "%s/prices.json", folder);
	if (read_document(arena, folder, "pools.json", &json, err) != ERR_OK)
		return err->status;
	if (book_parse_pools(arena, json, &offline->pools, err) != ERR_OK)
		return err_wrap(err, "%s/pools.json", folder);
	return ERR_OK;
}

static err_status add_line(struct arena *arena, struct str line, struct usage *usage,
			   struct err *err)
{
	struct event event;
	err_status status = event_parse(arena, line, &event, err);
	return status == ERR_OK ? usage_add(usage, &event, err) : status;
}

static err_status add_lines(FILE *file, const char *path, struct usage *usage, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(LINE_ARENA_BYTES);
	char *line = NULL;
	size_t cap = 0, number = 0;
	ssize_t length;
	err_status status = arena == NULL ? err_set(err, ERR_LIMIT, "no memory") : ERR_OK;
	while (status == ERR_OK && (length = getline(&line, &cap, file)) >= 0) {
		struct str text = str_trim((struct str){ line, (size_t)length });
		number++;
		if (text.len == 0)
			continue;
		arena_reset(arena);
		status = add_line(arena, text, usage, err);
		if (status != ERR_OK)
			(void)err_wrap(err, "%s line %zu", path, number);
	}
	free(line);
	if (status == ERR_OK && ferror(file) != 0)
		return err_sys(err, errno, "reading %s", path);
	return status;
}

static err_status add_file(const char *path, struct usage *usage, struct err *err)
{
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return err_sys(err, errno, "opening %s", path);
	err_status status = add_lines(file, path, usage, err);
	(void)fclose(file); // only read
	return status;
}

static err_status add_files(const char *folder, struct usage *usage, struct err *err)
{
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	int length = snprintf(pattern, sizeof pattern, "%s/events*.jsonl", folder);
	if (length < 0 || (size_t)length >= sizeof pattern)
		return err_set(err, ERR_INVALID, "name of the folder is too long");
	err_status status = ERR_OK;
	if (glob(pattern, 0, NULL, &found) != 0)
		status = err_set(err, ERR_NOT_FOUND, "%s has no events.jsonl", folder);
	for (size_t i = 0; status == ERR_OK && i < found.gl_pathc; i++)
		status = add_file(found.gl_pathv[i], usage, err);
	globfree(&found);
	return status;
}

err_status offline_load(struct arena *arena, const char *folder, struct offline *ret_offline,
			struct err *err)
{
	AUTO(usage_freep) struct usage *usage = usage_new();
	struct offline offline = { .usage = NULL };
	if (usage == NULL)
		return err_set(err, ERR_LIMIT, "no memory for events");
	err_status status = load_documents(arena, folder, &offline, err);
	if (status == ERR_OK)
		status = zone_load(arena, offline.prices.time_zone, zoneinfo_read, &offline.zone,
				   err);
	if (status == ERR_OK)
		status = add_files(folder, usage, err);
	if (status == ERR_OK)
		status = usage_finish(usage, err);
	if (status != ERR_OK)
		return status;
	offline.usage = TAKE(usage);
	*ret_offline = offline;
	return ERR_OK;
}
