// SPDX-License-Identifier: Apache-2.0
// The tests' web application behind our HTTP server, as a program for clients from outside:
// net_serve LISTEN BODY_MAX [CERT KEY [CLIENT_CA]]. Prints "port N" when it listens; SIGHUP
// reloads the certificate.
#include "web.h"

#include "sys/log.h"

#include <stdio.h>

static void on_hup(void *arg)
{
	struct err err;
	if (tls_server_reload(arg, &err) != ERR_OK)
		log_err(LOG_ERROR, "certificate not reloaded", &err);
	else
		log_kv(LOG_INFO, "certificate reloaded", NULL);
}

static err_status run(int argc, char **argv, struct err *err)
{
	struct tls_ctx *tls = NULL;
	struct loop *loop = NULL;
	struct web web;
	uint64_t body_max = 0;
	if (argc < 3 || argc == 4 || argc > 6 || !str_to_u64(str_of(argv[2]), &body_max))
		return err_set(err, ERR_INVALID, "LISTEN BODY_MAX [CERT KEY [CLIENT_CA]]");
	if (argc >= 5) {
		struct tls_server_config config = { .cert_file = argv[3],
						    .key_file = argv[4],
						    .client_ca_file = argc == 6 ? argv[5] : NULL };
		err_status status = tls_server_new(&config, &tls, err);
		if (status != ERR_OK)
			return status;
	}
	err_status status = loop_new(&loop, err);
	if (status == ERR_OK)
		status = loop_handle_signals(loop, tls == NULL ? NULL : on_hup, tls, err);
	if (status != ERR_OK)
		return status;
	web_start(&web, loop,
		  (struct http_server_config){
			  .listen = argv[1], .tls = tls, .body_max_bytes = body_max });
	printf("port %u\n", (unsigned)http_server_port(web.server));
	(void)fflush(stdout);
	loop_run(loop);
	web_stop(&web);
	loop_free(loop);
	tls_ctx_free(tls);
	return ERR_OK;
}

int main(int argc, char **argv)
{
	struct err err;
	log_init("net_serve", LOG_INFO);
	err_status status = run(argc, argv, &err);
	if (status != ERR_OK)
		log_err(LOG_ERROR, "cannot serve", &err);
	return err_exit_code(status);
}
