// SPDX-License-Identifier: Apache-2.0
#include "k8s/watch_core.h"

#include "base/rng.h"
#include "k8s/status.h"
#include "k8s/watch_frame.h"
#include "net/http.h"

#include <stdlib.h>

enum {
	PAGE_LIMIT = 500,
	WATCH_MIN_S = 300, // timeoutSeconds lies between it and its double
	ERROR_BODY_MAX_BYTES = 64 * 1024,
	VERSION_MAX_BYTES = 256,
	NEXT_MAX_BYTES = 64 * 1024,
	REFUSALS_MAX = 3, // of a watch, until the list is made anew
	DOUBTS_MAX = 2,   // lists in a row that are made for objects that cannot be read
};
#define MS_NS UINT64_C(1000000)
#define BACKOFF_FIRST_NS (250 * MS_NS)
#define BACKOFF_MAX_NS (4000 * MS_NS) // how old a cache may be once the server is back
#define RELIST_SPREAD_NS (1000 * MS_NS)
#define SHORT_LIFE_NS (5000 * MS_NS)
#define LIST_TIMEOUT_NS (60000 * MS_NS)
#define IDLE_TIMEOUT_NS (150000 * MS_NS) // bookmarks come about once a minute

enum state {
	STATE_LIST,        // pages
	STATE_STREAM_LIST, // a watch that begins with the objects there are
	STATE_WATCH,
};

struct watch_core {
	char *path, *selector;
	bool protobuf;
	watch_fn *fn;
	void *arg;
	struct rng rng;
	enum state state;
	bool no_stream_list; // the server refused it
	bool is_listing;     // RESYNC was told, SYNCED not yet
	bool is_synced, is_stopped;
	struct buf version;   // where a watch goes on
	struct buf next_page; // token of the next page
	struct buf request;   // path of the last step
	struct watch_framer framer;
	struct buf error_body;
	uint64_t wait_ns;
	unsigned failures; // in a row
	unsigned refusals; // answers of the server that were no success, in a row
	bool had_message;  // in this stream
	bool is_doubted;   // an object could not be read, or one of the list that is coming
	unsigned doubts;   // lists in a row with such objects
};

struct watch_core *watch_core_new(const struct watch_config *config, uint64_t seed)
{
	ASSERT(config->fn != NULL && config->path[0] == '/');
	struct watch_core *core = calloc(1, sizeof *core);
	ASSERT(core != NULL);
	*core = (struct watch_core){
		.path = strdup(config->path),
		.selector = strdup(config->selector == NULL ? "" : config->selector),
		.protobuf = config->protobuf,
		.fn = config->fn,
		.arg = config->arg,
		.state = config->paged ? STATE_LIST : STATE_STREAM_LIST,
		.no_stream_list = config->paged,
		.version.limit = VERSION_MAX_BYTES,
		.next_page.limit = NEXT_MAX_BYTES,
		.error_body.limit = ERROR_BODY_MAX_BYTES,
	};
	ASSERT(core->path != NULL && core->selector != NULL);
	rng_init(&core->rng, seed);
	watch_framer_init(&core->framer, core->protobuf);
	return core;
}

void watch_core_free(struct watch_core *core)
{
	if (core == NULL)
		return;
	watch_framer_done(&core->framer);
	buf_done(&core->version);
	buf_done(&core->next_page);
	buf_done(&core->request);
	buf_done(&core->error_body);
	free(core->path);
	free(core->selector);
	free(core);
}

void watch_core_stop(struct watch_core *core) { core->is_stopped = true; }
void watch_core_doubt(struct watch_core *core) { core->is_doubted = true; }
bool watch_core_is_synced(const struct watch_core *core) { return core->is_synced; }

// ---- what the handler hears

static void emit(struct watch_core *core, const struct watch_item *item)
{
	if (!core->is_stopped)
		core->fn(core->arg, item);
}

static void emit_object(struct watch_core *core, watch_event event, struct str object)
{
	emit(core, &(struct watch_item){
			   .event = event, .object = object, .is_protobuf = core->protobuf });
}

static void emit_failed(struct watch_core *core, const struct err *err)
{
	emit(core, &(struct watch_item){ .event = WATCH_FAILED, .err = err });
}

static void begin_list(struct watch_core *core)
{
	if (core->is_listing)
		return;
	core->is_listing = true;
	core->is_synced = false;
	core->is_doubted = false;
	emit(core, &(struct watch_item){ .event = WATCH_RESYNC });
}

static void keep_version(struct watch_core *core, struct str version)
{
	buf_clear(&core->version);
	buf_put(&core->version, version);
}

static void end_list(struct watch_core *core, struct str version)
{
	ASSERT(core->is_listing);
	keep_version(core, version);
	core->is_listing = false;
	core->is_synced = true;
	core->state = STATE_WATCH;
	core->failures = 0;
	core->refusals = 0;
	core->doubts = core->is_doubted ? core->doubts + 1 : 0;
	emit(core, &(struct watch_item){ .event = WATCH_SYNCED,
					 .resource_version = buf_str(&core->version) });
}

// ---- what comes next

static uint64_t spread(struct watch_core *core, uint64_t low_ns, uint64_t high_ns)
{
	return low_ns + rng_below(&core->rng, high_ns - low_ns + 1);
}

static void back_off(struct watch_core *core, int64_t retry_after_s)
{
	uint64_t base_ns = BACKOFF_FIRST_NS << min_size(core->failures, 7);
	if (base_ns > BACKOFF_MAX_NS)
		base_ns = BACKOFF_MAX_NS;
	core->failures++;
	core->wait_ns = spread(core, base_ns / 2, base_ns);
	if (retry_after_s > 0)
		core->wait_ns += (uint64_t)min_i64(retry_after_s, 60) * 1000 * MS_NS;
}

static void start_over(struct watch_core *core)
{
	core->state = core->no_stream_list ? STATE_LIST : STATE_STREAM_LIST;
	core->is_listing = false; // a list that was cut is told anew
	core->refusals = 0;
	buf_clear(&core->next_page);
	buf_clear(&core->version);
}

// The version is too old. Many clients lose theirs at once, hence the spread.
static void relist(struct watch_core *core)
{
	start_over(core);
	if (core->failures > 0) {
		back_off(core, 0);
		return;
	}
	core->failures++;
	core->wait_ns = spread(core, 0, RELIST_SPREAD_NS);
}

// True: the list is made anew, for an object could not be read. What the lists cannot tell either
// is left out, or one bad object would have everything listed for ever.
static bool lists_for_doubt(struct watch_core *core)
{
	if (!core->is_doubted || core->is_listing)
		return false;
	core->is_doubted = false;
	if (core->doubts >= DOUBTS_MAX)
		return false;
	relist(core);
	return true;
}

static void put_request(struct watch_core *core)
{
	struct buf *out = &core->request;
	buf_clear(out);
	buf_put_c(out, core->path);
	if (core->state == STATE_LIST) {
		buf_printf(out, "?limit=%d", (int)PAGE_LIMIT);
		if (core->next_page.len > 0) {
			buf_put_c(out, "&continue=");
			http_put_escaped(out, buf_str(&core->next_page));
		}
	} else {
		uint64_t timeout_s = spread(core, WATCH_MIN_S, 2 * WATCH_MIN_S);
		buf_printf(out, "?watch=true&allowWatchBookmarks=true&timeoutSeconds=%u",
			   (unsigned)timeout_s);
		if (core->state == STATE_STREAM_LIST) {
			buf_put_c(out, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
		} else {
			buf_put_c(out, "&resourceVersion=");
			http_put_escaped(out, buf_str(&core->version));
		}
	}
	if (core->selector[0] != '\0')
		buf_printf(out, "&%s", core->selector);
	ASSERT(buf_ok(out));
}

void watch_core_step(struct watch_core *core, struct watch_step *ret_step)
{
	if (core->wait_ns > 0) {
		*ret_step =
			(struct watch_step){ .kind = WATCH_STEP_WAIT, .wait_ns = core->wait_ns };
		core->wait_ns = 0;
		return;
	}
	bool is_stream = core->state != STATE_LIST;
	const char *accept = "application/json";
	if (core->protobuf)
		accept = is_stream ? K8S_PROTOBUF ";stream=watch" : K8S_PROTOBUF;
	put_request(core);
	watch_framer_done(&core->framer);
	watch_framer_init(&core->framer, core->protobuf);
	buf_clear(&core->error_body);
	core->had_message = false;
	*ret_step = (struct watch_step){
		.kind = is_stream ? WATCH_STEP_WATCH : WATCH_STEP_LIST,
		.path = buf_str(&core->request),
		.accept = accept,
		.timeout_ns = LIST_TIMEOUT_NS,
		.idle_timeout_ns = IDLE_TIMEOUT_NS,
	};
}

// ---- what came back

// The server answered, but not with what was asked for.
static void refused(struct watch_core *core, const struct k8s_status *status, int64_t retry_after_s)
{
	struct err err = { 0 };
	(void)k8s_status_fail(status, &err);
	bool is_fault_of_request = status->code >= 400 && status->code < 500 &&
				   status->code != 401 && status->code != 403 &&
				   status->code != 404 && status->code != 408 &&
				   status->code != 429;
	if (status->code == 410) {
		emit_failed(core, &err);
		relist(core);
		return;
	}
	if (core->state == STATE_STREAM_LIST && is_fault_of_request && !core->had_message) {
		core->no_stream_list = true; // older servers and those with the gate off
		core->state = STATE_LIST;
		return;
	}
	emit_failed(core, &err);
	// A version may be beyond what the server has, after a restore of its store.
	if (++core->refusals >= REFUSALS_MAX || core->state == STATE_STREAM_LIST)
		start_over(core);
	back_off(core, max_i64(retry_after_s, status->retry_after_s));
}

static void broken(struct watch_core *core, const char *what)
{
	struct err err = { 0 };
	(void)err_set(&err, ERR_PROTOCOL, "%s of %s", what, core->path);
	emit_failed(core, &err);
	if (core->state != STATE_WATCH || ++core->refusals >= REFUSALS_MAX)
		start_over(core);
	back_off(core, 0);
}

static void take_object(struct watch_core *core, const struct watch_message *message)
{
	static const watch_event events[] = {
		[WATCH_MESSAGE_ADDED] = WATCH_ADDED,
		[WATCH_MESSAGE_MODIFIED] = WATCH_MODIFIED,
		[WATCH_MESSAGE_DELETED] = WATCH_DELETED,
	};
	ASSERT((size_t)message->kind < ARRAY_COUNT(events));
	emit_object(core, events[message->kind], message->object);
	// The initial objects come in no order: only the bookmark behind them is a place to go on.
	if (core->state == STATE_WATCH)
		keep_version(core, message->resource_version);
}

// Servers before 1.27 take sendInitialEvents for a plain watch and never mark the end: the first
// bookmark without the mark tells.
static bool no_stream_list(struct watch_core *core)
{
	core->no_stream_list = true;
	start_over(core);
	return false;
}

// False: the stream is of no use any more.
static bool take_message(struct watch_core *core, struct str frame)
{
	struct watch_message message;
	if (!watch_message_parse(frame, core->protobuf, &message)) {
		broken(core, "a malformed event in the watch");
		return false;
	}
	if (message.kind == WATCH_MESSAGE_ERROR) {
		refused(core, &message.status, 0);
		return false;
	}
	core->had_message = true;
	if (core->state == STATE_STREAM_LIST)
		begin_list(core);
	else
		core->failures = core->refusals = 0;
	if (message.kind != WATCH_MESSAGE_BOOKMARK)
		take_object(core, &message);
	else if (core->state == STATE_WATCH)
		keep_version(core, message.resource_version);
	else if (message.ends_initial)
		end_list(core, message.resource_version);
	else
		return no_stream_list(core);
	return !lists_for_doubt(core);
}

bool watch_core_data(struct watch_core *core, int code, struct str bytes)
{
	ASSERT(core->state != STATE_LIST);
	if (code != 200) {
		buf_put(&core->error_body,
			str_slice(bytes, 0, ERROR_BODY_MAX_BYTES - core->error_body.len));
		return true;
	}
	struct str frame;
	while (!core->is_stopped && watch_framer_next(&core->framer, &bytes, &frame))
		if (str_trim(frame).len > 0 && !take_message(core, frame))
			return false;
	if (core->framer.failed) {
		broken(core, "an event over 8 MiB in the watch");
		return false;
	}
	return true;
}

static void end_page(struct watch_core *core, struct str body)
{
	struct watch_list list;
	struct str object;
	if (!watch_list_open(body, core->protobuf, &list)) {
		broken(core, "a malformed list");
		return;
	}
	begin_list(core);
	while (!core->is_stopped && watch_list_next(&list, &object))
		emit_object(core, WATCH_ADDED, object);
	if (core->is_stopped)
		return;
	if (watch_list_failed(&list)) {
		broken(core, "a malformed list");
		return;
	}
	core->failures = 0;
	buf_clear(&core->next_page);
	buf_put(&core->next_page, list.next);
	if (!buf_ok(&core->next_page))
		broken(core, "a token for the next page over 64 KiB in the list");
	else if (list.next.len == 0)
		end_list(core, list.resource_version);
	(void)lists_for_doubt(core);
}

// A stream that had begun well has ended.
static void end_stream(struct watch_core *core, const struct watch_end *end)
{
	if (core->state == STATE_STREAM_LIST)
		start_over(core);
	if (end->status != ERR_OK) {
		emit_failed(core, end->err);
		back_off(core, 0);
	} else if (end->lived_ns < SHORT_LIFE_NS) {
		back_off(core, 0); // a server that always closes at once must not be hammered
	}
}

void watch_core_end(struct watch_core *core, const struct watch_end *end)
{
	if (core->is_stopped)
		return;
	if (end->code == 0) {
		ASSERT(end->status != ERR_OK);
		emit_failed(core, end->err);
		back_off(core, end->retry_after_s);
	} else if (end->code != 200) {
		struct str body = end->body.len > 0 ? end->body : buf_str(&core->error_body);
		struct k8s_status status = k8s_status_parse(end->code, body);
		refused(core, &status, end->retry_after_s);
	} else if (core->state != STATE_LIST) {
		end_stream(core, end);
	} else if (end->status != ERR_OK) {
		emit_failed(core, end->err); // the page is asked for again
		back_off(core, 0);
	} else {
		end_page(core, end->body);
	}
}
