// SPDX-License-Identifier: Apache-2.0
#include "emulator/board_mig.h"

#include <string.h>

#define NUMBER(key, member, low, high)                                                             \
	{                                                                                          \
		key, offsetof(struct mig_profile, member), low, high                               \
	}
static const struct {
	const char *key;
	size_t offset;
	uint32_t min, max;
} NUMBERS[] = {
	NUMBER("profile", profile, 0, 31),
	NUMBER("id", id, 0, 255),
	NUMBER("slices", slices, 1, BOARD_MIG_SLICE_MAX),
	NUMBER("memory_slices", size, 1, BOARD_MIG_SLICE_MAX),
	NUMBER("count_max", count_max, 1, BOARD_MIG_SLICE_MAX),
	NUMBER("memory_mib", memory_mib, 1, 16777216),
	NUMBER("multiprocessors", sm_count, 1, 1024),
	NUMBER("copy_engines", copy_count, 0, 64),
	NUMBER("decoders", decoder_count, 0, 64),
	NUMBER("encoders", encoder_count, 0, 64),
	NUMBER("jpegs", jpeg_count, 0, 64),
	NUMBER("ofas", ofa_count, 0, 64),
};

static err_status read_name(const json_t *object, struct mig_profile *ret, struct err *err)
{
	const char *name = json_string_value(json_object_get(object, "name"));

	if (name == NULL || name[0] == 0 || strlen(name) >= sizeof(ret->name))
		return err_set(err, ERR_INVALID, "\"name\" must have 1 to %zu bytes",
			       sizeof(ret->name) - 1);
	memcpy(ret->name, name, strlen(name) + 1);
	return ERR_OK;
}

// Starts are multiples of the size, as spans of a binary tree are.
static err_status read_starts(const json_t *list, struct mig_profile *ret, struct err *err)
{
	size_t i;
	const json_t *value;

	if ((ret->size & (ret->size - 1)) != 0)
		return err_set(err, ERR_INVALID, "\"memory_slices\" must be 1, 2, 4 or 8");
	json_array_foreach(list, i, value)
	{
		json_int_t start = json_integer_value(value);
		if (!json_is_integer(value) || start < 0 ||
		    start + ret->size > BOARD_MIG_SLICE_MAX || start % ret->size != 0)
			return err_set(err, ERR_INVALID,
				       "\"starts\" must be multiples of \"memory_slices\" that end "
				       "at %d or before",
				       BOARD_MIG_SLICE_MAX);
		ret->starts |= 1u << start;
	}
	return ret->starts == 0 ? err_set(err, ERR_INVALID, "\"starts\" is empty") : ERR_OK;
}

static err_status read_profile(const json_t *object, struct mig_profile *ret, struct err *err)
{
	if (json_object_size(object) != ARRAY_COUNT(NUMBERS) + 2)
		return err_set(err, ERR_INVALID, "a MIG profile has %zu keys",
			       ARRAY_COUNT(NUMBERS) + 2);
	for (size_t i = 0; i < ARRAY_COUNT(NUMBERS); i++) {
		const json_t *value = json_object_get(object, NUMBERS[i].key);
		if (!json_is_integer(value) || json_integer_value(value) < NUMBERS[i].min ||
		    json_integer_value(value) > NUMBERS[i].max)
			return err_set(err, ERR_INVALID, "\"%s\" must be a number of %u to %u",
				       NUMBERS[i].key, NUMBERS[i].min, NUMBERS[i].max);
		uint32_t number = (uint32_t)json_integer_value(value);
		memcpy((char *)ret + NUMBERS[i].offset, &number, sizeof(number));
	}
	if (read_name(object, ret, err) != ERR_OK)
		return ERR_INVALID;
	return read_starts(json_object_get(object, "starts"), ret, err);
}

static err_status check_unique(const struct board *board, const struct mig_profile *profile,
			       struct err *err)
{
	for (uint32_t i = 0; i < board->mig_profile_count; i++) {
		const struct mig_profile *other = &board->mig_profiles[i];
		if (other->profile == profile->profile || other->id == profile->id ||
		    strcmp(other->name, profile->name) == 0)
			return err_set(err, ERR_INVALID, "MIG profile %s is there twice",
				       profile->name);
	}
	if (profile->slices == 5 || profile->slices == 6 || profile->slices == 8)
		return err_set(err, ERR_INVALID, "no compute instance is as wide as %s",
			       profile->name);
	if (profile->slices > profile->size)
		return err_set(err, ERR_INVALID,
			       "MIG profile %s has more slices for compute than for memory",
			       profile->name);
	if (profile->memory_mib > board->memory_mib)
		return err_set(err, ERR_INVALID, "MIG profile %s has more memory than the board",
			       profile->name);
	return ERR_OK;
}

err_status board_read_mig(const json_t *list, struct board *board, struct err *err)
{
	size_t i;
	const json_t *object;

	if (!json_is_array(list) || json_array_size(list) > BOARD_MIG_PROFILE_MAX)
		return err_set(err, ERR_INVALID, "\"mig_profiles\" must be a list of at most %d",
			       BOARD_MIG_PROFILE_MAX);
	if (!board->is_mig_capable && json_array_size(list) > 0)
		return err_set(err, ERR_INVALID, "\"mig_profiles\" need \"is_mig_capable\"");
	json_array_foreach(list, i, object)
	{
		struct mig_profile profile = { 0 };
		if (read_profile(object, &profile, err) != ERR_OK)
			return err_wrap(err, "MIG profile %zu", i);
		if (check_unique(board, &profile, err) != ERR_OK)
			return ERR_INVALID;
		board->mig_profiles[board->mig_profile_count++] = profile;
	}
	return ERR_OK;
}
