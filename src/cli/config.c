// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "base/buf.h"
#include "sys/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 64 * 1024, TOKEN_MAX_BYTES = 16 * 1024 };

static const char *config_path(struct cli *cli)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (base != NULL && base[0] == '/')
		return arena_printf(cli->arena, "%s/gpuaas/config.json", base);
	return home == NULL ? NULL
			    : arena_printf(cli->arena, "%s/.config/gpuaas/config.json", home);
}

static const char *kept(struct cli *cli, const json_t *config, const char *key)
{
	struct str text = json_text(config, key);
	return text.len == 0 ? NULL : arena_cstr(cli->arena, text);
}

err_status cli_config_parse(struct cli *cli, struct str text, struct err *err)
{
	AUTO(json_decrefp) json_t *config = NULL;
	err_status status = json_parse(text, &config, err);
	if (status != ERR_OK)
		return status;
	cli->server = kept(cli, config, "server");
	cli->ca_file = kept(cli, config, "ca");
	cli->token = kept(cli, config, "token");
	cli->token_server = cli->server;
	return ERR_OK;
}

static bool load_file(struct cli *cli, const char *path)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err = { 0 };
	err_status status = fs_read(path, CONFIG_MAX_BYTES, &text, &err);
	if (status == ERR_NOT_FOUND)
		return true; // nobody logged in yet
	if (status != ERR_OK) {
		(void)fprintf(stderr, "warning: no saved login: %s\n", err.text);
		return true;
	}
	if (cli_config_parse(cli, buf_str(&text), &err) == ERR_OK)
		return true;
	(void)fprintf(stderr, "error: %s: %s; remove it and log in again\n", path, err.text);
	return false;
}

bool cli_config_load(struct cli *cli)
{
	const char *path = config_path(cli);
	if (path != NULL && !load_file(cli, path))
		return false;
	const char *server = getenv("GPUAAS_SERVER"), *ca = getenv("GPUAAS_CA");
	const char *token = getenv("GPUAAS_TOKEN");
	cli->server = server != NULL && server[0] != '\0' ? server : cli->server;
	cli->ca_file = ca != NULL && ca[0] != '\0' ? ca : cli->ca_file;
	if (token != NULL && token[0] != '\0') {
		cli->token = token;
		cli->token_server = NULL;
	}
	return true;
}

err_status cli_config_save(struct cli *cli, struct err *err)
{
	const char *path = config_path(cli);
	if (path == NULL)
		return err_set(err, ERR_INVALID, "neither XDG_CONFIG_HOME nor HOME is set");
	char *folder = arena_cstr(cli->arena, str_of(path));
	*strrchr(folder, '/') = '\0';
	if (fs_mkdirs(folder, 0700, err) != ERR_OK)
		return err_wrap(err, "%s", folder);
	// A later command may run in another folder.
	char *full = cli->ca_file == NULL ? NULL : realpath(cli->ca_file, NULL);
	AUTO(json_decrefp)
	json_t *config = json_pack("{s:s?, s:s?, s:s?}", "server", cli->server, "ca",
				   full != NULL ? full : cli->ca_file, "token", cli->token);
	free(full);
	return fs_write_atomic(path, json_dump(cli->arena, config), 0600, err);
}

struct str cli_read_token(struct cli *cli)
{
	if (isatty(STDIN_FILENO) != 0)
		(void)fprintf(stderr, "Token: ");
	char *text = arena_alloc(cli->arena, TOKEN_MAX_BYTES);
	size_t len = text == NULL ? 0 : fread(text, 1, TOKEN_MAX_BYTES, stdin);
	return str_trim((struct str){ text, len });
}
