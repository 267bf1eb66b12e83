// SPDX-License-Identifier: Apache-2.0
// The audit log as it stands, whole, and the signed statement of its length and head.
#include "api/handlers.h"
#include "api/views.h"
#include "sys/fs.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 * 1024, FILES_ARENA_BYTES = 8 * 1024 * 1024 };
#define LATER_NS UINT64_C(20000000)

struct export
{
	struct call *call;
	struct loop_timer *timer;
	const char *const *paths;
	size_t path_count, path_i;
	int fd;
};

static void end_export(struct export *export, bool is_client_gone)
{
	struct call *call = export->call;
	loop_timer_free(export->timer);
	fs_closep(&export->fd);
	rest_stream_end(call, is_client_gone);
}

static void on_client_gone(void *arg) { end_export(arg, true); }

// The next bytes, file after file; 0 at the end.
static ssize_t read_piece(struct export *export, char *out)
{
	for (;;) {
		if (export->fd < 0 && export->path_i == export->path_count)
			return 0;
		if (export->fd < 0)
			export->fd = open(export->paths[export->path_i++], O_RDONLY | O_CLOEXEC);
		ssize_t got = export->fd < 0 ? 0 : read(export->fd, out, PIECE_BYTES);
		if (got > 0)
			return got;
		fs_closep(&export->fd);
	}
}

// One piece a turn, and none while the client has not taken the last one.
static void send_piece(void *arg)
{
	struct export *export = arg;
	static char piece[PIECE_BYTES]; // one loop thread
	if (http_exchange_unsent_bytes(export->call->exchange) > 0) {
		loop_timer_set(export->timer, LATER_NS);
		return;
	}
	ssize_t got = read_piece(export, piece);
	if (got <= 0) {
		end_export(export, false);
		return;
	}
	http_respond_chunk(export->call->exchange, (struct str){ piece, (size_t)got });
	loop_timer_set(export->timer, 0);
}

void handle_audit_export(struct call *call)
{
	struct export *export = ARENA_NEW(call->arena, struct export);
	struct err err;
	ASSERT(export != NULL);
	export->call = call;
	export->fd = -1;
	if (audit_list_files(call->arena, audit_dir(call->api->audit), &export->paths,
			     &export->path_count, &err) != ERR_OK) {
		rest_fail(call, &err);
		return;
	}
	export->timer = loop_timer_new(call->api->loop, send_piece, export);
	rest_stream_begin(call);
	http_respond_start(call->exchange, 200, "application/x-ndjson", on_client_gone, export);
	loop_timer_set(export->timer, 0);
}

void handle_audit_checkpoint(struct call *call)
{
	struct buf json = { .limit = AUDIT_LINE_MAX_BYTES };
	struct err err;
	err_status status = audit_checkpoint_now(call->api->audit, &json, &err);
	struct str copy = arena_dup(call->arena, buf_str(&json));
	buf_done(&json);
	if (status != ERR_OK)
		rest_fail(call, &err);
	else
		rest_answer_text(call, "application/json", copy);
}
