// SPDX-License-Identifier: Apache-2.0
#include "policy/request_mig.h"

#include "base/buf.h"
#include "gpu/mig.h"

#include <inttypes.h>

enum { TEXT_MAX = 200 };

err_status request_mig_check_alone(const struct request_spec *spec, const char **ret_field,
				   struct err *err)
{
	ASSERT(spec->mig_profile.len > 0);
	*ret_field = "mig_profile";
	if (spec->gpu_count > 0 || spec->gpu_milli > 0)
		return err_set(
			err, ERR_INVALID,
			"mig_profile: a request is for a MIG device, for whole GPUs or for a "
			"share of one, not for several of these");
	if (mig_profile_slices(spec->mig_profile) == 0)
		return err_set(err, ERR_INVALID,
			       "mig_profile: a profile is named as the driver names it, such as "
			       "1g.10gb or 1g.10gb+me");
	*ret_field = "gpu_memory";
	if (spec->gpu_memory_mib > 0)
		return err_set(err, ERR_INVALID,
			       "gpu_memory: the memory of a MIG device is that of its profile; "
			       "leave it out");
	return ERR_OK;
}

uint32_t inventory_mig_slices(struct str profile) { return mig_profile_slices(profile); }

void inventory_mig_resource(struct str profile, char *out, size_t out_bytes)
{
	mig_resource_name("nvidia.com/", profile, out, out_bytes);
}

bool inventory_add_mig(struct inventory *inventory, const struct inventory_mig *mig)
{
	ASSERT(inventory->mig_count <= INVENTORY_MIGS_MAX);
	for (size_t i = 0; i < inventory->mig_count; i++) {
		struct inventory_mig *known = &inventory->migs[i];
		if (!str_eq(known->profile, mig->profile) || !str_eq(known->model, mig->model))
			continue;
		known->offered += mig->offered;
		known->gpus += mig->gpus;
		known->slices = max_i64(known->slices, mig->slices);
		known->board_slices = max_i64(known->board_slices, mig->board_slices);
		return true;
	}
	if (inventory->mig_count == INVENTORY_MIGS_MAX)
		return false;
	inventory->migs[inventory->mig_count++] = *mig;
	return true;
}

static bool is_wanted(const struct request_spec *spec, const struct inventory_mig *mig)
{
	return str_eq(mig->profile, spec->mig_profile) && request_wants_model(spec, mig->model);
}

size_t inventory_mig_part(const struct inventory *inventory, const struct request_spec *spec,
			  struct str ret_models[REQUEST_MODELS_MAX], int64_t ret_part[2])
{
	int64_t part[2] = { 0, 1 };
	size_t count = 0;
	for (size_t i = 0; i < inventory->mig_count && count < REQUEST_MODELS_MAX; i++) {
		const struct inventory_mig *mig = &inventory->migs[i];
		if (!is_wanted(spec, mig) || mig->slices <= 0 || mig->board_slices < mig->slices)
			continue;
		ret_models[count++] = mig->model;
		if (mig->slices * part[1] > part[0] * mig->board_slices) {
			part[0] = mig->slices;
			part[1] = mig->board_slices;
		}
	}
	if (count > 0)
		memcpy(ret_part, part, sizeof part);
	return count;
}

// The profiles of which there are devices, each once.
static void put_offered(struct buf *out, const struct inventory *inventory)
{
	const char *before = "";
	for (size_t i = 0; i < inventory->mig_count; i++) {
		const struct inventory_mig *mig = &inventory->migs[i];
		bool is_first = mig->offered > 0;
		for (size_t k = 0; k < i; k++)
			is_first = is_first && !(inventory->migs[k].offered > 0 &&
						 str_eq(inventory->migs[k].profile, mig->profile));
		if (!is_first)
			continue;
		buf_printf(out, "%s" STR_FMT, before, STR_ARG(mig->profile));
		before = ", ";
	}
	if (before[0] == '\0')
		buf_put_c(out, "none");
}

err_status request_mig_check_possible(const struct request_spec *spec,
				      const struct inventory *inventory, struct err *err)
{
	int64_t offered = 0, gpus = 0;
	AUTO(buf_done) struct buf have = { .limit = TEXT_MAX };
	struct str model = STR("");
	for (size_t i = 0; i < inventory->mig_count; i++) {
		const struct inventory_mig *mig = &inventory->migs[i];
		if (!is_wanted(spec, mig))
			continue;
		offered += mig->offered;
		gpus += mig->gpus;
		model = mig->gpus > 0 ? mig->model : model;
	}
	if (inventory->count + inventory->mig_count == 0 || offered >= request_pod_count(spec))
		return ERR_OK;
	if (offered > 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "all nodes together have %" PRId64 " MIG devices " STR_FMT
			       ", the gang has %" PRId64 " pods; ask for a smaller gang",
			       offered, STR_ARG(spec->mig_profile), request_pod_count(spec));
	put_offered(&have, inventory);
	const char *there_are = buf_ok(&have) ? have.data : "many";
	if (gpus > 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "no node has MIG devices " STR_FMT " now, which %" PRId64
			       " GPUs (" STR_FMT ") could have: let an administrator choose a "
			       "layout with them (docs/nodes.md), or ask for what there is: %s",
			       STR_ARG(spec->mig_profile), gpus, STR_ARG(model), there_are);
	return err_set(err, ERR_UNSUPPORTED,
		       "no such GPU has a MIG profile " STR_FMT
		       "; ask for a profile that there is (%s), for a share (gpu_milli) or for a "
		       "whole GPU (gpus)",
		       STR_ARG(spec->mig_profile), there_are);
}
