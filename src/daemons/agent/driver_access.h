// SPDX-License-Identifier: Apache-2.0
// A program of its own beside the agent: the device plugin of gpuaas.io/driver-access. The agent
// opens the driver and is not privileged, so somebody must grant it the driver's device nodes; it
// cannot be a plugin of its own pod, since the kubelet asks before a pod's first container runs.
// This program opens no device, loads no library, asks no API server. There is one grant a node,
// which the agent's pod holds; admission refuses all others. Fails when it cannot serve at all.
#pragma once

#include "daemons/agent/config.h"

#define DRIVER_ACCESS_RESOURCE "gpuaas.io/driver-access"

enum { DRIVER_ACCESS_NODES_MAX = 64 };

// Which nodes a container that opens the driver gets now, "nvidiactl" first: control, GPUs, and
// those by which MIG is read and laid out, where the driver has them. 0: it is not loaded.
size_t driver_access_nodes(const char *driver_root, char ret[DRIVER_ACCESS_NODES_MAX][32]);
// Runs until a signal; the program's exit code.
int driver_access_run(const struct agent_config *config);
