// SPDX-License-Identifier: Apache-2.0
#include "k8s/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct k8s_status status = k8s_status_parse(500, (struct str){ (const char *)data, size });
	ASSERT(str_is_utf8(str_of(status.message)) && status.retry_after_s >= 0);
	ASSERT(k8s_status_fail(&status, &err) != ERR_OK && err.text[0] != '\0');
	return 0;
}
