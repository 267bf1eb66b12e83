// SPDX-License-Identifier: Apache-2.0
// The process that calls the driver: started by the agent as "gpuaas-agent --nvml-child LIBRARY"
// with a packet socket at descriptor 3. One thread for each device, so that a slow device keeps
// no other waiting; one thread waits for events. It keeps no state that matters: the agent ends
// it whenever a call takes too long, and starts another. It ends when the socket closes.
#pragma once

int nvml_child_main(const char *library); // exit code
