// SPDX-License-Identifier: Apache-2.0
#include "gpu/labels.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { PCI_CLASS_VGA = 0x030000, PCI_CLASS_3D = 0x030200, CUDA_UNIT = 1000 };

// What is counted together: whole GPUs of one model, or MIG devices of one profile.
struct group {
	const char *key, *model;
	const struct gpu_info *gpu;
	const struct gpu_label_mig *mig; // NULL: whole GPUs
	uint64_t count;
	uint32_t replicas; // 0: parents of instances only, which take no part in sharing
	bool is_renamed;
};

const char *gpu_sharing_name(gpu_sharing sharing)
{
	switch (sharing) {
	case GPU_SHARING_NONE: return "none";
	case GPU_SHARING_TIME_SLICING: return "time-slicing";
	case GPU_SHARING_MPS: return "mps";
	}
	return "none";
}

const char *gpu_mig_strategy_name(gpu_mig_strategy strategy)
{
	switch (strategy) {
	case GPU_MIG_NONE: return "none";
	case GPU_MIG_SINGLE: return "single";
	case GPU_MIG_MIXED: return "mixed";
	}
	return "none";
}

const char *gpu_labels_find(const struct gpu_labels *labels, const char *name)
{
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->items[i].name, name) == 0)
			return labels->items[i].value;
	}
	return NULL;
}

static void put(struct gpu_labels *out, const char *prefix, const char *name, const char *value)
{
	// A label too many or a name too long is left out: the API server would refuse them all.
	if (out->count == GPU_LABELS_MAX)
		return;
	struct gpu_label *label = &out->items[out->count];
	int n = snprintf(label->name, sizeof label->name, "%s%s", prefix, name);
	if (n < 0 || (size_t)n >= sizeof label->name)
		return;
	(void)snprintf(label->value, sizeof label->value, "%s", value);
	out->count++;
}

static void put_number(struct gpu_labels *out, const char *prefix, const char *name, uint64_t value)
{
	char text[24];
	(void)snprintf(text, sizeof text, "%" PRIu64, value);
	put(out, prefix, name, text);
}

static void put_bool(struct gpu_labels *out, const char *name, bool value)
{
	put(out, "", name, value ? "true" : "false");
}

// "570.86.15": major, minor, revision; what is missing is empty.
static void put_driver(struct gpu_labels *out, const char *version)
{
	static const char *const names[] = { "major", "minor", "revision" };
	static const char *const old_names[] = { "major", "minor", "rev" };
	struct str rest = str_of(version), part;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		char text[16] = "";
		if (str_split_next(&rest, '.', &part) && part.len < sizeof text)
			memcpy(text, part.data, part.len);
		put(out, "cuda.driver-version.", names[i], text);
		put(out, "cuda.driver.", old_names[i], text);
	}
	put(out, "cuda.driver-version.", "full", version);
}

static void put_runtime(struct gpu_labels *out, uint32_t version)
{
	char text[24];
	uint32_t major = version / CUDA_UNIT, minor = version % CUDA_UNIT / 10;
	(void)snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32, major, minor);
	put_number(out, "cuda.runtime-version.", "major", major);
	put_number(out, "cuda.runtime-version.", "minor", minor);
	put(out, "cuda.runtime-version.", "full", text);
	put_number(out, "cuda.runtime.", "major", major);
	put_number(out, "cuda.runtime.", "minor", minor);
}

static const char *mode_of(const struct gpu_label_facts *facts)
{
	for (size_t i = 1; i < facts->gpu_count; i++) {
		if (facts->gpus[i].info->pci_class != facts->gpus[0].info->pci_class)
			return "unknown";
	}
	switch (facts->gpu_count == 0 ? 0 : facts->gpus[0].info->pci_class) {
	case PCI_CLASS_VGA: return "graphics";
	case PCI_CLASS_3D: return "compute";
	default: return "unknown";
	}
}

static bool is_before(const struct group *a, const struct group *b)
{
	return a->count != b->count ? a->count > b->count : strcmp(a->key, b->key) < 0;
}

static void sort(struct group *groups, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct group moved = groups[i];
		size_t at = i;
		for (; at > 0 && is_before(&moved, &groups[at - 1]); at--)
			groups[at] = groups[at - 1];
		groups[at] = moved;
	}
}

// Of different values in a group the smaller one holds, so that no order matters.
static void count_in(struct group *groups, size_t *count, size_t max, const struct group *one)
{
	struct group *group = groups;
	while (group < groups + *count && strcmp(group->key, one->key) != 0)
		group++;
	if (group == groups + *count) {
		if (*count < max)
			groups[(*count)++] = *one;
		return;
	}
	group->count++;
	if (strcmp(one->model, group->model) < 0) {
		group->model = one->model;
		group->gpu = one->gpu;
		group->mig = one->mig;
	}
	if (one->replicas == 0)
		return;
	if (group->replicas == 0 || one->replicas < group->replicas)
		group->replicas = one->replicas;
	group->is_renamed = group->is_renamed && one->is_renamed;
}

static uint32_t at_least_one(uint32_t value) { return value == 0 ? 1 : value; }

static size_t group_gpus(const struct gpu_label_facts *facts, struct group groups[GPU_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < facts->gpu_count; i++) {
		const struct gpu_label_gpu *gpu = &facts->gpus[i];
		const struct group one = {
			.key = gpu->info->model,
			.model = gpu->info->model,
			.gpu = gpu->info,
			.count = 1,
			.replicas = gpu->info->mig_enabled ? 0 : at_least_one(gpu->replicas),
			.is_renamed = gpu->info->mig_enabled || gpu->is_renamed,
		};
		count_in(groups, &count, GPU_MAX, &one);
	}
	sort(groups, count);
	return count;
}

static size_t group_migs(const struct gpu_label_facts *facts, struct group groups[GPU_MIGS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < facts->mig_count; i++) {
		const struct gpu_label_mig *mig = &facts->migs[i];
		const struct group one = { .key = mig->profile,
					   .model = mig->parent->model,
					   .gpu = mig->parent,
					   .mig = mig,
					   .count = 1,
					   .replicas = at_least_one(mig->replicas),
					   .is_renamed = mig->is_renamed };
		count_in(groups, &count, GPU_MIGS_MAX, &one);
	}
	sort(groups, count);
	return count;
}

static void put_product(struct gpu_labels *out, const char *prefix, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void put_product(struct gpu_labels *out, const char *prefix, const char *fmt, ...)
{
	char text[2 * GPU_MODEL_BYTES], label[GPU_LABEL_BYTES];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	put(out, prefix, "product", gpu_product_label(text, label));
}

static bool is_shared(const struct gpu_label_facts *facts, const struct group *group)
{
	return facts->sharing != GPU_SHARING_NONE && group->replicas > 1;
}

static void put_sharing(struct gpu_labels *out, const char *prefix,
			const struct gpu_label_facts *facts, const struct group *group)
{
	bool shares = is_shared(facts, group);
	put_number(out, prefix, "replicas", shares ? group->replicas : group->replicas > 0);
	put(out, prefix, "sharing-strategy",
	    gpu_sharing_name(shares ? facts->sharing : GPU_SHARING_NONE));
}

static const char *suffix_of(const struct gpu_label_facts *facts, const struct group *group)
{
	return is_shared(facts, group) && !group->is_renamed ? "-SHARED" : "";
}

static void put_architecture(struct gpu_labels *out, const struct gpu_info *gpu)
{
	put(out, "gpu.", "family", gpu_family(gpu->compute_major, gpu->compute_minor));
	put_number(out, "gpu.", "compute.major", gpu->compute_major);
	put_number(out, "gpu.", "compute.minor", gpu->compute_minor);
}

static void put_whole(struct gpu_labels *out, const struct gpu_label_facts *facts,
		      const struct group *groups, size_t count)
{
	if (count == 0)
		return;
	const struct group *group = &groups[0];
	put_number(out, "gpu.", "count", group->count);
	put_product(out, "gpu.", "%s%s", group->model, suffix_of(facts, group));
	put_number(out, "gpu.", "memory", gpu_memory_mib(group->gpu));
	put_sharing(out, "gpu.", facts, group);
	put_architecture(out, group->gpu);
	for (size_t i = 0; count > 1 && i < count; i++) {
		char prefix[40], label[GPU_LABEL_BYTES];
		(void)snprintf(prefix, sizeof prefix, "gpu.product.%zu", i + 1);
		put(out, prefix, "", gpu_product_label(groups[i].model, label));
		put_number(out, prefix, ".count", groups[i].count);
	}
}

static void put_instances(struct gpu_labels *out, const char *prefix,
			  const struct gpu_label_facts *facts, const struct group *group)
{
	const struct gpu_label_mig *mig = group->mig;
	put_number(out, prefix, "count", group->count);
	put_product(out, prefix, "%s-MIG-%s%s", group->model, mig->profile,
		    suffix_of(facts, group));
	put_number(out, prefix, "memory", mig->memory_mib);
	put_sharing(out, prefix, facts, group);
	put_number(out, prefix, "multiprocessors", mig->multiprocessors);
	put_number(out, prefix, "slices.gi", mig->gi_slices);
	put_number(out, prefix, "slices.ci", mig->ci_slices);
	put_number(out, prefix, "engines.copy", mig->copy_engines);
	put_number(out, prefix, "engines.decoder", mig->decoders);
	put_number(out, prefix, "engines.encoder", mig->encoders);
	put_number(out, prefix, "engines.jpeg", mig->jpegs);
	put_number(out, prefix, "engines.ofa", mig->ofas);
}

static void put_mixed(struct gpu_labels *out, const struct gpu_label_facts *facts,
		      const struct group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char prefix[GPU_PROFILE_BYTES + 8];
		(void)snprintf(prefix, sizeof prefix, "mig-%s.", groups[i].mig->profile);
		for (char *c = prefix; *c != '\0'; c++)
			*c = *c == '+' ? '.' : *c;
		put_instances(out, prefix, facts, &groups[i]);
	}
}

static bool has_instance(const struct gpu_label_facts *facts, const struct gpu_info *parent)
{
	for (size_t i = 0; i < facts->mig_count; i++) {
		if (strcmp(facts->migs[i].parent->uuid, parent->uuid) == 0)
			return true;
	}
	return false;
}

// Instances of one profile on every GPU stand where the whole GPUs stood.
static void put_single(struct gpu_labels *out, const struct gpu_label_facts *facts,
		       const struct group *gpus, const struct group *migs, size_t mig_count)
{
	bool any = false, all = true;
	for (size_t i = 0; i < facts->gpu_count; i++) {
		const struct gpu_info *gpu = facts->gpus[i].info;
		any = any || gpu->mig_enabled;
		all = all && gpu->mig_enabled && has_instance(facts, gpu);
	}
	if (!any)
		return;
	out->count = 0;
	if (all && mig_count == 1) {
		put_instances(out, "gpu.", facts, &migs[0]);
	} else {
		put_number(out, "gpu.", "count", 0);
		put_product(out, "gpu.", "%s-MIG-INVALID", gpus[0].model);
		put_number(out, "gpu.", "memory", 0);
		put_number(out, "gpu.", "replicas", 0);
		put(out, "gpu.", "sharing-strategy", "none");
	}
	put_architecture(out, gpus[0].gpu);
}

static void put_resources(struct gpu_labels *out, const struct gpu_label_facts *facts)
{
	struct group gpus[GPU_MAX], migs[GPU_MIGS_MAX];
	size_t gpu_count = group_gpus(facts, gpus), mig_count = group_migs(facts, migs);
	put_whole(out, facts, gpus, gpu_count);
	if (facts->mig == GPU_MIG_SINGLE && gpu_count > 0)
		put_single(out, facts, gpus, migs, mig_count);
	if (facts->mig == GPU_MIG_MIXED)
		put_mixed(out, facts, migs, mig_count);
}

static void put_clique(struct gpu_labels *out, const struct gpu_label_facts *facts)
{
	const char *clique = facts->gpu_count == 0 ? "" : facts->gpus[0].info->clique;
	for (size_t i = 1; i < facts->gpu_count; i++) {
		if (strcmp(facts->gpus[i].info->clique, clique) != 0)
			return; // a node in two cliques is in none that a label could name
	}
	if (clique[0] != '\0')
		put(out, "gpu.", "clique", clique);
}

void gpu_labels_make(const struct gpu_label_facts *facts, struct gpu_labels *ret)
{
	char machine[GPU_LABEL_BYTES];
	bool is_mig_capable = false, is_mig_enabled = false;
	ASSERT(facts->gpu_count <= GPU_MAX && facts->mig_count <= GPU_MIGS_MAX);
	for (size_t i = 0; i < facts->gpu_count; i++) {
		is_mig_capable = is_mig_capable || facts->gpus[i].info->mig_capable;
		is_mig_enabled = is_mig_enabled || facts->gpus[i].info->mig_enabled;
	}
	ret->count = 0;
	put_resources(ret, facts); // first: the single strategy begins anew
	(void)gpu_product_label(facts->machine, machine);
	put(ret, "gpu.", "machine", machine[0] == '\0' ? "unknown" : machine);
	put(ret, "gpu.", "mode", mode_of(facts));
	put_bool(ret, "gpu.present", true);
	put_clique(ret, facts);
	put_driver(ret, facts->driver_version);
	put_runtime(ret, facts->cuda_version);
	put_bool(ret, "mig.capable", is_mig_capable);
	if (facts->mig != GPU_MIG_NONE)
		put(ret, "mig.", "strategy", gpu_mig_strategy_name(facts->mig));
	put_bool(ret, "mps.capable", facts->sharing == GPU_SHARING_MPS && !is_mig_enabled);
	if (facts->timestamp_s > 0)
		put_number(ret, "gfd.", "timestamp", (uint64_t)facts->timestamp_s);
}
