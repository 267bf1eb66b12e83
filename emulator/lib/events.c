// SPDX-License-Identifier: Apache-2.0
// Event sets. A set is one open connection to the daemon, which keeps its queue; a slot of a
// static table stands for it, so that a stale or foreign pointer is noticed. A set belongs to
// the process that made it: a forked child cannot use it, as with the real driver.
#include "emulator/lib/client.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SET_MAX = 64 };
enum set_state { SET_FREE = 0, SET_IDLE, SET_BUSY };

struct nvml_event_set {
	atomic_int state;
	int fd;
	pid_t owner;
};

static struct nvml_event_set sets[SET_MAX];

// Takes the set for one operation; set_release gives it back.
static nvml_return set_take(struct nvml_event_set *set)
{
	uintptr_t at = (uintptr_t)set, first = (uintptr_t)sets;
	int expected = SET_IDLE;

	nvml_return bad = client_bad_argument();
	if (bad == NVML_ERROR_UNINITIALIZED)
		return bad;
	if (at < first || at >= first + sizeof(sets) || (at - first) % sizeof(sets[0]) != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!atomic_compare_exchange_strong(&set->state, &expected, SET_BUSY))
		return expected == SET_BUSY ? NVML_ERROR_IN_USE : NVML_ERROR_INVALID_ARGUMENT;
	if (set->owner == getpid())
		return NVML_SUCCESS;
	atomic_store(&set->state, SET_IDLE);
	return NVML_ERROR_INVALID_ARGUMENT;
}

static void set_release(struct nvml_event_set *set) { atomic_store(&set->state, SET_IDLE); }

static nvml_return set_ask(const struct nvml_event_set *set, const struct wire_request *request,
			   struct wire_reply *ret)
{
	int saved_errno = errno;
	nvml_return result = client_ask(set->fd, request, ret);

	errno = saved_errno;
	return result;
}

NVML_CALL(nvmlEventSetCreate, (struct nvml_event_set * *ret_set))
{
	struct wire_request request = client_request(WIRE_EVENTS_ADD, "nvmlEventSetCreate");
	struct wire_reply reply;

	nvml_return bad = client_bad_argument();
	if (ret_set == NULL || bad == NVML_ERROR_UNINITIALIZED)
		return bad;
	for (size_t i = 0; i < SET_MAX; i++) {
		int expected = SET_FREE;
		if (!atomic_compare_exchange_strong(&sets[i].state, &expected, SET_BUSY))
			continue;
		sets[i].owner = getpid();
		sets[i].fd = client_connect();
		nvml_return result = sets[i].fd < 0 ? NVML_ERROR_UNKNOWN
						    : set_ask(&sets[i], &request, &reply);
		if (result == NVML_SUCCESS) {
			set_release(&sets[i]);
			*ret_set = &sets[i];
			return NVML_SUCCESS;
		}
		if (sets[i].fd >= 0)
			close(sets[i].fd);
		atomic_store(&sets[i].state, SET_FREE);
		return result;
	}
	return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

NVML_CALL(nvmlEventSetFree, (struct nvml_event_set * set))
{
	nvml_return result = set_take(set);

	if (result != NVML_SUCCESS)
		return result;
	close(set->fd);
	atomic_store(&set->state, SET_FREE);
	return NVML_SUCCESS;
}

NVML_CALL(nvmlDeviceGetSupportedEventTypes,
	  (const struct nvml_device *device, uint64_t *ret_event_types))
{
	struct wire_gpu gpu;

	if (ret_event_types == NULL)
		return client_bad_argument();
	nvml_return result = client_gpu(device, "nvmlDeviceGetSupportedEventTypes", &gpu);
	if (result == NVML_SUCCESS)
		*ret_event_types = NVML_EVENT_XID_CRITICAL | NVML_EVENT_SINGLE_BIT_ECC |
				   NVML_EVENT_DOUBLE_BIT_ECC;
	return result;
}

NVML_CALL(nvmlDeviceRegisterEvents,
	  (const struct nvml_device *device, uint64_t event_types, struct nvml_event_set *set))
{
	const uint64_t supported = NVML_EVENT_XID_CRITICAL | NVML_EVENT_SINGLE_BIT_ECC |
				   NVML_EVENT_DOUBLE_BIT_ECC;
	struct wire_request request = client_request(WIRE_EVENTS_ADD, "nvmlDeviceRegisterEvents");
	struct wire_reply reply;

	if (!client_slot(device, &request.slot))
		return client_bad_argument();
	if ((event_types & ~supported) != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	nvml_return result = set_take(set);
	if (result != NVML_SUCCESS)
		return result;
	request.event_types = event_types;
	result = set_ask(set, &request, &reply);
	set_release(set);
	return result;
}

NVML_CALL(nvmlEventSetWait_v2,
	  (struct nvml_event_set * set, struct nvml_event_data *ret_data, uint32_t timeout_ms))
{
	struct wire_request request = client_request(WIRE_EVENTS_WAIT, "nvmlEventSetWait_v2");
	struct wire_reply reply;

	if (ret_data == NULL)
		return client_bad_argument();
	nvml_return result = set_take(set);
	if (result != NVML_SUCCESS)
		return result;
	request.timeout_ms = timeout_ms;
	result = set_ask(set, &request, &reply);
	set_release(set);
	if (result != NVML_SUCCESS)
		return result;
	if (client_device(reply.body.event.slot) == NULL)
		return NVML_ERROR_UNKNOWN;
	*ret_data = (struct nvml_event_data){
		.device = client_device(reply.body.event.slot),
		.event_type = reply.body.event.event_type,
		.event_data = reply.body.event.event_data,
		.gpu_instance_id = reply.body.event.gpu_instance_id,
		.compute_instance_id = reply.body.event.compute_instance_id,
	};
	return NVML_SUCCESS;
}

// The first version's structure ends before the instance ids.
NVML_CALL(nvmlEventSetWait,
	  (struct nvml_event_set * set, struct nvml_event_data *ret_data, uint32_t timeout_ms))
{
	struct nvml_event_data data;

	if (ret_data == NULL)
		return client_bad_argument();
	nvml_return result = nvmlEventSetWait_v2(set, &data, timeout_ms);
	if (result != NVML_SUCCESS)
		return result;
	ret_data->device = data.device;
	ret_data->event_type = data.event_type;
	ret_data->event_data = data.event_data;
	return NVML_SUCCESS;
}
