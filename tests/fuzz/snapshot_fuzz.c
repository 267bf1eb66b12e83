// SPDX-License-Identifier: Apache-2.0
// Lines of the agent's snapshot, of allocations and of energy counters. What was loaded is saved
// and loaded again, and then saves as the same bytes.
#include "daemons/agent/energy.h"
#include "daemons/agent/usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static err_status take_event(void *arg, struct usage_event *event)
{
	(void)arg;
	(void)event;
	return ERR_OK;
}

static void load(struct usage *usage, struct energy *energy, struct str text)
{
	struct str line;
	while (str_split_next(&text, '\n', &line)) {
		usage_load_line(usage, line);
		energy_load_line(energy, line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct energy energy, energy_again;
	const struct usage_config config = { .has_pods = true, .emit = take_event };
	AUTO(buf_done) struct buf first = { 0 }, second = { 0 };
	struct usage *usage = usage_new(&config), *again = usage_new(&config);
	ASSERT(usage != NULL && again != NULL);
	energy_init(&energy, "0f3a5c77-1b2c-4d5e-8f90-a1b2c3d4e5f6");
	energy_init(&energy_again, "0f3a5c77-1b2c-4d5e-8f90-a1b2c3d4e5f6");
	load(usage, &energy, (struct str){ (const char *)data, size });
	usage_save(usage, false, &first);
	energy_save(&energy, &first);
	load(again, &energy_again, buf_str(&first));
	usage_save(again, false, &second);
	energy_save(&energy_again, &second);
	ASSERT(buf_ok(&first) && buf_ok(&second));
	ASSERT(usage_count(again) == usage_count(usage) && energy_again.count == energy.count);
	ASSERT(str_eq(buf_str(&first), buf_str(&second)));
	usage_show_begin(usage);
	usage_show_end(usage, 1770000000);
	(void)usage_step(usage, 1770000100);
	usage_free(usage);
	usage_free(again);
	return 0;
}
