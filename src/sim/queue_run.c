// SPDX-License-Identifier: Apache-2.0
// The core on a virtual clock: submissions and ends, nothing else happens. Since every job says
// truly how long it runs, nothing is to be done between them; where that is to be learned, a job
// that is late is looked at anew with the next of them.
#include "base/map.h"
#include "sched/durations.h"
#include "sched/forecast.h"
#include "sim/queue.h"
#include "sim/sim.h"

enum { UID_BYTES = 32, RESERVATIONS_MAX = 1024 };

struct player {
	struct queue_jobs *jobs;
	const struct queue_policy *policy;
	struct sched *core;
	struct events *ends;
	struct map *waiting; // uid -> job
	size_t next, fed;    // jobs submitted, and given to the core
	int64_t node_gpus;
	int64_t now_ms;
};

// A job of more GPUs than a node has is a gang of full nodes, and of what is left over.
static int64_t members_of(const struct player *player, const struct queue_job *job)
{
	return job->gpus <= player->node_gpus ? 1 : (job->gpus - 1) / player->node_gpus + 1;
}

static struct str uid_of(const struct player *player, const struct queue_job *job, int64_t member,
			 char out[UID_BYTES])
{
	int len = snprintf(out, UID_BYTES, "%010zu", (size_t)(job - player->jobs->items));
	if (member > 0)
		(void)snprintf(out + len, (size_t)(UID_BYTES - len), "-%04lld", (long long)member);
	return str_of(out);
}

void queue_pod_fill(const struct queue_job *job, int64_t gpus, struct queue_pod *ret)
{
	*ret = (struct queue_pod){ .amount = { STR(FEED_GPU_RESOURCE), gpus },
				   .ask = { STR("job"), SCHED_APP, gpus },
				   .spec = { .amounts = &ret->amount,
					     .amount_count = 1,
					     .gpu_asks = &ret->ask,
					     .gpu_ask_count = 1,
					     .gpu_count = gpus,
					     .duration_s = (job->duration_ms + 999) / 1000 },
				   .in = { .namespace_ = STR("jobs"),
					   .created_s = job->submit_ms / 1000,
					   .work = job->work,
					   .is_ours = true,
					   .spec = &ret->spec } };
}

static void feed(struct player *player, struct queue_job *job, int64_t member, struct str node)
{
	char uid[UID_BYTES], gang[UID_BYTES];
	int64_t members = members_of(player, job);
	int64_t gpus = min_i64(player->node_gpus, job->gpus - member * player->node_gpus);
	gpus = members == 1 ? job->gpus : gpus;
	struct sched_gang_in terms = { .name = uid_of(player, job, 0, gang), .min = members };
	struct queue_pod pod;
	queue_pod_fill(job, gpus, &pod);
	pod.in.uid = pod.in.name = uid_of(player, job, member, uid);
	pod.in.node = node;
	pod.in.priority = player->policy->uses_priority ? job->priority : 0;
	pod.in.gang = members > 1 ? &terms : NULL;
	if (player->policy->durations != QUEUE_DURATIONS_TRUE)
		pod.spec.duration_s = 0;
	if (node.len == 0)
		(void)map_set(player->waiting, pod.in.uid, job);
	sched_pod_set(player->core, &pod.in);
}

static void feed_all(struct player *player, struct queue_job *job)
{
	int64_t members = members_of(player, job);
	if (members > SCHED_GANG_MAX)
		return; // no cluster of this tool has so many nodes
	for (int64_t i = 0; i < members; i++)
		feed(player, job, i, STR(""));
}

static int64_t member_no(struct str uid)
{
	struct str first, rest = uid;
	int64_t number = 0;
	(void)str_split_next(&rest, '-', &first);
	return rest.len > 0 && str_to_i64(rest, &number) ? number : 0;
}

static const char *start(struct player *player, const struct sched_decision *bind)
{
	int64_t member = member_no(bind->uid);
	struct queue_job *job = map_remove(player->waiting, bind->uid);
	bool is_first = job != NULL && job->start_ms < 0;
	if (job == NULL)
		return "a job was started twice";
	if (!is_first && job->start_ms != player->now_ms)
		return "a gang was started in part";
	char node[64];
	(void)snprintf(node, sizeof node, STR_FMT, STR_ARG(bind->node));
	job->start_ms = player->now_ms;
	job->end_ms = player->now_ms + job->duration_ms;
	feed(player, job, member, str_of(node));
	if (is_first)
		events_add(player->ends,
			   (struct event){ .at_ms = job->end_ms,
					   .bind_no = (uint32_t)(job - player->jobs->items) });
	return NULL;
}

static void end(struct player *player, struct queue_job *job)
{
	char uid[UID_BYTES];
	for (int64_t i = 0; i < members_of(player, job); i++)
		sched_pod_ended(player->core, uid_of(player, job, i, uid), player->now_ms);
}

// The first promise is kept: it is what would be shown to who waits.
static void note_reservations(struct player *player)
{
	struct sched_reservation reservations[RESERVATIONS_MAX];
	size_t count = sched_reservations(player->core, reservations, RESERVATIONS_MAX);
	for (size_t i = 0; i < count; i++) {
		struct queue_job *job = map_find(player->waiting, reservations[i].uid);
		if (job != NULL && job->reserved_ms < 0 &&
		    reservations[i].start_ms != SCHED_NEVER_MS)
			job->reserved_ms = reservations[i].start_ms;
	}
}

// What a person would have been told when the job began to wait.
static void note_estimate(struct player *player, const struct sched_decision *wait)
{
	struct queue_job *job = map_find(player->waiting, wait->uid);
	struct sched_estimate estimate;
	if (!player->policy->estimates || job == NULL || job->told_ms >= 0)
		return;
	job->told_ms = player->now_ms;
	if (!sched_estimate_get(player->core, wait->namespace_, wait->name, &estimate))
		return;
	job->low_ms = estimate.from_ms;
	job->high_ms = estimate.to_ms;
}

static const char *decide(struct player *player)
{
	struct sched_decision decision;
	for (;;) {
		bool is_next = !player->policy->is_strict || map_count(player->waiting) == 0;
		while (player->fed < player->next && is_next) {
			feed_all(player, &player->jobs->items[player->fed++]);
			is_next = !player->policy->is_strict;
		}
		if (!sched_next(player->core, player->now_ms, &decision))
			break;
		const char *broken = decision.verb == SCHED_BIND ? start(player, &decision) : NULL;
		if (decision.verb == SCHED_WAIT)
			note_estimate(player, &decision);
		if (broken != NULL)
			return broken;
	}
	note_reservations(player);
	return sched_check(player->core);
}

static bool advance(struct player *player)
{
	int64_t end_ms = INT64_MAX, submit_ms = INT64_MAX;
	bool has_end = events_first(player->ends, &end_ms);
	bool has_job = player->next < player->jobs->count;
	if (has_job)
		submit_ms = player->jobs->items[player->next].submit_ms;
	player->now_ms = min_i64(end_ms, submit_ms);
	return has_end || has_job;
}

static const char *play(struct player *player)
{
	while (advance(player)) {
		int64_t at_ms;
		while (events_first(player->ends, &at_ms) && at_ms <= player->now_ms) {
			end(player, &player->jobs->items[events_take(player->ends).bind_no]);
		}
		while (player->next < player->jobs->count &&
		       player->jobs->items[player->next].submit_ms <= player->now_ms)
			player->next++;
		const char *broken = decide(player);
		if (broken != NULL)
			return broken;
	}
	return NULL;
}

static void add_nodes(struct sched *core, const struct queue_cluster *cluster)
{
	for (int64_t i = 0; i < cluster->nodes; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "n%06lld", (long long)i);
		const struct sched_amount amounts[] = { { STR(FEED_GPU_RESOURCE), cluster->gpus },
							{ STR("pods"), cluster->gpus } };
		struct sched_node_in in = { .name = str_of(name),
					    .allocatable = amounts,
					    .allocatable_count = ARRAY_COUNT(amounts) };
		sched_node_set(core, &in);
	}
}

const char *queue_run(struct queue_jobs *jobs, const struct queue_cluster *cluster,
		      const struct queue_policy *policy)
{
	struct player player = { .jobs = jobs,
				 .policy = policy,
				 .core = sched_new(0, 0),
				 .ends = events_new(),
				 .node_gpus = cluster->gpus,
				 .waiting = map_new(0) };
	sched_heads_set(player.core, policy->heads_per_pool);
	if (policy->durations == QUEUE_DURATIONS_LEARNED || policy->estimates)
		sched_durations_learn(player.core);
	add_nodes(player.core, cluster);
	const char *broken = play(&player);
	sched_free(player.core);
	events_free(player.ends);
	map_free(player.waiting);
	return broken;
}
