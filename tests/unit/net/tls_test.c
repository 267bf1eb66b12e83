// SPDX-License-Identifier: Apache-2.0
// TLS between our server and our client: who is trusted and who is not and what the text says,
// client certificates, certificates reloaded, broken files, connections cut without a goodbye.
#include "certs.h"
#include "check.h"
#include "fetch.h"
#include "web.h"

#include "net/tls_conn.h"
#include "sys/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct cert_request requests[] = {
	{ "server", "server", "DNS:localhost,DNS:*.test.example,IP:127.0.0.1", -3600, 86400 },
	{ "second", "second", "DNS:second.example,IP:127.0.0.1", -3600, 86400 },
	{ "expired", "expired", "IP:127.0.0.1", -7200, -3600 },
	{ "future", "future", "IP:127.0.0.1", 3600, 7200 },
	{ "elsewhere", "elsewhere", "DNS:elsewhere.example,IP:10.9.8.7", -3600, 86400 },
	{ "nameless", "127.0.0.1", NULL, -3600, 86400 },
	{ "alice", "alice", NULL, -3600, 86400 },
};

static struct tls_ctx *make_server_ctx(const struct certs *certs, const char *name, bool client_ca,
				       bool required)
{
	char cert[80], key[80];
	struct tls_ctx *ctx = NULL;
	struct err err;
	(void)snprintf(cert, sizeof cert, "%s/%s.pem", certs->folder, name);
	(void)snprintf(key, sizeof key, "%s/%s.key", certs->folder, name);
	struct tls_server_config config = {
		.cert_file = cert,
		.key_file = key,
		.client_ca_file = client_ca ? certs_path(certs, "ca.pem") : NULL,
		.client_cert_required = required,
	};
	err_status status = tls_server_new(&config, &ctx, &err);
	if (status != ERR_OK)
		printf("%s\n", err.text);
	ASSERT(status == ERR_OK);
	return ctx;
}

static struct tls_ctx *make_client_ctx(const struct tls_client_config *config)
{
	struct tls_ctx *ctx = NULL;
	struct err err;
	err_status status = tls_client_new(config, &ctx, &err);
	if (status != ERR_OK)
		printf("%s\n", err.text);
	ASSERT(status == ERR_OK);
	return ctx;
}

struct trial {
	const char *name;
	const char *server_cert;
	const char *ca; // file of the client's CA
	const char *server_name;
	bool insecure;
	err_status status;
	const char *text; // in the error
};

static const struct trial trials[] = {
	{ "good by address", "server", "ca.pem", NULL, false, ERR_OK, NULL },
	{ "good by name", "server", "ca.pem", "localhost", false, ERR_OK, NULL },
	{ "good by wildcard", "server", "ca.pem", "a.test.example", false, ERR_OK, NULL },
	{ "wildcard is one label", "server", "ca.pem", "a.b.test.example", false, ERR_PROTOCOL,
	  "ostname mismatch" },
	{ "wrong CA", "server", "other-ca.pem", NULL, false, ERR_PROTOCOL,
	  "unable to get local issuer certificate" },
	{ "system CAs", "server", NULL, NULL, false, ERR_PROTOCOL, "certificate of 127.0.0.1" },
	{ "expired", "expired", "ca.pem", NULL, false, ERR_PROTOCOL, "certificate has expired" },
	{ "not yet valid", "future", "ca.pem", NULL, false, ERR_PROTOCOL, "not yet valid" },
	{ "wrong address", "elsewhere", "ca.pem", NULL, false, ERR_PROTOCOL,
	  "IP address mismatch" },
	{ "wrong name", "server", "ca.pem", "elsewhere.example", false, ERR_PROTOCOL,
	  "ostname mismatch" },
	{ "common name does not count", "nameless", "ca.pem", NULL, false, ERR_PROTOCOL,
	  "IP address mismatch" },
	{ "verification off", "expired", NULL, "elsewhere.example", true, ERR_OK, NULL },
};

static void run_trial(struct check *c, struct loop *loop, const struct certs *certs,
		      const struct trial *trial)
{
	struct web web;
	struct tls_ctx *server = make_server_ctx(certs, trial->server_cert, false, false);
	struct tls_ctx *tls = make_client_ctx(&(struct tls_client_config){
		.ca_file = trial->ca == NULL ? NULL : certs_path(certs, trial->ca),
		.insecure_skip_verify = trial->insecure });
	struct http_client *client = NULL;
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	err_status status = http_client_new(loop, web.base, tls, trial->server_name, &client, NULL);
	ASSERT(status == ERR_OK);
	struct fetch fetch = { .loop = loop, .collect = true };
	CHECK(c, trial->name, fetch_get(&fetch, client, "/echo"));
	CHECK_INT(c, trial->name, fetch.status, trial->status);
	if (trial->text != NULL && strstr(fetch.error, trial->text) == NULL)
		printf("%s: \"%s\" lacks \"%s\"\n", trial->name, fetch.error, trial->text);
	CHECK(c, trial->name, trial->text == NULL || strstr(fetch.error, trial->text) != NULL);
	CHECK_INT(c, trial->name, web.requests, trial->status == ERR_OK ? 1 : 0);
	http_client_free(client);
	web_stop(&web);
	tls_ctx_free(tls);
	tls_ctx_free(server);
}

// One request over a new connection; the echoed text tells the certificate's name.
static void fetch_once(struct fetch *fetch, struct web *web, struct tls_ctx *tls, const char *path)
{
	struct http_client *client = NULL;
	err_status status = http_client_new(web->loop, web->base, tls, NULL, &client, NULL);
	ASSERT(status == ERR_OK);
	*fetch = (struct fetch){ .loop = web->loop, .collect = true };
	bool ended = fetch_get(fetch, client, path);
	ASSERT(ended);
	http_client_free(client);
	fetch_turn(web->loop, 5);
}

static struct str read_file(const char *path, struct buf *out)
{
	err_status status = fs_read(path, 1 << 16, out, NULL);
	ASSERT(status == ERR_OK);
	return buf_str(out);
}

static void test_client_certs(struct check *c, struct loop *loop, const struct certs *certs)
{
	AUTO(buf_done) struct buf ca = { 0 }, cert = { 0 }, key = { 0 };
	struct tls_ctx *plain = make_client_ctx(&(struct tls_client_config){
		.ca_pem = read_file(certs_path(certs, "ca.pem"), &ca) });
	struct tls_ctx *alice = make_client_ctx(
		&(struct tls_client_config){ .ca_file = certs_path(certs, "ca.pem"),
					     .cert_file = certs_path(certs, "alice.pem"),
					     .key_file = certs_path(certs, "alice.key") });
	struct tls_ctx *alice_pem = make_client_ctx(&(struct tls_client_config){
		.ca_file = certs_path(certs, "ca.pem"),
		.cert_pem = read_file(certs_path(certs, "alice.pem"), &cert),
		.key_pem = read_file(certs_path(certs, "alice.key"), &key) });
	struct tls_ctx *expired = make_client_ctx(
		&(struct tls_client_config){ .ca_file = certs_path(certs, "ca.pem"),
					     .cert_file = certs_path(certs, "expired.pem"),
					     .key_file = certs_path(certs, "expired.key") });
	for (int required = 0; required <= 1; required++) {
		struct tls_ctx *server = make_server_ctx(certs, "server", true, required == 1);
		struct web web;
		struct fetch fetch;
		web_start(&web, loop, (struct http_server_config){ .tls = server });
		fetch_once(&fetch, &web, plain, "/echo");
		CHECK_INT(c, "no certificate", fetch.status == ERR_OK, required == 0);
		fetch_once(&fetch, &web, alice, "/echo");
		CHECK_STR(c, "alice", str_of(fetch.body), "GET /echo? ||alice");
		fetch_once(&fetch, &web, alice_pem, "/echo");
		CHECK_STR(c, "alice from memory", str_of(fetch.body), "GET /echo? ||alice");
		fetch_once(&fetch, &web, expired, "/echo");
		CHECK(c, "an expired one is refused", fetch.status != ERR_OK);
		web_stop(&web);
		tls_ctx_free(server);
	}
	struct tls_ctx *server = make_server_ctx(certs, "server", false, false);
	struct web web;
	struct fetch fetch;
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	fetch_once(&fetch, &web, alice, "/echo");
	CHECK_STR(c, "not asked, not told", str_of(fetch.body), "GET /echo? ||");
	web_stop(&web);
	tls_ctx_free(server);
	tls_ctx_free(expired);
	tls_ctx_free(alice_pem);
	tls_ctx_free(alice);
	tls_ctx_free(plain);
}

static void copy_file(const struct certs *certs, const char *from, const char *to)
{
	AUTO(buf_done) struct buf content = { 0 };
	struct str text = read_file(certs_path(certs, from), &content);
	err_status status = fs_write_atomic(certs_path(certs, to), text, 0600, NULL);
	ASSERT(status == ERR_OK);
}

static void test_reload(struct check *c, struct loop *loop, const struct certs *certs)
{
	struct tls_client_config config = { .ca_file = certs_path(certs, "ca.pem") };
	struct tls_ctx *tls = make_client_ctx(&config);
	struct http_client *kept = NULL, *named = NULL;
	struct web web;
	struct err err;
	copy_file(certs, "server.pem", "live.pem");
	copy_file(certs, "server.key", "live.key");
	struct tls_ctx *server = make_server_ctx(certs, "live", false, false);
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	err_status status = http_client_new(loop, web.base, tls, NULL, &kept, NULL);
	ASSERT(status == ERR_OK);
	struct fetch before = { .loop = loop }, after = { .loop = loop }, fresh = { .loop = loop };
	CHECK(c, "before", fetch_get(&before, kept, "/echo") && before.status == ERR_OK);

	copy_file(certs, "second.pem", "live.pem");
	CHECK_INT(c, "a key that does not fit", tls_server_reload(server, &err), ERR_INVALID);
	CHECK(c, "the text names the file", strstr(err.text, "live.") != NULL);
	copy_file(certs, "second.key", "live.key");
	CHECK_INT(c, "reload", tls_server_reload(server, &err), ERR_OK);
	CHECK(c, "open connections go on", fetch_get(&after, kept, "/echo") && after.code == 200);
	status = http_client_new(loop, web.base, tls, "second.example", &named, NULL);
	ASSERT(status == ERR_OK);
	CHECK(c, "new ones see the new",
	      fetch_get(&fresh, named, "/echo") && fresh.status == ERR_OK);
	(void)unlink(certs_path(certs, "live.pem"));
	CHECK_INT(c, "no file", tls_server_reload(server, &err), ERR_INVALID);
	struct fetch again;
	fetch_once(&again, &web, tls, "/echo");
	CHECK_INT(c, "the old stays in use", again.status, ERR_OK);
	http_client_free(named);
	http_client_free(kept);
	web_stop(&web);
	tls_ctx_free(server);
	tls_ctx_free(tls);
}

static void test_bad_files(struct check *c, const struct certs *certs)
{
	struct tls_ctx *none = NULL;
	struct err err;
	struct tls_client_config bad[] = {
		{ .ca_file = "/nonexistent/ca.pem" },
		{ .ca_file = certs_path(certs, "server.key") },
		{ .ca_pem = STR("not a certificate") },
		{ .ca_pem = STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") },
		{ .cert_pem = STR("x"), .key_pem = STR("y") },
		{ .cert_file = "/nonexistent/a.pem", .key_file = "/nonexistent/a.key" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		char name[40];
		(void)snprintf(name, sizeof name, "bad client file %zu", i);
		err.text[0] = '\0';
		CHECK_INT(c, name, tls_client_new(&bad[i], &none, &err), ERR_INVALID);
		CHECK(c, name, none == NULL && err.text[0] != '\0');
	}
	struct tls_server_config server = { .cert_file = certs_path(certs, "server.pem"),
					    .key_file = certs_path(certs, "alice.key") };
	CHECK_INT(c, "foreign key", tls_server_new(&server, &none, &err), ERR_INVALID);
	server.key_file = certs_path(certs, "server.key");
	server.client_ca_file = "/nonexistent/ca.pem";
	CHECK_INT(c, "no CA for clients", tls_server_new(&server, &none, &err), ERR_INVALID);
	CHECK(c, "none was made", none == NULL);
}

static void test_large_and_garbage(struct check *c, struct loop *loop, const struct certs *certs)
{
	struct tls_client_config config = { .ca_file = certs_path(certs, "ca.pem") };
	struct tls_ctx *tls = make_client_ctx(&config);
	struct tls_ctx *server = make_server_ctx(certs, "server", false, false);
	struct fetch fetch;
	struct web web;
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	fetch_once(&fetch, &web, tls, "/size?n=3000000");
	CHECK_INT(c, "3 MB over TLS", fetch.body_bytes, 3000000);
	fetch_once(&fetch, &web, tls, "/stream");
	CHECK_STR(c, "stream over TLS", str_of(fetch.body), "tick tick tick ");
	struct str got = web_raw(&web, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0, 300);
	CHECK(c, "plain HTTP on a TLS port is not answered", !str_starts(got, STR("HTTP")));
	for (int i = 0; i < 50 && http_server_connection_count(web.server) > 0; i++)
		loop_run_once(loop, 20);
	CHECK_INT(c, "and leaves nothing", http_server_connection_count(web.server), 0);
	web_stop(&web);
	tls_ctx_free(server);
	tls_ctx_free(tls);
}

// A client that says goodbye, takes no more and then resets: what is left of the answer cannot be
// written, and that must end the connection rather than wake the loop without end.
static void test_goodbye_and_reset(struct check *c, struct loop *loop, const struct certs *certs)
{
	struct tls_client_config config = { .ca_file = certs_path(certs, "ca.pem") };
	struct tls_ctx *tls = make_client_ctx(&config);
	struct tls_ctx *server = make_server_ctx(certs, "server", false, false);
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	struct tls_conn *conn = NULL;
	struct web web;
	size_t sent = 0;
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	int fd = web_dial(&web, "127.0.0.1");
	int rc = fcntl(fd, F_SETFL, O_NONBLOCK);
	ASSERT(rc == 0);
	err_status status = tls_conn_connect(tls, fd, "127.0.0.1", false, &conn, NULL);
	ASSERT(status == ERR_OK);
	while (tls_conn_handshake(conn, NULL) == TLS_WANT_READ)
		loop_run_once(loop, 20);
	CHECK_INT(c, "request",
		  tls_conn_write(conn, STR("GET /size?n=30000000 HTTP/1.1\r\nHost: a\r\n\r\n"),
				 &sent, NULL),
		  TLS_DONE);
	tls_conn_send_end(conn);
	for (int i = 0; i < 50; i++)
		loop_run_once(loop, 5);
	CHECK_INT(c, "asked once", web.requests, 1);
	CHECK_INT(c, "the answer waits", http_server_connection_count(web.server), 1);
	rc = setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	ASSERT(rc == 0);
	tls_conn_free(conn);
	(void)close(fd);
	for (int i = 0; i < 50 && http_server_connection_count(web.server) > 0; i++)
		loop_run_once(loop, 20);
	CHECK_INT(c, "and nothing is left", http_server_connection_count(web.server), 0);
	web_stop(&web);
	tls_ctx_free(server);
	tls_ctx_free(tls);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct certs certs;
	struct loop *loop = NULL;
	err_status status = loop_new(&loop, NULL);
	ASSERT(status == ERR_OK);
	certs_init(&certs);
	for (size_t i = 0; i < ARRAY_COUNT(requests); i++)
		certs_issue(&certs, &requests[i]);
	for (size_t i = 0; i < ARRAY_COUNT(trials); i++)
		run_trial(&c, loop, &certs, &trials[i]);
	test_client_certs(&c, loop, &certs);
	test_reload(&c, loop, &certs);
	test_bad_files(&c, &certs);
	test_large_and_garbage(&c, loop, &certs);
	test_goodbye_and_reset(&c, loop, &certs);
	certs_remove(&certs);
	loop_free(loop);
	return check_done(&c);
}
