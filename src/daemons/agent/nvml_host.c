// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_host.h"

#include "daemons/agent/nvml_proc.h"
#include "gpu/nvml_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	POOL = 0,              // the child of all that have none of their own
	BLAMELESS_MAX = 3,     // deaths without a call under way until each gets its own
	EVENTS_SILENCE_S = 30, // of the waiting thread until its child is replaced
	PACKETS_A_TURN = 64,
	CHANGE_DEADLINES = 10, // a change of MIG may take so many times longer
};
static const uint64_t BACK_OFF_MIN_NS = 100 * UINT64_C(1000000);
static const uint64_t BACK_OFF_MAX_NS = 5 * UINT64_C(1000000000);
static const uint64_t BACK_OFF_ALONE_MAX_NS = 30 * UINT64_C(1000000000);
static const uint64_t ALONE_FOR_NS = 600 * UINT64_C(1000000000);
static const uint64_t GOOD_AFTER_NS = 60 * UINT64_C(1000000000);

typedef enum proc_state { PROC_DOWN, PROC_STARTING, PROC_READY, PROC_REFUSED } proc_state;

struct proc {
	struct nvml_host *host;
	proc_state state;
	struct nvml_spawned child;
	struct loop_fd *watch;
	struct loop_timer *timer; // hello's deadline, the next start, or silence of events
	uint64_t back_off_ns, ready_ns;
	uint32_t blameless;
};

struct device {
	struct nvml_host *host;
	uint32_t slot, proc_i;
	uint32_t asked;  // type under way, 0: none
	uint32_t wanted; // bits of types
	uint32_t seq;
	bool is_open;
	struct nvml_mig_change change; // that is wanted or under way
	struct loop_timer *deadline;
};

struct nvml_host {
	struct loop *loop;
	struct nvml_host_config config;
	struct proc procs[GPU_MAX + 1];
	struct device devices[GPU_MAX];
	uint32_t count;
	struct nvml_bodies bodies;
	struct nvml_host_stats stats;
	int32_t events_status;
};

static void start_proc(struct proc *proc);
static void send_next(struct device *device);

static uint32_t index_of(const struct proc *proc) { return (uint32_t)(proc - proc->host->procs); }

static bool is_member(const struct proc *proc, const struct device *device)
{
	return device->slot < proc->host->count && device->proc_i == index_of(proc);
}

static uint32_t member_count(const struct proc *proc)
{
	uint32_t count = 0;
	for (uint32_t slot = 0; slot < GPU_MAX; slot++)
		count += is_member(proc, &proc->host->devices[slot]) ? 1 : 0;
	return count;
}

static health_probe probe_of(int32_t status)
{
	switch ((uint32_t)status) {
	case NVML_SUCCESS: return HEALTH_PROBE_OK;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED:
	case NVML_ERROR_GPU_NOT_FOUND:
	case NVML_ERROR_NOT_FOUND: return HEALTH_PROBE_LOST;
	case NVML_ERROR_UNINITIALIZED:
	case NVML_ERROR_DRIVER_NOT_LOADED:
	case NVML_ERROR_LIBRARY_NOT_FOUND:
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return HEALTH_PROBE_DRIVER;
	default: return HEALTH_PROBE_ERROR;
	}
}

static void tell_probe(struct device *device, health_probe probe, int action, const char *detail)
{
	const struct nvml_sink *sink = &device->host->config.sink;
	sink->on_probe(sink->arg, device->slot, probe, action, detail);
}

// Ends the child; questions under way are asked again of the next one, blamed device apart.
static void end_proc(struct proc *proc, const struct device *blamed)
{
	struct nvml_host *host = proc->host;
	ASSERT(proc->state != PROC_DOWN);
	loop_fd_free(proc->watch);
	proc->watch = NULL;
	(void)close(proc->child.fd);
	nvml_bodies_add(&host->bodies, &proc->child, index_of(proc));
	proc->state = PROC_DOWN;
	if (proc->ready_ns != 0 && loop_now_ns(host->loop) - proc->ready_ns > GOOD_AFTER_NS)
		proc->back_off_ns = 0;
	proc->ready_ns = 0;
	for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
		struct device *device = &host->devices[slot];
		if (device->proc_i != index_of(proc))
			continue;
		device->is_open = false;
		loop_timer_stop(device->deadline);
		bool is_repeated = device->asked > NVML_ASK_OPEN &&
				   device->asked != NVML_ASK_MIG_CHANGE;
		if (is_repeated && device != blamed)
			device->wanted |= 1U << device->asked;
		device->asked = 0;
	}
	proc->back_off_ns = proc->back_off_ns == 0 ? BACK_OFF_MIN_NS : proc->back_off_ns * 2;
	uint64_t max_ns = index_of(proc) == POOL ? BACK_OFF_MAX_NS : BACK_OFF_ALONE_MAX_NS;
	if (proc->back_off_ns > max_ns)
		proc->back_off_ns = max_ns;
	loop_timer_set(proc->timer, proc->back_off_ns);
}

// From now on this device can hurt nobody else.
static void move_out(struct device *device)
{
	struct nvml_host *host = device->host;
	struct proc *own = &host->procs[device->slot + 1];
	if (device->proc_i != POOL || member_count(&host->procs[POOL]) < 2)
		return;
	device->proc_i = device->slot + 1;
	device->is_open = false;
	ASSERT(own->state == PROC_DOWN);
	loop_timer_set(own->timer, BACK_OFF_MIN_NS);
}

// It has behaved for long: its own child is not needed any more.
static void move_back(struct device *device)
{
	struct proc *own = &device->host->procs[device->proc_i];
	ASSERT(device->proc_i != POOL && own->state == PROC_READY);
	end_proc(own, NULL);
	loop_timer_stop(own->timer);
	own->back_off_ns = 0;
	device->proc_i = POOL;
	send_next(device);
}

static void on_deadline(void *arg)
{
	struct device *device = arg;
	struct nvml_host *host = device->host;
	ASSERT(device->asked != 0);
	host->stats.hangs++;
	end_proc(&host->procs[device->proc_i], device);
	move_out(device);
	tell_probe(device, HEALTH_PROBE_HUNG, HEALTH_ACTION_UNKNOWN, "");
}

static void on_death(struct proc *proc)
{
	struct nvml_host *host = proc->host;
	bool is_refused = proc->state == PROC_REFUSED;
	bool blamed[GPU_MAX] = { false }, any = false;
	for (uint32_t slot = 0; slot < host->count; slot++) {
		blamed[slot] = is_member(proc, &host->devices[slot]) &&
			       host->devices[slot].asked != 0;
		any = any || blamed[slot];
	}
	end_proc(proc, NULL);
	if (is_refused)
		return;
	host->stats.crashes++;
	proc->blameless = any ? 0 : proc->blameless + 1;
	for (uint32_t slot = 0; slot < host->count; slot++) {
		struct device *device = &host->devices[slot];
		bool is_suspect = blamed[slot] ||
				  (proc->blameless >= BLAMELESS_MAX && is_member(proc, device));
		if (!is_suspect)
			continue;
		move_out(device);
		tell_probe(device, HEALTH_PROBE_CRASH, HEALTH_ACTION_UNKNOWN, "");
	}
}

static void on_answer(struct proc *proc, const struct nvml_reply *reply)
{
	struct nvml_host *host = proc->host;
	const struct nvml_sink *sink = &host->config.sink;
	struct device *device = &host->devices[reply->slot];
	if (!is_member(proc, device) || device->asked == 0 || reply->seq != device->seq ||
	    reply->type != nvml_answer_of(device->asked)) {
		on_death(proc); // it breaks the protocol
		return;
	}
	uint32_t asked = device->asked;
	health_probe probe = probe_of(reply->status);
	const char *detail = reply->type == NVML_SAY_PROBE ? reply->body.probe.text : "";
	char code[32];
	if (*detail == '\0' && probe != HEALTH_PROBE_OK) {
		(void)snprintf(code, sizeof code, "code %d", reply->status);
		detail = code;
	}
	device->asked = 0;
	loop_timer_stop(device->deadline);
	if (asked == NVML_ASK_OPEN && probe == HEALTH_PROBE_OK) {
		device->is_open = true;
		sink->on_info(sink->arg, device->slot, &reply->body.info);
	} else if (asked == NVML_ASK_OPEN) {
		device->wanted = 0; // it can answer nothing else either
	}
	if (asked == NVML_ASK_PROBE || (asked == NVML_ASK_OPEN && probe != HEALTH_PROBE_OK))
		tell_probe(device, probe,
			   asked == NVML_ASK_PROBE ? reply->body.probe.action
						   : HEALTH_ACTION_UNKNOWN,
			   detail);
	else if (asked == NVML_ASK_READ)
		sink->on_reading(sink->arg, device->slot, &reply->body.reading);
	else if (asked == NVML_ASK_PROCESSES && probe == HEALTH_PROBE_OK)
		sink->on_processes(sink->arg, device->slot, &reply->body.processes);
	else if (asked == NVML_ASK_MIG)
		sink->on_mig(sink->arg, device->slot,
			     probe == HEALTH_PROBE_OK ? &reply->body.mig : NULL);
	else if (asked == NVML_ASK_MIG_CHANGE)
		sink->on_mig_changed(sink->arg, device->slot, reply->status,
				     reply->body.probe.text);
	if (probe == HEALTH_PROBE_DRIVER && proc->state == PROC_READY)
		end_proc(proc, NULL); // the driver went away under it; a new one initialises anew
	else if (index_of(proc) != POOL && probe == HEALTH_PROBE_OK &&
		 loop_now_ns(host->loop) - proc->ready_ns > ALONE_FOR_NS)
		move_back(device);
	else
		send_next(device);
}

static void on_hello(struct proc *proc, const struct nvml_reply *reply)
{
	struct nvml_host *host = proc->host;
	const struct nvml_sink *sink = &host->config.sink;
	const struct nvml_hello *hello = &reply->body.hello;
	bool is_up = reply->status == 0;
	proc->state = is_up ? PROC_READY : PROC_REFUSED;
	host->stats.driver_up = is_up;
	if (is_up) {
		proc->ready_ns = loop_now_ns(host->loop);
		if (index_of(proc) == POOL) {
			host->count = hello->gpu_count;
			loop_timer_set(proc->timer, EVENTS_SILENCE_S * UINT64_C(1000000000));
		} else {
			loop_timer_stop(proc->timer);
		}
	}
	sink->on_driver(sink->arg, reply->status, hello);
	for (uint32_t slot = 0; slot < host->count; slot++) {
		struct device *device = &host->devices[slot];
		if (!is_member(proc, device))
			continue;
		if (!is_up)
			tell_probe(device, HEALTH_PROBE_DRIVER, HEALTH_ACTION_UNKNOWN, hello->text);
		else
			send_next(device);
	}
}

static void on_reply(struct proc *proc, const struct nvml_reply *reply)
{
	struct nvml_host *host = proc->host;
	const struct nvml_sink *sink = &host->config.sink;
	bool is_hello = reply->type == NVML_SAY_HELLO;
	if (is_hello != (proc->state == PROC_STARTING)) {
		on_death(proc);
	} else if (is_hello) {
		on_hello(proc, reply);
	} else if (reply->type == NVML_SAY_XID) {
		sink->on_xid(sink->arg, reply->slot, &reply->body.xid);
	} else if (reply->type == NVML_SAY_EVENTS) {
		if (index_of(proc) == POOL)
			loop_timer_set(proc->timer, EVENTS_SILENCE_S * UINT64_C(1000000000));
		if (reply->status != host->events_status)
			sink->on_events(sink->arg, reply->status);
		host->events_status = reply->status;
	} else {
		on_answer(proc, reply);
	}
}

static void on_socket(void *arg, unsigned events)
{
	struct proc *proc = arg;
	(void)events;
	for (int i = 0; i < PACKETS_A_TURN && proc->watch != NULL; i++) {
		unsigned char packet[sizeof(struct nvml_reply) + 1];
		struct nvml_reply reply;
		ssize_t got = recv(proc->child.fd, packet, sizeof packet, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0 || !nvml_reply_check(packet, (size_t)got, &reply))
			on_death(proc);
		else
			on_reply(proc, &reply);
	}
}

// One timer for three waits, by the state of the child.
static void on_proc_timer(void *arg)
{
	struct proc *proc = arg;
	struct nvml_host *host = proc->host;
	if (proc->state == PROC_DOWN) {
		start_proc(proc);
		return;
	}
	host->stats.hangs++;
	bool was_starting = proc->state == PROC_STARTING;
	end_proc(proc, NULL);
	for (uint32_t slot = 0; was_starting && slot < host->count; slot++) {
		if (is_member(proc, &host->devices[slot]))
			tell_probe(&host->devices[slot], HEALTH_PROBE_HUNG, HEALTH_ACTION_UNKNOWN,
				   "");
	}
}

// Whether one more child could be put among the bodies together with all that live now.
static bool has_room(const struct nvml_host *host)
{
	uint32_t count = nvml_bodies_of(&host->bodies, UINT32_MAX);
	for (uint32_t i = 0; i <= GPU_MAX; i++)
		count += host->procs[i].state != PROC_DOWN ? 1 : 0;
	return count < NVML_BODIES_MAX;
}

static void start_proc(struct proc *proc)
{
	struct nvml_host *host = proc->host;
	const char *program = host->config.program == NULL ? "/proc/self/exe"
							   : host->config.program;
	uint32_t owner = index_of(proc);
	ASSERT(proc->state == PROC_DOWN && proc->watch == NULL);
	// A device whose last child is still stuck in the driver gets no second one.
	bool is_stuck = owner != POOL && nvml_bodies_of(&host->bodies, owner) > 0;
	if (is_stuck || !has_room(host)) {
		loop_timer_set(proc->timer, BACK_OFF_ALONE_MAX_NS);
		if (is_stuck)
			tell_probe(&host->devices[owner - 1], HEALTH_PROBE_HUNG,
				   HEALTH_ACTION_UNKNOWN, "");
		return;
	}
	if (nvml_spawn(program, &host->config.libraries, &proc->child, NULL) != ERR_OK) {
		loop_timer_set(proc->timer, BACK_OFF_MAX_NS);
		return;
	}
	host->stats.starts++;
	proc->state = PROC_STARTING;
	loop_timer_set(proc->timer, host->config.start_ns);
	if (loop_fd_new(host->loop, proc->child.fd, LOOP_READ, on_socket, proc, &proc->watch,
			NULL) != ERR_OK)
		end_proc(proc, NULL);
}

static void send_next(struct device *device)
{
	struct nvml_host *host = device->host;
	struct proc *proc = &host->procs[device->proc_i];
	if (proc->state != PROC_READY || device->asked != 0 || device->slot >= host->count)
		return;
	uint32_t type = NVML_ASK_OPEN;
	if (device->is_open) {
		if (device->wanted == 0)
			return;
		type = (uint32_t)__builtin_ctz(device->wanted);
		device->wanted &= ~(1U << type);
	}
	struct nvml_request request = { .magic = NVML_WIRE_MAGIC,
					.type = type,
					.seq = ++device->seq,
					.slot = device->slot,
					.index = device->slot };
	uint64_t deadline_ns = host->config.deadline_ns;
	if (type == NVML_ASK_MIG_CHANGE) {
		request.change = device->change;
		deadline_ns *= CHANGE_DEADLINES;
	}
	device->asked = type;
	loop_timer_set(device->deadline, deadline_ns);
	// A failure shows as a closed socket in the next turn, or as a missed deadline.
	(void)send(proc->child.fd, &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void nvml_host_ask(struct nvml_host *host, uint32_t slot, enum nvml_ask ask)
{
	ASSERT(slot < GPU_MAX && ask > NVML_ASK_OPEN && ask < NVML_ASK_END);
	struct device *device = &host->devices[slot];
	if (device->asked == ask)
		return;
	device->wanted |= 1U << ask;
	send_next(device);
}

void nvml_host_change_mig(struct nvml_host *host, uint32_t slot,
			  const struct nvml_mig_change *change)
{
	ASSERT(slot < GPU_MAX);
	if (host->devices[slot].asked == NVML_ASK_MIG_CHANGE)
		return; // one at a time; that one has a deadline
	host->devices[slot].change = *change;
	nvml_host_ask(host, slot, NVML_ASK_MIG_CHANGE);
}

void nvml_host_stats(const struct nvml_host *host, struct nvml_host_stats *ret)
{
	*ret = host->stats;
	ret->stuck = nvml_bodies_of(&host->bodies, UINT32_MAX);
	ret->alone = host->count - member_count(&host->procs[POOL]);
}

err_status nvml_host_new(struct loop *loop, const struct nvml_host_config *config,
			 struct nvml_host **ret, struct err *err)
{
	ASSERT(config->deadline_ns > 0 && config->start_ns > 0);
	struct nvml_host *host = calloc(1, sizeof *host);
	if (host == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the driver's children");
	host->loop = loop;
	host->config = *config;
	host->bodies.loop = loop;
	for (uint32_t i = 0; i <= GPU_MAX; i++) {
		host->procs[i].host = host;
		host->procs[i].timer = loop_timer_new(loop, on_proc_timer, &host->procs[i]);
	}
	for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
		struct device *device = &host->devices[slot];
		device->host = host;
		device->slot = slot;
		device->deadline = loop_timer_new(loop, on_deadline, device);
	}
	loop_timer_set(host->procs[POOL].timer, 0);
	*ret = host;
	return ERR_OK;
}

void nvml_host_free(struct nvml_host *host)
{
	if (host == NULL)
		return;
	for (uint32_t i = 0; i <= GPU_MAX; i++) {
		struct proc *proc = &host->procs[i];
		if (proc->state != PROC_DOWN)
			end_proc(proc, NULL);
		loop_timer_free(proc->timer);
	}
	for (uint32_t slot = 0; slot < GPU_MAX; slot++)
		loop_timer_free(host->devices[slot].deadline);
	nvml_bodies_done(&host->bodies);
	free(host);
}
