// SPDX-License-Identifier: Apache-2.0
// The record of a run of mig_apply on disk: what was wanted, how far it is, what was before on each
// GPU that it changes. Text in, text out; a record that is not whole is no record.
#pragma once

#include "daemons/agent/mig_apply.h"

void mig_record_put(struct buf *out, const struct mig_apply *apply);
// Fills the run of apply; false: nothing was taken. Targets are what was before: a run that a
// record is read of can only be undone.
MUST_USE bool mig_record_read(struct str text, struct mig_apply *apply);
