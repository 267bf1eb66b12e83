// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/energy.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

enum { EPOCH_BYTES = ENERGY_BOOT_BYTES + 11 }; // "BOOT-4294967295"

void energy_init(struct energy *energy, const char *boot_id)
{
	*energy = (struct energy){ 0 };
	(void)snprintf(energy->boot, sizeof energy->boot, "%.8s", boot_id);
}

static size_t index_of(const struct energy *energy, const char *uuid)
{
	for (size_t i = 0; i < energy->count; i++) {
		if (strcmp(energy->gpus[i].uuid, uuid) == 0)
			return i;
	}
	return SIZE_MAX;
}

bool energy_knows(const struct energy *energy, const char *uuid)
{
	return index_of(energy, uuid) != SIZE_MAX;
}

static struct energy_gpu *find_or_add(struct energy *energy, const char *uuid)
{
	size_t i = index_of(energy, uuid);
	if (i != SIZE_MAX)
		return &energy->gpus[i];
	i = energy->count;
	if (i < GPU_MAX) {
		energy->count++;
	} else { // boards come and go: the one not heard of for longest gives its place
		i = 0;
		for (size_t j = 1; j < GPU_MAX; j++)
			i = energy->gpus[j].last_t_s < energy->gpus[i].last_t_s ? j : i;
	}
	struct energy_gpu *gpu = &energy->gpus[i];
	*gpu = (struct energy_gpu){ 0 };
	(void)snprintf(gpu->uuid, sizeof gpu->uuid, "%s", uuid);
	return gpu;
}

// "BOOT-N"
static void epoch_text(const char *boot, uint32_t epoch, char *out, size_t out_bytes)
{
	(void)snprintf(out, out_bytes, "%s-%" PRIu32, boot, epoch);
}

bool energy_row(struct energy *energy, const char *uuid, uint64_t mj, int64_t t_s,
		struct usage_event *ret, bool *ret_is_reset)
{
	size_t i = index_of(energy, uuid);
	const struct energy_gpu *gpu = i == SIZE_MAX ? NULL : &energy->gpus[i];
	uint32_t epoch = 1;
	*ret_is_reset = false;
	if (gpu != NULL && t_s <= gpu->last_t_s)
		return false;
	if (gpu != NULL) {
		bool is_same_boot = strcmp(gpu->boot, energy->boot) == 0;
		*ret_is_reset = !is_same_boot || mj < gpu->last_mj;
		epoch = !is_same_boot ? 1 : gpu->epoch + (*ret_is_reset ? 1 : 0);
	}
	struct usage_event row = { .type = EVENT_ENERGY, .t_s = t_s, .energy_mj = mj };
	(void)snprintf(row.gpu, sizeof row.gpu, "%s", uuid);
	epoch_text(energy->boot, epoch, row.epoch, sizeof row.epoch);
	*ret = row;
	return true;
}

static bool parse_epoch(struct str text, char boot[ENERGY_BOOT_BYTES], uint32_t *ret_epoch)
{
	uint64_t epoch = 0;
	size_t dash = str_find_byte(text, '-', 0);
	if (dash == SIZE_MAX || dash >= ENERGY_BOOT_BYTES ||
	    !str_to_u64(str_slice(text, dash + 1, text.len), &epoch) || epoch > UINT32_MAX)
		return false;
	memcpy(boot, text.data, dash);
	boot[dash] = '\0';
	*ret_epoch = (uint32_t)epoch;
	return true;
}

void energy_taken(struct energy *energy, const struct usage_event *row)
{
	char boot[ENERGY_BOOT_BYTES];
	uint32_t epoch = 0;
	if (!parse_epoch(str_of(row->epoch), boot, &epoch))
		return;
	struct energy_gpu *gpu = find_or_add(energy, row->gpu);
	memcpy(gpu->boot, boot, sizeof boot);
	gpu->epoch = epoch;
	gpu->last_mj = row->energy_mj;
	gpu->last_t_s = row->t_s;
}

void energy_load_event(struct energy *energy, const struct usage_event *event)
{
	if (event->type == EVENT_ENERGY)
		energy_taken(energy, event);
}

void energy_save(const struct energy *energy, struct buf *out)
{
	for (size_t i = 0; i < energy->count; i++) {
		const struct energy_gpu *gpu = &energy->gpus[i];
		char epoch[EPOCH_BYTES];
		epoch_text(gpu->boot, gpu->epoch, epoch, sizeof epoch);
		buf_put_c(out, "{\"counter\":1,\"gpu\":");
		buf_put_json(out, str_of(gpu->uuid));
		buf_put_c(out, ",\"epoch\":");
		buf_put_json(out, str_of(epoch));
		buf_printf(out, ",\"mj\":\"%" PRIu64 "\",\"t\":%" PRId64 "}\n", gpu->last_mj,
			   gpu->last_t_s);
	}
}

void energy_load_line(struct energy *energy, struct str line)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct usage_event row = { .type = EVENT_ENERGY };
	if (json_parse(line, &object, NULL) != ERR_OK || json_int(object, "counter", 0) != 1)
		return; // a line of another part
	row.t_s = json_int(object, "t", 0);
	struct str uuid = json_text(object, "gpu");
	if (gpu_is_uuid(uuid) && usage_text(row.gpu, sizeof row.gpu, uuid) &&
	    usage_text(row.epoch, sizeof row.epoch, json_text(object, "epoch")) &&
	    str_to_u64(json_text(object, "mj"), &row.energy_mj))
		energy_taken(energy, &row);
}
