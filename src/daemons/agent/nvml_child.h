// SPDX-License-Identifier: Apache-2.0
// The process that calls the driver: started by the agent as "gpuaas-agent --nvml-child LIBRARY"
// with a packet socket at descriptor 3, and with DCGM's library and address where those are set.
// One thread for each device, so that a slow device keeps no other waiting; one thread waits for
// events. It keeps no state that matters: the agent ends it whenever a call takes too long, and
// starts another. It ends when the socket closes.
#pragma once

// dcgm NULL: without DCGM; else its library, asked for boards without profiling counters of their
// own, and where its engine answers ("": in this process). Returns an exit code.
int nvml_child_main(const char *library, const char *dcgm, const char *dcgm_address);
