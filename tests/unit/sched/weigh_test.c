// SPDX-License-Identifier: Apache-2.0
// The demand that the core learns: before enough pods have come the plain keys decide, after that
// a GPU model that pods name is kept for them.
#include "check.h"
#include "sched/sched.h"

enum { PODS = 120, NAME_BYTES = 32 };

static void add_node(struct sched *sched, const char *name, const char *model, int64_t gpus)
{
	struct sched_label label = { STR("nvidia.com/gpu.product"), str_of(model) };
	const struct sched_amount amounts[] = {
		{ STR("cpu"), 16000 * gpus },
		{ STR("memory"), INT64_C(1) << 40 },
		{ STR("nvidia.com/gpu"), gpus },
		{ STR("pods"), 1000 },
	};
	const struct sched_node_in node = { .name = str_of(name),
					    .labels = { &label, 1 },
					    .allocatable = amounts,
					    .allocatable_count = ARRAY_COUNT(amounts) };
	sched_node_set(sched, &node);
}

// Empty model: any GPU will do; empty node: it waits.
static void add_pod(struct sched *sched, const char *uid, const char *model, const char *node)
{
	struct sched_amount amounts[] = { { STR("cpu"), 4000 }, { STR("nvidia.com/gpu"), 1 } };
	struct sched_gpu_ask ask = { .container = STR("c"), .count = 1 };
	struct str models[] = { str_of(model) };
	const struct sched_spec spec = { .amounts = amounts,
					 .amount_count = ARRAY_COUNT(amounts),
					 .gpu_models = models,
					 .gpu_model_count = model[0] == '\0' ? 0 : 1,
					 .gpu_asks = &ask,
					 .gpu_ask_count = 1,
					 .gpu_count = 1 };
	const struct sched_pod_in pod = { .uid = str_of(uid),
					  .namespace_ = STR("n"),
					  .name = str_of(uid),
					  .node = str_of(node),
					  .is_ours = true,
					  .spec = &spec };
	sched_pod_set(sched, &pod);
}

static struct str place(struct sched *sched, const char *uid)
{
	struct sched_decision decision;
	add_pod(sched, uid, "", "");
	while (sched_next(sched, 1000, &decision)) {
		if (decision.verb == SCHED_BIND && str_eq_c(decision.uid, uid))
			return decision.node;
	}
	return STR("");
}

// Many pods that name the model come and go; the demand is asked for again and again.
static void come_and_go(struct sched *sched, int pods, const char *model, const char *node)
{
	for (int i = 0; i < pods; i++) {
		add_pod(sched, "passing", model, node);
		sched_pod_remove(sched, STR("passing"));
		if (i % 1000 != 0)
			continue;
		(void)place(sched, "asking");
		sched_pod_remove(sched, STR("asking"));
	}
}

// However much has come before.
static void check_follows(struct check *c)
{
	struct sched *sched = sched_new(1, 0);
	add_node(sched, "t4", "Tesla-T4", 8);
	add_node(sched, "l40s", "NVIDIA-L40S", 8);
	come_and_go(sched, 2 * 32768, "T4", "t4");
	CHECK_STR(c, "T4 is kept", place(sched, "second"), "l40s");
	sched_pod_remove(sched, STR("second"));
	come_and_go(sched, 4 * 32768, "L40S", "l40s");
	CHECK_STR(c, "then L40S is", place(sched, "third"), "t4");
	sched_free(sched);
}

int main(void)
{
	struct check c = { 0 };
	check_follows(&c);
	struct sched *sched = sched_new(1, 0);
	add_node(sched, "old", "Tesla-T4", 200);
	add_node(sched, "scarce", "Tesla-T4", 2);
	add_node(sched, "plenty", "NVIDIA-L40S", 8);
	CHECK_STR(&c, "nothing is known: fewest GPUs left", place(sched, "first"), "scarce");
	sched_pod_remove(sched, STR("first"));
	for (int i = 0; i < PODS; i++) {
		char uid[NAME_BYTES];
		(void)snprintf(uid, sizeof uid, "named-%03d", i);
		add_pod(sched, uid, "T4", "old");
	}
	CHECK_STR(&c, "T4 is kept for those who name it", place(sched, "second"), "plenty");
	CHECK(&c, "books", sched_check(sched) == NULL);
	sched_node_remove(sched, STR("plenty"));
	CHECK(&c, "but not from those who find nothing else", place(sched, "third").len > 0);
	CHECK(&c, "books", sched_check(sched) == NULL);
	sched_free(sched);
	return check_done(&c);
}
