// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

static void put_reasons(struct sim *sim, const struct sched_decision *decision, struct buf *out)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	size_t count = decision->facts == NULL ? 0 : decision->facts->count;
	for (size_t i = 0; i < count; i++) {
		struct sched_reason reason = sched_fact_text(sim->core, decision->namespace_,
							     decision->name,
							     &decision->facts->items[i], arena);
		if (i > 0)
			buf_put_byte(out, ',');
		sched_reason_put(&reason, out);
	}
}

static void put_device(struct buf *out, bool *has_any, struct str name)
{
	if (*has_any)
		buf_put_byte(out, ',');
	buf_put_json(out, name);
	*has_any = true;
}

static void put_devices(const struct sched_decision *decision, struct buf *out)
{
	bool has_any = false;
	for (size_t i = 0; i < decision->grant_count; i++)
		put_device(out, &has_any, decision->grants[i].uuid);
	for (size_t i = 0; i < decision->claim_allot_count; i++) {
		const struct sched_claim_allot *allot = &decision->claim_allots[i];
		for (size_t k = 0; k < allot->give_count; k++)
			put_device(out, &has_any, allot->gives[k].device);
	}
}

static void put_victims(const struct sched_decision *decision, struct buf *out)
{
	for (size_t i = 0; i < decision->victim_count; i++) {
		const struct sched_victim *victim = &decision->victims[i];
		AUTO(buf_done) struct buf name = { .limit = 4096 };
		buf_printf(&name, STR_FMT "/" STR_FMT, STR_ARG(victim->namespace_),
			   STR_ARG(victim->name));
		ASSERT(buf_ok(&name));
		buf_put_c(out, i > 0 ? "," : "");
		buf_put_json(out, buf_str(&name));
	}
}

// Where those that are moved go on, in the order of the victims; nothing when nobody is.
static void put_homes(const struct sched_decision *decision, struct buf *out)
{
	if (decision->victim_count == 0 || decision->victims[0].home.len == 0)
		return;
	buf_put_c(out, "],\"homes\":[");
	for (size_t i = 0; i < decision->victim_count; i++) {
		buf_put_c(out, i > 0 ? "," : "");
		buf_put_json(out, decision->victims[i].home);
	}
}

void write_decision(struct sim *sim, const struct sched_decision *decision)
{
	static const char *const VERBS[] = { "bind", "wait", "refuse", "nominate", "evict" };
	AUTO(buf_done) struct buf out = { .limit = 1 << 20 };
	AUTO(buf_done) struct buf pod = { .limit = 8192 };
	buf_printf(&pod, STR_FMT "/" STR_FMT, STR_ARG(decision->namespace_),
		   STR_ARG(decision->name));
	buf_printf(&out, "{\"t_ms\":%lld,\"verb\":\"%s\",\"pod\":", (long long)sim->now_ms,
		   VERBS[decision->verb]);
	buf_put_json(&out, buf_str(&pod));
	buf_put_c(&out, ",\"node\":");
	buf_put_json(&out, decision->node);
	buf_put_c(&out, ",\"devices\":[");
	put_devices(decision, &out);
	buf_put_c(&out, "],\"victims\":[");
	put_victims(decision, &out);
	put_homes(decision, &out);
	buf_put_c(&out, "],\"reasons\":[");
	put_reasons(sim, decision, &out);
	buf_put_c(&out, "]}\n");
	ASSERT(buf_ok(&out) && buf_ok(&pod));
	(void)fwrite(out.data, 1, out.len, sim->out); // a full disk is told when the file is closed
}
