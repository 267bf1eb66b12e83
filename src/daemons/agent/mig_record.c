// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/mig_record.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const phases[] = { [MIG_IDLE] = "ended",
				      [MIG_FENCING] = "begun",
				      [MIG_CHANGING] = "begun",
				      [MIG_UNDOING] = "undoing" };

void mig_record_put(struct buf *out, const struct mig_apply *apply)
{
	buf_put_c(out, "{\"layout\":");
	buf_put_json(out, str_of(apply->ran));
	buf_printf(out, ",\"phase\":\"%s\",\"outcome\":\"%s\",\"interrupts\":%" PRIu32,
		   phases[apply->phase], mig_apply_state(apply), apply->interrupts);
	buf_put_c(out, ",\"reason\":");
	buf_put_json(out, str_of(apply->reason));
	buf_put_c(out, ",\"before\":[");
	for (uint32_t i = 0; apply->phase != MIG_IDLE && i < apply->gpu_count; i++) {
		const struct mig_run_gpu *gpu = &apply->gpus[i];
		buf_printf(out, "%s{\"uuid\":", i == 0 ? "" : ",");
		buf_put_json(out, str_of(gpu->uuid));
		buf_printf(out, ",\"enabled\":%s,\"instances\":[",
			   gpu->before.is_enabled ? "true" : "false");
		for (uint32_t j = 0; j < gpu->before.count; j++)
			buf_printf(out, "%s{\"profile\":%" PRIu32 ",\"start\":%" PRIu32 "}",
				   j == 0 ? "" : ",", gpu->before.places[j].profile_id,
				   gpu->before.places[j].start);
		buf_put_c(out, "]}");
	}
	buf_put_c(out, "]}\n");
}

static bool copy(char *out, size_t out_bytes, struct str text)
{
	if (text.len >= out_bytes)
		return false;
	(void)snprintf(out, out_bytes, STR_FMT, STR_ARG(text));
	return true;
}

static bool read_gpu(const json_t *object, struct mig_run_gpu *ret)
{
	struct mig_run_gpu gpu = { 0 };
	const json_t *list = json_at(object, "instances");
	struct str uuid = json_text(object, "uuid");
	if (!gpu_is_uuid(uuid) || !copy(gpu.uuid, sizeof gpu.uuid, uuid) || !json_is_array(list) ||
	    json_array_size(list) > MIG_INSTANCES_MAX)
		return false;
	gpu.before.is_enabled = json_bool(object, "enabled", false);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		int64_t profile = json_int(item, "profile", -1),
			start = json_int(item, "start", -1);
		if (profile < 0 || profile > UINT32_MAX || start < 0 || start >= MIG_SLICES_MAX)
			return false;
		gpu.before.places[gpu.before.count++] =
			(struct mig_place){ (uint32_t)profile, (uint32_t)start };
	}
	gpu.target = gpu.before;
	*ret = gpu;
	return true;
}

bool mig_record_read(struct str text, struct mig_apply *apply)
{
	AUTO(json_decrefp) json_t *root = NULL;
	struct mig_apply next = *apply;
	if (json_parse(text, &root, NULL) != ERR_OK || !json_is_object(root))
		return false;
	struct str phase = json_text(root, "phase"), outcome = json_text(root, "outcome");
	const json_t *list = json_at(root, "before");
	if (!copy(next.ran, sizeof next.ran, json_text(root, "layout")) ||
	    !copy(next.reason, sizeof next.reason, json_text(root, "reason")) ||
	    json_array_size(list) > GPU_MAX)
		return false;
	int64_t interrupts = json_int(root, "interrupts", 0);
	next.interrupts = interrupts < 0 || interrupts > MIG_INTERRUPTS_MAX ? MIG_INTERRUPTS_MAX
									    : (uint32_t)interrupts;
	next.phase = str_eq_c(phase, "ended") ? MIG_IDLE : MIG_UNDOING;
	next.outcome = str_eq_c(outcome, "success")  ? MIG_SUCCESS
		       : str_eq_c(outcome, "failed") ? MIG_FAILED
						     : MIG_NONE;
	next.gpu_count = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!read_gpu(json_array_get(list, i), &next.gpus[next.gpu_count++]))
			return false;
	}
	*apply = next;
	return true;
}
