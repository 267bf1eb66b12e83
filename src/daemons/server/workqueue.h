// SPDX-License-Identifier: Apache-2.0
// Work by key for controllers: a key is worked on by one pass at a time, a change during a pass
// makes another one, a failed pass is repeated later and later (0.2 s to 30 s). At most so many
// passes at once. Loop thread only.
#pragma once

#include "base/str.h"
#include "sys/loop.h"

struct workqueue;

// Begins a pass; it ends with workqueue_done, from inside or later.
typedef void workqueue_fn(void *arg, struct str key);

struct workqueue *workqueue_new(struct loop *loop, size_t running_max, workqueue_fn *fn, void *arg);
void workqueue_free(struct workqueue *queue); // NULL allowed; no pass may report afterwards
void workqueue_add(struct workqueue *queue, struct str key);
void workqueue_done(struct workqueue *queue, struct str key, bool is_good);
// For work that can wait for more of its kind. False: it is put off, the pass ends, and another
// comes when quiet_ns are over or the key changes. True: it was put off for so long. Called from
// inside a pass of the key.
MUST_USE bool workqueue_settled(struct workqueue *queue, struct str key, uint64_t quiet_ns);
size_t workqueue_depth(const struct workqueue *queue);
uint64_t workqueue_passes(const struct workqueue *queue);
uint64_t workqueue_failures(const struct workqueue *queue);
