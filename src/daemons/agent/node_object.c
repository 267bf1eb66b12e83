// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_object.h"

#include "base/timefmt.h"
#include "gpu/compat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FAULT_PODS_MAX = 64 };

static const char head[] = "{\"apiVersion\":\"gpuaas.io/v1alpha1\",\"kind\":\"GPUNode\","
			   "\"metadata\":{\"name\":";

static void put_head(struct buf *out, const struct node_view *view)
{
	buf_put_c(out, head);
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, "}");
}

void node_object_put(struct buf *out, const struct node_view *view)
{
	put_head(out, view);
	buf_put_c(out, ",\"spec\":{}}");
}

static const char *uuid_at(const struct node_view *view, const char *pci_bus_id)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->gpus[i].is_known &&
		    strcmp(view->gpus[i].info.pci_bus_id, pci_bus_id) == 0)
			return view->gpus[i].info.uuid;
	}
	return NULL;
}

static void put_links(struct buf *out, const struct node_view *view, const struct gpu_info *info)
{
	const char *before = "";
	if (info->switch_links > 0)
		buf_printf(out, ",\"switchLinks\":%" PRIu32, info->switch_links);
	if (info->link_count == 0)
		return;
	buf_put_c(out, ",\"links\":[");
	for (uint32_t i = 0; i < info->link_count; i++) {
		const struct gpu_link *link = &info->links[i];
		const char *uuid = uuid_at(view, link->pci_bus_id);
		if (uuid == NULL)
			continue; // its end is no GPU of this node, or not known yet
		buf_printf(out, "%s{\"uuid\":", before);
		buf_put_json(out, str_of(uuid));
		buf_printf(out, ",\"count\":%" PRIu32 "}", link->count);
		before = ",";
	}
	buf_put_c(out, "]");
}

// Whose pods are told: of all that is on a GPU, or of one MIG device, by the bit of its start.
struct fault_place {
	const char *gpu;
	uint32_t mig_start; // 0: all
};

static bool is_there(const struct usage_allocation *holder, const struct fault_place *place)
{
	return place->mig_start == 0 || (holder->mig_starts & place->mig_start) != 0;
}

static bool is_told_before(const struct node_view *view, const struct fault_place *place,
			   size_t end, const char *pod_uid)
{
	const struct usage_allocation *holder;
	for (size_t at = 0; (holder = usage_next_holder(view->usage, place->gpu, &at)) != NULL;) {
		if (at >= end)
			return false;
		if (is_there(holder, place) && strcmp(holder->pod_uid, pod_uid) == 0)
			return true;
	}
	return false;
}

// The pods on what is out of use, for whoever lets them go on elsewhere.
static void put_pods_of(struct buf *out, const struct node_view *view,
			const struct fault_place *place)
{
	const struct usage_allocation *holder;
	const char *before = ",\"pods\":[";
	size_t at = 0, count = 0;
	while (view->usage != NULL && count < FAULT_PODS_MAX &&
	       (holder = usage_next_holder(view->usage, place->gpu, &at)) != NULL) {
		if (holder->pod[0] == '\0' || !is_there(holder, place) ||
		    is_told_before(view, place, at, holder->pod_uid))
			continue;
		buf_printf(out, "%s{\"namespace\":", before);
		buf_put_json(out, str_of(holder->namespace_));
		buf_put_c(out, ",\"name\":");
		buf_put_json(out, str_of(holder->pod));
		buf_put_c(out, ",\"uid\":");
		buf_put_json(out, str_of(holder->pod_uid));
		buf_put_c(out, "}");
		before = ",";
		count++;
	}
	if (before[1] == '\0')
		buf_put_c(out, "]");
}

static void put_fault(struct buf *out, const struct node_view *view, const struct health *health,
		      const struct monitor_since *since, const struct fault_place *place)
{
	char text[TIME_TEXT_BYTES];
	buf_printf(out, ",\"fault\":{\"kind\":\"%s\",\"state\":\"%s\",\"dead\":%s",
		   health_fault_name(health->fault), health_state_name(health->state),
		   health_is_dead(health) ? "true" : "false");
	if (since->bad_since_s > 0)
		buf_printf(out, ",\"since\":\"%s\"", time_format(since->bad_since_s, text));
	put_pods_of(out, view, place);
	buf_put_c(out, "}");
}

static void put_part(struct buf *out, const struct node_view *view, size_t slot, uint32_t i)
{
	const struct monitor_gpu *gpu = &view->gpus[slot];
	const struct mig_instance *instance = &gpu->mig.instances[i];
	const struct offer_part *parts = view->shares[slot].parts;
	const char *held_back = parts == NULL ? NULL : parts[i].held_back;
	bool is_healthy = monitor_is_part_offered(gpu, i) && held_back == NULL &&
			  view->shares[slot].held_back == NULL;
	buf_put_c(out, "{\"uuid\":");
	buf_put_json(out, str_of(instance->uuid));
	buf_put_c(out, ",\"profile\":");
	buf_put_json(out, str_of(instance->profile));
	buf_printf(out,
		   ",\"gpuInstance\":%" PRIu32 ",\"computeInstance\":%" PRIu32 ",\"start\":%" PRIu32
		   ",\"slices\":%" PRIu32 ",\"memoryMiB\":%" PRIu64,
		   instance->gi, instance->ci, instance->start, instance->slices,
		   instance->memory_mib);
	if (view->has_layout && parts != NULL && parts[i].resource[0] != '\0') {
		buf_put_c(out, ",\"resource\":");
		buf_put_json(out, str_of(parts[i].resource));
		if (parts[i].replicas > 1)
			buf_printf(out, ",\"replicas\":%" PRIu32, parts[i].replicas);
	}
	buf_printf(out, ",\"healthy\":%s", is_healthy ? "true" : "false");
	if (!is_healthy) {
		const char *reason = !monitor_is_part_offered(gpu, i) ? monitor_part_reason(gpu, i)
				     : held_back != NULL              ? held_back
							 : view->shares[slot].held_back;
		buf_put_c(out, ",\"reason\":");
		buf_put_json(out, str_of(reason));
	}
	if (!health_is_offered(&gpu->parts[i].health)) {
		const struct fault_place place = { gpu->info.uuid, 1U << instance->start };
		put_fault(out, view, &gpu->parts[i].health, &gpu->parts[i].since, &place);
	}
	buf_put_c(out, "}");
}

// What a layout could make of the GPU, in MIG mode or not.
static void put_profiles(struct buf *out, const struct mig_state *mig)
{
	for (uint32_t i = 0; i < mig->profile_count; i++) {
		buf_put_c(out, i == 0 ? ",\"migProfiles\":[" : ",");
		buf_put_json(out, str_of(mig->profiles[i].name));
	}
	if (mig->profile_count > 0)
		buf_put_c(out, "]");
}

static void put_parts(struct buf *out, const struct node_view *view, size_t slot)
{
	const struct mig_state *mig = &view->gpus[slot].mig;
	const char *before = ",\"mig\":[";
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].uuid[0] == '\0')
			continue;
		buf_put_c(out, before);
		put_part(out, view, slot, i);
		before = ",";
	}
	if (before[1] == '\0')
		buf_put_c(out, "]");
}

static void put_device(struct buf *out, const struct node_view *view, size_t slot)
{
	const struct monitor_gpu *gpu = &view->gpus[slot];
	const struct node_share *share = &view->shares[slot];
	const struct gpu_info *info = &gpu->info;
	bool is_healthy = health_is_offered(&gpu->health) && share->held_back == NULL;
	buf_put_c(out, "{\"uuid\":");
	buf_put_json(out, str_of(info->uuid));
	buf_printf(out, ",\"index\":%" PRIu32 ",\"minor\":%" PRIu32 ",\"model\":", info->index,
		   info->minor);
	buf_put_json(out, str_of(info->model));
	buf_printf(out,
		   ",\"memoryMiB\":%" PRIu64 ",\"computeCapability\":\"%" PRIu32 ".%" PRIu32
		   "\",\"pciBusID\":",
		   gpu_memory_mib(info), info->compute_major, info->compute_minor);
	buf_put_json(out, str_of(info->pci_bus_id));
	if (info->numa_node >= 0)
		buf_printf(out, ",\"numaNode\":%" PRId32, info->numa_node);
	buf_printf(out, ",\"migCapable\":%s", info->mig_capable ? "true" : "false");
	if (info->mig_enabled)
		buf_put_c(out, ",\"migEnabled\":true");
	put_profiles(out, &gpu->mig);
	put_parts(out, view, slot);
	put_links(out, view, info);
	if (view->has_layout && share->resource != NULL && share->resource[0] != '\0') {
		buf_put_c(out, ",\"resource\":");
		buf_put_json(out, str_of(share->resource));
		if (share->replicas > 1)
			buf_printf(out, ",\"replicas\":%" PRIu32, share->replicas);
		if (share->milli > 0)
			buf_printf(out, ",\"milli\":%" PRIu32, share->milli);
	}
	buf_printf(out, ",\"healthy\":%s", is_healthy ? "true" : "false");
	// A passing doubt is not worth a write.
	if (!is_healthy) {
		buf_put_c(out, ",\"reason\":");
		buf_put_json(out, str_of(health_is_offered(&gpu->health) ? share->held_back
									 : gpu->health.reason));
	}
	if (!health_is_offered(&gpu->health))
		put_fault(out, view, &gpu->health, &gpu->since,
			  &(struct fault_place){ info->uuid, 0 });
	buf_put_c(out, "}");
}

struct condition {
	const char *good, *bad;
	char message[256];
	bool is_true;
};

static const char *const condition_types[NODE_CONDITIONS] = {
	"DriverReady",        "DevicePluginRegistered", "DevicesHealthy",
	"VersionsCompatible", "SharesOffered",          "MIGLayoutApplied"
};

const char *node_object_condition_type(size_t condition)
{
	ASSERT(condition < NODE_CONDITIONS);
	return condition_types[condition];
}

static size_t find_problems(const struct node_view *view,
			    struct compat_finding ret[COMPAT_FINDINGS_MAX])
{
	const struct gpu_info *gpus[GPU_MAX];
	struct compat_facts facts = { .driver = view->driver->driver_version,
				      .cuda = view->driver->cuda_version,
				      .kubelet = view->versions.kubelet,
				      .runtime = view->versions.runtime,
				      .toolkit = view->versions.toolkit,
				      .gpus = gpus };
	ASSERT(view->count <= GPU_MAX);
	for (size_t i = 0; i < view->count; i++) {
		if (view->gpus[i].is_known)
			gpus[facts.gpu_count++] = &view->gpus[i].info;
	}
	return compat_check(&facts, ret);
}

static void fill_versions(const struct node_view *view, struct condition *out)
{
	struct compat_finding findings[COMPAT_FINDINGS_MAX];
	const struct compat_finding *worst = NULL;
	size_t count = find_problems(view, findings);
	for (size_t i = 0; i < count && worst == NULL; i++) {
		if (findings[i].level == COMPAT_ERROR)
			worst = &findings[i];
	}
	*out = (struct condition){ .good = "NoKnownProblem",
				   .bad = "KnownProblem",
				   .is_true = worst == NULL };
	if (worst == NULL)
		(void)snprintf(out->message, sizeof out->message, "%zu warnings", count);
	else
		(void)snprintf(out->message, sizeof out->message, "%s %.40s: %s: %.120s",
			       compat_component_name(worst->component), worst->version, worst->code,
			       worst->text);
}

// Whether a layout of MIG devices is wanted here; it may stand nowhere yet.
static bool has_mig_config(const struct node_view *view)
{
	return view->apply != NULL && view->apply->name[0] != '\0';
}

static void fill_layout_condition(const struct node_view *view, struct condition *out)
{
	const char *state = has_mig_config(view) ? mig_apply_state(view->apply) : "";
	*out = (struct condition){ .good = "Applied",
				   .bad = "Failed",
				   .is_true = strcmp(state, "failed") != 0 };
	if (has_mig_config(view))
		(void)snprintf(out->message, sizeof out->message, "%.60s: %s%s%.160s",
			       view->apply->name, state, view->apply->reason[0] == '\0' ? "" : ", ",
			       view->apply->reason);
}

static void fill_conditions(const struct node_view *view, struct condition out[NODE_CONDITIONS])
{
	size_t known = 0, healthy = 0;
	for (size_t i = 0; i < view->count; i++) {
		known += view->gpus[i].is_known ? 1 : 0;
		healthy += view->gpus[i].is_known && health_is_offered(&view->gpus[i].health) &&
			   view->shares[i].held_back == NULL;
	}
	out[0] = (struct condition){ .good = "DriverAnswers",
				     .bad = "DriverDoesNotAnswer",
				     .is_true = view->is_driver_up };
	out[1] = (struct condition){ .good = "Registered",
				     .bad = "NotRegistered",
				     .is_true = view->is_registered };
	out[2] = (struct condition){ .good = "AllHealthy",
				     .bad = "SomeUnhealthy",
				     .is_true = known == healthy };
	(void)snprintf(out[0].message, sizeof out[0].message, "driver %.60s",
		       view->driver->driver_version);
	(void)snprintf(out[1].message, sizeof out[1].message, "resource %.60s", view->resource);
	(void)snprintf(out[2].message, sizeof out[2].message, "%zu of %zu devices are healthy",
		       healthy, known);
	fill_versions(view, &out[3]);
	fill_layout_condition(view, &out[5]);
	out[4] = (struct condition){ .good = "Offered",
				     .bad = "NotOffered",
				     .is_true = view->shares_why == NULL };
	(void)snprintf(out[4].message, sizeof out[4].message, "%.200s",
		       view->shares_why == NULL ? "gpuaas.io/gpu-milli and gpuaas.io/gpu-memory"
						: view->shares_why);
}

void node_object_conditions(const struct node_view *view, bool ret_is_true[NODE_CONDITIONS])
{
	struct condition conditions[NODE_CONDITIONS];
	fill_conditions(view, conditions);
	for (size_t i = 0; i < NODE_CONDITIONS; i++)
		ret_is_true[i] = conditions[i].is_true;
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	if (text[0] == '\0')
		return;
	buf_printf(out, ",\"%s\":", key);
	buf_put_json(out, str_of(text));
}

static void put_versions(struct buf *out, const struct node_view *view)
{
	uint32_t cuda = view->driver->cuda_version;
	put_text(out, "driverVersion", view->driver->driver_version);
	if (cuda > 0)
		buf_printf(out, ",\"cudaVersion\":\"%" PRIu32 ".%" PRIu32 "\"", cuda / 1000,
			   cuda % 1000 / 10);
	put_text(out, "kubeletVersion", view->versions.kubelet);
	put_text(out, "containerRuntimeVersion", view->versions.runtime);
	put_text(out, "containerToolkitVersion", view->versions.toolkit);
	put_text(out, "agentVersion", GPUAAS_VERSION);
}

static void put_problems(struct buf *out, const struct node_view *view)
{
	struct compat_finding findings[COMPAT_FINDINGS_MAX];
	size_t count = find_problems(view, findings);
	buf_put_c(out, ",\"versionProblems\":[");
	for (size_t i = 0; i < count; i++) {
		const struct compat_finding *finding = &findings[i];
		buf_printf(out, "%s{\"component\":\"%s\",\"level\":\"%s\",\"code\":\"%s\"",
			   i == 0 ? "" : ",", compat_component_name(finding->component),
			   compat_level_name(finding->level), finding->code);
		put_text(out, "version", finding->version);
		put_text(out, "message", finding->text);
		put_text(out, "source", finding->source);
		buf_put_c(out, "}");
	}
	buf_put_c(out, "]");
}

static void put_condition(struct buf *out, const char *type, const struct condition *condition,
			  const char *since)
{
	buf_printf(out, "{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":", type,
		   condition->is_true ? "True" : "False",
		   condition->is_true ? condition->good : condition->bad);
	buf_put_json(out, str_of(condition->message));
	buf_printf(out, ",\"lastTransitionTime\":\"%s\"}", since);
}

static void put_layout(struct buf *out, const struct node_view *view)
{
	buf_printf(out, ",\"layout\":{\"sharing\":\"%s\",\"mig\":\"%s\"",
		   gpu_sharing_name(view->sharing), gpu_mig_strategy_name(view->mig));
	if (view->problem != NULL)
		put_text(out, "problem", view->problem);
	if (view->memory_limit != NULL)
		put_text(out, "shareMemoryLimit", view->memory_limit);
	if (has_mig_config(view)) {
		put_text(out, "migConfig", view->apply->name);
		put_text(out, "migConfigState", mig_apply_state(view->apply));
		put_text(out, "migConfigReason", view->apply->reason);
	}
	buf_put_c(out, "}");
}

void node_object_put_status(struct buf *out, const struct node_view *view,
			    const char *const conditions_t[NODE_CONDITIONS])
{
	struct condition conditions[NODE_CONDITIONS];
	const char *before = "";
	fill_conditions(view, conditions);
	put_head(out, view);
	buf_put_c(out, ",\"status\":{\"devices\":[");
	for (size_t i = 0; i < view->count; i++) {
		if (!view->gpus[i].is_known)
			continue;
		buf_put_c(out, before);
		put_device(out, view, i);
		before = ",";
	}
	buf_put_c(out, "]");
	put_versions(out, view);
	if (view->has_layout)
		put_layout(out, view);
	put_problems(out, view);
	buf_put_c(out, ",\"conditions\":[");
	for (size_t i = 0; i < NODE_CONDITIONS; i++) {
		bool is_none = (i == 4 && view->memory_limit == NULL) ||
			       (i == 5 && !has_mig_config(view));
		if (is_none)
			continue;
		buf_put_c(out, i == 0 ? "" : ",");
		put_condition(out, condition_types[i], &conditions[i], conditions_t[i]);
	}
	buf_put_c(out, "]}}");
}

static size_t list_migs(const struct node_view *view, struct gpu_label_mig ret[GPU_MIGS_MAX])
{
	size_t count = 0;
	for (size_t slot = 0; slot < view->count; slot++) {
		const struct monitor_gpu *gpu = &view->gpus[slot];
		const struct offer_part *parts = view->shares[slot].parts;
		for (uint32_t i = 0; gpu->is_known && i < gpu->mig.instance_count; i++) {
			const struct mig_instance *from = &gpu->mig.instances[i];
			if (from->uuid[0] == '\0' || count == GPU_MIGS_MAX)
				continue;
			struct gpu_label_mig *to = &ret[count++];
			*to = (struct gpu_label_mig){
				.parent = &gpu->info,
				.memory_mib = from->memory_mib,
				.multiprocessors = from->multiprocessors,
				.gi_slices = from->slices,
				.ci_slices = from->slices,
				.copy_engines = from->copy_engines,
				.decoders = from->decoders,
				.encoders = from->encoders,
				.jpegs = from->jpegs,
				.ofas = from->ofas,
				.replicas = parts == NULL ? 0 : parts[i].replicas,
				.is_renamed = parts != NULL &&
					      str_ends(str_of(parts[i].resource), STR(".shared")),
			};
			memcpy(to->profile, from->profile, sizeof to->profile);
		}
	}
	return count;
}

void node_object_put_labels(struct buf *out, const struct node_view *view, int64_t timestamp_s)
{
	struct gpu_label_gpu gpus[GPU_MAX];
	struct gpu_labels labels;
	struct gpu_label_facts facts = { .gpus = gpus,
					 .driver_version = view->driver->driver_version,
					 .cuda_version = view->driver->cuda_version,
					 .machine = view->machine == NULL ? "" : view->machine,
					 .sharing = view->sharing,
					 .mig = view->mig,
					 .timestamp_s = timestamp_s };
	ASSERT(view->count <= GPU_MAX);
	for (size_t i = 0; i < view->count; i++) {
		if (!view->gpus[i].is_known)
			continue;
		struct gpu_label_gpu *gpu = &gpus[facts.gpu_count++];
		*gpu = (struct gpu_label_gpu){ .info = &view->gpus[i].info,
					       .replicas = view->shares[i].replicas,
					       .is_renamed = view->shares[i].is_renamed };
	}
	struct gpu_label_mig migs[GPU_MIGS_MAX];
	facts.migs = migs;
	facts.mig_count = list_migs(view, migs);
	gpu_labels_make(&facts, &labels);
	buf_put_c(out, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":");
	buf_put_json(out, str_of(view->node));
	buf_put_c(out, ",\"labels\":{");
	for (size_t i = 0; i < labels.count; i++) {
		buf_printf(out, "%s\"nvidia.com/%s\":", i == 0 ? "" : ",", labels.items[i].name);
		buf_put_json(out, str_of(labels.items[i].value));
	}
	if (has_mig_config(view))
		buf_printf(out, ",\"nvidia.com/mig.config.state\":\"%s\"",
			   mig_apply_state(view->apply));
	buf_put_c(out, "}}}");
}
