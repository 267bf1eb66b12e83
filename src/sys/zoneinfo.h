// SPDX-License-Identifier: Apache-2.0
// The system's time zone files, for pure code that works on their bytes.
#pragma once

#include "base/buf.h"

// name as in "Europe/Berlin"; the caller has made sure that it is safe in a path. ERR_NOT_FOUND
// says which package brings the files.
MUST_USE err_status zoneinfo_read(struct str name, struct buf *ret_tzif, struct err *err);
