// SPDX-License-Identifier: Apache-2.0
// What a new connection to PostgreSQL goes through before it is used: the database's version and
// encoding, time limits, and ownership. The owner is who holds the advisory lock; a row names the
// last one, so that who comes back finds out whether another was there meanwhile.
#pragma once

#include "sql/pg_session.h"

struct pg_claim {
	char instance[37];  // of this program, random
	bool is_confirmed;  // the row has named us
	bool is_superseded; // and named another later
	int pid;            // of the session before, 0: none
	char started_us[24];
	int64_t statement_timeout_ms;
};

// Fills claim; on failure the caller drops the connection.
MUST_USE err_status pg_setup(struct pg_session *session, struct pg_claim *claim, struct err *err);
