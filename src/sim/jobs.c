// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs.h"

#include "sys/fs.h"

#include <stdlib.h>

enum { JOBS_MAX_BYTES = 200 * 1024 * 1024 };
#define HOUR_MS 3600000.0

struct job {
	char *key;
	int64_t submit_ms, start_ms, end_ms; // -1: never
	int64_t gpu_milli, seen_no;
	bool was_there, is_evicted; // was_there: on its node when it was first seen
};
struct jobs {
	struct map *by_uid;
	int64_t look_no, first_ms, now_ms;
	int64_t gpus, nodes, gpu_milli_used; // since the last look
	double gpu_ms, used_ms, node_ms;
};

struct jobs *jobs_new(void)
{
	struct jobs *jobs = calloc(1, sizeof *jobs);
	ASSERT(jobs != NULL);
	jobs->by_uid = map_new(0);
	return jobs;
}

void jobs_free(struct jobs *jobs)
{
	struct str uid;
	void *value;
	if (jobs == NULL)
		return;
	for (size_t i = 0; map_next(jobs->by_uid, &i, &uid, &value);) {
		free(((struct job *)value)->key);
		free(value);
	}
	map_free(jobs->by_uid);
	free(jobs);
}

static int64_t gpu_milli_of(const struct sched_spec *spec)
{
	int64_t sum = spec->gpu_count * SHARE_WHOLE_MILLI;
	for (size_t i = 0; i < spec->share_count; i++)
		sum += spec->shares[i].share.milli;
	return sum;
}

static struct job *job_get(struct jobs *jobs, const struct sim *sim, const struct sim_pod *pod)
{
	struct job *job = map_find(jobs->by_uid, pod->uid);
	if (job != NULL)
		return job;
	job = calloc(1, sizeof *job);
	ASSERT(job != NULL);
	*job = (struct job){ .key = strndup(pod->key.data, pod->key.len),
			     .submit_ms = sim->now_ms,
			     .start_ms = -1,
			     .end_ms = -1,
			     .gpu_milli = gpu_milli_of(pod->in.spec),
			     .was_there = pod->is_started };
	ASSERT(job->key != NULL);
	(void)map_set(jobs->by_uid, pod->uid, job);
	return job;
}

static void look_at_nodes(struct jobs *jobs, const struct sim *sim)
{
	jobs->gpus = jobs->nodes = 0;
	for (size_t i = 0; i < sim->scenario->object_count; i++) {
		const struct sim_object *object = &sim->scenario->objects[i];
		struct str name = json_text(object->json, "metadata.name");
		if (object->kind != SIM_NODE || object->action != SIM_CREATE)
			continue;
		jobs->nodes += checker_has(sim, name, STR("pods")) > 0;
		jobs->gpus += checker_has(sim, name, STR(FEED_GPU_RESOURCE)) +
			      checker_has(sim, name, STR(SHARE_MILLI_RESOURCE)) / SHARE_WHOLE_MILLI;
	}
}

void jobs_look(struct jobs *jobs, const struct sim *sim)
{
	struct str uid;
	void *value;
	double passed_ms = (double)(sim->now_ms - jobs->now_ms);
	jobs->look_no++;
	jobs->now_ms = sim->now_ms;
	jobs->gpu_ms += passed_ms * (double)jobs->gpus;
	jobs->node_ms += passed_ms * (double)jobs->nodes;
	jobs->used_ms += passed_ms * (double)jobs->gpu_milli_used / SHARE_WHOLE_MILLI;
	jobs->gpu_milli_used = 0;
	if (jobs->nodes == 0 && map_count(jobs->by_uid) == 0)
		jobs->first_ms = sim->now_ms; // nothing was there yet
	look_at_nodes(jobs, sim);
	for (size_t i = 0; map_next(sim->pods, &i, &uid, &value);) {
		const struct sim_pod *pod = value;
		struct job *job = job_get(jobs, sim, pod);
		job->seen_no = jobs->look_no;
		job->is_evicted |= pod->evicted_for.len > 0;
		if (pod->is_started && job->start_ms < 0)
			job->start_ms = sim->now_ms;
		if (pod->is_started)
			jobs->gpu_milli_used += job->gpu_milli;
	}
	for (size_t i = 0; map_next(jobs->by_uid, &i, &uid, &value);) {
		struct job *job = value;
		if (job->seen_no != jobs->look_no && job->end_ms < 0)
			job->end_ms = sim->now_ms;
	}
}

static void put_ms(struct buf *out, int64_t at_ms)
{
	buf_put_byte(out, ',');
	if (at_ms >= 0)
		buf_printf(out, "%lld.%03lld", (long long)(at_ms / 1000),
			   (long long)(at_ms % 1000));
}

err_status jobs_write(const struct jobs *jobs, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf out = { .limit = JOBS_MAX_BYTES };
	struct str uid;
	void *value;
	buf_put_c(&out, "job,submit_s,start_s,end_s,gpus,preemptions,reserved_start_s\n");
	for (size_t i = 0; map_next(jobs->by_uid, &i, &uid, &value);) {
		const struct job *job = value;
		buf_put_c(&out, job->key);
		put_ms(&out, job->submit_ms);
		put_ms(&out, job->start_ms);
		put_ms(&out, job->start_ms < 0 ? -1 : job->end_ms);
		buf_printf(&out, ",%.10g,%d,\n", (double)job->gpu_milli / SHARE_WHOLE_MILLI,
			   job->is_evicted);
	}
	if (!buf_ok(&out))
		return err_set(err, ERR_LIMIT, "%s would be too large", path);
	return fs_write_atomic(path, buf_str(&out), 0644, err);
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

struct jobs_sum jobs_sum_up(const struct jobs *jobs)
{
	struct jobs_sum sum = { .gpu_hours = jobs->gpu_ms / HOUR_MS,
				.gpu_hours_used = jobs->used_ms / HOUR_MS,
				.node_hours = jobs->node_ms / HOUR_MS,
				.hours = (double)(jobs->now_ms - jobs->first_ms) / HOUR_MS,
				.gpus = (double)jobs->gpus,
				.nodes = (double)jobs->nodes };
	struct str uid;
	void *value;
	int64_t *waits_ms = calloc(map_count(jobs->by_uid) + 1, sizeof *waits_ms);
	ASSERT(waits_ms != NULL);
	for (size_t i = 0; map_next(jobs->by_uid, &i, &uid, &value);) {
		const struct job *job = value;
		sum.evicted += job->is_evicted;
		if (job->was_there)
			continue;
		sum.pods++;
		sum.waiting += job->start_ms < 0 && job->end_ms < 0;
		if (job->start_ms >= 0) {
			waits_ms[sum.started++] = job->start_ms - job->submit_ms;
			sum.wait_mean_s += (double)(job->start_ms - job->submit_ms) / 1000;
		}
	}
	if (sum.started > 0) {
		qsort(waits_ms, sum.started, sizeof *waits_ms, by_size);
		sum.wait_mean_s /= (double)sum.started;
		sum.wait_p95_s = (double)waits_ms[(sum.started * 95 + 99) / 100 - 1] / 1000;
	}
	free(waits_ms);
	return sum;
}
