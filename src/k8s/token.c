// SPDX-License-Identifier: Apache-2.0
#include "k8s/token.h"

#include "sys/fs.h"

enum { TOKEN_MAX_BYTES = 64 * 1024 };
#define REFRESH_NS UINT64_C(60000000000)

static err_status read_token(struct k8s_token *token, struct err *err)
{
	AUTO(buf_done) struct buf content = { 0 };
	err_status status = fs_read(token->file, TOKEN_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	struct str text = str_trim(buf_str(&content));
	if (text.len == 0)
		return err_set(err, ERR_INVALID, "%s is empty", token->file);
	buf_clear(&token->text);
	buf_put(&token->text, text);
	return ERR_OK;
}

err_status k8s_token_init(struct k8s_token *token, struct arena *arena, struct loop *loop,
			  const struct k8s_config *config, struct err *err)
{
	*token = (struct k8s_token){ .loop = loop, .text.limit = TOKEN_MAX_BYTES };
	if (config->token_file == NULL) {
		if (config->token != NULL)
			buf_put(&token->text, str_trim(str_of(config->token)));
		return buf_ok(&token->text) ? ERR_OK
					    : err_set(err, ERR_LIMIT, "the token is over 64 KiB");
	}
	token->file = arena_cstr(arena, str_of(config->token_file));
	ASSERT(token->file != NULL);
	token->read_ns = world_mono_ns(loop_world(loop));
	return read_token(token, err);
}

void k8s_token_done(struct k8s_token *token) { buf_done(&token->text); }

bool k8s_token_reload(struct k8s_token *token)
{
	if (token->file == NULL)
		return false;
	token->read_ns = world_mono_ns(loop_world(token->loop));
	return read_token(token, NULL) == ERR_OK;
}

void k8s_token_refresh(struct k8s_token *token)
{
	uint64_t now_ns = world_mono_ns(loop_world(token->loop));
	if (token->file != NULL && now_ns - token->read_ns >= REFRESH_NS)
		(void)k8s_token_reload(token); // the server says so if the old one is no good
}

struct str k8s_token_text(const struct k8s_token *token) { return buf_str(&token->text); }
