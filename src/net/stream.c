// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include "net/sock.h"
#include "sys/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	READ_BYTES = 16 * 1024,
	READS_PER_TURN = 16, // then others get their turn
	KEEP_BUFFER_BYTES = 64 * 1024,
	COMPACT_BYTES = 1024 * 1024,
	OUT_MAX_BYTES = 256 * 1024 * 1024,
};

typedef enum stream_state {
	STREAM_CONNECTING,
	STREAM_HANDSHAKE,
	STREAM_OPEN,
	STREAM_FAILED,
} stream_state;

struct stream {
	struct loop *loop;
	struct loop_fd *watch;
	struct loop_timer *kick; // work that may not be done inside a call
	struct tls_conn *tls;
	const struct stream_handler *handler;
	void *arg;
	int fd;
	stream_state state;
	struct buf out;
	size_t out_sent; // of out
	uint64_t sent_total;
	unsigned handshake_wants, read_wants, write_wants; // LOOP_READ or LOOP_WRITE
	int busy;                                          // callbacks under way
	bool freed;                                        // by a callback; memory goes last
	bool paused, ended, shutting, shut;
	bool told_failed, drain_due;
	struct err err;
};

static void on_event(void *arg, unsigned events);
static void on_kick(void *arg);

// ---- life

err_status stream_new(struct loop *loop, int fd, struct tls_conn *tls,
		      const struct stream_handler *handler, void *arg, struct stream **ret,
		      struct err *err)
{
	struct stream *s = calloc(1, sizeof *s);
	ASSERT(s != NULL && fd >= 0);
	*s = (struct stream){ .loop = loop,
			      .tls = tls,
			      .handler = handler,
			      .arg = arg,
			      .fd = fd,
			      .out = { .limit = OUT_MAX_BYTES },
			      .handshake_wants = LOOP_WRITE,
			      .read_wants = LOOP_READ,
			      .write_wants = LOOP_WRITE };
	s->kick = loop_timer_new(loop, on_kick, s);
	// A socket that is connected already is writable at once, so both start alike.
	err_status status = loop_fd_new(loop, fd, LOOP_WRITE, on_event, s, &s->watch, err);
	if (status != ERR_OK) {
		stream_free(s);
		return status;
	}
	*ret = s;
	return ERR_OK;
}

static void release(struct stream *s)
{
	ASSERT(s->freed && s->busy == 0);
	free(s);
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	ASSERT(!s->freed);
	loop_fd_free(s->watch);
	loop_timer_free(s->kick);
	tls_conn_free(s->tls);
	(void)close(s->fd);
	buf_done(&s->out);
	s->freed = true;
	if (s->busy == 0)
		release(s);
}

static void fail(struct stream *s, const struct err *err)
{
	if (s->state == STREAM_FAILED)
		return;
	ASSERT(err->status != ERR_OK);
	s->state = STREAM_FAILED;
	s->err = *err;
	buf_clear(&s->out);
	s->out_sent = 0;
	loop_fd_set(s->watch, 0);
	loop_timer_set(s->kick, 0);
}

static void fail_sys(struct stream *s, const char *what, int sys_errno)
{
	struct err err;
	err_status status = err_set(&err, ERR_UNAVAILABLE, "%s: %s", what, strerror(sys_errno));
	ASSERT(status == ERR_UNAVAILABLE);
	fail(s, &err);
}

static void update_interest(struct stream *s)
{
	unsigned events = 0;
	if (s->freed || s->state == STREAM_FAILED)
		return;
	if (s->state == STREAM_CONNECTING)
		events = LOOP_WRITE;
	else if (s->state == STREAM_HANDSHAKE)
		events = s->handshake_wants;
	if (s->state == STREAM_OPEN && !s->paused && !s->ended)
		events |= s->read_wants;
	if (s->state == STREAM_OPEN && stream_unsent_bytes(s) > 0)
		events |= s->write_wants;
	loop_fd_set(s->watch, events);
}

// ---- writing

size_t stream_unsent_bytes(const struct stream *s) { return s->out.len - s->out_sent; }
uint64_t stream_sent_total(const struct stream *s) { return s->sent_total; }
const struct tls_conn *stream_tls(const struct stream *s) { return s->tls; }

// One write; false when the socket takes no more now, or failed.
static bool write_once(struct stream *s, struct str data, size_t *ret_count)
{
	struct err err;
	if (s->tls == NULL) {
		ssize_t sent = fault_due() ? -1 : send(s->fd, data.data, data.len, MSG_NOSIGNAL);
		if (sent >= 0) {
			*ret_count = (size_t)sent;
			return true;
		}
		if (errno != EAGAIN && errno != EINTR)
			fail_sys(s, "the connection failed", errno);
		return false;
	}
	tls_io io = tls_conn_write(s->tls, data, ret_count, &err);
	if (io == TLS_FAILED)
		fail(s, &err);
	s->write_wants = io == TLS_WANT_READ ? LOOP_READ : LOOP_WRITE;
	return io == TLS_DONE;
}

static void forget_sent(struct stream *s)
{
	if (s->out_sent == s->out.len) {
		s->out_sent = 0;
		buf_clear(&s->out);
		if (s->out.cap > KEEP_BUFFER_BYTES)
			buf_done(&s->out);
	} else if (s->out_sent > COMPACT_BYTES && s->out_sent > s->out.len / 2) {
		buf_consume(&s->out, s->out_sent);
		s->out_sent = 0;
	}
}

static void end_our_side(struct stream *s)
{
	s->shut = true;
	if (s->tls != NULL)
		tls_conn_send_end(s->tls);
	(void)shutdown(s->fd, SHUT_WR); // fails only when the peer is gone already
}

static void flush(struct stream *s)
{
	size_t count = 0;
	if (s->state != STREAM_OPEN)
		return;
	while (stream_unsent_bytes(s) > 0) {
		struct str rest = str_slice(buf_str(&s->out), s->out_sent, SIZE_MAX);
		if (!write_once(s, rest, &count))
			break;
		s->out_sent += count;
		s->sent_total += count;
	}
	forget_sent(s);
	if (s->shutting && !s->shut && s->state == STREAM_OPEN && stream_unsent_bytes(s) == 0)
		end_our_side(s);
}

void stream_write(struct stream *s, struct str data)
{
	ASSERT(!s->freed && !s->shutting);
	if (s->state == STREAM_FAILED || data.len == 0)
		return;
	buf_put(&s->out, data);
	if (!buf_ok(&s->out)) {
		struct err err;
		err_status status = err_set(&err, ERR_LIMIT, "more than %d bytes wait for the peer",
					    OUT_MAX_BYTES);
		ASSERT(status == ERR_LIMIT);
		fail(s, &err);
		return;
	}
	flush(s);
	s->drain_due = stream_unsent_bytes(s) > 0;
	update_interest(s);
}

void stream_shutdown(struct stream *s)
{
	ASSERT(!s->freed);
	s->shutting = true;
	flush(s);
	update_interest(s);
}

// ---- reading

void stream_pause(struct stream *s, bool paused)
{
	ASSERT(!s->freed);
	if (s->paused == paused)
		return;
	s->paused = paused;
	// TLS may hold bytes that the socket will never announce.
	if (!paused && s->state == STREAM_OPEN)
		loop_timer_set(s->kick, 0);
	update_interest(s);
}

typedef enum read_result { READ_SOME, READ_NONE, READ_END } read_result;

static read_result read_once(struct stream *s, char *out, size_t *ret_count)
{
	struct err err;
	if (s->tls == NULL) {
		ssize_t got = fault_due() ? -1 : recv(s->fd, out, READ_BYTES, 0);
		if (got > 0)
			*ret_count = (size_t)got;
		else if (got < 0 && errno != EAGAIN && errno != EINTR)
			fail_sys(s, "the connection failed", errno);
		return got > 0 ? READ_SOME : got == 0 ? READ_END : READ_NONE;
	}
	tls_io io = tls_conn_read(s->tls, out, READ_BYTES, ret_count, &err);
	if (io == TLS_FAILED)
		fail(s, &err);
	s->read_wants = io == TLS_WANT_WRITE ? LOOP_WRITE : LOOP_READ;
	return io == TLS_DONE ? READ_SOME : io == TLS_ENDED ? READ_END : READ_NONE;
}

static bool may_read(const struct stream *s)
{
	return !s->freed && s->state == STREAM_OPEN && !s->paused && !s->ended;
}

static void read_some(struct stream *s)
{
	char bytes[READ_BYTES];
	size_t count = 0;
	for (int i = 0; i < READS_PER_TURN; i++) {
		if (!may_read(s))
			return;
		read_result result = read_once(s, bytes, &count);
		if (result == READ_NONE)
			return;
		if (result == READ_END) {
			s->ended = true;
			s->handler->ended(s->arg);
			return;
		}
		ASSERT(count > 0 && count <= sizeof bytes);
		s->handler->data(s->arg, (struct str){ bytes, count });
	}
	if (may_read(s))
		loop_timer_set(s->kick, 0);
}

// ---- the way to STREAM_OPEN

static void finish_connect(struct stream *s)
{
	int error = 0;
	socklen_t size_bytes = sizeof error;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size_bytes) != 0)
		error = errno;
	if (error != 0) {
		fail_sys(s, "cannot connect", error);
		return;
	}
	s->state = s->tls == NULL ? STREAM_OPEN : STREAM_HANDSHAKE;
}

static void shake_hands(struct stream *s)
{
	struct err err;
	switch (tls_conn_handshake(s->tls, &err)) {
	case TLS_DONE: s->state = STREAM_OPEN; return;
	case TLS_WANT_READ: s->handshake_wants = LOOP_READ; return;
	case TLS_WANT_WRITE: s->handshake_wants = LOOP_WRITE; return;
	case TLS_ENDED: (void)err_set(&err, ERR_UNAVAILABLE, "the connection was cut"); break;
	case TLS_FAILED: break;
	}
	fail(s, &err);
}

static void step_open(struct stream *s)
{
	if (s->state == STREAM_CONNECTING)
		finish_connect(s);
	if (s->state == STREAM_HANDSHAKE)
		shake_hands(s);
	if (s->state == STREAM_OPEN)
		s->handler->opened(s->arg);
}

static void step(struct stream *s)
{
	s->busy++;
	if (s->state == STREAM_CONNECTING || s->state == STREAM_HANDSHAKE)
		step_open(s);
	if (!s->freed && s->state == STREAM_OPEN) {
		flush(s);
		if (s->state == STREAM_OPEN && s->drain_due && stream_unsent_bytes(s) == 0) {
			s->drain_due = false;
			s->handler->drained(s->arg);
		}
		read_some(s);
	}
	if (!s->freed && s->state == STREAM_FAILED && !s->told_failed) {
		s->told_failed = true;
		s->handler->failed(s->arg, &s->err);
	}
	update_interest(s);
	s->busy--;
	if (s->freed && s->busy == 0)
		release(s);
}

static void on_event(void *arg, unsigned events)
{
	(void)events;
	step(arg);
}

static void on_kick(void *arg) { step(arg); }
