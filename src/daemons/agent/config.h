// SPDX-License-Identifier: Apache-2.0
// Configuration of the agent: flags say where things are on the node, the file (YAML or JSON)
// how to behave. Unknown flags and keys, wrong types and values out of range are refused with
// their name. All text lives in the arena given.
#pragma once

#include "base/arena.h"
#include "daemons/agent/cdi.h"
#include "daemons/agent/dp_config.h"
#include "gpu/health.h"
#include "gpu/xid.h"
#include "sys/log.h"

struct agent_config {
	// Flags.
	const char *node_name, *device_plugin_dir, *pod_resources_socket, *plugin_registry_dir;
	const char *plugins_dir;
	const char *cdi_dir, *state_dir, *driver_root, *nvml_library, *listen, *config_path;
	const char *kubeconfig; // "none": no API server; "in-cluster"; else a file
	const char *dp_file, *dp_dir, *dp_default, *dp_label, *dp_fallbacks;
	const char *log_level_text;
	log_level log_level;
	const char *dp_flags[DP_OPTIONS_MAX]; // of the device plugin, NULL: not given
	// File.
	const char *mode, *dra_nodes, *dra_effect;
	const char *resource, *plan_key_file, *sys_root, *proc_root, *proc_driver;
	const char *push_url, *push_ca_file, *push_token_file;
	const char *tls_cert_file, *tls_key_file;
	const char *load_listen, *load_cert_file, *load_key_file; // of the load view
	const char *counters_file, *tokens_file;
	const char *dcgm_library, *dcgm_address; // NULL: without; in the child itself
	const char *ignore_xids, *watch_xids;
	int64_t plan_wait_ms, push_batch_bytes, push_period_ms;
	int64_t probe_ms, read_ms, sample_s, deadline_ms, start_deadline_ms;
	int64_t strikes, clean_probes, hold_off_s;
	int64_t handover_ms, handover_mib;
	int64_t journal_segment_bytes, journal_limit_bytes;
	int64_t node_period_s;
	struct cdi_mount mounts[CDI_MOUNTS_MAX];
	size_t mount_count;
	bool manages_mig; // layouts are brought about
	const char *mig_file, *mig_layout;
	struct xid_policy xids;
};

// Reads flags, then the file they name. ERR_NOT_FOUND for --help and --version is not an error:
// *ret_wish then says which ('h', 'v'), else 0 ('c': --check-config).
MUST_USE err_status agent_config_load(struct arena *arena, int argc, char **argv,
				      struct agent_config *ret, char *ret_wish, struct err *err);
MUST_USE err_status agent_config_read(struct arena *arena, struct str text,
				      struct agent_config *config, struct err *err);
const char *agent_config_help(void);
void agent_config_print(const struct agent_config *config, struct buf *out);
