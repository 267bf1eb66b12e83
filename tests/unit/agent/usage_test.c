// SPDX-License-Identifier: Apache-2.0
// Usage told in every order, over restarts: each allocation is bound once and released once, at
// the times that its pod says.
#include "base/rng.h"
#include "check.h"
#include "daemons/agent/energy.h"
#include "daemons/agent/usage.h"

#include <stdio.h>

enum { PODS = 40, LOG_MAX = 400 };

static struct {
	struct usage_event events[LOG_MAX];
	size_t count;
	struct rng *refuse; // NULL: everything is taken
	bool refuses_ends;
} book;

static err_status on_event(void *arg, struct usage_event *event)
{
	(void)arg;
	if (book.refuse != NULL && rng_below(book.refuse, 3) == 0)
		return ERR_LIMIT;
	if (book.refuses_ends && event->type == EVENT_RELEASED)
		return ERR_LIMIT;
	if (book.count < LOG_MAX)
		book.events[book.count++] = *event;
	return ERR_OK;
}

static struct usage *new_usage(bool has_pods)
{
	const struct usage_config config = { .has_pods = has_pods, .emit = on_event };
	return usage_new(&config);
}

static struct pod_facts facts_of(int i)
{
	struct pod_facts facts = { 0 };
	(void)snprintf(facts.uid, sizeof facts.uid, "uid-%d", i);
	(void)snprintf(facts.name, sizeof facts.name, "pod-%d", i);
	(void)snprintf(facts.namespace_, sizeof facts.namespace_, "team-%d", i % 3);
	return facts;
}

static void show(struct usage *usage, int i, bool with_uid, int64_t now_s)
{
	char uid[32], pod[32], ns[32], gpu[32];
	(void)snprintf(uid, sizeof uid, "uid-%d", i);
	(void)snprintf(pod, sizeof pod, "pod-%d", i);
	(void)snprintf(ns, sizeof ns, "team-%d", i % 3);
	(void)snprintf(gpu, sizeof gpu, "GPU-%d", i % 8);
	const struct usage_holder holder = { .pod_uid = with_uid ? str_of(uid) : STR(""),
					     .namespace_ = str_of(ns),
					     .pod = str_of(pod),
					     .container = STR("main"),
					     .gpu = str_of(gpu),
					     .is_first_choice = true };
	usage_show(usage, &holder, now_s);
}

static void tell_pod(struct usage *usage, const struct pod_facts *facts)
{
	usage_pod(usage, facts);
	usage_tenant(usage, facts->namespace_, "tenant");
}

// What is on disk: a snapshot of some moment, the events since then, what was not told.
static struct {
	struct buf snapshot, pending;
	size_t snapshot_at; // events before it are in the snapshot
} disk;

static void save(const struct usage *usage, struct rng *rng)
{
	buf_clear(&disk.pending);
	usage_save(usage, true, &disk.pending);
	if (rng_below(rng, 50) != 0)
		return;
	buf_clear(&disk.snapshot);
	usage_save(usage, false, &disk.snapshot);
	disk.snapshot_at = book.count;
}

static void load_lines(struct usage *usage, const struct buf *lines)
{
	struct str rest = buf_str(lines), line;
	while (str_split_next(&rest, '\n', &line)) {
		if (line.len > 0)
			usage_load_line(usage, line);
	}
}

static struct usage *restart(struct usage *old)
{
	struct usage *usage = new_usage(true);
	load_lines(usage, &disk.snapshot);
	for (size_t i = disk.snapshot_at; i < book.count; i++)
		usage_load_event(usage, &book.events[i]);
	load_lines(usage, &disk.pending);
	usage_free(old);
	return usage;
}

struct life {
	struct pod_facts facts;
	bool is_shown, is_told_end, is_deleted;
};

// One random thing happens to a pod's life or to what is known of it.
static void step_life(struct usage *usage, struct life *life, int i, struct rng *rng, int64_t now_s)
{
	switch (rng_below(rng, 4)) {
	case 0:
		show(usage, i, true, now_s);
		life->is_shown = true;
		return;
	case 1: tell_pod(usage, &life->facts); return;
	case 2:
		if (!life->is_shown)
			return; // it has not run yet
		life->facts.is_terminal = life->facts.has_ended = true;
		life->facts.finished_s = 3000 + i;
		tell_pod(usage, &life->facts);
		life->is_told_end = true;
		return;
	default:
		if (!life->is_told_end)
			return;
		usage_pod_deleted(usage, &life->facts, now_s);
		life->is_deleted = true;
		return;
	}
}

static void check_book(struct check *c, const struct life *lives)
{
	size_t bound[PODS] = { 0 }, released[PODS] = { 0 };
	for (size_t i = 0; i < book.count; i++) {
		const struct usage_event *event = &book.events[i];
		int pod = -1;
		if (sscanf(event->pod_uid, "uid-%d", &pod) != 1 || pod < 0 || pod >= PODS) {
			CHECK(c, "known pod", false);
			return;
		}
		bool is_bound = event->type == EVENT_BOUND;
		bound[pod] += is_bound ? 1 : 0;
		released[pod] += is_bound ? 0 : 1;
		if (event->t_s != (is_bound ? 2000 + pod : 3000 + pod) ||
		    strcmp(event->tenant, "tenant") != 0 || event->share_den != 1 ||
		    (!is_bound && bound[pod] == 0))
			CHECK(c, "times, tenant and order", false);
	}
	for (int i = 0; i < PODS; i++) {
		size_t want = lives[i].is_told_end ? 1 : 0;
		if (bound[i] > 1 || released[i] != want || bound[i] < want)
			CHECK(c, "once each", false);
	}
}

static void check_random(struct check *c)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct rng rng;
		struct life lives[PODS] = { 0 };
		rng_init(&rng, seed);
		book.count = 0;
		book.refuse = seed % 2 == 0 ? &rng : NULL;
		disk.snapshot_at = 0;
		buf_clear(&disk.snapshot);
		buf_clear(&disk.pending);
		struct usage *usage = new_usage(true);
		for (int i = 0; i < PODS; i++) {
			lives[i].facts = facts_of(i);
			lives[i].facts.scheduled_s = 2000 + i;
		}
		for (int64_t now_s = 2000; now_s < 4000; now_s++) {
			int i = (int)rng_below(&rng, PODS);
			step_life(usage, &lives[i], i, &rng, now_s);
			usage_tenant(usage, lives[i].facts.namespace_, "tenant");
			// As the agent does: told, then kept, and killed at any moment after.
			usage_step(usage, now_s);
			save(usage, &rng);
			if (rng_below(&rng, 60) == 0)
				usage = restart(usage);
		}
		// At the end all sources are well and have been heard.
		book.refuse = NULL;
		for (int i = 0; i < PODS; i++) {
			tell_pod(usage, &lives[i].facts);
		}
		usage_step(usage, 4000);
		check_book(c, lives);
		usage_free(usage);
	}
	CHECK(c, "random lives", true);
}

static void check_ends(struct check *c)
{
	static const struct {
		const char *name;
		int64_t finished_s, deleted_s;
		bool is_terminal, is_deleted, has_ended;
		int64_t want_s; // 0: not released
	} cases[] = {
		{ "runs", 0, 0, false, false, false, 0 },
		{ "one container of two has ended", 2500, 0, false, false, true, 0 },
		{ "finished", 2500, 0, true, false, true, 2500 },
		{ "finished, then deleted", 2500, 2600, true, true, true, 2500 },
		{ "deleted while it runs", 0, 2600, false, true, false, 2600 },
		{ "deleted with grace that was not used up", 0, 9999, false, true, false, 3000 },
		{ "deletion nobody noted", 0, 0, false, true, false, 3000 },
		{ "failed before it ran", 0, 0, true, false, false, 2000 },
		{ "ended at a time nobody noted", 0, 0, true, false, true, 2100 },
		{ "a finish before the binding", 1990, 0, true, false, true, 2000 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct usage *usage = new_usage(true);
		struct pod_facts facts = facts_of(0);
		book.count = 0;
		facts.scheduled_s = 2000;
		show(usage, 0, true, 2100);
		tell_pod(usage, &facts);
		facts.finished_s = cases[i].finished_s;
		facts.deleted_s = cases[i].deleted_s;
		facts.is_terminal = cases[i].is_terminal;
		facts.has_ended = cases[i].has_ended;
		tell_pod(usage, &facts);
		if (cases[i].is_deleted)
			usage_pod_deleted(usage, &facts, 3000);
		usage_step(usage, 3000);
		size_t want = cases[i].want_s == 0 ? 1 : 2;
		CHECK_INT(c, cases[i].name, book.count, want);
		CHECK_INT(c, cases[i].name, book.events[0].t_s, 2000);
		if (book.count == 2)
			CHECK_INT(c, cases[i].name, book.events[1].t_s, cases[i].want_s);
		usage_free(usage);
	}
}

static bool in_no_list(void *arg, const char *uid)
{
	(void)arg;
	(void)uid;
	return false;
}

static bool has_holder(const struct usage *usage, const char *gpu)
{
	size_t at = 0;
	return usage_next_holder(usage, gpu, &at) != NULL;
}

// What is shown of a pod's shares, in this order, and what its bound event says.
static void check_shares(struct check *c)
{
	static const struct {
		const char *name;
		uint32_t shares[5][2]; // number, of how many; of 0: the end
		uint32_t num, den;
	} cases[] = {
		{ "one of four", { { 2, 4 } }, 1, 4 },
		{ "two of four", { { 2, 4 }, { 3, 4 } }, 2, 4 },
		{ "one, shown by both sources", { { 2, 4 }, { 2, 4 } }, 1, 4 },
		{ "all", { { 0, 2 }, { 1, 2 } }, 2, 2 },
		{ "the only one", { { 0, 1 } }, 1, 1 },
		{ "far ones", { { 64, 1000 }, { 0, 1000 }, { 999, 1000 } }, 3, 1000 },
		{ "of an older configuration", { { 5, 2 } }, 1, 6 },
		{ "more shares since", { { 1, 4 }, { 1, 8 } }, 1, 4 },
		{ "fewer shares since", { { 3, 4 }, { 3, 2 } }, 1, 4 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct usage *usage = new_usage(false);
		struct usage_holder holder = { .pod_uid = STR("u"),
					       .namespace_ = STR("n"),
					       .pod = STR("p"),
					       .container = STR("main"),
					       .gpu = STR("GPU-0") };
		book.count = 0;
		usage_show_begin(usage);
		for (size_t j = 0; j < 5 && cases[i].shares[j][1] > 0; j++) {
			holder.share = cases[i].shares[j][0];
			holder.shares = cases[i].shares[j][1];
			usage_show(usage, &holder, 1000);
		}
		usage_show_end(usage, 1000);
		usage_step(usage, 1000);
		CHECK_INT(c, "more may come in a moment", book.count, 0);
		AUTO(buf_done) struct buf lines = { 0 };
		usage_save(usage, true, &lines);
		usage_free(usage);
		usage = new_usage(false);
		load_lines(usage, &lines);
		usage_step(usage, 1010);
		CHECK_INT(c, cases[i].name, book.count, 1);
		CHECK_INT(c, cases[i].name, book.events[0].share_num, cases[i].num);
		CHECK_INT(c, cases[i].name, book.events[0].share_den, cases[i].den);
		CHECK(c, cases[i].name, has_holder(usage, "GPU-0"));
		holder.share = 0;
		usage_show(usage, &holder, 1011);
		usage_show_begin(usage);
		usage_show_end(usage, 1020);
		usage_step(usage, 1020);
		CHECK_INT(c, cases[i].name, book.count, 2);
		CHECK_INT(c, "released as it was bound", book.events[1].share_num, cases[i].num);
		usage_free(usage);
	}
	struct usage *usage = new_usage(false);
	struct usage_event bound = { .type = EVENT_BOUND,
				     .t_s = 5,
				     .gpu = "GPU-1",
				     .pod_uid = "u",
				     .share_num = 3,
				     .share_den = 8 };
	usage_load_event(usage, &bound);
	CHECK_INT(c, "from the journal", usage_at(usage, 0)->share_num, 3);
	CHECK_INT(c, "from the journal", usage_at(usage, 0)->share_den, 8);
	usage_free(usage);
}

// MIG devices of one GPU are one row, counted in compute slices.
static void check_migs(struct check *c)
{
	static const struct {
		const char *profile;
		uint32_t start, slices;
	} devices[] = { { "3g.40gb", 0, 3 }, { "1g.10gb", 4, 1 }, { "1g.10gb", 5, 1 } };
	struct usage *usage = new_usage(false);
	book.count = 0;
	for (int pass = 0; pass < 2; pass++) {
		usage_show_begin(usage);
		for (size_t i = 0; i < ARRAY_COUNT(devices); i++) {
			const struct usage_holder holder = {
				.pod_uid = STR("u"),
				.namespace_ = STR("n"),
				.pod = STR("p"),
				.container = STR("main"),
				.gpu = STR("GPU-0"),
				.share = devices[i].start,
				.share_count = devices[i].slices,
				.shares = 7,
				.profile = str_of(devices[i].profile),
				.mig_start = devices[i].start,
			};
			usage_show(usage, &holder, 1000);
		}
		usage_show_end(usage, 1000);
		CHECK_INT(c, "which instances", usage_at(usage, 0)->mig_starts, 0x31);
		if (pass == 1)
			break;
		usage_step(usage, 1010);
		AUTO(buf_done) struct buf lines = { 0 };
		usage_save(usage, false, &lines);
		usage_free(usage);
		usage = new_usage(false);
		load_lines(usage, &lines);
		CHECK_INT(c, "not known after a restart", usage_at(usage, 0)->mig_starts, 0);
	}
	usage_step(usage, 1020);
	CHECK_INT(c, "told once", book.count, 1);
	CHECK_INT(c, "slices", book.events[0].share_num, 5);
	CHECK_INT(c, "of the board", book.events[0].share_den, 7);
	CHECK_STR(c, "profiles", str_of(book.events[0].profile), "3g.40gb,1g.10gb");
	usage_free(usage);
}

static void check_odd(struct check *c)
{
	struct usage *usage = new_usage(true);
	struct pod_facts facts = facts_of(0);
	book.count = 0;
	show(usage, 0, true, 2100);
	usage_step(usage, 2100);
	CHECK_INT(c, "without its pod it waits", book.count, 0);
	usage_pods_listed(usage, 2110, in_no_list, NULL);
	usage_step(usage, 2110);
	CHECK_INT(c, "a young one may be ahead of the list", book.count, 0);
	facts.scheduled_s = 2000;
	usage_pod(usage, &facts);
	usage_step(usage, 2120);
	CHECK_INT(c, "without its tenant it waits", book.count, 0);
	usage_tenant(usage, "team-0", "tenant");
	usage_step(usage, 2120);
	CHECK_INT(c, "bound", book.count, 1);
	CHECK(c, "holder", has_holder(usage, "GPU-0"));
	usage_pods_listed(usage, 2900, in_no_list, NULL);
	usage_step(usage, 2900);
	CHECK_INT(c, "gone unseen: released at the last sight", book.count, 2);
	CHECK_INT(c, "last sight", book.events[1].t_s, 2100);
	CHECK_INT(c, "stated", usage_guessed(usage), 1);
	show(usage, 0, true, 3000);
	usage_step(usage, 3000);
	CHECK_INT(c, "shown again by an old file: told once", book.count, 2);
	CHECK(c, "no holder", !has_holder(usage, "GPU-0"));
	usage_free(usage);

	usage = new_usage(true);
	book.count = 0;
	const struct usage_holder stranger = { .pod_uid = STR("uid-0"),
					       .container = STR("main"),
					       .gpu = STR("GPU-0") };
	usage_show(usage, &stranger, 2100);
	usage_pods_listed(usage, 2900, in_no_list, NULL);
	usage_step(usage, 2900);
	CHECK_INT(c, "an old entry of a pod that nobody knows: nothing is told", book.count, 0);
	CHECK_INT(c, "stated", usage_guessed(usage), 1);
	usage_free(usage);

	usage = new_usage(false);
	book.count = 0;
	usage_show_begin(usage);
	show(usage, 0, false, 2100);
	usage_show_end(usage, 2100);
	usage_step(usage, 2100);
	usage_show_begin(usage);
	usage_show_end(usage, 2200);
	usage_step(usage, 2200);
	CHECK_INT(c, "without an API server: times of the kubelet", book.count, 2);
	CHECK_STR(c, "name for UID", str_of(book.events[0].pod_uid), "team-0/pod-0");
	CHECK_STR(c, "namespace for tenant", str_of(book.events[0].tenant), "team-0");
	usage_free(usage);
}

// A tenant that is learned too late: what was told of it first is told to the end.
static void check_late_tenant(struct check *c)
{
	struct usage *usage = new_usage(true);
	struct pod_facts facts = facts_of(0);
	book.count = 0;
	book.refuses_ends = true;
	facts.scheduled_s = 2000;
	show(usage, 0, true, 2000);
	facts.is_terminal = facts.has_ended = true;
	facts.finished_s = 2100;
	usage_pod(usage, &facts);
	usage_step(usage, 2900);
	CHECK_INT(c, "bound, and no room for its end", book.count, 1);
	CHECK_STR(c, "namespace for tenant", str_of(book.events[0].tenant), "team-0");
	usage_tenant(usage, "team-0", "tenant");
	book.refuses_ends = false;
	const struct usage_event sample = usage_event_of(usage_at(usage, 0), EVENT_SAMPLE, 2900);
	CHECK_STR(c, "the same in a sample", str_of(sample.tenant), "team-0");
	CHECK_INT(c, "a sample has no share", sample.share_den, 0);
	usage_step(usage, 2900);
	CHECK_INT(c, "released", book.count, 2);
	CHECK_STR(c, "the same at its end", str_of(book.events[1].tenant), "team-0");
	CHECK_INT(c, "share", book.events[1].share_den, 1);
	usage_free(usage);
}

static void check_energy(struct check *c)
{
	static const struct {
		const char *name;
		uint64_t mj;
		int64_t t_s;
		bool row, reset;
		const char *epoch;
	} cases[] = {
		{ "first", 100, 10, true, false, "bootboot-1" },
		{ "goes on", 150, 20, true, false, "bootboot-1" },
		{ "no two in one second", 160, 20, false, false, "" },
		{ "the clock went back", 170, 15, false, false, "" },
		{ "counts from 0 again", 5, 30, true, true, "bootboot-2" },
		{ "and goes on", 6, 40, true, false, "bootboot-2" },
	};
	struct energy energy, loaded;
	struct usage_event row;
	bool is_reset = false;
	energy_init(&energy, "bootboot-more");
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		bool made =
			energy_row(&energy, "GPU-1", cases[i].mj, cases[i].t_s, &row, &is_reset);
		CHECK(c, cases[i].name, made == cases[i].row);
		if (!made)
			continue;
		CHECK(c, cases[i].name, is_reset == cases[i].reset);
		CHECK_STR(c, cases[i].name, str_of(row.epoch), cases[i].epoch);
		energy_taken(&energy, &row);
	}
	AUTO(buf_done) struct buf lines = { 0 };
	energy_save(&energy, &lines);
	energy_init(&loaded, "bootboot-more");
	energy_load_line(&loaded, str_trim(buf_str(&lines)));
	CHECK(c, "kept", energy_row(&loaded, "GPU-1", 7, 50, &row, &is_reset) && !is_reset);
	CHECK_STR(c, "kept", str_of(row.epoch), "bootboot-2");
	energy_init(&loaded, "anotherb-more");
	energy_load_line(&loaded, str_trim(buf_str(&lines)));
	CHECK(c, "another boot", energy_row(&loaded, "GPU-1", 7, 50, &row, &is_reset) && is_reset);
	CHECK_STR(c, "another boot", str_of(row.epoch), "anotherb-1");
}

// Pods that share a claim pay one after the other, however long the later ones have been waiting.
static void check_shared_claim(struct check *c)
{
	struct usage *usage = new_usage(true);
	struct pod_facts first = facts_of(0), second = facts_of(3);
	struct usage_holder holder = { .pod_uid = str_of(first.uid),
				       .namespace_ = str_of(first.namespace_),
				       .pod = str_of(first.name),
				       .container = STR("main"),
				       .gpu = STR("GPU-0"),
				       .is_of_claim = true };
	book.count = 0;
	first.scheduled_s = 10;
	second.scheduled_s = 20;
	usage_show(usage, &holder, 12);
	tell_pod(usage, &first);
	tell_pod(usage, &second);
	usage_step(usage, 30);
	first.is_terminal = true;
	first.finished_s = 100;
	tell_pod(usage, &first);
	usage_step(usage, 101);
	holder.pod_uid = str_of(second.uid);
	holder.pod = str_of(second.name);
	usage_show(usage, &holder, 105);
	tell_pod(usage, &second);
	usage_step(usage, 110);
	CHECK_INT(c, "events", book.count, 3);
	CHECK_INT(c, "the first begins as scheduled", book.events[0].t_s, 10);
	CHECK_INT(c, "and ends", book.events[1].t_s, 100);
	CHECK(c, "then the second",
	      book.events[2].type == EVENT_BOUND &&
		      strcmp(book.events[2].pod_uid, second.uid) == 0);
	CHECK_INT(c, "not before the end of the first", book.events[2].t_s, 100);
	usage_free(usage);
}

static struct usage_holder part_of(const struct pod_facts *pod, uint32_t start)
{
	return (struct usage_holder){ .pod_uid = str_of(pod->uid),
				      .gpu = STR("GPU-0"),
				      .profile = STR("1g.10gb"),
				      .mig_start = start,
				      .share = start,
				      .share_count = 1,
				      .shares = 7,
				      .is_of_claim = true };
}

// Two pods with a MIG device each, a third that gets the first's; a restart in between.
static void check_claimed_mig(struct check *c)
{
	static const int64_t bound_s[] = { 10, 11, 100 };
	struct usage *before = new_usage(true), *after = new_usage(true);
	struct pod_facts pods[3] = { facts_of(0), facts_of(3), facts_of(6) };
	book.count = 0;
	for (uint32_t i = 0; i < 2; i++) {
		const struct usage_holder holder = part_of(&pods[i], i);
		pods[i].scheduled_s = 10 + i;
		usage_show(before, &holder, 12);
		tell_pod(before, &pods[i]);
	}
	usage_step(before, 90);
	for (size_t i = 0; i < book.count; i++)
		usage_load_event(after, &book.events[i]);
	const struct usage_holder last = part_of(&pods[2], 0), other = part_of(&pods[2], 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct usage_holder holder = part_of(&pods[i], i);
		CHECK(c, "its own", !usage_is_others(after, &holder));
		usage_show(after, &holder, 95);
		CHECK(c, "the third waits", usage_is_others(after, &last));
	}
	CHECK(c, "another one is nobody's", !usage_is_others(after, &other));
	pods[0].is_terminal = true;
	pods[0].finished_s = 100;
	tell_pod(after, &pods[0]);
	pods[2].scheduled_s = 12;
	usage_show(after, &last, 105);
	tell_pod(after, &pods[2]);
	usage_step(after, 200);
	for (size_t i = 0; i < book.count; i++) {
		int k = (book.events[i].pod_uid[4] - '0') / 3;
		if (book.events[i].type == EVENT_BOUND)
			CHECK_INT(c, "begins", book.events[i].t_s, bound_s[k]);
	}
	CHECK_INT(c, "events", book.count, 4);
	usage_free(before);
	usage_free(after);
}

int main(void)
{
	struct check c = { 0 };
	check_random(&c);
	check_ends(&c);
	check_migs(&c);
	check_odd(&c);
	check_shares(&c);
	check_shared_claim(&c);
	check_claimed_mig(&c);
	check_late_tenant(&c);
	check_energy(&c);
	buf_done(&disk.snapshot);
	buf_done(&disk.pending);
	return check_done(&c);
}
