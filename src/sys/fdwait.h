// SPDX-License-Identifier: Apache-2.0
// Waiting for one descriptor until an instant, for clients of libraries that have no other way to
// keep a time limit. A program's loop stands still meanwhile: limits are short and stated where
// they are given. The descriptor stays the caller's.
#pragma once

#include "base/defs.h"

enum wait_events { WAIT_READ = 1, WAIT_WRITE = 2 };

// What is ready of what was asked for, errors and hang-ups as all of it; 0 when the instant (of
// clock_mono_ns) came first. An instant that has passed only looks.
unsigned wait_fd(int fd, unsigned events, uint64_t until_ns);
