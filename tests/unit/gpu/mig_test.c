// SPDX-License-Identifier: Apache-2.0
// Names of profiles and the planner on every board that has MIG: each plan against a search
// through all layouts of the board that knows nothing of how the planner looks.
// Argument: folder of the boards.
#include "base/json.h"
#include "base/rng.h"
#include "check.h"
#include "gpu/mig_plan.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYOUTS_MAX = 100000, CASES = 3000, FILE_MAX_BYTES = 64 * 1024 };

// Bit of each start, by profile.
struct layout {
	uint8_t starts[MIG_PROFILES_MAX];
};
static struct layout layouts[LAYOUTS_MAX];
static size_t layout_count;
static struct mig_state board;

static bool read_board(struct check *c, const char *dir, const char *file)
{
	static char text[FILE_MAX_BYTES];
	char path[600];
	AUTO(json_decrefp) json_t *root = NULL;
	(void)snprintf(path, sizeof path, "%s/%s", dir, file);
	FILE *stream = fopen(path, "re");
	if (stream == NULL)
		abort();
	size_t len = fread(text, 1, sizeof text, stream);
	(void)fclose(stream);
	if (json_parse((struct str){ text, len }, &root, NULL) != ERR_OK)
		abort();
	const json_t *list = json_at(root, "mig_profiles.value");
	uint64_t total_bytes = (uint64_t)json_int(root, "memory_mib.value", 0) << 20;
	board = (struct mig_state){ .is_enabled = 1, .has_places = 1 };
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *from = json_array_get(list, i);
		struct mig_profile *to = &board.profiles[board.profile_count++];
		*to = (struct mig_profile){ .id = (uint32_t)json_int(from, "id", 0),
					    .slices = (uint32_t)json_int(from, "slices", 0),
					    .size = (uint32_t)json_int(from, "memory_slices", 0),
					    .count_max = (uint32_t)json_int(from, "count_max", 0) };
		const json_t *starts = json_at(from, "starts");
		for (size_t j = 0; j < json_array_size(starts); j++)
			to->starts |= 1U << json_integer_value(json_array_get(starts, j));
		mig_profile_name(to->slices, (uint32_t)json_int(from, "profile", 0),
				 (uint64_t)json_int(from, "memory_mib", 0), total_bytes, to->name);
		CHECK_STR(c, file, str_of(to->name), json_cstr(from, "name"));
	}
	return board.profile_count > 0;
}

static uint8_t slices_of(uint32_t profile_i, uint32_t start)
{
	uint8_t bits = 0;
	for (uint32_t i = 0; i < board.profiles[profile_i].size; i++)
		bits |= (uint8_t)(1U << (start + i));
	return bits;
}

// All layouts: every place of every profile is taken or not.
static void list_layouts(struct layout *at, uint32_t place, uint8_t taken)
{
	uint32_t profile_i = place / MIG_SLICES_MAX, start = place % MIG_SLICES_MAX;
	if (profile_i == board.profile_count) {
		if (layout_count == LAYOUTS_MAX)
			abort();
		layouts[layout_count++] = *at;
		return;
	}
	list_layouts(at, place + 1, taken);
	const struct mig_profile *profile = &board.profiles[profile_i];
	bool fits = (profile->starts >> start & 1) != 0 &&
		    (taken & slices_of(profile_i, start)) == 0 &&
		    (uint32_t)__builtin_popcount(at->starts[profile_i]) < profile->count_max;
	if (!fits)
		return;
	at->starts[profile_i] |= (uint8_t)(1U << start);
	list_layouts(at, place + 1, taken | slices_of(profile_i, start));
	at->starts[profile_i] &= (uint8_t) ~(1U << start);
}

static uint8_t taken_by(const struct layout *layout)
{
	uint8_t taken = 0;
	for (uint32_t i = 0; i < board.profile_count; i++) {
		for (uint32_t start = 0; start < MIG_SLICES_MAX; start++)
			taken |= (layout->starts[i] >> start & 1) != 0 ? slices_of(i, start) : 0;
	}
	return taken;
}

// What matters of a layout that follows another, the first the most.
struct value {
	int parts[5];
};

static struct value value_of(const struct layout *layout, const struct layout *before)
{
	struct value value = { 0 };
	uint8_t taken = taken_by(layout);
	for (uint32_t i = 0; i < board.profile_count; i++) {
		const struct mig_profile *profile = &board.profiles[i];
		bool is_full = (uint32_t)__builtin_popcount(layout->starts[i]) >=
			       profile->count_max;
		for (uint32_t start = 0; start < MIG_SLICES_MAX; start++) {
			bool is_there = (layout->starts[i] >> start & 1) != 0;
			bool was_there = (before->starts[i] >> start & 1) != 0;
			value.parts[0] += is_there && was_there ? 1 : 0;
			value.parts[4] += is_there && !was_there ? (int)start : 0;
			if (is_full || (profile->starts >> start & 1) == 0 ||
			    (taken & slices_of(i, start)) != 0)
				continue;
			value.parts[3]++;
			int size = (int)profile->size, slices = (int)profile->slices;
			bool is_larger = size > value.parts[1] ||
					 (size == value.parts[1] && slices > value.parts[2]);
			value.parts[2] = is_larger ? slices : value.parts[2];
			value.parts[1] = is_larger ? size : value.parts[1];
		}
	}
	return value;
}

static int compare(const struct value *a, const struct value *b)
{
	for (size_t i = 0; i < ARRAY_COUNT(a->parts); i++) {
		if (a->parts[i] != b->parts[i])
			return a->parts[i] < b->parts[i] ? -1 : 1;
	}
	return 0;
}

static bool has_counts(const struct layout *layout, const struct mig_want *want)
{
	for (uint32_t i = 0; i < board.profile_count; i++) {
		if ((uint32_t)__builtin_popcount(layout->starts[i]) != want->counts[i])
			return false;
	}
	return true;
}

static bool contains(const struct layout *layout, const struct layout *part)
{
	for (uint32_t i = 0; i < board.profile_count; i++) {
		if ((part->starts[i] & ~layout->starts[i]) != 0)
			return false;
	}
	return true;
}

struct plan_case {
	struct layout before, kept;
	struct mig_want want;
	struct mig_state state;
	bool is_kept[MIG_INSTANCES_MAX];
};

static void make_case(struct rng *rng, struct plan_case *ret)
{
	struct plan_case made = { .state = board };
	made.before = layouts[rng_below(rng, layout_count)];
	const struct layout *wanted = &layouts[rng_below(rng, layout_count)];
	for (uint32_t i = 0; i < board.profile_count; i++) {
		made.want.counts[i] = (uint32_t)__builtin_popcount(wanted->starts[i]);
		// Also what no board holds.
		made.want.counts[i] += rng_below(rng, 40) == 0 ? 1 : 0;
		for (uint32_t start = 0; start < MIG_SLICES_MAX; start++) {
			if ((made.before.starts[i] >> start & 1) == 0)
				continue;
			uint32_t at = made.state.instance_count++;
			made.state.instances[at] =
				(struct mig_instance){ .uuid = "MIG-x",
						       .profile_id = board.profiles[i].id,
						       .start = start,
						       .size = board.profiles[i].size };
			made.is_kept[at] = rng_below(rng, 4) == 0;
			if (made.is_kept[at])
				made.kept.starts[i] |= (uint8_t)(1U << start);
		}
	}
	*ret = made;
}

// Follows the steps as the hardware would; false: one of them is not possible.
static bool follow(const struct mig_plan *plan, const struct plan_case *of, struct layout *ret)
{
	*ret = of->before;
	for (size_t i = 0; i < plan->count; i++) {
		const struct mig_step *step = &plan->steps[i];
		uint8_t bit = (uint8_t)(1U << step->start);
		uint8_t *starts = &ret->starts[step->profile_i];
		if (step->is_create != ((*starts & bit) == 0))
			return false;
		if (step->is_create && (taken_by(ret) & slices_of(step->profile_i, step->start)))
			return false;
		if (!step->is_create && (of->kept.starts[step->profile_i] & bit) != 0)
			return false;
		*starts ^= bit;
	}
	return true;
}

static bool check_case(const struct plan_case *of)
{
	const struct layout *best = NULL;
	bool can_ever = false;
	struct value best_value = { 0 };
	for (size_t i = 0; i < layout_count; i++) {
		if (!has_counts(&layouts[i], &of->want))
			continue;
		can_ever = true;
		struct value value = value_of(&layouts[i], &of->before);
		if (!contains(&layouts[i], &of->kept) ||
		    (best != NULL && compare(&value, &best_value) <= 0))
			continue;
		best = &layouts[i];
		best_value = value;
	}
	struct mig_plan plan;
	struct layout after;
	struct err err;
	err_status status = mig_plan_make(&of->state, of->is_kept, &of->want, &plan, &err);
	if (best == NULL)
		return status == (can_ever ? ERR_CONFLICT : ERR_INVALID);
	if (status != ERR_OK || !follow(&plan, of, &after) || !has_counts(&after, &of->want))
		return false;
	struct value value = value_of(&after, &of->before);
	return compare(&value, &best_value) == 0;
}

static void check_board(struct check *c, const char *file)
{
	struct rng rng;
	struct layout none = { 0 };
	size_t bad = 0;
	layout_count = 0;
	list_layouts(&none, 0, 0);
	rng_init(&rng, 7);
	for (size_t i = 0; i < CASES; i++) {
		struct plan_case made;
		make_case(&rng, &made);
		bad += check_case(&made) ? 0 : 1;
	}
	printf("%s: %zu layouts\n", file, layout_count);
	CHECK_INT(c, file, bad, 0);
}

static void check_texts(struct check *c)
{
	char out[80];
	struct mig_want want = { { 2 } };
	mig_resource_name("nvidia.com/", STR("1g.10gb+me"), out, sizeof out);
	CHECK_STR(c, "resource", str_of(out), "nvidia.com/mig-1g.10gb.me");
	mig_want_print(&board, &want, out, sizeof out);
	CHECK(c, "a layout in words", str_starts(str_of(out), STR("2 x 1g.")));
	struct mig_state state = board;
	CHECK(c, "well formed", mig_state_check(&state));
	state.instance_count = MIG_INSTANCES_MAX + 1;
	CHECK(c, "too many", !mig_state_check(&state));
	state = board;
	state.profiles[0].starts = 1U << MIG_SLICES_MAX;
	CHECK(c, "beyond the board", !mig_state_check(&state));
	state = board;
	state.instance_count = 1;
	state.instances[0] = (struct mig_instance){ .start = 6, .size = 4, .slices = 1 };
	CHECK(c, "a span beyond the board", !mig_state_check(&state));
}

static const struct {
	const char *name;
	uint32_t slices;
	int64_t milli;
} names[] = {
	{ "1g.10gb", 1, 142 },
	{ "1g.5gb+me", 1, 142 },
	{ "1g.10gb+me.all", 1, 142 },
	{ "1g.5gb-me", 1, 142 },
	{ "2g.20gb", 2, 285 },
	{ "3g.40gb", 3, 428 },
	{ "4g.40gb", 4, 571 },
	{ "7g.141gb", 7, 1000 },
	{ "", 0, 0 },
	{ "0g.5gb", 0, 0 },
	{ "8g.80gb", 0, 0 },
	{ "1g.gb", 0, 0 },
	{ "1g.5", 0, 0 },
	{ "1g.5gb.me", 0, 0 },
	{ "1g.5gb+", 0, 0 },
	{ "1g.5gb+ME", 0, 0 },
	{ "11g.5gb", 0, 0 },
	{ "1c.1g.5gb", 0, 0 },
	{ "1g.5gb/x", 0, 0 },
	{ "1g.1234567890123456789gb", 0, 0 },
};

static void check_names(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct str name = str_of(names[i].name);
		CHECK_INT(c, names[i].name, mig_profile_slices(name), names[i].slices);
		CHECK_INT(c, names[i].name, mig_profile_milli(name), names[i].milli);
	}
	for (uint32_t i = 0; i < board.profile_count; i++)
		CHECK_INT(c, board.profiles[i].name,
			  mig_profile_slices(str_of(board.profiles[i].name)),
			  board.profiles[i].slices);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	size_t boards = 0;
	if (argc != 2)
		return 2;
	DIR *dir = opendir(argv[1]);
	if (dir == NULL)
		return 2;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (!str_ends(str_of(entry->d_name), STR(".json")) ||
		    !read_board(&c, argv[1], entry->d_name))
			continue;
		boards++;
		check_board(&c, entry->d_name);
		check_texts(&c);
		check_names(&c);
	}
	(void)closedir(dir);
	CHECK_INT(&c, "boards with MIG", boards, 6);
	return check_done(&c);
}
