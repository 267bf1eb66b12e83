// SPDX-License-Identifier: Apache-2.0
// Lines of storage objects, each after a digit for its kind and '+' or '-', while pods that mount
// two claims are decided about. The ledger must stay right and every assumption must end.
#include "feed/feed_storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_node(struct sched *sched)
{
	static struct sched_label labels[] = { { { "zone", 4 }, { "a", 1 } } };
	static const struct sched_amount amounts[] = { { { "cpu", 3 }, 8000 },
						       { { "pods", 4 }, 4 } };
	struct sched_node_in node = { .name = STR("n"),
				      .labels = { labels, 1 },
				      .allocatable = amounts,
				      .allocatable_count = ARRAY_COUNT(amounts) };
	sched_node_set(sched, &node);
}

static void put_pods(struct sched *sched)
{
	static struct sched_claim_ref claims[] = {
		{ .namespace_ = { "s", 1 }, .name = { "c", 1 } },
		{ .namespace_ = { "s", 1 }, .name = { "d", 1 } },
	};
	static const struct sched_spec one = { .claims = claims, .claim_count = 1 };
	static const struct sched_spec both = { .claims = claims, .claim_count = 2 };
	static const char *const NAMES[] = { "p", "q", "r" };
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		struct sched_pod_in pod = { .uid = str_of(NAMES[i]),
					    .namespace_ = STR("s"),
					    .name = str_of(NAMES[i]),
					    .is_ours = true,
					    .spec = i == 0 ? &one : &both };
		sched_pod_set(sched, &pod);
	}
}

// Every other bind fails, so that what was assumed for it comes back.
static void decide_all(struct sched *sched, int64_t *now_ms)
{
	struct sched_decision decision;
	for (int i = 0; i < 16 && sched_next(sched, *now_ms, &decision); i++) {
		*now_ms += 1000;
		if (decision.verb == SCHED_BIND && i % 2 == 0)
			sched_bind_failed(sched, decision.uid, *now_ms);
		ASSERT(sched_check(sched) == NULL);
	}
}

static void apply(struct sched *sched, struct arena *arena, struct str line)
{
	AUTO(json_decrefp) json_t *json = NULL;
	union feed_storage_object object;
	struct sched_storage_in in;
	if (line.len < 3 || line.data[0] < '0' || line.data[0] >= '0' + SCHED_STORAGES)
		return;
	const struct feed_storage *feed = &FEED_STORAGES[line.data[0] - '0'];
	if (json_parse(str_slice(line, 2, line.len), &json, NULL) != ERR_OK ||
	    kobj_from_json(arena, feed->table, json, NULL, &object, NULL) != ERR_OK ||
	    !feed->read(arena, &object, &in) || in.key.len == 0)
		return;
	if (line.data[1] == '-')
		sched_storage_remove(sched, in.kind, in.key);
	else
		sched_storage_set(sched, &in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	struct str rest = { (const char *)data, size }, line;
	struct sched *sched = sched_new(1, 0);
	int64_t now_ms = 0;
	put_node(sched);
	put_pods(sched);
	for (int i = 0; i < 64 && str_split_next(&rest, '\n', &line); i++) {
		apply(sched, arena, line);
		decide_all(sched, &now_ms);
	}
	sched_pod_remove(sched, STR("q"));
	decide_all(sched, &now_ms);
	sched_free(sched);
	return 0;
}
