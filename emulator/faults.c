// SPDX-License-Identifier: Apache-2.0
#include "emulator/faults.h"

static void rule_remove(struct faults *faults, size_t index)
{
	ASSERT(index < faults->count);
	memmove(&faults->rules[index], &faults->rules[index + 1],
		(faults->count - index - 1) * sizeof(faults->rules[0]));
	faults->count--;
}

err_status faults_apply(struct faults *faults, const struct control_command *command,
			struct err *err)
{
	ASSERT(command->kind == CONTROL_SLOW || command->kind == CONTROL_HANG ||
	       command->kind == CONTROL_ERROR);
	struct fault_rule rule = { .kind = command->kind, .slot = command->slot };
	rule.value = command->kind == CONTROL_SLOW ? command->delay_us : command->code;
	memcpy(rule.call, command->word, sizeof(rule.call));

	for (size_t i = 0; i < faults->count; i++) {
		const struct fault_rule *old = &faults->rules[i];
		if (old->kind == rule.kind && old->slot == rule.slot &&
		    strcmp(old->call, rule.call) == 0) {
			rule_remove(faults, i);
			break;
		}
	}
	if (rule.kind != CONTROL_HANG && rule.value == 0)
		return ERR_OK;
	if (faults->count == FAULTS_MAX)
		return err_set(err, ERR_LIMIT, "there are %d faults already", FAULTS_MAX);
	faults->rules[faults->count++] = rule;
	return ERR_OK;
}

void faults_clear_slot(struct faults *faults, uint32_t slot)
{
	for (size_t i = faults->count; i > 0; i--)
		if (faults->rules[i - 1].slot == slot)
			rule_remove(faults, i - 1);
}

static bool call_matches(const char *rule, const char *call)
{
	struct str want = str_of(rule), got = str_of(call);

	if (str_eq_c(want, "all") || str_eq(want, got))
		return true;
	return got.len == want.len + 3 && str_starts(got, want) && got.data[want.len] == '_' &&
	       got.data[want.len + 1] == 'v';
}

struct fault faults_find(const struct faults *faults, const char *call, uint32_t slot)
{
	struct fault fault = { 0 };

	for (size_t i = 0; i < faults->count; i++) {
		const struct fault_rule *rule = &faults->rules[i];
		if (rule->slot != WIRE_NO_SLOT && rule->slot != slot)
			continue;
		if (!call_matches(rule->call, call))
			continue;
		if (rule->kind == CONTROL_SLOW)
			fault.delay_us = rule->value;
		else if (rule->kind == CONTROL_HANG)
			fault.is_hung = true;
		else
			fault.error = rule->value;
	}
	return fault;
}
