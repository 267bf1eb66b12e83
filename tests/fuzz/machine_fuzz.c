// SPDX-License-Identifier: Apache-2.0
// A boards.json of the emulator, and the same bytes as the file of one board.
#include "base/json.h"
#include "emulator/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// As many instances of each profile as there is room for, wherever the rules put them.
static void fill_with_instances(const struct board *board)
{
	struct mig mig = { .mode = 1 };
	uint32_t gi_i = 0, ci_i = 0;

	for (uint32_t i = 0; i < board->mig_profile_count; i++)
		while (mig_remaining(board, &mig, i) > 0) {
			ASSERT(mig_gi_create(board, &mig, i, MIG_ANYWHERE, &gi_i) == 0);
			struct mig_ci wanted = { .gi_i = gi_i, .start = MIG_ANYWHERE };
			while (mig_ci_create(board, &mig, &wanted, "GPU", &ci_i) == 0)
				ASSERT(ci_i < MIG_CI_MAX);
		}
}

static void check_machine(const struct machine *machine)
{
	char bus_id[32];
	ASSERT(machine->slot_count <= WIRE_GPU_MAX && machine->board_count <= MACHINE_BOARD_MAX);
	for (size_t i = 0; i < machine->board_count; i++)
		fill_with_instances(&machine->boards[i]);
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		ASSERT(machine_has(machine, slot) && machine_slot_at(machine, slot) == slot);
		ASSERT(machine->gpus[slot].numa < machine->numa_count);
		machine_bus_id(&machine->gpus[slot], bus_id);
		ASSERT(strlen(bus_id) == strlen("00000000:1A:00.0"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine machine;
	AUTO(json_decrefp)
	json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct board board = { .id = "" };
	struct err err = { 0 };
	if (root == NULL)
		return 0;
	if (machine_read_json(root, "/nonexistent", 1, &machine, &err) == ERR_OK)
		check_machine(&machine);
	else
		ASSERT(err.text[0] != '\0');
	err = (struct err){ 0 };
	if (board_read(root, &board, &err) == ERR_OK)
		ASSERT(board.id[0] != '\0' && board.power_idle_w < board.power_limit_w);
	else
		ASSERT(err.text[0] != '\0');
	return 0;
}
