// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_wire.h"

#define HEAD_BYTES offsetof(struct nvml_reply, body)

size_t nvml_reply_bytes(uint32_t type)
{
	switch (type) {
	case NVML_SAY_HELLO: return HEAD_BYTES + sizeof(struct nvml_hello);
	case NVML_SAY_INFO: return HEAD_BYTES + sizeof(struct gpu_info);
	case NVML_SAY_PROBE: return HEAD_BYTES + sizeof(struct nvml_probe);
	case NVML_SAY_READING: return HEAD_BYTES + sizeof(struct gpu_reading);
	case NVML_SAY_PROCESSES: return HEAD_BYTES + sizeof(struct nvml_processes);
	case NVML_SAY_MIG: return HEAD_BYTES + sizeof(struct mig_state);
	case NVML_SAY_MIG_CHANGED: return HEAD_BYTES + sizeof(struct nvml_probe);
	case NVML_SAY_XID: return HEAD_BYTES + sizeof(struct nvml_xid);
	case NVML_SAY_EVENTS: return HEAD_BYTES;
	default: return 0;
	}
}

uint32_t nvml_answer_of(uint32_t ask)
{
	ASSERT(ask >= NVML_ASK_OPEN && ask < NVML_ASK_END);
	static const uint32_t answers[] = {
		[NVML_ASK_OPEN] = NVML_SAY_INFO,    [NVML_ASK_PROBE] = NVML_SAY_PROBE,
		[NVML_ASK_READ] = NVML_SAY_READING, [NVML_ASK_PROCESSES] = NVML_SAY_PROCESSES,
		[NVML_ASK_MIG] = NVML_SAY_MIG,      [NVML_ASK_MIG_CHANGE] = NVML_SAY_MIG_CHANGED,
	};
	return answers[ask];
}

bool nvml_request_check(const void *data, size_t size_bytes, struct nvml_request *ret)
{
	struct nvml_request request;
	if (size_bytes != sizeof request)
		return false;
	memcpy(&request, data, sizeof request);
	if (request.magic != NVML_WIRE_MAGIC || request.type < NVML_ASK_OPEN ||
	    request.type >= NVML_ASK_END || request.slot >= GPU_MAX || request.index >= GPU_MAX)
		return false;
	if (request.type == NVML_ASK_MIG_CHANGE &&
	    (request.change.op < NVML_MIG_MODE || request.change.op > NVML_MIG_DESTROY))
		return false;
	*ret = request;
	return true;
}

static bool is_text(const char *text, size_t size_bytes)
{
	size_t len = strnlen(text, size_bytes);
	return len < size_bytes && str_is_utf8((struct str){ text, len });
}

static bool check_hello(const struct nvml_hello *hello)
{
	return is_text(hello->text, sizeof hello->text) &&
	       is_text(hello->driver_version, sizeof hello->driver_version) &&
	       is_text(hello->library_version, sizeof hello->library_version) &&
	       hello->gpu_count <= GPU_MAX;
}

static bool check_info(const struct nvml_reply *reply)
{
	const struct gpu_info *info = &reply->body.info;
	if (!is_text(info->uuid, sizeof info->uuid) || !is_text(info->model, sizeof info->model) ||
	    !is_text(info->pci_bus_id, sizeof info->pci_bus_id) ||
	    !is_text(info->clique, sizeof info->clique) || info->link_count > GPU_LINKS_MAX)
		return false;
	for (uint32_t i = 0; i < info->link_count; i++) {
		if (!is_text(info->links[i].pci_bus_id, sizeof info->links[i].pci_bus_id))
			return false;
	}
	unsigned char mig[2] = { 0 }; // a bool from outside may hold what no bool holds
	memcpy(&mig[0], &info->mig_capable, 1);
	memcpy(&mig[1], &info->mig_enabled, 1);
	if (mig[0] > 1 || mig[1] > 1)
		return false;
	return reply->status != 0 || gpu_is_uuid(str_of(info->uuid));
}

static bool check_body(const struct nvml_reply *reply)
{
	switch (reply->type) {
	case NVML_SAY_HELLO: return check_hello(&reply->body.hello);
	case NVML_SAY_INFO: return check_info(reply);
	case NVML_SAY_MIG: return mig_state_check(&reply->body.mig);
	case NVML_SAY_MIG_CHANGED:
	case NVML_SAY_PROBE: return is_text(reply->body.probe.text, sizeof reply->body.probe.text);
	case NVML_SAY_READING: return (reply->body.reading.valid >> GPU_FIELD_COUNT) == 0;
	case NVML_SAY_PROCESSES: return reply->body.processes.count <= NVML_PROCESSES_MAX;
	case NVML_SAY_XID: return reply->body.xid.xid <= UINT32_MAX;
	default: return true;
	}
}

bool nvml_reply_check(const void *data, size_t size_bytes, struct nvml_reply *ret)
{
	struct nvml_reply reply;
	if (size_bytes < HEAD_BYTES || size_bytes > sizeof reply)
		return false;
	memset(&reply, 0, sizeof reply);
	memcpy(&reply, data, size_bytes);
	if (reply.magic != NVML_WIRE_MAGIC || nvml_reply_bytes(reply.type) != size_bytes)
		return false;
	bool is_about_all = reply.type == NVML_SAY_HELLO || reply.type == NVML_SAY_EVENTS;
	bool may_be_about_all = is_about_all || reply.type == NVML_SAY_XID;
	if (reply.slot >= GPU_MAX && !(may_be_about_all && reply.slot == NVML_SLOT_NONE))
		return false;
	if (!check_body(&reply))
		return false;
	memcpy(ret, &reply, sizeof reply);
	return true;
}
