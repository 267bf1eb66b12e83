// SPDX-License-Identifier: Apache-2.0
// Our HTTP client as a program, against servers from outside:
// net_fetch BASE CA_FILE|- METHOD PATH COUNT BODY TIMEOUT_MS PING_MS. Starts COUNT equal calls at
// once and prints for each, in the order in which they end: status, HTTP code, bytes, text (the
// first bytes of the body with blanks for line ends, or the error).
#include "net/http_client.h"

#include <stdio.h>

struct state {
	struct loop *loop;
	uint64_t open;
};

static void print_text(struct str text)
{
	for (size_t i = 0; i < text.len && i < 300; i++)
		(void)putchar(text.data[i] < ' ' ? ' ' : text.data[i]);
	(void)putchar('\n');
	(void)fflush(stdout);
}

static void on_done(void *arg, const struct http_call_result *result)
{
	struct state *state = arg;
	bool good = result->status == ERR_OK;
	printf("%s %d %zu ", err_status_name(result->status), result->code, result->body.len);
	print_text(good ? result->body : str_of(result->err->text));
	if (--state->open == 0)
		loop_stop(state->loop);
}

static err_status run(char **argv, struct err *err)
{
	uint64_t count = 0, timeout_ms = 0, ping_ms = 0;
	struct tls_client_config config = { .ca_file = argv[2] };
	struct tls_ctx *tls = NULL;
	struct http_client *client = NULL;
	struct state state = { .loop = NULL };
	if (!str_to_u64(str_of(argv[5]), &count) || !str_to_u64(str_of(argv[7]), &timeout_ms) ||
	    !str_to_u64(str_of(argv[8]), &ping_ms))
		return err_set(err, ERR_INVALID, "COUNT, TIMEOUT_MS and PING_MS are numbers");
	err_status status = loop_new(&state.loop, err);
	if (status == ERR_OK && !str_eq_c(str_of(argv[2]), "-"))
		status = tls_client_new(&config, &tls, err);
	if (status == ERR_OK)
		status = http_client_new(state.loop, argv[1], tls, NULL, &client, err);
	if (status != ERR_OK)
		return status;
	if (ping_ms > 0)
		http_client_set_ping(client, ping_ms * 1000000, ping_ms * 1000000);
	struct http_call_request request = { .method = argv[3],
					     .path = str_of(argv[4]),
					     .body = str_of(argv[6]),
					     .timeout_ns = timeout_ms * 1000000,
					     .on_done = on_done,
					     .arg = &state };
	state.open = count;
	for (uint64_t i = 0; i < count; i++)
		(void)http_call_start(client, &request);
	loop_run(state.loop);
	http_client_free(client);
	tls_ctx_free(tls);
	loop_free(state.loop);
	return ERR_OK;
}

int main(int argc, char **argv)
{
	struct err err;
	if (argc != 9) {
		(void)fprintf(stderr, "net_fetch BASE CA_FILE|- METHOD PATH COUNT BODY TIMEOUT_MS "
				      "PING_MS\n");
		return 2;
	}
	err_status status = run(argv, &err);
	if (status != ERR_OK)
		(void)fprintf(stderr, "%s\n", err.text);
	return err_exit_code(status);
}
