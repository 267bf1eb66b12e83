// SPDX-License-Identifier: Apache-2.0
#include "sys/loop.h"

#include "base/rng.h"
#include "sys/clock.h"
#include "sys/loop_timer.h"
#include "sys/random.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 64 };

struct loop_fd {
	struct loop *loop;
	struct loop_fd *next_dead;
	loop_fd_fn *fn;
	void *arg;
	int fd;
	unsigned events; // wanted; 0 means that epoll does not know the fd
	bool dead;       // freed by its owner while events of this turn may still name it
};

struct call {
	loop_fn *fn;
	void *arg;
};

struct call_queue {
	struct call *items;
	size_t count, cap;
};

struct loop {
	int epoll_fd, event_fd;
	int depth; // nested loop_run_once calls
	bool stop;
	uint64_t now_ns;
	struct timer_heap timers;
	struct loop_fd *dead_fds;
	struct loop_fd *wake; // of event_fd
	struct call_queue deferred;
	pthread_mutex_t posted_lock; // guards posted alone
	struct call_queue posted;
	struct world world;
	struct rng rng; // of the world
	loop_fn *on_hup;
	void *on_hup_arg;
};

// Signal handlers have no argument: one loop of the process takes them.
static struct {
	volatile sig_atomic_t got_stop, got_hup;
	volatile pid_t pid;
	volatile int event_fd;
	struct loop *loop;
} signals = { .event_fd = -1 };

// ---- queues of calls

static void queue_push(struct call_queue *queue, struct call call)
{
	if (queue->count == queue->cap) {
		queue->cap = queue->cap == 0 ? 16 : queue->cap * 2;
		queue->items = realloc(queue->items, queue->cap * sizeof *queue->items);
		ASSERT(queue->items != NULL);
	}
	queue->items[queue->count++] = call;
}

// Runs what is in the queue now; calls may queue more, which wait for the next turn.
static void queue_run(struct call_queue batch)
{
	for (size_t i = 0; i < batch.count; i++)
		batch.items[i].fn(batch.items[i].arg);
	free(batch.items);
}

static struct call_queue queue_take(struct call_queue *queue)
{
	struct call_queue batch = *queue;
	*queue = (struct call_queue){ NULL, 0, 0 };
	return batch;
}

void loop_defer(struct loop *loop, loop_fn *fn, void *arg)
{
	ASSERT(fn != NULL);
	queue_push(&loop->deferred, (struct call){ fn, arg });
}

static void wake_up(int event_fd)
{
	uint64_t one = 1;
	// It can only fail when the counter is full, and then the loop is awake anyway.
	ssize_t rc = write(event_fd, &one, sizeof one);
	(void)rc;
}

void loop_post(struct loop *loop, loop_fn *fn, void *arg)
{
	ASSERT(fn != NULL);
	(void)pthread_mutex_lock(&loop->posted_lock);
	queue_push(&loop->posted, (struct call){ fn, arg });
	(void)pthread_mutex_unlock(&loop->posted_lock);
	wake_up(loop->event_fd);
}

void loop_unpost(struct loop *loop, loop_fn *fn, void *arg)
{
	struct call_queue *queue = &loop->posted;
	size_t kept = 0;
	(void)pthread_mutex_lock(&loop->posted_lock);
	for (size_t i = 0; i < queue->count; i++) {
		if (queue->items[i].fn != fn || queue->items[i].arg != arg)
			queue->items[kept++] = queue->items[i];
	}
	queue->count = kept;
	(void)pthread_mutex_unlock(&loop->posted_lock);
}

// ---- signals

static void on_signal(int signal_number)
{
	int saved_errno = errno;
	if (getpid() != signals.pid) {
		// A forked child that has not set its own handlers: act as without us.
		(void)signal(signal_number, SIG_DFL);
		(void)raise(signal_number);
	} else {
		if (signal_number == SIGHUP)
			signals.got_hup = 1;
		else
			signals.got_stop = 1;
		wake_up(signals.event_fd);
	}
	errno = saved_errno;
}

err_status loop_handle_signals(struct loop *loop, loop_fn *on_hup, void *arg, struct err *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	ASSERT(signals.loop == NULL || signals.loop == loop);
	signals.loop = loop;
	signals.pid = getpid();
	signals.event_fd = loop->event_fd;
	loop->on_hup = on_hup;
	loop->on_hup_arg = arg;
	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
		if (sigaction(numbers[i], &action, NULL) != 0)
			return err_sys(err, errno, "handler of signal %d", numbers[i]);
	action.sa_handler = SIG_IGN;
	if (sigaction(SIGPIPE, &action, NULL) != 0)
		return err_sys(err, errno, "ignoring SIGPIPE");
	return ERR_OK;
}

static void take_signals(struct loop *loop)
{
	if (signals.loop != loop)
		return;
	if (signals.got_stop) {
		signals.got_stop = 0;
		loop->stop = true;
	}
	if (signals.got_hup) {
		signals.got_hup = 0;
		if (loop->on_hup != NULL)
			loop->on_hup(loop->on_hup_arg);
	}
}

static void on_wake(void *arg, unsigned events)
{
	struct loop *loop = arg;
	uint64_t count;
	(void)events;
	ssize_t rc = read(loop->event_fd, &count, sizeof count);
	(void)rc; // EAGAIN: somebody else emptied it, the queues are looked at all the same
	take_signals(loop);
	(void)pthread_mutex_lock(&loop->posted_lock);
	struct call_queue batch = queue_take(&loop->posted);
	(void)pthread_mutex_unlock(&loop->posted_lock);
	queue_run(batch);
}

// ---- file descriptors

static uint32_t epoll_mask(unsigned events)
{
	return ((events & LOOP_READ) != 0 ? (uint32_t)EPOLLIN | (uint32_t)EPOLLRDHUP : 0U) |
	       ((events & LOOP_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0U);
}

// epoll reports hang-ups even for an empty mask, so an fd that wants nothing is taken out.
static int epoll_update(struct loop_fd *fd, unsigned events)
{
	struct epoll_event event = { .events = epoll_mask(events), .data.ptr = fd };
	int op = fd->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
	if (events == fd->events)
		return 0;
	int rc = epoll_ctl(fd->loop->epoll_fd, op, fd->fd, &event);
	if (rc == 0)
		fd->events = events;
	return rc;
}

err_status loop_fd_new(struct loop *loop, int fd, unsigned events, loop_fd_fn *fn, void *arg,
		       struct loop_fd **ret_fd, struct err *err)
{
	ASSERT(fn != NULL && fd >= 0);
	struct loop_fd *made = calloc(1, sizeof *made);
	if (made == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a file descriptor of the loop");
	*made = (struct loop_fd){ .loop = loop, .fn = fn, .arg = arg, .fd = fd };
	if (epoll_update(made, events) != 0) {
		int saved_errno = errno;
		free(made);
		return err_sys(err, saved_errno, "watching file descriptor %d", fd);
	}
	*ret_fd = made;
	return ERR_OK;
}

void loop_fd_set(struct loop_fd *fd, unsigned events)
{
	ASSERT(!fd->dead);
	int rc = epoll_update(fd, events);
	// It fails only for a closed or foreign fd, or without kernel memory.
	ASSERT(rc == 0);
}

void loop_fd_free(struct loop_fd *fd)
{
	if (fd == NULL)
		return;
	ASSERT(!fd->dead);
	// The owner may have closed the fd already, which removes it by itself.
	(void)epoll_update(fd, 0);
	fd->dead = true;
	fd->next_dead = fd->loop->dead_fds;
	fd->loop->dead_fds = fd;
}

static void free_dead_fds(struct loop *loop)
{
	while (loop->dead_fds != NULL) {
		struct loop_fd *fd = loop->dead_fds;
		loop->dead_fds = fd->next_dead;
		free(fd);
	}
}

static void dispatch(const struct epoll_event *event)
{
	struct loop_fd *fd = event->data.ptr;
	unsigned events = 0;
	if (fd->dead)
		return;
	if ((event->events & (EPOLLIN | EPOLLRDHUP)) != 0)
		events |= LOOP_READ;
	if ((event->events & EPOLLOUT) != 0)
		events |= LOOP_WRITE;
	if ((event->events & (EPOLLERR | EPOLLHUP)) != 0)
		events |= LOOP_READ | LOOP_WRITE;
	fd->fn(fd->arg, events);
}

// ---- timers

struct loop_timer *loop_timer_new(struct loop *loop, loop_fn *fn, void *arg)
{
	ASSERT(fn != NULL);
	struct loop_timer *timer = calloc(1, sizeof *timer);
	ASSERT(timer != NULL);
	*timer = (struct loop_timer){ .loop = loop, .fn = fn, .arg = arg, .heap_i = SIZE_MAX };
	return timer;
}

void loop_timer_set(struct loop_timer *timer, uint64_t delay_ns)
{
	// From the clock, not from the turn's time: a long callback must not shorten the delay.
	uint64_t now_ns = clock_mono_ns();
	uint64_t at_ns = delay_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delay_ns;
	timer_heap_set(&timer->loop->timers, timer, at_ns);
}

void loop_timer_stop(struct loop_timer *timer) { timer_heap_remove(&timer->loop->timers, timer); }

void loop_timer_free(struct loop_timer *timer)
{
	if (timer == NULL)
		return;
	loop_timer_stop(timer);
	free(timer);
}

static void run_timers(struct loop *loop)
{
	// What callbacks arm anew has a later number and waits for the next turn.
	uint64_t first_new = loop->timers.next_number;
	struct loop_timer *timer;
	while ((timer = timer_heap_first(&loop->timers)) != NULL && timer->at_ns <= loop->now_ns &&
	       timer->number < first_new) {
		timer_heap_remove(&loop->timers, timer);
		timer->fn(timer->arg);
	}
}

// ---- the world of pure cores

static uint64_t world_now(void *self)
{
	(void)self;
	return clock_mono_ns();
}

static int64_t world_wall(void *self)
{
	(void)self;
	return clock_wall_ns() / INT64_C(1000000000);
}

static uint64_t world_rand(void *self)
{
	struct loop *loop = self;
	return rng_next(&loop->rng);
}

const struct world *loop_world(struct loop *loop) { return &loop->world; }

// ---- the loop

err_status loop_new(struct loop **ret_loop, struct err *err)
{
	struct loop *loop = calloc(1, sizeof *loop);
	if (loop == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the event loop");
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&loop->posted_lock, NULL);
	loop->now_ns = clock_mono_ns();
	uint64_t seed;
	random_bytes(&seed, sizeof seed);
	rng_init(&loop->rng, seed);
	loop->world = (struct world){
		.self = loop, .mono_ns = world_now, .wall_s = world_wall, .random = world_rand
	};
	if (loop->epoll_fd < 0 || loop->event_fd < 0) {
		int saved_errno = errno;
		loop_free(loop);
		return err_sys(err, saved_errno, "making the event loop");
	}
	err_status status =
		loop_fd_new(loop, loop->event_fd, LOOP_READ, on_wake, loop, &loop->wake, err);
	if (status != ERR_OK) {
		loop_free(loop);
		return err == NULL ? status : err_wrap(err, "making the event loop");
	}
	*ret_loop = loop;
	return ERR_OK;
}

void loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	ASSERT(loop->depth == 0);
	if (signals.loop == loop) {
		static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
		for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
			(void)signal(numbers[i], SIG_DFL);
		signals.loop = NULL;
		signals.event_fd = -1;
	}
	loop_fd_free(loop->wake);
	free_dead_fds(loop);
	free(loop->timers.items);
	free(loop->deferred.items);
	free(loop->posted.items);
	(void)pthread_mutex_destroy(&loop->posted_lock);
	if (loop->event_fd >= 0)
		(void)close(loop->event_fd);
	if (loop->epoll_fd >= 0)
		(void)close(loop->epoll_fd);
	free(loop);
}

// How long epoll may sleep: up to the next timer, rounded up so that it is due on waking.
static int wait_ms(const struct loop *loop, int timeout_ms)
{
	const struct loop_timer *first = timer_heap_first(&loop->timers);
	if (loop->deferred.count > 0 || loop->stop)
		return 0;
	if (first == NULL)
		return timeout_ms;
	uint64_t left_ns = first->at_ns > loop->now_ns ? first->at_ns - loop->now_ns : 0;
	uint64_t left_ms = left_ns / 1000000 + (left_ns % 1000000 != 0);
	int timer_ms = left_ms > 3600000 ? 3600000 : (int)left_ms;
	return timeout_ms < 0 || timer_ms < timeout_ms ? timer_ms : timeout_ms;
}

void loop_run_once(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_TURN];

	loop->now_ns = clock_mono_ns();
	int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, wait_ms(loop, timeout_ms));
	ASSERT(count >= 0 || errno == EINTR);
	loop->now_ns = clock_mono_ns();
	loop->depth++;
	for (int i = 0; i < count; i++)
		dispatch(&events[i]);
	run_timers(loop);
	queue_run(queue_take(&loop->deferred));
	loop->depth--;
	if (loop->depth == 0)
		free_dead_fds(loop);
}

void loop_run(struct loop *loop)
{
	while (!loop->stop)
		loop_run_once(loop, -1);
	loop->stop = false;
}

void loop_stop(struct loop *loop) { loop->stop = true; }

bool loop_is_stopping(const struct loop *loop) { return loop->stop; }

uint64_t loop_now_ns(struct loop *loop) { return loop->now_ns; }
