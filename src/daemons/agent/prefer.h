// SPDX-License-Identifier: Apache-2.0
// Which of the available devices a container should get: the ones the scheduler planned, if a
// plan fits; else neighbours (a run of indexes with the smallest span), away from devices that
// are planned for others where that is possible. Pure: answers at once, calls no driver.
#pragma once

#include "gpu/gpu.h"

struct prefer_device {
	uint32_t index;
	int32_t numa_node;
	bool is_available; // offered by the kubelet for this container
	bool is_must;      // has to be among the chosen
	bool is_reserved;  // planned for another pod
};

// Chooses size of the devices (sorted by index) and writes their places in the list, ascending.
// False when size is larger than what is available or the devices that must be in exceed it.
MUST_USE bool prefer_choose(const struct prefer_device *devices, size_t count, size_t size,
			    size_t *ret_chosen);
