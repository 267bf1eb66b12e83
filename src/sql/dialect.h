// SPDX-License-Identifier: Apache-2.0
// Where PostgreSQL differs from the one text of our statements, and what its error codes mean in
// ours. Pure: no connection, no clock.
// Placeholders ?n become $n. In CREATE and ALTER, TEXT becomes TEXT COLLATE "C", so that order
// and paging are those of bytes as in SQLite, whatever the database's own collation is and
// however its library changes; BLOB becomes BYTEA.
#pragma once

#include "base/buf.h"

// ERR_INVALID for a placeholder without a number and for a quotation without an end.
MUST_USE err_status dialect_to_postgres(struct str statement, struct buf *out, struct err *err);

struct dialect_fault {
	err_status status;
	bool is_lost;     // the session is gone or of no more use
	const char *note; // instead of the database's own words; NULL: those
};
// sqlstate: five characters; anything else is an unknown fault.
struct dialect_fault dialect_fault_of(struct str sqlstate);

// The code in libpq's text of a connection that failed ("...FATAL:  28P01: ..."), empty if none,
// and what follows it up to the end of the line.
struct str dialect_find_code(struct str text, struct str *ret_message);
