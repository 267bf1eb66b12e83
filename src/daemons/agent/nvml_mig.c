// SPDX-License-Identifier: Apache-2.0
// The child's part of MIG: profiles and instances as the driver tells them, and single changes.
#include "daemons/agent/nvml_read.h"

#include <stdio.h>

static bool has_mig(const struct nvml_lib *lib)
{
#define HAS(member, name, params) &&lib->member != NULL
	return lib->mig_mode != NULL NVML_MIG(HAS);
#undef HAS
}

static bool read_profile(const struct nvml_lib *lib, struct nvml_device *device, uint32_t number,
			 uint64_t total_bytes, struct mig_profile *ret)
{
	struct nvml_gi_profile_info info = { 0 };
	struct nvml_placement places[32] = { 0 };
	struct mig_profile profile = { 0 };
	uint32_t count = ARRAY_COUNT(places);
	if (lib->gi_profile(device, number, &info) != NVML_SUCCESS ||
	    lib->gi_places(device, info.id, places, &count) != NVML_SUCCESS || count == 0 ||
	    count > ARRAY_COUNT(places))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (places[i].start < MIG_SLICES_MAX)
			profile.starts |= 1U << places[i].start;
	}
	profile.id = info.id;
	profile.slices = info.slice_count;
	profile.size = places[0].size;
	profile.count_max = info.instance_count < MIG_INSTANCES_MAX ? info.instance_count
								    : MIG_INSTANCES_MAX;
	mig_profile_name(info.slice_count, number, info.memory_mib, total_bytes, profile.name);
	*ret = profile;
	return true;
}

static void read_profiles(const struct nvml_lib *lib, struct nvml_device *device,
			  uint64_t total_bytes, struct mig_state *mig)
{
	for (uint32_t number = 0; number < NVML_GI_PROFILE_COUNT; number++) {
		struct mig_profile *profile = &mig->profiles[mig->profile_count];
		if (!read_profile(lib, device, number, total_bytes, profile))
			continue;
		// Some boards list a profile under two numbers.
		if (mig_profile_find(mig, str_of(profile->name)) != NULL)
			continue;
		mig->slices = profile->slices > mig->slices ? profile->slices : mig->slices;
		mig->profile_count++;
	}
}

static void add_gis(const struct nvml_lib *lib, struct nvml_device *device,
		    const struct mig_profile *profile, struct mig_state *mig)
{
	struct nvml_gpu_instance *gis[MIG_INSTANCES_MAX * 2] = { 0 };
	uint32_t count = 0;
	nvml_return result = lib->gis(device, profile->id, gis, &count);
	if (result != NVML_SUCCESS) {
		mig->has_places = 0; // changes are not permitted here, devices are told still
		return;
	}
	for (uint32_t i = 0; i < count && i < ARRAY_COUNT(gis); i++) {
		struct nvml_gi_info info = { 0 };
		if (mig->instance_count == MIG_INSTANCES_MAX ||
		    lib->gi_info(gis[i], &info) != NVML_SUCCESS)
			continue;
		struct mig_instance *instance = &mig->instances[mig->instance_count++];
		*instance = (struct mig_instance){ .profile_id = profile->id,
						   .gi = info.id,
						   .start = info.placement.start,
						   .size = info.placement.size,
						   .slices = profile->slices };
		memcpy(instance->profile, profile->name, sizeof instance->profile);
	}
}

static struct mig_instance *instance_of(struct mig_state *mig, uint32_t gi)
{
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].gi == gi)
			return &mig->instances[i];
	}
	return NULL;
}

static void read_memory(const struct nvml_lib *lib, struct nvml_device *device,
			struct mig_instance *instance)
{
	struct nvml_memory_v2 v2 = { .version = NVML_STRUCT_VERSION(struct nvml_memory_v2, 2) };
	struct nvml_memory v1 = { 0 };
	if (lib->memory_v2 != NULL && lib->memory_v2(device, &v2) == NVML_SUCCESS) {
		instance->used_mib = v2.used_bytes >> 20;
		instance->free_mib = v2.free_bytes >> 20;
		instance->reserved_mib = v2.reserved_bytes >> 20;
	} else if (lib->memory != NULL && lib->memory(device, &v1) == NVML_SUCCESS) {
		instance->used_mib = v1.used_bytes >> 20;
		instance->free_mib = v1.free_bytes >> 20;
	}
}

// Without permission to list GPU instances their places are not known; each gets one of its own.
static struct mig_instance *add_placeless(struct mig_state *mig, uint32_t gi, uint32_t gi_slices)
{
	uint32_t start = 0;
	for (uint32_t i = 0; i < mig->instance_count; i++)
		start += mig->instances[i].slices;
	if (mig->has_places || mig->instance_count == MIG_INSTANCES_MAX || gi_slices == 0 ||
	    start + gi_slices > MIG_SLICES_MAX)
		return NULL;
	struct mig_instance *instance = &mig->instances[mig->instance_count++];
	*instance = (struct mig_instance){
		.gi = gi, .start = start, .size = gi_slices, .slices = gi_slices
	};
	return instance;
}

// The profile of a MIG device whose GPU instance could not be looked at: by width and memory.
static void name_placeless(struct mig_instance *instance, uint64_t total_bytes)
{
	if (instance->profile[0] == '\0')
		mig_profile_name(instance->slices, 0, instance->memory_mib, total_bytes,
				 instance->profile);
}

static void read_device(const struct nvml_lib *lib, struct nvml_device *device, uint32_t index,
			uint64_t total_bytes, struct mig_state *mig)
{
	struct nvml_device_attributes attributes = { 0 };
	uint32_t gi = 0, ci = 0;
	char uuid[GPU_UUID_BYTES] = "";
	if (lib->gi_id_of(device, &gi) != NVML_SUCCESS ||
	    lib->ci_id_of(device, &ci) != NVML_SUCCESS ||
	    lib->attributes(device, &attributes) != NVML_SUCCESS ||
	    lib->uuid(device, uuid, sizeof uuid) != NVML_SUCCESS)
		return;
	if (attributes.ci_slice_count != attributes.gi_slice_count)
		return; // a part of its GPU instance: nobody offers those
	struct mig_instance *instance = instance_of(mig, gi);
	if (instance == NULL)
		instance = add_placeless(mig, gi, attributes.gi_slice_count);
	if (instance == NULL)
		return;
	memcpy(instance->uuid, uuid, sizeof instance->uuid);
	instance->ci = ci;
	instance->index = index;
	instance->multiprocessors = attributes.sm_count;
	instance->copy_engines = attributes.copy_count;
	instance->decoders = attributes.decoder_count;
	instance->encoders = attributes.encoder_count;
	instance->jpegs = attributes.jpeg_count;
	instance->ofas = attributes.ofa_count;
	instance->memory_mib = attributes.memory_mib;
	name_placeless(instance, total_bytes);
	read_memory(lib, device, instance);
}

// In the order of the places, which is also that of ids: the same however the driver lists them.
static void sort(struct mig_state *mig)
{
	for (uint32_t i = 1; i < mig->instance_count; i++) {
		struct mig_instance moved = mig->instances[i];
		uint32_t at = i;
		for (; at > 0 && mig->instances[at - 1].start > moved.start; at--)
			mig->instances[at] = mig->instances[at - 1];
		mig->instances[at] = moved;
	}
}

nvml_return nvml_read_mig(const struct nvml_lib *lib, struct nvml_device *device,
			  const struct gpu_info *info, const struct mig_state *profiles,
			  struct mig_state *ret)
{
	uint32_t current = 0, pending = 0, count = 0;
	struct mig_state mig = { .has_places = 1 };
	if (!has_mig(lib))
		return NVML_ERROR_NOT_SUPPORTED;
	nvml_return result = lib->mig_mode(device, &current, &pending);
	if (result != NVML_SUCCESS)
		return result;
	mig.is_enabled = current == NVML_FEATURE_ENABLED ? 1 : 0;
	mig.is_pending = current == pending ? 0 : 1;
	if (profiles->profile_count == 0) {
		read_profiles(lib, device, info->memory_bytes, &mig);
	} else {
		mig.slices = profiles->slices;
		mig.profile_count = profiles->profile_count;
		memcpy(mig.profiles, profiles->profiles, sizeof mig.profiles);
	}
	for (uint32_t i = 0; mig.is_enabled != 0 && i < mig.profile_count; i++)
		add_gis(lib, device, &mig.profiles[i], &mig);
	if (mig.is_enabled != 0 && lib->mig_count(device, &count) != NVML_SUCCESS)
		count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct nvml_device *child = NULL;
		if (lib->mig_device(device, i, &child) == NVML_SUCCESS)
			read_device(lib, child, i, info->memory_bytes, &mig);
	}
	sort(&mig);
	*ret = mig;
	return NVML_SUCCESS;
}

static nvml_return say(const struct nvml_lib *lib, nvml_return result, const char *what,
		       char ret_text[NVML_TEXT_BYTES])
{
	if (result != NVML_SUCCESS)
		(void)snprintf(ret_text, NVML_TEXT_BYTES, "%s: %.50s (code %u)", what,
			       nvml_lib_error_text(lib, result), result);
	return result;
}

static nvml_return set_mode(const struct nvml_lib *lib, struct nvml_device *device, uint32_t mode,
			    char ret_text[NVML_TEXT_BYTES])
{
	uint32_t before = 0, pending = 0;
	nvml_return activation = NVML_SUCCESS, ignored = NVML_SUCCESS;
	nvml_return result = lib->mig_mode(device, &before, &pending);
	if (result == NVML_SUCCESS)
		result = lib->set_mig_mode(device, mode, &activation);
	if (result == NVML_SUCCESS && activation != NVML_SUCCESS) {
		// It would come with the next reset, whenever that is: better not at all.
		(void)lib->set_mig_mode(device, before, &ignored);
		result = activation;
	}
	return say(lib, result, mode == NVML_FEATURE_ENABLED ? "MIG mode on" : "MIG mode off",
		   ret_text);
}

static nvml_return destroy(const struct nvml_lib *lib, struct nvml_device *device, uint32_t gi_id,
			   char ret_text[NVML_TEXT_BYTES])
{
	struct nvml_gpu_instance *gi = NULL;
	nvml_return result = lib->gi_by_id(device, gi_id, &gi);
	for (uint32_t profile = 0; result == NVML_SUCCESS && profile < NVML_CI_PROFILE_COUNT;
	     profile++) {
		struct nvml_compute_instance *cis[MIG_INSTANCES_MAX * 2] = { 0 };
		uint32_t count = 0;
		if (lib->cis(gi, profile, cis, &count) != NVML_SUCCESS)
			continue; // the GPU instance has no such profile
		for (uint32_t i = 0; result == NVML_SUCCESS && i < count; i++)
			result = lib->ci_destroy(cis[i]);
	}
	if (result == NVML_SUCCESS)
		result = lib->gi_destroy(gi);
	return say(lib, result, "end of a GPU instance", ret_text);
}

static nvml_return create_ci(const struct nvml_lib *lib, struct nvml_gpu_instance *gi,
			     uint32_t slices)
{
	struct nvml_compute_instance *ci = NULL;
	for (uint32_t profile = 0; profile < NVML_CI_PROFILE_COUNT; profile++) {
		struct nvml_ci_profile_info info = { 0 };
		if (lib->ci_profile(gi, profile, NVML_CI_ENGINE_SHARED, &info) == NVML_SUCCESS &&
		    info.slice_count == slices)
			return lib->ci_create(gi, info.id, &ci);
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

static nvml_return create(const struct nvml_lib *lib, struct nvml_device *device,
			  const struct nvml_mig_change *change, char ret_text[NVML_TEXT_BYTES])
{
	struct nvml_placement place = { .start = change->b }, places[32];
	struct nvml_gi_profile_info info = { 0 };
	struct nvml_gpu_instance *gi = NULL;
	uint32_t count = ARRAY_COUNT(places), number = 0;
	while (number < NVML_GI_PROFILE_COUNT &&
	       (lib->gi_profile(device, number, &info) != NVML_SUCCESS || info.id != change->a))
		number++;
	nvml_return result = number == NVML_GI_PROFILE_COUNT ? NVML_ERROR_NOT_SUPPORTED
							     : NVML_SUCCESS;
	if (result == NVML_SUCCESS)
		result = lib->gi_places(device, change->a, places, &count);
	if (result == NVML_SUCCESS && count > 0) {
		place.size = places[0].size;
		result = lib->gi_create(device, change->a, &place, &gi);
	}
	if (result != NVML_SUCCESS)
		return say(lib, result, "GPU instance", ret_text);
	result = create_ci(lib, gi, info.slice_count);
	if (result != NVML_SUCCESS)
		(void)lib->gi_destroy(gi); // it would be of no use alone
	return say(lib, result, "compute instance", ret_text);
}

nvml_return nvml_change_mig(const struct nvml_lib *lib, struct nvml_device *device,
			    const struct nvml_mig_change *change, char ret_text[NVML_TEXT_BYTES])
{
	ret_text[0] = '\0';
	if (!has_mig(lib))
		return say(lib, NVML_ERROR_NOT_SUPPORTED, "MIG", ret_text);
	switch ((nvml_mig_op)change->op) {
	case NVML_MIG_MODE: return set_mode(lib, device, change->a, ret_text);
	case NVML_MIG_CREATE: return create(lib, device, change, ret_text);
	case NVML_MIG_DESTROY: return destroy(lib, device, change->a, ret_text);
	}
	return say(lib, NVML_ERROR_INVALID_ARGUMENT, "MIG", ret_text);
}
