// SPDX-License-Identifier: Apache-2.0
// Turns a checked request of the library into a reply from the machine's state at a given time.
// Pure. Event sets are not answered here: they belong to connections (server.h).
#pragma once

#include "emulator/machine.h"

// The GPU a request is about, for injected faults: WIRE_NO_SLOT if about none.
uint32_t answer_slot(const struct machine *machine, const struct wire_request *request);
// Fills ret_reply and returns how many bytes of it to send.
size_t answer_request(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		      struct wire_reply *ret_reply);
// The same for operations about instances: WIRE_MIG and all that change something.
size_t answer_mig(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		  struct wire_reply *ret_reply);
// The same for counters, samples and settings.
size_t answer_limits(struct machine *machine, const struct wire_request *request, uint64_t now_ns,
		     struct wire_reply *ret_reply);
// A reply that is only a status.
size_t answer_status(uint32_t status, struct wire_reply *ret_reply);
// A reply whose body was filled.
size_t answer_body(size_t body_bytes, struct wire_reply *ret_reply);
