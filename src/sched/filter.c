// SPDX-License-Identifier: Apache-2.0
#include "gpu/model.h"
#include "sched/parts.h"

static bool blocks(const struct sched_taint *taint)
{
	return str_eq_c(taint->effect, "NoSchedule") || str_eq_c(taint->effect, "NoExecute");
}

bool filter_taints(const struct sched_spec *spec, const struct node *node)
{
	for (size_t i = 0; i < node->taint_count; i++) {
		const struct sched_taint *taint = &node->taints[i];
		if (blocks(taint) &&
		    !sched_tolerates(spec, taint->key, taint->value, taint->effect))
			return false;
	}
	return true;
}

static bool matches_fields(const struct sched_selector *fields, struct str name)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct sched_requirement *item = &fields->items[i];
		struct str value = str_eq_c(item->key, "metadata.name") ? name : STR("");
		if (!sched_requirement_matches(item, value))
			return false;
	}
	return true;
}

bool filter_term(const struct sched_node_term *term, const struct sched_labels *labels,
		 struct str name)
{
	if (term->labels.count + term->fields.count == 0)
		return false;
	return sched_selector_matches(&term->labels, labels) && matches_fields(&term->fields, name);
}

bool filter_selectors(const struct sched_spec *spec, const struct node *node)
{
	if (!sched_selector_matches(&spec->node_selector, &node->labels))
		return false;
	for (size_t i = 0; i < spec->term_count; i++) {
		if (filter_term(&spec->terms[i], &node->labels, node->name))
			return true;
	}
	return !spec->has_terms;
}

int64_t filter_preference(const struct sched_spec *spec, const struct node *node)
{
	int64_t sum = 0;
	for (size_t i = 0; i < spec->preference_count; i++) {
		if (filter_term(&spec->preferences[i].term, &node->labels, node->name))
			sum += spec->preferences[i].weight;
	}
	for (size_t i = 0; i < node->taint_count; i++) {
		const struct sched_taint *taint = &node->taints[i];
		if (str_eq_c(taint->effect, "PreferNoSchedule") &&
		    !sched_tolerates(spec, taint->key, taint->value, taint->effect))
			sum--;
	}
	return sum;
}

static bool has_features(const struct sched_spec *spec, const struct node *node)
{
	for (size_t i = 0; i < spec->feature_count; i++) {
		bool has = false;
		for (size_t k = 0; k < node->feature_count && !has; k++)
			has = str_eq(spec->features[i], node->features[k]);
		if (!has)
			return false;
	}
	return true;
}

bool filter_model(const struct sched_spec *spec, struct str model)
{
	for (size_t i = 0; i < spec->gpu_model_count; i++) {
		if (gpu_model_matches(spec->gpu_models[i], model))
			return true;
	}
	return spec->gpu_model_count == 0;
}

static struct str label(const struct node *node, const char *key)
{
	return sched_labels_get(&node->labels, str_of(key));
}

static bool fits_model(const struct sched_spec *spec, const struct node *node)
{
	if (spec->gpu_model_count == 0)
		return true;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		if (device->is_present && filter_model(spec, str_of(device->model)))
			return true;
	}
	// Without a list of devices the label of the node has to do.
	return node->present_count == 0 &&
	       filter_model(spec, label(node, "nvidia.com/gpu.product"));
}

int64_t filter_gpu_memory_mib(const struct node *node)
{
	int64_t most_mib = 0;
	for (size_t i = 0; i < node->device_count; i++) {
		if (node->devices[i].is_present)
			most_mib = max_i64(most_mib, node->devices[i].memory_mib);
	}
	int64_t label_mib;
	if (most_mib == 0 && str_to_i64(label(node, "nvidia.com/gpu.memory"), &label_mib))
		most_mib = label_mib;
	return most_mib;
}

static bool read_part(const struct node *node, const char *key, int64_t *ret_part)
{
	struct str text = label(node, key);
	return text.data != NULL && str_to_i64(text, ret_part) && *ret_part >= 0;
}

static bool read_three(const struct node *node, const char *const keys[3],
		       struct sched_version *ret_version)
{
	struct sched_version version = { .is_set = true };
	if (!read_part(node, keys[0], &version.parts[0]))
		return false;
	for (size_t i = 1; i < 3; i++) {
		if (keys[i] != NULL && !read_part(node, keys[i], &version.parts[i]))
			version.parts[i] = 0;
	}
	*ret_version = version;
	return true;
}

// The highest that the node's agent names.
static struct sched_version told_version(const struct node *node, sched_code code)
{
	struct sched_version best = { .is_set = false };
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		const struct sched_version *version = &device->cuda;
		if (code == SCHED_CODE_GPU_COMPUTE)
			version = &device->compute;
		else if (code == SCHED_CODE_DRIVER_VERSION)
			version = &device->driver;
		bool is_better = device->is_present && version->is_set &&
				 (!best.is_set || sched_version_cmp(version, &best) > 0);
		best = is_better ? *version : best;
	}
	return best;
}

// Without the agent's word, the node's labels, as GPU Feature Discovery writes them.
struct sched_version filter_version(const struct node *node, sched_code code)
{
	static const char *const COMPUTE[3] = { "nvidia.com/gpu.compute.major",
						"nvidia.com/gpu.compute.minor", NULL };
	static const char *const DRIVER[3] = { "nvidia.com/cuda.driver-version.major",
					       "nvidia.com/cuda.driver-version.minor",
					       "nvidia.com/cuda.driver-version.revision" };
	static const char *const CUDA[3] = { "nvidia.com/cuda.runtime-version.major",
					     "nvidia.com/cuda.runtime-version.minor", NULL };
	struct sched_version version = told_version(node, code);
	const char *full = NULL;
	if (version.is_set)
		return version;
	const char *const *parts = COMPUTE;
	if (code == SCHED_CODE_DRIVER_VERSION) {
		full = "nvidia.com/cuda.driver-version.full";
		parts = DRIVER;
	} else if (code == SCHED_CODE_CUDA_VERSION) {
		full = "nvidia.com/cuda.runtime-version.full";
		parts = CUDA;
	}
	struct str text = full == NULL ? (struct str){ NULL, 0 } : label(node, full);
	if (text.data != NULL && sched_version_parse(text, &version))
		return version;
	(void)read_three(node, parts, &version); // unset: the node says nothing
	return version;
}

static bool fits_version(const struct sched_version *least, const struct node *node,
			 sched_code code)
{
	if (!least->is_set)
		return true;
	struct sched_version have = filter_version(node, code);
	return have.is_set && sched_version_cmp(&have, least) >= 0;
}

uint64_t filter_static(const struct sched_spec *spec, const struct node *node)
{
	uint64_t fails = 0;
	static const struct str EFFECT = { "NoSchedule", 10 };
	if (node->is_cordoned &&
	    !sched_tolerates(spec, STR("node.kubernetes.io/unschedulable"), STR(""), EFFECT))
		fails |= code_bit(SCHED_CODE_NODE_CORDONED);
	if (node->is_not_ready &&
	    !sched_tolerates(spec, STR("node.kubernetes.io/not-ready"), STR(""), EFFECT))
		fails |= code_bit(SCHED_CODE_NODE_NOT_READY);
	if (!filter_selectors(spec, node))
		fails |= code_bit(SCHED_CODE_NODE_SELECTOR);
	if (!filter_taints(spec, node))
		fails |= code_bit(SCHED_CODE_TAINT);
	if (!has_features(spec, node))
		fails |= code_bit(SCHED_CODE_NODE_FEATURE);
	if (!fits_model(spec, node))
		fails |= code_bit(SCHED_CODE_GPU_MODEL);
	if (spec->gpu_memory_mib_min > 0 && filter_gpu_memory_mib(node) < spec->gpu_memory_mib_min)
		fails |= code_bit(SCHED_CODE_GPU_MEMORY);
	if (!fits_version(&spec->compute_min, node, SCHED_CODE_GPU_COMPUTE))
		fails |= code_bit(SCHED_CODE_GPU_COMPUTE);
	if (!fits_version(&spec->driver_min, node, SCHED_CODE_DRIVER_VERSION))
		fails |= code_bit(SCHED_CODE_DRIVER_VERSION);
	if (!fits_version(&spec->cuda_min, node, SCHED_CODE_CUDA_VERSION))
		fails |= code_bit(SCHED_CODE_CUDA_VERSION);
	if (spec->topology_label.len > 0 &&
	    sched_labels_get(&node->labels, spec->topology_label).data == NULL)
		fails |= code_bit(SCHED_CODE_TOPOLOGY_LABEL);
	return fails | device_static(spec, node);
}

bool filter_device_kind(const struct sched_spec *spec, const struct device *device)
{
	return device->is_healthy && device_is_kind(spec, device);
}

bool filter_device(const struct sched_spec *spec, const struct device *device)
{
	return device->holder == NULL && !device->is_claimed && filter_device_kind(spec, device);
}
