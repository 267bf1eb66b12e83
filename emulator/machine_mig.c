// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine.h"

#include "gpu/nvml_abi.h"

bool machine_part_of(const struct machine_gpu *gpu, uint32_t gi_id, uint32_t ci_id,
		     uint32_t *ret_part)
{
	uint32_t ci_i = 0;

	if (gi_id == WIRE_NO_INSTANCE && ci_id == WIRE_NO_INSTANCE) {
		*ret_part = 0;
		return true;
	}
	if (!mig_ci_find(&gpu->model.mig, gi_id, ci_id, &ci_i))
		return false;
	*ret_part = ci_i + 1;
	return true;
}

uint32_t machine_destroy_gi(struct machine_gpu *gpu, uint32_t gi_id)
{
	struct mig before = gpu->model.mig;
	uint32_t gi_i = 0, result = NVML_SUCCESS;

	if (!mig_gi_find(&gpu->model.mig, gi_id, &gi_i))
		return NVML_ERROR_NOT_FOUND;
	for (size_t i = 0; i < MIG_CI_MAX && result == NVML_SUCCESS; i++) {
		const struct mig_ci *ci = &gpu->model.mig.cis[i];
		if (ci->is_used && ci->gi_i == gi_i)
			result = model_destroy_ci(&gpu->model, gi_id, ci->id);
	}
	if (result == NVML_SUCCESS)
		result = mig_gi_destroy(&gpu->model.mig, gi_id);
	if (result != NVML_SUCCESS)
		gpu->model.mig = before;
	return result;
}

static err_status create(struct machine_gpu *gpu, const struct control_command *command,
			 struct err *err)
{
	struct mig *mig = &gpu->model.mig;
	const struct board *board = gpu->model.board;
	uint32_t profile_i = 0, ci_profile = 0, size = 0, ci_i = 0;
	struct mig_ci wanted = { .start = 0 };

	if (!mig_profile_by_name(board, command->word, &profile_i))
		return err_set(err, ERR_INVALID, "a %s has no MIG profile %s", board->name,
			       command->word);
	uint32_t result = mig_gi_create(board, mig, profile_i, command->numbers[0], &wanted.gi_i);
	if (result == NVML_ERROR_NOT_SUPPORTED)
		return err_set(err, ERR_CONFLICT, "MIG mode of GPU %u is off", command->slot);
	if (result == NVML_ERROR_INVALID_ARGUMENT)
		return err_set(err, ERR_INVALID, "a %s cannot begin at %u", command->word,
			       command->numbers[0]);
	if (result != NVML_SUCCESS)
		return err_set(err, ERR_LIMIT, "GPU %u has no room for a %s", command->slot,
			       command->word);
	while (mig_compute_starts(board->mig_profiles[profile_i].slices, ci_profile, &size) == 0 ||
	       size < board->mig_profiles[profile_i].slices)
		ci_profile++;
	wanted.profile = ci_profile;
	result = mig_ci_create(board, mig, &wanted, gpu->uuid, &ci_i);
	ASSERT(result == NVML_SUCCESS);
	return ERR_OK;
}

static err_status destroy(struct machine_gpu *gpu, const struct control_command *command,
			  struct err *err)
{
	bool is_all = command->gpu_instance_id == WIRE_NO_INSTANCE;

	for (size_t i = 0; i < MIG_GI_MAX; i++) {
		const struct mig_gi *gi = &gpu->model.mig.gis[i];
		if (!gi->is_used || (!is_all && gi->id != command->gpu_instance_id))
			continue;
		if (machine_destroy_gi(gpu, gi->id) != NVML_SUCCESS)
			return err_set(err, ERR_CONFLICT, "GPU instance %u is in use", gi->id);
		if (!is_all)
			return ERR_OK;
	}
	return is_all ? ERR_OK
		      : err_set(err, ERR_NOT_FOUND, "GPU %u has no GPU instance %u", command->slot,
				command->gpu_instance_id);
}

err_status machine_apply_mig(struct machine *machine, const struct control_command *command,
			     uint64_t now_ns, struct err *err)
{
	struct machine_gpu *gpu = &machine->gpus[command->slot];

	ASSERT(machine_has(machine, command->slot));
	if (!gpu->model.board->is_mig_capable)
		return err_set(err, ERR_INVALID, "a %s has no MIG", gpu->model.board->name);
	if (gpu->model.is_lost)
		return err_set(err, ERR_UNAVAILABLE, "GPU %u is lost", command->slot);
	if (command->kind == CONTROL_MIG_MODE) {
		model_set_mig_mode(&gpu->model, command->is_on ? 1 : 0, now_ns);
		return ERR_OK;
	}
	model_advance(&gpu->model, now_ns);
	return command->kind == CONTROL_MIG_CREATE ? create(gpu, command, err)
						   : destroy(gpu, command, err);
}
