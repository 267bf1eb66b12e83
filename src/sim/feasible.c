// SPDX-License-Identifier: Apache-2.0
// For every pod without a node the nodes it may run on, as they are now: one JSON object a line.
#include "sim/check_gang.h"

#include <stdlib.h>

static void put_refusals(struct sim *sim, const struct sim_pod *pod, struct buf *out)
{
	struct sched_explanation explanation;
	buf_put_c(out, ",\"refused\":[");
	if (sched_explain(sim->core, pod->in.namespace_, pod->in.name, &explanation) &&
	    explanation.state != SCHED_STATE_WAITING) {
		for (size_t i = 0; i < explanation.facts.count; i++)
			buf_printf(out, "%s\"%s\"", i > 0 ? "," : "",
				   sched_code_name(explanation.facts.items[i].code));
	}
	buf_put_c(out, "]}\n");
}

static void print_pod(struct sim *sim, const struct sim_pod *pod, struct str *nodes, size_t max)
{
	AUTO(buf_done) struct buf out = { .limit = 16 << 20 };
	size_t count = sched_feasible(sim->core, pod->in.namespace_, pod->in.name, nodes, max);
	buf_put_c(&out, "{\"pod\":");
	buf_put_json(&out, pod->key);
	buf_put_c(&out, ",\"nodes\":[");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_byte(&out, ',');
		buf_put_json(&out, nodes[i]);
	}
	buf_put_byte(&out, ']');
	put_refusals(sim, pod, &out);
	(void)fwrite(out.data, 1, out.len, stdout);
}

static int print_all(struct sim *sim)
{
	size_t max = sim->scenario->object_count;
	struct str *nodes = calloc(max + 1, sizeof *nodes), uid;
	void *value;
	ASSERT(nodes != NULL);
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (pod->node.len == 0)
			print_pod(sim, pod, nodes, max);
	}
	free(nodes);
	return fflush(stdout) == 0 ? 0 : 1;
}

int run_feasible(const char *file)
{
	struct scenario scenario;
	struct err err = { .status = ERR_OK };
	if (scenario_load(file, &scenario, &err) != ERR_OK) {
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
		return err_exit_code(err.status);
	}
	struct sim sim = { .scenario = &scenario,
			   .core = sched_new(0, 0),
			   .pods = map_new(0),
			   .takes_all = true };
	storage_init(&sim);
	checker_gang_init(&sim);
	checker_queue_init(&sim);
	sim.checker = checker_new(scenario.arena);
	int code = 0;
	for (size_t i = 0; i < scenario.object_count && code == 0; i++) {
		if (apply_object(&sim, &scenario.objects[i], &err) == ERR_OK)
			continue;
		(void)fprintf(stderr, "gpuaas-sim: %s\n", err.text);
		code = err_exit_code(err.status);
	}
	if (code == 0)
		code = print_all(&sim);
	sched_free(sim.core);
	map_free(sim.pods);
	storage_done(&sim);
	checker_gang_done(&sim);
	checker_queue_done(&sim);
	checker_free(sim.checker);
	scenario_done(&scenario);
	return code;
}
