// SPDX-License-Identifier: Apache-2.0
// GPUs of a node: which of them suit a pod, and which of those may be given together. Internal to
// this folder; a device belongs to its node.
#pragma once

#include "sched/sched.h"

struct node;
struct pod;

struct load { // of a device, as measured (load.h); all 0: nothing is known
	int64_t at_ms;
	int16_t milli;      // smoothed
	int16_t used_milli; // that decisions count with
	bool is_known, counts;
};
struct device {
	char *uuid, *model;
	int64_t index, memory_mib, numa_node;
	struct sched_version compute, driver, cuda;
	uint32_t link_group; // those with equal ones reach each other by NVLink
	bool is_healthy;
	bool is_shared;    // given out in shares alone
	struct share used; // by them
	struct load load;
	int32_t load_cost; // what shares count it with, of the policy's weight
	bool is_present;   // the node's agent names it now
	struct pod *holder;
	bool is_claimed; // by a ResourceClaim
};

// Model, memory and compute capability are what the pod asks for.
bool device_suits(const struct sched_spec *spec, const struct device *device);
bool device_is_kind(const struct sched_spec *spec, const struct device *device);
// Bits of the free devices that suit, by their place on the node.
uint64_t device_free(const struct sched_spec *spec, const struct node *node);
// How many of the bits there are to choose from, by the rule of device_usable.
size_t device_group_count(const struct sched_spec *spec, const struct node *node, uint64_t bits);
// Bits of the free devices to choose from, by their place on the node: of one group if the pod
// wants that, of the smallest that suffices; without one that does, of the largest.
uint64_t device_usable(const struct sched_spec *spec, const struct node *node);
size_t device_usable_count(const struct sched_spec *spec, const struct node *node);
// The most devices of the kind in one group, whoever holds them.
size_t device_group_max(const struct sched_spec *spec, const struct node *node);
size_t device_healthy_count(const struct sched_spec *spec, const struct node *node);
// What of the devices alone keeps the pod away, as code bits.
uint64_t device_static(const struct sched_spec *spec, const struct node *node);
// Says who reaches whom, when all devices of the node are there.
void device_link(struct node *node, const struct sched_device_in *devices, size_t count);
