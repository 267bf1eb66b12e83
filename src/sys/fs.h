// SPDX-License-Identifier: Apache-2.0
// Files: whole reads with a limit, atomic replacement (temporary file in the same folder, fsync,
// rename, fsync of the folder), and the steps of a durable append: write all, sync the folder.
#pragma once

#include "base/buf.h"

MUST_USE err_status fs_read(const char *path, size_t limit_bytes, struct buf *ret_content,
			    struct err *err);
MUST_USE err_status fs_write_atomic(const char *path, struct str content, unsigned mode,
				    struct err *err);
MUST_USE err_status fs_mkdirs(const char *path, unsigned mode, struct err *err);
MUST_USE err_status fs_write_all(int fd, struct str content, struct err *err); // retries EINTR
MUST_USE err_status fs_sync_folder_of(const char *path, struct err *err);
void fs_closep(int *fd); // for AUTO: closes when >= 0
