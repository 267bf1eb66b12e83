// SPDX-License-Identifier: Apache-2.0
#include "emulator/answer.h"

#include "gpu/nvml_abi.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)WIRE_MIG_PROFILE_MAX == (int)BOARD_MIG_PROFILE_MAX,
	       "profiles fit into a message");
_Static_assert((int)WIRE_MIG_MAX == (int)MIG_GI_MAX, "GPU instances do");
_Static_assert((int)WIRE_MIG_MAX == (int)MIG_CI_MAX, "compute instances do");

static void fill_profiles(const struct board *board, const struct mig *mig, struct wire_mig *ret)
{
	ret->profile_count = board->mig_profile_count;
	for (uint32_t i = 0; i < board->mig_profile_count; i++) {
		const struct mig_profile *from = &board->mig_profiles[i];
		struct wire_mig_profile *to = &ret->profiles[i];
		*to = (struct wire_mig_profile){
			.profile = from->profile,
			.id = from->id,
			.slices = from->slices,
			.size = from->size,
			.starts = from->starts,
			.free_starts = mig_free_starts(board, mig, i),
			.count_max = from->count_max,
			.remaining = mig_remaining(board, mig, i),
			.memory_mib = from->memory_mib,
			.sm_count = from->sm_count,
			.copy_count = from->copy_count,
			.decoder_count = from->decoder_count,
			.encoder_count = from->encoder_count,
			.jpeg_count = from->jpeg_count,
			.ofa_count = from->ofa_count,
		};
		snprintf(to->name, sizeof(to->name), "%s", from->name);
		if (from->profile == NVML_GPU_INSTANCE_PROFILE_1_SLICE)
			ret->narrow_sm_count = from->sm_count;
	}
}

static void add_cis(const struct model_gpu *model, uint32_t gi_i, struct wire_mig *ret)
{
	const struct mig *mig = &model->mig;

	for (uint32_t id = 0; id < MIG_CI_ID_MAX; id++) {
		uint32_t ci_i = 0;
		if (!mig_ci_find(mig, mig->gis[gi_i].id, id, &ci_i))
			continue;
		const struct mig_ci *ci = &mig->cis[ci_i];
		struct wire_ci *to = &ret->cis[ret->ci_count++];
		*to = (struct wire_ci){
			.gi = mig->gis[gi_i].id,
			.id = id,
			.profile = ci->profile,
			.start = ci->start,
			.size = ci->size,
			.sm_count = mig_ci_sm_count(model->board, &mig->gis[gi_i], ci->size),
		};
		snprintf(to->uuid, sizeof(to->uuid), "%s", ci->uuid);
	}
}

static void fill(const struct model_gpu *model, struct wire_mig *ret)
{
	const struct mig *mig = &model->mig;
	uint32_t gi_i = 0;

	*ret = (struct wire_mig){ .mode = mig->mode, .mode_pending = mig->mode_pending };
	fill_profiles(model->board, mig, ret);
	for (uint32_t id = 0; id < MIG_GI_ID_MAX; id++) {
		if (!mig_gi_find(mig, id, &gi_i))
			continue;
		struct wire_gi *to = &ret->gis[ret->gi_count++];
		*to = (struct wire_gi){
			.id = id,
			.profile_i = mig->gis[gi_i].profile_i,
			.start = mig->gis[gi_i].start,
			.memory_used_mib = model_gi_memory_used_mib(model, gi_i),
		};
		for (uint32_t i = 0; i < 8; i++)
			to->ci_free_starts[i] = mig_ci_free_starts(model->board, mig, gi_i, i);
		add_cis(model, gi_i, ret);
	}
}

static uint32_t create_gi(struct model_gpu *model, const uint32_t args[], uint32_t *ret_id)
{
	uint32_t profile_i = 0, gi_i = 0;

	if (!mig_profile_by_id(model->board, args[0], &profile_i))
		return NVML_ERROR_INVALID_ARGUMENT;
	uint32_t result = mig_gi_create(model->board, &model->mig, profile_i, args[1], &gi_i);
	if (result == NVML_SUCCESS)
		*ret_id = model->mig.gis[gi_i].id;
	return result;
}

static uint32_t create_ci(struct machine_gpu *gpu, const uint32_t args[], uint32_t *ret_id)
{
	struct mig_ci wanted = { .profile = args[1], .start = args[2] };
	struct mig *mig = &gpu->model.mig;
	uint32_t ci_i = 0;

	if (!mig_gi_find(mig, args[0], &wanted.gi_i))
		return NVML_ERROR_NOT_FOUND;
	uint32_t result = mig_ci_create(gpu->model.board, mig, &wanted, gpu->uuid, &ci_i);
	if (result == NVML_SUCCESS)
		*ret_id = mig->cis[ci_i].id;
	return result;
}

static uint32_t change(struct machine_gpu *gpu, const struct wire_request *request, uint64_t now_ns,
		       uint32_t *ret_id)
{
	struct model_gpu *model = &gpu->model;
	const uint32_t *args = request->args;

	if (!model->board->is_mig_capable)
		return NVML_ERROR_NOT_SUPPORTED;
	model_advance(model, now_ns);
	if (request->op == WIRE_MIG_MODE && args[0] <= NVML_FEATURE_ENABLED) {
		model_set_mig_mode(model, args[0], now_ns);
		return NVML_SUCCESS;
	}
	if (request->op == WIRE_GI_CREATE)
		return create_gi(model, args, ret_id);
	if (request->op == WIRE_GI_DESTROY)
		return mig_gi_destroy(&model->mig, args[0]);
	if (request->op == WIRE_CI_CREATE)
		return create_ci(gpu, args, ret_id);
	if (request->op == WIRE_CI_DESTROY)
		return model_destroy_ci(model, args[0], args[1]);
	return NVML_ERROR_INVALID_ARGUMENT;
}

size_t answer_mig(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		  struct wire_reply *ret_reply)
{
	uint32_t slot = answer_slot(machine, request), made = 0, result = NVML_SUCCESS;

	if (slot == WIRE_NO_SLOT)
		return answer_status(NVML_ERROR_INVALID_ARGUMENT, ret_reply);
	struct machine_gpu *gpu = &machine->gpus[slot];
	if (!machine_has(machine, slot) || gpu->model.is_lost)
		return answer_status(NVML_ERROR_GPU_IS_LOST, ret_reply);
	if (request->op != WIRE_MIG)
		result = change(gpu, request, now_ns, &made);
	if (result != NVML_SUCCESS)
		return answer_status(result, ret_reply);
	fill(&gpu->model, &ret_reply->body.mig);
	ret_reply->body.mig.made = made;
	return answer_body(sizeof(ret_reply->body.mig), ret_reply);
}
