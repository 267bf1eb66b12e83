// SPDX-License-Identifier: Apache-2.0
// Pods on a GPU that is dead: which of them is asked to leave, so that whoever owns it lets it go
// on elsewhere. A node's agent tells in its GPUNode which GPU is dead since when and who holds it;
// a fault must last, because a GPU may come back; and when a good part of all GPUs is dead at once,
// nobody is sent away, because that is more likely an error of the software. Pure: time comes in,
// texts are borrowed from the object.
#pragma once

#include "base/json.h"

enum { DEAD_GPU_NOTE_BYTES = 384 };

struct dead_gpu_rule {
	bool evicts;
	int64_t after_s; // so long must it be dead
};

struct dead_gpu_pod {
	struct str namespace_, name, uid;
	char note[DEAD_GPU_NOTE_BYTES]; // for people: which GPU, and why
};

struct dead_gpu_count {
	size_t dead, all;
};

// How many pods must leave the GPUNode now; the wanted-th of them, where there are as many, into
// ret.
size_t dead_gpu_pods(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		     size_t wanted, struct dead_gpu_pod *ret);
void dead_gpu_add(struct dead_gpu_count *count, const json_t *node);
// More than a quarter of all, and more than one machine's.
bool dead_gpu_is_too_many(const struct dead_gpu_count *count);
