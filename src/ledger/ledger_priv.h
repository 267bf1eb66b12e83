// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#pragma once

#include "ledger/ledger.h"

struct ledger {
	struct sql *sql;
	struct ledger_counts counts;
	ledger_owner_fn *owner; // NULL: not asked
	void *owner_arg;
};

extern const struct sql_migration ledger_migrations[];
extern const size_t ledger_migration_count;
