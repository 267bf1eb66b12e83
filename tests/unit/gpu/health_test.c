// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "gpu/health.h"

#define S UINT64_C(1000000000)

static const struct health_config config = { .strikes_max = 2,
					     .clean_probes = 3,
					     .hold_off_ns = 10 * S };

// A step of a story: x an XID, else a probe with its recovery action; the wanted state after it.
struct step {
	char kind; // 'x' XID, 'o' ok, 'l' lost, 'e' error, 'h' hung, 'd' driver, 'r' reset seen
	int value; // XID or action
	uint64_t at_s;
	health_state want;
};

static health_probe probe_of(char kind)
{
	switch (kind) {
	case 'o': return HEALTH_PROBE_OK;
	case 'l': return HEALTH_PROBE_LOST;
	case 'e': return HEALTH_PROBE_ERROR;
	case 'h': return HEALTH_PROBE_HUNG;
	case 'c': return HEALTH_PROBE_CRASH;
	default: return HEALTH_PROBE_DRIVER;
	}
}

static void run(struct check *c, const char *name, const struct step *steps, size_t count)
{
	struct health health;
	health_init(&health);
	for (size_t i = 0; i < count; i++) {
		bool was_offered = health_is_offered(&health);
		bool changed = false;
		if (steps[i].kind == 'x')
			changed =
				health_on_xid(&health, (uint32_t)steps[i].value, steps[i].at_s * S);
		else if (steps[i].kind == 'r')
			health_on_reset(&health);
		else
			changed = health_on_probe(&health, &config, probe_of(steps[i].kind),
						  steps[i].value, "code 15", steps[i].at_s * S);
		CHECK_INT(c, name, health.state, steps[i].want);
		CHECK(c, name, changed || was_offered == health_is_offered(&health));
		CHECK(c, name, (health.state == HEALTH_HEALTHY) == (health.reason[0] == '\0'));
	}
}

#define RUN(c, name, ...)                                                                          \
	run((c), (name), (const struct step[]){ __VA_ARGS__ },                                     \
	    ARRAY_COUNT(((const struct step[]){ __VA_ARGS__ })))

// Every event in every state; the row says which state follows. Recovering is one good probe in.
static const struct transition {
	const char *event;
	char kind;
	int value;
	health_state after[4]; // of Healthy, Suspect, Unhealthy, Recovering
} transitions[] = {
#define H HEALTH_HEALTHY
#define D HEALTH_SUSPECT
#define U HEALTH_UNHEALTHY
#define R HEALTH_RECOVERING
	{ "good probe, nothing to recover", 'o', 0, { H, H, R, R } },
	{ "good probe, no word", 'o', -1, { H, H, R, R } },
	{ "asks for a reset", 'o', 1, { U, U, U, U } },
	{ "asks for what we do not know", 'o', 99, { U, U, U, U } },
	{ "lost", 'l', 0, { U, U, U, U } },
	{ "error", 'e', 0, { D, U, U, U } },
	{ "hung", 'h', 0, { D, U, U, U } },
	{ "crash", 'c', 0, { D, U, U, U } },
	{ "no driver", 'd', 0, { D, U, U, U } },
	{ "XID", 'x', 48, { U, U, U, U } },
	{ "reset", 'r', 0, { H, D, U, R } },
#undef H
#undef D
#undef U
#undef R
};

static struct health health_in(health_state state)
{
	struct health health;
	health_init(&health);
	if (state == HEALTH_SUSPECT)
		(void)health_on_probe(&health, &config, HEALTH_PROBE_ERROR, 0, "x", S);
	else if (state != HEALTH_HEALTHY)
		(void)health_on_probe(&health, &config, HEALTH_PROBE_LOST, 0, "x", S);
	if (state == HEALTH_RECOVERING)
		(void)health_on_probe(&health, &config, HEALTH_PROBE_OK, 0, "", 2 * S);
	return health;
}

static void apply(struct health *health, const struct transition *row, uint64_t now_ns)
{
	if (row->kind == 'x')
		(void)health_on_xid(health, (uint32_t)row->value, now_ns);
	else if (row->kind == 'r')
		health_on_reset(health);
	else
		(void)health_on_probe(health, &config, probe_of(row->kind), row->value, "x",
				      now_ns);
}

static void test_every_transition(struct check *c)
{
	static const health_state states[] = { HEALTH_HEALTHY, HEALTH_SUSPECT, HEALTH_UNHEALTHY,
					       HEALTH_RECOVERING };
	for (size_t i = 0; i < ARRAY_COUNT(transitions); i++) {
		for (size_t j = 0; j < ARRAY_COUNT(states); j++) {
			char name[100];
			struct health health = health_in(states[j]);
			(void)snprintf(name, sizeof name, "%s when %s", transitions[i].event,
				       health_state_name(states[j]));
			CHECK_INT(c, name, health.state, states[j]);
			apply(&health, &transitions[i], 3 * S);
			CHECK_INT(c, name, health.state, transitions[i].after[j]);
			CHECK(c, name,
			      (health.state == HEALTH_HEALTHY) == (health.reason[0] == '\0'));
		}
	}
}

// What holds on every way: back from Unhealthy only after so many good probes in a row, the
// hold-off, and after an XID the driver's word.
static void test_random_walks(struct check *c)
{
	uint32_t seed = 12345, good = 0, seen[4] = { 0 };
	struct health health;
	uint64_t fault_s = 0;
	bool is_bad = false, has_word = true, had_xid = false, holds = true;
	health_init(&health);
	for (uint64_t at_s = 1; at_s < 200000; at_s++) {
		seed = seed * 1664525 + 1013904223;
		// Good probes are the rule, or nothing would ever come back.
		size_t i = seed >> 28 != 0 ? (seed >> 20) % 16 == 0 : (seed >> 10) % 11;
		const struct transition *row = &transitions[i];
		apply(&health, row, at_s * S);
		bool is_good = row->kind == 'o' && row->value <= 0;
		if (!is_good && row->kind != 'r') {
			good = 0;
			if (!health_is_offered(&health)) {
				fault_s = at_s;
				is_bad = true;
			}
			if (row->kind == 'x')
				had_xid = true;
			has_word = false;
		}
		good += is_good ? 1 : 0;
		has_word = has_word || row->kind == 'r' || (is_good && row->value == 0);
		if (is_bad && health_is_offered(&health)) {
			holds = holds && good >= config.clean_probes &&
				at_s - fault_s >= config.hold_off_ns / S && (!had_xid || has_word);
			is_bad = had_xid = false;
		}
		holds = holds && is_bad == !health_is_offered(&health);
		seen[health.state]++;
	}
	CHECK(c, "no way back but by the rules", holds);
	for (size_t i = 0; i < 4; i++)
		CHECK(c, health_state_name((health_state)i), seen[i] > 50);
}

static void test_dead(struct check *c)
{
	static const struct {
		const char *name;
		char kind;
		bool is_dead;
	} rows[] = {
		{ "XID", 'x', true },    { "lost", 'l', true },   { "hung", 'h', true },
		{ "error", 'e', false }, { "crash", 'c', false }, { "no driver", 'd', false }
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct health health;
		const struct transition row = { rows[i].name, rows[i].kind, 48, { 0 } };
		health_init(&health);
		CHECK(c, "healthy is not dead", !health_is_dead(&health));
		apply(&health, &row, S);
		apply(&health, &row, 2 * S);
		CHECK(c, rows[i].name, health_is_dead(&health) == rows[i].is_dead);
		(void)health_on_probe(&health, &config, HEALTH_PROBE_OK, 0, "", 3 * S);
		CHECK(c, "until it is trusted", health_is_dead(&health) == rows[i].is_dead);
	}
}

int main(void)
{
	struct check c = { 0 };
	const health_state good = HEALTH_HEALTHY, doubt = HEALTH_SUSPECT, bad = HEALTH_UNHEALTHY,
			   back = HEALTH_RECOVERING;
	RUN(&c, "one error is a doubt", { 'e', 0, 1, doubt }, { 'o', 0, 2, good });
	RUN(&c, "two errors are not", { 'e', 0, 1, doubt }, { 'e', 0, 2, bad }, { 'o', 0, 3, back },
	    { 'o', 0, 4, back }, { 'o', 0, 5, back }, { 'o', 0, 12, good });
	RUN(&c, "lost at once", { 'l', 0, 1, bad }, { 'l', 0, 2, bad });
	RUN(&c, "a relapse starts anew", { 'l', 0, 1, bad }, { 'o', 0, 2, back },
	    { 'h', 0, 3, bad }, { 'o', 0, 14, back }, { 'o', 0, 15, back }, { 'o', 0, 16, good });
	RUN(&c, "an XID waits for the driver's word", { 'x', 94, 1, bad }, { 'o', 0, 12, back },
	    { 'o', 0, 13, back }, { 'o', 0, 14, good });
	RUN(&c, "no word, no return", { 'x', 79, 1, bad }, { 'o', -1, 12, back },
	    { 'o', -1, 13, back }, { 'o', -1, 14, back }, { 'o', -1, 99, back });
	RUN(&c, "a reset is a word", { 'x', 79, 1, bad }, { 'o', -1, 12, back },
	    { 'r', 0, 12, back }, { 'o', -1, 13, back }, { 'o', -1, 14, good });
	RUN(&c, "recovery action", { 'o', 1, 1, bad }, { 'o', 1, 2, bad }, { 'o', 0, 12, back },
	    { 'o', 0, 13, back }, { 'o', 0, 14, good });
	RUN(&c, "hold-off", { 'l', 0, 1, bad }, { 'o', 0, 2, back }, { 'o', 0, 3, back },
	    { 'o', 0, 4, back }, { 'o', 0, 10, back }, { 'o', 0, 11, good });

	RUN(&c, "what fails after an XID does not replace the word", { 'x', 79, 1, bad },
	    { 'o', -1, 2, back }, { 'l', 0, 3, bad }, { 'o', -1, 20, back }, { 'o', -1, 21, back },
	    { 'o', -1, 99, back }, { 'r', 0, 99, back }, { 'o', -1, 100, good });
	RUN(&c, "the word before the relapse does not count", { 'x', 79, 1, bad },
	    { 'r', 0, 2, bad }, { 'o', -1, 3, back }, { 'l', 0, 4, bad }, { 'o', -1, 20, back },
	    { 'o', -1, 21, back }, { 'o', -1, 99, back }, { 'o', 0, 100, good });
	test_every_transition(&c);
	test_random_walks(&c);
	test_dead(&c);

	struct health health;
	health_init(&health);
	(void)health_on_xid(&health, 79, S);
	CHECK_STR(&c, "reason", str_of(health.reason), "XID 79: GPU has fallen off the bus");
	CHECK(&c, "the first cause stays",
	      !health_on_probe(&health, &config, HEALTH_PROBE_LOST, -1, "code 15", 2 * S));
	CHECK_STR(&c, "reason stays", str_of(health.reason), "XID 79: GPU has fallen off the bus");
	health_fault fault = HEALTH_FAULT_NONE;
	CHECK(&c, "name of a fault", health_fault_parse(STR("hung"), &fault));
	CHECK_INT(&c, "fault", fault, HEALTH_FAULT_HUNG);
	CHECK(&c, "no such fault", !health_fault_parse(STR("tired"), &fault));
	return check_done(&c);
}
