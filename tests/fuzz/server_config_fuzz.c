// SPDX-License-Identifier: Apache-2.0
// The server's configuration file. What is accepted prints as JSON.
#include "daemons/server/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(server_config_done) struct server_config config = { 0 };
	AUTO(json_decrefp) json_t *printed = NULL;
	AUTO(buf_done) struct buf out = { 0 };
	struct err err = { 0 };
	if (server_config_parse((struct str){ (const char *)data, size }, &config, &err) !=
	    ERR_OK) {
		ASSERT(err.text[0] != '\0' && config.file == NULL);
		return 0;
	}
	ASSERT(config.store[0] != '\0' && config.audit_dir[0] != '\0');
	ASSERT(config.tls_cert[0] != '\0' && config.tls_key[0] != '\0');
	ASSERT(config.body_max_bytes >= 1024 && config.connections_max >= 1);
	server_config_print(&config, &out);
	ASSERT(json_parse(buf_str(&out), &printed, NULL) == ERR_OK);
	return 0;
}
