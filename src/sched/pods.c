// SPDX-License-Identifier: Apache-2.0
// The ledger of pods: what they take from nodes, where they wait.
#include "sched/deadline.h"
#include "sched/gang.h"
#include "sched/hold.h"
#include "sched/lasting.h"
#include "sched/move.h"
#include "sched/queueing.h"
#include "sched/stock.h"
#include "sched/victims.h"
#include "sched/weigh.h"

#include <stdlib.h>

static const struct waiting NOT_WAITING; // of every pod that is bound

// namespace/name lies in one piece in the pod's texts.
static struct str name_key(const struct pod *pod)
{
	return (struct str){ pod->key.namespace_.data,
			     pod->key.namespace_.len + 1 + pod->key.name.len };
}

struct pod *pod_find(const struct sched *sched, struct str namespace_, struct str name)
{
	AUTO(buf_done) struct buf text = { .limit = 4096 };
	buf_put(&text, namespace_);
	buf_put_byte(&text, '/');
	buf_put(&text, name);
	return map_find(sched->pod_by_name, buf_str(&text));
}

void pod_set_facts(struct pod *pod, const struct sched_facts *facts)
{
	if (facts == NULL) {
		free(pod->facts);
		pod->facts = NULL;
		return;
	}
	if (pod->facts == NULL)
		pod->facts = core_alloc(1, sizeof *pod->facts);
	*pod->facts = *facts;
}

void pod_add_amounts(struct sched *sched, struct pod *pod, int64_t sign)
{
	const struct sched_spec *spec = pod->shape->spec;
	uint32_t slot = pod->node->slot;
	shape_ready_dims(sched, pod->shape);
	sched->columns[DIM_PODS].used[slot] += sign;
	for (size_t i = 0; i < spec->amount_count; i++) {
		uint32_t dim = pod->shape->dims[i];
		if (dim != DIM_NONE)
			sched->columns[dim].used[slot] += sign * spec->amounts[i].amount;
	}
	ASSERT(sched->columns[DIM_PODS].used[slot] >= 0);
	queueing_use(sched, pod, sign);
}

// Few different values exist, so that a plain list does.
static void count_priority(struct sched *sched, int64_t value, int change)
{
	size_t i = 0;
	while (i < sched->priority_count && sched->priorities[i].value != value)
		i++;
	if (i == sched->priority_count) {
		ASSERT(change > 0);
		if (i == sched->priority_cap) {
			size_t cap = max_size(8, 2 * sched->priority_cap);
			sched->priorities =
				core_grow(sched->priorities, i, cap, sizeof *sched->priorities);
			sched->priority_cap = cap;
		}
		sched->priorities[sched->priority_count++] = (struct priority){ value, 0 };
	}
	sched->priorities[i].pod_count += (size_t)change;
	if (sched->priorities[i].pod_count == 0)
		sched->priorities[i] = sched->priorities[--sched->priority_count];
}

bool pod_has_lower(const struct sched *sched, int64_t priority)
{
	for (size_t i = 0; i < sched->priority_count; i++) {
		if (sched->priorities[i].value < priority)
			return true;
	}
	return false;
}

// Whether the pod is among those that keep others away; who waits is looked at anew then.
static void set_apart(struct sched *sched, struct pod *pod, bool is_apart)
{
	if (is_apart == link_is_in(&pod->in_apart))
		return;
	if (is_apart)
		link_add(&sched->apart, &pod->in_apart);
	else
		link_drop(&pod->in_apart);
	sched->apart_gen++;
	sched->wakes_all = true;
}

void pod_put_on(struct sched *sched, struct pod *pod, struct node *node)
{
	ASSERT(pod->node == NULL);
	pod->node = node;
	pod->why = (struct why){ .term = NULL };
	if (sched->why.pod == pod && sched->why.slot == node->slot)
		pod->why = sched->why;
	pod_add_amounts(sched, pod, 1);
	weigh_touch(sched->weigh, node->slot);
	link_add(&node->pods, &pod->on_node);
	stock_use(sched, pod, 1);
	set_apart(sched, pod, pod->shape->spec->apart_count > 0);
}

void pod_settle_on(struct sched *sched, struct pod *pod)
{
	struct node *node = pod->node;
	count_priority(sched, pod->key.priority, 1);
	forecast_end(sched, pod);
	gang_moved(sched, pod, 1);
	sched->wakes_near = true;
	core_load_changed(sched, node);
	if (node->reserved != NULL) // what kept others away may be its load now
		core_touch(sched, node);
}

void pod_account(struct sched *sched, struct pod *pod, struct node *node)
{
	pod_put_on(sched, pod, node);
	pod_settle_on(sched, pod);
}

void pod_take_off(struct sched *sched, struct pod *pod)
{
	struct node *node = pod->node;
	ASSERT(node != NULL);
	pod_add_amounts(sched, pod, -1);
	weigh_touch(sched->weigh, node->slot);
	link_drop(&pod->on_node);
	stock_use(sched, pod, -1);
	stock_unassume(sched, pod);
	set_apart(sched, pod, false);
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].holder == pod)
			node->devices[i].holder = NULL;
	}
	hold_release(pod);
	pod->node = NULL;
}

void pod_unaccount(struct sched *sched, struct pod *pod)
{
	struct node *node = pod->node;
	pod_take_off(sched, pod);
	count_priority(sched, pod->key.priority, -1);
	gang_moved(sched, pod, -1);
	core_touch(sched, node);
	core_load_changed(sched, node);
	core_node_release(sched, node);
}

void pod_set_state(struct sched *sched, struct pod *pod, sched_state state)
{
	ASSERT(sched->state_counts[pod->state] > 0);
	sched->state_counts[pod->state]--;
	sched->state_counts[state]++;
	pod->state = state;
}

void pod_tell(struct sched *sched, struct pod *pod)
{
	if (!link_is_in(&pod->wait->in_tell))
		link_add(&sched->tell, &pod->wait->in_tell);
}

static void leave_place(struct sched *sched, struct pod *pod)
{
	if (pod->place == PLACE_SHAPE)
		shape_drop_pod(sched, pod);
	else if (pod->place == PLACE_GANG)
		gang_drop_waiting(sched, pod);
	else if (pod->place != PLACE_NONE)
		link_drop(&pod->wait->in_place);
	pod->place = PLACE_NONE;
}

// Into the queue if it is not there, and into the place.
void pod_wait(struct sched *sched, struct pod *pod, pod_place place)
{
	ASSERT(place != PLACE_NONE && pod->state == SCHED_STATE_WAITING && pod->node == NULL);
	if (place == PLACE_SHAPE && pod->member != NULL)
		place = PLACE_GANG;
	leave_place(sched, pod);
	if (!tree_has(&pod->wait->in_queue))
		queueing_enter(sched, pod);
	pod->place = place;
	nominate_link(sched, pod);
	if (place == PLACE_SHAPE)
		shape_add_pod(sched, pod);
	else if (place == PLACE_GANG)
		gang_add_waiting(sched, pod);
	else
		link_add(place == PLACE_HELD ? &sched->held : &sched->backoff,
			 &pod->wait->in_place);
	if (place == PLACE_SHAPE && link_is_in(&pod->shape->in_parked)) {
		reserve_parked(sched, pod); // it may stand before those that were there
		preempt_parked(sched, &pod->shape->again);
		if (reserve_passes(sched, pod))
			shape_activate(sched, pod->shape);
	}
	deadline_enter(sched, pod);
	pod_tell(sched, pod);
}

void pod_leave(struct sched *sched, struct pod *pod)
{
	leave_place(sched, pod);
	nominate_unlink(sched, pod);
	reserve_leave(sched, pod);
	preempt_leave(sched, pod);
	deadline_leave(sched, pod);
	queueing_exit(sched, pod);
	if (link_is_in(&pod->wait->in_tell))
		link_drop(&pod->wait->in_tell);
	pod_set_facts(pod, NULL);
	if (pod->wait->avoid != NULL)
		pod->wait->avoid = NULL;
}

// It never waits again.
static void end_waiting(struct pod *pod)
{
	struct waiting *wait = pod->wait;
	if (wait == &NOT_WAITING)
		return;
	ASSERT(pod->place == PLACE_NONE && !tree_has(&wait->in_queue));
	ASSERT(!link_is_in(&wait->in_nominated) && !link_is_in(&wait->in_scored));
	ASSERT(wait->head == NULL && wait->keep == NULL && wait->due == NULL);
	if (link_is_in(&wait->in_binds))
		link_drop(&wait->in_binds);
	if (link_is_in(&wait->in_tell))
		link_drop(&wait->in_tell);
	forecast_drop(pod);
	free((void *)(uintptr_t)wait->nominated.data);
	free(wait);
	pod->wait = (struct waiting *)(uintptr_t)&NOT_WAITING;
}

// How long it will run, as far as anybody knows when it comes.
static void expect(const struct sched *sched, struct pod *pod, const struct sched_pod_in *in)
{
	if (sched->learned != NULL)
		pod->kind = sched_duration_kind(in);
	struct sched_duration expected = lasting_of(sched, in, &pod->kind);
	pod->said_s = in->spec->duration_s;
	pod->max_run_s = in->max_run_s;
	pod->duration_source = expected.source;
	pod->key.duration_s = expected.seconds;
}

static struct waiting *waiting_new(struct pod *pod)
{
	struct waiting *wait = core_alloc(1, sizeof *wait);
	wait->pod = pod;
	return wait;
}

static struct str put_text(char **at, struct str text)
{
	struct str copy = { *at, text.len };
	if (text.len > 0)
		memcpy(*at, text.data, text.len);
	*at += text.len;
	return copy;
}

struct pod *pod_new(struct sched *sched, const struct sched_pod_in *in)
{
	size_t text_bytes = in->namespace_.len + 1 + in->name.len + in->uid.len + in->user.len;
	struct pod *pod = core_alloc(1, sizeof *pod + text_bytes);
	char *at = pod->texts;
	bool is_bound = in->node.len > 0;
	pod->wait = is_bound ? (struct waiting *)(uintptr_t)&NOT_WAITING : waiting_new(pod);
	pod->key = (struct tree_key){ .priority = in->priority,
				      .created_s = preempt_inherit(sched, in) };
	pod->key.namespace_ = put_text(&at, in->namespace_);
	(void)put_text(&at, STR("/"));
	pod->key.name = put_text(&at, in->name);
	pod->uid = put_text(&at, in->uid);
	pod->user_name = put_text(&at, in->user);
	expect(sched, pod, in);
	pod->labels = core_labels_copy(&in->labels);
	pod->stay = in->stay;
	pod->made_s = in->created_s;
	pod->since_ms = sched->now_ms;
	pod->shape = shape_ref(sched, in);
	queueing_join(sched, pod);
	pod->state = SCHED_STATE_GATED;
	sched->state_counts[pod->state]++;
	(void)map_set(sched->pod_by_uid, pod->uid, pod);
	gang_join(sched, pod, in->gang);
	(void)map_set(sched->pod_by_name, name_key(pod), pod);
	return pod;
}

static bool labels_equal(const struct sched_labels *a, const struct sched_labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!str_eq(a->items[i].key, b->items[i].key) ||
		    !str_eq(a->items[i].value, b->items[i].value))
			return false;
	}
	return true;
}

// When it will end: by its own word, or soon when its deletion has begun.
void pod_expect(struct sched *sched, struct pod *pod, int64_t bound_ms)
{
	int64_t duration_ms = 1000 * pod->key.duration_s;
	int64_t grace_s = pod->stay.grace_s == 0 ? SCHED_GRACE_S : pod->stay.grace_s;
	pod->bound_ms = bound_ms;
	pod->end_ms = duration_ms == 0 ? SCHED_NEVER_MS : bound_ms + duration_ms;
	if (pod->is_terminating || pod->fate != NULL)
		pod->end_ms = min_i64(pod->end_ms, pod->leaving_ms + 1000 * grace_s);
	if (pod->node != NULL)
		core_load_changed(sched, pod->node);
}

// The pod keeps its node and its devices; only what it takes and is called changes.
static void swap_shape(struct sched *sched, struct pod *pod, const struct sched_pod_in *in)
{
	struct shape *shape = shape_ref(sched, in);
	if (pod->node != NULL) {
		pod_add_amounts(sched, pod, -1);
		stock_use(sched, pod, -1);
		set_apart(sched, pod, false);
		core_touch(sched, pod->node);
	}
	shape_unref(sched, pod->shape);
	pod->shape = shape;
	if (pod->queue != shape->queue) {
		queueing_leave(sched, pod);
		queueing_join(sched, pod);
	}
	if (pod->node != NULL) {
		pod_add_amounts(sched, pod, 1);
		stock_use(sched, pod, 1);
		set_apart(sched, pod, shape->spec->apart_count > 0);
		sched->wakes_all = true;
		pod_expect(sched, pod, pod->bound_ms);
	}
}

void pod_rehome(struct sched *sched, struct pod *pod)
{
	struct sched_spec spec = *pod->shape->spec;
	struct sched_pod_in in = { .uid = pod->uid,
				   .namespace_ = pod->key.namespace_,
				   .name = pod->key.name,
				   .user = pod->user_name,
				   .labels = pod->labels,
				   .priority = pod->asked_priority,
				   .stay = pod->stay,
				   .spec = &spec };
	bool waits = pod->state == SCHED_STATE_WAITING;
	spec.duration_s = pod->said_s;
	in.priority = queueing_priority(sched, &in);
	if (waits)
		pod_leave(sched, pod);
	if (pod->node != NULL)
		count_priority(sched, pod->key.priority, -1);
	swap_shape(sched, pod, &in);
	if (pod->member != NULL) // what was found for its shape was for another one
		gang_of(pod)->is_untold = true;
	pod->key.priority = in.priority;
	if (pod->node != NULL)
		count_priority(sched, pod->key.priority, 1);
	if (waits)
		pod_wait(sched, pod, PLACE_SHAPE);
}

// Takes over labels, spec and flags; true when something that decides placement is different.
static bool take_over(struct sched *sched, struct pod *pod, const struct sched_pod_in *in)
{
	struct shape *shape = shape_ref(sched, in);
	bool is_same_shape = shape == pod->shape;
	bool is_same_labels = labels_equal(&pod->labels, &in->labels);
	bool is_same_gang = !gang_differs(pod, in->gang);
	bool is_same_key = pod->key.priority == in->priority && pod->made_s == in->created_s &&
			   pod->said_s == in->spec->duration_s && pod->max_run_s == in->max_run_s;
	shape_unref(sched, shape);
	pod->is_ours = in->is_ours;
	bool begins_to_end = in->is_terminating && !pod->is_terminating;
	pod->is_terminating = in->is_terminating;
	if (begins_to_end)
		pod->leaving_ms = sched->now_ms;
	if (begins_to_end && pod->node != NULL) // topology spread counts it no longer
		sched->wakes_near = true;
	if (pod->stay.checkpoint_ms != in->stay.checkpoint_ms && move_is_on(sched))
		preempt_changed(sched); // it loses less by a move now
	pod->stay = in->stay;
	if (begins_to_end && pod->node != NULL)
		pod_expect(sched, pod, pod->bound_ms);
	if (is_same_shape && is_same_labels && is_same_key && is_same_gang)
		return false;
	if (pod->node == NULL)
		pod_leave(sched, pod);
	if (!is_same_shape)
		swap_shape(sched, pod, in);
	if (!is_same_labels) {
		free(pod->labels.items);
		pod->labels = core_labels_copy(&in->labels);
		sched->wakes_all = sched->wakes_all || pod->node != NULL;
	}
	if (pod->node == NULL) { // Kubernetes lets nobody change the priority of a running pod
		pod->key.priority = in->priority;
		if (pod->made_s != in->created_s)
			pod->key.created_s = pod->made_s = in->created_s;
	}
	if (!is_same_gang)
		gang_join(sched, pod, in->gang);
	if (!is_same_key)
		expect(sched, pod, in);
	if (pod->node != NULL)
		pod_expect(sched, pod, pod->bound_ms);
	return true;
}

static void adopt_devices(struct pod *pod, const struct sched_pod_in *in)
{
	for (size_t i = 0; i < in->device_count; i++) {
		struct device *device = core_device_get(pod->node, in->device_uuids[i]);
		if (device != NULL && device->holder == NULL)
			device->holder = pod;
	}
	hold_adopt(pod, in->holds, in->hold_count);
}

static void set_bound(struct sched *sched, struct pod *pod, const struct sched_pod_in *in)
{
	struct node *node = core_node_get(sched, in->node);
	if (pod->node != node) {
		pod_leave(sched, pod);
		if (pod->node != NULL)
			pod_unaccount(sched, pod);
		node = core_node_get(sched, in->node); // the line above may have freed it
		pod_expect(sched, pod, in->bound_ms == 0 ? sched->now_ms : in->bound_ms);
		pod_account(sched, pod, node);
	}
	adopt_devices(pod, in);
	if (pod->state != SCHED_STATE_BOUND)
		preempt_changed(sched);
	pod_set_state(sched, pod, SCHED_STATE_BOUND);
	end_waiting(pod);
	gang_bound(sched, pod);
}

void pod_refuse(struct sched *sched, struct pod *pod, const struct sched_facts *facts)
{
	pod_leave(sched, pod);
	pod_set_facts(pod, facts);
	pod_set_state(sched, pod, SCHED_STATE_REFUSED);
	pod_tell(sched, pod);
}

static void set_refused(struct sched *sched, struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	struct sched_facts facts = { .count = 0 };
	for (size_t i = 0; i < spec->refusal_count; i++)
		(void)facts_add(&facts, (sched_code)spec->refusals[i].code, (uint32_t)i);
	pod_refuse(sched, pod, &facts);
}

static void set_gated(struct sched *sched, struct pod *pod)
{
	struct sched_facts facts = { .count = 0 };
	(void)facts_add(&facts, SCHED_CODE_SCHEDULING_GATED, 0);
	pod_leave(sched, pod);
	pod_set_facts(pod, &facts);
	pod_set_state(sched, pod, SCHED_STATE_GATED);
	pod_tell(sched, pod);
}

static void set_waiting(struct sched *sched, struct pod *pod, const struct sched_pod_in *in,
			bool is_changed)
{
	struct sched_facts facts;
	sched_state state = SCHED_STATE_WAITING;
	bool contradicts = gang_refuses(pod, &facts);
	if (pod->shape->spec->refusal_count > 0)
		state = SCHED_STATE_REFUSED;
	else if (in->is_gated)
		state = SCHED_STATE_GATED;
	else if (contradicts)
		state = SCHED_STATE_REFUSED;
	if (!is_changed && state == pod->state)
		return;
	if (state == SCHED_STATE_GATED) {
		set_gated(sched, pod);
	} else if (state == SCHED_STATE_WAITING) {
		pod_leave(sched, pod);
		pod_set_state(sched, pod, state);
		pod_wait(sched, pod, PLACE_SHAPE);
	} else if (pod->shape->spec->refusal_count > 0) {
		set_refused(sched, pod);
	} else {
		pod_refuse(sched, pod, &facts);
	}
}

void sched_pod_set(struct sched *sched, const struct sched_pod_in *asked)
{
	struct sched_pod_in own = *asked, *in = &own;
	struct pod *pod = map_find(sched->pod_by_uid, in->uid);
	in->priority = queueing_priority(sched, asked);
	bool is_new = pod == NULL;
	struct pod *namesake = pod_find(sched, in->namespace_, in->name);
	if (namesake != NULL && namesake != pod)
		sched_pod_remove(sched, namesake->uid); // deleted and made again under its name
	if (in->node.len == 0 && !in->is_ours) {
		sched_pod_remove(sched, in->uid);
		return;
	}
	bool is_changed = is_new;
	if (is_new) {
		pod = pod_new(sched, in);
		if (in->is_ours && in->spec->share_count == 0)
			weigh_note(sched->weigh, in->spec);
		pod->is_ours = in->is_ours;
		pod->is_terminating = in->is_terminating;
		pod->leaving_ms = sched->now_ms;
		if (in->is_terminating && in->stay.is_evicted)
			preempt_bequeath(sched, pod);
	} else {
		in->namespace_ =
			pod->key.namespace_; // neither it nor who it is counted for changes
		in->user = pod->user_name;
		is_changed = take_over(sched, pod, in);
	}
	pod->asked_priority = asked->priority;
	bool is_moved = pod->deadline_s != in->deadline_s;
	pod->deadline_s = in->deadline_s;
	if (in->node.len > 0)
		set_bound(sched, pod, in);
	else if (pod->state == SCHED_STATE_BOUND || pod->state == SCHED_STATE_ASSUMED)
		return; // the bind is on its way; its result or the next event of the watch tells
	else
		set_waiting(sched, pod, in, is_changed);
	if (is_moved && pod->state == SCHED_STATE_WAITING) {
		deadline_enter(sched, pod);
		pod->wait->told_hash = 0;
		pod_tell(sched, pod);
	}
	if (is_new)
		berth_arrived(sched, pod);
	bool is_told = in->node.len == 0 && !preempt_keeps(pod);
	if (is_told && !str_eq(pod->wait->nominated, in->nominated)) {
		nominate_set(sched, pod, in->nominated);
		preempt_nominated(sched, pod);
	}
}

void sched_pod_remove(struct sched *sched, struct str uid)
{
	struct pod *pod = map_find(sched->pod_by_uid, uid);
	if (pod == NULL)
		return;
	if (pod->fate != NULL)
		berth_left(sched, pod);
	pod_leave(sched, pod);
	if (pod->node != NULL)
		pod_unaccount(sched, pod);
	gang_leave(sched, pod);
	sched->state_counts[pod->state]--;
	(void)map_remove(sched->pod_by_name, name_key(pod));
	(void)map_remove(sched->pod_by_uid, pod->uid);
	shape_unref(sched, pod->shape);
	queueing_leave(sched, pod);
	end_waiting(pod);
	free(pod->fate);
	free(pod->labels.items);
	free(pod);
}
