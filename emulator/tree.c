// SPDX-License-Identifier: Apache-2.0
#include "emulator/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAPS_DIR "proc/driver/nvidia-caps"
#define CAPABILITIES_DIR "proc/driver/nvidia/capabilities"
enum { MAJOR_NVIDIA = 195, MAJOR_CAPS = 236 };
enum { MINOR_CONFIG = 1, MINOR_MONITOR = 2, MINOR_FIRST = 3, PATH_BYTES = 256 };
enum { MINORS_OF_GI = 1 + MIG_CI_ID_MAX, MINORS_OF_GPU = MIG_GI_ID_MAX * MINORS_OF_GI };

uint32_t tree_minor(uint32_t gpu_minor, uint32_t gi_id, uint32_t ci_id)
{
	uint32_t of_gi = MINOR_FIRST + gpu_minor * MINORS_OF_GPU + gi_id * MINORS_OF_GI;

	return ci_id == WIRE_NO_INSTANCE ? of_gi : of_gi + 1 + ci_id;
}

static void make_parents(const char *path)
{
	char part[PATH_BYTES];

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		(void)mkdir(part, 0755); // there already, or the file below fails too
	}
}

// Readers see the old text or the new one.
static void put_file(const char *path, const struct buf *text)
{
	char temporary[PATH_BYTES + 8];

	if (!buf_ok(text))
		return;
	make_parents(path);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return;
	bool good = write(fd, text->data, text->len) == (ssize_t)text->len;
	good = close(fd) == 0 && good;
	if (!good || rename(temporary, path) != 0)
		(void)unlink(temporary);
}

static void put_number(const char *path, uint32_t number)
{
	AUTO(buf_done) struct buf text = { 0 };

	buf_printf(&text, "%u\n", number);
	put_file(path, &text);
}

static void put_access(const char *path, uint32_t minor, uint32_t mode)
{
	AUTO(buf_done) struct buf text = { 0 };

	buf_printf(&text, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor,
		   mode);
	put_file(path, &text);
}

static void access_path(uint32_t gpu_minor, uint32_t gi_id, uint32_t ci_id, char ret[PATH_BYTES])
{
	char ci[16] = "";

	if (ci_id != WIRE_NO_INSTANCE)
		snprintf(ci, sizeof(ci), "/ci%u", ci_id);
	snprintf(ret, PATH_BYTES, CAPABILITIES_DIR "/gpu%u/mig/gi%u%s/access", gpu_minor, gi_id,
		 ci);
}

// Where tools find the major number of the devices below nvidia-caps.
static void put_majors(void)
{
	AUTO(buf_done) struct buf text = { 0 };

	buf_printf(&text, "Character devices:\n%3d nvidia\n%3d nvidia-caps\n\nBlock devices:\n",
		   MAJOR_NVIDIA, MAJOR_CAPS);
	put_file("proc/devices", &text);
}

// The driver lists every minor number that an instance could ever have.
static void put_minors(const struct machine *machine)
{
	AUTO(buf_done) struct buf text = { 0 };

	buf_printf(&text, "config %d\nmonitor %d\n", MINOR_CONFIG, MINOR_MONITOR);
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		uint32_t gpu = machine->gpus[slot].minor;
		for (uint32_t gi = 0; gi < MIG_GI_ID_MAX; gi++) {
			buf_printf(&text, "gpu%u/gi%u/access %u\n", gpu, gi,
				   tree_minor(gpu, gi, WIRE_NO_INSTANCE));
			for (uint32_t ci = 0; ci < MIG_CI_ID_MAX; ci++)
				buf_printf(&text, "gpu%u/gi%u/ci%u/access %u\n", gpu, gi, ci,
					   tree_minor(gpu, gi, ci));
		}
	}
	put_file(CAPS_DIR "/mig-minors", &text);
}

// Takes a file away and the folder around it.
static void remove_access(uint32_t gpu_minor, uint32_t gi_id, uint32_t ci_id)
{
	char path[PATH_BYTES];

	access_path(gpu_minor, gi_id, ci_id, path);
	(void)unlink(path);
	*strrchr(path, '/') = 0;
	(void)rmdir(path); // fails while something else is in it
}

// Bits of the instances that there are.
static struct tree_bits bits_of(const struct machine_gpu *gpu)
{
	const struct mig *mig = &gpu->model.mig;
	struct tree_bits bits = { .gis = 0 };

	if (!gpu->is_present || gpu->model.is_lost)
		return bits;
	for (size_t i = 0; i < MIG_GI_MAX; i++)
		bits.gis |= mig->gis[i].is_used ? 1u << mig->gis[i].id : 0;
	for (size_t i = 0; i < MIG_CI_MAX; i++)
		if (mig->cis[i].is_used)
			bits.cis[mig->gis[mig->cis[i].gi_i].id] |= (uint8_t)(1u << mig->cis[i].id);
	return bits;
}

static void sync_one(uint32_t gpu_minor, uint32_t gi_id, uint32_t ci_id, bool had, bool has)
{
	char path[PATH_BYTES];

	if (had && !has)
		remove_access(gpu_minor, gi_id, ci_id);
	if (had || !has)
		return;
	access_path(gpu_minor, gi_id, ci_id, path);
	put_access(path, tree_minor(gpu_minor, gi_id, ci_id), 0444);
}

static void sync_instances(struct tree *tree, const struct machine_gpu *gpu, uint32_t slot)
{
	struct tree_bits want = bits_of(gpu), *have = &tree->gpus[slot].bits;

	if (want.gis == have->gis && memcmp(want.cis, have->cis, sizeof(want.cis)) == 0)
		return;
	for (uint32_t gi = 0; gi < MIG_GI_ID_MAX; gi++) {
		for (uint32_t ci = 0; ci < MIG_CI_ID_MAX; ci++)
			sync_one(gpu->minor, gi, ci, (have->cis[gi] >> ci & 1) != 0,
				 (want.cis[gi] >> ci & 1) != 0);
		sync_one(gpu->minor, gi, WIRE_NO_INSTANCE, (have->gis >> gi & 1) != 0,
			 (want.gis >> gi & 1) != 0);
	}
	*have = want;
}

static void sync_pci(struct tree *tree, const struct machine_gpu *gpu, uint32_t slot)
{
	char path[PATH_BYTES];

	if (tree->gpus[slot].is_there == gpu->is_present)
		return;
	tree->gpus[slot].is_there = gpu->is_present;
	// The form of sysfs: four digits of the domain, small letters.
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node",
		 gpu->pci_domain & 0xffff, gpu->pci_bus & 0xff, gpu->pci_device & 0xff);
	if (gpu->is_present) {
		put_number(path, gpu->numa);
		return;
	}
	(void)unlink(path);
	*strrchr(path, '/') = 0;
	(void)rmdir(path);
}

void tree_init(struct tree *tree)
{
	*tree = (struct tree){ .minors_of = 0 };
	for (size_t i = 0; i < WIRE_GPU_MAX; i++) {
		tree->gpus[i].bits.gis = UINT32_MAX;
		memset(tree->gpus[i].bits.cis, 0xff, sizeof(tree->gpus[i].bits.cis));
	}
}

void tree_sync(struct tree *tree, const struct machine *machine)
{
	for (uint32_t slot = 0; slot < machine->slot_count; slot++) {
		const struct machine_gpu *gpu = &machine->gpus[slot];
		sync_pci(tree, gpu, slot);
		if (gpu->model.board->is_mig_capable)
			sync_instances(tree, gpu, slot);
	}
	if (tree->minors_of == machine->slot_count)
		return;
	tree->minors_of = (uint32_t)machine->slot_count;
	put_majors();
	put_minors(machine);
	put_access(CAPABILITIES_DIR "/mig/config", MINOR_CONFIG, 0400);
	put_access(CAPABILITIES_DIR "/mig/monitor", MINOR_MONITOR, 0444);
}
