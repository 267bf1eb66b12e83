// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/portion.h"

#include "sys/fs.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { UID_BYTES = 36, CGROUP_MAX_BYTES = 16 * 1024, WHOLE = 1000000 };

static uint64_t part_of(uint64_t value, uint64_t weight, uint64_t sum)
{
	return sum == 0 ? 0 : (uint64_t)((unsigned __int128)value * weight / sum);
}

static uint64_t weight_of(const struct usage_allocation *holder)
{
	return (uint64_t)WHOLE * holder->share_num / holder->share_den;
}

void portion_by_share(struct portion *portions, size_t count, const struct portion *device)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += weight_of(portions[i].holder);
	for (size_t i = 0; i < count; i++) {
		uint64_t weight = weight_of(portions[i].holder);
		portions[i].util_milli = (uint32_t)part_of(device->util_milli, weight, sum);
		portions[i].memory_mib = part_of(device->memory_mib, weight, sum);
	}
}

void portion_by_instance(struct portion *portions, size_t count, const struct mig_state *mig)
{
	for (size_t i = 0; i < count; i++)
		portions[i].util_milli = 0, portions[i].memory_mib = 0;
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		uint64_t sum = 0;
		for (size_t j = 0; j < count; j++)
			sum += (portions[j].holder->mig_starts >> instance->start & 1) != 0
				       ? weight_of(portions[j].holder)
				       : 0;
		for (size_t j = 0; j < count; j++) {
			if ((portions[j].holder->mig_starts >> instance->start & 1) == 0)
				continue;
			uint64_t use = part_of(instance->use_milli, instance->slices, mig->slices);
			portions[j].util_milli +=
				(uint32_t)part_of(use, weight_of(portions[j].holder), sum);
			portions[j].memory_mib +=
				part_of(instance->used_mib, weight_of(portions[j].holder), sum);
		}
	}
}

bool portion_pod_of(struct str cgroups, char ret_uid[POD_SHORT_BYTES])
{
	for (size_t at = 0; at + 3 + UID_BYTES <= cgroups.len; at++) {
		if (memcmp(cgroups.data + at, "pod", 3) != 0)
			continue;
		struct str text = str_slice(cgroups, at + 3, at + 3 + UID_BYTES);
		char uid[UID_BYTES + 1] = { 0 };
		bool is_good = true;
		for (size_t i = 0; i < UID_BYTES; i++) {
			bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
			char c = text.data[i];
			is_good = is_good &&
				  (is_dash ? c == '-' || c == '_' : str_hex_value(c) >= 0);
			uid[i] = is_dash ? '-' : c;
		}
		if (!is_good)
			continue;
		memcpy(ret_uid, uid, sizeof uid);
		return true;
	}
	return false;
}

static bool pod_of_process(const char *proc_root, uint32_t pid, char ret_uid[POD_SHORT_BYTES])
{
	char path[PATH_MAX];
	AUTO(buf_done) struct buf text = { 0 };
	(void)snprintf(path, sizeof path, "%.3000s/%" PRIu32 "/cgroup", proc_root, pid);
	return fs_read(path, CGROUP_MAX_BYTES, &text, NULL) == ERR_OK &&
	       portion_pod_of(buf_str(&text), ret_uid);
}

// What each holder's processes have.
struct use {
	uint64_t memory_mib, util_percent;
	bool has_process;
};

static bool gather(const struct portion *portions, size_t count,
		   const struct nvml_processes *processes, const char *proc_root,
		   struct use uses[PORTIONS_MAX])
{
	bool knows_util = true;
	for (uint32_t i = 0; i < processes->count; i++) {
		const struct nvml_process *process = &processes->items[i];
		char uid[POD_SHORT_BYTES];
		if (!pod_of_process(proc_root, process->pid, uid))
			continue;
		for (size_t j = 0; j < count; j++) {
			if (strcmp(portions[j].holder->pod_uid, uid) != 0)
				continue;
			uses[j].has_process = true;
			uses[j].memory_mib += process->memory_bytes >> 20;
			knows_util = knows_util && process->util_percent != NVML_UTIL_UNKNOWN;
			uses[j].util_percent += process->util_percent;
		}
	}
	return knows_util;
}

void portion_by_process(struct portion *portions, size_t count, const struct portion *device,
			const struct nvml_processes *processes, const char *proc_root)
{
	struct use uses[PORTIONS_MAX] = { 0 };
	uint64_t memory_sum = 0, weight_sum = 0;
	if (count <= 1) {
		portion_by_share(portions, count, device);
		return;
	}
	ASSERT(count <= PORTIONS_MAX);
	bool knows_util = gather(portions, count, processes, proc_root, uses);
	for (size_t i = 0; i < count; i++) {
		if (!knows_util)
			uses[i].util_percent = uses[i].has_process ? weight_of(portions[i].holder)
								   : 0;
		memory_sum += uses[i].memory_mib;
		weight_sum += uses[i].util_percent;
	}
	// Processes are read at another moment than the device, whose value bounds them.
	for (size_t i = 0; i < count; i++) {
		portions[i].util_milli =
			(uint32_t)part_of(device->util_milli, uses[i].util_percent, weight_sum);
		portions[i].memory_mib =
			memory_sum <= device->memory_mib
				? uses[i].memory_mib
				: part_of(device->memory_mib, uses[i].memory_mib, memory_sum);
	}
}
