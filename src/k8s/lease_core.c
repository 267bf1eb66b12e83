// SPDX-License-Identifier: Apache-2.0
#include "k8s/lease_core.h"

#include <stdio.h>

enum { DURATION_MAX_S = 3600 };
#define SECOND_NS UINT64_C(1000000000)

static void put_text(char *out, size_t out_bytes, struct str text)
{
	size_t n = min_size(text.len, out_bytes - 1);
	if (n > 0)
		memcpy(out, text.data, n);
	out[n] = '\0';
}

void lease_core_init(struct lease_core *core, const char *identity)
{
	ASSERT(identity[0] != '\0' && strlen(identity) < LEASE_IDENTITY_MAX_BYTES);
	*core = (struct lease_core){ .must_look = true };
	put_text(core->identity, sizeof core->identity, str_of(identity));
}

static bool is_ours(const struct lease_core *core)
{
	return strcmp(core->holder, core->identity) == 0;
}

static void take_record(struct lease_core *core, uint64_t now_ns, const struct lease_record *record)
{
	// Any change is a sign of life; which member changed does not matter.
	if (!core->exists || !str_eq_c(record->version, core->version))
		core->seen_ns = now_ns;
	core->exists = true;
	put_text(core->holder, sizeof core->holder, record->holder);
	put_text(core->version, sizeof core->version, record->version);
	core->transitions = max_i64(core->transitions, record->transitions);
	core->duration_s = min_i64(max_i64(record->duration_s, 1), DURATION_MAX_S);
	core->looked_ns = now_ns;
	core->has_looked = true;
	core->must_look = false;
}

void lease_core_looked(struct lease_core *core, uint64_t now_ns, const struct lease_record *record)
{
	core->not_before_ns = 0;
	if (record != NULL) {
		take_record(core, now_ns, record);
		return;
	}
	core->exists = false;
	core->holder[0] = core->version[0] = '\0';
	core->looked_ns = now_ns;
	core->has_looked = true;
	core->must_look = false;
}

bool lease_core_wrote(struct lease_core *core, uint64_t now_ns, uint64_t sent_ns,
		      const struct lease_record *record)
{
	ASSERT(sent_ns <= now_ns);
	core->not_before_ns = 0;
	take_record(core, now_ns, record);
	if (!is_ours(core) || now_ns - sent_ns >= LEASE_TRUST_NS)
		return false; // too late to be trusted; the next step takes it anew
	bool has_begun = !core->is_held;
	core->is_held = true;
	core->renewed_ns = now_ns;
	core->trusted_until_ns = sent_ns + LEASE_TRUST_NS;
	return has_begun;
}

void lease_core_conflict(struct lease_core *core)
{
	core->must_look = true;
	core->not_before_ns = 0;
}

void lease_core_failed(struct lease_core *core, uint64_t now_ns)
{
	core->not_before_ns = now_ns + LEASE_RETRY_NS;
	// A write without an answer may have been made: its version is not known.
	core->must_look = true;
}

bool lease_core_is_held(const struct lease_core *core, uint64_t now_ns)
{
	return core->is_held && now_ns < core->trusted_until_ns;
}

static void plan_wait(struct lease_plan *plan, uint64_t now_ns, uint64_t until_ns)
{
	ASSERT(until_ns > now_ns);
	*plan = (struct lease_plan){ .act = LEASE_WAIT, .wait_ns = until_ns - now_ns };
}

static void step_leader(struct lease_core *core, uint64_t now_ns, struct lease_plan *plan)
{
	if (core->must_look)
		*plan = (struct lease_plan){ .act = LEASE_LOOK };
	else if (now_ns >= core->renewed_ns + LEASE_RENEW_NS)
		*plan = (struct lease_plan){ .act = LEASE_RENEW, .transitions = core->transitions };
	else
		plan_wait(plan, now_ns, core->renewed_ns + LEASE_RENEW_NS);
}

static void step_follower(struct lease_core *core, uint64_t now_ns, struct lease_plan *plan)
{
	uint64_t next_look_ns = core->looked_ns + LEASE_LOOK_NS;
	uint64_t dead_ns = core->seen_ns + (uint64_t)core->duration_s * SECOND_NS;
	if (!core->has_looked || core->must_look)
		*plan = (struct lease_plan){ .act = LEASE_LOOK };
	else if (!core->exists)
		*plan = (struct lease_plan){ .act = LEASE_CREATE,
					     .transitions = core->transitions + 1 };
	else if (core->holder[0] == '\0' || is_ours(core) || now_ns >= dead_ns)
		*plan = (struct lease_plan){ .act = LEASE_TAKE,
					     .transitions = core->transitions + 1 };
	else if (now_ns >= next_look_ns)
		*plan = (struct lease_plan){ .act = LEASE_LOOK };
	else
		plan_wait(plan, now_ns, next_look_ns < dead_ns ? next_look_ns : dead_ns);
}

void lease_core_step(struct lease_core *core, uint64_t now_ns, struct lease_plan *ret_plan)
{
	bool is_lost = core->is_held &&
		       (now_ns >= core->trusted_until_ns || (!core->must_look && !is_ours(core)));
	if (is_lost) {
		core->is_held = false;
		*ret_plan = (struct lease_plan){ .act = LEASE_LOST };
	} else if (now_ns < core->not_before_ns) {
		uint64_t until_ns = core->not_before_ns;
		if (core->is_held && core->trusted_until_ns < until_ns)
			until_ns = core->trusted_until_ns;
		plan_wait(ret_plan, now_ns, until_ns);
	} else if (core->is_held) {
		step_leader(core, now_ns, ret_plan);
	} else {
		step_follower(core, now_ns, ret_plan);
	}
}
