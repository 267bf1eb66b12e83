// SPDX-License-Identifier: Apache-2.0
// Where to connect: the URL taken apart by libpq, with what we set where it says nothing. Owns
// the password: texts about a connection pass through pg_target_note, which takes it out.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <libpq-fe.h>

struct pg_target;

MUST_USE err_status pg_target_new(const char *url, struct pg_target **ret_target, struct err *err);
void pg_target_free(struct pg_target *target);              // NULL allowed
const char *pg_target_name(const struct pg_target *target); // may be shown
// Begins a connection without waiting; as PQconnectStart.
PGconn *pg_target_start(const struct pg_target *target);
// "the database NAME takes no connection: MESSAGE" in one line.
void pg_target_note(const struct pg_target *target, struct str message, err_status status,
		    struct err *err);
