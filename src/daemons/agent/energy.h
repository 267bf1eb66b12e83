// SPDX-License-Identifier: Apache-2.0
// Energy counters as rows of the journal. A counter runs within an epoch; a value below the last
// one, or another boot of the kernel, begins a new epoch. Rows of a GPU have strictly ascending
// times, so that no clock jump and no two edges in one second make a row that cannot be rated.
// Pure; state survives a restart in the journal.
#pragma once

#include "gpu/gpu.h"
#include "journal/usage_event.h"

enum { ENERGY_BOOT_BYTES = 9 };

struct energy_gpu {
	char uuid[GPU_UUID_BYTES];
	char boot[ENERGY_BOOT_BYTES]; // first characters of the kernel's boot id
	uint32_t epoch;               // counts within the boot
	uint64_t last_mj;
	int64_t last_t_s;
};

struct energy {
	char boot[ENERGY_BOOT_BYTES]; // of now
	struct energy_gpu gpus[GPU_MAX];
	size_t count;
};

void energy_init(struct energy *energy, const char *boot_id);
bool energy_knows(const struct energy *energy, const char *uuid); // it has a row
// Makes the row that follows from a reading. False when there is none to write: the clock has
// not passed the last row. *ret_is_reset: the counter began anew since the last row.
MUST_USE bool energy_row(struct energy *energy, const char *uuid, uint64_t mj, int64_t t_s,
			 struct usage_event *ret, bool *ret_is_reset);
// The row was taken; before that the same row is made again.
void energy_taken(struct energy *energy, const struct usage_event *row);

void energy_load_event(struct energy *energy, const struct usage_event *event);
void energy_load_line(struct energy *energy, struct str line);
void energy_save(const struct energy *energy, struct buf *out);
