// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_child.h"

#include "daemons/agent/dcgm.h"
#include "daemons/agent/nvml_perf.h"
#include "daemons/agent/nvml_read.h"
#include "gpu/health.h"
#include "sys/clock.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	THREAD_STACK_BYTES = 512 * 1024,
	WAIT_MS = 1000,
	WAIT_NEW_MS = 20, // while devices may still be coming: they register between waits
	NEW_FOR_WAITS = 100,
	BACK_OFF_MIN_MS = 250, // after a failed wait
	BACK_OFF_MAX_MS = 5000,
	HEARTBEAT_WAITS = 5,
	DCGM_LOOK_MS = 1000,
};

// A thread with its one-place mailbox.
struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	bool is_started, is_filled;
	struct nvml_request request;
	struct nvml_device *device; // NULL until OPEN succeeded
	struct gpu_info info;
	struct mig_state mig; // profiles of the board, once they were read
	struct nvml_perf perf;
	struct nvml_mig_perf mig_perf;
};

static struct child {
	struct nvml_lib lib;
	char driver_version[NVML_TEXT_BYTES]; // as hello told it
	struct worker workers[GPU_MAX];
	// Devices by slot for the event thread; set once each, after OPEN succeeded.
	_Atomic(struct nvml_device *) devices[GPU_MAX];
	const char *dcgm_library, *dcgm_address; // library NULL: without
	_Atomic(struct dcgm *) dcgm;
} child;

static void say(struct nvml_reply *reply)
{
	reply->magic = NVML_WIRE_MAGIC;
	size_t bytes = nvml_reply_bytes(reply->type);
	ASSERT(bytes > 0);
	ssize_t sent = 0;
	do {
		sent = send(NVML_WIRE_FD, reply, bytes, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		_exit(0); // the agent is gone
}

static void pause_ms(long ms)
{
	struct timespec span = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL); // early is no harm
}

static nvml_return open_device(struct worker *worker, const struct nvml_request *request,
			       struct gpu_info *ret)
{
	struct nvml_device *device = NULL;
	nvml_return result = child.lib.device_by_index(request->index, &device);
	if (result == NVML_SUCCESS)
		result = nvml_read_info(&child.lib, device, request->index, &worker->info);
	if (result != NVML_SUCCESS)
		return result;
	worker->device = device;
	*ret = worker->info;
	atomic_store(&child.devices[request->slot], device);
	return NVML_SUCCESS;
}

// Another driver than the one that hello told of: then all is to be read anew, by a new child.
static bool is_driver_other(void)
{
	char now[NVML_TEXT_BYTES] = "";
	return child.lib.driver_version != NULL && child.driver_version[0] != '\0' &&
	       child.lib.driver_version(now, sizeof now - 1) == NVML_SUCCESS &&
	       strcmp(now, child.driver_version) != 0;
}

static nvml_return probe_device(struct worker *worker, struct nvml_probe *ret)
{
	if (!is_driver_other())
		return nvml_read_probe(&child.lib, worker->device, worker->info.uuid, ret);
	*ret = (struct nvml_probe){ .action = HEALTH_ACTION_UNKNOWN, .text = "driver changed" };
	return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

static nvml_return read_mig(struct worker *worker, struct mig_state *ret)
{
	nvml_return result =
		nvml_read_mig(&child.lib, worker->device, &worker->info, &worker->mig, ret);
	if (result != NVML_SUCCESS)
		return result;
	nvml_read_mig_perf(&child.lib, worker->device, &worker->mig_perf, ret);
	worker->mig = *ret;
	return result;
}

static bool start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	if (pthread_attr_init(&attr) != 0)
		return false;
	bool is_started = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES) == 0 &&
			  pthread_create(thread, &attr, fn, arg) == 0;
	(void)pthread_attr_destroy(&attr);
	return is_started;
}

static void *look_with_dcgm(void *arg)
{
	for (;;) {
		dcgm_look(arg, clock_mono_ns());
		pause_ms(DCGM_LOOK_MS);
	}
	return NULL;
}

// Once, when the first board is found that cannot count by itself.
static void start_dcgm(void)
{
	struct dcgm *dcgm = NULL;
	pthread_t thread;
	if (dcgm_new(child.dcgm_library, child.dcgm_address, &dcgm, NULL) != ERR_OK)
		return; // the profiling counters stay absent
	if (start_thread(&thread, look_with_dcgm, dcgm))
		atomic_store(&child.dcgm, dcgm);
	else
		dcgm_free(dcgm);
}

static void read_values(struct worker *worker, struct gpu_reading *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	nvml_read_fields(&child.lib, worker->device, ret);
	nvml_read_perf(&child.lib, worker->device, &worker->perf, clock_mono_ns(), ret);
	if (child.dcgm_library == NULL || nvml_perf_has_counters(&worker->perf))
		return;
	(void)pthread_once(&once, start_dcgm);
	struct dcgm *dcgm = atomic_load(&child.dcgm);
	if (dcgm != NULL)
		dcgm_add(dcgm, worker->info.uuid, clock_mono_ns(), ret);
}

static void answer(struct worker *worker, const struct nvml_request *request)
{
	struct nvml_reply reply = { .type = nvml_answer_of(request->type),
				    .seq = request->seq,
				    .slot = request->slot };
	nvml_return result = NVML_SUCCESS;
	if (request->type != NVML_ASK_OPEN && worker->device == NULL)
		result = NVML_ERROR_UNINITIALIZED;
	else if (request->type == NVML_ASK_OPEN)
		result = open_device(worker, request, &reply.body.info);
	else if (request->type == NVML_ASK_PROBE)
		result = probe_device(worker, &reply.body.probe);
	else if (request->type == NVML_ASK_READ)
		read_values(worker, &reply.body.reading);
	else if (request->type == NVML_ASK_MIG)
		result = read_mig(worker, &reply.body.mig);
	else if (request->type == NVML_ASK_MIG_CHANGE)
		result = nvml_change_mig(&child.lib, worker->device, &request->change,
					 reply.body.probe.text);
	else
		result = nvml_read_processes(&child.lib, worker->device, &reply.body.processes);
	reply.status = (int32_t)result;
	say(&reply);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	for (;;) {
		pthread_mutex_lock(&worker->lock);
		while (!worker->is_filled)
			pthread_cond_wait(&worker->filled, &worker->lock);
		struct nvml_request request = worker->request;
		worker->is_filled = false;
		pthread_mutex_unlock(&worker->lock);
		answer(worker, &request);
	}
	return NULL;
}

static bool hand_over(const struct nvml_request *request)
{
	struct worker *worker = &child.workers[request->slot];
	if (!worker->is_started) {
		(void)pthread_mutex_init(&worker->lock, NULL);
		(void)pthread_cond_init(&worker->filled, NULL);
		worker->is_started = start_thread(&worker->thread, work, worker);
		if (!worker->is_started)
			return false;
	}
	pthread_mutex_lock(&worker->lock);
	bool is_free = !worker->is_filled;
	worker->request = *request;
	worker->is_filled = true;
	pthread_cond_signal(&worker->filled);
	pthread_mutex_unlock(&worker->lock);
	return is_free; // the agent asks one question a device at a time
}

static uint32_t slot_of(const struct nvml_device *device)
{
	for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
		if (device != NULL && atomic_load(&child.devices[slot]) == device)
			return slot;
	}
	return NVML_SLOT_NONE;
}

static void say_event(const struct nvml_event_data *event)
{
	if (event->event_type != NVML_EVENT_XID_CRITICAL)
		return;
	struct nvml_reply reply = {
		.type = NVML_SAY_XID,
		.slot = slot_of(event->device),
		.body.xid = { .xid = event->event_data & UINT32_MAX,
			      .gpu_instance = event->gpu_instance_id,
			      .compute_instance = event->compute_instance_id },
	};
	say(&reply);
}

static void say_events_state(nvml_return result)
{
	struct nvml_reply reply = { .type = NVML_SAY_EVENTS,
				    .slot = NVML_SLOT_NONE,
				    .status = (int32_t)result };
	say(&reply);
}

// Devices register here, not in their own threads: a set may not be changed while it waits.
static bool register_new(struct nvml_event_set *set, bool registered[GPU_MAX])
{
	bool any = false;
	const uint64_t types = NVML_EVENT_XID_CRITICAL | NVML_EVENT_DOUBLE_BIT_ECC |
			       NVML_EVENT_SINGLE_BIT_ECC;
	for (uint32_t slot = 0; slot < GPU_MAX; slot++) {
		struct nvml_device *device = atomic_load(&child.devices[slot]);
		if (device == NULL || registered[slot])
			continue;
		nvml_return result = child.lib.event_register(device, types, set);
		// Parts without events are watched by probes alone.
		registered[slot] = result == NVML_SUCCESS || result == NVML_ERROR_NOT_SUPPORTED;
		any = any || registered[slot];
	}
	return any;
}

static void *watch(void *arg)
{
	struct nvml_event_set *set = arg;
	bool registered[GPU_MAX] = { false };
	long back_off_ms = BACK_OFF_MIN_MS;
	nvml_return before = NVML_SUCCESS;
	unsigned short_waits = NEW_FOR_WAITS;
	for (unsigned waits = 0;; waits++) {
		struct nvml_event_data event = { 0 };
		if (register_new(set, registered))
			short_waits = NEW_FOR_WAITS;
		uint32_t wait_ms = short_waits > 0 ? WAIT_NEW_MS : WAIT_MS;
		short_waits -= short_waits > 0 ? 1 : 0;
		nvml_return result = child.lib.event_wait(set, &event, wait_ms);
		bool is_good = result == NVML_SUCCESS || result == NVML_ERROR_TIMEOUT;
		if (result == NVML_SUCCESS)
			say_event(&event);
		nvml_return state = is_good ? NVML_SUCCESS : result;
		if (state != before || waits % HEARTBEAT_WAITS == 0)
			say_events_state(state);
		before = state;
		if (is_good) {
			back_off_ms = BACK_OFF_MIN_MS;
			continue;
		}
		pause_ms(back_off_ms);
		back_off_ms = back_off_ms * 2 < BACK_OFF_MAX_MS ? back_off_ms * 2 : BACK_OFF_MAX_MS;
	}
	return NULL;
}

static void start_events(void)
{
	struct nvml_event_set *set = NULL;
	pthread_t thread;
	nvml_return result = NVML_ERROR_FUNCTION_NOT_FOUND;
	if (child.lib.event_set_create != NULL && child.lib.event_register != NULL &&
	    child.lib.event_wait != NULL)
		result = child.lib.event_set_create(&set);
	if (result == NVML_SUCCESS && start_thread(&thread, watch, set))
		return;
	say_events_state(result == NVML_SUCCESS ? NVML_ERROR_OPERATING_SYSTEM : result);
}

static bool say_hello(const char *library)
{
	struct nvml_reply reply = { .type = NVML_SAY_HELLO, .slot = NVML_SLOT_NONE };
	struct nvml_hello *hello = &reply.body.hello;
	struct err err = { 0 };
	int cuda = 0;
	nvml_return result = NVML_ERROR_LIBRARY_NOT_FOUND;
	if (nvml_lib_open(library, &child.lib, &err) != ERR_OK) {
		(void)snprintf(hello->text, sizeof hello->text, "%.95s", err.text);
	} else {
		result = child.lib.init();
		if (result == NVML_SUCCESS)
			result = child.lib.device_count(&hello->gpu_count);
		if (result != NVML_SUCCESS)
			(void)snprintf(hello->text, sizeof hello->text, "%.60s (code %u)",
				       nvml_lib_error_text(&child.lib, result), result);
	}
	if (result == NVML_SUCCESS) {
		if (child.lib.driver_version != NULL)
			(void)child.lib.driver_version(hello->driver_version,
						       sizeof hello->driver_version - 1);
		memcpy(child.driver_version, hello->driver_version, sizeof child.driver_version);
		if (child.lib.library_version != NULL)
			(void)child.lib.library_version(hello->library_version,
							sizeof hello->library_version - 1);
		if (child.lib.cuda_version != NULL &&
		    child.lib.cuda_version(&cuda) == NVML_SUCCESS && cuda > 0)
			hello->cuda_version = (uint32_t)cuda;
		if (hello->gpu_count > GPU_MAX)
			hello->gpu_count = GPU_MAX;
	}
	reply.status = (int32_t)result;
	say(&reply);
	return result == NVML_SUCCESS;
}

int nvml_child_main(const char *library, const char *dcgm, const char *dcgm_address)
{
	child.dcgm_library = dcgm;
	child.dcgm_address = dcgm_address;
	// Nothing of it is worth keeping when the agent is gone, and it needs no more rights.
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 1;
	(void)mallopt(M_ARENA_MAX, 1); // threads are many, their allocations few
	if (!say_hello(library))
		return 1;
	start_events();
	for (;;) {
		unsigned char packet[sizeof(struct nvml_request) + 1];
		struct nvml_request request;
		ssize_t got = recv(NVML_WIRE_FD, packet, sizeof packet, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			_exit(0);
		if (!nvml_request_check(packet, (size_t)got, &request) || !hand_over(&request))
			_exit(1);
	}
}
