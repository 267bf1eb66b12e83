// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/meter.h"

#include "daemons/agent/energy.h"
#include "daemons/agent/pending.h"
#include "daemons/agent/portion.h"
#include "daemons/agent/syncer.h"
#include "sys/clock.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t RETRY_NS = UINT64_C(1000000000);
enum { STRANGERS_MAX = 16, STRANGER_SIGHTS = 2, PENDING_MAX_BYTES = 16 * 1024 * 1024 };

// A process on a GPU that nobody holds; told once, when it was seen more than once.
struct stranger {
	uint32_t pid, sights;
	bool is_told;
};

struct meter {
	struct loop *loop;
	struct meter_config config;
	struct monitor *monitor;
	struct journal *journal;
	struct usage *usage;
	struct energy energy;
	struct syncer *syncer;
	struct loop_timer *sample_timer, *retry_timer;
	bool is_flush_due, is_failing;
	uint32_t wants_row; // bit of each slot whose next reading becomes an energy row
	char pending_path[PATH_MAX];
	struct buf pending; // as it was written last
	struct stranger strangers[GPU_MAX][STRANGERS_MAX];
	struct meter_stats stats;
};

static void flush(void *arg);

static void state_failure(struct meter *meter, const struct err *err)
{
	if (!meter->is_failing)
		log_err(LOG_ERROR, "journal cannot be written; events wait in memory", err);
	meter->is_failing = true;
	loop_timer_set(meter->retry_timer, RETRY_NS);
}

static void take_snapshot(struct meter *meter)
{
	AUTO(buf_done) struct buf lines = { 0 };
	struct err err;
	usage_save(meter->usage, false, &lines);
	energy_save(&meter->energy, &lines);
	if (buf_ok(&lines) && journal_snapshot(meter->journal, buf_str(&lines), &err) != ERR_OK)
		log_err(LOG_WARN, "snapshot of the journal", &err);
}

static void on_synced(void *arg, int sync_errno)
{
	struct meter *meter = arg;
	struct err err;
	journal_sync_end(meter->journal, sync_errno);
	if (sync_errno != 0) {
		(void)err_sys(&err, sync_errno, "syncing the journal");
		state_failure(meter, &err);
		return;
	}
	if (meter->is_failing)
		log_kv(LOG_INFO, "journal is written again", NULL);
	meter->is_failing = false;
	if (journal_wants_snapshot(meter->journal))
		take_snapshot(meter);
	meter->config.on_durable(meter->config.arg);
	flush(meter);
}

static void flush(void *arg)
{
	struct meter *meter = arg;
	struct err err;
	int fd = -1;
	meter->is_flush_due = false;
	if (journal_needs_write(meter->journal) && journal_write(meter->journal, &err) != ERR_OK) {
		state_failure(meter, &err);
		return;
	}
	if (!syncer_is_busy(meter->syncer) && journal_sync_begin(meter->journal, &fd))
		syncer_start(meter->syncer, fd);
}

// All events of one turn of the loop are written together.
static void flush_soon(struct meter *meter)
{
	if (!meter->is_flush_due)
		loop_defer(meter->loop, flush, meter);
	meter->is_flush_due = true;
}

static void want_row(struct meter *meter, uint32_t slot)
{
	meter->wants_row |= UINT32_C(1) << slot;
	meter->config.on_read_wanted(meter->config.arg, slot);
}

static err_status append(struct meter *meter, struct usage_event *event)
{
	struct err err;
	err_status status = journal_append(meter->journal, event, &err);
	if (status == ERR_OK) {
		meter->stats.told[event->type]++;
		flush_soon(meter);
	} else if (event->type == EVENT_BOUND || event->type == EVENT_RELEASED) {
		state_failure(meter, &err);
	}
	return status;
}

static err_status emit(void *arg, struct usage_event *event)
{
	struct meter *meter = arg;
	uint32_t slot = 0;
	char seq[32];
	err_status status = append(meter, event);
	if (status != ERR_OK)
		return status;
	(void)snprintf(seq, sizeof seq, "%" PRIu64, event->seq);
	log_kv(LOG_INFO, event_type_name(event->type), "gpu", event->gpu, "namespace",
	       event->namespace_, "pod", event->pod, "tenant", event->tenant, "seq", seq, NULL);
	if (monitor_find(meter->monitor, str_of(event->gpu), &slot) != NULL)
		want_row(meter, slot); // energy at the edges of allocations
	return ERR_OK;
}

// What waits for its pod or tenant, or for room in the journal, is known nowhere else once the
// kubelet has forgotten it. Not synced: it has to outlive this process, not the machine.
static void keep_pending(struct meter *meter)
{
	AUTO(buf_done) struct buf lines = { 0 };
	struct err err;
	usage_save(meter->usage, true, &lines);
	if (str_eq(buf_str(&lines), buf_str(&meter->pending)) || !buf_ok(&lines))
		return;
	if (pending_write(meter->pending_path, buf_str(&lines), &err) != ERR_OK) {
		log_err(LOG_WARN, "untold allocations are not kept", &err);
		return;
	}
	buf_clear(&meter->pending);
	buf_put(&meter->pending, buf_str(&lines));
}

void meter_step(struct meter *meter)
{
	uint64_t guessed = usage_guessed(meter->usage);
	usage_step(meter->usage, world_wall_s(loop_world(meter->loop)));
	if (usage_guessed(meter->usage) > guessed)
		log_kv(LOG_WARN, "an end was not seen; told with the last time it was seen", NULL);
	// Told is only what is in the journal's file: until then the pending file keeps it.
	if (journal_needs_write(meter->journal))
		flush(meter);
	if (!journal_needs_write(meter->journal))
		keep_pending(meter);
}

static void tell_sample(struct meter *meter, const struct portion *portion, int64_t now_s)
{
	struct usage_event event = usage_event_of(portion->holder, EVENT_SAMPLE, now_s);
	event.util_milli = portion->util_milli;
	event.memory_mib = portion->memory_mib;
	usage_sampled(meter->usage, portion->holder, event.util_milli, event.memory_mib);
	if (append(meter, &event) != ERR_OK)
		return; // counted as refused; the next sample tells more
}

static void sample_holders(struct meter *meter, uint32_t slot, int64_t now_s)
{
	const struct monitor_gpu *gpu = monitor_gpu(meter->monitor, slot);
	struct portion portions[PORTIONS_MAX];
	struct portion device = { 0 };
	size_t count = 0, at = 0;
	bool has_sample =
		monitor_take_sample(meter->monitor, slot, &device.util_milli, &device.memory_mib);
	if (!has_sample && gpu->mig.instance_count == 0)
		return;
	while (count < PORTIONS_MAX) {
		portions[count].holder = usage_next_holder(meter->usage, gpu->info.uuid, &at);
		if (portions[count].holder == NULL)
			break;
		count++;
	}
	if (gpu->mig.instance_count > 0)
		portion_by_instance(portions, count, &gpu->mig);
	else if (meter->config.proc_root == NULL)
		portion_by_share(portions, count, &device);
	else
		portion_by_process(portions, count, &device, &gpu->processes,
				   meter->config.proc_root);
	for (size_t i = 0; i < count; i++) {
		if (portions[i].holder->is_bound_told)
			tell_sample(meter, &portions[i], now_s);
	}
}

// To the next whole multiple of the period, so that rows carry the second they were read in.
static uint64_t until_next_ns(const struct meter *meter)
{
	int64_t period_ns = (int64_t)meter->config.sample_s * INT64_C(1000000000);
	return (uint64_t)(period_ns - clock_wall_ns() % period_ns);
}

static void on_sample(void *arg)
{
	struct meter *meter = arg;
	int64_t now_s = world_wall_s(loop_world(meter->loop));
	for (uint32_t slot = 0; slot < monitor_count(meter->monitor); slot++) {
		if (!monitor_gpu(meter->monitor, slot)->is_known)
			continue;
		sample_holders(meter, slot, now_s);
		want_row(meter, slot);
	}
	loop_timer_set(meter->sample_timer, until_next_ns(meter));
}

void meter_on_reading(struct meter *meter, uint32_t slot)
{
	const struct monitor_gpu *gpu = monitor_gpu(meter->monitor, slot);
	uint32_t bit = UINT32_C(1) << slot;
	struct usage_event row;
	bool is_reset = false;
	bool is_due = (meter->wants_row & bit) != 0 ||
		      !energy_knows(&meter->energy, gpu->info.uuid);
	if (!is_due || !gpu->is_known || !gpu_reading_has(&gpu->reading, GPU_FIELD_ENERGY_MJ))
		return;
	meter->wants_row &= ~bit;
	if (!energy_row(&meter->energy, gpu->info.uuid,
			(uint64_t)gpu->reading.values[GPU_FIELD_ENERGY_MJ], gpu->reading_wall_s,
			&row, &is_reset))
		return;
	if (append(meter, &row) == ERR_OK)
		energy_taken(&meter->energy, &row);
	if (is_reset)
		meter->config.on_counter_reset(meter->config.arg, gpu->info.uuid);
}

static void tell_stranger(struct meter *meter, const struct monitor_gpu *gpu,
			  const struct nvml_process *process)
{
	struct usage_event event = { .type = EVENT_UNEXPLAINED,
				     .t_s = world_wall_s(loop_world(meter->loop)),
				     .pid = process->pid,
				     .memory_mib = process->memory_bytes >> 20 };
	if (gpu_reading_has(&gpu->reading, GPU_FIELD_UTIL_PERCENT))
		event.util_milli = (uint32_t)gpu->reading.values[GPU_FIELD_UTIL_PERCENT] * 10;
	memcpy(event.gpu, gpu->info.uuid, sizeof event.gpu);
	if (append(meter, &event) == ERR_OK)
		log_kv(LOG_WARN, "a process uses a GPU that nobody holds", "gpu", event.gpu, NULL);
}

void meter_on_processes(struct meter *meter, uint32_t slot)
{
	const struct monitor_gpu *gpu = monitor_gpu(meter->monitor, slot);
	struct stranger next[STRANGERS_MAX] = { 0 };
	size_t at = 0;
	bool is_held = usage_next_holder(meter->usage, gpu->info.uuid, &at) != NULL;
	for (uint32_t i = 0; !is_held && i < gpu->processes.count && i < STRANGERS_MAX; i++) {
		const struct nvml_process *process = &gpu->processes.items[i];
		next[i].pid = process->pid;
		for (size_t j = 0; j < STRANGERS_MAX; j++) {
			if (meter->strangers[slot][j].pid == process->pid)
				next[i] = meter->strangers[slot][j];
		}
		// A process may outlive its allocation by moments.
		next[i].sights++;
		if (!next[i].is_told && next[i].sights >= STRANGER_SIGHTS) {
			tell_stranger(meter, gpu, process);
			next[i].is_told = true;
		}
	}
	memcpy(meter->strangers[slot], next, sizeof next);
}

static void on_snapshot_line(void *arg, struct str line)
{
	struct meter *meter = arg;
	usage_load_line(meter->usage, line);
	energy_load_line(&meter->energy, line);
}

static void on_event(void *arg, const struct usage_event *event)
{
	struct meter *meter = arg;
	usage_load_event(meter->usage, event);
	energy_load_event(&meter->energy, event);
}

static void load_pending(struct meter *meter)
{
	AUTO(buf_done) struct buf content = { 0 };
	struct err err = { 0 };
	err_status status = fs_read(meter->pending_path, PENDING_MAX_BYTES, &content, &err);
	if (status != ERR_OK && status != ERR_NOT_FOUND)
		log_err(LOG_WARN, "untold allocations are not read", &err);
	// Remembered as written, so that what is told now leaves the file.
	buf_put(&meter->pending, buf_str(&content));
	struct str rest = buf_str(&content), line;
	while (str_split_next(&rest, '\n', &line)) {
		if (line.len > 0)
			usage_load_line(meter->usage, line);
	}
}

static void on_retry(void *arg)
{
	struct meter *meter = arg;
	meter_step(meter);
	flush(meter);
}

static void log_opening(const struct meter *meter)
{
	struct journal_stats stats;
	char seq[32], torn[32], damaged[32];
	journal_stats(meter->journal, &stats);
	(void)snprintf(seq, sizeof seq, "%" PRIu64, stats.last_seq);
	(void)snprintf(torn, sizeof torn, "%" PRIu64, stats.torn_bytes);
	(void)snprintf(damaged, sizeof damaged, "%" PRIu64, stats.damaged_lines);
	log_kv(stats.torn_bytes + stats.damaged_lines > 0 ? LOG_WARN : LOG_INFO, "journal is open",
	       "last_seq", seq, "torn_bytes_cut", torn, "damaged_lines_skipped", damaged, NULL);
}

err_status meter_new(struct loop *loop, const struct meter_config *config, struct monitor *monitor,
		     struct meter **ret, struct err *err)
{
	struct meter *meter = calloc(1, sizeof *meter);
	if (meter == NULL)
		return err_set(err, ERR_LIMIT, "no memory for metering");
	ASSERT(config->sample_s > 0);
	meter->loop = loop;
	meter->config = *config;
	meter->monitor = monitor;
	const struct usage_config usage = { .has_pods = config->has_pods,
					    .arg = meter,
					    .emit = emit };
	const struct journal_config journal = { .dir = config->dir,
						.source = config->source,
						.boot_id = config->boot_id,
						.segment_bytes = config->segment_bytes,
						.limit_bytes = config->limit_bytes };
	const struct journal_replay replay = { on_snapshot_line, on_event, meter };
	energy_init(&meter->energy, config->boot_id);
	(void)snprintf(meter->pending_path, sizeof meter->pending_path, "%s", config->pending_path);
	meter->usage = usage_new(&usage);
	meter->sample_timer = loop_timer_new(loop, on_sample, meter);
	meter->retry_timer = loop_timer_new(loop, on_retry, meter);
	err_status status = meter->usage == NULL ? err_set(err, ERR_LIMIT, "no memory for usage")
						 : ERR_OK;
	if (status == ERR_OK)
		status = syncer_new(loop, on_synced, meter, &meter->syncer, err);
	if (status == ERR_OK)
		status = journal_open(&journal, &replay, &meter->journal, err);
	if (status != ERR_OK) {
		meter_free(meter);
		return status;
	}
	log_opening(meter);
	load_pending(meter);
	loop_timer_set(meter->sample_timer, 0);
	*ret = meter;
	return ERR_OK;
}

void meter_free(struct meter *meter)
{
	if (meter == NULL)
		return;
	syncer_free(meter->syncer);
	journal_close(meter->journal);
	usage_free(meter->usage);
	buf_done(&meter->pending);
	loop_timer_free(meter->sample_timer);
	loop_timer_free(meter->retry_timer);
	free(meter);
}

struct usage *meter_usage(struct meter *meter) { return meter->usage; }

struct journal *meter_journal(struct meter *meter) { return meter->journal; }

void meter_stats(const struct meter *meter, struct meter_stats *ret) { *ret = meter->stats; }
