// SPDX-License-Identifier: Apache-2.0
// Messages of the emulator's three kinds: requests answered from a machine, workloads' wishes
// applied to it, and replies as the library checks them.
#include "emulator/answer.h"

#include <string.h>

static const struct board BOARD = {
	.id = "fuzz",
	.name = "fuzz",
	.memory_mib = 1000,
	.memory_reserved_mib = 10,
	.power_idle_w = 10,
	.power_limit_w = 100,
	.temp_idle_c = 20,
	.temp_busy_c = 60,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct board MIG_BOARD = {
	.id = "mig",
	.name = "mig",
	.memory_mib = 1000,
	.memory_reserved_mib = 10,
	.power_idle_w = 10,
	.power_limit_w = 100,
	.temp_idle_c = 20,
	.temp_busy_c = 60,
	.is_mig_capable = 1,
	.architecture = 9,
	.has_ecc = 1,
	.mig_profile_count = 2,
	.mig_profiles = { { .name = "1g",
			    .id = 19,
			    .slices = 1,
			    .size = 1,
			    .starts = 0x7f,
			    .count_max = 7,
			    .memory_mib = 100 },
			  { .name = "3g",
			    .profile = 2,
			    .id = 9,
			    .slices = 3,
			    .size = 4,
			    .starts = 0x11,
			    .count_max = 2,
			    .memory_mib = 400 } },
};

// A GPU, one that is lost, and one in MIG mode with an instance.
static void prepare(struct machine *machine)
{
	struct mig_ci wanted = { .start = 0 };
	uint32_t ci_i = 0;

	*machine = (struct machine){ .slot_count = 3, .cpu_count = 2, .numa_count = 1 };
	for (size_t i = 0; i < machine->slot_count; i++) {
		machine->gpus[i].is_present = true;
		model_init(&machine->gpus[i].model, i == 2 ? &MIG_BOARD : &BOARD, 0);
	}
	model_lose(&machine->gpus[1].model, 0);
	struct mig *mig = &machine->gpus[2].model.mig;
	model_set_mig_mode(&machine->gpus[2].model, 1, 0);
	ASSERT(mig_gi_create(&MIG_BOARD, mig, 1, 4, &wanted.gi_i) == 0);
	ASSERT(mig_ci_create(&MIG_BOARD, mig, &wanted, "GPU", &ci_i) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine machine;
	static struct wire_reply reply;
	struct wire_request request;
	struct wire_work work;

	prepare(&machine);
	if (wire_check_work(data, size, &work)) {
		struct model_use use = { work.memory_mib, work.util_milli, work.memory_util_milli,
					 0 };
		enum model_result result = model_use_set(&machine.gpus[0].model, 1, 1, use, 1);
		ASSERT((result == MODEL_OK) == (work.memory_mib <= 990));
	}
	if (wire_check_request(data, size, &request) && request.op != WIRE_EVENTS_ADD &&
	    request.op != WIRE_EVENTS_WAIT) {
		size_t sent_bytes = answer_request(&machine, &request, 1000000000, &reply);
		size_t body_bytes = reply.body_bytes;
		ASSERT(wire_check_reply(&reply, sent_bytes,
					request.op == WIRE_PROCESSES ? SIZE_MAX : body_bytes));
	}
	if (size <= sizeof(reply)) {
		reply = (struct wire_reply){ 0 };
		memcpy(&reply, data, size);
		if (wire_check_reply(&reply, size, SIZE_MAX) && reply.status == 0)
			ASSERT(reply.count <= WIRE_PROCESS_MAX);
	}
	return 0;
}
