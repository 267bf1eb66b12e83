// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim queue: jobs of a public trace through the scheduler's core on a virtual clock, to
// compare orders of the queue. Every job is one pod that says truly how long it runs, or, if it has
// more GPUs than a node, a gang of them. Texts of jobs point into what was parsed, which must
// outlive them; arrays are the arena's.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "sched/sched.h"

enum { QUEUE_JOBS_MAX = 1000000, QUEUE_GPUS_MAX = 4096 };

struct queue_job {
	struct str name, work; // work: what it runs, as far as the trace tells
	size_t line;
	int64_t submit_ms, duration_ms, gpus, priority;
	int64_t start_ms, end_ms, reserved_ms; // -1: never
	int64_t told_ms, low_ms, high_ms; // the start that it was told while it waited; -1: none
};
struct queue_jobs { // in order of submission
	struct queue_job *items;
	size_t count;
	size_t left_out; // lines without whole GPUs or without times
};

struct queue_files { // names are for messages
	const char *format, *jobs_name, *throughput_name;
	struct str jobs, throughput;
	int64_t speed_nano; // instants of submission are divided by it
};
MUST_USE err_status queue_jobs_parse(struct arena *arena, const struct queue_files *files,
				     struct queue_jobs *ret, struct err *err);

typedef enum queue_durations { // what the scheduler knows of how long jobs run
	QUEUE_DURATIONS_TRUE,
	QUEUE_DURATIONS_NONE,
	QUEUE_DURATIONS_LEARNED,
} queue_durations;

struct queue_policy {
	size_t heads_per_pool;
	queue_durations durations;
	bool estimates;                // starts are told to who waits
	bool uses_priority, is_strict; // strict: nobody passes one before it
};
// fifo, priority, easy, default, or the path of a YAML file: base, heads, priority, strict,
// durations (true, none, learned).
MUST_USE err_status queue_policy_load(const char *name_or_path, struct queue_policy *ret,
				      struct err *err);
MUST_USE err_status queue_policy_parse(struct str text, struct queue_policy *ret, struct err *err);

struct queue_cluster {
	int64_t nodes, gpus; // of each
};
// A pod of the core for the job, or for one member of it. What it points to is in the buffer.
struct queue_pod {
	struct sched_amount amount;
	struct sched_gpu_ask ask;
	struct sched_spec spec;
	struct sched_pod_in in;
};
void queue_pod_fill(const struct queue_job *job, int64_t gpus, struct queue_pod *ret);
// queue_learn.c: how well durations are guessed, job by job in time order, from those alone that
// have ended before; and how true the starts were that queue_run told. Text for people.
void queue_learn_score(const struct queue_jobs *jobs, struct buf *out);
void queue_starts_score(const struct queue_jobs *jobs, struct buf *out);
// Fills in what became of the jobs; NULL, or what is broken.
const char *queue_run(struct queue_jobs *jobs, const struct queue_cluster *cluster,
		      const struct queue_policy *policy);
