// SPDX-License-Identifier: Apache-2.0
// Metering of this node: usage (who holds what) and energy become events, events go to the
// journal, the journal is synced by a thread and read by the push. Owns journal, usage and
// energy; is told what the kubelet, the pods and the driver say. A full disk is stated once,
// waited out and left behind without a lost event.
#pragma once

#include "daemons/agent/monitor.h"
#include "daemons/agent/usage.h"
#include "journal/journal.h"

struct meter;

struct meter_config {
	const char *dir;          // of the journal
	const char *pending_path; // file of what is seen and not told yet
	const char *source;       // node name
	const char *boot_id;      // of the kernel
	size_t segment_bytes, limit_bytes;
	int64_t sample_s;
	bool has_pods;
	const char *proc_root; // of processes on the node; NULL: a GPU's use is split by shares
	void *arg;
	loop_fn *on_durable;                              // more can be pushed
	void (*on_read_wanted)(void *arg, uint32_t slot); // a fresh reading is wanted
	void (*on_counter_reset)(void *arg, const char *uuid);
};

struct meter_stats {
	uint64_t told[5]; // events taken by the journal, by event_type
};

MUST_USE err_status meter_new(struct loop *loop, const struct meter_config *config,
			      struct monitor *monitor, struct meter **ret, struct err *err);
void meter_free(struct meter *meter); // NULL allowed
struct usage *meter_usage(struct meter *meter);
struct journal *meter_journal(struct meter *meter);
// Emits what is due; call it after usage was told something.
void meter_step(struct meter *meter);
void meter_on_reading(struct meter *meter, uint32_t slot);
void meter_on_processes(struct meter *meter, uint32_t slot);
void meter_stats(const struct meter *meter, struct meter_stats *ret);
