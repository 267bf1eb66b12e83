// SPDX-License-Identifier: Apache-2.0
// The HTTP client over HTTP/2: many calls on one connection, flow control, refused and reset
// streams, GOAWAY, pings that nobody answers, cancellation, callbacks that free the client.
#include "certs.h"
#include "check.h"
#include "fetch.h"
#include "h2_peer.h"

#include <stdlib.h>

static const uint64_t MS = 1000000;

struct fixture {
	struct certs certs;
	struct loop *loop;
	struct tls_ctx *server_tls, *client_tls;
	struct h2_peer peer;
	struct http_client *client;
};

static void start(struct fixture *f)
{
	h2_peer_start(&f->peer, f->loop, f->server_tls);
	err_status status =
		http_client_new(f->loop, f->peer.base, f->client_tls, NULL, &f->client, NULL);
	ASSERT(status == ERR_OK);
}

static void stop(struct fixture *f)
{
	http_client_free(TAKE(f->client));
	fetch_turn(f->loop, 5);
	h2_peer_stop(&f->peer);
}

static void test_requests(struct check *c, struct fixture *f)
{
	start(f);
	struct fetch get = { .loop = f->loop, .collect = true };
	CHECK(c, "get", fetch_get(&get, f->client, "/echo?a=b"));
	CHECK_STR(c, "get", str_of(get.body), "GET /echo?a=b|");
	CHECK_STR(c, "header", str_of(get.header), "yes");
	struct fetch post = { .loop = f->loop, .collect = true };
	post.request.method = "POST";
	post.request.body = STR("hello");
	CHECK(c, "post", fetch_get(&post, f->client, "/echo"));
	CHECK_STR(c, "post", str_of(post.body), "POST /echo|hello");
	struct fetch interim = { .loop = f->loop, .collect = true };
	CHECK(c, "interim", fetch_get(&interim, f->client, "/interim") && interim.code == 200);
	CHECK_STR(c, "only the final head counts", str_of(interim.header), "yes");
	struct fetch bad = { .loop = f->loop };
	CHECK(c, "bad path", fetch_get(&bad, f->client, "/a b") && bad.status == ERR_INVALID);
	CHECK_INT(c, "one connection", f->peer.connections, 1);
	stop(f);
}

static void test_flow(struct check *c, struct fixture *f)
{
	enum { LARGE = 60000000, UPLOAD = 3000000 };
	start(f);
	// More than both windows: they must be opened again and again.
	struct fetch large = { .loop = f->loop };
	fetch_start(&large, f->client, "/size?n=60000000");
	CHECK(c, "60 MB", fetch_wait(&large, 30000) && large.status == ERR_OK);
	CHECK_INT(c, "60 MB", large.body_bytes, LARGE);
	struct fetch limited = { .loop = f->loop, .collect = true };
	limited.request.body_max_bytes = 1000;
	CHECK(c, "limit", fetch_get(&limited, f->client, "/size?n=1001"));
	CHECK_INT(c, "limit", limited.status, ERR_LIMIT);
	char *body = malloc(UPLOAD);
	ASSERT(body != NULL);
	memset(body, 'b', UPLOAD);
	struct fetch upload = { .loop = f->loop, .collect = true };
	upload.request.method = "PUT";
	upload.request.body = (struct str){ body, UPLOAD };
	CHECK(c, "upload", fetch_get(&upload, f->client, "/echo"));
	CHECK_STR(c, "upload", str_of(upload.body), "PUT /echo|bbbbbbbbbbbbbbbbbbbb");
	free(body);
	stop(f);
}

static void test_many(struct check *c, struct fixture *f)
{
	enum { COUNT = 300 };
	static struct fetch fetches[COUNT];
	size_t good = 0;
	start(f);
	f->peer.streams_max = 10;
	for (size_t i = 0; i < COUNT; i++) {
		fetches[i] = (struct fetch){ .loop = f->loop, .collect = true };
		fetch_start(&fetches[i], f->client, "/echo");
	}
	for (size_t i = 0; i < COUNT; i++)
		good += fetch_wait(&fetches[i], 5000) && fetches[i].code == 200;
	CHECK_INT(c, "all answered", good, COUNT);
	CHECK_INT(c, "over one connection", f->peer.connections, 1);
	CHECK(c, "at once as many as allowed", f->peer.streams_most > 1);
	CHECK(c, "but the first settings", f->peer.streams_most <= 100);
	stop(f);
}

static const struct {
	const char *name, *path, *method;
	int refuse_count;
	err_status status;
	int requests, connections;
} troubles[] = {
	{ "refused once", "/refuse", "POST", 1, ERR_OK, 2, 1 },
	{ "refused always", "/refuse", "POST", 100, ERR_UNAVAILABLE, 4, 1 },
	{ "reset", "/reset", "GET", 0, ERR_UNAVAILABLE, 1, 1 },
	{ "cut within the body", "/die", "GET", 0, ERR_UNAVAILABLE, 1, 1 },
	{ "GOAWAY before the stream", "/goaway", "POST", 1, ERR_OK, 2, 2 },
};

static void test_troubles(struct check *c, struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_COUNT(troubles); i++) {
		start(f);
		f->peer.refuse_count = troubles[i].refuse_count;
		struct fetch fetch = { .loop = f->loop, .collect = true };
		fetch.request.method = troubles[i].method;
		fetch.request.body = str_eq_c(str_of(fetch.request.method), "POST") ? STR("b")
										    : STR("");
		CHECK(c, troubles[i].name, fetch_get(&fetch, f->client, troubles[i].path));
		CHECK_INT(c, troubles[i].name, fetch.status, troubles[i].status);
		CHECK_INT(c, troubles[i].name, f->peer.requests, troubles[i].requests);
		CHECK_INT(c, troubles[i].name, f->peer.connections, troubles[i].connections);
		struct fetch after = { .loop = f->loop, .collect = true };
		CHECK(c, "the client goes on", fetch_get(&after, f->client, "/echo"));
		CHECK_INT(c, "the client goes on", after.status, ERR_OK);
		stop(f);
	}
}

static void test_goaway_keeps_others(struct check *c, struct fixture *f)
{
	start(f);
	struct fetch hang = { .loop = f->loop, .collect = true };
	struct fetch last = { .loop = f->loop, .collect = true };
	struct fetch next = { .loop = f->loop, .collect = true };
	fetch_start(&hang, f->client, "/hang");
	fetch_turn(f->loop, 20);
	CHECK(c, "answered before the GOAWAY",
	      fetch_get(&last, f->client, "/last") && last.code == 200);
	CHECK(c, "next", fetch_get(&next, f->client, "/echo") && next.code == 200);
	CHECK_INT(c, "on a new connection", f->peer.connections, 2);
	CHECK_INT(c, "while the old one still serves", hang.done_count, 0);
	stop(f);
	CHECK_INT(c, "until the client ends", hang.status, ERR_UNAVAILABLE);
}

static void test_ping(struct check *c, struct fixture *f)
{
	start(f);
	http_client_set_ping(f->client, 40 * MS, 60 * MS);
	struct fetch watch = { .loop = f->loop };
	fetch_start(&watch, f->client, "/hang");
	fetch_turn(f->loop, 300);
	CHECK_INT(c, "a silent server that answers pings is alive", watch.done_count, 0);
	f->peer.deaf = true;
	CHECK(c, "one that does not is dead", fetch_wait(&watch, 30000));
	CHECK_INT(c, "unavailable", watch.status, ERR_UNAVAILABLE);
	CHECK(c, "says why", strstr(watch.error, "ping") != NULL);
	f->peer.deaf = false;
	struct fetch after = { .loop = f->loop, .collect = true };
	CHECK(c, "a new connection", fetch_get(&after, f->client, "/echo") && after.code == 200);
	CHECK_INT(c, "a new connection", f->peer.connections, 2);
	stop(f);
}

static void test_cancel(struct check *c, struct fixture *f)
{
	start(f);
	f->peer.streams_max = 2;
	struct fetch warm = { .loop = f->loop, .collect = true };
	CHECK(c, "warm", fetch_get(&warm, f->client, "/echo"));
	struct fetch calls[6];
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
		calls[i] = (struct fetch){ .loop = f->loop };
		fetch_start(&calls[i], f->client, "/hang");
	}
	fetch_turn(f->loop, 30);
	CHECK_INT(c, "two at the server, four wait", f->peer.requests, 3);
	// Cancelled in an order in which some were never sent.
	for (size_t i = ARRAY_COUNT(calls); i > 0; i--)
		http_call_cancel(calls[i - 1].call);
	fetch_turn(f->loop, 30);
	CHECK_INT(c, "the server was told of the two", f->peer.cancelled, 2);
	CHECK_INT(c, "the others never came", f->peer.requests, 3);
	struct fetch timed = { .loop = f->loop };
	timed.request.timeout_ns = 40 * MS;
	CHECK(c, "time-out", fetch_get(&timed, f->client, "/hang") && timed.status == ERR_TIMEOUT);
	struct fetch inside = { .loop = f->loop, .deed = FETCH_CANCEL_IN_DATA };
	fetch_start(&inside, f->client, "/size?n=10000000");
	fetch_turn(f->loop, 50);
	CHECK_INT(c, "cancelled inside on_data", inside.pieces, 1);
	CHECK_INT(c, "without an end", inside.done_count, 0);
	struct fetch after = { .loop = f->loop, .collect = true };
	CHECK(c, "the connection goes on",
	      fetch_get(&after, f->client, "/echo") && after.code == 200);
	CHECK_INT(c, "the same", f->peer.connections, 1);
	stop(f);
}

static void test_free_inside(struct check *c, struct fixture *f)
{
	static const fetch_deed deeds[] = { FETCH_FREE_CLIENT_IN_DATA, FETCH_FREE_CLIENT_IN_DONE };
	for (size_t i = 0; i < ARRAY_COUNT(deeds); i++) {
		start(f);
		struct fetch others[5];
		struct fetch fetch = { .loop = f->loop, .deed = deeds[i] };
		fetch_start(&fetch, f->client, "/size?n=100000");
		for (size_t k = 0; k < ARRAY_COUNT(others); k++) {
			others[k] = (struct fetch){ .loop = f->loop };
			fetch_start(&others[k], f->client, k % 2 == 0 ? "/hang" : "/size?n=200000");
		}
		CHECK(c, "ends", fetch_wait(&fetch, 5000));
		CHECK(c, "client is gone", fetch.client == NULL);
		for (size_t k = 0; k < ARRAY_COUNT(others); k++)
			CHECK_INT(c, "each call ends once", others[k].done_count, 1);
		f->client = NULL;
		stop(f);
	}
}

static void test_server_dies(struct check *c, struct fixture *f)
{
	start(f);
	struct fetch calls[5];
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
		calls[i] = (struct fetch){ .loop = f->loop };
		fetch_start(&calls[i], f->client, "/hang");
	}
	fetch_turn(f->loop, 30);
	h2_peer_stop(&f->peer);
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
		CHECK(c, "ends", fetch_wait(&calls[i], 2000));
		CHECK_INT(c, "unavailable", calls[i].status, ERR_UNAVAILABLE);
	}
	struct fetch after = { .loop = f->loop };
	CHECK(c, "nobody listens", fetch_get(&after, f->client, "/echo"));
	CHECK_INT(c, "nobody listens", after.status, ERR_UNAVAILABLE);
	http_client_free(TAKE(f->client));
}

int main(void)
{
	struct check c = { 0, 0 };
	struct fixture f = { .client = NULL };
	char cert[80], key[80];
	err_status status = loop_new(&f.loop, NULL);
	ASSERT(status == ERR_OK);
	certs_init(&f.certs);
	certs_issue(&f.certs,
		    &(struct cert_request){ "server", "server", "IP:127.0.0.1", -3600, 3600 });
	(void)snprintf(cert, sizeof cert, "%s", certs_path(&f.certs, "server.pem"));
	(void)snprintf(key, sizeof key, "%s", certs_path(&f.certs, "server.key"));
	struct tls_server_config server = { .cert_file = cert, .key_file = key, .offer_h2 = true };
	struct tls_client_config client = { .ca_file = certs_path(&f.certs, "ca.pem") };
	status = tls_server_new(&server, &f.server_tls, NULL);
	ASSERT(status == ERR_OK);
	status = tls_client_new(&client, &f.client_tls, NULL);
	ASSERT(status == ERR_OK);
	test_requests(&c, &f);
	test_flow(&c, &f);
	test_many(&c, &f);
	test_troubles(&c, &f);
	test_goaway_keeps_others(&c, &f);
	test_ping(&c, &f);
	test_cancel(&c, &f);
	test_free_inside(&c, &f);
	test_server_dies(&c, &f);
	tls_ctx_free(f.client_tls);
	tls_ctx_free(f.server_tls);
	certs_remove(&f.certs);
	loop_free(f.loop);
	return check_done(&c);
}
