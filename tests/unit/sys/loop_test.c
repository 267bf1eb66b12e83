// SPDX-License-Identifier: Apache-2.0
// The event loop: order and bounds of timers, deferred and posted calls, file descriptors that
// are freed inside their own or another's callback, hang-ups, signals, and the world it gives.
#include "sys/loop.h"

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t MS = 1000000;

struct trace {
	struct loop *loop;
	char text[64];
	size_t count;
	struct loop_timer *timer;
	struct loop_fd *fds[2];
	unsigned events;
};

struct mark {
	struct trace *trace;
	char letter;
};

static void note(struct trace *trace, char letter)
{
	ASSERT(trace->count < sizeof trace->text - 1);
	trace->text[trace->count++] = letter;
}

static void on_mark(void *arg)
{
	struct mark *mark = arg;
	note(mark->trace, mark->letter);
}

static void on_stop(void *arg) { loop_stop(((struct trace *)arg)->loop); }

static void on_again(void *arg)
{
	struct trace *trace = arg;
	note(trace, 'r');
	loop_timer_set(trace->timer, 0);
}

static struct loop *make_loop(void)
{
	struct err err;
	struct loop *loop = NULL;
	err_status status = loop_new(&loop, &err);
	ASSERT(status == ERR_OK);
	return loop;
}

static void test_timer_order(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	struct mark marks[4] = {
		{ &trace, 'a' }, { &trace, 'b' }, { &trace, 'c' }, { &trace, 'd' }
	};
	static const uint64_t delays_ms[4] = { 20, 5, 5, 10 };
	struct loop_timer *timers[4];
	for (size_t i = 0; i < 4; i++) {
		timers[i] = loop_timer_new(trace.loop, on_mark, &marks[i]);
		loop_timer_set(timers[i], delays_ms[i] * MS);
	}
	struct loop_timer *stop = loop_timer_new(trace.loop, on_stop, &trace);
	uint64_t start_ns = world_mono_ns(loop_world(trace.loop));
	loop_timer_set(stop, 30 * MS);
	loop_timer_stop(timers[3]);
	loop_run(trace.loop);
	CHECK(c, "not early", world_mono_ns(loop_world(trace.loop)) - start_ns >= 30 * MS);
	CHECK_STR(c, "timers fire by time, a stopped one never", str_of(trace.text), "bca");
	for (size_t i = 0; i < 4; i++)
		loop_timer_free(timers[i]);
	loop_timer_free(stop);
	loop_free(trace.loop);
}

static void test_timer_many(struct check *c)
{
	enum { COUNT = 500 };
	struct trace trace = { .loop = make_loop() };
	struct mark mark = { &trace, 'x' };
	static struct loop_timer *timers[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		timers[i] = loop_timer_new(trace.loop, on_mark, &mark);
		loop_timer_set(timers[i], (i * 7919 % COUNT + 1) * 3600000 * MS);
	}
	// Removal from everywhere in the heap; its assertions check the places.
	for (size_t i = 0; i < COUNT; i += 3)
		loop_timer_stop(timers[i]);
	for (size_t i = 0; i < COUNT; i++)
		loop_timer_set(timers[i], i == 250 ? 0 : 3600000 * MS);
	loop_run_once(trace.loop, 1000);
	CHECK_STR(c, "only the due one of many fires", str_of(trace.text), "x");
	for (size_t i = 0; i < COUNT; i++)
		loop_timer_free(timers[i]);
	loop_free(trace.loop);
}

static void test_timer_rearmed(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	trace.timer = loop_timer_new(trace.loop, on_again, &trace);
	loop_timer_set(trace.timer, 0);
	loop_run_once(trace.loop, 100);
	CHECK_STR(c, "a timer set anew in its callback waits a turn", str_of(trace.text), "r");
	loop_run_once(trace.loop, 100);
	CHECK_STR(c, "and fires in the next", str_of(trace.text), "rr");
	loop_timer_free(trace.timer);
	loop_free(trace.loop);
}

static void on_defer_more(void *arg)
{
	struct trace *trace = arg;
	note(trace, 'm');
	if (trace->count < 3)
		loop_defer(trace->loop, on_defer_more, trace);
}

static void test_defer(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	loop_defer(trace.loop, on_defer_more, &trace);
	CHECK_INT(c, "not called at once", trace.count, 0);
	loop_run_once(trace.loop, -1);
	CHECK_INT(c, "one a turn", trace.count, 1);
	loop_run_once(trace.loop, -1);
	loop_run_once(trace.loop, -1);
	loop_run_once(trace.loop, 0);
	CHECK_INT(c, "until done", trace.count, 3);
	loop_free(trace.loop);
}

static void *post_from_thread(void *arg)
{
	struct mark *mark = arg;
	for (int i = 0; i < 50; i++)
		loop_post(mark->trace->loop, on_mark, mark);
	loop_post(mark->trace->loop, on_stop, mark->trace);
	return NULL;
}

static void test_post(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	struct mark mark = { &trace, 'p' };
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, post_from_thread, &mark);
	ASSERT(rc == 0);
	loop_run(trace.loop);
	(void)pthread_join(thread, NULL);
	CHECK_INT(c, "every posted call arrives, in order before the stop", trace.count, 50);
	loop_free(trace.loop);
}

static void test_unpost(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	struct mark a = { &trace, 'a' }, b = { &trace, 'b' };
	for (int i = 0; i < 3; i++) {
		loop_post(trace.loop, on_mark, &a);
		loop_post(trace.loop, on_mark, &b);
	}
	loop_unpost(trace.loop, on_mark, &a);
	loop_run_once(trace.loop, 0);
	CHECK_STR(c, "only the others", str_of(trace.text), "bbb");
	loop_unpost(trace.loop, on_mark, &b); // nothing is there
	loop_free(trace.loop);
}

static void on_both_free(void *arg, unsigned events)
{
	struct trace *trace = arg;
	note(trace, 'f');
	trace->events |= events;
	// Both are ready in this turn: whoever comes first frees both, the other must not be
	// called.
	for (size_t i = 0; i < 2; i++) {
		loop_fd_free(trace->fds[i]);
		trace->fds[i] = NULL;
	}
}

static void on_note_events(void *arg, unsigned events)
{
	struct trace *trace = arg;
	note(trace, 'e');
	trace->events = events;
}

static void test_fd_free_inside(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	int pair[2];
	int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
	ASSERT(rc == 0 && write(pair[0], "x", 1) == 1 && write(pair[1], "x", 1) == 1);
	for (size_t i = 0; i < 2; i++) {
		err_status status = loop_fd_new(trace.loop, pair[i], LOOP_READ, on_both_free,
						&trace, &trace.fds[i], NULL);
		ASSERT(status == ERR_OK);
	}
	loop_run_once(trace.loop, 100);
	CHECK_STR(c, "freed inside a callback is not called", str_of(trace.text), "f");
	loop_run_once(trace.loop, 0);
	CHECK_STR(c, "nor later", str_of(trace.text), "f");
	(void)close(pair[0]);
	(void)close(pair[1]);
	loop_free(trace.loop);
}

static void test_fd_interest(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	int pair[2];
	int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
	ASSERT(rc == 0);
	err_status status = loop_fd_new(trace.loop, pair[0], LOOP_WRITE, on_note_events, &trace,
					&trace.fds[0], NULL);
	ASSERT(status == ERR_OK);
	loop_run_once(trace.loop, 100);
	CHECK_INT(c, "an empty socket can be written", trace.events, LOOP_WRITE);
	trace.events = 0;
	loop_fd_set(trace.fds[0], 0);
	(void)close(pair[1]);
	loop_run_once(trace.loop, 0);
	CHECK_INT(c, "who wants nothing hears nothing, not even a hang-up", trace.events, 0);
	loop_fd_set(trace.fds[0], LOOP_READ);
	loop_run_once(trace.loop, 100);
	CHECK_INT(c, "a hang-up is both", trace.events, LOOP_READ | LOOP_WRITE);
	loop_fd_free(trace.fds[0]);
	(void)close(pair[0]);

	struct err err;
	struct loop_fd *untouched = NULL;
	CHECK_INT(c, "a closed fd is refused",
		  loop_fd_new(trace.loop, pair[0], LOOP_READ, on_note_events, &trace, &untouched,
			      &err),
		  ERR_IO);
	CHECK_INT(c, "with its errno", err.sys_errno, EBADF);
	CHECK(c, "and no object", untouched == NULL);
	loop_free(trace.loop);
}

static void test_signals(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	struct mark mark = { &trace, 'h' };
	struct err err;
	CHECK_INT(c, "handlers", loop_handle_signals(trace.loop, on_mark, &mark, &err), ERR_OK);
	(void)raise(SIGPIPE);
	(void)raise(SIGHUP);
	loop_run_once(trace.loop, 1000);
	CHECK_STR(c, "SIGHUP calls its function", str_of(trace.text), "h");
	CHECK(c, "and does not stop", !loop_is_stopping(trace.loop));
	(void)raise(SIGTERM);
	loop_run(trace.loop);
	CHECK(c, "SIGTERM ends the loop", true);

	pid_t child = fork();
	if (child == 0) {
		(void)raise(SIGTERM);
		_exit(99);
	}
	int state = 0;
	(void)waitpid(child, &state, 0);
	CHECK(c, "a forked child dies of its signal",
	      WIFSIGNALED(state) && WTERMSIG(state) == SIGTERM);
	loop_run_once(trace.loop, 20);
	CHECK(c, "and does not stop the parent", !loop_is_stopping(trace.loop));
	loop_free(trace.loop);
}

static void test_world(struct check *c)
{
	struct trace trace = { .loop = make_loop() };
	const struct world *world = loop_world(trace.loop);
	CHECK(c, "wall clock is of this century", world_wall_s(world) > 1700000000);
	CHECK(c, "random differs", world_random(world) != world_random(world));
	loop_free(trace.loop);
}

int main(void)
{
	struct check c = { 0, 0 };
	test_timer_order(&c);
	test_timer_many(&c);
	test_timer_rearmed(&c);
	test_defer(&c);
	test_post(&c);
	test_unpost(&c);
	test_fd_free_inside(&c);
	test_fd_interest(&c);
	test_signals(&c);
	test_world(&c);
	return check_done(&c);
}
