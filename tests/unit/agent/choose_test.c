// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"
#include "check.h"
#include "daemons/agent/plan.h"
#include "daemons/agent/prefer.h"

#include <stdio.h>

static const struct topology flat; // all alike

static void check_choices(struct check *c)
{
	// A place each: '.' not available, 'a' available, 'm' must, 'r' reserved for others.
	static const struct {
		const char *name, *places;
		size_t size;
		const char *want; // '1' at the chosen places; NULL: refused
	} cases[] = {
		{ "first of all", "aaaaaaaa", 1, "10000000" },
		{ "neighbours", "aaaaaaaa", 4, "11110000" },
		{ "over a gap only if needed", "a.aaa.a.", 3, "00111000" },
		{ "smallest span", "a..a.a..", 2, "00010100" },
		{ "away from plans", "rraaaaaa", 2, "00110000" },
		{ "plans of others if there is nothing else", "rra", 3, "111" },
		{ "fewest of them", "rarara", 4, "011101" },
		{ "must", "aaaam", 2, "00011" },
		{ "must in the middle", "aaamaaaa", 3, "01110000" },
		{ "all musts", "maaaaaam", 2, "10000001" },
		{ "a must may be reserved by its own plan", "m", 1, "1" },
		{ "more than there are", "aa..", 3, NULL },
		{ "more musts than places", "mm", 1, NULL },
		{ "none", "aa", 0, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct prefer_device devices[GPU_MAX] = { 0 };
		size_t chosen[GPU_MAX], count = strlen(cases[i].places);
		char got[GPU_MAX + 1] = { 0 };
		for (size_t j = 0; j < count; j++) {
			char place = cases[i].places[j];
			devices[j] = (struct prefer_device){ .index = (uint32_t)j,
							     .is_available = place != '.',
							     .is_must = place == 'm',
							     .is_reserved = place == 'r' };
			got[j] = '0';
		}
		bool ok = prefer_choose(devices, count, cases[i].size, &flat, chosen);
		for (size_t j = 0; ok && j < cases[i].size; j++)
			got[chosen[j]] = '1';
		CHECK(c, cases[i].name, ok == (cases[i].want != NULL));
		if (ok && cases[i].want != NULL)
			CHECK_STR(c, cases[i].name, str_of(got), cases[i].want);
	}
}

// Whatever is asked: as many as wanted, each available and once, musts among them.
static void check_random(struct check *c)
{
	struct rng rng;
	rng_init(&rng, 7);
	for (int round = 0; round < 20000; round++) {
		struct prefer_device devices[GPU_MAX];
		size_t chosen[GPU_MAX], count = 1 + rng_below(&rng, 16), available = 0, must = 0;
		for (size_t i = 0; i < count; i++) {
			devices[i] = (struct prefer_device){
				.index = (uint32_t)i,
				.is_available = rng_below(&rng, 4) > 0,
				.is_reserved = rng_below(&rng, 3) == 0,
			};
			devices[i].is_must = devices[i].is_available && rng_below(&rng, 6) == 0;
			available += devices[i].is_available ? 1 : 0;
			must += devices[i].is_must ? 1 : 0;
		}
		size_t size = rng_below(&rng, count + 2), musts_in = 0;
		bool can = size > 0 && size <= available && must <= size;
		bool ok = prefer_choose(devices, count, size, &flat, chosen);
		bool good = ok == can;
		for (size_t i = 0; ok && i < size; i++) {
			good = good && chosen[i] < count && devices[chosen[i]].is_available &&
			       (i == 0 || chosen[i] > chosen[i - 1]);
			musts_in += devices[chosen[i]].is_must ? 1 : 0;
		}
		good = good && (!ok || musts_in == must);
		if (!good)
			CHECK(c, "random choice", good);
	}
	CHECK(c, "random choices", true);
}

// Links between eight GPUs as digits of a matrix's lower half.
static void fill_links(struct topology *topology, const char *const rows[8])
{
	*topology = (struct topology){ 0 };
	for (size_t i = 1; i < 8; i++) {
		for (size_t j = 0; j < i; j++)
			topology->score[i][j] = topology->score[j][i] =
				(uint16_t)((rows[i][j] - '0') * TOPOLOGY_LINK +
					   (i / 4 == j / 4 ? TOPOLOGY_SAME_NUMA
							   : TOPOLOGY_OTHER_NUMA));
	}
}

// The hybrid cube mesh of a DGX-1V, and pairs that a bridge joins.
static const char *const cube[8] = { "", "1", "12", "212", "2000", "02001", "001012", "0002212" };
static const char *const pairs[8] = { "", "4", "00", "004", "0000", "00004", "000000", "0000004" };
static const char *const none[8] = { "", "0", "00", "000", "0000", "00000", "000000", "0000000" };

static void check_links(struct check *c)
{
	static const struct {
		const char *name;
		const char *const *rows;
		const char *places;
		size_t size;
		const char *want;
	} cases[] = {
		{ "a pair with two links", cube, "aaaaaaaa", 2, "01100000" },
		{ "a quad", cube, "aaaaaaaa", 4, "11110000" },
		{ "over the border rather than one link", cube, "a..aa...", 2, "10010000" },
		{ "the same NUMA node of two pairs", cube, "a...a.aa", 2, "00000011" },
		{ "a must and what is linked to it", cube, "aaaaamaa", 2, "00000110" },
		{ "bridged", pairs, "aaaaaaaa", 2, "11000000" },
		{ "one that breaks no pair", pairs, "aaa.aaaa", 1, "00100000" },
		{ "three: one pair and one that breaks no other", pairs, "aaaa.aaa", 3,
		  "00000111" },
		{ "not what is planned for others", pairs, "rraaaaaa", 2, "00110000" },
		{ "same NUMA node", none, "...aaa..", 2, "00001100" },
		{ "one where others stay together", none, "aaaaa...", 1, "00001000" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct topology topology;
		struct prefer_device devices[8] = { 0 };
		size_t chosen[8];
		char got[9] = "00000000";
		fill_links(&topology, cases[i].rows);
		for (size_t j = 0; j < 8; j++) {
			char place = cases[i].places[j];
			devices[j] = (struct prefer_device){ .index = (uint32_t)j,
							     .is_available = place != '.',
							     .is_must = place == 'm',
							     .is_reserved = place == 'r' };
		}
		CHECK(c, cases[i].name,
		      prefer_choose(devices, 8, cases[i].size, &topology, chosen));
		for (size_t j = 0; j < cases[i].size; j++)
			got[chosen[j]] = '1';
		CHECK_STR(c, cases[i].name, str_of(got), cases[i].want);
	}
}

// What a set costs, counted from scratch.
static struct prefer_cost cost_of(const struct prefer_device *devices, size_t count,
				  const struct topology *topology, uint32_t set)
{
	struct prefer_cost cost = { 0 };
	uint32_t first = UINT32_MAX, last = 0;
	for (size_t i = 0; i < count; i++) {
		bool is_in = (set >> i & 1) != 0;
		if (is_in) {
			cost.reserved += devices[i].is_reserved && !devices[i].is_must;
			first = first == UINT32_MAX ? devices[i].index : first;
			last = devices[i].index;
		}
		for (size_t j = 0; j < i; j++) {
			uint32_t score = topology->score[devices[i].index][devices[j].index];
			bool is_other_in = (set >> j & 1) != 0;
			cost.score += is_in && is_other_in ? score : 0;
			if (!is_in && !is_other_in && devices[i].is_available &&
			    devices[j].is_available)
				cost.rest += score;
		}
	}
	cost.span = last - first;
	return cost;
}

// Nothing that could be chosen is better, whatever the links.
static void check_oracle(struct check *c)
{
	struct rng rng;
	int worse = 0, compared = 0;
	rng_init(&rng, 11);
	for (int round = 0; round < 3000; round++) {
		struct prefer_device devices[8];
		struct topology topology = { 0 };
		size_t chosen[8], count = 1 + rng_below(&rng, 8), size = 1 + rng_below(&rng, count);
		uint32_t available = 0, must = 0, mine = 0;
		for (size_t i = 0; i < count; i++) {
			devices[i] = (struct prefer_device){
				.index = (uint32_t)(i * 2),
				.is_available = rng_below(&rng, 5) > 0,
				.is_reserved = rng_below(&rng, 4) == 0,
			};
			devices[i].is_must = devices[i].is_available && rng_below(&rng, 6) == 0;
			available |= (devices[i].is_available ? 1U : 0) << i;
			must |= (devices[i].is_must ? 1U : 0) << i;
			for (size_t j = 0; j < i; j++)
				topology.score[i * 2][j * 2] = topology.score[j * 2][i * 2] =
					(uint16_t)(rng_below(&rng, 4) * 100 + 10);
		}
		if (!prefer_choose(devices, count, size, &topology, chosen))
			continue;
		for (size_t i = 0; i < size; i++)
			mine |= 1U << chosen[i];
		const struct prefer_cost cost = cost_of(devices, count, &topology, mine);
		for (uint32_t set = 0; set < 1U << count; set++) {
			bool is_possible = (set & ~available) == 0 && (must & ~set) == 0 &&
					   (size_t)__builtin_popcount(set) == size;
			if (!is_possible)
				continue;
			const struct prefer_cost other = cost_of(devices, count, &topology, set);
			worse += prefer_is_better(&other, &cost) ? 1 : 0;
			compared++;
		}
	}
	CHECK_INT(c, "sets that are better", worse, 0);
	CHECK(c, "sets were compared", compared > 1000);
}

// Many devices: the answer has the right form, and its pairs are linked.
static void check_many(struct check *c)
{
	struct topology topology = { 0 };
	struct prefer_device devices[GPU_MAX];
	size_t chosen[GPU_MAX];
	for (size_t i = 0; i < GPU_MAX; i++) {
		devices[i] = (struct prefer_device){ .index = (uint32_t)i, .is_available = true };
		for (size_t j = 0; j < GPU_MAX; j++)
			topology.score[i][j] = i % 4 == j % 4 && i != j ? 1800 : 10;
	}
	devices[13].is_must = true;
	CHECK(c, "sixteen of thirty-two", prefer_choose(devices, GPU_MAX, 16, &topology, chosen));
	CHECK(c, "eight", prefer_choose(devices, GPU_MAX, 8, &topology, chosen));
	for (size_t i = 0; i < 8; i++)
		CHECK_INT(c, "all of one group", chosen[i] % 4, 1);
}

static void check_topology(struct check *c)
{
	static const struct gpu_info nothing = { .pci_bus_id = "00000000:1A:00.0" };
	static const struct gpu_info direct = { .pci_bus_id = "00000000:1B:00.0",
						.link_count = 1,
						.links = { { "0000:1a:00.0", 4 } } };
	static const struct gpu_info foreign = { .pci_bus_id = "00000000:1B:00.0",
						 .link_count = 1,
						 .links = { { "00000001:1A:00.0", 4 } } };
	static const struct gpu_info wide = { .switch_links = 12, .numa_node = 1 };
	static const struct gpu_info narrow = { .switch_links = 6 };
	static const struct {
		const char *name;
		const struct gpu_info *a, *b;
		uint32_t want, numa;
	} cases[] = {
		{ "none", &nothing, &nothing, 0, TOPOLOGY_SAME_NUMA },
		{ "told by one side", &direct, &nothing, 4, TOPOLOGY_SAME_NUMA },
		{ "told by the other", &nothing, &direct, 4, TOPOLOGY_SAME_NUMA },
		{ "another domain", &foreign, &nothing, 0, TOPOLOGY_SAME_NUMA },
		{ "switches", &wide, &narrow, 6, TOPOLOGY_OTHER_NUMA },
		{ "a switch and none", &wide, &nothing, 0, TOPOLOGY_OTHER_NUMA },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct gpu_info *const gpus[2] = { cases[i].a, cases[i].b };
		struct topology topology;
		CHECK_INT(c, cases[i].name, topology_links(gpus[0], gpus[1]), cases[i].want);
		topology_fill(&topology, gpus, 2);
		CHECK_INT(c, cases[i].name, topology.score[1][0],
			  cases[i].want * TOPOLOGY_LINK + cases[i].numa);
		CHECK_INT(c, "nothing to itself", topology.score[1][1], 0);
	}
}

static void check_plans(struct check *c)
{
#define DEVICE(uuid)                                                                               \
	"{\"container\":\"main\",\"resource\":\"nvidia.com/gpu\",\"uuid\":\"" uuid "\","           \
	"\"milli\":1000,\"memory_mib\":81920}"
	static const struct {
		const char *text;
		bool ok;
		size_t count;
	} cases[] = {
		{ "[]", true, 0 },
		{ "[" DEVICE("GPU-1") "]", true, 1 },
		{ "[" DEVICE("GPU-1") "," DEVICE("GPU-2") "]", true, 2 },
		{ "[" DEVICE("1") "]", false, 0 },
		{ "[{\"container\":\"main\",\"uuid\":\"GPU-1\"}]", false, 0 },
		{ "{}", false, 0 },
		{ "", false, 0 },
		{ "[7]", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct plan plan = { .count = 77 };
		const char *uuids[PLAN_DEVICES_MAX];
		err_status status = plan_parse(str_of(cases[i].text), &plan, NULL);
		CHECK(c, cases[i].text, (status == ERR_OK) == cases[i].ok);
		if (status != ERR_OK) {
			CHECK_INT(c, "untouched", plan.count, 77);
			continue;
		}
		CHECK_INT(c, cases[i].text, plan_of(&plan, "main", "nvidia.com/gpu", uuids),
			  cases[i].count);
		CHECK_INT(c, "another container", plan_of(&plan, "x", "nvidia.com/gpu", uuids), 0);
	}
}

static void check_shares_of_plans(struct check *c)
{
#define SHARE(container, resource, uuid, milli, mib)                                               \
	"{\"container\":\"" container "\",\"resource\":\"gpuaas.io/" resource                      \
	"\",\"uuid\":\"" uuid "\",\"milli\":" milli ",\"memory_mib\":" mib "}"
	static const char text[] = "[" SHARE("a", "gpu-milli", "GPU-1", "300", "0") "," SHARE(
		"a", "gpu-memory", "GPU-1", "0", "1024") "," SHARE("b", "gpu-milli", "GPU-1", "200",
								   "16384") "]";
	struct plan plan;
	const char *uuid = NULL;
	struct share share = { 0 };
	CHECK_INT(c, "shares", plan_parse(str_of(text), &plan, NULL), ERR_OK);
	CHECK(c, "by memory", plan_share(&plan, "a", SHARE_BY_MEMORY, &uuid, &share));
	CHECK_INT(c, "its part", share.memory_mib, 1024);
	CHECK_STR(c, "its GPU", str_of(uuid), "GPU-1");
	CHECK(c, "none", !plan_share(&plan, "b", SHARE_BY_MEMORY, &uuid, &share));
	CHECK_INT(c, "of all containers", plan_share_sum(&plan, "GPU-1").milli, 500);
	CHECK_INT(c, "of all containers", plan_share_sum(&plan, "GPU-1").memory_mib, 17408);
	CHECK_INT(c, "of another", plan_share_sum(&plan, "GPU-2").milli, 0);
	CHECK_INT(c, "negative",
		  plan_parse(STR("[" SHARE("a", "gpu-milli", "GPU-1", "-1", "0") "]"), &plan, NULL),
		  ERR_INVALID);
	CHECK_INT(
		c, "more than a GPU",
		plan_parse(STR("[" SHARE("a", "gpu-milli", "GPU-1", "1001", "0") "]"), &plan, NULL),
		ERR_INVALID);
}

int main(void)
{
	struct check c = { 0 };
	check_choices(&c);
	check_random(&c);
	check_links(&c);
	check_oracle(&c);
	check_many(&c);
	check_topology(&c);
	check_plans(&c);
	check_shares_of_plans(&c);
	return check_done(&c);
}
