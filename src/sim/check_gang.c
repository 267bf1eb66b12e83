// SPDX-License-Identifier: Apache-2.0
// A gang runs whole or not at all: checked when nothing is left to decide, with books of its own.
// What excuses a gang that is there in part: it has been whole since its first member came, or
// one of its binds failed, a member was there from the start, or one went, not too long ago.
#include "sim/check_gang.h"

#include <stdlib.h>

struct book {
	size_t on_node; // counted anew each time
	int64_t min;
	bool was_whole;
	int64_t excused_ms; // until then
};

static struct str key_of(const struct sim_pod *pod, struct buf *out)
{
	const struct sched_gang_in *gang = pod->in.gang;
	buf_clear(out);
	buf_printf(out, "%d/" STR_FMT "/" STR_FMT, (int)gang->kind, STR_ARG(pod->in.namespace_),
		   STR_ARG(gang->name));
	ASSERT(buf_ok(out));
	return buf_str(out);
}

static struct book *book_of(struct sim *sim, const struct sim_pod *pod)
{
	AUTO(buf_done) struct buf text = { .limit = 2048 };
	struct str key = key_of(pod, &text);
	struct book *book = map_find(sim->gangs, key);
	if (book == NULL) {
		book = calloc(1, sizeof *book);
		ASSERT(book != NULL);
		(void)map_set(sim->gangs, key, book);
	}
	return book;
}

void checker_gang_init(struct sim *sim) { sim->gangs = map_new(0); }

void checker_gang_done(struct sim *sim)
{
	struct str key;
	void *book;
	for (size_t i = 0; map_next(sim->gangs, &i, &key, &book);)
		free(book);
	map_free(sim->gangs);
}

void checker_gang_excuse(struct sim *sim, const struct sim_pod *pod)
{
	enum { LATE_MS = 60000 }; // members that are given back have a grace
	if (pod->in.gang == NULL || pod->in.spec == NULL)
		return;
	int64_t expiry_s = pod->in.gang->expiry_s;
	expiry_s = expiry_s == 0 ? SCHED_GANG_EXPIRY_S : expiry_s;
	book_of(sim, pod)->excused_ms = sim->now_ms + 1000 * expiry_s + LATE_MS;
}

static void count_all(struct sim *sim)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(sim->gangs, &i, &key, &value);)
		((struct book *)value)->on_node = 0;
	for (size_t i = 0; map_next(sim->pods, &i, &key, &value);) {
		const struct sim_pod *pod = value;
		if (pod->in.gang == NULL || pod->in.spec->refusal_count > 0)
			continue;
		struct book *book = book_of(sim, pod);
		book->on_node += pod->node.len > 0;
		if (pod->node.len > 0) // what those say that wait may be contradicted
			book->min = pod->in.gang->min;
	}
}

const char *checker_gangs(struct sim *sim)
{
	struct str key;
	void *value;
	count_all(sim);
	for (size_t i = 0; map_next(sim->gangs, &i, &key, &value);) {
		struct book *book = value;
		bool is_whole = (int64_t)book->on_node >= book->min;
		book->was_whole = book->on_node > 0 && (book->was_whole || is_whole);
		if (book->on_node > 0 && !book->was_whole && sim->now_ms > book->excused_ms)
			return arena_printf(sim->scenario->arena,
					    "gang " STR_FMT " runs in part: %zu of %lld",
					    STR_ARG(key), book->on_node, (long long)book->min);
	}
	return NULL;
}

bool checker_gang_is_same(const struct sim_pod *a, const struct sim_pod *b)
{
	const struct sched_gang_in *x = a->in.gang, *y = b->in.gang;
	return x != NULL && y != NULL && x->kind == y->kind && str_eq(x->name, y->name) &&
	       str_eq(a->in.namespace_, b->in.namespace_);
}

// Whether all waiting members of its gang ask for the same.
bool checker_gang_is_even(const struct sim *sim, const struct sim_pod *head)
{
	struct str uid;
	void *value;
	AUTO(buf_done) struct buf own = { .limit = 2048 }, text = { .limit = 2048 };
	struct str key = key_of(head, &own);
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		if (pod->in.gang == NULL || pod->node.len > 0 || !str_eq(key_of(pod, &text), key))
			continue;
		const struct sched_spec *a = pod->in.spec, *b = head->in.spec;
		if (a->amount_count != b->amount_count)
			return false;
		for (size_t k = 0; k < a->amount_count; k++) {
			if (a->amounts[k].amount != b->amounts[k].amount)
				return false;
		}
	}
	return true;
}
