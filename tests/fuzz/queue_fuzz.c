// SPDX-License-Identifier: Apache-2.0
// Jobs of a trace and a policy: a letter for the format, jobs, NUL, steps a second, NUL, policy.
// What is read is played on a small cluster.
#include "sim/queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { JOBS_SHOWN_MAX = 64 };

static void play(struct queue_jobs *jobs, const struct queue_policy *policy)
{
	const struct queue_cluster cluster = { 2, 8 };
	for (size_t i = 0; i < jobs->count; i++) {
		if (jobs->items[i].gpus > cluster.gpus)
			return;
	}
	ASSERT(queue_run(jobs, &cluster, policy) == NULL);
	for (size_t i = 0; i < jobs->count; i++)
		ASSERT(jobs->items[i].start_ms >= jobs->items[i].submit_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str parts[3] = { STR(""), STR(""), STR("") };
	struct str rest = str_slice((struct str){ (const char *)data, size }, 1, size);
	struct err err = { .status = ERR_OK };
	struct queue_jobs jobs;
	struct queue_policy policy = { .heads_per_pool = 1 };
	for (size_t i = 0; size > 0 && i < 3 && str_split_next(&rest, '\0', &parts[i]); i++)
		;
	struct queue_files files = { .format = size == 0        ? ""
					       : data[0] == 'o' ? "openb"
					       : data[0] == 't' ? "tiresias"
								: "philly",
				     .jobs_name = "jobs",
				     .throughput_name = "throughput",
				     .jobs = parts[0],
				     .throughput = parts[1],
				     .speed_nano = 1500000000 };
	struct arena *arena = arena_new(16 << 20);
	if (parts[2].len > 0 && queue_policy_parse(parts[2], &policy, &err) != ERR_OK)
		ASSERT(err.text[0] != '\0');
	if (queue_jobs_parse(arena, &files, &jobs, &err) == ERR_OK && jobs.count <= JOBS_SHOWN_MAX)
		play(&jobs, &policy);
	arena_free(arena);
	return 0;
}
