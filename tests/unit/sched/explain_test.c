// SPDX-License-Identifier: Apache-2.0
// Staged situations and the exact set of reasons that a pod is told in each: by its decision and,
// asked afterwards, by sched_explain. When what it waits for is gone, so are its reasons.
#include "rig.h"

#include "base/yaml.h"
#include "check.h"
#include "sys/fs.h"

#include <stdlib.h>

enum { FILE_MAX_BYTES = 1 << 20, LEAST = 30 };

// As the file has it: "Code NODES (NEED of HAVE)", what is not there left out.
static void put_reason(const struct sched_reason *reason, struct buf *out)
{
	buf_put_c(out, reason->code);
	if (reason->nodes > 0)
		buf_printf(out, " %u", reason->nodes);
	if (reason->need.len > 0)
		buf_printf(out, " (" STR_FMT, STR_ARG(reason->need));
	if (reason->have.len > 0)
		buf_printf(out, " of " STR_FMT, STR_ARG(reason->have));
	if (reason->need.len > 0)
		buf_put_byte(out, ')');
}

static const char *lines_of(struct rig *rig, const struct sched_facts *facts)
{
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	buf_put_c(&out, "");
	for (size_t i = 0; i < facts->count; i++) {
		struct sched_reason reason = sched_fact_text(rig->sched, STR("default"), STR("p"),
							     &facts->items[i], rig->arena);
		put_reason(&reason, &out);
		buf_put_byte(&out, '\n');
	}
	return arena_cstr(rig->arena, buf_str(&out));
}

static const char *wanted(struct rig *rig, const json_t *situation)
{
	AUTO(buf_done) struct buf out = { .limit = 4096 };
	size_t i;
	json_t *line;
	json_array_foreach(json_object_get(situation, "want"), i, line)
		buf_printf(&out, "%s\n", json_string_value(line));
	return arena_cstr(rig->arena, buf_str(&out));
}

// Takes all decisions; returns what the last one about the pod said, NULL: nothing or a bind.
static const char *settle(struct rig *rig, bool *ret_bound)
{
	const char *told = NULL;
	*ret_bound = false;
	while (rig_next(rig)[0] != '-') {
		const struct sched_decision *decision = &rig->decision;
		if (!str_eq_c(decision->name, "p"))
			continue;
		*ret_bound = decision->verb == SCHED_BIND;
		told = decision->facts == NULL ? NULL : lines_of(rig, decision->facts);
	}
	return told;
}

static void test_situation(struct check *c, const json_t *situation, const json_t *documents,
			   size_t first)
{
	struct rig rig;
	struct sched_explanation explanation;
	const char *name = json_cstr(situation, "name");
	struct sched_preempt_rules rules = { .mode = SCHED_PREEMPT_OFF };
	bool is_bound, has_mode = json_object_get(situation, "preemption") != NULL;
	rig_init(&rig);
	if (has_mode)
		CHECK(c, name,
		      sched_preemption_parse(json_text(situation, "preemption"), &rules.mode));
	sched_preempt_set(rig.sched, &rules);
	for (size_t i = first; i < json_array_size(documents); i++) {
		const json_t *value = json_array_get(documents, i);
		if (str_eq_c(json_text(value, "kind"), "Situation"))
			break;
		rig_put_object(&rig, value);
	}
	const char *want = wanted(&rig, situation), *told = settle(&rig, &is_bound);
	CHECK(c, name, !is_bound);
	CHECK_STR(c, name, str_of(told == NULL ? "nothing" : told), want);
	CHECK(c, name, sched_explain(rig.sched, STR("default"), STR("p"), &explanation));
	CHECK_STR(c, name, str_of(lines_of(&rig, &explanation.facts)), want);
	bool waits = explanation.state == SCHED_STATE_WAITING;
	CHECK(c, name, waits == (explanation.position > 0));
	for (size_t i = 0; i < explanation.facts.count; i++)
		CHECK(c, name, sched_code_next(explanation.facts.items[i].code)[0] != '\0');

	const json_t *leaving = json_object_get(situation, "remove");
	size_t i;
	json_t *uid;
	json_array_foreach((json_t *)(uintptr_t)leaving, i, uid)
		rig_remove_pod(&rig, json_string_value(uid));
	rig.now_ms += 1000;
	(void)settle(&rig, &is_bound);
	CHECK(c, name, is_bound == (leaving != NULL));
	CHECK(c, name, sched_explain(rig.sched, STR("default"), STR("p"), &explanation));
	CHECK(c, name, (explanation.facts.count == 0) == (leaving != NULL));
	rig_done(&rig);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	AUTO(buf_done) struct buf text = { .limit = FILE_MAX_BYTES };
	AUTO(json_decrefp) json_t *documents = NULL;
	struct err err = { 0 };
	size_t count = 0;
	if (argc != 2 || fs_read(argv[1], FILE_MAX_BYTES, &text, &err) != ERR_OK ||
	    yaml_parse_documents(buf_str(&text), &documents, &err) != ERR_OK) {
		printf("want the file of situations: %s\n", err.text);
		return 2;
	}
	for (size_t i = 0; i < json_array_size(documents); i++) {
		const json_t *value = json_array_get(documents, i);
		if (!str_eq_c(json_text(value, "kind"), "Situation"))
			continue;
		test_situation(&c, value, documents, i + 1);
		count++;
	}
	CHECK(&c, "so many situations", count >= LEAST);
	return check_done(&c);
}
