// SPDX-License-Identifier: Apache-2.0
// The file in which the monitor keeps identities and faults over a restart (JSON, replaced as a
// whole). A fault in it makes its GPU start as Unhealthy; the health machine then decides by
// probes whether it has passed.
#pragma once

#include "daemons/agent/monitor.h"

MUST_USE err_status monitor_file_save(const char *path, const struct monitor_gpu *gpus,
				      uint32_t count, struct err *err);
// A missing file is none at all: ERR_OK with no GPU.
MUST_USE err_status monitor_file_load(const char *path, struct monitor_gpu *gpus,
				      uint32_t *ret_count, uint64_t now_ns, struct err *err);
// The same of the file's text; gpus has room for GPU_MAX.
MUST_USE err_status monitor_file_parse(struct str text, struct monitor_gpu *gpus,
				       uint32_t *ret_count, uint64_t now_ns, struct err *err);
// Before slot takes this uuid: what is known under it, in whatever slot, moves there, and what
// was in the slot takes the place that became free, or a new one at the end.
void monitor_file_recall(struct monitor_gpu *gpus, uint32_t *count, uint32_t slot,
			 const char *uuid);
