// SPDX-License-Identifier: Apache-2.0
// The files below an audit log: naming by the number of their first record, finding the end of
// the chain after a crash, reserving room ahead of writing. Internal to src/audit.
#pragma once

#include "audit/audit.h"

enum { AUDIT_PATH_BYTES = 512 };

struct audit_tail {
	char path[AUDIT_PATH_BYTES]; // newest file; empty when there is none
	char chain[AUDIT_CHAIN_CHARS + 1];
	struct audit_place place;
	int64_t size_bytes; // of the good part
	int64_t torn_bytes; // after it, to be cut off
};

// Reads the newest file whole and checks it; ERR_INTERNAL when more than its end is damaged.
MUST_USE err_status audit_files_find_tail(const char *dir, struct audit_tail *ret_tail,
					  struct err *err);
MUST_USE err_status audit_files_create(const char *dir, int64_t first_seq, int *ret_fd,
				       struct err *err);
// Reserves blocks for [from, from + size) without changing the length. ERR_OK also where the
// file system cannot reserve.
MUST_USE err_status audit_files_reserve(int fd, int64_t from_bytes, int64_t size_bytes,
					struct err *err);
