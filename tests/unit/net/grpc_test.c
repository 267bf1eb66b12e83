// SPDX-License-Identifier: Apache-2.0
// Client and server of our own against each other on one loop; the real grpc-go peer is in
// tests/integration.
#include "check.h"
#include "net/grpc.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

struct bench {
	struct check *c;
	struct loop *loop;
	struct grpc_server *server;
	char socket_path[80];
	struct grpc_stream *held; // a call that waits
	int closed_count;
	bool free_on_call;
	// what the client saw
	int done_count;
	enum grpc_code code;
	char error[200];
	struct buf message;
	int message_count;
	struct grpc_call *cancel_on_message;
};

static void on_closed(void *arg)
{
	struct bench *b = arg;
	b->closed_count++;
	b->held = NULL;
}

static void method_echo(void *arg, struct grpc_stream *stream, struct str message)
{
	(void)arg;
	grpc_send(stream, message);
	grpc_finish(stream, GRPC_OK, NULL);
}

static void method_fail(void *arg, struct grpc_stream *stream, struct str message)
{
	(void)arg;
	(void)message;
	grpc_finish(stream, GRPC_NOT_FOUND, "no such thing: 100%\n\xc3\xa4");
}

static void method_fail_late(void *arg, struct grpc_stream *stream, struct str message)
{
	(void)arg;
	grpc_send(stream, message);
	grpc_finish(stream, GRPC_ABORTED, "changed its mind");
}

static void method_silent(void *arg, struct grpc_stream *stream, struct str message)
{
	(void)arg;
	(void)message;
	grpc_finish(stream, GRPC_OK, NULL);
}

static void method_hold(void *arg, struct grpc_stream *stream, struct str message)
{
	struct bench *b = arg;
	b->held = stream;
	grpc_stream_on_closed(stream, on_closed, b);
	if (message.len > 0)
		grpc_send(stream, message);
	if (b->free_on_call) {
		grpc_server_free(b->server);
		b->server = NULL;
	}
}

static const struct grpc_method methods[] = {
	{ "/t.T/Echo", method_echo },          { "/t.T/Fail", method_fail },
	{ "/t.T/FailLate", method_fail_late }, { "/t.T/Silent", method_silent },
	{ "/t.T/Hold", method_hold },
};

static void on_done(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct bench *b = arg;
	b->done_count++;
	b->code = code;
	(void)snprintf(b->error, sizeof b->error, "%s", error);
	buf_clear(&b->message);
	buf_put(&b->message, message);
}

static void on_message(void *arg, struct str message)
{
	struct bench *b = arg;
	b->message_count++;
	buf_clear(&b->message);
	buf_put(&b->message, message);
	if (b->cancel_on_message != NULL)
		grpc_call_cancel(b->cancel_on_message);
}

static bool has_held(const struct bench *b) { return b->held != NULL; }
static bool is_done(const struct bench *b) { return b->done_count > 0; }
static bool is_closed(const struct bench *b) { return b->closed_count > 0; }
static bool has_message(const struct bench *b) { return b->message_count > 0; }

// Runs the loop until the condition holds; false after five seconds.
static bool wait_until(struct bench *b, bool (*condition)(const struct bench *b))
{
	uint64_t end_ns = world_mono_ns(loop_world(b->loop)) + 5 * SECOND_NS;
	while (!condition(b)) {
		if (world_mono_ns(loop_world(b->loop)) > end_ns)
			return false;
		loop_run_once(b->loop, 20);
	}
	return true;
}

static void bench_open(struct bench *b, struct check *c)
{
	struct err err = { 0 };
	*b = (struct bench){ .c = c };
	(void)snprintf(b->socket_path, sizeof b->socket_path, "/tmp/grpc_test.%d.sock",
		       (int)getpid());
	CHECK(c, "loop", loop_new(&b->loop, &err) == ERR_OK);
	err_status status = grpc_server_new(b->loop, b->socket_path, methods, ARRAY_COUNT(methods),
					    b, &b->server, &err);
	CHECK(c, err.text, status == ERR_OK);
}

static void bench_close(struct bench *b)
{
	grpc_server_free(b->server);
	CHECK(b->c, "the socket file is gone", access(b->socket_path, F_OK) != 0);
	loop_run_once(b->loop, 0);
	loop_free(b->loop);
	buf_done(&b->message);
}

static void call_for(struct bench *b, const char *method, struct str message, uint64_t timeout_ns)
{
	b->done_count = 0;
	b->message_count = 0;
	(void)grpc_call_start(b->loop, b->socket_path, method, message, timeout_ns, on_done, b);
	CHECK(b->c, "not from inside", b->done_count == 0);
	CHECK(b->c, method, wait_until(b, is_done));
}

static void test_unary(struct check *c)
{
	static const struct {
		const char *name, *method, *message;
		enum grpc_code code;
		const char *answer, *error;
	} cases[] = {
		{ "echo", "/t.T/Echo", "hello", GRPC_OK, "hello", "" },
		{ "empty", "/t.T/Echo", "", GRPC_OK, "", "" },
		{ "unknown method", "/t.T/Nope", "x", GRPC_UNIMPLEMENTED, "",
		  "unknown method /t.T/Nope" },
		{ "trailers only", "/t.T/Fail", "x", GRPC_NOT_FOUND, "",
		  "no such thing: 100%\n\xc3\xa4" },
		{ "code after a message", "/t.T/FailLate", "x", GRPC_ABORTED, "",
		  "changed its mind" },
		{ "no message", "/t.T/Silent", "x", GRPC_INTERNAL, "",
		  "a unary call was answered without a message" },
	};
	struct bench b;
	bench_open(&b, c);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		call_for(&b, cases[i].method, str_of(cases[i].message), SECOND_NS);
		CHECK_INT(c, cases[i].name, b.code, cases[i].code);
		CHECK_STR(c, cases[i].name, buf_str(&b.message), cases[i].answer);
		CHECK_STR(c, cases[i].name, str_of(b.error), cases[i].error);
		CHECK_INT(c, cases[i].name, b.done_count, 1);
	}
	struct stat st;
	CHECK(c, "socket", stat(b.socket_path, &st) == 0);
	CHECK_INT(c, "mode", st.st_mode & 0777, 0700);
	bench_close(&b);
}

static void test_sizes(struct check *c)
{
	static const struct {
		const char *name;
		size_t size_bytes;
		enum grpc_code code;
	} cases[] = {
		{ "window", 65535, GRPC_OK },
		{ "4 MiB", GRPC_MESSAGE_MAX_BYTES, GRPC_OK },
		{ "a byte more", GRPC_MESSAGE_MAX_BYTES + 1, GRPC_RESOURCE_EXHAUSTED },
	};
	struct bench b;
	bench_open(&b, c);
	char *big = malloc(GRPC_MESSAGE_MAX_BYTES + 1);
	ASSERT(big != NULL);
	for (size_t i = 0; i < GRPC_MESSAGE_MAX_BYTES + 1; i++)
		big[i] = (char)(i * 31 % 251);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str message = { big, cases[i].size_bytes };
		call_for(&b, "/t.T/Echo", message, 5 * SECOND_NS);
		CHECK_INT(c, cases[i].name, b.code, cases[i].code);
		CHECK(c, cases[i].name,
		      cases[i].code != GRPC_OK || str_eq(buf_str(&b.message), message));
	}
	free(big);
	bench_close(&b);
}

static struct grpc_call *watch(struct bench *b, struct str message)
{
	b->done_count = 0;
	return grpc_watch_start(b->loop, &(struct grpc_watch_request){
						 .socket_path = b->socket_path,
						 .method = "/t.T/Hold",
						 .message = message,
						 .on_message = on_message,
						 .on_done = on_done,
						 .arg = b,
					 });
}

static void test_stream(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	(void)watch(&b, STR("first"));
	CHECK(c, "first", wait_until(&b, has_message));
	CHECK_STR(c, "first", buf_str(&b.message), "first");
	for (int i = 2; i <= 50; i++) {
		char text[20];
		(void)snprintf(text, sizeof text, "message %d", i);
		b.message_count = 0;
		grpc_send(b.held, str_of(text));
		CHECK(c, "later", wait_until(&b, has_message));
		CHECK_STR(c, "later", buf_str(&b.message), text);
	}
	b.message_count = 0;
	for (int i = 0; i < 1000; i++)
		grpc_send(b.held, STR("burst"));
	grpc_finish(b.held, GRPC_OK, NULL);
	CHECK(c, "end", wait_until(&b, is_done));
	CHECK_INT(c, "end", b.code, GRPC_OK);
	CHECK_INT(c, "none lost", b.message_count, 1000);
	CHECK_INT(c, "finish is no close", b.closed_count, 0);
	bench_close(&b);
}

static void test_cancel(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	struct grpc_call *call = watch(&b, STR(""));
	CHECK(c, "held", wait_until(&b, has_held));
	grpc_call_cancel(call);
	CHECK(c, "server hears of it", wait_until(&b, is_closed));
	CHECK_INT(c, "client does not", b.done_count, 0);

	b.closed_count = 0;
	b.cancel_on_message = watch(&b, STR("x"));
	CHECK(c, "held again", wait_until(&b, has_message));
	CHECK(c, "canceled in its own message", wait_until(&b, is_closed));
	CHECK_INT(c, "client does not", b.done_count, 0);
	bench_close(&b);
}

static void test_deadline(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	call_for(&b, "/t.T/Hold", STR(""), SECOND_NS / 20);
	CHECK_INT(c, "client", b.code, GRPC_DEADLINE_EXCEEDED);
	CHECK(c, "server", wait_until(&b, is_closed));
	CHECK_INT(c, "once", b.closed_count, 1);
	bench_close(&b);
}

static void test_limits(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	(void)watch(&b, STR(""));
	CHECK(c, "held", wait_until(&b, has_held));
	char *big = calloc(1, GRPC_MESSAGE_MAX_BYTES + 1);
	ASSERT(big != NULL);
	// Nobody reads in between: the fifth does not fit any more.
	for (int i = 0; i < 5 && b.held != NULL; i++)
		grpc_send(b.held, (struct str){ big, GRPC_MESSAGE_MAX_BYTES });
	CHECK(c, "ends", wait_until(&b, is_done));
	CHECK_INT(c, "slow peer", b.code, GRPC_RESOURCE_EXHAUSTED);
	CHECK(c, "told", wait_until(&b, is_closed));
	b.closed_count = 0;
	(void)watch(&b, STR(""));
	CHECK(c, "held", wait_until(&b, has_held));
	grpc_send(b.held, (struct str){ big, GRPC_MESSAGE_MAX_BYTES + 1 });
	CHECK(c, "ends", wait_until(&b, is_done));
	CHECK_INT(c, "too large", b.code, GRPC_RESOURCE_EXHAUSTED);
	CHECK_STR(c, "too large", str_of(b.error), "the answer is over 4 MiB");
	CHECK(c, "told", wait_until(&b, is_closed));
	free(big);
	bench_close(&b);
}

static void test_server_goes(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	(void)watch(&b, STR(""));
	CHECK(c, "held", wait_until(&b, has_held));
	grpc_server_free(b.server);
	b.server = NULL;
	CHECK_INT(c, "handler is told", b.closed_count, 1);
	CHECK(c, "client is told", wait_until(&b, is_done));
	CHECK_INT(c, "client is told", b.code, GRPC_UNAVAILABLE);
	call_for(&b, "/t.T/Echo", STR("x"), SECOND_NS);
	CHECK_INT(c, "nobody there", b.code, GRPC_UNAVAILABLE);
	bench_close(&b);

	bench_open(&b, c);
	b.free_on_call = true;
	(void)watch(&b, STR("x"));
	CHECK(c, "freed in its own handler", wait_until(&b, is_done));
	CHECK_INT(c, "freed in its own handler", b.closed_count, 1);
	bench_close(&b);
}

static int raw_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ASSERT(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
	return fd;
}

static void test_bad_peers(struct check *c)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const char *const garbage[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "",
					       "\377\377" };
	struct bench b;
	bench_open(&b, c);
	for (size_t i = 0; i < ARRAY_COUNT(garbage); i++) {
		int fd = raw_connect(b.socket_path);
		(void)!write(fd, garbage[i], strlen(garbage[i]));
		loop_run_once(b.loop, 10);
		loop_run_once(b.loop, 10);
		(void)close(fd);
	}
	// A frame header that promises 16 MiB after a good preface.
	int fd = raw_connect(b.socket_path);
	(void)!write(fd, preface, sizeof preface - 1);
	(void)!write(fd, "\0\0\0\4\0\0\0\0\0\377\377\377\0\0\0\0\0\1", 18);
	for (int i = 0; i < 3; i++)
		loop_run_once(b.loop, 10);
	int many[80];
	for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
		many[i] = raw_connect(b.socket_path);
		loop_run_once(b.loop, 0);
	}
	loop_run_once(b.loop, 10);
	for (size_t i = 0; i < ARRAY_COUNT(many); i++)
		(void)close(many[i]);
	(void)close(fd);
	for (int i = 0; i < 5; i++)
		loop_run_once(b.loop, 10);
	call_for(&b, "/t.T/Echo", STR("alive"), SECOND_NS);
	CHECK_STR(c, "the server lives", buf_str(&b.message), "alive");
	bench_close(&b);
}

static void test_socket_file(struct check *c)
{
	struct bench b;
	struct grpc_server *second = NULL;
	struct err err = { 0 };
	char long_path[200];
	bench_open(&b, c);
	CHECK(c, "a second takes the place",
	      grpc_server_new(b.loop, b.socket_path, methods, 1, &b, &second, &err) == ERR_OK);
	grpc_server_free(b.server);
	b.server = NULL;
	CHECK(c, "the first does not remove it", access(b.socket_path, F_OK) == 0);
	call_for(&b, "/t.T/Echo", STR("second"), SECOND_NS);
	CHECK_INT(c, "the second answers", b.code, GRPC_OK);
	grpc_server_free(second);

	FILE *file = fopen(b.socket_path, "w");
	ASSERT(file != NULL);
	(void)fclose(file);
	CHECK_INT(c, "no socket there",
		  grpc_server_new(b.loop, b.socket_path, methods, 1, &b, &second, &err),
		  ERR_CONFLICT);
	CHECK(c, "the file stays", unlink(b.socket_path) == 0);
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	CHECK_INT(c, "long path", grpc_server_new(b.loop, long_path, methods, 1, &b, &second, &err),
		  ERR_INVALID);
	bench_close(&b);
}

// Permissions of the socket file are one guard, who is at the other end is the second.
static void test_other_users(struct check *c)
{
	enum { NOBODY = 65534 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct bench b;
	struct grpc_server *theirs = NULL;
	struct err err = { 0 };
	char byte = 0;
	if (geteuid() != 0)
		return; // only root can play another user
	bench_open(&b, c);
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", b.socket_path);
	CHECK_INT(c, "open to all", chmod(b.socket_path, 0777), 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(c, "another user", seteuid(NOBODY), 0);
	int connected = connect(fd, (const struct sockaddr *)&address, sizeof address);
	CHECK_INT(c, "root again", seteuid(0), 0);
	CHECK_INT(c, "connects", connected, 0);
	for (int i = 0; i < 5; i++)
		loop_run_once(b.loop, 10);
	CHECK_INT(c, "is closed at once", recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	(void)close(fd);
	call_for(&b, "/t.T/Echo", STR("root"), SECOND_NS);
	CHECK_INT(c, "root is served", b.code, GRPC_OK);

	grpc_server_free(b.server);
	b.server = NULL;
	CHECK_INT(c, "another user's server", seteuid(NOBODY), 0);
	err_status status = grpc_server_new(b.loop, b.socket_path, methods, 1, &b, &theirs, &err);
	CHECK_INT(c, "back", seteuid(0), 0);
	CHECK_INT(c, "listens", status, ERR_OK);
	call_for(&b, "/t.T/Echo", STR("secret"), SECOND_NS);
	CHECK_INT(c, "is told nothing", b.code, GRPC_UNAVAILABLE);
	CHECK(c, "and why", strstr(b.error, "another user") != NULL);
	grpc_server_free(theirs);
	bench_close(&b);
}

static void test_many(struct check *c)
{
	struct bench b;
	bench_open(&b, c);
	for (int i = 0; i < 300; i++) {
		call_for(&b, "/t.T/Echo", STR("again"), SECOND_NS);
		CHECK_INT(c, "again", b.code, GRPC_OK);
	}
	bench_close(&b);
}

int main(void)
{
	struct check c = { 0 };
	test_unary(&c);
	test_sizes(&c);
	test_stream(&c);
	test_cancel(&c);
	test_deadline(&c);
	test_limits(&c);
	test_server_goes(&c);
	test_bad_peers(&c);
	test_socket_file(&c);
	test_other_users(&c);
	test_many(&c);
	return check_done(&c);
}
