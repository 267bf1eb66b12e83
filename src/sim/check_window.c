// SPDX-License-Identifier: Apache-2.0
// Windows in the simulator: at each bind, for each instant at which a window begins or ends on the
// node while the pod is expected to run, what is expected to be there and what windows keep is
// summed up anew. Where they lie is the core's choice, what follows from it is checked here.
#include "sim/check_window.h"

enum { ROWS_MAX = 64, PARTS_MAX = 256 };

struct parts { // of one node
	struct sched_window_part items[PARTS_MAX];
	size_t count;
};

static void list_parts(const struct sim *sim, struct str node, struct parts *ret)
{
	struct sched_window_row rows[ROWS_MAX];
	struct sched_window_part all[PARTS_MAX];
	size_t row_count = sched_window_rows(sim->core, rows, ROWS_MAX);
	ret->count = 0;
	for (size_t i = 0; i < row_count; i++) {
		size_t count = sched_window_parts(sim->core, i, all, PARTS_MAX);
		for (size_t k = 0; k < count && ret->count < PARTS_MAX; k++) {
			if (str_eq(all[k].node, node))
				ret->items[ret->count++] = all[k];
		}
	}
}

bool checker_has_window(const struct sim *sim, struct str node)
{
	struct parts parts;
	list_parts(sim, node, &parts);
	return parts.count > 0;
}

struct sums {
	int64_t all, of_tenant;
};

static struct sums sum_up(const struct sim *sim, struct str node, struct str tenant, int64_t at_ms)
{
	struct sums sums = { 0, 0 };
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (!str_eq(pod->node, node) || checker_end_ms(sim, pod) <= at_ms)
			continue;
		sums.all += pod->in.spec->gpu_count;
		if (str_eq(pod->in.namespace_, tenant))
			sums.of_tenant += pod->in.spec->gpu_count;
	}
	return sums;
}

static int64_t reserved_at(const struct parts *parts, struct str tenant, int64_t at_ms)
{
	int64_t sum = 0;
	for (size_t i = 0; i < parts->count; i++) {
		const struct sched_window_part *part = &parts->items[i];
		if (str_eq(part->tenant, tenant) && part->start_ms <= at_ms && at_ms < part->end_ms)
			sum += part->gpu_count;
	}
	return sum;
}

static bool is_first_of_tenant(const struct parts *parts, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (str_eq(parts->items[k].tenant, parts->items[i].tenant))
			return false;
	}
	return true;
}

static bool holds_at(const struct sim *sim, const struct sim_pod *pod, const struct parts *parts,
		     int64_t at_ms)
{
	struct str own = pod->in.namespace_;
	struct sums sums = sum_up(sim, pod->node, own, at_ms);
	int64_t kept = 0;
	if (sums.of_tenant <= reserved_at(parts, own, at_ms))
		return true;
	for (size_t i = 0; i < parts->count; i++) {
		struct str tenant = parts->items[i].tenant;
		if (str_eq(tenant, own) || !is_first_of_tenant(parts, i))
			continue;
		int64_t used = sum_up(sim, pod->node, tenant, at_ms).of_tenant;
		kept += max_i64(reserved_at(parts, tenant, at_ms) - used, 0);
	}
	int64_t all = checker_has(sim, pod->node, STR("nvidia.com/gpu"));
	return kept == 0 || sums.all + kept <= all;
}

const char *checker_window(const struct sim *sim, const struct sim_pod *pod)
{
	struct parts parts;
	if (pod->in.spec->gpu_count == 0)
		return NULL;
	list_parts(sim, pod->node, &parts);
	for (size_t i = 0; i < 2 * parts.count; i++) {
		const struct sched_window_part *part = &parts.items[i / 2];
		int64_t at_ms = max_i64(i % 2 == 0 ? part->start_ms : part->end_ms, sim->now_ms);
		if (at_ms < checker_end_ms(sim, pod) && !holds_at(sim, pod, &parts, at_ms))
			return "a pod takes GPUs of another tenant's window";
	}
	return NULL;
}
