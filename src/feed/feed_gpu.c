// SPDX-License-Identifier: Apache-2.0
// The annotations by which a pod says what GPU it needs, and the plan that answers them.
#include "base/quantity.h"
#include "base/timefmt.h"
#include "feed/spec_parts.h"

static struct str annotation(const struct build *build, const char *name)
{
	return kobj_pairs_get(&build->pod->meta.annotations, str_of(name));
}

static void refuse_annotation(struct build *build, const char *name, const char *wanted)
{
	struct str text = annotation(build, name);
	build_refuse(build, SCHED_CODE_INVALID_ANNOTATION, "%s must be %s, not \"%.*s\"", name,
		     wanted, (int)min_size(text.len, 60), text.data);
}

static void read_models(struct build *build)
{
	enum { MODELS_MAX = 32 };
	static const char NAME[] = "gpuaas.io/gpu-models";
	struct str rest = annotation(build, NAME), part;
	struct sched_spec *spec = build->spec;
	if (rest.data == NULL)
		return;
	spec->gpu_models = build_alloc(build, MODELS_MAX, sizeof *spec->gpu_models);
	if (spec->gpu_models == NULL)
		return;
	while (str_split_next(&rest, ',', &part)) {
		part = str_trim(part);
		if (part.len == 0)
			continue;
		if (spec->gpu_model_count == MODELS_MAX) {
			refuse_annotation(build, NAME, "a list of at most 32 models");
			return;
		}
		spec->gpu_models[spec->gpu_model_count++] = part;
	}
	if (spec->gpu_model_count == 0)
		refuse_annotation(build, NAME, "a comma list of models");
}

static void read_version(struct build *build, const char *name, struct sched_version *ret_version)
{
	struct str text = annotation(build, name);
	if (text.data != NULL && !sched_version_parse(str_trim(text), ret_version))
		refuse_annotation(build, name, "a version such as 535.104");
}

static void read_memory(struct build *build)
{
	enum { MIB = 1024 * 1024 };
	static const char NAME[] = "gpuaas.io/min-gpu-memory";
	struct str text = annotation(build, NAME);
	int64_t bytes;
	if (text.data == NULL)
		return;
	if (!quantity_to_units(str_trim(text), &bytes) || bytes < 0) {
		refuse_annotation(build, NAME, "a quantity such as 40Gi");
		return;
	}
	build->spec->gpu_memory_mib_min = bytes / MIB + (bytes % MIB != 0);
}

// Its value is of one pod, not of all that are alike (feed_pod); here it is only checked.
static void check_deadline(struct build *build)
{
	static const char NAME[] = "gpuaas.io/deadline";
	struct str text = annotation(build, NAME);
	int64_t deadline_s;
	if (text.data != NULL && !time_parse(text, &deadline_s, NULL))
		refuse_annotation(build, NAME, "a time such as 2026-12-31T18:00:00Z");
}

static void read_duration(struct build *build)
{
	static const char NAME[] = "gpuaas.io/duration";
	static const int64_t MAX_S = INT64_C(10) * 366 * 86400;
	struct str text = annotation(build, NAME);
	int64_t duration_s;
	if (text.data == NULL)
		return;
	if (!str_to_i64(text, &duration_s) || duration_s < 1 || duration_s > MAX_S)
		refuse_annotation(build, NAME, "whole seconds from 1 to ten years");
	else
		build->spec->duration_s = duration_s;
}

static bool is_label_key(struct str text)
{
	enum { KEY_MAX_BYTES = 317 };
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
			       c == '/';
		if (!is_good)
			return false;
	}
	return text.len > 0 && text.len <= KEY_MAX_BYTES;
}

static void read_topology(struct build *build)
{
	static const char NAME[] = "gpuaas.io/topology";
	struct str text = annotation(build, NAME);
	if (text.data == NULL)
		return;
	if (str_eq_c(text, "nvlink"))
		build->spec->topology = SCHED_NVLINK;
	else if (str_eq_c(text, "numa"))
		build->spec->topology = SCHED_NUMA;
	else if (is_label_key(text))
		build->spec->topology_label = text;
	else
		refuse_annotation(build, NAME, "nvlink, numa or the key of a node label");
}

void build_gpu(struct build *build)
{
	read_models(build);
	read_memory(build);
	read_duration(build);
	check_deadline(build);
	read_topology(build);
	read_version(build, "gpuaas.io/min-compute", &build->spec->compute_min);
	read_version(build, "gpuaas.io/min-driver", &build->spec->driver_min);
	read_version(build, "gpuaas.io/min-cuda", &build->spec->cuda_min);
}

void feed_plan_write(struct buf *out, const struct sched_grant *grants, size_t count)
{
	buf_put_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_put_c(out, i > 0 ? ",{\"container\":" : "{\"container\":");
		buf_put_json(out, grants[i].container);
		bool is_whole = grants[i].resource.len == 0;
		buf_put_c(out, ",\"resource\":");
		buf_put_json(out, is_whole ? STR(FEED_GPU_RESOURCE) : grants[i].resource);
		buf_put_c(out, ",\"uuid\":");
		buf_put_json(out, grants[i].uuid);
		buf_printf(out, ",\"milli\":%lld,\"memory_mib\":%lld}",
			   is_whole ? (long long)SHARE_WHOLE_MILLI : (long long)grants[i].milli,
			   (long long)grants[i].memory_mib);
	}
	buf_put_byte(out, ']');
}

bool feed_plan_read(struct arena *arena, struct str text, struct str **ret_uuids, size_t *ret_count)
{
	AUTO(json_decrefp) json_t *plan = NULL;
	if (text.len == 0 || json_parse(text, &plan, NULL) != ERR_OK || !json_is_array(plan))
		return false;
	size_t max = json_array_size(plan), count = 0;
	struct str *uuids = ARENA_ARRAY(arena, struct str, max);
	for (size_t i = 0; uuids != NULL && i < max; i++) {
		struct str uuid = json_text(json_array_get(plan, i), "uuid");
		if (uuid.len == 0)
			return false;
		share_kind kind;
		if (share_kind_of(json_text(json_array_get(plan, i), "resource"), &kind))
			continue;
		bool is_known = false; // an init container shares devices with the others
		for (size_t k = 0; k < count; k++)
			is_known = is_known || str_eq(uuids[k], uuid);
		if (!is_known)
			uuids[count++] = arena_dup(arena, uuid);
	}
	if (uuids == NULL || (count > 0 && uuids[count - 1].data == NULL))
		return false;
	*ret_uuids = uuids;
	*ret_count = count;
	return true;
}
