// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/monitor.h"

#include "daemons/agent/monitor_file.h"
#include "gpu/nvml_abi.h"
#include "sys/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t READY_AFTER_NS = 3 * UINT64_C(1000000000);
enum { NUMA_NODE_MAX = 4096, PCI_CLASS_MAX = 0xffffff };

struct monitor {
	struct loop *loop;
	struct monitor_config config;
	struct nvml_host *host;
	struct loop_timer *probe_timer, *read_timer, *processes_timer, *ready_timer;
	struct monitor_gpu gpus[GPU_MAX];
	uint32_t count;
	struct topology topology;
	struct nvml_hello driver;
	bool is_driver_seen, is_late, is_save_due;
	int32_t events_status;
};

static void log_gpu(log_level level, const char *message, const struct monitor_gpu *gpu)
{
	char index[16];
	(void)snprintf(index, sizeof index, "%" PRIu32, gpu->info.index);
	log_kv(level, message, "gpu", gpu->info.uuid, "index", index, "state",
	       health_state_name(gpu->health.state), "reason", gpu->health.reason, NULL);
}

static void save(void *arg)
{
	struct monitor *monitor = arg;
	struct err err;
	monitor->is_save_due = false;
	uint32_t listed = monitor->is_driver_seen ? monitor->driver.gpu_count : monitor->count;
	if (monitor->config.state_path != NULL &&
	    monitor_file_save(monitor->config.state_path, monitor->gpus, listed, &err) != ERR_OK)
		log_err(LOG_WARN, "health is not kept", &err);
}

// The file waits until the kubelet and the others have heard.
static void changed(struct monitor *monitor)
{
	monitor->config.on_change(monitor->config.arg);
	if (!monitor->is_save_due)
		loop_defer(monitor->loop, save, monitor);
	monitor->is_save_due = true;
}

// A file of sysfs about the GPU's PCI device; false: not there.
static bool read_pci(const struct monitor *monitor, const struct gpu_info *info, const char *name,
		     long *ret)
{
	char path[256], id[GPU_PCI_BYTES], text[32] = "";
	// The driver writes an eight-digit domain in capitals, sysfs four digits in small letters.
	const char *short_id = strlen(info->pci_bus_id) > 12 ? info->pci_bus_id + 4
							     : info->pci_bus_id;
	size_t i = 0;
	for (; short_id[i] != '\0' && i < sizeof id - 1; i++)
		id[i] = short_id[i] >= 'A' && short_id[i] <= 'F' ? (char)(short_id[i] + 32)
								 : short_id[i];
	id[i] = '\0';
	(void)snprintf(path, sizeof path, "%.100s/bus/pci/devices/%s/%s", monitor->config.sys_root,
		       id, name);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	char *line = fgets(text, sizeof text, file), *end = text;
	(void)fclose(file);
	*ret = strtol(text, &end, 0);
	return line != NULL && end != text;
}

static void add_pci_facts(const struct monitor *monitor, struct gpu_info *info)
{
	long value = 0;
	info->numa_node = -1;
	if (read_pci(monitor, info, "numa_node", &value) && value >= 0 && value <= NUMA_NODE_MAX)
		info->numa_node = (int32_t)value;
	info->pci_class = 0;
	if (read_pci(monitor, info, "class", &value) && value > 0 && value <= PCI_CLASS_MAX)
		info->pci_class = (uint32_t)value;
}

static void note(const struct monitor *monitor, const struct health *health,
		 struct monitor_since *since)
{
	bool is_dead = health_is_dead(health);
	if (health_is_offered(health))
		since->bad_since_s = 0;
	else if (since->bad_since_s == 0 || (is_dead && !since->was_dead))
		since->bad_since_s = world_wall_s(loop_world(monitor->loop));
	since->was_dead = is_dead;
}

static void note_since(const struct monitor *monitor, struct monitor_gpu *gpu)
{
	note(monitor, &gpu->health, &gpu->since);
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++)
		note(monitor, &gpu->parts[i].health, &gpu->parts[i].since);
}

// A fault of an instance heals by the probes of its GPU.
static bool heal_parts(struct monitor *monitor, struct monitor_gpu *gpu, int action)
{
	bool is_news = false;
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		struct health *health = &gpu->parts[i].health;
		if (health->state != HEALTH_HEALTHY &&
		    health_on_probe(health, &monitor->config.health, HEALTH_PROBE_OK, action, "",
				    loop_now_ns(monitor->loop)))
			is_news = true;
	}
	return is_news;
}

static void on_probe(void *arg, uint32_t slot, health_probe probe, int action, const char *detail)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	health_state before = gpu->health.state;
	bool was_seen = gpu->is_seen;
	gpu->is_seen = true;
	bool is_news = health_on_probe(&gpu->health, &monitor->config.health, probe, action, detail,
				       loop_now_ns(monitor->loop));
	if (probe == HEALTH_PROBE_OK)
		is_news = heal_parts(monitor, gpu, action) || is_news;
	else
		gpu->is_mig_seen = true; // what does not answer is not waited for
	note_since(monitor, gpu);
	if (before != gpu->health.state && gpu->is_known)
		log_gpu(gpu->health.state == HEALTH_HEALTHY ? LOG_INFO : LOG_WARN, "health changed",
			gpu);
	if (is_news || !was_seen)
		changed(monitor);
}

static void on_driver(void *arg, int32_t status, const struct nvml_hello *hello)
{
	struct monitor *monitor = arg;
	if (status != 0) {
		log_kv(LOG_WARN, "driver does not answer", "why", hello->text, NULL);
		return;
	}
	bool is_news = strcmp(monitor->driver.driver_version, hello->driver_version) != 0 ||
		       monitor->driver.gpu_count != hello->gpu_count;
	monitor->driver = *hello;
	monitor->is_driver_seen = true;
	if (hello->gpu_count > monitor->count)
		monitor->count = hello->gpu_count;
	// Known from the file or from before, and now beyond what the driver lists.
	for (uint32_t slot = hello->gpu_count; slot < monitor->count; slot++)
		on_probe(monitor, slot, HEALTH_PROBE_LOST, HEALTH_ACTION_UNKNOWN,
			 "the driver does not list it");
	if (!is_news)
		return;
	char count[16];
	(void)snprintf(count, sizeof count, "%" PRIu32, hello->gpu_count);
	log_kv(LOG_INFO, "driver answers", "version", hello->driver_version, "gpus", count, NULL);
	changed(monitor);
}

static void fill_topology(struct monitor *monitor)
{
	const struct gpu_info *gpus[GPU_MAX];
	for (uint32_t slot = 0; slot < monitor->count; slot++)
		gpus[slot] = &monitor->gpus[slot].info;
	topology_fill(&monitor->topology, gpus, monitor->count);
}

static void on_info(void *arg, uint32_t slot, const struct gpu_info *info)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	struct gpu_info next = *info;
	add_pci_facts(monitor, &next);
	bool is_other = strcmp(gpu->info.uuid, info->uuid) != 0;
	bool is_news = !gpu->is_seen || is_other;
	bool is_changed = gpu->info.mig_enabled != next.mig_enabled ||
			  gpu->info.switch_links != next.switch_links ||
			  gpu->info.link_count != next.link_count ||
			  strcmp(gpu->info.clique, next.clique) != 0;
	if (is_other)
		monitor_file_recall(monitor->gpus, &monitor->count, slot, info->uuid);
	gpu->info = next;
	gpu->is_known = true;
	gpu->is_seen = true;
	fill_topology(monitor);
	gpu->is_mig_seen = gpu->is_mig_seen || !next.mig_capable;
	if (next.mig_capable)
		nvml_host_ask(monitor->host, slot, NVML_ASK_MIG);
	if (is_news)
		log_gpu(LOG_INFO, "device", gpu);
	if (is_news || is_changed)
		changed(monitor);
}

static void on_reading(void *arg, uint32_t slot, const struct gpu_reading *reading)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	gpu->reading = *reading;
	gpu->reading_ns = loop_now_ns(monitor->loop);
	gpu->reading_wall_s = world_wall_s(loop_world(monitor->loop));
	if (gpu_reading_has(reading, GPU_FIELD_UTIL_PERCENT) &&
	    gpu_reading_has(reading, GPU_FIELD_FB_USED_MIB)) {
		gpu->util_sum += (uint64_t)reading->values[GPU_FIELD_UTIL_PERCENT] * 10;
		gpu->memory_sum_mib += (uint64_t)reading->values[GPU_FIELD_FB_USED_MIB];
		gpu->sample_count++;
	}
	monitor->config.on_reading(monitor->config.arg, slot);
}

// Faults stay with the instances that are there still.
static void take_parts(struct monitor_gpu *gpu, const struct mig_state *mig)
{
	struct monitor_part before[MIG_INSTANCES_MAX];
	memcpy(before, gpu->parts, sizeof before);
	for (size_t i = 0; i < MIG_INSTANCES_MAX; i++) {
		struct monitor_part *part = &gpu->parts[i];
		*part = (struct monitor_part){ 0 };
		health_init(&part->health);
		if (i >= mig->instance_count)
			continue;
		memcpy(part->uuid, mig->instances[i].uuid, sizeof part->uuid);
		for (size_t j = 0; j < MIG_INSTANCES_MAX; j++) {
			if (part->uuid[0] != '\0' && strcmp(before[j].uuid, part->uuid) == 0)
				*part = before[j];
		}
	}
}

static void on_mig(void *arg, uint32_t slot, const struct mig_state *mig)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	bool is_news = !gpu->is_mig_seen;
	gpu->is_mig_seen = true;
	if (mig != NULL) {
		is_news = is_news || !mig_is_same(&gpu->mig, mig);
		if (is_news)
			take_parts(gpu, mig);
		gpu->mig = *mig;
		gpu->mig_ns = loop_now_ns(monitor->loop);
		gpu->info.mig_enabled = mig->is_enabled != 0;
	}
	if (is_news)
		changed(monitor);
	if (!gpu->is_mig_told_due)
		return;
	gpu->is_mig_told_due = false;
	monitor->config.on_mig_changed(monitor->config.arg, slot, gpu->change_status,
				       gpu->change_text);
}

static void on_mig_changed(void *arg, uint32_t slot, int32_t status, const char *text)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	gpu->is_mig_told_due = true;
	gpu->change_status = status;
	(void)snprintf(gpu->change_text, sizeof gpu->change_text, "%s", text);
	nvml_host_ask(monitor->host, slot, NVML_ASK_MIG);
}

static void on_processes(void *arg, uint32_t slot, const struct nvml_processes *processes)
{
	struct monitor *monitor = arg;
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	gpu->processes = *processes;
	gpu->processes_ns = loop_now_ns(monitor->loop);
	monitor->config.on_processes(monitor->config.arg, slot);
}

static void count_xid(struct monitor_gpu *gpu, uint32_t xid)
{
	size_t i = 0;
	while (i < MONITOR_XIDS - 1 && gpu->xids[i].count > 0 && gpu->xids[i].xid != xid)
		i++;
	gpu->xids[i].xid = i < MONITOR_XIDS - 1 ? xid : 0;
	gpu->xids[i].count++;
	gpu->last_xid = xid;
}

// The health that an XID is about: of the instance that it names, else of the GPU.
static struct health *health_of(struct monitor_gpu *gpu, const struct nvml_xid *xid)
{
	for (uint32_t i = 0; i < gpu->mig.instance_count; i++) {
		if (gpu->mig.is_enabled != 0 && xid->gpu_instance != NVML_NO_INSTANCE &&
		    gpu->mig.instances[i].gi == xid->gpu_instance)
			return &gpu->parts[i].health;
	}
	return &gpu->health;
}

static void on_xid(void *arg, uint32_t slot, const struct nvml_xid *xid)
{
	struct monitor *monitor = arg;
	uint32_t number = (uint32_t)xid->xid;
	bool is_ignored = xid_policy_ignores(&monitor->config.xids, number);
	if (slot == NVML_SLOT_NONE || slot >= monitor->count) {
		// Nobody says whose it is: those that do not answer any more show themselves.
		for (uint32_t i = 0; i < monitor->count; i++)
			nvml_host_ask(monitor->host, i, NVML_ASK_PROBE);
		log_kv(LOG_WARN, "XID of an unknown device", "text", xid_text(number), NULL);
		return;
	}
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	count_xid(gpu, number);
	bool is_news = !is_ignored &&
		       health_on_xid(health_of(gpu, xid), number, loop_now_ns(monitor->loop));
	note_since(monitor, gpu);
	if (is_news)
		changed(monitor);
	log_gpu(is_ignored ? LOG_INFO : LOG_WARN, xid_text(number), gpu);
	nvml_host_ask(monitor->host, slot, NVML_ASK_PROBE);
}

static void on_events(void *arg, int32_t status)
{
	struct monitor *monitor = arg;
	char text[16];
	monitor->events_status = status;
	(void)snprintf(text, sizeof text, "%" PRId32, status);
	log_kv(status == 0 ? LOG_INFO : LOG_WARN,
	       status == 0 ? "events are watched" : "events cannot be watched, probes remain",
	       "code", text, NULL);
}

static void ask_all(struct monitor *monitor, enum nvml_ask ask, struct loop_timer *timer,
		    uint64_t period_ns)
{
	for (uint32_t slot = 0; slot < monitor->count; slot++)
		nvml_host_ask(monitor->host, slot, ask);
	loop_timer_set(timer, period_ns);
}

static void on_probe_timer(void *arg)
{
	struct monitor *monitor = arg;
	ask_all(monitor, NVML_ASK_PROBE, monitor->probe_timer, monitor->config.probe_ns);
}

static void on_read_timer(void *arg)
{
	struct monitor *monitor = arg;
	ask_all(monitor, NVML_ASK_READ, monitor->read_timer, monitor->config.read_ns);
	for (uint32_t slot = 0; slot < monitor->count; slot++) {
		if (monitor->gpus[slot].info.mig_capable)
			nvml_host_ask(monitor->host, slot, NVML_ASK_MIG);
	}
}

static void on_processes_timer(void *arg)
{
	struct monitor *monitor = arg;
	ask_all(monitor, NVML_ASK_PROCESSES, monitor->processes_timer,
		monitor->config.processes_ns);
}

static void on_late(void *arg)
{
	struct monitor *monitor = arg;
	monitor->is_late = true;
	monitor->config.on_change(monitor->config.arg);
}

err_status monitor_new(struct loop *loop, const struct monitor_config *config, struct monitor **ret,
		       struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	struct monitor *monitor = calloc(1, sizeof *monitor);
	if (monitor == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the devices");
	monitor->loop = loop;
	monitor->config = *config;
	monitor->probe_timer = loop_timer_new(loop, on_probe_timer, monitor);
	monitor->read_timer = loop_timer_new(loop, on_read_timer, monitor);
	monitor->processes_timer = loop_timer_new(loop, on_processes_timer, monitor);
	monitor->ready_timer = loop_timer_new(loop, on_late, monitor);
	for (size_t i = 0; i < GPU_MAX; i++) {
		health_init(&monitor->gpus[i].health);
		monitor->gpus[i].info.numa_node = -1;
	}
	if (config->state_path != NULL &&
	    monitor_file_load(config->state_path, monitor->gpus, &monitor->count, loop_now_ns(loop),
			      err) != ERR_OK)
		log_err(LOG_WARN, "kept health is not read", err);
	struct nvml_host_config host = config->host;
	host.sink = (struct nvml_sink){ .arg = monitor,
					.on_driver = on_driver,
					.on_info = on_info,
					.on_probe = on_probe,
					.on_reading = on_reading,
					.on_processes = on_processes,
					.on_mig = on_mig,
					.on_mig_changed = on_mig_changed,
					.on_xid = on_xid,
					.on_events = on_events };
	if (nvml_host_new(loop, &host, &monitor->host, err) != ERR_OK) {
		monitor_free(monitor);
		return err->status;
	}
	loop_timer_set(monitor->probe_timer, config->probe_ns);
	loop_timer_set(monitor->read_timer, config->read_ns / 2);
	loop_timer_set(monitor->processes_timer, config->processes_ns);
	loop_timer_set(monitor->ready_timer, READY_AFTER_NS);
	*ret = monitor;
	return ERR_OK;
}

void monitor_free(struct monitor *monitor)
{
	if (monitor == NULL)
		return;
	if (monitor->is_save_due)
		save(monitor);
	nvml_host_free(monitor->host);
	loop_timer_free(monitor->probe_timer);
	loop_timer_free(monitor->read_timer);
	loop_timer_free(monitor->processes_timer);
	loop_timer_free(monitor->ready_timer);
	free(monitor);
}

uint32_t monitor_count(const struct monitor *monitor) { return monitor->count; }

const struct monitor_gpu *monitor_gpu(const struct monitor *monitor, uint32_t slot)
{
	ASSERT(slot < monitor->count);
	return &monitor->gpus[slot];
}

const struct monitor_gpu *monitor_gpus(const struct monitor *monitor) { return monitor->gpus; }

void monitor_on_reset(struct monitor *monitor, const char *uuid)
{
	for (uint32_t slot = 0; slot < monitor->count; slot++) {
		if (strcmp(monitor->gpus[slot].info.uuid, uuid) == 0)
			health_on_reset(&monitor->gpus[slot].health);
	}
}

const struct monitor_gpu *monitor_find(const struct monitor *monitor, struct str uuid,
				       uint32_t *ret_slot)
{
	for (uint32_t slot = 0; slot < monitor->count; slot++) {
		const struct monitor_gpu *gpu = &monitor->gpus[slot];
		if (!gpu->is_known || !str_eq_c(uuid, gpu->info.uuid))
			continue;
		if (ret_slot != NULL)
			*ret_slot = slot;
		return gpu;
	}
	return NULL;
}

bool monitor_find_mig(const struct monitor *monitor, struct str uuid, uint32_t *ret_slot,
		      uint32_t *ret_instance_i)
{
	for (uint32_t slot = 0; slot < monitor->count; slot++) {
		const struct mig_state *mig = &monitor->gpus[slot].mig;
		const struct mig_instance *found = mig_instance_find(mig, uuid);
		if (found == NULL || !monitor->gpus[slot].is_known)
			continue;
		*ret_slot = slot;
		*ret_instance_i = (uint32_t)(found - mig->instances);
		return true;
	}
	return false;
}

bool monitor_is_part_offered(const struct monitor_gpu *gpu, uint32_t instance_i)
{
	ASSERT(instance_i < MIG_INSTANCES_MAX);
	return health_is_offered(&gpu->health) && health_is_offered(&gpu->parts[instance_i].health);
}

const char *monitor_part_reason(const struct monitor_gpu *gpu, uint32_t instance_i)
{
	ASSERT(instance_i < MIG_INSTANCES_MAX);
	return health_is_offered(&gpu->health) ? gpu->parts[instance_i].health.reason
					       : gpu->health.reason;
}

void monitor_change_mig(struct monitor *monitor, uint32_t slot,
			const struct nvml_mig_change *change)
{
	nvml_host_change_mig(monitor->host, slot, change);
}

void monitor_mig_now(struct monitor *monitor, uint32_t slot)
{
	nvml_host_ask(monitor->host, slot, NVML_ASK_MIG);
}

const struct topology *monitor_topology(const struct monitor *monitor)
{
	return &monitor->topology;
}

bool monitor_is_ready(const struct monitor *monitor)
{
	bool all_seen = monitor->is_driver_seen && monitor->count > 0, any = false;
	for (uint32_t slot = 0; slot < monitor->count; slot++) {
		all_seen = all_seen && monitor->gpus[slot].is_seen &&
			   monitor->gpus[slot].is_mig_seen;
		any = any || monitor->gpus[slot].is_known;
	}
	return all_seen || (monitor->is_late && any);
}

void monitor_read_now(struct monitor *monitor, uint32_t slot)
{
	nvml_host_ask(monitor->host, slot, NVML_ASK_READ);
}

void monitor_processes_now(struct monitor *monitor, uint32_t slot)
{
	nvml_host_ask(monitor->host, slot, NVML_ASK_PROCESSES);
}

bool monitor_take_sample(struct monitor *monitor, uint32_t slot, uint32_t *ret_util_milli,
			 uint64_t *ret_memory_mib)
{
	ASSERT(slot < monitor->count);
	struct monitor_gpu *gpu = &monitor->gpus[slot];
	if (gpu->sample_count == 0)
		return false;
	*ret_util_milli = (uint32_t)(gpu->util_sum / gpu->sample_count);
	*ret_memory_mib = gpu->memory_sum_mib / gpu->sample_count;
	gpu->util_sum = gpu->memory_sum_mib = gpu->sample_count = 0;
	return true;
}

const struct nvml_hello *monitor_driver(const struct monitor *monitor) { return &monitor->driver; }

void monitor_host_stats(const struct monitor *monitor, struct nvml_host_stats *ret)
{
	nvml_host_stats(monitor->host, ret);
}

int32_t monitor_events_status(const struct monitor *monitor) { return monitor->events_status; }
