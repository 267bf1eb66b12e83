// SPDX-License-Identifier: Apache-2.0
// The server's configuration file (YAML or JSON). Every key is checked, an unknown one is
// refused with its path; what is absent has the defaults of the table in config.c. Texts are
// borrowed from the parsed file, which the structure owns.
#pragma once

#include "api/api.h"
#include "policy/deadgpu.h"

struct server_config {
	json_t *file; // owned
	const char *listen;
	const char *tls_cert, *tls_key;
	const char *kubernetes; // "none", "in-cluster" or a kubeconfig's path
	const char *store;      // "sqlite:PATH" or "postgres://..."; NULL: in store_file
	const char *store_file; // NULL: in store
	const char *audit_dir;
	const char *audit_key_file; // NULL: in the folder
	int64_t audit_rotate_bytes, audit_checkpoint_records, audit_checkpoint_interval_s;
	const char *scheduler_url;        // NULL: none
	const char *scheduler_key_file;   // NULL: none
	const char *bootstrap_token_file; // NULL: none
	const char *namespace_;           // of our own parts
	int64_t body_max_bytes, connections_max;
	int64_t ended_kept_s; // objects of requests that ended; their history stays
	struct dead_gpu_rule dead_gpus;
	struct api_limits limits;
};

MUST_USE err_status server_config_load(const char *path, struct server_config *ret_config,
				       struct err *err);
MUST_USE err_status server_config_parse(struct str text, struct server_config *ret_config,
					struct err *err);
void server_config_done(struct server_config *config); // for AUTO
// With all defaults, as one JSON object with a newline.
void server_config_print(const struct server_config *config, struct buf *out);
