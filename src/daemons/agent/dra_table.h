// SPDX-License-Identifier: Apache-2.0
// Claims that are prepared on this node, with the pod each was prepared for and its GPUs. Each
// change is on disk before it is answered, whole by rename, so that a killed agent answers the
// kubelet's next question as it answered the last one. A file that cannot be read is set aside and
// said: then the CDI files alone tell what runs. No GPU is in two claims.
#pragma once

#include "daemons/agent/dra_proto.h"

enum { DRA_CLAIMS_MAX = 128 };

struct dra_device {
	char uuid[GPU_UUID_BYTES];
	char request[DRA_REQUEST_BYTES]; // of the claim that it answers
	bool tolerates;                  // that request takes a GPU that is not healthy
};

struct dra_claim {
	// Namespace and name are empty where the file of claims was lost.
	char uid[DRA_UID_BYTES], namespace_[DRA_UID_BYTES], name[DRA_NAME_BYTES];
	char pod_uid[DRA_UID_BYTES], pod[DRA_NAME_BYTES]; // the first it was reserved for, or empty
	struct dra_device devices[GPU_MAX];
	size_t count;
	uint64_t prepared_ns; // monotonic; 0: by an agent before this one, not asked for since
};

struct dra_table;

// Begins with what the file says. ret_is_whole: false when there is a file that is not understood.
MUST_USE err_status dra_table_new(const char *path, struct dra_table **ret, bool *ret_is_whole,
				  struct err *err);
void dra_table_free(struct dra_table *table); // NULL allowed
size_t dra_table_count(const struct dra_table *table);
const struct dra_claim *dra_table_at(const struct dra_table *table, size_t i);
const struct dra_claim *dra_table_find(const struct dra_table *table, struct str uid);
// The claim that has the GPU; NULL: none.
const struct dra_claim *dra_table_holder(const struct dra_table *table, const char *uuid);
// In place of that with its UID, if there is one. ERR_CONFLICT when one of its GPUs is in another
// claim; on failure nothing is changed.
MUST_USE err_status dra_table_add(struct dra_table *table, const struct dra_claim *claim,
				  struct err *err);
MUST_USE err_status dra_table_remove(struct dra_table *table, struct str uid, struct err *err);
// The text of the file alone; on failure *ret_count and the claims are untouched.
void dra_table_put(struct buf *out, const struct dra_claim *claims, size_t count);
MUST_USE err_status dra_table_read(struct str text, struct dra_claim claims[DRA_CLAIMS_MAX],
				   size_t *ret_count, struct err *err);
