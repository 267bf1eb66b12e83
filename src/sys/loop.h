// SPDX-License-Identifier: Apache-2.0
// The one event loop of a program (epoll): file descriptors, timers, signals, and messages from
// worker threads. One thread owns it and all state behind its callbacks; callbacks must not
// block. Objects returned are owned by the caller and freed by their _free before the loop is.
#pragma once

#include "base/err.h"
#include "base/world.h"

struct loop;
struct loop_fd;
struct loop_timer;

enum loop_events { LOOP_READ = 1, LOOP_WRITE = 2 };

typedef void loop_fd_fn(void *arg, unsigned events); // errors and hang-ups arrive as READ|WRITE
typedef void loop_fn(void *arg);

MUST_USE err_status loop_new(struct loop **ret_loop, struct err *err);
void loop_free(struct loop *loop);
void loop_run(struct loop *loop);               // until loop_stop
void loop_stop(struct loop *loop);              // from a callback
bool loop_is_stopping(const struct loop *loop); // for who turns it by loop_run_once
// Runs what is ready, waits at most timeout_ms (-1: until something is). For tests and sync use.
void loop_run_once(struct loop *loop, int timeout_ms);
const struct world *loop_world(struct loop *loop);
uint64_t loop_now_ns(struct loop *loop); // monotonic, taken once a turn

// The fd stays the caller's; it must be non-blocking. Freeing inside the own callback is allowed.
MUST_USE err_status loop_fd_new(struct loop *loop, int fd, unsigned events, loop_fd_fn *fn,
				void *arg, struct loop_fd **ret_fd, struct err *err);
void loop_fd_set(struct loop_fd *fd, unsigned events);
void loop_fd_free(struct loop_fd *fd); // NULL allowed

// One-shot; re-arm by loop_timer_set. Not armed when made.
struct loop_timer *loop_timer_new(struct loop *loop, loop_fn *fn, void *arg);
void loop_timer_set(struct loop_timer *timer, uint64_t delay_ns);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); // NULL allowed

// Calls fn(arg) in the next turn of the loop.
void loop_defer(struct loop *loop, loop_fn *fn, void *arg);
// The same from any other thread.
void loop_post(struct loop *loop, loop_fn *fn, void *arg);
// Drops what was posted with this fn and arg and has not been called; by the loop's thread, not
// inside a posted call, when no other thread posts it any more.
void loop_unpost(struct loop *loop, loop_fn *fn, void *arg);
// SIGTERM and SIGINT stop the loop; SIGPIPE is ignored; SIGHUP calls on_hup (may be NULL).
MUST_USE err_status loop_handle_signals(struct loop *loop, loop_fn *on_hup, void *arg,
					struct err *err);
