// SPDX-License-Identifier: Apache-2.0
// Deadlines, by whose word a pod's duration is expected, backfill by what was learned, and the
// start that who waits is told.
#include "rig.h"

#include "check.h"
#include "sched/durations.h"
#include "sched/forecast.h"

#define NODE(name)                                                                                 \
	"---\n{kind: Node, metadata: {name: " name "}, status: {allocatable: {cpu: 16, pods: "     \
	"20, nvidia.com/gpu: 4}}}\n"
#define POD(name, notes, gpus, more)                                                               \
	"---\n{kind: Pod, metadata: {name: " name ", annotations: {" notes                         \
	"}}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1, "                \
	"nvidia.com/gpu: " gpus "}}}], " more "}}\n"
#define LASTS(seconds) "gpuaas.io/duration: '" seconds "'"
#define UNTIL(clock) "gpuaas.io/deadline: '1970-01-01T" clock "Z'"
#define ON(node) "nodeName: " node
#define FULL "InsufficientResource:1(4 nvidia.com/gpu/0 nvidia.com/gpu)"

static void test_deadline(struct check *c)
{
	struct rig rig;
	struct sched_explanation got;
	rig_init(&rig);
	rig_put(&rig, NODE("a") POD("x", "", "4", ON("a"))
			      POD("h", LASTS("30") ", " UNTIL("00:01:00"), "4", ""));
	CHECK_STR(c, "in time", str_of(rig_next(&rig)), "wait h " FULL);
	CHECK_STR(c, "told once", str_of(rig_next(&rig)), "-");
	CHECK_INT(c, "wakes when it is too late", sched_wake_ms(rig.sched), 30001);
	rig.now_ms = 30000;
	CHECK_STR(c, "the last instant", str_of(rig_next(&rig)), "-");
	rig.now_ms = 31000;
	CHECK_STR(c, "too late", str_of(rig_next(&rig)),
		  "wait h DeadlineUnreachable:0(30 s/29 s) " FULL);
	CHECK_STR(c, "told that once", str_of(rig_next(&rig)), "-");
	CHECK(c, "explained", sched_explain(rig.sched, STR("default"), STR("h"), &got));
	CHECK_INT(c, "two reasons", got.facts.count, 2);
	rig_put(&rig, POD("h", LASTS("30") ", " UNTIL("00:02:00"), "4", ""));
	CHECK_STR(c, "moved", str_of(rig_next(&rig)), "wait h " FULL);
	CHECK_INT(c, "wakes later", sched_wake_ms(rig.sched), 90001);
	rig_put(&rig, POD("h", UNTIL("00:00:10"), "4", ""));
	CHECK_STR(c, "passed, and nothing said", str_of(rig_next(&rig)),
		  "wait h DeadlineUnreachable:0(an unknown time/0 s) " FULL);
	rig_remove_pod(&rig, "x");
	CHECK_STR(c, "it starts all the same", str_of(rig_next(&rig)), "bind h a []");
	CHECK_INT(c, "no need to wake", sched_wake_ms(rig.sched), INT64_MAX);
	rig_done(&rig);
}

static void check_expected(struct check *c, const struct rig *rig, const char *pod,
			   const char *source, int64_t seconds)
{
	struct sched_duration got;
	CHECK(c, pod, sched_duration_explain(rig->sched, STR("default"), str_of(pod), &got));
	CHECK_STR(c, pod, str_of(sched_duration_source_name(got.source)), source);
	bool is_near = got.seconds >= seconds && got.seconds <= seconds + seconds / 4;
	CHECK(c, pod, is_near);
}

static void run_many(struct rig *rig, int64_t seconds, int count)
{
	for (int i = 0; i < count; i++) {
		rig_put(rig, POD("t", "", "1", ON("a")));
		rig->now_ms += 1000 * seconds;
		(void)rig_next(rig);
		sched_pod_ended(rig->sched, STR("t"), rig->now_ms);
	}
}

static void test_sources(struct check *c)
{
	static const char TENANT[] = "---\n{kind: Tenant, metadata: {name: default}, spec: "
				     "{queue: {maxRunSeconds: 900}}}\n";
	struct rig rig;
	rig_init(&rig);
	sched_durations_learn(rig.sched);
	rig_put(&rig, NODE("a") POD("s", LASTS("30"), "1", "") POD("n", "", "1", "")
			      POD("l", "", "1", "activeDeadlineSeconds: 700"));
	(void)rig_next(&rig);
	check_expected(c, &rig, "s", "request", 30);
	check_expected(c, &rig, "n", "unknown", 0);
	check_expected(c, &rig, "l", "longest", 700);
	run_many(&rig, 100, LEARN_LEAST);
	rig_put(&rig, POD("m", "", "1", "") POD("k", "", "1", "activeDeadlineSeconds: 40")
			      POD("o", "", "2", ""));
	check_expected(c, &rig, "m", "learned", 90);
	check_expected(c, &rig, "k", "learned", 40);
	check_expected(c, &rig, "o", "unknown", 0);
	rig_put(&rig, TENANT);
	rig_put(&rig, POD("p", "", "1", "") POD("q", "", "1", "activeDeadlineSeconds: 40"));
	check_expected(c, &rig, "p", "tenant", 900);
	check_expected(c, &rig, "q", "tenant", 40);
	CHECK_INT(c, "longest of its pods", sched_queue_longest_s(rig.sched, STR("default")), 900);
	CHECK_INT(c, "of others'", sched_queue_longest_s(rig.sched, STR("other")), 0);
	rig_done(&rig);
}

// The same cluster twice: what is not known waits behind the head, what is learned passes it.
static void test_backfill(struct check *c, bool learns)
{
	struct rig rig;
	const char *line;
	rig_init(&rig);
	if (learns)
		sched_durations_learn(rig.sched);
	rig_put(&rig, NODE("a"));
	run_many(&rig, 20, LEARN_LEAST);
	rig_put(&rig, POD("x", LASTS("100"), "3", ON("a")) POD("h", LASTS("9"), "4", ""));
	CHECK_STR(c, "the head", str_of(rig_next(&rig)),
		  "wait h InsufficientResource:1(4 nvidia.com/gpu/1 nvidia.com/gpu)");
	rig_put(&rig, POD("z", "", "1", ""));
	line = rig_next(&rig);
	CHECK(c, learns ? "passes" : "waits", strncmp(line, learns ? "bind z" : "wait z", 6) == 0);
	rig_done(&rig);
}

// One that was asked to leave says nothing about how long its like run.
static void test_evicted(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	sched_durations_learn(rig.sched);
	rig_put(&rig, NODE("a"));
	for (int i = 0; i < LEARN_LEAST; i++) {
		rig_put(&rig, "---\n{kind: Pod, metadata: {name: e, deletionTimestamp: "
			      "'1970-01-01T00:00:00Z'}, spec: {nodeName: a, containers: [{name: "
			      "c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}, status: "
			      "{conditions: [{type: DisruptionTarget, status: 'True', reason: "
			      "PreemptionByScheduler}]}}\n");
		rig.now_ms += 5000;
		sched_pod_ended(rig.sched, STR("e"), rig.now_ms);
	}
	rig_put(&rig, POD("n", "", "1", ""));
	check_expected(c, &rig, "n", "unknown", 0);
	rig_done(&rig);
}

// One after the other on a full node, each waits 100 s. Returns how many were told a range.
static int run_queue(struct check *c, const char *gpus, const char *notes, int *ret_first)
{
	enum { PODS = 80 };
	struct rig rig;
	struct sched_estimate got;
	int shown = 0;
	char text[400];
	rig_init(&rig);
	sched_durations_learn(rig.sched);
	(void)snprintf(text, sizeof text,
		       "---\n{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 16, "
		       "pods: 20, nvidia.com/gpu: %s}}}\n" POD("t0", "%s", "%s", ON("a")),
		       gpus, notes, gpus);
	rig_put(&rig, text);
	for (int i = 1; i <= PODS; i++) {
		char name[8], last[8];
		(void)snprintf(name, sizeof name, "t%d", i);
		(void)snprintf(last, sizeof last, "t%d", i - 1);
		(void)snprintf(text, sizeof text, POD("%s", "%s", "%s", ""), name, notes, gpus);
		rig_put(&rig, text);
		(void)rig_next(&rig);
		bool is_shown = sched_estimate_get(rig.sched, STR("default"), str_of(name), &got);
		int64_t start_ms = rig.now_ms + 100000;
		*ret_first = is_shown && shown == 0 ? i : *ret_first;
		shown += is_shown;
		if (is_shown)
			CHECK(c, "true", got.from_ms <= start_ms && start_ms <= got.to_ms);
		rig.now_ms = start_ms;
		(void)rig_next(&rig);
		sched_pod_ended(rig.sched, str_of(last), rig.now_ms);
		(void)rig_next(&rig);
		(void)snprintf(text, sizeof text, POD("%s", "%s", "%s", ON("a")), name, notes,
			       gpus);
		rig_put(&rig, text);
	}
	rig_done(&rig);
	return shown;
}

static void test_estimate(struct check *c)
{
	int first = 0;
	int shown = run_queue(c, "1", LASTS("100"), &first);
	CHECK_INT(c, "shown when enough have come true", first, LEARN_LEAST + FORECAST_LEAST + 1);
	CHECK_INT(c, "and from then on", shown, 80 - first + 1);
	CHECK_INT(c, "not of a size that is not proven", run_queue(c, "8", LASTS("100"), &first),
		  0);
	CHECK_INT(c, "not by what is only learned", run_queue(c, "1", "", &first), 0);
}

int main(void)
{
	struct check c = { 0 };
	test_deadline(&c);
	test_sources(&c);
	test_backfill(&c, false);
	test_backfill(&c, true);
	test_evicted(&c);
	test_estimate(&c);
	return check_done(&c);
}
