// SPDX-License-Identifier: Apache-2.0
#include "gpu/topology.h"

enum { SCORE_MAX = 60000, BUS_BYTES_MIN = 12 }; // "0000:1A:00.0"

// Bus ids come with four or eight digits of the domain, in either case.
static bool is_same_bus(struct str a, struct str b)
{
	struct str longer = a.len > b.len ? a : b, shorter = a.len > b.len ? b : a;
	size_t more = longer.len - shorter.len;
	if (shorter.len < BUS_BYTES_MIN)
		return false;
	for (size_t i = 0; i < more; i++) {
		if (longer.data[i] != '0')
			return false;
	}
	return str_eq_nocase(str_slice(longer, more, longer.len), shorter);
}

static uint32_t direct_links(const struct gpu_info *a, const struct gpu_info *b)
{
	uint32_t links = 0;
	ASSERT(a->link_count <= GPU_LINKS_MAX);
	for (uint32_t i = 0; i < a->link_count; i++) {
		if (is_same_bus(str_of(a->links[i].pci_bus_id), str_of(b->pci_bus_id)))
			links += a->links[i].count;
	}
	return links;
}

uint32_t topology_links(const struct gpu_info *a, const struct gpu_info *b)
{
	// One side may not have been asked yet: then the other's word counts.
	uint32_t direct = (uint32_t)max_size(direct_links(a, b), direct_links(b, a));
	return direct + (uint32_t)min_size(a->switch_links, b->switch_links);
}

void topology_fill(struct topology *topology, const struct gpu_info *const *gpus, size_t count)
{
	*topology = (struct topology){ 0 };
	ASSERT(count <= GPU_MAX);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			bool is_near = gpus[i]->numa_node == gpus[j]->numa_node;
			uint64_t links = topology_links(gpus[i], gpus[j]);
			uint64_t score = links * TOPOLOGY_LINK +
					 (is_near ? TOPOLOGY_SAME_NUMA : TOPOLOGY_OTHER_NUMA);
			topology->score[i][j] = topology->score[j][i] =
				(uint16_t)min_u64(score, SCORE_MAX);
		}
	}
}
