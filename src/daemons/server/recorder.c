// SPDX-License-Identifier: Apache-2.0
#include "daemons/server/recorder.h"

#include "api/views.h"
#include "base/timefmt.h"
#include "store/history.h"
#include "sys/log.h"

#include <stdlib.h>

enum { PENDING_MAX = 10000 };
#define DELAY_NS UINT64_C(300000000)
#define RETRY_NS UINT64_C(5000000000)

struct recorder {
	struct loop *loop;
	struct sql *sql;
	struct loop_timer *timer;
	bool is_armed;
	struct map *pending; // uid -> json_t answer, owned
};

static err_status write_one(struct recorder *recorder, struct str uid, const json_t *answer,
			    struct err *err)
{
	char *text = json_dumps(answer, JSON_COMPACT);
	struct history_row row = { .uid = uid,
				   .id = json_text(answer, "id"),
				   .tenant = json_text(answer, "tenant"),
				   .state = json_text(answer, "state"),
				   .json = str_of(text) };
	if (text == NULL)
		return err_set(err, ERR_LIMIT, "no memory");
	if (!time_parse(json_text(answer, "created"), &row.created_s, NULL))
		row.created_s = 0;
	err_status status = history_put(recorder->sql, &row, err);
	free(text);
	return status;
}

static err_status write_all(struct recorder *recorder, struct err *err)
{
	struct str uid;
	void *value;
	err_status status = sql_begin(recorder->sql, err);
	if (status != ERR_OK)
		return status;
	for (size_t i = 0; status == ERR_OK && map_next(recorder->pending, &i, &uid, &value);)
		status = write_one(recorder, uid, value, err);
	if (status == ERR_OK)
		return sql_commit(recorder->sql, err);
	sql_rollback(recorder->sql);
	return status;
}

static void forget_all(struct recorder *recorder)
{
	struct str uid;
	void *value;
	for (size_t i = 0; map_next(recorder->pending, &i, &uid, &value);) {
		(void)map_remove(recorder->pending, uid);
		json_decref(value);
	}
}

static void flush(void *arg)
{
	struct recorder *recorder = arg;
	struct err err = { 0 };
	recorder->is_armed = false;
	if (map_count(recorder->pending) == 0)
		return;
	if (write_all(recorder, &err) == ERR_OK) {
		forget_all(recorder);
		return;
	}
	log_err(LOG_WARN, "history of requests cannot be written; tried again", &err);
	recorder->is_armed = true;
	loop_timer_set(recorder->timer, RETRY_NS);
}

struct recorder *recorder_new(struct loop *loop, struct sql *sql)
{
	struct recorder *recorder = calloc(1, sizeof *recorder);
	ASSERT(recorder != NULL);
	*recorder = (struct recorder){ .loop = loop, .sql = sql };
	recorder->pending = map_new(world_random(loop_world(loop)));
	recorder->timer = loop_timer_new(loop, flush, recorder);
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (recorder == NULL)
		return;
	flush(recorder);
	forget_all(recorder);
	map_free(recorder->pending);
	loop_timer_free(recorder->timer);
	free(recorder);
}

void recorder_put(struct recorder *recorder, const json_t *request, bool is_gone)
{
	struct str uid = json_text(request, "metadata.uid");
	bool is_end = view_phase_is_end(view_request_phase(request));
	if (uid.len == 0 || (!is_end && !is_gone) || map_count(recorder->pending) >= PENDING_MAX)
		return;
	json_t *answer = view_request_plain(request);
	if (is_gone && !is_end) {
		put_text(answer, "state", STR("Cancelled"));
		put_text(answer, "reason", STR("Deleted"));
	}
	json_decref(map_set(recorder->pending, uid, answer));
	if (recorder->is_armed)
		return;
	recorder->is_armed = true;
	loop_timer_set(recorder->timer, DELAY_NS);
}
