// SPDX-License-Identifier: Apache-2.0
// What is answered about a pod that does not exist is what then happens to it, in random clusters
// with queues and their limits, persons, MIG devices, shares, gangs that wait, priorities and nodes
// kept for the head; and a second core that is never asked decides the same to the letter.
#include "rig.h"

#include "base/rng.h"
#include "base/yaml.h"
#include "check.h"
#include "sched/dryrun.h"
#include "sched/sched_queue.h"

#include <stdlib.h>

enum { CASES = 250, ASKED_EACH = 4, LINES_MAX_BYTES = 64 * 1024, FRESH_MS = 6000 };

struct pair { // one is asked, the other is not
	struct rig asked, other;
	struct rng rng;
	int no; // of the next pod; they are made in this order
};

static unsigned any(struct rng *rng, unsigned below) { return (unsigned)rng_below(rng, below); }
static bool chance(struct rng *rng, uint64_t percent) { return rng_below(rng, 100) < percent; }

static void put_both(struct pair *pair, const struct buf *text)
{
	rig_put(&pair->asked, text->data);
	rig_put(&pair->other, text->data);
}

static void put_devices(struct rng *rng, unsigned node, unsigned shared, struct buf *out)
{
	buf_printf(out, "---\n{kind: GPUNode, metadata: {name: n%u}, status: {devices: [", node);
	const char *model = chance(rng, 50) ? "NVIDIA A100-SXM4-80GB" : "NVIDIA L4";
	for (unsigned i = 0; i < 4 + shared; i++)
		buf_printf(out,
			   "%s{uuid: GPU-%u-%u, index: %u, healthy: %s, model: %s, memoryMiB: "
			   "81920%s}",
			   i > 0 ? ", " : "", node, i, i, chance(rng, 92) ? "true" : "false", model,
			   i < 4 ? "" : ", milli: 1000");
	buf_put_c(out, "]}}\n");
}

static void put_nodes(struct rng *rng, struct buf *out)
{
	unsigned count = 1 + any(rng, 4);
	for (unsigned i = 0; i < count; i++) {
		unsigned shared = any(rng, 3);
		buf_printf(out, "---\n{kind: Node, metadata: {name: n%u, labels: {disk: %s}}, ", i,
			   chance(rng, 50) ? "ssd" : "hdd");
		if (chance(rng, 10))
			buf_put_c(out, "spec: {unschedulable: true}, ");
		else if (chance(rng, 10))
			buf_put_c(out, "spec: {taints: [{key: t, effect: NoSchedule}]}, ");
		buf_printf(out, "status: {allocatable: {cpu: %u, ", 4 + any(rng, 12));
		buf_printf(out, "memory: 64Gi, pods: %u, nvidia.com/gpu: 4, ", 4 + any(rng, 12));
		buf_printf(out, "nvidia.com/mig-3g.40gb: %u, gpuaas.io/gpu-milli: %u}}}\n",
			   any(rng, 3), 1000 * shared);
		if (shared > 0 || chance(rng, 70))
			put_devices(rng, i, shared, out);
	}
}

static void put_tenants(struct rng *rng, struct buf *out)
{
	if (chance(rng, 25))
		return;
	buf_printf(out, "---\n{kind: Tenant, metadata: {name: lab}, spec: {queue: {limit: %u}}}\n",
		   2 + any(rng, 10));
	for (unsigned i = 0; i < 2; i++) {
		buf_printf(out, "---\n{kind: Tenant, metadata: {name: t%u}, spec: {queue: {", i);
		if (chance(rng, 60))
			buf_printf(out, "parent: %s, ", chance(rng, 95) ? "lab" : "gone");
		if (chance(rng, 60))
			buf_printf(out, "limit: %u, ", 2 + any(rng, 6));
		if (chance(rng, 40))
			buf_printf(out, "userLimit: %u, ", 1 + any(rng, 4));
		buf_printf(out, "guaranteed: %u}}}\n", any(rng, 3));
	}
}

static void put_amount(struct rng *rng, struct buf *out)
{
	unsigned kind = any(rng, 10);
	if (kind < 6)
		buf_printf(out, "nvidia.com/gpu: %u", any(rng, 6));
	else if (kind < 8)
		buf_printf(out, "nvidia.com/mig-3g.40gb: %u", 1 + any(rng, 2));
	else
		buf_printf(out, "gpuaas.io/gpu-milli: %u", 100 + 100 * any(rng, 9));
}

// One in eight of those that come before is of a gang.
static void put_pod(struct pair *pair, bool is_question, struct buf *out)
{
	struct rng *rng = &pair->rng;
	int no = pair->no++;
	const char *space = chance(rng, 80) ? "t" : "x"; // one draw a statement
	buf_printf(out, "{kind: Pod, metadata: {name: p%d, namespace: %s%u, ", no, space,
		   any(rng, 2));
	buf_printf(out, "creationTimestamp: '2026-01-01T%02d:%02d:%02dZ', annotations: {",
		   no / 3600, no / 60 % 60, no % 60);
	buf_printf(out, "gpuaas.io/user: u%u, ", any(rng, 3));
	if (chance(rng, 40))
		buf_printf(out, "gpuaas.io/duration: '%u', ", 10 + any(rng, 500));
	if (chance(rng, 15))
		buf_put_c(out, "gpuaas.io/gpu-models: A100, ");
	if (!is_question && chance(rng, 12))
		buf_printf(out, "gpuaas.io/gang: g%u, gpuaas.io/gang-min: '2', ", any(rng, 2));
	if (chance(rng, 3))
		buf_put_c(out, "gpuaas.io/min-gpu-memory: much, ");
	buf_printf(out, "}}, spec: {priority: %u, ", 10 * any(rng, 3));
	if (chance(rng, 15))
		buf_put_c(out, "nodeSelector: {disk: ssd}, ");
	if (chance(rng, 15))
		buf_put_c(out, "tolerations: [{key: t, operator: Exists}], ");
	buf_printf(out, "containers: [{name: c, resources: {limits: {cpu: %u, ", 1 + any(rng, 4));
	put_amount(rng, out);
	buf_put_c(out, "}}}]}}\n");
}

// All decisions until none is left, one a line.
static const char *settle(struct rig *rig)
{
	AUTO(buf_done) struct buf out = { .limit = LINES_MAX_BYTES };
	buf_put_c(&out, "");
	for (const char *line = rig_next(rig); line[0] != '-'; line = rig_next(rig))
		buf_printf(&out, "%s\n", line);
	return arena_cstr(rig->arena, buf_str(&out));
}

static void advance(struct check *c, struct pair *pair, const char *name)
{
	pair->asked.now_ms += FRESH_MS; // numbers that are told are not older
	pair->other.now_ms = pair->asked.now_ms;
	CHECK_STR(c, name, str_of(settle(&pair->asked)), settle(&pair->other));
}

static const char *answer_text(struct rig *rig, const struct sched_pod_in *in)
{
	struct sched_dry_answer answer;
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	sched_dry_run(rig->sched, in, rig->now_ms, rig->arena, &answer);
	if (answer.state == SCHED_STATE_ASSUMED)
		buf_printf(&out, "bind " STR_FMT " " STR_FMT, STR_ARG(in->name),
			   STR_ARG(answer.node));
	else
		buf_printf(&out, "%s " STR_FMT,
			   answer.state == SCHED_STATE_REFUSED ? "refuse" : "wait",
			   STR_ARG(in->name));
	for (size_t i = 0; i < answer.reason_count; i++) {
		const struct sched_reason *reason = &answer.reasons[i];
		buf_printf(&out, " %s:%u", reason->code, reason->nodes);
		if (reason->need.len > 0)
			buf_printf(&out, "(" STR_FMT "/" STR_FMT ")", STR_ARG(reason->need),
				   STR_ARG(reason->have));
	}
	return arena_cstr(rig->arena, buf_str(&out));
}

// The first thing that is decided about the pod, without the devices of a bind.
static const char *first_line(struct rig *rig, const char *lines, struct str pod)
{
	struct str rest = str_of(lines), line = STR(""), name = STR("");
	while (rest.len > 0 && !str_eq(name, pod)) {
		(void)str_split_next(&rest, '\n', &line);
		struct str words = line;
		(void)str_split_next(&words, ' ', &name); // the verb
		(void)str_split_next(&words, ' ', &name);
	}
	size_t devices = str_find_byte(line, '[', 0);
	if (devices != SIZE_MAX && str_starts(line, STR("bind ")))
		line = str_slice(line, 0, devices - 1);
	return arena_cstr(rig->arena, line);
}

static size_t kinds[3]; // of answers: starts, waits, is refused

static void ask(struct check *c, struct pair *pair, const char *name)
{
	AUTO(buf_done) struct buf text = { .limit = 4096 };
	AUTO(json_decrefp) json_t *documents = NULL;
	struct sched_pod_in in;
	struct err err;
	advance(c, pair, name);
	put_pod(pair, true, &text);
	CHECK(c, name, yaml_parse_documents(buf_str(&text), &documents, &err) == ERR_OK);
	rig_read_pod(&pair->asked, json_array_get(documents, 0), &in);
	const char *answer = answer_text(&pair->asked, &in);
	CHECK(c, name, sched_check(pair->asked.sched) == NULL);
	CHECK_STR(c, name, str_of(settle(&pair->asked)), settle(&pair->other));
	CHECK_STR(c, name, str_of(answer_text(&pair->asked, &in)), answer);
	put_both(pair, &text);
	const char *lines = settle(&pair->asked);
	CHECK_STR(c, name, str_of(lines), settle(&pair->other));
	CHECK_STR(c, name, str_of(first_line(&pair->asked, lines, in.name)), answer);
	kinds[answer[0] == 'b' ? 0 : answer[0] == 'w' ? 1 : 2]++;
}

static void run(struct check *c, uint64_t seed)
{
	struct pair pair = { .no = 0 };
	AUTO(buf_done) struct buf text = { .limit = 1 << 20 };
	char name[32];
	(void)snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
	rng_init(&pair.rng, seed);
	rig_init(&pair.asked);
	rig_init(&pair.other);
	put_nodes(&pair.rng, &text);
	put_tenants(&pair.rng, &text);
	unsigned pods = any(&pair.rng, 25);
	for (unsigned i = 0; i < pods; i++) {
		buf_put_c(&text, "---\n");
		put_pod(&pair, false, &text);
	}
	put_both(&pair, &text);
	advance(c, &pair, name);
	for (int i = 0; i < ASKED_EACH; i++)
		ask(c, &pair, name);
	rig_done(&pair.asked);
	rig_done(&pair.other);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	int64_t seed = 0;
	if (argc == 2 && str_to_i64(str_of(argv[1]), &seed)) {
		run(&c, (uint64_t)seed);
		return check_done(&c);
	}
	for (uint64_t i = 1; i <= CASES; i++)
		run(&c, i);
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) // the cases are of all kinds
		CHECK(&c, "kinds", kinds[i] >= CASES * ASKED_EACH / 100);
	return check_done(&c);
}
