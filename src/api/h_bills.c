// SPDX-License-Identifier: Apache-2.0
// What a period cost: one tenant's line, or all with the proof that they add up; and what a
// request will cost: as long as it says that it runs, or at most may.
#include "api/handlers.h"
#include "api/request_steps.h"
#include "base/money.h"
#include "billing/bill_format.h"
#include "billing/quote.h"
#include "ledger/bill.h"

enum { BILL_MAX_BYTES = 16 * 1024 * 1024, RATE_ARENA_BYTES = 1024 * 1024 * 1024 };

static bool load_assets(struct call *call, struct assets *ret_assets)
{
	struct str json;
	struct err err;
	return ledger_document_get(call->api->ledger, LEDGER_ASSETS, call->arena, &json, &err) ==
		       ERR_OK &&
	       book_parse_assets(call->arena, json, ret_assets, &err) == ERR_OK;
}

// A MIG device costs its slices' part of a GPU that has the profile.
static bool find_mig_part(struct call *call, const struct request_spec *spec,
			  struct str models[REQUEST_MODELS_MAX], struct quote_request *quote,
			  int64_t part[2])
{
	struct inventory *inventory = ARENA_NEW(call->arena, struct inventory);
	ASSERT(inventory != NULL);
	if (spec->mig_profile.len == 0)
		return true;
	if (!view_inventory(call->api->objects, inventory))
		return false;
	size_t count = inventory_mig_part(inventory, spec, models, part);
	if (spec->model_count == 0) {
		quote->models = models;
		quote->model_count = count;
	}
	return count > 0;
}

void request_put_estimate(struct call *call, const json_t *request, json_t *body)
{
	struct request_spec spec;
	struct assets assets;
	struct str models[REQUEST_MODELS_MAX];
	int64_t nano, part[2] = { 1, 1 };
	if (!view_request_spec(request, &spec) || !load_assets(call, &assets))
		return;
	struct quote_request quote = {
		.models = spec.models,
		.model_count = spec.model_count,
		.gpu_count = max_i64(spec.gpu_count, 1) * request_pod_count(&spec),
		.start_s = api_now_s(call->api),
		.duration_s = spec.duration_s > 0 ? spec.duration_s : spec.max_duration_s,
	};
	if (quote.duration_s == 0 || !find_mig_part(call, &spec, models, &quote, part) ||
	    !quote_nano(&assets, &quote, &nano))
		return;
	if (spec.gpu_milli > 0) { // of the one
		part[0] = spec.gpu_milli;
		part[1] = REQUEST_WHOLE_MILLI;
	}
	nano = nano / part[1] * part[0];
	char text[MONEY_TEXT_BYTES];
	json_t *estimate = json_object();
	(void)json_object_set_new(estimate, "cost", json_string(money_format(nano, text)));
	put_text(estimate, "currency", assets.currency);
	(void)json_object_set_new(body, "estimate", estimate);
}

// False: answered.
static bool read_query(struct call *call, struct ledger_period *period, bool *ret_csv)
{
	struct str format = rest_query(call, "format");
	int64_t now_s = api_now_s(call->api);
	idle_rule idle;
	if (!rest_query_time(call, "from", -1, &period->from_s) ||
	    !rest_query_time(call, "to", -1, &period->to_s))
		return false;
	period->idle = rest_query(call, "idle");
	*ret_csv = str_eq_c(format, "csv");
	const char *wrong = NULL;
	if (period->from_s < 0 || period->to_s < 0)
		wrong = "from and to are needed, as 2026-02-10T00:00:00Z";
	else if (period->from_s >= period->to_s)
		wrong = "to must be after from";
	else if (period->from_s >= now_s)
		wrong = "from must not lie in the future: nothing has been used there yet";
	else if (period->idle.len > 0 && !book_parse_idle_rule(period->idle, &idle))
		wrong = "idle must be keep or share-per-gpu";
	else if (format.len > 0 && !*ret_csv && !str_eq_c(format, "json"))
		wrong = "format must be json or csv";
	if (wrong != NULL)
		rest_problem(call, 400, "invalid_parameter", "%s", wrong);
	period->to_s = min_i64(period->to_s, now_s); // what will be used is no part of a bill
	return wrong == NULL;
}

static void fail_bill(struct call *call, const struct err *err)
{
	if (err->status == ERR_NOT_FOUND)
		rest_problem(call, 409, "no_price_book", "%s", err->text);
	else if (err->status == ERR_INVALID || err->status == ERR_CONFLICT)
		rest_problem(call, 422, "not_ratable", "%s", err->text);
	else
		rest_fail(call, err);
}

static void answer_bill(struct call *call, const struct bill *bill, bool is_csv)
{
	struct buf out = { .limit = BILL_MAX_BYTES };
	if (is_csv)
		bill_format_csv(&out, bill, rest_scope(call));
	else
		bill_format_json_decimal(&out, bill, rest_scope(call));
	struct str text = buf_ok(&out) ? arena_dup(call->arena, buf_str(&out))
				       : (struct str){ NULL, 0 };
	buf_done(&out);
	if (text.data == NULL)
		rest_problem(call, 422, "too_large", "the bill has more than %d bytes",
			     BILL_MAX_BYTES);
	else
		rest_answer_text(call, is_csv ? "text/csv" : "application/json", text);
}

void handle_bill_get(struct call *call)
{
	struct ledger_period period = { .from_s = 0 };
	struct bill bill;
	struct err err;
	bool is_csv = false;
	if (!read_query(call, &period, &is_csv))
		return;
	AUTO(arena_freep) struct arena *arena = arena_new(RATE_ARENA_BYTES);
	if (arena == NULL ||
	    ledger_bill(call->api->ledger, arena, &period, &bill, &err) != ERR_OK) {
		if (arena == NULL)
			(void)err_set(&err, ERR_LIMIT, "no memory for a bill");
		fail_bill(call, &err);
		return;
	}
	answer_bill(call, &bill, is_csv);
}
