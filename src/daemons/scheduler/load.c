// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/load.h"

#include "base/timefmt.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)
enum { PERIOD_MIN_S = 1, PERIOD_MAX_S = 3600, TOKEN_MAX_BYTES = 16 * 1024 };
enum { ANSWER_MAX_BYTES = 64 * 1024 * 1024, PERIOD_S = 15, LOADS_ARENA_BYTES = 64 * 1024 * 1024 };

static bool keep(char *ret, size_t size, struct str text)
{
	if (text.len == 0 || text.len >= size)
		return false;
	(void)snprintf(ret, size, STR_FMT, STR_ARG(text));
	return true;
}

static bool read_option(struct load_source *source, struct str name, struct str value)
{
	int64_t period_s;
	if (str_eq_c(name, "ca"))
		return keep(source->ca_file, sizeof source->ca_file, value);
	if (str_eq_c(name, "token"))
		return keep(source->token_file, sizeof source->token_file, value);
	if (!str_eq_c(name, "period") || !time_parse_duration(value, &period_s) ||
	    period_s < PERIOD_MIN_S || period_s > PERIOD_MAX_S)
		return false;
	source->period_ms = period_s * 1000;
	return true;
}

// "off", "agents" or a URL, then ,period=TIME,ca=FILE,token=FILE.
static err_status read_options(struct str text, struct load_source *ret, struct err *err)
{
	struct load_source source = { .period_ms = PERIOD_S * 1000 };
	struct str rest = text, first, part;
	(void)str_split_next(&rest, ',', &first);
	if (str_eq_c(first, "agents"))
		source.kind = LOAD_AGENTS;
	else if (str_starts(first, STR("http://")) || str_starts(first, STR("https://")))
		source.kind = LOAD_PROMETHEUS;
	else if (!str_eq_c(first, "off"))
		return err_set(err, ERR_INVALID,
			       "--load is off, agents or the URL of a Prometheus");
	if (source.kind == LOAD_PROMETHEUS && !keep(source.base, sizeof source.base, first))
		return err_set(err, ERR_INVALID, "--load: the URL is too long");
	while (str_split_next(&rest, ',', &part)) {
		struct str value = part, name;
		(void)str_split_next(&value, '=', &name);
		if (!read_option(&source, name, value))
			return err_set(err, ERR_INVALID,
				       "--load: \"" STR_FMT
				       "\" is none of period=1s to 1h, ca=FILE, token=FILE",
				       STR_ARG(part));
	}
	if (source.kind == LOAD_AGENTS && source.ca_file[0] == '\0')
		return err_set(err, ERR_INVALID, "--load agents needs ca=FILE of their CA");
	*ret = source;
	return ERR_OK;
}

struct feed_clock load_clock(const struct load_source *source)
{
	enum { HALF_A_SECOND_MS = 500 }; // the wall's clock tells whole ones
	return (struct feed_clock){ scheduler_now_ms(source->s),
				    scheduler_wall_s(source->s) * 1000 + HALF_A_SECOND_MS };
}

void load_failed(struct load_source *source, const char *who, const char *why)
{
	source->asked_failed++;
	if (!source->is_failing)
		log_kv(LOG_WARN, "loads of GPUs cannot be asked for; they count while young enough",
		       "source", who, "why", why, NULL);
	source->is_failing = true;
}

void load_take(struct load_source *source, const struct feed_loads *loads)
{
	struct scheduler *s = source->s;
	ASSERT(s->core != NULL);
	struct sched_load_taken taken =
		sched_load_set(s->core, loads->items, loads->count, scheduler_now_ms(s));
	source->asked_ok++;
	source->is_failing = false;
	source->sums.taken += taken.taken;
	source->sums.repeated += taken.repeated;
	source->sums.unknown += taken.unknown;
	source->sums.refused += taken.refused + loads->bad;
}

static void on_answer(void *arg, const struct http_call_result *result)
{
	struct load_source *source = arg;
	AUTO(arena_freep) struct arena *arena = arena_new(LOADS_ARENA_BYTES);
	struct feed_loads loads;
	struct err err = { 0 };
	char why[64];
	ASSERT(arena != NULL);
	source->call = NULL;
	if (result->status != ERR_OK) {
		load_failed(source, source->base, result->err->text);
	} else if (result->code != 200) {
		(void)snprintf(why, sizeof why, "answer %d", result->code);
		load_failed(source, source->base, why);
	} else if (feed_load_prometheus(arena, result->body, load_clock(source), &loads, &err) !=
		   ERR_OK) {
		load_failed(source, source->base, err.text);
	} else {
		load_take(source, &loads);
	}
}

static err_status read_bearer(const struct load_source *source, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf token = { .limit = TOKEN_MAX_BYTES };
	if (source->token_file[0] == '\0')
		return ERR_OK;
	if (fs_read(source->token_file, TOKEN_MAX_BYTES, &token, err) != ERR_OK)
		return err->status;
	buf_put_c(out, "Bearer ");
	buf_put(out, str_trim(buf_str(&token)));
	return ERR_OK;
}

// All that may still count; one question, whatever the number of GPUs.
static void ask_prometheus(struct load_source *source)
{
	AUTO(buf_done) struct buf bearer = { .limit = 2 * TOKEN_MAX_BYTES };
	AUTO(buf_done) struct buf path = { .limit = 4096 };
	struct err err = { 0 };
	if (source->call != NULL)
		return; // it takes longer than a period
	if (read_bearer(source, &bearer, &err) != ERR_OK) {
		load_failed(source, source->base, err.text);
		return;
	}
	buf_printf(&path, "/api/v1/query?query=" FEED_LOAD_METRIC "%%5B%llds%%5D",
		   (long long)(SCHED_LOAD_PERIODS * source->period_ms / 1000));
	const struct http_header header = { STR("authorization"), buf_str(&bearer) };
	const struct http_call_request request = { .method = "GET",
						   .path = buf_str(&path),
						   .headers = &header,
						   .header_count = bearer.len > 0 ? 1 : 0,
						   .timeout_ns =
							   (uint64_t)source->period_ms * NS_PER_MS,
						   .body_max_bytes = ANSWER_MAX_BYTES,
						   .on_done = on_answer,
						   .arg = source };
	source->call = http_call_start(source->client, &request);
	if (source->call == NULL)
		load_failed(source, source->base, "no memory for a call");
}

static void on_timer(void *arg)
{
	struct load_source *source = arg;
	loop_timer_set(source->timer, (uint64_t)source->period_ms * NS_PER_MS);
	if (source->kind == LOAD_PROMETHEUS)
		ask_prometheus(source);
	else
		load_agents_ask(source->agents);
}

err_status load_open(struct scheduler *s, struct err *err)
{
	struct load_source *source = calloc(1, sizeof *source);
	const char *text = s->options->load == NULL ? "off" : s->options->load;
	ASSERT(source != NULL);
	s->load = source;
	if (read_options(str_of(text), source, err) != ERR_OK)
		return err->status;
	source->s = s;
	const struct tls_client_config tls = { .ca_file = source->ca_file[0] == '\0'
								  ? NULL
								  : source->ca_file };
	bool is_tls = source->kind == LOAD_AGENTS ||
		      str_starts(str_of(source->base), STR("https:"));
	if (is_tls && tls_client_new(&tls, &source->tls, err) != ERR_OK)
		return err_wrap(err, "--load");
	if (source->kind == LOAD_PROMETHEUS &&
	    http_client_new(s->loop, source->base, source->tls, NULL, &source->client, err) !=
		    ERR_OK)
		return err_wrap(err, "--load");
	source->timer = loop_timer_new(s->loop, on_timer, source);
	return ERR_OK;
}

void load_close(struct scheduler *s)
{
	struct load_source *source = s->load;
	if (source == NULL)
		return;
	http_client_free(source->client);
	tls_ctx_free(source->tls);
	loop_timer_free(source->timer);
	free(source);
	s->load = NULL;
}

void load_begin(struct scheduler *s)
{
	struct load_source *source = s->load;
	if (source->kind == LOAD_OFF)
		return;
	sched_load_period_set(s->core, source->period_ms);
	if (source->kind == LOAD_AGENTS)
		source->agents = load_agents_new(source);
	loop_timer_set(source->timer, NS_PER_MS * 1000); // the lists come first
}

void load_end(struct scheduler *s)
{
	struct load_source *source = s->load;
	if (source->kind == LOAD_OFF)
		return;
	loop_timer_stop(source->timer);
	if (source->call != NULL)
		http_call_cancel(source->call);
	source->call = NULL;
	load_agents_free(source->agents);
	source->agents = NULL;
}

static void put_counts(const char *name, const char *help, const char *label,
		       const char *const names[], const size_t values[], struct buf *out)
{
	bool is_sum = str_ends(str_of(name), STR("_total"));
	metric_family(out, name, is_sum ? "counter" : "gauge", help);
	for (size_t i = 0; names[i] != NULL; i++) {
		struct metric_label item = { label, str_of(names[i]) };
		metric_int(out, name, &item, 1, (int64_t)values[i]);
	}
}

void load_put_metrics(struct scheduler *s, struct buf *out)
{
	static const char *const STATES[] = { "fresh", "stale", "none", NULL };
	static const char *const SAMPLES[] = { "taken", "repeated", "unknown", "refused", NULL };
	static const char *const RESULTS[] = { "ok", "failed", NULL };
	const struct load_source *source = s->load;
	struct sched_load_counts counts = { .oldest_ms = INT64_MAX };
	int64_t now_ms = scheduler_now_ms(s);
	if (source->kind == LOAD_OFF)
		return;
	if (s->core != NULL)
		counts = sched_load_counts_get(s->core, now_ms);
	put_counts("gpuaas_scheduler_load_gpus", "GPUs by what is known of their load.", "state",
		   STATES, (const size_t[]){ counts.fresh, counts.stale, counts.none }, out);
	metric_family(out, "gpuaas_scheduler_load_age_seconds", "gauge",
		      "Age of the oldest load that counts.");
	if (counts.oldest_ms != INT64_MAX)
		metric_float(out, "gpuaas_scheduler_load_age_seconds", NULL, 0,
			     (double)(now_ms - counts.oldest_ms) / 1e3);
	put_counts("gpuaas_scheduler_load_samples_total", "Loads told by the source.", "result",
		   SAMPLES,
		   (const size_t[]){ source->sums.taken, source->sums.repeated,
				     source->sums.unknown, source->sums.refused },
		   out);
	put_counts("gpuaas_scheduler_load_requests_total", "Questions to the source of loads.",
		   "result", RESULTS, (const size_t[]){ source->asked_ok, source->asked_failed },
		   out);
	if (source->agents == NULL)
		return;
	metric_family(out, "gpuaas_scheduler_load_agents", "gauge", "Agents that are asked.");
	metric_int(out, "gpuaas_scheduler_load_agents", NULL, 0,
		   (int64_t)load_agents_count(source->agents));
}

void load_put_view(struct scheduler *s, struct str namespace_, struct str name, struct buf *out)
{
	struct sched_load_used used[SCHED_SHARES_MAX];
	size_t count = sched_load_explain(s->core, namespace_, name, used, ARRAY_COUNT(used));
	for (size_t i = 0; i < count; i++) {
		buf_put_c(out, i == 0 ? ",\"load\":[{\"gpu\":" : ",{\"gpu\":");
		buf_put_json(out, used[i].uuid);
		if (used[i].milli >= 0)
			buf_printf(out, ",\"percent\":%lld.%lld", (long long)(used[i].milli / 10),
				   (long long)(used[i].milli % 10));
		else
			buf_put_c(out, ",\"percent\":null");
		if (used[i].age_ms >= 0)
			buf_printf(out, ",\"age_s\":%lld.%03lld",
				   (long long)(used[i].age_ms / 1000),
				   (long long)(used[i].age_ms % 1000));
		buf_put_byte(out, '}');
	}
	if (count > 0)
		buf_put_byte(out, ']');
}
