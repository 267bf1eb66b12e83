// SPDX-License-Identifier: Apache-2.0
// Any pod through decoder, feed and core, beside a node and a pod that runs: whatever a tenant
// writes must end in a decision or a refusal, and the ledger must stay right. Bytes that begin
// with '{' are JSON, others protobuf.
#include "feed/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_node(struct sched *sched)
{
	static struct sched_label labels[] = { { { "zone", 4 }, { "a", 1 } } };
	static const struct sched_amount amounts[] = { { { "cpu", 3 }, 8000 },
						       { { "memory", 6 }, INT64_C(1) << 36 },
						       { { "nvidia.com/gpu", 14 }, 8 },
						       { { "pods", 4 }, 4 } };
	static const struct sched_device_in device = { .uuid = { "GPU-1", 5 },
						       .model = { "A100", 4 },
						       .memory_mib = 81920,
						       .is_healthy = true };
	struct sched_node_in node = { .name = STR("n"),
				      .labels = { labels, 1 },
				      .allocatable = amounts,
				      .allocatable_count = ARRAY_COUNT(amounts) };
	sched_node_set(sched, &node);
	sched_devices_set(sched, STR("n"), &device, 1);
}

static bool read_pod(struct arena *arena, struct str bytes, json_t **json, struct kobj_pod *ret_pod,
		     struct kobj_unknowns *ret_unknowns)
{
	if (bytes.len == 0 || bytes.data[0] != '{')
		return kobj_from_protobuf(arena, &KOBJ_POD, bytes, ret_unknowns, ret_pod, NULL) ==
		       ERR_OK;
	return json_parse(bytes, json, NULL) == ERR_OK &&
	       kobj_from_json(arena, &KOBJ_POD, *json, ret_unknowns, ret_pod, NULL) == ERR_OK;
}

static void decide_all(struct sched *sched, struct arena *arena)
{
	struct sched_decision decision;
	for (int i = 0; i < 16 && sched_next(sched, i * 1000, &decision); i++) {
		for (size_t k = 0; decision.facts != NULL && k < decision.facts->count; k++)
			(void)sched_fact_text(sched, decision.namespace_, decision.name,
					      &decision.facts->items[k], arena);
		if (decision.verb == SCHED_BIND && i % 2 == 0)
			sched_bind_failed(sched, decision.uid, i * 1000);
		ASSERT(sched_check(sched) == NULL);
	}
}

static void use_pod(struct sched *sched, struct arena *arena, struct kobj_pod *pod,
		    const struct kobj_unknowns *unknowns)
{
	struct sched_pod_in in;
	struct sched_explanation explanation;
	if (!feed_pod(arena, pod, unknowns, STR("gpuaas"), &in))
		return;
	in.uid = STR("first");
	in.name = STR("first");
	in.node = STR("n");
	sched_pod_set(sched, &in);
	in.uid = STR("second");
	in.name = STR("second");
	in.node = STR("");
	in.is_ours = true;
	sched_pod_set(sched, &in);
	decide_all(sched, arena);
	if (sched_explain(sched, in.namespace_, in.name, &explanation))
		ASSERT(explanation.state <= SCHED_STATE_BOUND);
	sched_pod_remove(sched, STR("first"));
	decide_all(sched, arena);
	ASSERT(sched_check(sched) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 24);
	AUTO(json_decrefp) json_t *json = NULL;
	struct kobj_pod pod;
	struct kobj_unknowns unknowns;
	if (!read_pod(arena, (struct str){ (const char *)data, size }, &json, &pod, &unknowns))
		return 0;
	struct sched *sched = sched_new(1, 0);
	put_node(sched);
	use_pod(sched, arena, &pod, &unknowns);
	sched_free(sched);
	return 0;
}
