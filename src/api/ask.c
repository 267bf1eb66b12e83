// SPDX-License-Identifier: Apache-2.0
#include "api/ask.h"

void scheduler_ask(const struct api *api, const struct http_call_request *question)
{
	ASSERT(api->scheduler != NULL);
	struct http_header bearer = { STR("authorization"), api->scheduler_bearer };
	struct http_call_request request = *question;
	if (request.method == NULL)
		request.method = "GET";
	request.headers = &bearer;
	request.header_count = bearer.value.len > 0 ? 1 : 0;
	request.timeout_ns = UINT64_C(3000000000);
	(void)http_call_start(api->scheduler, &request);
}
