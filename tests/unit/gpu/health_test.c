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
