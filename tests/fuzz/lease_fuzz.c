// SPDX-License-Identifier: Apache-2.0
// A Lease as read or as the answer to our write, on top of each state of the election; and the
// times that we write into one.
#include "k8s/lease.h"
#include "k8s/microtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step(struct lease_core *core, uint64_t now_ns)
{
	struct lease_plan plan = { 0 };
	lease_core_step(core, now_ns, &plan);
	ASSERT(plan.act != LEASE_WAIT || plan.wait_ns > 0);
	ASSERT(plan.transitions >= 0 && plan.transitions <= INT32_MAX);
}

static void check_record(const struct lease_record *record)
{
	const uint64_t start_ns = UINT64_C(1000000000), later_ns = UINT64_C(4000000000000);
	struct lease_core core;
	lease_core_init(&core, "me_12345678");
	step(&core, start_ns);
	lease_core_looked(&core, start_ns, record);
	step(&core, start_ns);
	step(&core, later_ns);
	bool has_begun = lease_core_wrote(&core, later_ns, later_ns, record);
	ASSERT(has_begun == str_eq_c(record->holder, "me_12345678"));
	ASSERT(lease_core_is_held(&core, later_ns) == has_begun);
	step(&core, later_ns);
	lease_core_looked(&core, later_ns + 1, record);
	step(&core, later_ns + 1);
}

static void check_time(const uint8_t *data, size_t size)
{
	char text[TIME_TEXT_BYTES];
	int64_t unix_s = 0, again_s = 0;
	uint32_t ns = 0, again_ns = 0;
	if (!time_parse((struct str){ (const char *)data, size }, &unix_s, &ns))
		return;
	(void)k8s_micro_time(unix_s, ns / 1000, text);
	ASSERT(time_parse(str_of(text), &again_s, &again_ns));
	ASSERT(again_s == unix_s && again_ns == ns / 1000 * 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *value = NULL;
	struct lease_record record = { .holder = { NULL, 0 } };
	struct err err = { 0 };
	check_time(data, size);
	if (json_parse((struct str){ (const char *)data, size }, &value, NULL) != ERR_OK)
		return 0;
	if (lease_record_read(value, &record, &err) == ERR_OK)
		check_record(&record);
	else
		ASSERT(err.text[0] != '\0');
	return 0;
}
