// SPDX-License-Identifier: Apache-2.0
// The API server's answer to a TokenReview: only a name of a node comes out of it.
#include "api/reviews.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err err = { 0 };
	struct str node = { NULL, 0 };
	if (json_parse((struct str){ (const char *)data, size }, &answer, NULL) != ERR_OK)
		return 0;
	err_status status = review_read(answer, "system:serviceaccount:gpuaas-system:gpuaas-agent",
					"gpuaas", &node, &err);
	if (status == ERR_OK)
		ASSERT(str_is_dns_name(node) && json_bool(answer, "status.authenticated", false));
	else
		ASSERT(status == ERR_UNAUTHENTICATED && node.data == NULL && err.text[0] != '\0');
	return 0;
}
