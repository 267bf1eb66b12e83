// SPDX-License-Identifier: Apache-2.0
// What a period cost: one tenant's line, or all with the proof that they add up.
#include "api/handlers.h"
#include "api/request_steps.h"

void request_put_estimate(struct call *call, const json_t *request, json_t *body)
{
	(void)call;
	(void)request;
	(void)body;
}

void handle_bill_get(struct call *call)
{
	rest_problem(call, 503, "unavailable", "bills are not rated yet");
}
