// SPDX-License-Identifier: Apache-2.0
#include "feed/feed.h"

#include "base/quantity.h"
#include "base/timefmt.h"
#include "feed/feed_queue.h"
#include "feed/spec_parts.h"

#include <stdarg.h>
#include <stdio.h>

void *build_alloc(struct build *build, size_t count, size_t size_bytes)
{
	void *memory = arena_alloc_array(build->arena, count, size_bytes);
	build->failed = build->failed || memory == NULL;
	return memory;
}

void build_refuse(struct build *build, sched_code code, const char *fmt, ...)
{
	struct sched_spec *spec = build->spec;
	char text[200];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	ASSERT(sched_code_is_pod(code));
	for (size_t i = 0; i < spec->refusal_count; i++) {
		if (spec->refusals[i].code == (int)code && str_eq_c(spec->refusals[i].detail, text))
			return;
	}
	if (spec->refusal_count == build->refusal_cap)
		return; // enough reasons to refuse it
	struct str detail = arena_dup(build->arena, str_of(text));
	if (detail.data == NULL)
		build->failed = true;
	else
		spec->refusals[spec->refusal_count++] = (struct sched_refusal){ (int)code, detail };
}

size_t build_limit(struct build *build, size_t count, const char *what)
{
	if (count > BUILD_ITEMS_MAX)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE, "more than %d %s",
			     BUILD_ITEMS_MAX, what);
	return min_size(count, BUILD_ITEMS_MAX);
}

size_t build_values(struct build *build, size_t count)
{
	size_t left = BUILD_VALUES_MAX - build->value_count;
	if (count > left)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
			     "more than %d values in affinities, selectors and constraints",
			     BUILD_VALUES_MAX);
	build->value_count += min_size(count, left);
	return min_size(count, left);
}

void build_range(struct build *build, const char *field, int64_t value, int64_t least, int64_t most)
{
	if (value < least || value > most)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE, "%s %lld, not %lld to %lld",
			     field, (long long)value, (long long)least, (long long)most);
}

struct sched_labels feed_labels(const struct kobj_pairs *pairs)
{
	_Static_assert(sizeof(struct kobj_pair) == sizeof(struct sched_label), "two texts");
	return (struct sched_labels){ (void *)pairs->items, pairs->count };
}

static void build_tolerations(struct build *build)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	struct sched_spec *spec = build->spec;
	size_t count = build_limit(build, pod->tolerations.count, "tolerations");
	spec->tolerations = build_alloc(build, count, sizeof *spec->tolerations);
	for (size_t i = 0; spec->tolerations != NULL && i < count; i++) {
		const struct kobj_toleration *t = &pod->tolerations.items[i];
		bool is_equal = t->op.len == 0 || str_eq_c(t->op, "Equal");
		bool is_exists = str_eq_c(t->op, "Exists");
		if (!is_equal && !is_exists)
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
				     "operator " STR_FMT " of a toleration", STR_ARG(t->op));
		spec->tolerations[spec->toleration_count++] =
			(struct sched_toleration){ .key = t->key,
						   .value = t->value,
						   .any_value = is_exists,
						   .effect = t->effect };
	}
}

static void add_ports(struct build *build, const struct kobj_container *container)
{
	struct sched_spec *spec = build->spec;
	for (size_t i = 0; i < container->ports.count; i++) {
		const struct kobj_port *port = &container->ports.items[i];
		if (port->host_port == 0)
			continue;
		struct str protocol = port->protocol.len == 0 ? STR("TCP") : port->protocol;
		build_range(build, "hostPort", port->host_port, 1, 65535);
		if (build_limit(build, spec->port_count + 1, "host ports") == spec->port_count)
			return;
		spec->ports[spec->port_count++] =
			(struct sched_port){ port->host_port, protocol, port->host_ip };
	}
}

static bool is_sidecar(const struct kobj_container *container)
{
	return str_eq_c(container->restart_policy, "Always");
}

static void build_ports(struct build *build)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	size_t max = 0;
	for (size_t i = 0; i < pod->containers.count; i++)
		max += pod->containers.items[i].ports.count;
	for (size_t i = 0; i < pod->init_containers.count; i++)
		max += pod->init_containers.items[i].ports.count;
	build->spec->ports = build_alloc(build, max, sizeof *build->spec->ports);
	if (build->spec->ports == NULL)
		return;
	for (size_t i = 0; i < pod->init_containers.count; i++) {
		if (is_sidecar(&pod->init_containers.items[i]))
			add_ports(build, &pod->init_containers.items[i]);
	}
	for (size_t i = 0; i < pod->containers.count; i++)
		add_ports(build, &pod->containers.items[i]);
}

static bool restarts_all(const kobj_containers *containers)
{
	for (size_t i = 0; i < containers->count; i++) {
		for (size_t k = 0; k < containers->items[i].restart_rules.count; k++) {
			if (str_eq_c(containers->items[i].restart_rules.items[k].action,
				     "RestartAllContainers"))
				return true;
		}
	}
	return false;
}

// What a pod needs the kubelet to have declared (kube-scheduler's plugin NodeDeclaredFeatures).
static void build_features(struct build *build)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	struct sched_spec *spec = build->spec;
	spec->features = build_alloc(build, 2, sizeof *spec->features);
	if (spec->features == NULL)
		return;
	if (restarts_all(&pod->containers) || restarts_all(&pod->init_containers))
		spec->features[spec->feature_count++] = STR("RestartAllContainersOnContainerExits");
	if (pod->host_network && pod->host_users < 0)
		spec->features[spec->feature_count++] = STR("UserNamespacesHostNetworkSupport");
}

static void refuse_unsupported(struct build *build, const struct kobj_unknowns *unknowns)
{
	for (size_t i = 0; i < min_size(unknowns->count, KOBJ_UNKNOWN_MAX); i++)
		build_refuse(build, SCHED_CODE_UNKNOWN_FIELD, STR_FMT, STR_ARG(unknowns->paths[i]));
}

static struct sched_spec *build_spec(struct arena *arena, const struct kobj_pod *pod,
				     const struct kobj_unknowns *unknowns,
				     struct sched_gang_in **ret_gang)
{
	enum { REFUSALS_MAX = 16 };
	struct build build = { .arena = arena,
			       .pod = pod,
			       .spec = ARENA_NEW(arena, struct sched_spec) };
	if (build.spec == NULL)
		return NULL;
	build.spec->refusals = build_alloc(&build, REFUSALS_MAX, sizeof *build.spec->refusals);
	if (build.failed)
		return NULL;
	build.refusal_cap = REFUSALS_MAX;
	refuse_unsupported(&build, unknowns);
	build_amounts(&build);
	build_affinity(&build);
	build_tolerations(&build);
	build_ports(&build);
	build_spreads(&build);
	build_volumes(&build);
	build_device_claims(&build);
	build_features(&build);
	build_gpu(&build);
	build_shares(&build);
	build_gang(&build);
	*ret_gang = build.gang.name.len > 0 ? ARENA_NEW(arena, struct sched_gang_in) : NULL;
	if (*ret_gang != NULL)
		**ret_gang = build.gang;
	build.failed = build.failed || (build.gang.name.len > 0 && *ret_gang == NULL);
	return build.failed ? NULL : build.spec;
}

// UIDs are the API server's: random, so that a hash of one is as good as itself.
static uint64_t owner_of(const struct kobj_pod *pod)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct str uid = { NULL, 0 };
	for (size_t i = 0; i < pod->owners.count; i++) {
		if (pod->owners.items[i].is_controller)
			uid = pod->owners.items[i].uid;
	}
	for (size_t i = 0; i < uid.len; i++)
		hash = (hash ^ (unsigned char)uid.data[i]) * UINT64_C(0x100000001b3);
	return uid.len == 0 ? 0 : hash | 1;
}

static bool is_evicted(const struct kobj_pod *pod)
{
	for (size_t i = 0; i < pod->status.conditions.count; i++) {
		const struct kobj_condition *condition = &pod->status.conditions.items[i];
		if (str_eq_c(condition->type, "DisruptionTarget") &&
		    str_eq_c(condition->reason, FEED_PREEMPTED_REASON))
			return true;
	}
	return false;
}

// Kubernetes' own limit of annotations is far above; names of people are short.
static struct str user_of(const struct kobj_pod *pod)
{
	enum { USER_MAX = 128 };
	struct str user = kobj_pairs_get(&pod->meta.annotations, STR(FEED_USER_ANNOTATION));
	user.len = min_size(user.len, USER_MAX);
	return user;
}

static int64_t deadline_s_of(const struct kobj_pod *pod)
{
	struct str text = kobj_pairs_get(&pod->meta.annotations, STR("gpuaas.io/deadline"));
	int64_t deadline_s = 0;
	return time_parse(text, &deadline_s, NULL) ? deadline_s : 0;
}

// What tells jobs of one kind from others: the image of the first container, else the class.
static struct str work_of(const struct kobj_pod *pod)
{
	const kobj_containers *containers = &pod->spec.containers;
	if (containers->count > 0 && containers->items[0].image.len > 0)
		return containers->items[0].image;
	return pod->spec.priority_class_name;
}

bool feed_pod(struct arena *arena, const struct kobj_pod *pod, const struct kobj_unknowns *unknowns,
	      struct str scheduler_name, struct sched_pod_in *ret_pod)
{
	struct sched_gang_in *gang;
	const struct sched_spec *spec = build_spec(arena, pod, unknowns, &gang);
	if (spec == NULL)
		return false;
	*ret_pod = (struct sched_pod_in){
		.uid = pod->meta.uid,
		.namespace_ = pod->meta.namespace_,
		.name = pod->meta.name,
		.node = pod->spec.node_name,
		.nominated = pod->status.nominated_node,
		.user = user_of(pod),
		.labels = feed_labels(&pod->meta.labels),
		.created_s = pod->meta.created_s,
		.deadline_s = deadline_s_of(pod),
		.max_run_s = max_i64(pod->spec.max_run_s, 0),
		.work = work_of(pod),
		.priority = pod->spec.priority,
		.is_ours = str_eq(pod->spec.scheduler_name, scheduler_name),
		.is_gated = pod->spec.gates.count > 0,
		.is_terminating = pod->meta.deleted_s != 0,
		.spec = spec,
		.gang = gang,
		.stay = { .grace_s = max_i64(pod->spec.grace_s, 0),
			  .owner = owner_of(pod),
			  .never_preempts = str_eq_c(pod->spec.preemption_policy, "Never"),
			  .is_evicted = is_evicted(pod) },
	};
	return true;
}

int64_t feed_checkpoint_s(const struct kobj_pod *pod)
{
	struct str text = kobj_pairs_get(&pod->meta.annotations, STR("gpuaas.io/checkpointed-at"));
	int64_t at_s;
	return text.data != NULL && time_parse(text, &at_s, NULL) ? at_s : 0;
}

int64_t feed_bound_s(const struct kobj_pod *pod)
{
	for (size_t i = 0; i < pod->status.conditions.count; i++) {
		const struct kobj_condition *condition = &pod->status.conditions.items[i];
		if (str_eq_c(condition->type, "PodScheduled") &&
		    str_eq_c(condition->status, "True"))
			return condition->changed_s;
	}
	return 0;
}

bool feed_pod_is_finished(const struct kobj_pod *pod)
{
	return str_eq_c(pod->status.phase, "Succeeded") || str_eq_c(pod->status.phase, "Failed");
}

static bool is_not_ready(const struct kobj_node *node)
{
	for (size_t i = 0; i < node->conditions.count; i++) {
		if (str_eq_c(node->conditions.items[i].type, "Ready"))
			return !str_eq_c(node->conditions.items[i].status, "True");
	}
	return false; // a node that says nothing about it is left to its taints
}

bool feed_node(struct arena *arena, const struct kobj_node *node, struct sched_node_in *ret_node)
{
	struct sched_amount *amounts =
		ARENA_ARRAY(arena, struct sched_amount, node->allocatable.count);
	struct sched_taint *taints = ARENA_ARRAY(arena, struct sched_taint, node->taints.count);
	size_t count = 0;
	if (amounts == NULL || taints == NULL)
		return false;
	for (size_t i = 0; i < node->allocatable.count; i++) {
		const struct kobj_pair *pair = &node->allocatable.items[i];
		int64_t amount;
		bool good = str_eq_c(pair->key, "cpu") ? quantity_to_milli(pair->value, &amount)
						       : quantity_to_units(pair->value, &amount);
		if (good) // what cannot be read is as if the node had none of it
			amounts[count++] = (struct sched_amount){ pair->key, amount };
	}
	for (size_t i = 0; i < node->taints.count; i++) {
		const struct kobj_taint *taint = &node->taints.items[i];
		taints[i] = (struct sched_taint){ taint->key, taint->value, taint->effect };
	}
	*ret_node = (struct sched_node_in){
		.name = node->meta.name,
		.labels = feed_labels(&node->meta.labels),
		.allocatable = amounts,
		.allocatable_count = count,
		.taints = taints,
		.taint_count = node->taints.count,
		.features = node->features.items,
		.feature_count = node->features.count,
		.is_cordoned = node->unschedulable,
		.is_not_ready = is_not_ready(node),
	};
	return true;
}

// What cannot be read is not known.
static struct sched_version version_of(struct str text)
{
	struct sched_version version;
	if (!sched_version_parse(text, &version))
		version = (struct sched_version){ .is_set = false };
	return version;
}

// A GPU in MIG mode that is not offered whole stands for nothing by itself; its MIG devices do
// where they are called GPUs.
static bool is_in_parts(const struct kobj_gpu *gpu)
{
	return gpu->mig_enabled > 0 && gpu->resource.len == 0;
}

static bool is_called_gpu(const struct kobj_mig *mig)
{
	return str_eq_c(mig->resource, FEED_GPU_RESOURCE);
}

static size_t count_devices(const struct kobj_gpu_node *node)
{
	size_t count = 0;
	for (size_t i = 0; i < node->devices.count; i++) {
		const struct kobj_gpu *gpu = &node->devices.items[i];
		count += is_in_parts(gpu) ? 0 : 1;
		for (size_t j = 0; is_in_parts(gpu) && j < gpu->migs.count; j++)
			count += is_called_gpu(&gpu->migs.items[j]) ? 1 : 0;
	}
	return min_size(count, SCHED_DEVICES_MAX);
}

static struct sched_device_in device_of(const struct kobj_gpu_node *node,
					const struct kobj_gpu *gpu)
{
	_Static_assert(sizeof(struct kobj_gpu_link) == sizeof(struct str), "one text");
	return (struct sched_device_in){ .uuid = gpu->uuid,
					 .model = gpu->model,
					 .index = gpu->index,
					 .memory_mib = gpu->memory_mib,
					 .is_healthy = gpu->healthy > 0,
					 .is_shared = gpu->milli > 0,
					 .compute = version_of(gpu->compute),
					 .driver = version_of(node->driver),
					 .cuda = version_of(node->cuda),
					 .numa_node = gpu->numa_node,
					 .has_switch = gpu->switch_links > 0,
					 .linked = (const void *)gpu->links.items,
					 .linked_count = gpu->links.count };
}

bool feed_devices(struct arena *arena, const struct kobj_gpu_node *node,
		  struct sched_device_in **ret_devices, size_t *ret_count)
{
	size_t count = count_devices(node), at = 0;
	struct sched_device_in *devices = ARENA_ARRAY(arena, struct sched_device_in, count);
	if (devices == NULL)
		return false;
	for (size_t i = 0; i < node->devices.count; i++) {
		const struct kobj_gpu *gpu = &node->devices.items[i];
		struct sched_device_in device = device_of(node, gpu);
		if (!is_in_parts(gpu) && at < count)
			devices[at++] = device;
		for (size_t j = 0; is_in_parts(gpu) && j < gpu->migs.count; j++) {
			const struct kobj_mig *mig = &gpu->migs.items[j];
			if (!is_called_gpu(mig) || at == count)
				continue;
			device.uuid = mig->uuid;
			device.memory_mib = mig->memory_mib;
			device.is_healthy = mig->healthy > 0;
			device.has_switch = false; // MIG devices have no NVLinks
			device.linked_count = 0;
			devices[at++] = device;
		}
	}
	*ret_devices = devices;
	*ret_count = count;
	return true;
}
