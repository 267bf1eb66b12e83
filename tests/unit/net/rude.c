// SPDX-License-Identifier: Apache-2.0
#include "rude.h"

#include "net/sock.h"

#include <stdio.h>
#include <unistd.h>

static void end_connection(struct rude *rude, size_t i, rude_end end)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	if (end == RUDE_RESET)
		(void)setsockopt(rude->fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	loop_fd_free(rude->watches[i]);
	rude->watches[i] = NULL;
	(void)close(rude->fds[i]);
	rude->fds[i] = -1;
}

static void answer(struct rude *rude, size_t i)
{
	char bytes[16 * 1024];
	ssize_t got = recv(rude->fds[i], bytes, sizeof bytes, 0);
	if (got <= 0) {
		end_connection(rude, i, RUDE_CLOSE);
		return;
	}
	rude->requests++;
	if (rude->silent_count > 0 && rude->requests > rude->silent_after) {
		rude->silent_count--;
		end_connection(rude, i, RUDE_CLOSE);
		return;
	}
	ssize_t sent = send(rude->fds[i], rude->answer.data, rude->answer.len, MSG_NOSIGNAL);
	ASSERT(sent == (ssize_t)rude->answer.len);
	if (rude->end != RUDE_KEEP)
		end_connection(rude, i, rude->end);
}

static void on_readable(void *arg, unsigned events)
{
	struct rude *rude = arg;
	(void)events;
	for (size_t i = 0; i < rude->accepted; i++) {
		char byte;
		if (rude->fds[i] >= 0 && recv(rude->fds[i], &byte, 1, MSG_PEEK) >= 0)
			answer(rude, i);
	}
}

static void on_listen(void *arg, unsigned events)
{
	struct rude *rude = arg;
	struct sock_address peer;
	int fd = -1;
	(void)events;
	while (rude->accepted < ARRAY_COUNT(rude->fds) &&
	       sock_accept(rude->listen_fd, &fd, &peer) == 1) {
		size_t i = rude->accepted++;
		rude->fds[i] = fd;
		err_status status = loop_fd_new(rude->loop, fd, LOOP_READ, on_readable, rude,
						&rude->watches[i], NULL);
		ASSERT(status == ERR_OK);
	}
}

void rude_start(struct rude *rude, struct loop *loop)
{
	uint16_t port = 0;
	*rude = (struct rude){ .loop = loop };
	err_status status = sock_listen("127.0.0.1:0", &rude->listen_fd, &port, NULL);
	ASSERT(status == ERR_OK);
	status = loop_fd_new(loop, rude->listen_fd, LOOP_READ, on_listen, rude, &rude->watch, NULL);
	ASSERT(status == ERR_OK);
	(void)snprintf(rude->base, sizeof rude->base, "http://127.0.0.1:%u", (unsigned)port);
}

void rude_stop(struct rude *rude)
{
	for (size_t i = 0; i < rude->accepted; i++)
		if (rude->fds[i] >= 0)
			end_connection(rude, i, RUDE_CLOSE);
	loop_fd_free(rude->watch);
	(void)close(rude->listen_fd);
}
