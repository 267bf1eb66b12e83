// SPDX-License-Identifier: Apache-2.0
// A namespace as the agent asks for it: a tenant comes out that is not empty, or nothing.
#include "daemons/agent/tenants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char tenant[TENANT_BYTES] = "before";
	if (tenants_read((struct str){ (const char *)data, size }, "team", tenant))
		ASSERT(tenant[0] != '\0' && memchr(tenant, '\0', sizeof tenant) != NULL);
	else
		ASSERT(str_eq_c(str_of(tenant), "before"));
	return 0;
}
