// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/push.h"

#include "base/json.h"
#include "net/http_client.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKEN_MAX_BYTES = 16 * 1024, BATCH_MIN_BYTES = 4096, ANSWER_MAX_BYTES = 64 * 1024 };

#define MS UINT64_C(1000000)
static const uint64_t TIMEOUT_NS = 30000 * MS;
static const uint64_t BACK_OFF_MIN_NS = 500 * MS;
static const uint64_t BACK_OFF_MAX_NS = 60000 * MS;
static const char default_path[] = "/v1/usage";

struct push {
	struct loop *loop;
	struct push_config config;
	char base[512], path[512], token_file[512];
	struct journal *journal;
	struct tls_ctx *tls;
	struct http_client *client;
	struct http_call *call;
	struct loop_timer *timer;
	size_t batch_bytes;
	uint64_t back_off_ns;
	uint64_t sent_ns;
	uint64_t batch_last_seq;
	struct push_stats stats;
};

static void push_now(struct push *push);

static void arm(struct push *push, uint64_t delay_ns) { loop_timer_set(push->timer, delay_ns); }

static void on_timer(void *arg) { push_now(arg); }

static void fail(struct push *push, const char *why)
{
	const struct world *world = loop_world(push->loop);
	push->stats.failures++;
	if (!push->stats.is_failing)
		log_kv(LOG_WARN, "usage is not taken by the server; it stays in the journal", "why",
		       why, "server", push->base, NULL);
	push->stats.is_failing = true;
	push->back_off_ns = push->back_off_ns == 0 ? BACK_OFF_MIN_NS : push->back_off_ns * 2;
	if (push->back_off_ns > BACK_OFF_MAX_NS)
		push->back_off_ns = BACK_OFF_MAX_NS;
	// Many agents lose the same server at once; they come back spread out.
	arm(push, push->back_off_ns / 2 + world_random(world) % (push->back_off_ns / 2 + 1));
}

bool push_cursor_read(struct str body, const char *boot, uint64_t *ret_seq)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	if (body.len > ANSWER_MAX_BYTES || json_parse(body, &answer, NULL) != ERR_OK)
		return false;
	const char *own = strchr(boot, '.');
	int64_t seq = json_int(answer, "cursor.seq", -1);
	if (own == NULL || seq < 0 || !str_ends(json_text(answer, "cursor.boot"), str_of(own)))
		return false;
	*ret_seq = (uint64_t)seq;
	return true;
}

static void on_done(void *arg, const struct http_call_result *result)
{
	struct push *push = arg;
	uint64_t seq = 0;
	char why[64];
	push->call = NULL;
	if (result->status != ERR_OK) {
		fail(push, result->err == NULL ? "no answer" : result->err->text);
		return;
	}
	if (result->code == 413 && push->batch_bytes > BATCH_MIN_BYTES)
		push->batch_bytes /= 2;
	if (result->code != 200 ||
	    !push_cursor_read(result->body, journal_boot(push->journal), &seq)) {
		(void)snprintf(why, sizeof why, "answer %d%s", result->code,
			       result->code == 200 ? " without a cursor of this journal" : "");
		fail(push, why);
		return;
	}
	if (seq > push->batch_last_seq)
		seq = push->batch_last_seq; // it cannot have more than was sent
	if (push->stats.is_failing)
		log_kv(LOG_INFO, "usage is taken by the server again", NULL);
	push->stats.is_failing = false;
	push->stats.batches++;
	push->stats.last_good_wall_s = world_wall_s(loop_world(push->loop));
	push->back_off_ns = 0;
	if (seq > push->stats.acknowledged_seq) {
		push->stats.acknowledged_seq = seq;
		journal_acknowledge(push->journal, seq);
		push_now(push);
	} else {
		fail(push, "the server's cursor does not move");
	}
}

static err_status read_token(const struct push *push, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf token = { 0 };
	if (push->token_file[0] == '\0')
		return ERR_OK;
	if (fs_read(push->token_file, TOKEN_MAX_BYTES, &token, err) != ERR_OK)
		return err_wrap(err, "token of the push");
	buf_put_c(out, "Bearer ");
	buf_put(out, str_trim(buf_str(&token)));
	return ERR_OK;
}

static void start_call(struct push *push, struct str lines)
{
	AUTO(buf_done) struct buf bearer = { 0 };
	struct err err;
	struct http_header headers[] = {
		{ STR("content-type"), STR("application/x-ndjson") },
		{ STR("authorization"), STR("") },
	};
	if (read_token(push, &bearer, &err) != ERR_OK) {
		fail(push, err.text);
		return;
	}
	headers[1].value = buf_str(&bearer);
	const struct http_call_request request = { .method = "POST",
						   .path = str_of(push->path),
						   .headers = headers,
						   .header_count = bearer.len > 0 ? 2 : 1,
						   .body = lines,
						   .timeout_ns = TIMEOUT_NS,
						   .body_max_bytes = ANSWER_MAX_BYTES,
						   .on_done = on_done,
						   .arg = push };
	push->sent_ns = loop_now_ns(push->loop);
	push->call = http_call_start(push->client, &request);
	if (push->call == NULL)
		fail(push, "no memory for a call");
}

static void push_now(struct push *push)
{
	AUTO(buf_done) struct buf lines = { 0 };
	struct err err;
	uint64_t last = 0, waited_ns = loop_now_ns(push->loop) - push->sent_ns;
	if (push->call != NULL)
		return;
	if (push->sent_ns != 0 && waited_ns < push->config.period_ns) {
		arm(push, push->config.period_ns - waited_ns);
		return;
	}
	if (journal_read(push->journal, push->stats.acknowledged_seq, push->batch_bytes, &lines,
			 &last, &err) != ERR_OK) {
		fail(push, err.text);
		return;
	}
	if (lines.len == 0)
		return; // poked when there is more
	push->batch_last_seq = last;
	start_call(push, buf_str(&lines));
}

void push_poke(struct push *push)
{
	if (!push->stats.is_failing)
		push_now(push);
}

static bool split_url(struct push *push, const char *url)
{
	struct str text = str_of(url);
	size_t host = str_find_byte(text, ':', 0);
	if (host == SIZE_MAX || !str_starts(str_slice(text, host, text.len), STR("://")))
		return false;
	size_t slash = str_find_byte(text, '/', host + 3);
	struct str base = str_slice(text, 0, slash == SIZE_MAX ? text.len : slash);
	struct str path = slash == SIZE_MAX ? STR("") : str_slice(text, slash, text.len);
	if (path.len <= 1)
		path = str_of(default_path);
	return base.len > host + 3 && usage_text(push->base, sizeof push->base, base) &&
	       usage_text(push->path, sizeof push->path, path);
}

err_status push_new(struct loop *loop, const struct push_config *config, struct journal *journal,
		    struct push **ret, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct push *push = calloc(1, sizeof *push);
	if (push == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the push");
	push->loop = loop;
	push->config = *config;
	push->journal = journal;
	push->batch_bytes = config->batch_bytes;
	push->timer = loop_timer_new(loop, on_timer, push);
	const struct tls_client_config tls = { .ca_file = config->ca_file };
	err_status status = ERR_OK;
	if (!split_url(push, config->url) ||
	    !usage_text(push->token_file, sizeof push->token_file, str_of(config->token_file)))
		status = err_set(err, ERR_INVALID, "server.url \"%s\" must be https://HOST:PORT",
				 config->url);
	bool is_tls = str_starts(str_of(push->base), STR("https:"));
	if (status == ERR_OK && is_tls)
		status = tls_client_new(&tls, &push->tls, err);
	if (status == ERR_OK)
		status = http_client_new(loop, push->base, push->tls, NULL, &push->client, err);
	if (status != ERR_OK) {
		push_free(push);
		return err_wrap(err, "push of usage");
	}
	arm(push, 0);
	*ret = push;
	return ERR_OK;
}

void push_free(struct push *push)
{
	if (push == NULL)
		return;
	if (push->call != NULL)
		http_call_cancel(push->call);
	if (push->client != NULL)
		http_client_free(push->client);
	tls_ctx_free(push->tls);
	loop_timer_free(push->timer);
	free(push);
}

void push_stats(const struct push *push, struct push_stats *ret) { *ret = push->stats; }
