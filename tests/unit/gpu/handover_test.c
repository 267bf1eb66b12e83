// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "gpu/handover.h"

static const struct handover_config config = { .grace_ns = 2000, .memory_mib = 1024 };

// One look of a story; times in ns.
struct look {
	const char *name;
	uint64_t at_ns;
	struct handover_facts facts;
	bool is_dirty, is_changed;
	const char *reason;
};

#define PROCESS(t) .process_count = 2, .first_pid = 4711, .processes_ns = (t)
#define MEMORY(mib, t) .memory_mib = (mib), .memory_ns = (t)

static const struct look looks[] = {
	{ "held", 1000, { .is_held = true, .is_whole = true, PROCESS(900) }, false, false, "" },
	{ "just left, an old reading",
	  5000,
	  { .is_whole = true, PROCESS(4900) },
	  false,
	  false,
	  "" },
	{ "read within the grace", 6500, { .is_whole = true, PROCESS(6400) }, false, false, "" },
	{ "read after it", 7100, { .is_whole = true, PROCESS(7050) }, true, true, "process 4711" },
	{ "still",
	  9000,
	  { .is_whole = true, PROCESS(8900), MEMORY(9999, 8900) },
	  true,
	  false,
	  "process 4711" },
	{ "gone", 9900, { .is_whole = true, .processes_ns = 9800 }, false, true, "" },
	{ "memory without a process",
	  9950,
	  { .is_whole = true, .processes_ns = 9800, MEMORY(1025, 9940) },
	  true,
	  true,
	  "1025 MiB" },
	{ "little memory",
	  9970,
	  { .is_whole = true, .processes_ns = 9800, MEMORY(1024, 9960) },
	  false,
	  true,
	  "" },
	{ "a process again", 9980, { .is_whole = true, PROCESS(9975) }, true, true, "4711" },
	{ "the next holder",
	  9990,
	  { .is_held = true, .is_whole = true, PROCESS(9985) },
	  false,
	  true,
	  "" },
	{ "left", 20000, { .is_whole = true, PROCESS(19000) }, false, false, "" },
	{ "shared meanwhile", 30000, { PROCESS(29000) }, false, false, "" },
	{ "never read", 40000, { .is_whole = true }, false, false, "" },
};

int main(void)
{
	struct check c = { 0 };
	struct handover handover = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(looks); i++) {
		bool is_changed =
			handover_look(&handover, &config, &looks[i].facts, looks[i].at_ns);
		CHECK(&c, looks[i].name, handover.is_dirty == looks[i].is_dirty);
		CHECK(&c, looks[i].name, is_changed == looks[i].is_changed);
		CHECK(&c, looks[i].name, strstr(handover.reason, looks[i].reason) != NULL);
	}
	const struct handover_facts old = { .is_whole = true, PROCESS(41000) };
	CHECK(&c, "too early", !handover_wants_reading(&handover, &config, &old, 41000));
	CHECK(&c, "wants", handover_wants_reading(&handover, &config, &old, 42000));
	const struct handover_facts fresh = { .is_whole = true, PROCESS(42000) };
	CHECK(&c, "has it", !handover_wants_reading(&handover, &config, &fresh, 43000));
	const struct handover_config off = { 0 };
	CHECK(&c, "off", !handover_look(&handover, &off, &fresh, 50000) && !handover.is_dirty);
	CHECK(&c, "off", !handover_wants_reading(&handover, &off, &old, 50000));
	return check_done(&c);
}
