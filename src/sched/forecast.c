// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast.h"

#include "sched/gang.h"
#include "sched/queueing.h"

#include <stdlib.h>

// A miss widens by so much that with one miss in twenty the range stays as it is, in thousandths.
enum { MISS_WIDENS = 1100, HIT_NARROWS = 60, WIDEN_MAX = 20000, WIDEN_FIRST = 2000 };
enum { LOW = 100, HIGH = 900, REACHES = 16, SAID_PERMILLE = 900 };
enum {
	AHEAD_MAX = 4096,
	ITEMS_A_MS = 100,
	LOOKS = 4,
	MS_PER_S = 1000,
	RATIO_ONE = 1000,
	SLACK_S = 10
};

struct awaited {
	struct link in_open; // of those that are not judged yet
	struct learn_kind kind;
	forecast_size size;
	size_t reach; // of drain_s, 4 to a step
	int64_t since_ms;
	int64_t drain_s;       // until those before it and it would have started
	int64_t low_s, high_s; // guessed when it began to wait; high_s -1: nothing was known
};
struct tally { // of guesses
	int64_t judged, inside;
};
struct forecast {
	struct learn *ratios; // of what pods waited to what was reckoned
	struct link open;
	int64_t next_ms; // when one more may be reckoned and judged
	struct tally tallies[FORECAST_SIZES];
	int64_t widen[FORECAST_SIZES][REACHES]; // of ranges, both ways
};

struct forecast *forecast_new(void)
{
	struct forecast *forecast = core_alloc(1, sizeof *forecast);
	forecast->ratios = learn_new();
	link_head_init(&forecast->open);
	for (size_t i = 0; i < FORECAST_SIZES * REACHES; i++)
		forecast->widen[i / REACHES][i % REACHES] = WIDEN_FIRST;
	return forecast;
}

void forecast_free(struct forecast *forecast)
{
	if (forecast != NULL)
		learn_free(forecast->ratios);
	free(forecast);
}

static int64_t milli_of(const struct pod *pod)
{
	if (pod->member == NULL)
		return pod->shape->gpu_milli;
	return (int64_t)tree_count(&gang_of(pod)->waiting) * pod->shape->gpu_milli;
}

static forecast_size size_of(int64_t milli)
{
	if (milli < SHARE_WHOLE_MILLI)
		return FORECAST_SHARE;
	if (milli <= SHARE_WHOLE_MILLI)
		return FORECAST_ONE;
	if (milli <= 4 * SHARE_WHOLE_MILLI)
		return FORECAST_FEW;
	return milli <= 8 * SHARE_WHOLE_MILLI ? FORECAST_EIGHT : FORECAST_MANY;
}

// ---- what is reckoned: GPUs of the nodes that suit it come free as pods there end, and go to
// those before it in the queue, in order; which node, and who passes whom, is left out

struct release {
	int64_t at_ms, milli;
};
struct reckoning {
	struct release *items; // a heap, the earliest on top
	size_t count;
	int64_t free_milli, now_ms;
	size_t all, said; // pods in it, and those that say themselves how long they run
};

static void push(struct reckoning *r, struct release item)
{
	size_t i = r->count++;
	for (; i > 0 && r->items[(i - 1) / 2].at_ms > item.at_ms; i = (i - 1) / 2)
		r->items[i] = r->items[(i - 1) / 2];
	r->items[i] = item;
}

static struct release pop(struct reckoning *r)
{
	struct release top = r->items[0], last = r->items[--r->count];
	size_t i = 0, child;
	while ((child = 2 * i + 1) < r->count) {
		if (child + 1 < r->count && r->items[child + 1].at_ms < r->items[child].at_ms)
			child++;
		if (last.at_ms <= r->items[child].at_ms)
			break;
		r->items[i] = r->items[child];
		i = child;
	}
	r->items[i] = last;
	return top;
}

// When so much is free; SCHED_NEVER_MS: cannot be told.
static int64_t take(struct reckoning *r, int64_t milli)
{
	while (r->free_milli < milli && r->count > 0) {
		struct release next = pop(r);
		r->free_milli += next.milli;
		r->now_ms = max_i64(r->now_ms, next.at_ms);
	}
	if (r->free_milli < milli || r->now_ms == SCHED_NEVER_MS)
		return SCHED_NEVER_MS;
	r->free_milli -= milli;
	return r->now_ms;
}

static void note(struct reckoning *r, const struct pod *pod)
{
	r->all++;
	r->said += pod->duration_source == SCHED_DURATION_SAID;
}

static void add_node(const struct sched *sched, const struct node *node, struct reckoning *r)
{
	const struct column *gpus = &sched->columns[DIM_GPU];
	r->free_milli += SHARE_WHOLE_MILLI * (gpus->alloc[node->slot] - gpus->used[node->slot]);
	for (const struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF((uintptr_t)at, struct pod, on_node);
		if (pod->shape->gpu_milli == 0)
			continue;
		note(r, pod);
		push(r,
		     (struct release){ reserve_end_ms(pod, sched->now_ms), pod->shape->gpu_milli });
	}
}

// Those of one queue that go first, in order; false: when they start cannot be told.
static bool take_queue(const struct sched *sched, const struct queue *queue, const struct pod *pod,
		       struct reckoning *r)
{
	for (const struct tree_node *node = tree_first(&queue->waiting); node != NULL;
	     node = tree_next(node)) {
		const struct pod *at = POD_OF((uintptr_t)node, in_queue);
		if (at == pod || queueing_cmp(sched, at, pod) > 0)
			break;
		if (at->shape->pool != pod->shape->pool || at->shape->gpu_milli == 0)
			continue;
		note(r, at);
		int64_t start_ms = take(r, at->shape->gpu_milli);
		int64_t lasts_ms = MS_PER_S * at->key.duration_s;
		if (start_ms == SCHED_NEVER_MS)
			return false;
		push(r, (struct release){ lasts_ms == 0 ? SCHED_NEVER_MS : start_ms + lasts_ms,
					  at->shape->gpu_milli });
	}
	return true;
}

static int64_t take_all(const struct sched *sched, const struct pod *pod, struct reckoning *r)
{
	const struct queues *queues = sched->queueing->queues;
	for (size_t i = 0; i < queues->order_count; i++) {
		if (!take_queue(sched, queues->order[i], pod, r))
			return SCHED_NEVER_MS;
	}
	return take(r, milli_of(pod));
}

// Seconds until it would start; -1: cannot be told, or rests on durations that are only learned.
static int64_t reckon_s(const struct sched *sched, const struct pod *pod)
{
	size_t waiting = sched->state_counts[SCHED_STATE_WAITING];
	size_t placed =
		sched->state_counts[SCHED_STATE_BOUND] + sched->state_counts[SCHED_STATE_ASSUMED];
	if (waiting > AHEAD_MAX || pod->shape->gpu_milli == 0)
		return -1;
	struct reckoning r = { .items = core_alloc(waiting + placed + 1, sizeof *r.items),
			       .now_ms = sched->now_ms };
	for (uint32_t slot = 0; slot < sched->slot_count; slot++) {
		const struct node *node = sched->nodes[slot];
		if (node != NULL && node->is_known && shape_is_static_fit(pod->shape, slot))
			add_node(sched, node, &r);
	}
	int64_t start_ms = take_all(sched, pod, &r);
	free(r.items);
	bool is_told = start_ms != SCHED_NEVER_MS && r.said * 1000 >= r.all * SAID_PERMILLE;
	return is_told ? (start_ms - sched->now_ms) / MS_PER_S : -1;
}

// ---- what is learned: how many times longer it took

static size_t reach_of(int64_t drain_s)
{
	size_t doublings = 63 - (size_t)__builtin_clzll((uint64_t)drain_s + 1);
	return min_size(doublings / 2, REACHES - 1);
}

static struct learn_kind kind_of(const struct pod *pod, const struct awaited *awaited)
{
	uint64_t size = learn_key_number(0, (int64_t)awaited->size);
	uint64_t drain = learn_key_number(size, (int64_t)awaited->reach);
	uint64_t pool = learn_key_number(drain, (int64_t)(pod->shape->pool >> 1));
	return (struct learn_kind){ { learn_key_number(pool, pod->key.priority), drain } };
}

static int64_t ratio_of(const struct awaited *awaited, int64_t waited_s)
{
	return RATIO_ONE * (waited_s + SLACK_S) / (awaited->drain_s + SLACK_S);
}

static int64_t waited_of(const struct awaited *awaited, int64_t ratio)
{
	return max_i64(ratio * (awaited->drain_s + SLACK_S) / RATIO_ONE - SLACK_S, 0);
}

// The range in seconds since it began to wait, when it has waited so long.
static bool guess(const struct forecast *forecast, const struct awaited *awaited, int64_t after_s,
		  int64_t *ret_low_s, int64_t *ret_high_s)
{
	int64_t widen = forecast->widen[awaited->size][awaited->reach];
	static const int64_t PERMILLE[2] = { LOW, HIGH };
	struct learn_guess guessed;
	if (!learn_guess_s(forecast->ratios, &awaited->kind,
			   after_s == 0 ? 0 : ratio_of(awaited, after_s), PERMILLE, &guessed))
		return false;
	int64_t low = guessed.low_s * RATIO_ONE / (RATIO_ONE + widen);
	int64_t high = (guessed.high_s + 1) * (RATIO_ONE + widen) / RATIO_ONE;
	*ret_low_s = max_i64(waited_of(awaited, low), after_s);
	*ret_high_s = max_i64(waited_of(awaited, high), after_s) + 1;
	return true;
}

static void judge(struct forecast *forecast, struct awaited *awaited, bool is_inside)
{
	struct tally *tally = &forecast->tallies[awaited->size];
	int64_t *widen = &forecast->widen[awaited->size][awaited->reach];
	link_drop(&awaited->in_open);
	tally->judged++;
	tally->inside += is_inside;
	*widen += is_inside ? -HIT_NARROWS : MISS_WIDENS;
	*widen = max_i64(0, min_i64(*widen, WIDEN_MAX));
}

// Who should have started by now is a miss at once, not only when it starts: a few are looked at
// each time, in turn.
static void judge_late(struct forecast *forecast, int64_t now_ms)
{
	for (int i = 0; i < LOOKS && !link_is_empty(&forecast->open); i++) {
		struct awaited *awaited = LINK_OF(forecast->open.next, struct awaited, in_open);
		if (now_ms > awaited->since_ms + MS_PER_S * (awaited->high_s + 1)) {
			judge(forecast, awaited, false);
			continue;
		}
		link_drop(&awaited->in_open);
		link_add(&forecast->open, &awaited->in_open);
	}
}

// False: nothing can be told of it.
static bool reckon(struct sched *sched, const struct pod *pod, struct awaited *ret)
{
	*ret = (struct awaited){ .size = size_of(milli_of(pod)),
				 .since_ms = sched->now_ms,
				 .high_s = -1 };
	shape_ready(sched, pod->shape);
	ret->drain_s = reckon_s(sched, pod);
	if (ret->drain_s < 0)
		return false;
	ret->reach = reach_of(ret->drain_s);
	ret->kind = kind_of(pod, ret);
	return true;
}

// A look at all pods costs as much as there are: the more, the fewer of those that wait are
// followed until they start, so that it stays below a hundredth of the time.
void forecast_begin(struct sched *sched, struct pod *pod)
{
	struct forecast *forecast = sched->forecast;
	struct awaited awaited;
	if (forecast == NULL || pod->wait->awaited != NULL || !tree_has(&pod->wait->in_queue))
		return;
	judge_late(forecast, sched->now_ms);
	if (sched->now_ms < forecast->next_ms)
		return;
	size_t items = map_count(sched->pod_by_uid) + sched->slot_count;
	forecast->next_ms = sched->now_ms + 1 + (int64_t)items / ITEMS_A_MS;
	if (!reckon(sched, pod, &awaited))
		return;
	pod->wait->awaited = core_alloc(1, sizeof *pod->wait->awaited);
	*pod->wait->awaited = awaited;
	if (guess(forecast, pod->wait->awaited, 0, &pod->wait->awaited->low_s,
		  &pod->wait->awaited->high_s))
		link_add(&forecast->open, &pod->wait->awaited->in_open);
}

void forecast_end(struct sched *sched, struct pod *pod)
{
	struct awaited *awaited = pod->wait->awaited;
	if (awaited == NULL)
		return;
	int64_t waited_s = (sched->now_ms - awaited->since_ms) / MS_PER_S;
	if (link_is_in(&awaited->in_open))
		judge(sched->forecast, awaited,
		      waited_s >= awaited->low_s && waited_s <= awaited->high_s);
	learn_add(sched->forecast->ratios, &awaited->kind, ratio_of(awaited, waited_s));
	forecast_drop(pod);
}

void forecast_drop(struct pod *pod)
{
	if (pod->wait->awaited == NULL)
		return;
	if (link_is_in(&pod->wait->awaited->in_open))
		link_drop(&pod->wait->awaited->in_open);
	free(pod->wait->awaited);
	pod->wait->awaited = NULL;
}

struct forecast_row sched_forecast_row(const struct sched *sched, forecast_size size)
{
	ASSERT(size < FORECAST_SIZES);
	if (sched->forecast == NULL)
		return (struct forecast_row){ .judged = 0 };
	const struct tally *tally = &sched->forecast->tallies[size];
	return (struct forecast_row){
		.judged = tally->judged,
		.inside_permille = tally->judged == 0 ? 0 : tally->inside * 1000 / tally->judged,
	};
}

// Sizes of which on traces that nothing was tuned on eight of ten starts and more were inside
// (docs/measured.md).
static bool is_proven(forecast_size size) { return size == FORECAST_ONE; }

bool sched_estimate_get(struct sched *sched, struct str namespace_, struct str name,
			struct sched_estimate *ret)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	struct awaited now;
	if (pod == NULL || sched->forecast == NULL || pod->state != SCHED_STATE_WAITING ||
	    !is_proven(size_of(milli_of(pod))))
		return false;
	struct forecast_row row = sched_forecast_row(sched, size_of(milli_of(pod)));
	if (row.judged < FORECAST_LEAST || row.inside_permille < FORECAST_WANTED_PERMILLE ||
	    (pod->wait->awaited == NULL && !reckon(sched, pod, &now)))
		return false;
	const struct awaited *awaited = pod->wait->awaited == NULL ? &now : pod->wait->awaited;
	int64_t gone_s = (sched->now_ms - awaited->since_ms) / MS_PER_S, low_s, high_s;
	if (!guess(sched->forecast, awaited, gone_s, &low_s, &high_s))
		return false;
	*ret = (struct sched_estimate){ .from_ms = awaited->since_ms + MS_PER_S * low_s,
					.to_ms = awaited->since_ms + MS_PER_S * high_s };
	return true;
}

const char *forecast_size_name(forecast_size size)
{
	static const char *const NAMES[FORECAST_SIZES] = { "share", "1 GPU", "2-4 GPUs", "5-8 GPUs",
							   "more" };
	ASSERT(size < FORECAST_SIZES);
	return NAMES[size];
}
