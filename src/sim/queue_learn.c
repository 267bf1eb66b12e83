// SPDX-License-Identifier: Apache-2.0
// What was guessed against what came true, by size of job. A job's duration is guessed when it is
// submitted, from jobs that had ended by then, as if each had started at once.
#include "sched/durations.h"
#include "sim/events.h"
#include "sim/queue.h"

#include <stdlib.h>

enum { SIZES = 5, ALL = SIZES - 1 };

struct tally {
	size_t jobs, guessed, inside;
	double *factors; // of the true one by which the likely one was wrong, at least 1
	double *widths;  // of the range, in hours
};

static const char *const NAMES[SIZES] = { "1", "2-4", "5-8", "more", "all" };

static size_t size_of(const struct queue_job *job)
{
	if (job->gpus <= 1)
		return 0;
	return job->gpus <= 4 ? 1 : job->gpus <= 8 ? 2 : 3;
}

static void tally_init(struct tally tallies[SIZES], size_t count)
{
	for (size_t i = 0; i < SIZES; i++) {
		tallies[i] = (struct tally){ .factors = calloc(count + 1, sizeof(double)),
					     .widths = calloc(count + 1, sizeof(double)) };
		ASSERT(tallies[i].factors != NULL && tallies[i].widths != NULL);
	}
}

static void tally_done(struct tally tallies[SIZES])
{
	for (size_t i = 0; i < SIZES; i++) {
		free(tallies[i].factors);
		free(tallies[i].widths);
	}
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static double median(double *items, size_t count)
{
	qsort(items, count, sizeof *items, compare);
	return count == 0 ? 0 : items[count / 2];
}

static double factor_of(int64_t a_s, int64_t b_s)
{
	double a = (double)max_i64(a_s, 1), b = (double)max_i64(b_s, 1);
	return a > b ? a / b : b / a;
}

struct told { // of one job; low above high: nothing
	int64_t low_s, likely_s, high_s, true_s;
};

static void count(struct tally tallies[SIZES], const struct queue_job *job, const struct told *told)
{
	const size_t both[2] = { size_of(job), ALL };
	for (size_t i = 0; i < 2; i++) {
		struct tally *tally = &tallies[both[i]];
		tally->jobs++;
		if (told->low_s > told->high_s)
			continue;
		tally->factors[tally->guessed] = factor_of(told->likely_s, told->true_s);
		tally->widths[tally->guessed++] = (double)(told->high_s - told->low_s) / 3600;
		tally->inside += told->true_s >= told->low_s && told->true_s <= told->high_s;
	}
}

static void put_table(struct buf *out, struct tally tallies[SIZES], const char *what)
{
	buf_printf(out, "gpus,%s,guessed,inside_pct,median_factor,median_width_h\n", what);
	for (size_t i = 0; i < SIZES; i++) {
		struct tally *tally = &tallies[i];
		double inside = tally->guessed == 0
					? 0
					: 100.0 * (double)tally->inside / (double)tally->guessed;
		buf_printf(out, "%s,%zu,%zu,%.1f,%.2f,%.2f\n", NAMES[i], tally->jobs,
			   tally->guessed, inside, median(tally->factors, tally->guessed),
			   median(tally->widths, tally->guessed));
	}
}

static void add_ended(struct sched *core, struct events *ends, const struct queue_jobs *jobs,
		      int64_t now_ms)
{
	int64_t at_ms;
	while (events_first(ends, &at_ms) && at_ms <= now_ms) {
		const struct queue_job *job = &jobs->items[events_take(ends).bind_no];
		struct queue_pod pod;
		queue_pod_fill(job, job->gpus, &pod);
		struct learn_kind kind = sched_duration_kind(&pod.in);
		sched_duration_add(core, &kind, job->duration_ms / 1000);
	}
}

void queue_learn_score(const struct queue_jobs *jobs, struct buf *out)
{
	static const int64_t PERMILLE[2] = { 100, 900 };
	struct sched *core = sched_new(0, 0);
	struct events *ends = events_new();
	struct tally tallies[SIZES];
	tally_init(tallies, jobs->count);
	sched_durations_learn(core);
	for (size_t i = 0; i < jobs->count; i++) {
		const struct queue_job *job = &jobs->items[i];
		struct queue_pod pod;
		struct learn_guess guess = { .low_s = 1, .high_s = 0 };
		add_ended(core, ends, jobs, job->submit_ms);
		queue_pod_fill(job, job->gpus, &pod);
		if (!sched_duration_guess(core, &pod.in, PERMILLE, &guess))
			guess = (struct learn_guess){ .low_s = 1, .high_s = 0 };
		count(tallies, job,
		      &(struct told){ guess.low_s, guess.likely_s, guess.high_s,
				      job->duration_ms / 1000 });
		events_add(ends, (struct event){ .at_ms = job->submit_ms + job->duration_ms,
						 .bind_no = (uint32_t)i });
	}
	put_table(out, tallies, "jobs");
	tally_done(tallies);
	events_free(ends);
	sched_free(core);
}

void queue_starts_score(const struct queue_jobs *jobs, struct buf *out)
{
	struct tally tallies[SIZES];
	tally_init(tallies, jobs->count);
	for (size_t i = 0; i < jobs->count; i++) {
		const struct queue_job *job = &jobs->items[i];
		if (job->told_ms < 0)
			continue;
		struct told told = { .low_s = 1, .true_s = (job->start_ms - job->told_ms) / 1000 };
		if (job->low_ms >= 0) {
			told.low_s = (job->low_ms - job->told_ms) / 1000;
			told.high_s = (job->high_ms - job->told_ms) / 1000;
			told.likely_s = (told.low_s + told.high_s) / 2;
		}
		count(tallies, job, &told);
	}
	put_table(out, tallies, "waited");
	tally_done(tallies);
}
