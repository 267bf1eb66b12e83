// SPDX-License-Identifier: Apache-2.0
// The agent's configuration file, and the lists of XIDs that it may hold.
#include "daemons/agent/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 4 * 1024 * 1024 };
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	AUTO(buf_done) struct buf out = { 0 };
	struct agent_config config = { 0 };
	struct err err = { 0 };
	if (agent_config_read(arena, (struct str){ (const char *)data, size }, &config, &err) !=
	    ERR_OK) {
		ASSERT(err.text[0] != '\0');
		return 0;
	}
	ASSERT((config.tls_cert_file == NULL) == (config.tls_key_file == NULL));
	for (size_t i = 0; i < config.mount_count; i++) {
		ASSERT(config.mounts[i].host_path[0] == '/');
		ASSERT(config.mounts[i].container_path[0] == '/');
	}
	xid_policy_init(&config.xids);
	if (xid_policy_set(&config.xids, str_of(config.ignore_xids), str_of(config.watch_xids),
			   &err) != ERR_OK)
		ASSERT(err.text[0] != '\0');
	agent_config_print(&config, &out);
	ASSERT(buf_ok(&out));
	return 0;
}
