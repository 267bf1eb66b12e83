// SPDX-License-Identifier: Apache-2.0
// How the emulated NVML library reaches the daemon, for the files of this folder. Each call opens
// its own connection, asks once and closes it: so threads never wait for each other (one hung
// call hangs one thread), a forked child shares nothing, and a restarted daemon is simply found
// again. Handles point into static tables that are never written, so that any pointer a caller
// passes can be checked; those of MIG instances are in client_mig.h. Nothing here writes to the
// terminal, aborts or keeps memory.
#pragma once

#include "emulator/wire.h"
#include "gpu/nvml_abi.h"

#define NVML_EXPORT __attribute__((visibility("default")))
// Defines an exported function; the declaration before it keeps the compiler's check alive.
#define NVML_CALL(name, params)                                                                    \
	NVML_EXPORT nvml_return name params;                                                       \
	nvml_return name params
// Another name (version suffix) of a function in the same file.
#define NVML_ALIAS(name, params, target)                                                           \
	NVML_EXPORT nvml_return name params __attribute__((alias(#target)))

nvml_return client_init(const char *call);
nvml_return client_shutdown(void);

// NVML_ERROR_UNINITIALIZED or NVML_ERROR_INVALID_ARGUMENT: for calls with a wrong argument.
nvml_return client_bad_argument(void);
nvml_return client_system(const char *call, struct wire_system *ret);
// All there is to know of the device now.
nvml_return client_gpu(const struct nvml_device *device, const char *call, struct wire_gpu *ret);
// False for a bridge whose other GPU is away.
bool client_link_up(const struct wire_gpu *gpu);
nvml_return client_find(enum wire_op op, uint32_t index, const char *key, const char *call,
			struct nvml_device **ret);
nvml_return client_processes(const struct nvml_device *device, const char *call,
			     struct wire_process ret[WIRE_PROCESS_MAX], uint32_t *ret_count);

// Sends one request on an open connection and waits for its reply, for as long as it takes.
nvml_return client_ask(int fd, const struct wire_request *request, struct wire_reply *ret);
// The same on a connection of its own, after nvmlInit.
nvml_return client_ask_once(const struct wire_request *request, struct wire_reply *ret);
// A connection for good (event sets), or -1.
int client_connect(void);
struct wire_request client_request(enum wire_op op, const char *call);

struct nvml_device *client_device(uint32_t slot);
// False for a pointer that is no handle of a whole GPU.
bool client_slot(const struct nvml_device *device, uint32_t *ret_slot);
// Copies with the terminating zero, or NVML_ERROR_INSUFFICIENT_SIZE.
nvml_return client_text(const char *text, char *ret, uint32_t size_bytes);
// Defined in identity.c, for the address of a link's other end.
NVML_EXPORT nvml_return nvmlDeviceGetPciInfo_v3(const struct nvml_device *device,
						struct nvml_pci_info *ret_info);
