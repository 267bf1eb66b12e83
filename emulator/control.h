// SPDX-License-Identifier: Apache-2.0
// The control file's language: one command a line, the list is in emulator/README.md. Pure: bytes
// in, checked commands out; nothing here knows a machine. Parsing fails with a text that names
// the word at fault and changes nothing. Lines may arrive in pieces (the file is followed while
// others append to it); a line above CONTROL_LINE_MAX bytes is reported once and skipped.
#pragma once

#include "base/str.h"
#include "emulator/wire.h"

enum { CONTROL_LINE_MAX = 255 };

enum control_kind {
	CONTROL_NOTHING = 0, // empty line or comment
	CONTROL_LOST,
	CONTROL_XID,
	CONTROL_INITFAIL,
	CONTROL_WAIT_ERROR,
	CONTROL_SLOW,
	CONTROL_HANG,
	CONTROL_ERROR,
	CONTROL_ADD,
	CONTROL_REMOVE,
	CONTROL_DRIVER,
	CONTROL_RESTORE,
	CONTROL_RECOVERY,
	CONTROL_PROCESS,
	CONTROL_ECC,         // code 0 corrected, 1 uncorrected; numbers: how many
	CONTROL_ECC_MODE,    // is_on
	CONTROL_PAGES,       // numbers: single-bit, double-bit, pending
	CONTROL_ROWS,        // numbers: correctable, uncorrectable, pending, failed
	CONTROL_TEMP,        // code: degrees, 0 ends it
	CONTROL_THROTTLE,    // code: mask of reasons, 0 ends it
	CONTROL_MIG_MODE,    // is_on
	CONTROL_MIG_CREATE,  // word: profile; numbers: start or WIRE_ANYWHERE
	CONTROL_MIG_DESTROY, // gpu_instance_id, or WIRE_NO_INSTANCE for all
};
enum { CONTROL_NUMBERS_MAX = 4 };

struct control_command {
	enum control_kind kind;
	uint32_t slot;            // WIRE_NO_SLOT: every GPU
	bool is_on;               // initfail, wait-error
	char word[WIRE_CALL_MAX]; // call, board, driver version or MIG profile
	uint32_t code;            // XID, return code, recovery action, CUDA version (0: not said)
	uint32_t gpu_instance_id, compute_instance_id;
	uint32_t delay_us;        // slow; 0 ends it
	uint32_t pid, memory_mib; // process; 0 MiB removes it
	uint32_t numbers[CONTROL_NUMBERS_MAX];
};

// 12080 of "12.8"; false when it is no CUDA version.
bool control_cuda_version(struct str text, uint32_t *ret_version);

err_status control_parse(struct str line, struct control_command *ret_command, struct err *err);

struct control_lines {
	char line[CONTROL_LINE_MAX];
	size_t len;
	bool is_too_long;
	uint64_t line_number; // of the last whole line
};
// Takes bytes up to the end of the next line off rest; true when a whole line is there, in
// ret_line (borrowed until the next call). ret_too_long tells that it is cut.
bool control_lines_next(struct control_lines *lines, struct str *rest, struct str *ret_line,
			bool *ret_too_long);
// Forgets a partial line, for a file that was replaced.
void control_lines_reset(struct control_lines *lines);
