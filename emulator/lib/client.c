// SPDX-License-Identifier: Apache-2.0
#include "emulator/lib/client_mig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct nvml_device {
	char unused;
};

static struct nvml_device devices[WIRE_GPU_MAX];
static atomic_int init_count;

struct nvml_device *client_device(uint32_t slot)
{
	return slot < WIRE_GPU_MAX ? &devices[slot] : NULL;
}

bool client_slot(const struct nvml_device *device, uint32_t *ret_slot)
{
	uintptr_t at = (uintptr_t)device, first = (uintptr_t)devices;

	if (at < first || at >= first + sizeof(devices))
		return false;
	*ret_slot = (uint32_t)((at - first) / sizeof(devices[0]));
	return true;
}

nvml_return client_bad_argument(void)
{
	return atomic_load(&init_count) > 0 ? NVML_ERROR_INVALID_ARGUMENT
					    : NVML_ERROR_UNINITIALIZED;
}

// A path beyond the length of a socket address goes by way of an open folder.
static int connect_in(const char *dir, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int size = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir,
			    WIRE_LIBRARY_SOCKET);
	int dir_fd = -1;

	if (size < 0)
		return -1;
	if ((size_t)size >= sizeof(address.sun_path)) {
		dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd < 0)
			return -1;
		snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd,
			 WIRE_LIBRARY_SOCKET);
	}
	int result;
	do
		result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	while (result != 0 && errno == EINTR);
	if (dir_fd >= 0)
		close(dir_fd);
	return result;
}

int client_connect(void)
{
	const char *dir = secure_getenv("GPUAAS_EMU");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (dir == NULL || dir[0] == 0)
		dir = WIRE_DEFAULT_DIR;
	if (fd >= 0 && connect_in(dir, fd) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

struct wire_request client_request(enum wire_op op, const char *call)
{
	struct wire_request request = { .magic = WIRE_MAGIC,
					.op = (uint32_t)op,
					.slot = WIRE_NO_SLOT };

	snprintf(request.call, sizeof(request.call), "%s", call);
	return request;
}

static size_t body_size(uint32_t op)
{
	switch ((enum wire_op)op) {
	case WIRE_HELLO:
	case WIRE_SYSTEM: return sizeof(struct wire_system);
	case WIRE_GPU:
	case WIRE_FIND_INDEX:
	case WIRE_FIND_UUID:
	case WIRE_FIND_SERIAL:
	case WIRE_FIND_PCI: return sizeof(struct wire_gpu);
	case WIRE_PROCESSES: return SIZE_MAX;
	case WIRE_GPM: return sizeof(struct wire_gpm);
	case WIRE_SAMPLES: return sizeof(struct wire_samples);
	case WIRE_EVENTS_ADD:
	case WIRE_SET: return 0;
	case WIRE_EVENTS_WAIT: return sizeof(struct wire_event);
	case WIRE_MIG:
	case WIRE_MIG_MODE:
	case WIRE_GI_CREATE:
	case WIRE_GI_DESTROY:
	case WIRE_CI_CREATE:
	case WIRE_CI_DESTROY: return sizeof(struct wire_mig);
	}
	return 0;
}

nvml_return client_ask(int fd, const struct wire_request *request, struct wire_reply *ret)
{
	ssize_t done;

	do
		done = send(fd, request, sizeof(*request), MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	if (done != (ssize_t)sizeof(*request))
		return NVML_ERROR_UNKNOWN;
	do
		done = recv(fd, ret, sizeof(*ret), 0);
	while (done < 0 && errno == EINTR);
	if (done < 0 || !wire_check_reply(ret, (size_t)done, body_size(request->op)))
		return NVML_ERROR_UNKNOWN;
	return ret->status;
}

static nvml_return ask_at_once(const struct wire_request *request, struct wire_reply *ret)
{
	int saved_errno = errno; // the host's errno is not ours to change
	int fd = client_connect();

	if (fd < 0) {
		errno = saved_errno;
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	nvml_return result = client_ask(fd, request, ret);
	close(fd);
	errno = saved_errno;
	return result;
}

// After nvmlInit a daemon that is away looks like a driver in trouble, not like none.
nvml_return client_ask_once(const struct wire_request *request, struct wire_reply *ret)
{
	if (atomic_load(&init_count) <= 0)
		return NVML_ERROR_UNINITIALIZED;
	nvml_return result = ask_at_once(request, ret);
	return result == NVML_ERROR_DRIVER_NOT_LOADED ? NVML_ERROR_UNKNOWN : result;
}

// With GPUAAS_EMU_NODES in the environment a device node must be openable, as for the true library.
static nvml_return open_node(const char *name)
{
	int saved_errno = errno;
	char path[64];

	if (secure_getenv("GPUAAS_EMU_NODES") == NULL)
		return NVML_SUCCESS;
	snprintf(path, sizeof(path), "/dev/%s", name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	// ENXIO: all doors were open, there is just no driver behind the number.
	bool may = fd >= 0 || errno == ENXIO || errno == ENODEV;
	nvml_return result = errno == EPERM || errno == EACCES ? NVML_ERROR_NO_PERMISSION
							       : NVML_ERROR_DRIVER_NOT_LOADED;
	if (fd >= 0)
		close(fd);
	errno = saved_errno;
	return may ? NVML_SUCCESS : result;
}

nvml_return client_init(const char *call)
{
	struct wire_request request = client_request(WIRE_HELLO, call);
	struct wire_reply reply;
	nvml_return result = open_node("nvidiactl");

	if (result == NVML_SUCCESS)
		result = ask_at_once(&request, &reply);
	if (result == NVML_SUCCESS)
		atomic_fetch_add(&init_count, 1);
	return result;
}

nvml_return client_shutdown(void)
{
	int count = atomic_load(&init_count);

	do
		if (count <= 0)
			return NVML_ERROR_UNINITIALIZED;
	while (!atomic_compare_exchange_weak(&init_count, &count, count - 1));
	return NVML_SUCCESS;
}

// The daemon is another program: its texts end where we say.
static void terminate(struct wire_gpu *gpu)
{
	gpu->name[sizeof(gpu->name) - 1] = 0;
	gpu->uuid[sizeof(gpu->uuid) - 1] = 0;
	gpu->serial[sizeof(gpu->serial) - 1] = 0;
	gpu->part_number[sizeof(gpu->part_number) - 1] = 0;
	gpu->vbios[sizeof(gpu->vbios) - 1] = 0;
}

nvml_return client_system(const char *call, struct wire_system *ret)
{
	struct wire_request request = client_request(WIRE_SYSTEM, call);
	struct wire_reply reply;
	nvml_return result = client_ask_once(&request, &reply);

	if (result != NVML_SUCCESS)
		return result;
	*ret = reply.body.system;
	ret->driver[sizeof(ret->driver) - 1] = 0;
	return NVML_SUCCESS;
}

static nvml_return ask_of(const struct nvml_device *device, enum wire_op op, const char *call,
			  struct wire_reply *ret)
{
	struct wire_request request = client_request(op, call);
	struct client_instance instance;

	if (client_slot(device, &request.slot))
		return client_ask_once(&request, ret);
	if (!client_is_mig(device))
		return client_bad_argument();
	// What is told of whole GPUs only.
	nvml_return result = client_mig_instance(device, call, &instance);
	return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvml_return client_gpu(const struct nvml_device *device, const char *call, struct wire_gpu *ret)
{
	struct wire_reply reply;
	nvml_return result = ask_of(device, WIRE_GPU, call, &reply);

	if (result != NVML_SUCCESS)
		return result;
	*ret = reply.body.gpu;
	terminate(ret);
	return NVML_SUCCESS;
}

bool client_link_up(const struct wire_gpu *gpu)
{
	return gpu->nvlink_switch_count > 0 || gpu->nvlink_peer_slot != WIRE_NO_SLOT;
}

nvml_return client_find(enum wire_op op, uint32_t index, const char *key, const char *call,
			struct nvml_device **ret)
{
	struct wire_request request = client_request(op, call);
	struct wire_reply reply;

	if (ret == NULL || strnlen(key, sizeof(request.key)) >= sizeof(request.key))
		return client_bad_argument();
	request.slot = index;
	snprintf(request.key, sizeof(request.key), "%s", key);
	nvml_return result = client_ask_once(&request, &reply);
	if (result != NVML_SUCCESS)
		return result;
	const struct wire_gpu *gpu = &reply.body.gpu;
	struct nvml_device *device = client_device(gpu->slot);
	if (gpu->gi != WIRE_NO_INSTANCE)
		device = client_mig_device((struct client_place){ gpu->slot, gpu->gi, gpu->ci });
	if (device == NULL)
		return NVML_ERROR_UNKNOWN;
	char node[32];
	snprintf(node, sizeof(node), "nvidia%u", gpu->minor);
	result = open_node(node);
	if (result == NVML_SUCCESS)
		*ret = device;
	return result;
}

nvml_return client_processes(const struct nvml_device *device, const char *call,
			     struct wire_process ret[WIRE_PROCESS_MAX], uint32_t *ret_count)
{
	struct wire_request request = client_request(WIRE_PROCESSES, call);
	struct client_instance instance;
	struct wire_reply reply;
	bool is_mig = client_is_mig(device);

	if (is_mig) {
		nvml_return found = client_mig_instance(device, call, &instance);
		if (found != NVML_SUCCESS)
			return found;
		request.slot = instance.place.slot;
	} else if (!client_slot(device, &request.slot)) {
		return client_bad_argument();
	}
	nvml_return result = client_ask_once(&request, &reply);
	if (result != NVML_SUCCESS)
		return result;
	*ret_count = 0;
	for (uint32_t i = 0; i < reply.count; i++) {
		const struct wire_process *process = &reply.body.processes[i];
		if (!is_mig ||
		    (process->gi == instance.place.gi && process->ci == instance.place.ci))
			ret[(*ret_count)++] = *process;
	}
	return NVML_SUCCESS;
}

nvml_return client_text(const char *text, char *ret, uint32_t size_bytes)
{
	size_t need_bytes = strlen(text) + 1;

	if (need_bytes > size_bytes)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(ret, text, need_bytes);
	return NVML_SUCCESS;
}
