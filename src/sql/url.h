// SPDX-License-Identifier: Apache-2.0
// URLs of stores: "sqlite:PATH", "postgres://...", "postgresql://...", or either of these behind
// "postgres:". Pure. A URL of PostgreSQL may hold a password: only what url_show gives may be
// shown to anybody, and no text of ours or of libpq's about a URL that it cannot read.
#pragma once

#include "base/buf.h"

// "postgres://HOSTS/DATABASE" without user, password and parameters; nothing but "postgres:..."
// when the parts cannot be told apart for sure; other stores as they are.
void url_show(struct str url, struct buf *out);
// The URL for libpq. ERR_INVALID when it is none or could be read in two ways, because a sign of
// the password is not written as %XX.
MUST_USE err_status url_check_postgres(struct str url, struct str *ret_url, struct err *err);
