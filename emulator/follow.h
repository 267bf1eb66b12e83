// SPDX-License-Identifier: Apache-2.0
// Follows DIR/control while others append to it: hands out whole lines, starts over when the
// file was replaced (another inode) or truncated. A missing file is no error, it may come later.
// Owns its descriptor; read errors are treated as "nothing new" and tried again on the next call.
#pragma once

#include "emulator/control.h"

#include <sys/types.h>

enum { FOLLOW_CHUNK_BYTES = 4096 };

struct follow {
	int dir_fd; // borrowed
	int fd;     // -1: no file yet
	ino_t inode;
	off_t offset;
	struct control_lines lines;
	char chunk[FOLLOW_CHUNK_BYTES];
	struct str rest; // of chunk, not yet split
};

void follow_init(struct follow *follow, int dir_fd);
void follow_done(struct follow *follow);
// True with the next whole line (borrowed until the next call), false when there is none now.
bool follow_next(struct follow *follow, struct str *ret_line, bool *ret_too_long);
