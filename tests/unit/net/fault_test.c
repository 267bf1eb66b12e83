// SPDX-License-Identifier: Apache-2.0
// Every send, receive, connect and accept of a small conversation fails once, with every kind of
// failure, over plain HTTP/1.1, HTTP/1.1 on TLS, and HTTP/2: each call ends exactly once, nothing
// hangs, nothing leaks (under the address sanitizer), and the next conversation works.
#include "certs.h"
#include "check.h"
#include "fetch.h"
#include "h2_peer.h"
#include "web.h"

#include "sys/fault.h"

#include <errno.h>

static const uint64_t MS = 1000000;

enum { NTH_MAX = 400 };

struct place {
	struct loop *loop;
	const char *base;
	struct tls_ctx *tls;
};

static void start(const struct place *place, struct http_client *client, struct fetch *fetch,
		  const char *path)
{
	*fetch = (struct fetch){ .loop = place->loop, .collect = true };
	fetch->request.timeout_ns = 1000 * MS;
	fetch_start(fetch, client, path);
}

// True when the fault came to be; *ret_good counts the calls that succeeded.
static bool converse(struct check *c, const struct place *place, size_t *ret_good)
{
	struct fetch fetches[3];
	struct http_client *client = NULL;
	*ret_good = 0;
	err_status status =
		http_client_new(place->loop, place->base, place->tls, NULL, &client, NULL);
	ASSERT(status == ERR_OK);
	start(place, client, &fetches[0], "/echo");
	start(place, client, &fetches[1], "/size?n=100000");
	bool first = fetch_wait(&fetches[0], 3000);
	start(place, client, &fetches[2], "/echo");
	CHECK(c, "each call ends once",
	      first && fetch_wait(&fetches[1], 3000) && fetch_wait(&fetches[2], 3000));
	bool hit = fault_disarm();
	// A connect that is interrupted or put off counts as failed, and rightly so.
	for (size_t i = 0; i < ARRAY_COUNT(fetches); i++)
		*ret_good += (fetches[i].status == ERR_OK && fetches[i].code == 200) ||
			     strstr(fetches[i].error, "cannot connect") != NULL;
	http_client_free(client);
	return hit;
}

static void try_all(struct check *c, const char *name, const struct place *place)
{
	static const struct {
		int sys_errno;
		size_t count;
	} kinds[] = { { ECONNRESET, 1 }, { EAGAIN, 1 }, { EINTR, 2 } };
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
		size_t nth = 0, good = 0;
		for (bool hit = true; hit && nth < NTH_MAX;) {
			fault_arm(++nth, kinds[k].count, kinds[k].sys_errno);
			hit = converse(c, place, &good);
			bool harmless = kinds[k].sys_errno != ECONNRESET;
			CHECK(c, name, good == 3 || (hit && !harmless));
		}
		CHECK(c, "the whole conversation was tried", nth > 5 && nth < NTH_MAX);
		bool hit = converse(c, place, &good);
		CHECK(c, "and works again", !hit && good == 3);
	}
	fetch_turn(place->loop, 50);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct certs certs;
	struct loop *loop = NULL;
	struct tls_ctx *server = NULL, *server_h2 = NULL, *tls = NULL;
	struct h2_peer peer;
	struct web web;
	char cert[80], key[80];
	err_status status = loop_new(&loop, NULL);
	ASSERT(status == ERR_OK);
	certs_init(&certs);
	certs_issue(&certs,
		    &(struct cert_request){ "server", "server", "IP:127.0.0.1", -3600, 3600 });
	(void)snprintf(cert, sizeof cert, "%s", certs_path(&certs, "server.pem"));
	(void)snprintf(key, sizeof key, "%s", certs_path(&certs, "server.key"));
	struct tls_server_config config = { .cert_file = cert, .key_file = key };
	struct tls_client_config trust = { .ca_file = certs_path(&certs, "ca.pem") };
	status = tls_server_new(&config, &server, NULL);
	ASSERT(status == ERR_OK);
	config.offer_h2 = true;
	status = tls_server_new(&config, &server_h2, NULL);
	ASSERT(status == ERR_OK);
	status = tls_client_new(&trust, &tls, NULL);
	ASSERT(status == ERR_OK);

	web_start(&web, loop, (struct http_server_config){ .listen = NULL });
	try_all(&c, "plain", &(struct place){ loop, web.base, NULL });
	web_stop(&web);
	web_start(&web, loop, (struct http_server_config){ .tls = server });
	try_all(&c, "TLS", &(struct place){ loop, web.base, tls });
	web_stop(&web);
	h2_peer_start(&peer, loop, server_h2);
	try_all(&c, "HTTP/2", &(struct place){ loop, peer.base, tls });
	h2_peer_stop(&peer);

	tls_ctx_free(tls);
	tls_ctx_free(server);
	tls_ctx_free(server_h2);
	certs_remove(&certs);
	loop_free(loop);
	return check_done(&c);
}
