// SPDX-License-Identifier: Apache-2.0
// CDI specifications of prepared claims: a file a claim, written whole by rename before the claim
// is answered, with an entry for each of its GPUs under a name that has the claim's UID in it, so
// that no name ever means another device. The entries are those of the file of whole GPUs
// (daemons/agent/cdi.h), which is on the disk before anything is offered.
#pragma once

#include "daemons/agent/dra_table.h"

#define DRA_CDI_KIND "gpuaas.io/claim"
#define DRA_CDI_PREFIX "gpuaas.io-claim-"

// "gpuaas.io/claim=UID-gpu-..."
char *dra_cdi_name(const char *claim_uid, const char *gpu_uuid, char out[DRA_CDI_BYTES]);
// base: text of the file of whole GPUs. names: of the claim's GPUs there, in their order.
MUST_USE err_status dra_cdi_render(struct buf *out, struct str base, const struct dra_claim *claim,
				   const char *const *names, struct err *err);
// Writes unless the same is there.
MUST_USE err_status dra_cdi_write(const char *dir, const struct dra_claim *claim,
				  const char *const *names, struct err *err);
void dra_cdi_remove(const char *dir, const char *claim_uid); // gone already is as good
// What the file of a claim says: its UID and GPUs, all else is empty. Counts when nothing else
// knows.
MUST_USE err_status dra_cdi_read(const char *dir, struct str claim_uid, struct dra_claim *ret,
				 struct err *err);
