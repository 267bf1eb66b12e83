// SPDX-License-Identifier: Apache-2.0
// The election on a virtual clock: single steps, then several candidates against one store with
// slow, lost and late answers, crashes and suspensions. Two must never lead at once.
#include "base/rng.h"
#include "check.h"
#include "k8s/lease_core.h"

#define MS_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

static struct lease_record record(const char *holder, const char *version, int64_t transitions)
{
	return (struct lease_record){ str_of(holder), str_of(version), transitions,
				      LEASE_DURATION_S };
}

static void expect(struct check *c, const char *name, struct lease_core *core, uint64_t now_ns,
		   enum lease_act act, uint64_t wait_ns)
{
	struct lease_plan plan;
	lease_core_step(core, now_ns, &plan);
	CHECK_INT(c, name, plan.act, act);
	CHECK_INT(c, name, plan.wait_ns, wait_ns);
}

static void test_steps(struct check *c)
{
	struct lease_core core;
	struct lease_plan plan;
	uint64_t t = 100 * SECOND_NS;
	lease_core_init(&core, "me");
	expect(c, "first a look", &core, t, LEASE_LOOK, 0);
	lease_core_looked(&core, t, NULL);
	expect(c, "nothing there", &core, t, LEASE_CREATE, 0);
	lease_core_conflict(&core);
	expect(c, "somebody was faster", &core, t, LEASE_LOOK, 0);
	struct lease_record other = record("other", "5", 3);
	lease_core_looked(&core, t, &other);
	expect(c, "held by another", &core, t, LEASE_WAIT, LEASE_LOOK_NS);
	t += LEASE_LOOK_NS;
	expect(c, "look again", &core, t, LEASE_LOOK, 0);
	other = record("other", "6", 3);
	lease_core_looked(&core, t, &other);
	t += 4 * SECOND_NS - MS_NS;
	lease_core_looked(&core, t, &other);
	expect(c, "not dead yet", &core, t, LEASE_WAIT, MS_NS);
	t += MS_NS;
	lease_core_step(&core, t, &plan);
	CHECK_INT(c, "dead", plan.act, LEASE_TAKE);
	CHECK_INT(c, "fencing number", plan.transitions, 4);
	struct lease_record mine = record("me", "7", 4);
	CHECK(c, "acquired", lease_core_wrote(&core, t + 50 * MS_NS, t, &mine));
	CHECK(c, "held", lease_core_is_held(&core, t + 3 * SECOND_NS - 1));
	CHECK(c, "no longer than three seconds from sending",
	      !lease_core_is_held(&core, t + 3 * SECOND_NS));
	t += 50 * MS_NS;
	expect(c, "renew in a second", &core, t, LEASE_WAIT, SECOND_NS);
	t += SECOND_NS;
	expect(c, "renew", &core, t, LEASE_RENEW, 0);
	lease_core_failed(&core, t);
	expect(c, "pause", &core, t, LEASE_WAIT, LEASE_RETRY_NS);
	t += LEASE_RETRY_NS;
	expect(c, "what became of it", &core, t, LEASE_LOOK, 0);
	mine = record("me", "8", 4);
	lease_core_looked(&core, t, &mine);
	expect(c, "again", &core, t, LEASE_RENEW, 0);
	t += 3 * SECOND_NS;
	expect(c, "lost", &core, t, LEASE_LOST, 0);
	expect(c, "take it back", &core, t, LEASE_TAKE, 0);
	CHECK(c, "an answer after three seconds is no leadership",
	      !lease_core_wrote(&core, t + 3 * SECOND_NS, t, &mine));
}

static void test_given_up(struct check *c)
{
	struct lease_core core;
	struct lease_plan plan;
	lease_core_init(&core, "me");
	struct lease_record free_one = record("", "5", 9);
	lease_core_looked(&core, SECOND_NS, &free_one);
	lease_core_step(&core, SECOND_NS, &plan);
	CHECK_INT(c, "at once", plan.act, LEASE_TAKE);
	CHECK_INT(c, "one more", plan.transitions, 10);
	struct lease_record mine = record("me", "6", 10);
	CHECK(c, "acquired", lease_core_wrote(&core, SECOND_NS, SECOND_NS, &mine));
	struct lease_record other = record("other", "9", 11);
	lease_core_looked(&core, SECOND_NS + 1, &other);
	expect(c, "taken away by hand", &core, SECOND_NS + 1, LEASE_LOST, 0);
}

// ---- several candidates, one store

enum { CANDIDATES = 3, ROUNDS = 60 };

struct candidate {
	struct lease_core core;
	bool is_dead;
	bool has_call; // its effect on the store is at act_ns, its answer at answer_ns
	struct lease_plan sent;
	uint64_t sent_ns, act_ns, answer_ns;
	bool has_acted, is_answer_lost, is_conflict;
	char base[24];            // version the write was made on
	struct lease_record seen; // what the store answered
	bool seen_exists;
	char seen_holder[32], seen_version[24];
	uint64_t wake_ns;
};

struct store {
	bool exists;
	char holder[32];
	uint64_t version;
	int64_t transitions;
};

struct world_of_leases {
	struct rng rng;
	struct store store;
	struct candidate candidates[CANDIDATES];
	unsigned generation;
	uint64_t now_ns;
	int64_t last_led_transitions;
};

static void born(struct world_of_leases *w, struct candidate *candidate)
{
	char identity[32];
	(void)snprintf(identity, sizeof identity, "c%u", w->generation++);
	*candidate = (struct candidate){ .wake_ns = w->now_ns };
	lease_core_init(&candidate->core, identity);
}

// The store handles the request: a conditional write, or a read.
static void act(struct world_of_leases *w, struct candidate *me)
{
	char version[24];
	(void)snprintf(version, sizeof version, "%llu", (unsigned long long)w->store.version);
	me->has_acted = true;
	me->is_conflict = false;
	if (me->sent.act == LEASE_CREATE)
		me->is_conflict = w->store.exists;
	else if (me->sent.act != LEASE_LOOK)
		me->is_conflict = !w->store.exists || strcmp(version, me->base) != 0;
	if (me->sent.act != LEASE_LOOK && !me->is_conflict) {
		w->store.exists = true;
		w->store.version++;
		w->store.transitions = me->sent.transitions;
		(void)snprintf(w->store.holder, sizeof w->store.holder, "%.31s", me->core.identity);
	}
	me->seen_exists = w->store.exists;
	(void)snprintf(me->seen_holder, sizeof me->seen_holder, "%s", w->store.holder);
	(void)snprintf(me->seen_version, sizeof me->seen_version, "%llu",
		       (unsigned long long)w->store.version);
	me->seen = record(me->seen_holder, me->seen_version, w->store.transitions);
}

static void answer(struct check *c, struct world_of_leases *w, struct candidate *me)
{
	me->has_call = false;
	me->wake_ns = w->now_ns;
	if (me->is_answer_lost) {
		lease_core_failed(&me->core, w->now_ns);
	} else if (me->sent.act == LEASE_LOOK) {
		lease_core_looked(&me->core, w->now_ns, me->seen_exists ? &me->seen : NULL);
	} else if (me->is_conflict) {
		lease_core_conflict(&me->core);
	} else if (lease_core_wrote(&me->core, w->now_ns, me->sent_ns, &me->seen)) {
		CHECK(c, "the fencing number grows",
		      me->seen.transitions > w->last_led_transitions);
		w->last_led_transitions = me->seen.transitions;
	}
}

static void send_call(struct world_of_leases *w, struct candidate *me,
		      const struct lease_plan *plan)
{
	// Mostly quick, sometimes so slow that trust and duration run out in between.
	bool is_slow = rng_below(&w->rng, 40) == 0;
	uint64_t there_ns = rng_below(&w->rng, is_slow ? 6000 : 40) * MS_NS;
	uint64_t back_ns = rng_below(&w->rng, is_slow ? 6000 : 40) * MS_NS;
	me->has_call = true;
	me->has_acted = false;
	me->sent = *plan;
	me->sent_ns = w->now_ns;
	me->act_ns = w->now_ns + there_ns;
	me->answer_ns = me->act_ns + back_ns;
	me->is_answer_lost = rng_below(&w->rng, 25) == 0;
	(void)snprintf(me->base, sizeof me->base, "%.23s", me->core.version);
}

static void turn(struct check *c, struct world_of_leases *w, struct candidate *me)
{
	struct lease_plan plan;
	if (me->has_call && !me->has_acted && w->now_ns >= me->act_ns)
		act(w, me); // also of the dead: the request was on its way
	if (me->is_dead)
		return;
	if (me->has_call && me->has_acted && w->now_ns >= me->answer_ns)
		answer(c, w, me);
	if (me->has_call || w->now_ns < me->wake_ns)
		return;
	lease_core_step(&me->core, w->now_ns, &plan);
	if (plan.act == LEASE_WAIT)
		me->wake_ns = w->now_ns + plan.wait_ns;
	else if (plan.act != LEASE_LOST)
		send_call(w, me, &plan);
}

static int count_leaders(const struct world_of_leases *w)
{
	int count = 0;
	for (size_t i = 0; i < CANDIDATES; i++)
		count += !w->candidates[i].is_dead &&
			 lease_core_is_held(&w->candidates[i].core, w->now_ns);
	return count;
}

static void disturb(struct world_of_leases *w)
{
	struct candidate *victim = &w->candidates[rng_below(&w->rng, CANDIDATES)];
	if (rng_below(&w->rng, 2) == 0)
		victim->wake_ns = w->now_ns + rng_below(&w->rng, 8) * SECOND_NS; // suspended
	else if (!victim->is_dead)
		victim->is_dead = true;
	else if (!victim->has_call || victim->has_acted)
		born(w, victim);
}

static void test_many(struct check *c, uint64_t seed)
{
	struct world_of_leases w = { .now_ns = SECOND_NS };
	rng_init(&w.rng, seed);
	for (size_t i = 0; i < CANDIDATES; i++)
		born(&w, &w.candidates[i]);
	int leaders_max = 0;
	for (int ms = 0; ms < ROUNDS * 1000; ms += 5, w.now_ns += 5 * MS_NS) {
		for (size_t i = 0; i < CANDIDATES; i++)
			turn(c, &w, &w.candidates[i]);
		int leaders = count_leaders(&w);
		leaders_max = leaders > leaders_max ? leaders : leaders_max;
		if (ms % 4000 == 0)
			disturb(&w);
	}
	CHECK_INT(c, "never two", leaders_max, 1);
}

// A clean crash of the leader: how long nobody leads.
static void test_failover(struct check *c, uint64_t seed)
{
	struct world_of_leases w = { .now_ns = SECOND_NS };
	struct candidate *leader = NULL;
	rng_init(&w.rng, seed);
	for (size_t i = 0; i < CANDIDATES; i++)
		born(&w, &w.candidates[i]);
	uint64_t crash_ns = 20 * SECOND_NS + rng_below(&w.rng, 1000) * MS_NS, follow_ns = 0;
	for (; w.now_ns < 40 * SECOND_NS && follow_ns == 0; w.now_ns += MS_NS) {
		for (size_t i = 0; i < CANDIDATES; i++) {
			struct candidate *me = &w.candidates[i];
			turn(c, &w, me);
			me->is_answer_lost = false; // a healthy network here
			if (me->has_call && me->answer_ns > me->sent_ns + 20 * MS_NS)
				me->act_ns = me->answer_ns = me->sent_ns + 20 * MS_NS;
			if (!me->is_dead && leader != NULL &&
			    lease_core_is_held(&me->core, w.now_ns))
				follow_ns = w.now_ns;
			if (leader == NULL && w.now_ns >= crash_ns &&
			    lease_core_is_held(&me->core, w.now_ns)) {
				leader = me;
				me->is_dead = true;
				crash_ns = w.now_ns;
			}
		}
	}
	CHECK(c, "somebody led", leader != NULL);
	CHECK(c, "replaced", follow_ns > 0);
	CHECK(c, "within five seconds", follow_ns - crash_ns <= 5 * SECOND_NS);
}

int main(void)
{
	struct check c = { 0 };
	test_steps(&c);
	test_given_up(&c);
	for (uint64_t seed = 0; seed < 100; seed++) {
		test_many(&c, seed);
		test_failover(&c, seed);
	}
	return check_done(&c);
}
