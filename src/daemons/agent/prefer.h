// SPDX-License-Identifier: Apache-2.0
// Which of the available devices a container should get when no plan says it: those that reach
// each other best and leave the best for others, of equal ones neighbours; of shared GPUs the
// shares by the policy; away from devices that are planned for others where that is possible.
// Pure: answers from memory in less than a millisecond, calls no driver.
#pragma once

#include "daemons/agent/dp_config.h"
#include "gpu/topology.h"

struct prefer_device {
	uint32_t index;    // into the topology
	bool is_available; // offered by the kubelet for this container
	bool is_must;      // has to be among the chosen
	bool is_reserved;  // planned for another pod
};

// What a choice is compared by, member by member.
struct prefer_cost {
	uint32_t reserved; // fewer is better
	uint32_t score;    // of the pairs among the chosen; more is better
	uint32_t rest;     // of the pairs among what is left; more is better
	uint32_t span;     // of the indexes; less is better
};
MUST_USE bool prefer_is_better(const struct prefer_cost *a, const struct prefer_cost *b);

// Chooses size of the devices (sorted by index) and writes their places in the list, ascending.
// The best there is as long as there are not more than some ten thousand ways to choose (always
// up to 16 devices), else a good one. False when size is larger than what is available or the
// devices that must be in exceed it.
MUST_USE bool prefer_choose(const struct prefer_device *devices, size_t count, size_t size,
			    const struct topology *topology, size_t *ret_chosen);

struct prefer_shared {      // one GPU that is offered in shares
	uint32_t total;     // shares of it
	uint32_t available; // offered by the kubelet for this container
	uint32_t must;      // of them, those that have to be among the chosen
	bool is_reserved;   // planned for another pod
};

// How many shares to take of each GPU, its musts included. Distributed: of the GPU with the
// fewest taken; packed: of the one with the most; ties go to the first. is_one_gpu: all of one
// GPU if any has enough. False when size is larger than what is available or less than the musts.
MUST_USE bool prefer_shares(const struct prefer_shared *gpus, size_t count, size_t size,
			    dp_policy policy, bool is_one_gpu, uint32_t ret_take[GPU_MAX]);
