// SPDX-License-Identifier: Apache-2.0
// Faults injected into single NVML calls: a delay, a hang, a return code, for one GPU or all.
// A rule's call without version suffix holds for every version of the function; "all" for every
// function. Pure; fixed size; a rule that does not fit is refused.
#pragma once

#include "emulator/control.h"

enum { FAULTS_MAX = 128 };

struct fault_rule {
	enum control_kind kind; // CONTROL_SLOW, CONTROL_HANG or CONTROL_ERROR
	char call[WIRE_CALL_MAX];
	uint32_t slot; // WIRE_NO_SLOT: all
	uint32_t value;
};

struct faults {
	struct fault_rule rules[FAULTS_MAX];
	size_t count;
};

struct fault {
	uint32_t delay_us;
	bool is_hung;
	uint32_t error; // 0: none
};

// Adds the command's rule, or replaces the one with the same kind, call and GPU; value 0 of
// slow and error removes it.
err_status faults_apply(struct faults *faults, const struct control_command *command,
			struct err *err);
// Removes all rules that name this GPU.
void faults_clear_slot(struct faults *faults, uint32_t slot);
// What holds for this call on this GPU (WIRE_NO_SLOT: a call without GPU). Later rules win.
struct fault faults_find(const struct faults *faults, const char *call, uint32_t slot);
