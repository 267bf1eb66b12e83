// SPDX-License-Identifier: Apache-2.0
// One pass a key at a time, changes during a pass, failures that are repeated, the limit.
#include "check.h"
#include "daemons/server/workqueue.h"

struct run {
	struct workqueue *queue;
	int passes, open;
	bool holds;        // do not report from inside
	int fail_left;     // so many passes fail
	uint64_t quiet_ns; // its work is put off for so long; 0: done at once
	int works;
	char last[16];
};

static void on_pass(void *arg, struct str key)
{
	struct run *run = arg;
	run->passes++;
	run->open++;
	(void)snprintf(run->last, sizeof run->last, "%.*s", (int)key.len, key.data);
	if (run->holds)
		return;
	if (run->quiet_ns == 0 || workqueue_settled(run->queue, key, run->quiet_ns))
		run->works++;
	bool is_good = run->fail_left == 0;
	run->fail_left -= is_good ? 0 : 1;
	run->open--;
	workqueue_done(run->queue, str_of(run->last), is_good);
}

static void turn(struct loop *loop)
{
	for (int i = 0; i < 3; i++)
		loop_run_once(loop, 0);
}

static void check_dirty(struct check *c, struct loop *loop, struct run *run)
{
	run->holds = true;
	workqueue_add(run->queue, STR("a"));
	turn(loop);
	CHECK_INT(c, "begun", run->passes, 1);
	workqueue_add(run->queue, STR("a"));
	workqueue_add(run->queue, STR("a"));
	turn(loop);
	CHECK_INT(c, "not twice at once", run->passes, 1);
	run->holds = false;
	run->open--;
	workqueue_done(run->queue, STR("a"), true);
	turn(loop);
	CHECK_INT(c, "once more for all changes", run->passes, 2);
	CHECK_INT(c, "empty", workqueue_depth(run->queue), 0);
}

static void check_limit(struct check *c, struct loop *loop, struct run *run)
{
	run->holds = true;
	run->passes = run->open = 0;
	const char *const keys[] = { "a", "b", "c", "d" };
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		workqueue_add(run->queue, str_of(keys[i]));
	turn(loop);
	CHECK_INT(c, "two at once", run->open, 2);
	run->holds = false;
	workqueue_done(run->queue, STR("a"), true);
	workqueue_done(run->queue, STR("b"), true);
	turn(loop);
	CHECK_INT(c, "all", run->passes, 4);
	CHECK_STR(c, "in order", str_of(run->last), "d");
}

static void check_failure(struct check *c, struct loop *loop, struct run *run)
{
	run->passes = 0;
	run->fail_left = 2;
	workqueue_add(run->queue, STR("f"));
	turn(loop);
	CHECK_INT(c, "failed once", run->passes, 1);
	CHECK_INT(c, "waits", workqueue_depth(run->queue), 1);
	workqueue_add(run->queue, STR("f"));
	turn(loop);
	CHECK_INT(c, "a change does not wait", run->passes, 2);
	for (int i = 0; i < 200 && run->passes < 3; i++)
		loop_run_once(loop, 10);
	CHECK_INT(c, "repeated by itself", run->passes, 3);
	CHECK_INT(c, "good at last", workqueue_depth(run->queue), 0);
	CHECK_INT(c, "counted", (int)workqueue_failures(run->queue), 2);
}

// Quiet times: one that ends soon by itself, one that no machine is slow enough to reach.
static const uint64_t SHORT_NS = 50 * UINT64_C(1000000), LONG_NS = 3600 * UINT64_C(1000000000);

static void wait_until_empty(struct loop *loop, const struct run *run)
{
	for (int i = 0; i < 1000 && workqueue_depth(run->queue) > 0; i++)
		loop_run_once(loop, 10);
}

static void check_settled(struct check *c, struct loop *loop, struct run *run)
{
	run->passes = run->works = 0;
	run->quiet_ns = SHORT_NS;
	workqueue_add(run->queue, STR("t"));
	wait_until_empty(loop, run);
	CHECK_INT(c, "done by itself, once", run->works, 1);
	CHECK(c, "having been put off", run->passes >= 2);
	CHECK_INT(c, "nothing is left", workqueue_depth(run->queue), 0);
	workqueue_add(run->queue, STR("u"));
	turn(loop);
	run->quiet_ns = 0;
	workqueue_add(run->queue, STR("u"));
	wait_until_empty(loop, run);
	CHECK_INT(c, "it ends by itself", workqueue_depth(run->queue), 0);

	run->passes = run->works = 0;
	run->quiet_ns = LONG_NS;
	for (int i = 0; i < 3; i++) {
		workqueue_add(run->queue, STR("s"));
		turn(loop);
	}
	CHECK(c, "changes are looked at", run->passes >= 3);
	CHECK_INT(c, "their work is put off", run->works, 0);
	run->quiet_ns = 0; // a later change is done at once, with what was put off
	workqueue_add(run->queue, STR("s"));
	turn(loop);
	CHECK_INT(c, "done together, at once", run->works, 1);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct loop *loop = NULL;
	struct run run = { 0 };
	if (loop_new(&loop, NULL) != ERR_OK)
		return 1;
	run.queue = workqueue_new(loop, 2, on_pass, &run);
	check_dirty(&c, loop, &run);
	check_limit(&c, loop, &run);
	check_failure(&c, loop, &run);
	check_settled(&c, loop, &run);
	workqueue_free(run.queue);
	loop_free(loop);
	return check_done(&c);
}
