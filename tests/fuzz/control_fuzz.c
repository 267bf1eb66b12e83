// SPDX-License-Identifier: Apache-2.0
// The control file's lines: any bytes, cut in pieces, applied to a machine without GPUs' files.
#include "emulator/control.h"
#include "emulator/faults.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct control_lines lines;
	static struct faults faults;
	struct str rest = { (const char *)data, size };

	control_lines_reset(&lines);
	faults = (struct faults){ 0 };
	while (rest.len > 0) {
		struct str piece = str_slice(rest, 0, min_size(rest.len, 7)), line;
		bool too_long = false;
		rest = str_slice(rest, piece.len, rest.len);
		while (control_lines_next(&lines, &piece, &line, &too_long)) {
			struct control_command command;
			ASSERT(line.len <= CONTROL_LINE_MAX);
			if (control_parse(line, &command, NULL) != ERR_OK)
				continue;
			ASSERT(command.slot == WIRE_NO_SLOT || command.slot < WIRE_GPU_MAX);
			ASSERT(memchr(command.word, 0, sizeof(command.word)) != NULL);
			if (command.kind == CONTROL_SLOW || command.kind == CONTROL_HANG ||
			    command.kind == CONTROL_ERROR)
				(void)faults_apply(&faults, &command, NULL);
		}
	}
	return 0;
}
