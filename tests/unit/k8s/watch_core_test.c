// SPDX-License-Identifier: Apache-2.0
// The state machine against scripts of a server. A script is a list of turns: what the request
// must hold, what comes back, and what the handler has heard after it, in short: R resync,
// S<version> synced, A M D with the object's name, F<status> failed.
#include "base/json_scan.h"
#include "check.h"
#include "k8s/watch_core.h"

#include <stdlib.h>

#define LIST_1 "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{\"n\":\"a\"},{\"n\":\"b\"}]}"
#define LIST_PAGE_1                                                                                \
	"{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"to "                             \
	"ken\"},\"items\":[{\"n\":\"a\"}]}"
#define LIST_PAGE_2 "{\"metadata\":{\"resourceVersion\":\"11\"},\"items\":[{\"n\":\"b\"}]}"
#define LIST_BAD "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{\"n\":\"bad\"}]}"
#define EVENT(type, name, version)                                                                 \
	"{\"type\":\"" type "\",\"object\":{\"n\":\"" name                                         \
	"\",\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define INITIAL_END(version)                                                                       \
	"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version          \
	"\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define ERROR(code) "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code "}}\n"
#define STATUS(code) "{\"kind\":\"Status\",\"code\":" code "}"

enum ending { CLOSED, LOST, TIMED_OUT, CUT }; // CUT: the core asks for it

struct turn {
	const char *request; // must be in the request's path
	int code;            // 0: no answer
	const char *body;
	enum ending ending;
	const char *heard;
	int64_t retry_after_s;
};

struct script {
	const char *name;
	struct turn turns[8];
};

struct bench {
	struct buf heard;
	struct watch_core *core;
	const char *doubted; // name of an object that cannot be read
	int stop_after;      // items, -1: never
};

static void on_item(void *arg, const struct watch_item *item)
{
	struct bench *b = arg;
	struct str name = json_scan_text(json_scan_at(item->object, "n"));
	if (b->heard.len > 0)
		buf_put_byte(&b->heard, ' ');
	switch (item->event) {
	case WATCH_ADDED: buf_printf(&b->heard, "A" STR_FMT, STR_ARG(name)); break;
	case WATCH_MODIFIED: buf_printf(&b->heard, "M" STR_FMT, STR_ARG(name)); break;
	case WATCH_DELETED: buf_printf(&b->heard, "D" STR_FMT, STR_ARG(name)); break;
	case WATCH_RESYNC: buf_put_byte(&b->heard, 'R'); break;
	case WATCH_SYNCED:
		buf_printf(&b->heard, "S" STR_FMT, STR_ARG(item->resource_version));
		break;
	case WATCH_FAILED:
		ASSERT(item->err != NULL);
		buf_printf(&b->heard, "F%s", err_status_name(item->err->status));
		break;
	}
	if (b->doubted != NULL && item->object.len > 0 && str_eq_c(name, b->doubted))
		watch_core_doubt(b->core);
	if (b->stop_after >= 0 && b->stop_after-- == 0)
		watch_core_stop(b->core);
}

static void send_end(struct watch_core *core, const struct watch_step *step,
		     const struct turn *turn)
{
	struct err err = { 0 };
	struct watch_end end = { .code = turn->code,
				 .err = &err,
				 .retry_after_s = turn->retry_after_s,
				 .lived_ns = UINT64_C(100000000000) };
	if (turn->ending == LOST || turn->code == 0)
		end.status = err_set(&err, ERR_UNAVAILABLE, "connection lost");
	if (turn->ending == TIMED_OUT)
		end.status = err_set(&err, ERR_TIMEOUT, "idle");
	if (step->kind == WATCH_STEP_LIST)
		end.body = str_of(turn->body);
	watch_core_end(core, &end);
}

// Runs one turn; *ret_wait_ns is the sum of the waits before the request.
static void run_turn(struct check *c, struct bench *b, const char *name, const struct turn *turn,
		     uint64_t *ret_wait_ns)
{
	struct watch_step step;
	*ret_wait_ns = 0;
	for (;;) {
		watch_core_step(b->core, &step);
		if (step.kind != WATCH_STEP_WAIT)
			break;
		*ret_wait_ns += step.wait_ns;
	}
	CHECK(c, name, str_starts(step.path, STR("/api/v1/pods?")));
	bool has_text =
		memmem(step.path.data, step.path.len, turn->request, strlen(turn->request)) != NULL;
	if (!has_text)
		printf("%s: request is " STR_FMT "\n", name, STR_ARG(step.path));
	CHECK(c, turn->request, has_text);
	buf_clear(&b->heard);
	bool is_whole = true;
	if (step.kind == WATCH_STEP_WATCH && turn->code != 0)
		is_whole = watch_core_data(b->core, turn->code, str_of(turn->body));
	CHECK(c, name, is_whole == (turn->ending != CUT));
	if (is_whole)
		send_end(b->core, &step, turn);
	CHECK_STR(c, name, buf_str(&b->heard), turn->heard);
}

static const struct script scripts[] = {
	{ "initial events, then changes, then a new watch from the last version",
	  { { "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 200,
	      EVENT("ADDED", "b", "9") EVENT("ADDED", "a", "3") INITIAL_END("10")
		      EVENT("MODIFIED", "a", "12"),
	      CLOSED, "R Ab Aa S10 Ma", 0 },
	    { "resourceVersion=12", 200, EVENT("DELETED", "a", "13") EVENT("BOOKMARK", "", "20"),
	      CLOSED, "Da", 0 },
	    { "resourceVersion=20", 200, "", CLOSED, "", 0 },
	    { "resourceVersion=20", 200, "", CLOSED, "", 0 } } },
	{ "nothing there",
	  { { "sendInitialEvents=true", 200, INITIAL_END("1"), CLOSED, "R S1", 0 } } },
	{ "422 falls back to pages, for good",
	  { { "sendInitialEvents=true", 422, STATUS("422"), CLOSED, "", 0 },
	    { "?limit=500", 200, LIST_PAGE_1, CLOSED, "R Aa", 0 },
	    { "&continue=to%20ken", 200, LIST_PAGE_2, CLOSED, "Ab S11", 0 },
	    { "resourceVersion=11", 200, ERROR("410"), CUT, "Fconflict", 0 },
	    { "?limit=500", 200, LIST_1, CLOSED, "R Aa Ab S10", 0 } } },
	{ "an old server ignores sendInitialEvents",
	  { { "sendInitialEvents=true", 200, EVENT("ADDED", "a", "3") EVENT("BOOKMARK", "", "4"),
	      CUT, "R Aa", 0 },
	    { "?limit=500", 200, LIST_1, CLOSED, "R Aa Ab S10", 0 } } },
	{ "410 as an event",
	  { { "sendInitialEvents", 200, INITIAL_END("1"), CLOSED, "R S1", 0 },
	    { "resourceVersion=1", 200, EVENT("ADDED", "a", "2") ERROR("410"), CUT, "Aa Fconflict",
	      0 },
	    { "sendInitialEvents", 200, INITIAL_END("9"), CLOSED, "R S9", 0 } } },
	{ "410 as a status",
	  { { "sendInitialEvents", 200, INITIAL_END("1"), CLOSED, "R S1", 0 },
	    { "resourceVersion=1", 410, STATUS("410"), CLOSED, "Fconflict", 0 },
	    { "sendInitialEvents", 200, INITIAL_END("9"), CLOSED, "R S9", 0 } } },
	{ "410 in the middle of the pages",
	  { { "sendInitialEvents", 400, "", CLOSED, "", 0 },
	    { "?limit=500", 200, LIST_PAGE_1, CLOSED, "R Aa", 0 },
	    { "&continue=", 410, STATUS("410"), CLOSED, "Fconflict", 0 },
	    { "?limit=500", 200, LIST_1, CLOSED, "R Aa Ab S10", 0 } } },
	{ "a page is asked for again",
	  { { "sendInitialEvents", 400, "", CLOSED, "", 0 },
	    { "?limit=500", 200, LIST_PAGE_1, CLOSED, "R Aa", 0 },
	    { "&continue=", 503, "", CLOSED, "Funavailable", 0 },
	    { "&continue=", 0, "", LOST, "Funavailable", 0 },
	    { "&continue=", 200, LIST_PAGE_2, CLOSED, "Ab S11", 0 } } },
	{ "initial events are cut",
	  { { "sendInitialEvents", 200, EVENT("ADDED", "a", "3"), LOST, "R Aa Funavailable", 0 },
	    { "sendInitialEvents", 200, INITIAL_END("5"), CLOSED, "R S5", 0 } } },
	{ "connection lost: on from the last version",
	  { { "sendInitialEvents", 200, INITIAL_END("5"), LOST, "R S5 Funavailable", 0 },
	    { "resourceVersion=5", 0, "", LOST, "Funavailable", 0 },
	    { "resourceVersion=5", 200, EVENT("ADDED", "a", "6"), TIMED_OUT, "Aa Ftimeout", 0 },
	    { "resourceVersion=6", 200, "", CLOSED, "", 0 } } },
	{ "a version from the future, after a restore",
	  { { "sendInitialEvents", 200, INITIAL_END("99"), CLOSED, "R S99", 0 },
	    { "resourceVersion=99", 504, STATUS("504"), CLOSED, "Ftimeout", 0 },
	    { "resourceVersion=99", 504, STATUS("504"), CLOSED, "Ftimeout", 0 },
	    { "resourceVersion=99", 504, STATUS("504"), CLOSED, "Ftimeout", 0 },
	    { "sendInitialEvents", 200, INITIAL_END("7"), CLOSED, "R S7", 0 } } },
	{ "denied and unknown are no reason to fall back",
	  { { "sendInitialEvents", 403, STATUS("403"), CLOSED, "Fdenied", 0 },
	    { "sendInitialEvents", 404, STATUS("404"), CLOSED, "Fnot_found", 0 },
	    { "sendInitialEvents", 429, STATUS("429"), CLOSED, "Funavailable", 2 },
	    { "sendInitialEvents", 200, INITIAL_END("7"), CLOSED, "R S7", 0 } } },
	{ "malformed",
	  { { "sendInitialEvents", 200, "{\"type\":\n", CUT, "Fprotocol", 0 },
	    { "sendInitialEvents", 200, INITIAL_END("7") "[]\n", CUT, "R S7 Fprotocol", 0 },
	    { "resourceVersion=7", 200, "x\n", CUT, "Fprotocol", 0 },
	    { "resourceVersion=7", 200, "x\n", CUT, "Fprotocol", 0 },
	    { "sendInitialEvents", 422, "", CLOSED, "", 0 },
	    { "?limit=500", 200, "{", CLOSED, "Fprotocol", 0 },
	    { "?limit=500", 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{},}",
	      CLOSED, "Fprotocol", 0 },
	    { "?limit=500", 200, LIST_1, CLOSED, "R Aa Ab S10", 0 } } },
};

static struct watch_core *core_of(struct bench *b, uint64_t seed)
{
	*b = (struct bench){ .stop_after = -1 };
	struct watch_config config = { .path = "/api/v1/pods", .fn = on_item, .arg = b };
	b->core = watch_core_new(&config, seed);
	return b->core;
}

static void test_scripts(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(scripts); i++) {
		struct bench b;
		uint64_t wait_ns;
		(void)core_of(&b, i);
		const struct turn *turn = scripts[i].turns;
		for (; turn < scripts[i].turns + 8 && turn->request != NULL; turn++) {
			run_turn(c, &b, scripts[i].name, turn, &wait_ns);
			CHECK(c, scripts[i].name, wait_ns <= UINT64_C(30000000000));
		}
		watch_core_free(b.core);
		buf_done(&b.heard);
	}
}

// The waits grow, never pass four seconds without the server's wish, and end with success.
static void test_back_off(struct check *c)
{
	static const struct turn fails = { "sendInitialEvents", 0, "", LOST, "Funavailable", 0 };
	static const struct turn busy = {
		"sendInitialEvents", 429, "", CLOSED, "Funavailable", 20
	};
	static const struct turn good = {
		"sendInitialEvents", 200, INITIAL_END("1"), CLOSED, "R S1", 0
	};
	static const struct turn next = { "resourceVersion=1", 200, "", CLOSED, "", 0 };
	struct bench b;
	uint64_t wait_ns, bound_ns = UINT64_C(250000000);
	(void)core_of(&b, 7);
	run_turn(c, &b, "first", &fails, &wait_ns);
	CHECK_INT(c, "at once", wait_ns, 0);
	for (int i = 0; i < 12; i++) {
		run_turn(c, &b, "again", &fails, &wait_ns);
		CHECK(c, "jitter below", wait_ns >= bound_ns / 2);
		CHECK(c, "jitter above", wait_ns <= bound_ns);
		bound_ns = bound_ns * 2 > UINT64_C(4000000000) ? UINT64_C(4000000000)
							       : bound_ns * 2;
	}
	run_turn(c, &b, "busy", &busy, &wait_ns);
	run_turn(c, &b, "good", &good, &wait_ns);
	CHECK(c, "Retry-After", wait_ns >= UINT64_C(20000000000));
	run_turn(c, &b, "next", &next, &wait_ns);
	CHECK_INT(c, "success ends it", wait_ns, 0);
	CHECK(c, "synced", watch_core_is_synced(b.core));
	watch_core_free(b.core);
	buf_done(&b.heard);
}

#define BAD_LIST EVENT("ADDED", "bad", "3") INITIAL_END("4")

// What could not be read is listed anew; what the list cannot tell either is left out.
static void test_doubt(struct check *c)
{
	static const struct turn turns[] = {
		{ "sendInitialEvents", 200, INITIAL_END("1"), CLOSED, "R S1", 0 },
		{ "resourceVersion=1", 200, EVENT("MODIFIED", "bad", "2"), CUT, "Mbad", 0 },
		{ "sendInitialEvents", 200, EVENT("ADDED", "a", "3") INITIAL_END("4"), CLOSED,
		  "R Aa S4", 0 },
		{ "resourceVersion=4", 200, EVENT("ADDED", "bad", "5"), CUT, "Abad", 0 },
		{ "sendInitialEvents", 200, BAD_LIST, CUT, "R Abad S4", 0 },
		{ "sendInitialEvents", 200, BAD_LIST, CLOSED, "R Abad S4", 0 },
		{ "resourceVersion=4", 200, EVENT("MODIFIED", "bad", "5"), CLOSED, "Mbad", 0 },
		{ "resourceVersion=5", 410, "", CLOSED, "Fconflict", 0 },
		{ "sendInitialEvents", 200, INITIAL_END("6"), CLOSED, "R S6", 0 },
		{ "resourceVersion=6", 200, EVENT("ADDED", "bad", "7"), CUT, "Abad", 0 },
		{ "sendInitialEvents", 422, "", CLOSED, "", 0 },
		{ "?limit=500", 200, LIST_1, CLOSED, "R Aa Ab S10", 0 },
		{ "resourceVersion=10", 200, EVENT("ADDED", "bad", "11"), CUT, "Abad", 0 },
		{ "?limit=500", 200, LIST_BAD, CLOSED, "R Abad S10", 0 },
		{ "?limit=500", 200, LIST_BAD, CLOSED, "R Abad S10", 0 },
		{ "resourceVersion=10", 200, "", CLOSED, "", 0 },
	};
	struct bench b;
	uint64_t wait_ns;
	(void)core_of(&b, 3);
	b.doubted = "bad";
	for (size_t i = 0; i < ARRAY_COUNT(turns); i++) {
		run_turn(c, &b, "doubt", &turns[i], &wait_ns);
		CHECK(c, "soon", wait_ns <= UINT64_C(2000000000));
	}
	watch_core_free(b.core);
	buf_done(&b.heard);
}

// A handler may stop the watch at any item; nothing is told after that.
static void test_stop(struct check *c)
{
	for (int after = 0; after < 4; after++) {
		static const struct turn turn = { "sendInitialEvents",
						  200,
						  EVENT("ADDED", "a", "1") EVENT("ADDED", "b", "2")
							  INITIAL_END("3"),
						  CLOSED,
						  "",
						  0 };
		struct bench b;
		struct watch_step step;
		(void)core_of(&b, 1);
		b.stop_after = after;
		watch_core_step(b.core, &step);
		CHECK(c, "taken", watch_core_data(b.core, 200, str_of(turn.body)));
		send_end(b.core, &step, &turn);
		static const char *const heard[] = { "R", "R Aa", "R Aa Ab", "R Aa Ab S3" };
		CHECK_STR(c, "stopped", buf_str(&b.heard), heard[after]);
		watch_core_free(b.core);
		buf_done(&b.heard);
	}
}

static void test_same_seed(struct check *c)
{
	static const struct turn fails = { "sendInitialEvents", 0, "", LOST, "Funavailable", 0 };
	struct bench a, b;
	uint64_t wait_a_ns, wait_b_ns;
	(void)core_of(&a, 42);
	(void)core_of(&b, 42);
	for (int i = 0; i < 5; i++) {
		run_turn(c, &a, "a", &fails, &wait_a_ns);
		run_turn(c, &b, "b", &fails, &wait_b_ns);
		CHECK(c, "same seed, same waits", wait_a_ns == wait_b_ns);
	}
	watch_core_free(a.core);
	watch_core_free(b.core);
	buf_done(&a.heard);
	buf_done(&b.heard);
}

int main(void)
{
	struct check c = { 0 };
	test_scripts(&c);
	test_back_off(&c);
	test_doubt(&c);
	test_stop(&c);
	test_same_seed(&c);
	return check_done(&c);
}
