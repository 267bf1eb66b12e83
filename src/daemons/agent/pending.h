// SPDX-License-Identifier: Apache-2.0
// Replaces a small file by rename without waiting for the disk: what it holds survives the end
// of this process, not the end of the machine, and costs microseconds.
#pragma once

#include "base/str.h"

MUST_USE err_status pending_write(const char *path, struct str content, struct err *err);
