// SPDX-License-Identifier: Apache-2.0
#include "emulator/server.h"

#include "emulator/answer.h"
#include "gpu/nvml_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 256, READY_MAX = 64 };

static struct server_conn *conn_find_free(struct server *server)
{
	for (size_t i = 0; i < SERVER_CONN_MAX; i++) {
		if (server->conns[i].kind != SERVER_FREE)
			continue;
		server->conn_top = max_size(server->conn_top, i + 1);
		return &server->conns[i];
	}
	return NULL;
}

static struct server_conn *conn_add(struct server *server, int fd, enum server_kind kind,
				    uint32_t slot)
{
	struct server_conn *conn = conn_find_free(server);

	if (conn == NULL)
		return NULL;
	*conn = (struct server_conn){ .kind = kind, .fd = fd, .slot = slot };
	conn->id = ++server->id_last;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = conn->id };
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		conn->kind = SERVER_FREE;
		return NULL;
	}
	return conn;
}

static void conn_close(struct server *server, struct server_conn *conn, uint64_t now_ns)
{
	ASSERT(conn->kind != SERVER_FREE);
	if (conn->kind == SERVER_WORK)
		model_use_drop(&server->machine->gpus[conn->slot].model, conn->id, conn->pid,
			       now_ns);
	close(conn->fd);
	free(conn->events);
	*conn = (struct server_conn){ .kind = SERVER_FREE, .fd = -1 };
	while (server->conn_top > 0 && server->conns[server->conn_top - 1].kind == SERVER_FREE)
		server->conn_top--;
}

static err_status listen_at(struct server *server, const char *name, enum server_kind kind,
			    uint32_t slot, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char temporary[64];

	// Bound under another name first: who sees the final name can connect.
	snprintf(temporary, sizeof(temporary), "%s.new", name);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", temporary);
	(void)unlink(temporary); // left over from a crash, or not there
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "cannot make socket %s", name);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    chmod(temporary, 0666) != 0 || listen(fd, BACKLOG) != 0 ||
	    rename(temporary, name) != 0 || conn_add(server, fd, kind, slot) == NULL) {
		err_status status = err_sys(err, errno, "cannot listen at %s", name);
		close(fd);
		return status;
	}
	return ERR_OK;
}

static void work_name(uint32_t slot, char ret_name[32])
{
	snprintf(ret_name, 32, "gpu-%u.sock", slot);
}

static bool is_listening(const struct server *server, uint32_t slot, uint32_t part)
{
	for (size_t i = 0; i < server->conn_top; i++) {
		const struct server_conn *conn = &server->conns[i];
		if (conn->kind == SERVER_LISTEN_WORK && conn->slot == slot && conn->part == part)
			return true;
	}
	return false;
}

static err_status listen_work(struct server *server, uint32_t slot, struct err *err)
{
	char name[32];

	if (is_listening(server, slot, 0))
		return ERR_OK;
	work_name(slot, name);
	return listen_at(server, name, SERVER_LISTEN_WORK, slot, err);
}

// A place in the table may have been given to another instance meanwhile.
static bool is_part_there(const struct server *server, const struct server_conn *conn)
{
	const struct machine_gpu *gpu = &server->machine->gpus[conn->slot];
	const struct mig_ci *ci = &gpu->model.mig.cis[conn->part - 1];

	return machine_has(server->machine, conn->slot) && !gpu->model.is_lost && ci->is_used &&
	       strcmp(ci->uuid, conn->part_uuid) == 0;
}

static void part_name(const char *uuid, char ret_name[64])
{
	snprintf(ret_name, 64, "%s.sock", uuid);
}

// Sockets of instances that are gone, with the workloads in them.
static void close_parts(struct server *server, uint64_t now_ns)
{
	for (size_t i = server->conn_top; i > 0; i--) {
		struct server_conn *conn = &server->conns[i - 1];
		char name[64];
		if (conn->kind == SERVER_FREE || conn->part == 0 || is_part_there(server, conn))
			continue;
		part_name(conn->part_uuid, name);
		if (conn->kind == SERVER_LISTEN_WORK)
			(void)unlink(name); // somebody else may have removed it
		conn_close(server, conn, now_ns);
	}
}

static void listen_part(struct server *server, uint32_t slot, uint32_t part, const char *uuid)
{
	char name[64];

	part_name(uuid, name);
	if (listen_at(server, name, SERVER_LISTEN_WORK, slot, NULL) != ERR_OK)
		return; // tried again at the next step
	for (size_t i = 0; i < server->conn_top; i++) {
		struct server_conn *conn = &server->conns[i];
		if (conn->kind == SERVER_FREE || conn->id != server->id_last)
			continue;
		conn->part = part;
		snprintf(conn->part_uuid, sizeof(conn->part_uuid), "%s", uuid);
	}
}

// Brings the sockets and the files of capabilities in line with the instances that there are.
static void sync_parts(struct server *server, uint64_t now_ns)
{
	const struct machine *machine = server->machine;

	close_parts(server, now_ns);
	for (uint32_t slot = 0; slot < machine->slot_count; slot++)
		for (uint32_t i = 0; machine_has(machine, slot) && i < MIG_CI_MAX; i++) {
			const struct mig_ci *ci = &machine->gpus[slot].model.mig.cis[i];
			if (ci->is_used && !is_listening(server, slot, i + 1))
				listen_part(server, slot, i + 1, ci->uuid);
		}
	tree_sync(&server->tree, machine);
}

err_status server_open(struct server *server, struct machine *machine, struct err *err)
{
	*server = (struct server){ .machine = machine };
	tree_init(&server->tree);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return err_sys(err, errno, "cannot make an epoll set");
	for (uint32_t slot = 0; slot < machine->slot_count; slot++)
		if (machine_has(machine, slot) && listen_work(server, slot, err) != ERR_OK)
			return ERR_IO;
	sync_parts(server, 0);
	// Last: whoever waits for this name finds the others too.
	return listen_at(server, WIRE_LIBRARY_SOCKET, SERVER_LISTEN_LIBRARY, WIRE_NO_SLOT, err);
}

static void close_slot(struct server *server, uint32_t slot, bool with_listener, uint64_t now_ns)
{
	for (size_t i = SERVER_CONN_MAX; i > 0; i--) {
		struct server_conn *conn = &server->conns[i - 1];
		if (conn->slot != slot || conn->part > 0)
			continue;
		if (conn->kind == SERVER_LISTEN_WORK && with_listener) {
			char name[32];
			work_name(slot, name);
			(void)unlink(name); // somebody else may have removed it
			conn_close(server, conn, now_ns);
		} else if (conn->kind == SERVER_WORK) {
			conn_close(server, conn, now_ns);
		}
	}
}

void server_close(struct server *server)
{
	for (uint32_t slot = 0; slot < server->machine->slot_count; slot++) {
		mig_clear(&server->machine->gpus[slot].model.mig);
		close_slot(server, slot, true, 0);
	}
	close_parts(server, 0);
	tree_sync(&server->tree, server->machine);
	for (size_t i = 0; i < SERVER_CONN_MAX; i++)
		if (server->conns[i].kind != SERVER_FREE)
			conn_close(server, &server->conns[i], 0);
	(void)unlink(WIRE_LIBRARY_SOCKET);
	close(server->epoll_fd);
}

static void accept_one(struct server *server, const struct server_conn *listener)
{
	struct ucred peer = { 0 };
	socklen_t peer_bytes = sizeof(peer);
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	bool is_work = listener->kind == SERVER_LISTEN_WORK;
	struct server_conn *conn = NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0)
		conn = conn_add(server, fd, is_work ? SERVER_WORK : SERVER_LIBRARY,
				is_work ? listener->slot : WIRE_NO_SLOT);
	if (conn == NULL) {
		close(fd);
		return;
	}
	conn->part = listener->part;
	memcpy(conn->part_uuid, listener->part_uuid, sizeof(conn->part_uuid));
	conn->pid = (uint32_t)peer.pid;
	conn->is_privileged = peer.uid == 0 || peer.uid == geteuid();
}

// A receiver that does not take its reply is closed: it must not make the daemon wait.
static void send_or_close(struct server *server, struct server_conn *conn, const void *data,
			  size_t size_bytes, uint64_t now_ns)
{
	if (send(conn->fd, data, size_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size_bytes)
		conn_close(server, conn, now_ns);
}

static void events_push(struct server_events *events, const struct wire_event *event)
{
	if (events->count == SERVER_EVENT_MAX) {
		events->first = (events->first + 1) % SERVER_EVENT_MAX;
		events->count--;
	}
	events->queue[(events->first + events->count) % SERVER_EVENT_MAX] = *event;
	events->count++;
}

static void events_pop(struct server_events *events, struct wire_event *ret)
{
	ASSERT(events->count > 0);
	*ret = events->queue[events->first];
	events->first = (events->first + 1) % SERVER_EVENT_MAX;
	events->count--;
}

static uint32_t events_add(struct server *server, struct server_conn *conn)
{
	uint32_t slot = conn->request.slot;

	if (slot != WIRE_NO_SLOT) {
		if (slot >= server->machine->slot_count)
			return NVML_ERROR_INVALID_ARGUMENT;
		if (!machine_has(server->machine, slot) ||
		    server->machine->gpus[slot].model.is_lost)
			return NVML_ERROR_GPU_IS_LOST;
	}
	if (conn->events == NULL)
		conn->events = calloc(1, sizeof(*conn->events));
	if (conn->events == NULL)
		return NVML_ERROR_MEMORY;
	if (slot != WIRE_NO_SLOT)
		conn->events->types[slot] |= conn->request.event_types;
	return NVML_SUCCESS;
}

// Answers a wait if it can be; false leaves it waiting.
static bool events_answer(struct server *server, struct server_conn *conn, uint64_t now_ns)
{
	struct wire_reply reply;
	size_t size_bytes = 0;

	if (conn->events == NULL) {
		size_bytes = answer_status(NVML_ERROR_INVALID_ARGUMENT, &reply);
	} else if (server->machine->is_wait_error) {
		size_bytes = answer_status(NVML_ERROR_UNKNOWN, &reply);
	} else if (conn->events->count > 0) {
		(void)answer_status(NVML_SUCCESS, &reply);
		events_pop(conn->events, &reply.body.event);
		reply.body_bytes = sizeof(reply.body.event);
		size_bytes = WIRE_REPLY_HEAD_BYTES + sizeof(reply.body.event);
	} else if (now_ns >= conn->deadline_ns) {
		size_bytes = answer_status(NVML_ERROR_TIMEOUT, &reply);
	} else {
		return false;
	}
	conn->pending = SERVER_IDLE;
	send_or_close(server, conn, &reply, size_bytes, now_ns);
	return true;
}

// The request's delay is over or there was none.
static void request_finish(struct server *server, struct server_conn *conn, uint32_t error,
			   uint64_t now_ns)
{
	struct wire_reply reply;
	size_t size_bytes = 0;

	conn->pending = SERVER_IDLE;
	if (error != 0) {
		size_bytes = answer_status(error, &reply);
	} else if (conn->request.op == WIRE_EVENTS_ADD) {
		size_bytes = answer_status(events_add(server, conn), &reply);
	} else if (conn->request.op == WIRE_EVENTS_WAIT) {
		conn->deadline_ns = now_ns + conn->request.timeout_ms * UINT64_C(1000000);
		if (!events_answer(server, conn, now_ns))
			conn->pending = SERVER_WAITING;
		return;
	} else if (conn->request.op >= WIRE_CHANGE_FIRST && !conn->is_privileged) {
		size_bytes = answer_status(NVML_ERROR_NO_PERMISSION, &reply);
	} else {
		size_bytes = answer_request(server->machine, &conn->request, now_ns, &reply);
		if (conn->request.op >= WIRE_CHANGE_FIRST)
			sync_parts(server, now_ns);
	}
	send_or_close(server, conn, &reply, size_bytes, now_ns);
}

static struct fault request_fault(const struct server *server, const struct server_conn *conn)
{
	return faults_find(&server->machine->faults, conn->request.call,
			   answer_slot(server->machine, &conn->request));
}

static void request_begin(struct server *server, struct server_conn *conn, uint64_t now_ns)
{
	struct fault fault = request_fault(server, conn);

	if (fault.is_hung) {
		conn->pending = SERVER_HUNG;
	} else if (fault.delay_us > 0) {
		conn->pending = SERVER_DELAYED;
		conn->deadline_ns = now_ns + fault.delay_us * UINT64_C(1000);
	} else {
		request_finish(server, conn, fault.error, now_ns);
	}
}

static void work_set(struct server *server, struct server_conn *conn, const struct wire_work *work,
		     uint64_t now_ns)
{
	struct machine_gpu *gpu = &server->machine->gpus[conn->slot];
	struct wire_work_reply reply = { .magic = WIRE_WORK_MAGIC, .pid = conn->pid };
	struct model_use use = { work->memory_mib, work->util_milli, work->memory_util_milli,
				 conn->part };

	enum model_result result = model_use_set(&gpu->model, conn->id, conn->pid, use, now_ns);
	switch (result) {
	case MODEL_OK: reply.status = WIRE_WORK_OK; break;
	case MODEL_NO_MEMORY: reply.status = WIRE_WORK_NO_MEMORY; break;
	case MODEL_FULL: reply.status = WIRE_WORK_FULL; break;
	case MODEL_LOST: reply.status = WIRE_WORK_LOST; break;
	case MODEL_MIG: reply.status = WIRE_WORK_MIG; break;
	}
	if (result == MODEL_OK || result == MODEL_NO_MEMORY)
		reply.free_mib = model_part_free_mib(&gpu->model, conn->part);
	snprintf(reply.name, sizeof(reply.name), "%s", gpu->model.board->name);
	snprintf(reply.uuid, sizeof(reply.uuid), "%s",
		 conn->part == 0 ? gpu->uuid : gpu->model.mig.cis[conn->part - 1].uuid);
	send_or_close(server, conn, &reply, sizeof(reply), now_ns);
}

static void conn_read(struct server *server, struct server_conn *conn, uint64_t now_ns)
{
	char message[sizeof(struct wire_request) + 1];
	ssize_t got = recv(conn->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	struct wire_work work;
	// One request at a time: a second one before the answer breaks the protocol.
	bool good = got > 0 && conn->pending == SERVER_IDLE;
	if (good && conn->kind == SERVER_LIBRARY)
		good = wire_check_request(message, (size_t)got, &conn->request);
	else if (good)
		good = wire_check_work(message, (size_t)got, &work);
	if (!good)
		conn_close(server, conn, now_ns);
	else if (conn->kind == SERVER_LIBRARY)
		request_begin(server, conn, now_ns);
	else
		work_set(server, conn, &work, now_ns);
}

static void ready(struct server *server, uint64_t id, uint64_t now_ns)
{
	for (size_t i = 0; i < server->conn_top; i++) {
		struct server_conn *conn = &server->conns[i];
		if (conn->kind == SERVER_FREE || conn->id != id)
			continue;
		if (conn->kind == SERVER_LISTEN_LIBRARY || conn->kind == SERVER_LISTEN_WORK)
			accept_one(server, conn);
		else
			conn_read(server, conn, now_ns);
		return;
	}
	// Closed by an earlier event of the same batch.
}

static void deadlines(struct server *server, uint64_t now_ns)
{
	for (size_t i = 0; i < server->conn_top; i++) {
		struct server_conn *conn = &server->conns[i];
		if (conn->kind == SERVER_FREE)
			continue;
		if (conn->pending == SERVER_DELAYED && now_ns >= conn->deadline_ns)
			request_finish(server, conn, request_fault(server, conn).error, now_ns);
		else if (conn->pending == SERVER_WAITING && now_ns >= conn->deadline_ns)
			(void)events_answer(server, conn, now_ns);
	}
}

void server_step(struct server *server, uint64_t now_ns)
{
	struct epoll_event events[READY_MAX];
	int count = epoll_wait(server->epoll_fd, events, READY_MAX, 0);

	for (int i = 0; i < count; i++)
		ready(server, events[i].data.u64, now_ns);
	deadlines(server, now_ns);
	sync_parts(server, now_ns); // the last user's end may have changed the mode
}

uint64_t server_deadline_ns(const struct server *server)
{
	uint64_t earliest_ns = UINT64_MAX;

	for (size_t i = 0; i < server->conn_top; i++) {
		const struct server_conn *conn = &server->conns[i];
		bool has = conn->pending == SERVER_DELAYED || conn->pending == SERVER_WAITING;
		if (conn->kind != SERVER_FREE && has && conn->deadline_ns < earliest_ns)
			earliest_ns = conn->deadline_ns;
	}
	return earliest_ns;
}

static struct wire_event event_of(const struct control_command *command)
{
	if (command->kind == CONTROL_ECC)
		return (struct wire_event){
			.slot = command->slot,
			.gpu_instance_id = NVML_NO_INSTANCE,
			.compute_instance_id = NVML_NO_INSTANCE,
			.event_type = command->code == 0 ? NVML_EVENT_SINGLE_BIT_ECC
							 : NVML_EVENT_DOUBLE_BIT_ECC,
		};
	return (struct wire_event){
		.slot = command->slot,
		.gpu_instance_id = command->gpu_instance_id,
		.compute_instance_id = command->compute_instance_id,
		.event_type = NVML_EVENT_XID_CRITICAL,
		.event_data = command->code,
	};
}

static void send_event(struct server *server, const struct control_command *command,
		       uint64_t now_ns)
{
	struct wire_event event = event_of(command);

	for (size_t i = 0; i < server->conn_top; i++) {
		struct server_conn *conn = &server->conns[i];
		if (conn->kind != SERVER_LIBRARY || conn->events == NULL ||
		    (conn->events->types[command->slot] & event.event_type) == 0)
			continue;
		events_push(conn->events, &event);
		if (conn->pending == SERVER_WAITING)
			(void)events_answer(server, conn, now_ns);
	}
}

// After a change of faults: what no longer hangs is answered, waits may fail now.
static void recheck(struct server *server, uint64_t now_ns)
{
	for (size_t i = 0; i < server->conn_top; i++) {
		struct server_conn *conn = &server->conns[i];
		if (conn->kind != SERVER_LIBRARY)
			continue;
		if (conn->pending == SERVER_HUNG && !request_fault(server, conn).is_hung)
			request_finish(server, conn, 0, now_ns);
		else if (conn->pending == SERVER_WAITING)
			(void)events_answer(server, conn, now_ns);
	}
}

err_status server_command(struct server *server, const struct control_command *command,
			  const char *board_dir, uint64_t now_ns, struct err *err)
{
	uint32_t slot = command->slot;
	err_status status = ERR_OK;

	if (command->kind == CONTROL_ADD) {
		status = machine_add(server->machine, command->word, board_dir, now_ns, &slot, err);
		return status == ERR_OK ? listen_work(server, slot, err) : status;
	}
	if (command->kind == CONTROL_XID) {
		if (!machine_has(server->machine, slot))
			return err_set(err, ERR_NOT_FOUND, "there is no GPU %u", slot);
		send_event(server, command, now_ns);
		return ERR_OK;
	}
	status = machine_apply(server->machine, command, now_ns, err);
	if (status == ERR_OK && (command->kind == CONTROL_LOST || command->kind == CONTROL_REMOVE))
		close_slot(server, slot, command->kind == CONTROL_REMOVE, now_ns);
	if (status == ERR_OK && command->kind == CONTROL_RESTORE)
		status = listen_work(server, slot, err);
	sync_parts(server, now_ns);
	if (status == ERR_OK && command->kind == CONTROL_ECC)
		send_event(server, command, now_ns);
	recheck(server, now_ns);
	return status;
}
