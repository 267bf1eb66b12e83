// SPDX-License-Identifier: Apache-2.0
// Layouts of MIG devices: reading them, bringing GPUs into their shape, and what a failure or the
// agent's death at any step leaves behind.
#include "check.h"
#include "daemons/agent/mig_apply.h"

#include <stdio.h>

enum { GPUS = 2, TURNS_MAX = 2000 };
static const uint64_t MS = UINT64_C(1000000);

static const struct mig_profile profiles[] = {
	{ "1g.10gb", 19, 1, 1, 0x7f, 7 },
	{ "2g.20gb", 14, 2, 2, 0x15, 3 },
	{ "3g.40gb", 9, 3, 4, 0x11, 2 },
	{ "7g.80gb", 0, 7, 8, 0x01, 1 },
};

// Two GPUs and the world around a run. Each call out of it is a place to die at: before it took
// effect, or after.
static struct sim {
	struct monitor_gpu gpus[GPUS];
	struct mig_apply apply;
	char saved[4096];
	bool is_held[GPUS][MIG_SLICES_MAX]; // by start
	bool knows_holders;
	unsigned calls, die_at;   // 0: never
	unsigned changes, bad_at; // the change that fails, 0: none
	bool undo_fails;          // and all after it
	bool is_dead, has_answer;
	int32_t answer;
	unsigned taken_held; // a held instance was destroyed
	uint64_t now_ns;
} sim;

static void refresh(struct mig_state *mig)
{
	for (uint32_t i = 1; i < mig->instance_count; i++) {
		struct mig_instance moved = mig->instances[i];
		uint32_t at = i;
		for (; at > 0 && mig->instances[at - 1].start > moved.start; at--)
			mig->instances[at] = mig->instances[at - 1];
		mig->instances[at] = moved;
	}
}

static void add(uint32_t slot, uint32_t profile_id, uint32_t start)
{
	struct mig_state *mig = &sim.gpus[slot].mig;
	for (size_t i = 0; i < ARRAY_COUNT(profiles); i++) {
		if (profiles[i].id != profile_id)
			continue;
		struct mig_instance *instance = &mig->instances[mig->instance_count++];
		*instance = (struct mig_instance){ .profile_id = profile_id,
						   .gi = profile_id * 8 + start,
						   .start = start,
						   .size = profiles[i].size,
						   .slices = profiles[i].slices };
		(void)snprintf(instance->uuid, sizeof instance->uuid, "MIG-%u-%u-%u", slot,
			       profile_id, start);
		memcpy(instance->profile, profiles[i].name, sizeof instance->profile);
	}
	refresh(mig);
}

static void set_up(void)
{
	uint64_t now_ns = sim.now_ns;
	sim = (struct sim){ .knows_holders = true, .now_ns = now_ns + 1000 * MS };
	for (uint32_t slot = 0; slot < GPUS; slot++) {
		struct monitor_gpu *gpu = &sim.gpus[slot];
		gpu->is_known = true;
		gpu->info.index = slot;
		gpu->info.mig_capable = true;
		(void)snprintf(gpu->info.uuid, sizeof gpu->info.uuid, "GPU-%u", slot);
		(void)snprintf(gpu->info.model, sizeof gpu->info.model, "A100");
		health_init(&gpu->health);
		gpu->mig = (struct mig_state){ .is_enabled = slot == 0,
					       .has_places = 1,
					       .slices = 7,
					       .profile_count = ARRAY_COUNT(profiles) };
		memcpy(gpu->mig.profiles, profiles, sizeof profiles);
	}
	add(0, 9, 0);
	add(0, 19, 4);
	add(0, 19, 5);
}

// False: the agent is dead, the call has no effect.
static bool survives(void)
{
	if (!sim.is_dead && ++sim.calls == sim.die_at)
		sim.is_dead = true;
	return !sim.is_dead;
}

static bool is_held(void *arg, uint32_t slot, uint32_t i)
{
	(void)arg;
	const struct mig_state *mig = &sim.gpus[slot].mig;
	for (uint32_t j = 0; j < mig->instance_count; j++) {
		if ((i == MIG_WHOLE || i == j) && sim.is_held[slot][mig->instances[j].start])
			return true;
	}
	return i == MIG_WHOLE && mig->is_enabled == 0 && sim.is_held[slot][0];
}

static bool knows_holders(void *arg)
{
	(void)arg;
	return sim.knows_holders;
}

static err_status save(void *arg, struct str text, struct err *err)
{
	(void)arg;
	if (!survives())
		return err_set(err, ERR_IO, "dead");
	(void)snprintf(sim.saved, sizeof sim.saved, STR_FMT, STR_ARG(text));
	(void)survives();
	return ERR_OK;
}

static void destroy(uint32_t slot, uint32_t gi)
{
	struct mig_state *mig = &sim.gpus[slot].mig;
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].gi != gi)
			continue;
		sim.taken_held += sim.is_held[slot][mig->instances[i].start] ? 1 : 0;
		mig->instances[i] = mig->instances[--mig->instance_count];
		break;
	}
	refresh(mig);
}

static void change(void *arg, uint32_t slot, const struct nvml_mig_change *wanted)
{
	(void)arg;
	struct mig_state *mig = &sim.gpus[slot].mig;
	if (!survives())
		return;
	bool fails = ++sim.changes == sim.bad_at ||
		     (sim.undo_fails && sim.bad_at != 0 && sim.changes > sim.bad_at);
	sim.has_answer = true;
	sim.answer = fails ? 19 : 0;
	if (!fails && wanted->op == NVML_MIG_MODE)
		mig->is_enabled = wanted->a;
	else if (!fails && wanted->op == NVML_MIG_CREATE)
		add(slot, wanted->a, wanted->b);
	else if (!fails)
		destroy(slot, wanted->a);
	(void)survives();
}

static void on_offer(void *arg) { (void)arg; }

static const struct mig_apply_io io = { NULL, is_held, knows_holders, change, save, on_offer };

static void begin(void)
{
	sim.is_dead = false;
	sim.has_answer = false;
	mig_apply_init(&sim.apply, &io);
	mig_apply_load(&sim.apply, str_of(sim.saved));
}

static void run(void)
{
	for (int i = 0; i < TURNS_MAX && !sim.is_dead; i++) {
		if (sim.has_answer) {
			sim.has_answer = false;
			mig_apply_changed(&sim.apply, sim.answer, sim.answer == 0 ? "" : "in use");
		}
		uint64_t wait_ns = mig_apply_step(&sim.apply, sim.gpus, GPUS, sim.now_ns);
		if (wait_ns == 0 && !sim.has_answer)
			return;
		if (sim.apply.phase == MIG_IDLE && sim.apply.again_ns != 0)
			return; // refused for now
		sim.now_ns += 500 * MS;
	}
}

static const char text[] =
	"version: v1\n"
	"mig-configs:\n"
	"  all-2g.20gb:\n"
	"  - devices: all\n"
	"    mig-enabled: true\n"
	"    mig-devices:\n"
	"      2g.20gb: 3\n"
	"  mixed:\n"
	"  - {devices: [0], mig-enabled: true, mig-devices: {1g.10gb: 3, 3g.40gb: 1}}\n"
	"  - {devices: [1], mig-enabled: true, mig-devices: {7g.80gb: 1}}\n"
	"  off:\n"
	"  - {devices: all, mig-enabled: false, mig-devices: {}}\n"
	"  too-much:\n"
	"  - {devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2, 1g.10gb: 1}}\n"
	"  filtered:\n"
	"  - devices: all\n"
	"    device-filter: \"0x20B210DE\"\n"
	"    mig-enabled: true\n"
	"    mig-devices: {7g.80gb: 1}\n";

static err_status want(const char *name, const struct mig_reserves *reserves, struct err *err)
{
	static const struct mig_reserves none;
	AUTO(json_decrefp) json_t *root = NULL;
	struct mig_layout layout;
	struct mig_goal goals[GPU_MAX] = { 0 };
	if (mig_layouts_open(str_of(text), &root, err) != ERR_OK)
		return err->status;
	if (mig_layout_read(str_of(text), json_object_get(root, "mig-configs"), "mig-configs", name,
			    &layout, err) != ERR_OK)
		return err->status;
	for (uint32_t slot = 0; slot < GPUS; slot++) {
		if (mig_layout_goal(&layout, &sim.gpus[slot].info, &sim.gpus[slot].mig,
				    &goals[slot], err) != ERR_OK)
			return err->status;
	}
	mig_apply_want(&sim.apply, name, goals, reserves == NULL ? &none : reserves);
	return ERR_OK;
}

// "19@4 19@5 | off"
static const char *shape(void)
{
	static char out[400];
	size_t len = 0;
	for (uint32_t slot = 0; slot < GPUS; slot++) {
		const struct mig_state *mig = &sim.gpus[slot].mig;
		len += (size_t)snprintf(out + len, sizeof out - len, "%s%s", slot == 0 ? "" : "| ",
					mig->is_enabled ? "" : "off ");
		for (uint32_t i = 0; i < mig->instance_count; i++)
			len += (size_t)snprintf(out + len, sizeof out - len, "%u@%u ",
						mig->instances[i].profile_id,
						mig->instances[i].start);
	}
	return out;
}

#define BEFORE "9@0 19@4 19@5 | off "
#define MIXED "9@0 19@4 19@5 19@6 | 0@0 "
#define TWOS "14@0 14@2 14@4 | 14@0 14@2 14@4 "

static void check_outcomes(struct check *c)
{
	static const struct {
		const char *name, *layout;
		int held; // start of GPU 0, -1: none
		const char *state, *after, *reason;
	} cases[] = {
		{ "one instance more, a mode", "mixed", 4, "success", MIXED, "" },
		{ "all else", "all-2g.20gb", -1, "success", TWOS, "" },
		{ "off", "off", -1, "success", "off | off ", "" },
		{ "held and not in the layout", "all-2g.20gb", 5, "failed", BEFORE,
		  "GPU 0: 1 x 1g.10gb are in use or reserved, the layout has 0" },
		{ "held, and the mode would go", "off", 0, "failed", BEFORE,
		  "GPU 0: it is in use, and its MIG mode would change" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct err err;
		set_up();
		begin();
		if (cases[i].held >= 0)
			sim.is_held[0][cases[i].held] = true;
		CHECK_INT(c, cases[i].name, want(cases[i].layout, NULL, &err), ERR_OK);
		CHECK_STR(c, cases[i].name, str_of(mig_apply_state(&sim.apply)), "pending");
		run();
		CHECK_STR(c, cases[i].name, str_of(mig_apply_state(&sim.apply)), cases[i].state);
		CHECK_STR(c, cases[i].name, str_of(shape()), cases[i].after);
		CHECK_STR(c, cases[i].name, str_of(sim.apply.reason), cases[i].reason);
		CHECK_INT(c, cases[i].name, sim.taken_held, 0);
		bool is_good = strcmp(cases[i].state, "success") == 0;
		CHECK(c, cases[i].name, mig_apply_is_met(&sim.apply, sim.gpus, GPUS) == is_good);
	}
}

static void check_busy(struct check *c)
{
	struct err err;
	set_up();
	begin();
	sim.is_held[0][5] = true;
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	run();
	CHECK(c, "tried again later", sim.apply.again_ns > sim.now_ns);
	sim.is_held[0][5] = false;
	sim.now_ns = sim.apply.again_ns;
	run();
	CHECK_STR(c, "when it is free", str_of(shape()), TWOS);

	set_up();
	begin();
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	(void)mig_apply_step(&sim.apply, sim.gpus, GPUS, sim.now_ns);
	CHECK(c, "fenced", mig_apply_holds_back(&sim.apply, &sim.gpus[0], 0));
	CHECK(c, "also a GPU whose mode changes",
	      mig_apply_holds_back(&sim.apply, &sim.gpus[1], MIG_WHOLE));
	sim.is_held[0][4] = true; // given out just before
	run();
	CHECK_STR(c, "who came through the fence stays", str_of(shape()), BEFORE);
	CHECK_STR(c, "who came through the fence stays", str_of(mig_apply_state(&sim.apply)),
		  "failed");

	set_up();
	begin();
	sim.knows_holders = false;
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	run();
	CHECK_STR(c, "a kubelet that does not answer", str_of(sim.apply.reason),
		  "the kubelet does not say who holds what");
	CHECK_STR(c, "a kubelet that does not answer", str_of(shape()), BEFORE);
}

static void check_failures(struct check *c)
{
	struct err err;
	unsigned at = 1;
	for (; at < 100; at++) {
		set_up();
		begin();
		sim.is_held[0][0] = true;
		sim.bad_at = at;
		CHECK_INT(c, "want", want("mixed", NULL, &err), ERR_OK);
		run();
		if (sim.changes < at)
			break; // it was through before
		CHECK_STR(c, "a change that fails", str_of(shape()), BEFORE);
		CHECK_STR(c, "a change that fails", str_of(sim.apply.reason),
			  "in use; all is as it was");
		CHECK_STR(c, "a change that fails", str_of(mig_apply_state(&sim.apply)), "failed");
	}
	CHECK(c, "changes were made to fail", at > 3);
	set_up();
	begin();
	sim.bad_at = 2;
	sim.undo_fails = true;
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	run();
	CHECK_STR(c, "undoing fails too", str_of(mig_apply_state(&sim.apply)), "failed");
	CHECK(c, "and says so", strstr(sim.apply.reason, "could not be undone") != NULL);
}

// Dies at every call out, before and after its effect; the next life finds a terminal state.
static void check_deaths(struct check *c)
{
	static const char *const layouts[] = { "mixed", "all-2g.20gb", "off" };
	static const char *const shapes[] = { MIXED, TWOS, "off | off " };
	unsigned deaths = 0;
	for (size_t i = 0; i < ARRAY_COUNT(layouts); i++) {
		for (unsigned at = 1; at < 200; at++) {
			struct err err;
			set_up();
			begin();
			sim.is_held[0][0] = i == 0;
			sim.die_at = at;
			CHECK_INT(c, "want", want(layouts[i], NULL, &err), ERR_OK);
			run();
			if (!sim.is_dead)
				break;
			deaths++;
			bool was_done = strstr(sim.saved, "\"outcome\":\"success\"") != NULL;
			sim.die_at = 0;
			begin();
			run();
			CHECK_STR(c, "as before, or done", str_of(shape()),
				  was_done ? shapes[i] : BEFORE);
			CHECK(c, "a terminal state", sim.apply.phase == MIG_IDLE);
			CHECK_INT(c, "want", want(layouts[i], NULL, &err), ERR_OK);
			run();
			CHECK_STR(c, "and the next time it is done", str_of(shape()), shapes[i]);
			CHECK_STR(c, "and the next time it is done",
				  str_of(mig_apply_state(&sim.apply)), "success");
			CHECK_INT(c, "held", sim.taken_held, 0);
		}
	}
	printf("%u deaths\n", deaths);
	CHECK(c, "deaths", deaths > 40);
	// Also while it undoes what another death left.
	struct err err;
	set_up();
	begin();
	sim.die_at = 8;
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	run();
	for (unsigned at = 1; at < 4; at++) {
		sim.calls = 0;
		sim.die_at = at;
		begin();
		run();
	}
	sim.die_at = 0;
	begin();
	run();
	CHECK_STR(c, "deaths while undoing", str_of(shape()), BEFORE);
	CHECK_INT(c, "want", want("all-2g.20gb", NULL, &err), ERR_OK);
	run();
	CHECK(c, "not for ever", strstr(sim.apply.reason, "interrupted 3 times") != NULL);
}

static void check_reserves(struct check *c)
{
	struct err err;
	struct mig_reserves reserves = { .count = 1 };
	reserves.items[0] =
		(struct mig_reserve){ .tenant = "team-a", .profile = "1g.10gb", .count = 2 };
	set_up();
	begin();
	CHECK_INT(c, "want", want("all-2g.20gb", &reserves, &err), ERR_OK);
	run();
	CHECK_STR(c, "a layout without what is reserved", str_of(sim.apply.reason),
		  "2 x 1g.10gb are reserved for team-a, the layout has 0");
	CHECK_STR(c, "is refused", str_of(shape()), BEFORE);
	CHECK_INT(c, "want", want("mixed", &reserves, &err), ERR_OK);
	run();
	CHECK_STR(c, "one that keeps it is taken", str_of(shape()), MIXED);
}

static void check_texts(struct check *c)
{
	static const struct {
		const char *name, *text, *error;
	} bad[] = {
		{ "no version", "mig-configs: {}\n",
		  "line 1: must be a mapping with version: v1 and mig-configs" },
		{ "no list", "version: v1\nmig-configs:\n  a.b: 1\n",
		  "line 3: mig-configs.a.b: must be a list of 1 to 32 entries" },
		{ "devices",
		  "version: v1\nmig-configs:\n  a:\n  - {mig-enabled: true, devices: some}\n",
		  "line 4: mig-configs.a[0].devices: must be all or a list of indexes" },
		{ "count",
		  "version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n"
		  "    mig-devices:\n      1g.10gb: 9\n",
		  "line 7: mig-configs.a[0].mig-devices.1g.10gb: must be a number of 0 to 8" },
		{ "compute instances",
		  "version: v1\nmig-configs:\n  a:\n  - {devices: all, mig-enabled: true, "
		  "mig-devices: {1c.2g.20gb: 1}}\n",
		  "line 4: mig-configs.a[0].mig-devices.1c.2g.20gb: compute instances narrower "
		  "than "
		  "their GPU instance are not made; name the GPU instance" },
		{ "off with devices",
		  "version: v1\nmig-configs:\n  a:\n  - {devices: all, mig-enabled: false, "
		  "mig-devices: {2g.20gb: 1}}\n",
		  "line 4: mig-configs.a[0].mig-devices: needs mig-enabled: true" },
		{ "filter",
		  "version: v1\nmig-configs:\n  a:\n  - {devices: all, mig-enabled: false, "
		  "device-filter: 20B2}\n",
		  "line 4: mig-configs.a[0].device-filter: must be like \"0x20B210DE\", device "
		  "before "
		  "vendor" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		AUTO(json_decrefp) json_t *root = NULL;
		struct err err = { 0 };
		CHECK(c, bad[i].name, mig_layouts_open(str_of(bad[i].text), &root, &err) != ERR_OK);
		CHECK_STR(c, bad[i].name, str_of(err.text), bad[i].error);
	}
	struct err err = { 0 };
	set_up();
	begin();
	CHECK_INT(c, "a name that is not there", want("nothing", NULL, &err), ERR_NOT_FOUND);
	CHECK_STR(c, "a name that is not there", str_of(err.text),
		  "there is no layout \"nothing\"; known are: all-2g.20gb mixed off too-much "
		  "filtered");
	CHECK_INT(c, "more than the board holds", want("too-much", NULL, &err), ERR_INVALID);
	CHECK_STR(c, "more than the board holds", str_of(err.text),
		  "GPU 0: the board cannot hold 1 x 1g.10gb, 2 x 3g.40gb");
	sim.gpus[1].info.pci_device_id = 0x20b210de;
	CHECK_INT(c, "for one model", want("filtered", NULL, &err), ERR_OK);
	run();
	CHECK_STR(c, "for one model", str_of(shape()), "9@0 19@4 19@5 | 0@0 ");
	sim.gpus[0].info.mig_capable = false;
	CHECK_INT(c, "a GPU without MIG", want("mixed", NULL, &err), ERR_INVALID);
}

int main(void)
{
	struct check c = { 0 };
	check_outcomes(&c);
	check_busy(&c);
	check_failures(&c);
	check_deaths(&c);
	check_reserves(&c);
	check_texts(&c);
	return check_done(&c);
}
