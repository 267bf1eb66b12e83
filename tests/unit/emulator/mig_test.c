// SPDX-License-Identifier: Apache-2.0
// The rules of GPU and compute instances against a table written by hand from NVIDIA's MIG user
// guide, and against brute force over every layout of every board.
#include "emulator/mig.h"

#include "check.h"
#include "gpu/nvml_abi.h"

#include <stdlib.h>

struct want_profile {
	const char *name;
	uint32_t profile, id, slices, size, count_max, sm_count;
	const char *starts; // digits
};

static const struct want_profile A100_40[] = {
	{ "1g.5gb", 0, 19, 1, 1, 7, 14, "0123456" }, { "1g.5gb+me", 7, 20, 1, 1, 1, 14, "0123456" },
	{ "1g.10gb", 9, 15, 1, 2, 4, 14, "0246" },   { "2g.10gb", 1, 14, 2, 2, 3, 28, "024" },
	{ "3g.20gb", 2, 9, 3, 4, 2, 42, "04" },      { "4g.20gb", 3, 5, 4, 4, 1, 56, "0" },
	{ "7g.40gb", 4, 0, 7, 8, 1, 98, "0" },
};
static const struct want_profile A100_80[] = {
	{ "1g.10gb", 0, 19, 1, 1, 7, 14, "0123456" },
	{ "1g.10gb+me", 7, 20, 1, 1, 1, 14, "0123456" },
	{ "1g.20gb", 9, 15, 1, 2, 4, 14, "0246" },
	{ "2g.20gb", 1, 14, 2, 2, 3, 28, "024" },
	{ "3g.40gb", 2, 9, 3, 4, 2, 42, "04" },
	{ "4g.40gb", 3, 5, 4, 4, 1, 56, "0" },
	{ "7g.80gb", 4, 0, 7, 8, 1, 98, "0" },
};
static const struct want_profile H100[] = {
	{ "1g.10gb", 0, 19, 1, 1, 7, 16, "0123456" },
	{ "1g.10gb+me", 7, 20, 1, 1, 1, 16, "0123456" },
	{ "1g.20gb", 9, 15, 1, 2, 4, 26, "0246" },
	{ "2g.20gb", 1, 14, 2, 2, 3, 32, "024" },
	{ "3g.40gb", 2, 9, 3, 4, 2, 60, "04" },
	{ "4g.40gb", 3, 5, 4, 4, 1, 64, "0" },
	{ "7g.80gb", 4, 0, 7, 8, 1, 132, "0" },
};
static const struct want_profile H200[] = {
	{ "1g.18gb", 0, 19, 1, 1, 7, 16, "0123456" },
	{ "1g.18gb+me", 7, 20, 1, 1, 1, 16, "0123456" },
	{ "1g.35gb", 9, 15, 1, 2, 4, 26, "0246" },
	{ "2g.35gb", 1, 14, 2, 2, 3, 32, "024" },
	{ "3g.71gb", 2, 9, 3, 4, 2, 60, "04" },
	{ "4g.71gb", 3, 5, 4, 4, 1, 64, "0" },
	{ "7g.141gb", 4, 0, 7, 8, 1, 132, "0" },
};
static const struct want_profile B200[] = {
	{ "1g.23gb", 0, 19, 1, 1, 7, 18, "0123456" },
	{ "1g.23gb+me", 7, 20, 1, 1, 1, 18, "0123456" },
	{ "1g.45gb", 9, 15, 1, 2, 4, 18, "0246" },
	{ "2g.45gb", 1, 14, 2, 2, 3, 36, "024" },
	{ "3g.90gb", 2, 9, 3, 4, 2, 54, "04" },
	{ "4g.90gb", 3, 5, 4, 4, 1, 72, "0" },
	{ "7g.180gb", 4, 0, 7, 8, 1, 126, "0" },
};
static const struct want_profile A30[] = {
	{ "1g.6gb", 0, 14, 1, 1, 4, 14, "0123" }, { "1g.6gb+me", 7, 21, 1, 1, 1, 14, "0123" },
	{ "2g.12gb", 1, 5, 2, 2, 2, 28, "02" },   { "2g.12gb+me", 8, 6, 2, 2, 1, 28, "02" },
	{ "4g.24gb", 3, 0, 4, 4, 1, 56, "0" },
};

static const struct {
	const char *board;
	const struct want_profile *profiles;
	size_t count;
	uint32_t gigabytes, slices;
	uint32_t full_layouts; // of profiles without +me and with memory as wide as compute
} BOARDS[] = {
	{ "A100-SXM4-40GB", A100_40, ARRAY_COUNT(A100_40), 40, 7, 19 },
	{ "A100-SXM4-80GB", A100_80, ARRAY_COUNT(A100_80), 80, 7, 19 },
	{ "H100-SXM5-80GB", H100, ARRAY_COUNT(H100), 80, 7, 19 },
	{ "H200", H200, ARRAY_COUNT(H200), 141, 7, 19 },
	{ "B200", B200, ARRAY_COUNT(B200), 180, 7, 19 },
	{ "A30", A30, ARRAY_COUNT(A30), 24, 4, 5 },
};

static struct board board;

static bool load(const char *id)
{
	const char *dir = getenv("BOARDS");
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.json", dir == NULL ? "emulator/boards" : dir, id);
	return board_read_file(path, &board, NULL, NULL) == ERR_OK;
}

// The rule by which tools name a profile from the memory that NVML tells of it.
static unsigned named_gigabytes(uint32_t memory_mib)
{
	uint32_t eighths = (8 * memory_mib + board.memory_mib - 1) / board.memory_mib;
	uint32_t whole = (board.memory_mib + 1023) / 1024;

	return (eighths * whole * 2 + 8) / 16;
}

static void tables(struct check *c)
{
	for (size_t b = 0; b < ARRAY_COUNT(BOARDS); b++) {
		CHECK(c, BOARDS[b].board, load(BOARDS[b].board));
		CHECK_INT(c, BOARDS[b].board, board.mig_profile_count, BOARDS[b].count);
		CHECK_INT(c, BOARDS[b].board, mig_slices(&board), BOARDS[b].slices);
		for (size_t i = 0; i < BOARDS[b].count; i++) {
			const struct want_profile *want = &BOARDS[b].profiles[i];
			const struct mig_profile *got = &board.mig_profiles[i];
			uint32_t starts = 0, at = 0;
			char name[32];
			for (const char *s = want->starts; *s != 0; s++)
				starts |= 1u << (*s - '0');
			CHECK_STR(c, want->name, str_of(got->name), want->name);
			CHECK_INT(c, want->name, got->profile, want->profile);
			CHECK_INT(c, want->name, got->id, want->id);
			CHECK_INT(c, want->name, got->slices, want->slices);
			CHECK_INT(c, want->name, got->size, want->size);
			CHECK_INT(c, want->name, got->count_max, want->count_max);
			CHECK_INT(c, want->name, got->sm_count, want->sm_count);
			CHECK_INT(c, want->name, got->starts, starts);
			snprintf(name, sizeof(name), "%ug.%ugb", got->slices,
				 named_gigabytes(got->memory_mib));
			CHECK(c, want->name, strncmp(name, got->name, strlen(name)) == 0);
			CHECK(c, want->name, mig_profile_by_id(&board, want->id, &at) && at == i);
			CHECK(c, want->name,
			      mig_profile_by_name(&board, want->name, &at) && at == i);
		}
	}
}

// A layout as plain lists, checked slice by slice, knowing nothing of mig.c.
struct layout {
	const struct want_profile *profiles;
	size_t profile_count;
	size_t profile[8], start[8], count;
};

static bool can_add(const struct layout *layout, size_t profile, size_t start)
{
	bool taken[16] = { false };
	size_t same = 0;
	const struct want_profile *want = &layout->profiles[profile];

	if (strchr(want->starts, (int)('0' + start)) == NULL)
		return false;
	for (size_t i = 0; i < layout->count; i++) {
		same += layout->profile[i] == profile ? 1 : 0;
		for (size_t s = 0; s < layout->profiles[layout->profile[i]].size; s++)
			taken[layout->start[i] + s] = true;
	}
	for (size_t s = 0; s < want->size; s++)
		if (taken[start + s])
			return false;
	return same < want->count_max;
}

static void add(struct layout *layout, size_t profile, size_t start)
{
	layout->profile[layout->count] = profile;
	layout->start[layout->count++] = start;
}

static uint32_t most_more(const struct layout *layout, size_t profile)
{
	uint32_t best = 0;

	for (size_t start = 0; start < 8; start++) {
		if (!can_add(layout, profile, start))
			continue;
		struct layout next = *layout;
		add(&next, profile, start);
		uint32_t found = 1 + most_more(&next, profile);
		best = found > best ? found : best;
	}
	return best;
}

// Where the driver puts an instance that may go anywhere: 8 when there is no room.
static size_t best_start(const struct layout *layout, size_t profile)
{
	size_t best = 8, best_left = 0;

	for (size_t start = 0; start < 8; start++) {
		struct layout next = *layout;
		size_t left = 0;
		if (!can_add(layout, profile, start))
			continue;
		add(&next, profile, start);
		for (size_t p = 0; p < layout->profile_count; p++)
			for (size_t s = 0; s < 8; s++)
				left += can_add(&next, p, s) ? 1 : 0;
		if (best == 8 || left >= best_left) {
			best = start;
			best_left = left;
		}
	}
	return best;
}

static bool is_full(const struct layout *layout)
{
	for (size_t i = 0; i < layout->count; i++) {
		const struct want_profile *want = &layout->profiles[layout->profile[i]];
		if (want->profile > 4) // +me and the 1g with double memory
			return false;
	}
	for (size_t profile = 0; profile < layout->profile_count; profile++)
		for (size_t start = 0; start < 8; start++)
			if (layout->profiles[profile].profile <= 4 &&
			    can_add(layout, profile, start))
				return false;
	return true;
}

static void build(struct check *c, const struct layout *layout, struct mig *ret)
{
	*ret = (struct mig){ .mode = NVML_FEATURE_ENABLED };
	for (size_t i = 0; i < layout->count; i++) {
		uint32_t gi_i = 0;
		CHECK_INT(c, "create",
			  mig_gi_create(&board, ret, (uint32_t)layout->profile[i],
					(uint32_t)layout->start[i], &gi_i),
			  NVML_SUCCESS);
	}
}

static void compare(struct check *c, const struct layout *layout)
{
	struct mig mig;

	build(c, layout, &mig);
	for (size_t a = 0; a < MIG_GI_MAX; a++)
		for (size_t b = 0; b < a; b++)
			CHECK(c, "ids differ",
			      !mig.gis[a].is_used || !mig.gis[b].is_used ||
				      mig.gis[a].id != mig.gis[b].id);
	for (uint32_t p = 0; p < layout->profile_count; p++) {
		const char *name = layout->profiles[p].name;
		CHECK_INT(c, name, mig_remaining(&board, &mig, p), most_more(layout, p));
		struct mig anywhere = mig;
		uint32_t chosen_i = 0;
		size_t best = best_start(layout, p);
		CHECK_INT(c, name, mig_gi_create(&board, &anywhere, p, MIG_ANYWHERE, &chosen_i),
			  best == 8 ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_SUCCESS);
		CHECK(c, name, best == 8 || anywhere.gis[chosen_i].start == best);
		for (uint32_t start = 0; start < 9; start++) {
			struct mig tried = mig;
			uint32_t gi_i = 0;
			bool is_place = start < 8 && strchr(layout->profiles[p].starts,
							    (int)('0' + start)) != NULL;
			bool fits = is_place && can_add(layout, p, start);
			uint32_t want = fits       ? NVML_SUCCESS
					: is_place ? NVML_ERROR_INSUFFICIENT_RESOURCES
						   : NVML_ERROR_INVALID_ARGUMENT;
			CHECK_INT(c, name, mig_free_starts(&board, &mig, p) >> start & 1, fits);
			CHECK_INT(c, name, mig_gi_create(&board, &tried, p, start, &gi_i), want);
			CHECK(c, "refused changes nothing",
			      fits || memcmp(&tried, &mig, sizeof(mig)) == 0);
		}
	}
}

// Every layout once: instances are added in order of their starts.
static uint32_t walk(struct check *c, const struct layout *layout, size_t from)
{
	uint32_t full = is_full(layout) ? 1 : 0;

	compare(c, layout);
	for (size_t start = from; start < 8; start++)
		for (size_t profile = 0; profile < layout->profile_count; profile++) {
			if (!can_add(layout, profile, start))
				continue;
			struct layout next = *layout;
			add(&next, profile, start);
			full += walk(c, &next, start + 1);
		}
	return full;
}

static void layouts(struct check *c)
{
	for (size_t b = 0; b < ARRAY_COUNT(BOARDS); b++) {
		struct layout empty = { .profiles = BOARDS[b].profiles,
					.profile_count = BOARDS[b].count };
		CHECK(c, BOARDS[b].board, load(BOARDS[b].board));
		CHECK_INT(c, BOARDS[b].board, walk(c, &empty, 0), BOARDS[b].full_layouts);
	}
}

// The examples of NVIDIA's guide: which place the driver takes when none is asked for.
static void choices(struct check *c)
{
	static const struct {
		uint32_t ids[7];
		uint32_t want_id[7], want_start[7];
		size_t count;
	} CASES[] = {
		{ { 19, 14, 5 }, { 13, 5, 1 }, { 6, 4, 0 }, 3 },
		{ { 9, 9 }, { 2, 1 }, { 4, 0 }, 2 },
		{ { 0 }, { 0 }, { 0 }, 1 },
	};

	CHECK(c, "A100", load("A100-SXM4-40GB"));
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct mig mig = { .mode = NVML_FEATURE_ENABLED };
		for (size_t k = 0; k < CASES[i].count; k++) {
			uint32_t profile_i = 0, gi_i = 0;
			CHECK(c, "id", mig_profile_by_id(&board, CASES[i].ids[k], &profile_i));
			CHECK_INT(c, "create",
				  mig_gi_create(&board, &mig, profile_i, MIG_ANYWHERE, &gi_i),
				  NVML_SUCCESS);
			CHECK_INT(c, "id", mig.gis[gi_i].id, CASES[i].want_id[k]);
			CHECK_INT(c, "start", mig.gis[gi_i].start, CASES[i].want_start[k]);
		}
	}
	struct mig off = { 0 };
	uint32_t gi_i = 0;
	CHECK_INT(c, "mode is off", mig_gi_create(&board, &off, 0, MIG_ANYWHERE, &gi_i),
		  NVML_ERROR_NOT_SUPPORTED);
}

// Width of the GPU instance, profile, starts as digits.
static const struct {
	uint32_t slices, profile, size;
	const char *starts;
} COMPUTE[] = {
	{ 1, 0, 1, "0" }, { 2, 0, 1, "01" },      { 2, 1, 2, "0" },    { 3, 0, 1, "012" },
	{ 3, 1, 2, "0" }, { 3, 2, 3, "0" },       { 4, 0, 1, "0123" }, { 4, 1, 2, "02" },
	{ 4, 3, 4, "0" }, { 7, 0, 1, "0123456" }, { 7, 1, 2, "024" },  { 7, 2, 3, "04" },
	{ 7, 3, 4, "0" }, { 7, 4, 7, "0" },
};

static void compute(struct check *c)
{
	uint32_t found = 0;

	for (uint32_t slices = 1; slices <= 7; slices++)
		for (uint32_t profile = 0; profile < 10; profile++) {
			uint32_t size = 0, want = 0, want_size = 0;
			uint32_t got = mig_compute_starts(slices, profile, &size);
			for (size_t i = 0; i < ARRAY_COUNT(COMPUTE); i++) {
				if (COMPUTE[i].slices != slices || COMPUTE[i].profile != profile)
					continue;
				want_size = COMPUTE[i].size;
				for (const char *s = COMPUTE[i].starts; *s != 0; s++)
					want |= 1u << (*s - '0');
			}
			if (slices == 5 || slices == 6)
				continue; // no board has such instances
			CHECK_INT(c, "starts", got, want);
			CHECK_INT(c, "size", size, want_size);
			found += got != 0 ? 1 : 0;
		}
	CHECK_INT(c, "all", found, ARRAY_COUNT(COMPUTE));
}

static void check_sums(struct check *c, const struct mig *mig)
{
	uint32_t taken = 0, slices = 0, memory_mib = 0, ci_count = 0;

	for (uint32_t g = 0; g < MIG_GI_MAX; g++) {
		const struct mig_gi *gi = &mig->gis[g];
		uint32_t ci_taken = 0;
		if (!gi->is_used)
			continue;
		const struct mig_profile *profile = &board.mig_profiles[gi->profile_i];
		uint32_t own = ((1u << profile->size) - 1) << gi->start;
		CHECK(c, "no overlap", (taken & own) == 0);
		taken |= own;
		slices += profile->slices;
		memory_mib += profile->memory_mib;
		for (size_t i = 0; i < MIG_CI_MAX; i++) {
			const struct mig_ci *ci = &mig->cis[i];
			if (!ci->is_used || ci->gi_i != g)
				continue;
			uint32_t span = ((1u << ci->size) - 1) << ci->start;
			CHECK(c, "no overlap inside",
			      (ci_taken & span) == 0 && span >> profile->slices == 0);
			ci_taken |= span;
			ci_count++;
		}
	}
	CHECK(c, "compute", slices <= mig_slices(&board));
	CHECK(c, "memory", memory_mib <= board.memory_mib);
	for (size_t i = 0; i < MIG_CI_MAX; i++) {
		ci_count -= mig->cis[i].is_used ? 1 : 0;
		for (size_t k = 0; k < i; k++)
			CHECK(c, "UUIDs differ",
			      !mig->cis[i].is_used || !mig->cis[k].is_used ||
				      strcmp(mig->cis[i].uuid, mig->cis[k].uuid) != 0);
	}
	CHECK_INT(c, "every compute instance has its GPU instance", ci_count, 0);
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % below;
}

static void one_step(struct check *c, struct mig *mig, uint64_t *state)
{
	uint32_t gi_i = draw(state, MIG_GI_MAX), ci_i = draw(state, MIG_CI_MAX), made = 0;
	uint32_t start = draw(state, 3) == 0 ? draw(state, 9) : MIG_ANYWHERE;
	struct mig_ci wanted = { .gi_i = gi_i, .profile = draw(state, 6), .start = start };

	switch (draw(state, 4)) {
	case 0:
		(void)mig_gi_create(&board, mig, draw(state, board.mig_profile_count), start,
				    &made);
		break;
	case 1:
		if (mig->gis[gi_i].is_used)
			(void)mig_ci_create(&board, mig, &wanted, "GPU-x", &made);
		break;
	case 2:
		if (mig->gis[gi_i].is_used) {
			bool has_ci = false;
			for (size_t i = 0; i < MIG_CI_MAX; i++)
				has_ci = has_ci ||
					 (mig->cis[i].is_used && mig->cis[i].gi_i == gi_i);
			CHECK_INT(c, "destroy", mig_gi_destroy(mig, mig->gis[gi_i].id),
				  has_ci ? NVML_ERROR_IN_USE : NVML_SUCCESS);
		}
		break;
	default:
		if (mig->cis[ci_i].is_used)
			CHECK_INT(c, "destroy",
				  mig_ci_destroy(mig, mig->gis[mig->cis[ci_i].gi_i].id,
						 mig->cis[ci_i].id),
				  NVML_SUCCESS);
	}
}

static void sequences(struct check *c)
{
	for (size_t b = 0; b < ARRAY_COUNT(BOARDS); b++) {
		struct mig mig = { .mode = NVML_FEATURE_ENABLED };
		uint64_t state = b + 1;
		CHECK(c, BOARDS[b].board, load(BOARDS[b].board));
		for (int step = 0; step < 5000; step++) {
			one_step(c, &mig, &state);
			check_sums(c, &mig);
		}
		mig_clear(&mig);
		for (uint32_t p = 0; p < board.mig_profile_count; p++)
			CHECK_INT(c, "all again", mig_remaining(&board, &mig, p),
				  board.mig_profiles[p].count_max);
		CHECK_INT(c, "gone", mig_gi_destroy(&mig, 0), NVML_ERROR_NOT_FOUND);
		CHECK_INT(c, "gone", mig_ci_destroy(&mig, 0, 0), NVML_ERROR_NOT_FOUND);
	}
}

static void names(struct check *c)
{
	struct mig mig = { .mode = NVML_FEATURE_ENABLED }, again;
	struct mig_ci wanted = { .profile = 0, .start = MIG_ANYWHERE };
	uint32_t ci_i = 0;

	CHECK(c, "H100", load("H100-SXM5-80GB"));
	CHECK_INT(c, "3g", mig_gi_create(&board, &mig, 4, 0, &wanted.gi_i), NVML_SUCCESS);
	again = mig;
	CHECK_INT(c, "1c", mig_ci_create(&board, &mig, &wanted, "GPU-a", &ci_i), NVML_SUCCESS);
	CHECK(c, "form",
	      strncmp(mig.cis[ci_i].uuid, "MIG-", 4) == 0 && strlen(mig.cis[ci_i].uuid) == 40);
	CHECK_INT(c, "1c again", mig_ci_create(&board, &again, &wanted, "GPU-a", &ci_i),
		  NVML_SUCCESS);
	CHECK_STR(c, "same place, same UUID", str_of(again.cis[0].uuid), mig.cis[0].uuid);
	CHECK_INT(c, "second", mig_ci_create(&board, &mig, &wanted, "GPU-a", &ci_i), NVML_SUCCESS);
	CHECK_INT(c, "ids count", mig.cis[ci_i].id, 1);
	CHECK_INT(c, "first away", mig_ci_destroy(&mig, mig.gis[0].id, 0), NVML_SUCCESS);
	CHECK_INT(c, "third", mig_ci_create(&board, &mig, &wanted, "GPU-a", &ci_i), NVML_SUCCESS);
	CHECK_INT(c, "lowest free id", mig.cis[ci_i].id, 0);
	CHECK_INT(c, "multiprocessors", mig_ci_sm_count(&board, &mig.gis[0], 1), 16);
	CHECK_INT(c, "multiprocessors", mig_ci_sm_count(&board, &mig.gis[0], 3), 60);
}

int main(void)
{
	struct check c = { 0 };

	tables(&c);
	layouts(&c);
	choices(&c);
	compute(&c);
	sequences(&c);
	names(&c);
	return check_done(&c);
}
