// SPDX-License-Identifier: Apache-2.0
// A kubeconfig's text. What is accepted has a server, and a certificate only with its key.
#include "k8s/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 4 * 1024 * 1024 };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct k8s_config config = { 0 };
	struct err err = { 0 };
	err_status status = k8s_config_parse(arena, (struct str){ (const char *)data, size },
					     "/nonexistent", &config, &err);
	if (status != ERR_OK) {
		ASSERT(err.text[0] != '\0' && config.server == NULL);
		return 0;
	}
	ASSERT(config.server != NULL && config.namespace_ != NULL);
	ASSERT((config.cert_pem.len == 0) == (config.key_pem.len == 0));
	return 0;
}
