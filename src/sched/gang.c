// SPDX-License-Identifier: Apache-2.0
// Who is of which gang, and on what terms.
#include "sched/gang.h"

#include <stdlib.h>

enum { KEY_MAX_BYTES = 4096 };

struct gangs *gangs_new(uint64_t seed)
{
	struct gangs *gangs = core_alloc(1, sizeof *gangs);
	gangs->by_key = map_new(seed);
	gangs->parts = map_new(seed);
	gangs->due_ms = INT64_MAX;
	link_head_init(&gangs->parked);
	link_head_init(&gangs->begun);
	link_head_init(&gangs->binds);
	return gangs;
}

static void unlink_part(struct part *part)
{
	struct part **at = &part->gang->parts;
	while (*at != part)
		at = &(*at)->next;
	*at = part->next;
}

static void free_part(struct part *part)
{
	free(part->texts);
	free(part);
}

static void drop_if(struct link *link)
{
	if (link_is_in(link))
		link_drop(link);
}

static void release(struct gangs *gangs, struct gang *gang)
{
	if (gang->member_count > 0 || gang->parts != NULL)
		return;
	ASSERT(tree_count(&gang->waiting) == 0 && !tree_has(&gang->active));
	drop_if(&gang->in_parked);
	drop_if(&gang->in_begun);
	(void)map_remove(gangs->by_key, gang->key);
	map_free(gang->groups);
	free((void *)(uintptr_t)gang->key.data);
	free(gang);
}

void gangs_free(struct gangs *gangs)
{
	struct str key;
	void *value;
	for (size_t i = 0; map_next(gangs->parts, &i, &key, &value);) {
		struct gang *gang = ((struct part *)value)->gang;
		unlink_part(value);
		free_part(value);
		release(gangs, gang);
	}
	ASSERT(map_count(gangs->by_key) == 0);
	map_free(gangs->by_key);
	map_free(gangs->parts);
	free(gangs);
}

static struct str put_key(sched_gang_kind kind, struct str namespace_, struct str name,
			  struct buf *out)
{
	buf_put_byte(out, (char)('0' + (int)kind));
	buf_put(out, namespace_);
	buf_put_byte(out, '/');
	buf_put(out, name);
	ASSERT(buf_ok(out));
	return buf_str(out);
}

static struct gang *get(struct gangs *gangs, struct str key, size_t namespace_bytes)
{
	struct gang *gang = map_find(gangs->by_key, key);
	if (gang != NULL)
		return gang;
	gang = core_alloc(1, sizeof *gang);
	char *copy = core_alloc(1, key.len);
	memcpy(copy, key.data, key.len);
	gang->key = (struct str){ copy, key.len };
	gang->kind = (sched_gang_kind)(copy[0] - '0');
	gang->namespace_ = (struct str){ copy + 1, namespace_bytes };
	gang->name = (struct str){ copy + 2 + namespace_bytes, key.len - namespace_bytes - 2 };
	link_head_init(&gang->members);
	(void)map_set(gangs->by_key, gang->key, gang);
	return gang;
}

// ---- terms

static int64_t parts_min(const struct gang *gang)
{
	int64_t sum = 0, count = 0, expected = 1;
	for (const struct part *part = gang->parts; part != NULL; part = part->next) {
		sum = min_i64(sum + part->in.min, SCHED_GANG_MAX + 1);
		count++;
		expected = max_i64(expected, part->in.expected);
	}
	return count < expected ? 0 : sum;
}

int64_t gang_min(const struct gang *gang)
{
	int64_t said = gang->speaker == NULL ? 0 : gang->speaker->terms.min;
	return said > 0 ? said : parts_min(gang);
}

int64_t gang_max(const struct gang *gang)
{
	int64_t said = gang->speaker == NULL ? 0 : gang->speaker->terms.max;
	return said > 0 ? said : INT64_MAX;
}

struct str gang_topology(const struct gang *gang)
{
	if (gang->speaker != NULL && gang->speaker->terms.topology.len > 0)
		return gang->speaker->terms.topology;
	for (const struct part *part = gang->parts; part != NULL; part = part->next) {
		if (part->in.topology.len > 0)
			return part->in.topology;
	}
	return STR("");
}

int64_t gang_expiry_ms(const struct gang *gang)
{
	int64_t expiry_s = gang->speaker == NULL ? 0 : gang->speaker->terms.expiry_s;
	for (const struct part *part = gang->parts; part != NULL && expiry_s == 0;
	     part = part->next)
		expiry_s = part->in.expiry_s;
	return 1000 * (expiry_s > 0 ? expiry_s : SCHED_GANG_EXPIRY_S);
}

int64_t gang_running(const struct gang *gang)
{
	int64_t count = 0;
	const struct link *head = &gang->members;
	for (const struct link *at = head->next; at != head && gang->on_node_count > 0;
	     at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct member, in_gang)->pod;
		count += pod->node != NULL && !pod->is_terminating && pod->fate == NULL;
	}
	return count;
}

int64_t gang_spare(const struct gang *gang)
{
	return max_i64(gang_running(gang) - max_i64(gang_min(gang), 1), 0);
}

static const struct member *first_of_group(const struct member *member)
{
	const struct map *groups = member->gang->groups;
	const struct member *first = groups == NULL ? NULL : map_find(groups, member->terms.group);
	return first == NULL ? member : first;
}

// The member is in its gang, behind those that were noted before it.
static void note_group(const struct sched *sched, struct member *member)
{
	struct gang *gang = member->gang;
	if (member->terms.group.len == 0)
		return;
	if (gang->groups == NULL)
		gang->groups = map_new_borrowing(sched->seed);
	if (map_find(gang->groups, member->terms.group) == NULL)
		(void)map_set(gang->groups, member->terms.group, member);
}

// The next of its group is the first from now on; the member is not in its gang any more.
static void forget_group(const struct member *member)
{
	const struct gang *gang = member->gang;
	if (member->terms.group.len == 0 || first_of_group(member) != member)
		return;
	(void)map_remove(gang->groups, member->terms.group);
	for (struct link *at = gang->members.next; at != &gang->members; at = at->next) {
		struct member *other = LINK_OF(at, struct member, in_gang);
		if (!str_eq(other->terms.group, member->terms.group))
			continue;
		(void)map_set(gang->groups, other->terms.group, other);
		return;
	}
}

// The first of the terms in which it differs from those before it.
static gang_term differs_in(const struct member *member, int64_t *ret_theirs, int64_t *ret_own)
{
	const struct sched_gang_in *own = &member->terms, *theirs = &member->gang->speaker->terms;
	const int64_t pairs[GANG_TERM_TOPOLOGY][2] = { { theirs->min, own->min },
						       { theirs->max, own->max },
						       { theirs->expiry_s, own->expiry_s } };
	for (int term = 0; term < GANG_TERM_TOPOLOGY; term++) {
		*ret_theirs = pairs[term][0];
		*ret_own = pairs[term][1];
		if (*ret_theirs != *ret_own)
			return (gang_term)term;
	}
	if (!str_eq(own->topology, theirs->topology))
		return GANG_TERM_TOPOLOGY;
	if (own->group.len > 0) {
		*ret_theirs = first_of_group(member)->terms.group_min;
		*ret_own = own->group_min;
		if (*ret_theirs != *ret_own)
			return GANG_TERM_GROUP_MIN;
	}
	*ret_theirs = SCHED_GANG_MAX;
	*ret_own = (int64_t)member->gang->member_count;
	bool is_one_too_many = member->is_extra && member->pod->node == NULL &&
			       member != member->gang->speaker;
	return is_one_too_many ? GANG_TERM_MEMBERS : GANG_TERMS;
}

bool gang_refuses(const struct pod *pod, struct sched_facts *ret_facts)
{
	const struct member *member = pod->member;
	int64_t theirs, own;
	if (member == NULL || !member->disagrees)
		return false;
	gang_term term = differs_in(member, &theirs, &own);
	*ret_facts = (struct sched_facts){ .count = 0 };
	struct sched_fact *fact =
		facts_add(ret_facts, SCHED_CODE_GANG_CONTRADICTION, (uint32_t)term);
	fact->need = theirs;
	fact->have = own;
	return true;
}

// Whose word counts: who runs already, else who came first.
static bool speaks_before(const struct member *a, const struct member *b)
{
	bool is_there = a->pod->node != NULL, is_other_there = b->pod->node != NULL;
	if (is_there != is_other_there)
		return is_there;
	if (a->pod->key.created_s != b->pod->key.created_s)
		return a->pod->key.created_s < b->pod->key.created_s;
	return str_cmp(a->pod->key.name, b->pod->key.name) < 0;
}

static int64_t count_bound(const struct gang *gang)
{
	int64_t count = 0;
	const struct link *head = &gang->members;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct member, in_gang)->pod;
		count += pod->node != NULL && pod->state == SCHED_STATE_BOUND;
	}
	return count;
}

// Whether it has ever been whole since its first member came to a node; if not, it is given back
// when it expires.
static void note_whole(struct sched *sched, struct gang *gang)
{
	int64_t least = gang_min(gang);
	if (gang->on_node_count == 0)
		gang->was_whole = false;
	else if (!gang->was_whole)
		gang->was_whole = least > 0 && count_bound(gang) >= least;
	bool is_begun = least > 0 && gang->on_node_count > 0 && !gang->was_whole;
	if (is_begun && !link_is_in(&gang->in_begun)) {
		gang->begun_ms = sched->now_ms;
		link_add(&sched->gangs->begun, &gang->in_begun);
	} else if (!is_begun) {
		drop_if(&gang->in_begun);
	}
}

static void apply(struct sched *sched, struct member *member)
{
	int64_t theirs, own;
	struct pod *pod = member->pod;
	bool did = member->disagrees;
	member->disagrees = differs_in(member, &theirs, &own) != GANG_TERMS;
	if (member->disagrees == did || pod->node != NULL)
		return;
	if (member->disagrees && pod->state == SCHED_STATE_WAITING) {
		struct sched_facts facts;
		bool is_refused = gang_refuses(pod, &facts);
		ASSERT(is_refused);
		pod_refuse(sched, pod, &facts);
	} else if (!member->disagrees && pod->state == SCHED_STATE_REFUSED &&
		   pod->shape->spec->refusal_count == 0) {
		pod_leave(sched, pod);
		pod_set_state(sched, pod, SCHED_STATE_WAITING);
		pod_wait(sched, pod, PLACE_GANG);
	}
}

// Terms or members are others than those for which it was found that they never fit, or that nobody
// can make room for them.
static void changed(struct sched *sched, struct gang *gang)
{
	gang->unfit_gen = 0;
	gang->asking.again = (struct again){ .failures = 0 };
	gang_activate(sched, gang);
}

static void settle(struct sched *sched, struct gang *gang)
{
	struct link *head = &gang->members;
	size_t count = 0;
	gang->speaker = NULL;
	map_free(gang->groups);
	gang->groups = NULL;
	for (struct link *at = head->next; at != head; at = at->next) {
		struct member *member = LINK_OF(at, struct member, in_gang);
		member->is_extra = count++ >= SCHED_GANG_MAX;
		note_group(sched, member);
		if (gang->speaker == NULL || speaks_before(member, gang->speaker))
			gang->speaker = member;
	}
	for (struct link *at = head->next; at != head; at = at->next)
		apply(sched, LINK_OF(at, struct member, in_gang));
	note_whole(sched, gang);
	changed(sched, gang);
}

static bool has_dissent(const struct gang *gang)
{
	const struct link *head = &gang->members;
	for (const struct link *at = head->next; at != head; at = at->next) {
		if (LINK_OF((uintptr_t)at, struct member, in_gang)->disagrees)
			return true;
	}
	return false;
}

// ---- coming and going

static bool terms_equal(const struct sched_gang_in *a, const struct sched_gang_in *b)
{
	return a->min == b->min && a->max == b->max && a->expiry_s == b->expiry_s &&
	       a->group_min == b->group_min && str_eq(a->topology, b->topology) &&
	       str_eq(a->group, b->group);
}

static bool is_none(const struct sched_gang_in *in) { return in == NULL || in->name.len == 0; }

bool gang_differs(const struct pod *pod, const struct sched_gang_in *in)
{
	const struct member *member = pod->member;
	if (member == NULL || is_none(in))
		return member != NULL || !is_none(in);
	return member->gang->kind != in->kind || !str_eq(member->terms.name, in->name) ||
	       !terms_equal(&member->terms, in);
}

static void copy_terms(struct member *member, const struct sched_gang_in *in)
{
	const struct str texts[3] = { in->name, in->topology, in->group };
	free(member->texts);
	member->texts = core_texts_copy(texts, ARRAY_COUNT(texts));
	member->terms = *in;
	member->terms.name = member->texts[0];
	member->terms.topology = member->texts[1];
	member->terms.group = member->texts[2];
}

static void leave(struct sched *sched, struct pod *pod)
{
	struct member *member = pod->member;
	if (member == NULL)
		return;
	struct gang *gang = member->gang;
	ASSERT(!tree_has(&pod->wait->in_shape) || pod->place != PLACE_GANG);
	if (pod->node != NULL)
		gang_moved(sched, pod, -1);
	link_drop(&member->in_gang);
	forget_group(member);
	gang->member_count--;
	pod->member = NULL;
	if (gang->speaker == member || has_dissent(gang)) // others may be right now
		settle(sched, gang);
	free(member->texts);
	free(member);
	changed(sched, gang);
	release(sched->gangs, gang);
}

void gang_leave(struct sched *sched, struct pod *pod)
{
	drop_if(&pod->wait->in_binds);
	leave(sched, pod);
}

void gang_join(struct sched *sched, struct pod *pod, const struct sched_gang_in *in)
{
	AUTO(buf_done) struct buf text = { .limit = KEY_MAX_BYTES };
	if (is_none(in)) {
		leave(sched, pod);
		return;
	}
	struct str namespace_ = pod->key.namespace_;
	struct str key = put_key(in->kind, namespace_, in->name, &text);
	if (pod->member != NULL && !str_eq(pod->member->gang->key, key))
		leave(sched, pod);
	struct member *member = pod->member;
	bool is_new = member == NULL;
	if (is_new) {
		member = core_alloc(1, sizeof *member);
		member->pod = pod;
		member->gang = get(sched->gangs, key, namespace_.len);
		link_add(&member->gang->members, &member->in_gang);
		member->is_extra = ++member->gang->member_count > SCHED_GANG_MAX;
		pod->member = member;
		copy_terms(member, in);
		if (pod->node != NULL)
			gang_moved(sched, pod, 1);
	} else {
		copy_terms(member, in);
	}
	struct gang *gang = member->gang;
	bool speaks = gang->speaker == NULL || gang->speaker == member ||
		      speaks_before(member, gang->speaker);
	if (speaks || !is_new) { // others may follow the first of its sub-group
		settle(sched, gang);
	} else {
		note_group(sched, member);
		apply(sched, member);
	}
}

void gang_moved(struct sched *sched, struct pod *pod, int change)
{
	struct gang *gang = gang_of(pod);
	if (gang == NULL)
		return;
	gang->on_node_count += (size_t)change;
	ASSERT(gang->on_node_count <= gang->member_count);
	note_whole(sched, gang);
	gang->unfit_gen = 0;
	if (change < 0)
		gang_activate(sched, gang);
}

void gang_bound(struct sched *sched, struct pod *pod)
{
	if (pod->member != NULL)
		note_whole(sched, pod->member->gang);
}

// ---- objects beside the pods

void sched_gang_part_set(struct sched *sched, const struct sched_gang_part *in)
{
	AUTO(buf_done) struct buf text = { .limit = KEY_MAX_BYTES };
	const struct str texts[4] = { in->key, in->namespace_, in->name, in->topology };
	struct str key = put_key(in->kind, in->namespace_, in->name, &text);
	struct part *old = map_find(sched->gangs->parts, in->key);
	bool is_same = old != NULL && str_eq(old->gang->key, key) && old->in.min == in->min &&
		       old->in.expected == in->expected && old->in.expiry_s == in->expiry_s &&
		       str_eq(old->in.topology, in->topology);
	if (is_same)
		return;
	sched_gang_part_remove(sched, in->key);
	struct part *part = core_alloc(1, sizeof *part);
	part->texts = core_texts_copy(texts, ARRAY_COUNT(texts));
	part->in = *in;
	part->in.key = part->texts[0];
	part->in.namespace_ = part->texts[1];
	part->in.name = part->texts[2];
	part->in.topology = part->texts[3];
	part->gang = get(sched->gangs, key, in->namespace_.len);
	part->next = part->gang->parts;
	part->gang->parts = part;
	(void)map_set(sched->gangs->parts, part->in.key, part);
	note_whole(sched, part->gang);
	changed(sched, part->gang);
}

void sched_gang_part_remove(struct sched *sched, struct str key)
{
	struct part *part = map_remove(sched->gangs->parts, key);
	if (part == NULL)
		return;
	struct gang *gang = part->gang;
	unlink_part(part);
	free_part(part);
	note_whole(sched, gang);
	changed(sched, gang);
	release(sched->gangs, gang);
}

// ---- waiting

void gang_activate(struct sched *sched, struct gang *gang)
{
	drop_if(&gang->in_parked);
	if (tree_has(&gang->active) || tree_count(&gang->waiting) == 0)
		return;
	tree_insert(&sched->gangs->active, &gang->active, tree_first(&gang->waiting)->key);
}

static void deactivate(struct sched *sched, struct gang *gang)
{
	if (tree_has(&gang->active))
		tree_remove(&sched->gangs->active, &gang->active);
}

// The gang stands in the tree under its first member's key, so it leaves and comes back.
void gang_add_waiting(struct sched *sched, struct pod *pod)
{
	struct gang *gang = gang_of(pod);
	deactivate(sched, gang);
	tree_insert(&gang->waiting, &pod->wait->in_shape, &pod->key);
	sched->gangs->held_count++;
	changed(sched, gang);
}

void gang_drop_waiting(struct sched *sched, struct pod *pod)
{
	struct gang *gang = gang_of(pod);
	deactivate(sched, gang);
	tree_remove(&gang->waiting, &pod->wait->in_shape);
	sched->gangs->held_count--;
	changed(sched, gang);
}

static const char *check_one(const struct gang *gang)
{
	size_t members = 0, on_node = 0, waiting = 0;
	const struct link *head = &gang->members;
	for (const struct link *at = head->next; at != head; at = at->next) {
		const struct member *member = LINK_OF((uintptr_t)at, struct member, in_gang);
		members++;
		on_node += member->pod->node != NULL;
		waiting += member->pod->place == PLACE_GANG;
		if (member->pod->member != member)
			return "a gang names a pod that is not its member";
		const struct member *first = first_of_group(member);
		if (!str_eq(first->terms.group, member->terms.group) || first->gang != gang)
			return "a gang names one that is not of the sub-group";
	}
	if (members != gang->member_count || on_node != gang->on_node_count ||
	    waiting != tree_count(&gang->waiting))
		return "a gang's counts are not those of its members";
	if (waiting > 0 && !tree_has(&gang->active) && !link_is_in(&gang->in_parked))
		return "a gang that waits is neither active nor parked";
	return NULL;
}

const char *gang_check(const struct sched *sched)
{
	struct str key;
	void *value;
	const char *broken = NULL;
	for (size_t i = 0; broken == NULL && map_next(sched->gangs->by_key, &i, &key, &value);)
		broken = check_one(value);
	return broken;
}
