// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/allot.h"
#include "daemons/scheduler/claims.h"
#include "daemons/scheduler/evict.h"
#include "daemons/scheduler/lengths.h"
#include "daemons/scheduler/load.h"
#include "daemons/scheduler/tenants.h"
#include "sys/log.h"

#define NS_PER_MS UINT64_C(1000000)

int64_t scheduler_now_ms(const struct scheduler *s)
{
	return (int64_t)(world_mono_ns(loop_world(s->loop)) / NS_PER_MS);
}

int64_t scheduler_wall_s(const struct scheduler *s) { return world_wall_s(loop_world(s->loop)); }

static void act(struct scheduler *s, const struct sched_decision *decision)
{
	s->counters.decisions[decision->verb]++;
	if (decision->verb == SCHED_BIND)
		bind_start(s, decision);
	else if (decision->facts != NULL)
		record_tell(s, decision);
	if (decision->verb >= SCHED_NOMINATE)
		evict_start(s, decision);
}

static void release_strays(struct scheduler *s)
{
	struct sched_claim_stray stray;
	while (sched_claim_stray_next(s->core, &stray))
		allot_release(s, &stray);
}

static void wake_later(struct scheduler *s)
{
	int64_t wake_ms = sched_wake_ms(s->core), now_ms = scheduler_now_ms(s);
	if (wake_ms == INT64_MAX)
		loop_timer_stop(s->wake);
	else
		loop_timer_set(s->wake, (uint64_t)max_i64(wake_ms - now_ms, 1) * NS_PER_MS);
}

// A bounded number of decisions a turn, so that watches and health checks are served between.
static void on_drive(void *arg)
{
	struct scheduler *s = arg;
	s->is_driving = false;
	if (s->core == NULL || !cache_is_synced(s) || !lease_is_held(s->lease))
		return;
	for (int i = 0; i < DECISIONS_A_TURN; i++) {
		struct sched_decision decision;
		if (!bind_may_start(s))
			return; // the next answer drives on
		uint64_t from_ns = world_mono_ns(loop_world(s->loop));
		bool decided = sched_next(s->core, scheduler_now_ms(s), &decision);
		uint64_t to_ns = world_mono_ns(loop_world(s->loop));
		if (!decided) {
			release_strays(s);
			wake_later(s);
			return;
		}
		metric_observe(&s->counters.decide_s, (double)(to_ns - from_ns) / 1e9);
		arena_reset(s->arena);
		act(s, &decision);
	}
	scheduler_drive(s);
}

void scheduler_drive(struct scheduler *s)
{
	if (s->is_driving)
		return;
	s->is_driving = true;
	loop_defer(s->loop, on_drive, s);
}

// Fresh lists: they hold all that was bound before.
static void begin(struct scheduler *s)
{
	s->doubt_until_ms = 0;
	cache_start_all(s);
}

void scheduler_wake(void *arg)
{
	struct scheduler *s = arg;
	if (s->doubt_until_ms != 0 && s->core != NULL)
		begin(s);
	else
		scheduler_drive(s);
}

void scheduler_on_acquired(void *arg, int64_t transitions)
{
	struct scheduler *s = arg;
	ASSERT(s->core == NULL);
	s->term = transitions;
	s->core = sched_new(world_random(loop_world(s->loop)), scheduler_now_ms(s));
	if (s->has_policy)
		sched_policy_set(s->core, &s->policy);
	sched_preempt_set(s->core, &s->preempt_rules);
	tenants_begin(s);
	load_begin(s);
	lengths_begin(s);
	s->counters.terms++;
	log_kv(LOG_INFO, "leading", "identity", s->options->identity, NULL);
	int64_t doubt_ms = s->doubt_until_ms - scheduler_now_ms(s);
	if (doubt_ms > 0)
		loop_timer_set(s->wake, (uint64_t)doubt_ms * NS_PER_MS);
	else
		begin(s);
}

void scheduler_on_lost(void *arg)
{
	struct scheduler *s = arg;
	if (s->core == NULL)
		return;
	log_kv(LOG_WARN, "no longer leading", "identity", s->options->identity, NULL);
	claims_cancel_all(s);
	allot_cancel_all(s);
	bind_cancel_all(s);
	evict_cancel_all(s);
	cache_stop_all(s);
	record_drop_all(s);
	tenants_end(s);
	load_end(s);
	lengths_end(s);
	loop_timer_stop(s->wake);
	sched_free(s->core);
	s->core = NULL;
}
