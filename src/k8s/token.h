// SPDX-License-Identifier: Apache-2.0
// The bearer token of a client: a static one, or a file whose content is replaced before it
// expires (projected service-account tokens). Internal to the client. The file is read again
// each minute and when the server refuses the token; while it cannot be read the last token
// stays.
#pragma once

#include "base/buf.h"
#include "k8s/config.h"
#include "sys/loop.h"

struct k8s_token {
	struct loop *loop;
	const char *file; // NULL: static or none
	struct buf text;
	uint64_t read_ns;
};

// Fails when a token file is named and cannot be read.
MUST_USE err_status k8s_token_init(struct k8s_token *token, struct arena *arena, struct loop *loop,
				   const struct k8s_config *config, struct err *err);
void k8s_token_done(struct k8s_token *token);
void k8s_token_refresh(struct k8s_token *token);          // reads the file if it is time
bool k8s_token_reload(struct k8s_token *token);           // reads it now; false if there is none
struct str k8s_token_text(const struct k8s_token *token); // empty: none
