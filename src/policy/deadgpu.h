// SPDX-License-Identifier: Apache-2.0
// Pods on a GPU or a MIG device that is dead: which of them is asked to leave, so that whoever owns
// it lets it go on elsewhere; and which nodes are closed to new ones. A node's agent tells in its
// GPUNode which GPU is dead since when and who holds it; a fault must last, because a GPU may come
// back; and when a good part of all GPUs is dead at once, nobody is sent away, because that is more
// likely an error of the software. Pure: time comes in, texts are borrowed from the object.
#pragma once

#include "base/json.h"

enum { DEAD_GPU_NOTE_BYTES = 384 };

// Nodes that are closed to new pods by a taint: those whose GPUs are all dead, or any of them.
typedef enum dead_gpu_taint {
	DEAD_GPU_TAINT_NONE,
	DEAD_GPU_TAINT_ALL,
	DEAD_GPU_TAINT_ANY
} dead_gpu_taint;

struct dead_gpu_rule {
	bool evicts;
	dead_gpu_taint taint;
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
dead_gpu_taint dead_gpu_taint_of(struct str name); // "all", "any"; else none
// Whether the node should be closed. What is closed is opened as soon as the GPUs are well again,
// or the rule is another.
bool dead_gpu_closes(const json_t *node, const struct dead_gpu_rule *rule, int64_t now_s,
		     bool is_closed);
void dead_gpu_add(struct dead_gpu_count *count, const json_t *node);
// More than a quarter of all, and more than one machine's.
bool dead_gpu_is_too_many(const struct dead_gpu_count *count);
