// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 };

struct syncer {
	struct loop *loop;
	syncer_done_fn *fn;
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock; // guards fd, result and stop
	pthread_cond_t filled;
	int fd; // -1: no job
	int result;
	bool stop;
	bool is_busy; // the loop's
};

static void on_done(void *arg)
{
	struct syncer *syncer = arg;
	syncer->is_busy = false;
	syncer->fn(syncer->arg, syncer->result);
}

static void *work(void *arg)
{
	struct syncer *syncer = arg;
	pthread_mutex_lock(&syncer->lock);
	for (;;) {
		while (syncer->fd < 0 && !syncer->stop)
			pthread_cond_wait(&syncer->filled, &syncer->lock);
		if (syncer->fd < 0)
			break;
		int fd = syncer->fd;
		pthread_mutex_unlock(&syncer->lock);
		int result = fdatasync(fd) == 0 ? 0 : errno;
		(void)close(fd);
		pthread_mutex_lock(&syncer->lock);
		syncer->fd = -1;
		syncer->result = result;
		loop_post(syncer->loop, on_done, syncer);
	}
	pthread_mutex_unlock(&syncer->lock);
	return NULL;
}

err_status syncer_new(struct loop *loop, syncer_done_fn *fn, void *arg, struct syncer **ret,
		      struct err *err)
{
	pthread_attr_t attr;
	struct syncer *syncer = calloc(1, sizeof *syncer);
	if (syncer == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the sync thread");
	*syncer = (struct syncer){ .loop = loop, .fn = fn, .arg = arg, .fd = -1 };
	(void)pthread_mutex_init(&syncer->lock, NULL);
	(void)pthread_cond_init(&syncer->filled, NULL);
	int failure = pthread_attr_init(&attr);
	if (failure == 0) {
		(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
		failure = pthread_create(&syncer->thread, &attr, work, syncer);
		(void)pthread_attr_destroy(&attr);
	}
	if (failure != 0) {
		free(syncer);
		return err_sys(err, failure, "starting the sync thread");
	}
	*ret = syncer;
	return ERR_OK;
}

void syncer_free(struct syncer *syncer)
{
	if (syncer == NULL)
		return;
	pthread_mutex_lock(&syncer->lock);
	syncer->stop = true;
	pthread_cond_signal(&syncer->filled);
	pthread_mutex_unlock(&syncer->lock);
	(void)pthread_join(syncer->thread, NULL);
	(void)pthread_cond_destroy(&syncer->filled);
	(void)pthread_mutex_destroy(&syncer->lock);
	loop_unpost(syncer->loop, on_done, syncer); // an end that nobody waits for any more
	free(syncer);
}

bool syncer_is_busy(const struct syncer *syncer) { return syncer->is_busy; }

void syncer_start(struct syncer *syncer, int owned_fd)
{
	ASSERT(!syncer->is_busy && owned_fd >= 0);
	syncer->is_busy = true;
	pthread_mutex_lock(&syncer->lock);
	syncer->fd = owned_fd;
	pthread_cond_signal(&syncer->filled);
	pthread_mutex_unlock(&syncer->lock);
}
