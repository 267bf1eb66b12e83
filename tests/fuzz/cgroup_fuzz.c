// SPDX-License-Identifier: Apache-2.0
// The cgroup file of a process: a pod's UID comes out whole or not at all.
#include "daemons/agent/portion.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char uid[POD_SHORT_BYTES] = "";
	bool ok = portion_pod_of((struct str){ (const char *)data, size }, uid);
	ASSERT(strlen(uid) == (ok ? 36 : 0));
	ASSERT(!ok || uid[8] == '-');
	return 0;
}
