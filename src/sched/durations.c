// SPDX-License-Identifier: Apache-2.0
#include "sched/durations.h"

#include "sched/lasting.h"
#include "sched/queueing.h"

static int64_t amount_of(const struct sched_spec *spec, const char *resource)
{
	for (size_t i = 0; i < spec->amount_count; i++) {
		if (str_eq_c(spec->amounts[i].resource, resource))
			return spec->amounts[i].amount;
	}
	return 0;
}

struct learn_kind sched_duration_kind(const struct sched_pod_in *in)
{
	uint64_t tenant = learn_key_number(learn_key(0, in->namespace_),
					   milli_of_parts(queueing_gpu_parts(in->spec)));
	uint64_t work = learn_key(tenant, in->work);
	uint64_t person = learn_key(work, in->user);
	uint64_t size = learn_key_number(learn_key_number(person, amount_of(in->spec, "cpu")),
					 amount_of(in->spec, "memory"));
	return (struct learn_kind){ { size, person, work, tenant } };
}

// Of the tenant or the next one above it that has one.
int64_t sched_queue_longest_s(const struct sched *sched, struct str namespace_)
{
	const struct queue *queue = queues_find(sched->queueing->queues, namespace_);
	while (queue != NULL && queue->in.max_run_s == 0)
		queue = queue->parent;
	return queue == NULL ? 0 : queue->in.max_run_s;
}

static struct sched_duration shorter_of(struct sched_duration expected, int64_t longest_s)
{
	if (longest_s > 0)
		expected.seconds = min_i64(expected.seconds, longest_s);
	return expected;
}

struct sched_duration lasting_of(const struct sched *sched, const struct sched_pod_in *in,
				 const struct learn_kind *kind)
{
	static const int64_t PERMILLE[2] = { SCHED_DURATION_PERMILLE, SCHED_DURATION_PERMILLE };
	struct learn_guess guess;
	int64_t tenant_s = sched_queue_longest_s(sched, in->namespace_);
	if (in->spec->duration_s > 0)
		return (struct sched_duration){ SCHED_DURATION_SAID, in->spec->duration_s };
	if (tenant_s > 0)
		return shorter_of((struct sched_duration){ SCHED_DURATION_TENANT, tenant_s },
				  in->max_run_s);
	if (sched->learned != NULL && learn_guess_s(sched->learned, kind, 0, PERMILLE, &guess))
		return shorter_of(
			(struct sched_duration){ SCHED_DURATION_LEARNED, max_i64(guess.high_s, 1) },
			in->max_run_s);
	if (in->max_run_s > 0)
		return (struct sched_duration){ SCHED_DURATION_LONGEST, in->max_run_s };
	return (struct sched_duration){ SCHED_DURATION_UNKNOWN, 0 };
}

void sched_durations_learn(struct sched *sched)
{
	if (sched->learned == NULL)
		sched->learned = learn_new();
	if (sched->forecast == NULL)
		sched->forecast = forecast_new();
}

void sched_duration_add(struct sched *sched, const struct learn_kind *kind, int64_t seconds)
{
	if (sched->learned != NULL && seconds >= 0)
		learn_add(sched->learned, kind, seconds);
}

bool sched_duration_guess(const struct sched *sched, const struct sched_pod_in *pod,
			  const int64_t permille[2], struct learn_guess *ret)
{
	struct learn_kind kind = sched_duration_kind(pod);
	return sched->learned != NULL && learn_guess_s(sched->learned, &kind, 0, permille, ret);
}

// One that was asked to leave would have run longer.
static bool has_ended_by_itself(const struct pod *pod)
{
	return pod->state == SCHED_STATE_BOUND && pod->is_ours && pod->fate == NULL &&
	       !pod->stay.is_evicted;
}

void sched_pod_ended(struct sched *sched, struct str uid, int64_t at_ms)
{
	const struct pod *pod = map_find(sched->pod_by_uid, uid);
	if (pod == NULL)
		return;
	if (sched->learned != NULL && has_ended_by_itself(pod) && at_ms >= pod->bound_ms)
		learn_add(sched->learned, &pod->kind, (at_ms - pod->bound_ms) / 1000);
	sched_pod_remove(sched, uid);
}

bool sched_duration_explain(const struct sched *sched, struct str namespace_, struct str name,
			    struct sched_duration *ret)
{
	const struct pod *pod = pod_find(sched, namespace_, name);
	if (pod == NULL)
		return false;
	*ret = (struct sched_duration){ pod->duration_source, pod->key.duration_s };
	return true;
}

const char *sched_duration_source_name(sched_duration_source source)
{
	static const char *const NAMES[SCHED_DURATION_SOURCES] = { "unknown", "request", "tenant",
								   "learned", "longest" };
	ASSERT(source >= 0 && source < SCHED_DURATION_SOURCES);
	return NAMES[source];
}
