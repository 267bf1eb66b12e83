// SPDX-License-Identifier: Apache-2.0
// Inside of the journal, shared by its files alone: what is on disk and what waits in memory.
// queue holds framed lines that are not synced yet, in order; the first written_bytes of it are
// already in the active file. Segments are in the order of their numbers; the last is active.
#pragma once

#include "journal/journal.h"

#include <limits.h>

enum { JOURNAL_SEGMENTS_MAX = 1024, JOURNAL_READ_MAX_BYTES = 256 * 1024 * 1024 };

struct journal_file {
	uint64_t first_seq, last_seq; // last < first: holds no event yet
	size_t bytes;
};

struct journal {
	char dir[PATH_MAX - 64];
	char source[256], boot[USAGE_NAME_BYTES];
	size_t segment_bytes, limit_bytes;
	journal_hook_fn *hook;
	void *hook_arg;

	struct journal_file files[JOURNAL_SEGMENTS_MAX];
	size_t file_count;
	size_t file_bytes; // sum over files
	int fd;            // of the active file, -1: the next write makes one
	struct buf queue;
	size_t written_bytes;
	size_t syncing_bytes; // written when the running sync began; 0: none runs
	uint64_t syncing_seq;
	uint64_t next_seq, written_seq, synced_seq, durable_seq, snapshot_seq;
	bool snapshot_due;
	struct {
		uint64_t first_seq, seq; // where reading for the push stopped
		size_t offset;
	} cursor;
	struct journal_stats stats;
};

void journal_path(const struct journal *journal, uint64_t first_seq, char out[PATH_MAX]);
int journal_step(const struct journal *journal, const char *step); // runs the hook
MUST_USE err_status journal_load(struct journal *journal, const char *boot_id,
				 const struct journal_replay *replay, struct err *err);
void journal_drop_files(struct journal *journal);
uint64_t journal_line_seq(struct str text); // 0 when there is none
