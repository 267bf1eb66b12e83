// SPDX-License-Identifier: Apache-2.0
// The daemon's sockets: emu.sock for the NVML library, gpu-<slot>.sock for workloads of a GPU,
// MIG-<uuid>.sock for those of an instance. One thread,
// one epoll set; a request is answered at once, later (slow), on repair (hang) or when an event
// comes. A connection with a malformed message is closed; one that closes gives back what it
// used. Everything has a maximum: connections, event sets, queued events (the oldest is dropped).
#pragma once

#include "emulator/machine.h"
#include "emulator/tree.h"

enum { SERVER_CONN_MAX = 1024, SERVER_EVENT_MAX = 64 };

struct server_events {
	uint64_t types[WIRE_GPU_MAX]; // registered event types by slot
	struct wire_event queue[SERVER_EVENT_MAX];
	size_t first, count;
};

enum server_kind {
	SERVER_FREE = 0,
	SERVER_LISTEN_LIBRARY,
	SERVER_LISTEN_WORK,
	SERVER_LIBRARY,
	SERVER_WORK
};
enum server_pending { SERVER_IDLE = 0, SERVER_DELAYED, SERVER_HUNG, SERVER_WAITING };

struct server_conn {
	enum server_kind kind;
	int fd;
	uint64_t id;   // never used twice; names the owner of a use in the model
	uint32_t slot; // of a workload
	uint32_t part; // of a workload, as in struct model_use
	char part_uuid[48];
	uint32_t pid;
	bool is_privileged; // may change the hardware
	enum server_pending pending;
	uint64_t deadline_ns;
	struct wire_request request;
	struct server_events *events; // NULL until the first registration
};

struct server {
	struct machine *machine; // borrowed
	struct tree tree;
	int epoll_fd; // owned
	uint64_t id_last;
	size_t conn_top; // no connection at or above
	struct server_conn conns[SERVER_CONN_MAX];
};

// Makes the library's socket and one for each GPU in the current directory, which must be the
// emulator's (names stay below the length limit of socket addresses).
err_status server_open(struct server *server, struct machine *machine, struct err *err);
void server_close(struct server *server); // removes the socket files too
// Handles all that is ready now on epoll_fd and all deadlines up to now_ns.
void server_step(struct server *server, uint64_t now_ns);
// Earliest deadline, or UINT64_MAX.
uint64_t server_deadline_ns(const struct server *server);
// Applies a command of the control file and does what follows from it for connections.
err_status server_command(struct server *server, const struct control_command *command,
			  const char *board_dir, uint64_t now_ns, struct err *err);
