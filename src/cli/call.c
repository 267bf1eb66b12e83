// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "sys/loop.h"

#include <stdio.h>

// A token is a secret between a person and one server: it goes nowhere else, and never in clear
// text over a network.
static bool may_send_token(const struct cli *cli, struct err *err)
{
	struct str server = str_of(cli->server);
	bool is_local = str_starts(server, STR("http://127.0.0.1:")) ||
			str_starts(server, STR("http://localhost:")) ||
			str_starts(server, STR("unix:"));
	if (cli->token == NULL)
		return true;
	if (cli->token_server != NULL && !str_eq_c(server, cli->token_server)) {
		(void)err_set(err, ERR_UNAUTHENTICATED,
			      "the saved login is for %s, not for %s: log in there, or set "
			      "GPUAAS_TOKEN",
			      cli->token_server, cli->server);
		return false;
	}
	if (!str_starts(server, STR("https://")) && !is_local) {
		(void)err_set(err, ERR_UNAUTHENTICATED,
			      "%s is not https: a token is not sent in clear text", cli->server);
		return false;
	}
	return true;
}

static int connect_server(struct cli *cli, struct err *err)
{
	if (cli->client != NULL)
		return CLI_OK;
	if (cli->server == NULL) {
		(void)err_set(err, ERR_INVALID,
			      "no server is known: run gpuaas login --server URL, or set "
			      "GPUAAS_SERVER");
		return CLI_USAGE;
	}
	if (!may_send_token(cli, err))
		return err_exit_code(err->status);
	struct tls_client_config config = { .ca_file = cli->ca_file };
	if (loop_new(&cli->loop, err) != ERR_OK ||
	    tls_client_new(&config, &cli->tls, err) != ERR_OK ||
	    http_client_new(cli->loop, cli->server, cli->tls, NULL, &cli->client, err) != ERR_OK)
		return err_exit_code(err->status);
	return CLI_OK;
}

// The project's exit code for an answer that is no success.
static int code_of(int status, struct str code)
{
	if (str_eq_c(code, "quota_exceeded") || str_eq_c(code, "queue_limit_exceeded") ||
	    str_eq_c(code, "window_too_large") || str_eq_c(code, "limit_exceeded") || status == 429)
		return 6;
	switch (status) {
	case 401:
	case 403: return 4;
	case 404: return 3;
	case 409:
	case 412: return 5;
	case 408:
	case 504: return 7;
	case 502:
	case 503: return 8;
	default: return CLI_FAILED;
	}
}

void cli_problem_read(struct arena *arena, struct str body, struct str *ret_code,
		      struct str *ret_detail)
{
	AUTO(json_decrefp) json_t *problem = NULL;
	*ret_code = *ret_detail = (struct str){ NULL, 0 };
	if (json_parse(body, &problem, NULL) != ERR_OK)
		return;
	*ret_code = arena_dup(arena, json_text(problem, "code"));
	*ret_detail = arena_dup(arena, json_text(problem, "detail"));
	cli_make_plain((char *)(uintptr_t)ret_code->data); // our own copies
	cli_make_plain((char *)(uintptr_t)ret_detail->data);
}

static int tell_problem(struct cli *cli, const struct http_reply *reply)
{
	struct str code, detail;
	cli_problem_read(cli->arena, reply->body, &code, &detail);
	if (detail.len == 0)
		(void)fprintf(stderr, "error: the server answered %d %s\n", reply->code,
			      http_status_text(reply->code));
	else
		(void)fprintf(stderr, "error: " STR_FMT " (%d " STR_FMT ")\n", STR_ARG(detail),
			      reply->code, STR_ARG(code));
	if (reply->code == 401)
		(void)fprintf(stderr, "  log in: gpuaas login --server %s < FILE_WITH_TOKEN\n",
			      cli->server);
	return code_of(reply->code, code);
}

int cli_call_text(struct cli *cli, const char *method, const char *path, const char *accept,
		  struct str body, struct str *ret_text)
{
	struct err err = { 0 };
	int code = connect_server(cli, &err);
	if (code != CLI_OK) {
		(void)fprintf(stderr, "error: %s\n", err.text);
		return code;
	}
	struct http_header headers[4];
	size_t count = 0;
	headers[count++] = (struct http_header){ STR("Accept"), str_of(accept) };
	if (cli->token != NULL)
		headers[count++] = (struct http_header){
			STR("Authorization"),
			str_of(arena_printf(cli->arena, "Bearer %s", cli->token)),
		};
	if (body.data != NULL)
		headers[count++] =
			(struct http_header){ STR("Content-Type"), STR("application/json") };
	struct http_call_request request = { .method = method,
					     .path = str_of(path),
					     .headers = headers,
					     .header_count = count,
					     .body = body,
					     .timeout_ns = cli->timeout_ns };
	struct http_reply reply;
	if (http_call_wait(cli->client, &request, cli->arena, &reply, &err) != ERR_OK) {
		cli_make_plain(err.text);
		(void)fprintf(stderr, "error: %s: %s\n", cli->server, err.text);
		return err.status == ERR_TIMEOUT ? 7 : 8;
	}
	if (reply.code < 200 || reply.code > 299)
		return tell_problem(cli, &reply);
	*ret_text = reply.body;
	return CLI_OK;
}

int cli_call(struct cli *cli, const char *method, const char *path, json_t *body,
	     json_t **ret_answer)
{
	struct str text = { NULL, 0 }, answer;
	if (body != NULL)
		text = json_dump(cli->arena, body);
	int code = cli_call_text(cli, method, path, "application/json", text, &answer);
	if (code != CLI_OK)
		return code;
	struct err err = { 0 };
	*ret_answer = json_object();
	if (answer.len == 0)
		return CLI_OK;
	json_decref(*ret_answer);
	if (json_parse(answer, ret_answer, &err) != ERR_OK) {
		cli_make_plain(err.text);
		(void)fprintf(stderr, "error: the server's answer: %s\n", err.text);
		return CLI_FAILED;
	}
	return CLI_OK;
}

int cli_call_pages(struct cli *cli, const char *path, json_t **ret_items)
{
	enum { PAGES_MAX = 10000 };
	json_t *items = json_array();
	const char *page = "";
	for (int i = 0; i < PAGES_MAX; i++) {
		const char *url = arena_printf(cli->arena, "%s%slimit=500%s%s", path,
					       strchr(path, '?') == NULL ? "?" : "&",
					       page[0] == '\0' ? "" : "&page_token=", page);
		json_t *answer = NULL;
		int code = cli_call(cli, "GET", url, NULL, &answer);
		if (code != CLI_OK) {
			json_decref(items);
			return code;
		}
		(void)json_array_extend(items, json_at(answer, "items"));
		page = http_escape(cli->arena, json_text(answer, "next_page_token")).data;
		json_decref(answer);
		if (page == NULL || page[0] == '\0')
			break;
	}
	*ret_items = items;
	return CLI_OK;
}

static void wake(void *arg) { *(bool *)arg = true; }

void cli_pause(struct cli *cli, uint64_t pause_ms)
{
	ASSERT(cli->loop != NULL);
	bool is_over = false;
	struct loop_timer *timer = loop_timer_new(cli->loop, wake, &is_over);
	if (timer == NULL)
		return;
	loop_timer_set(timer, pause_ms * UINT64_C(1000000));
	while (!is_over)
		loop_run_once(cli->loop, -1);
	loop_timer_free(timer);
}

const char *cli_path(struct cli *cli, const char *before, const char *text, const char *after)
{
	return arena_printf(cli->arena, "%s" STR_FMT "%s", before,
			    STR_ARG(http_escape(cli->arena, str_of(text))), after);
}
