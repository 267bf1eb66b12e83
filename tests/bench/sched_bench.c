// SPDX-License-Identifier: Apache-2.0
// Decisions of the scheduling core: nodes are filled with pods to the wanted share of their GPUs,
// then pods end and others come. A decision is the pod's arrival, the choice, and the event that
// confirms the bind.
//   sched-bench [--nodes N --gpus G | --nodes-file CSV] [--pods-file CSV] --decisions D
//               [--running N] [--waiting N] [--held N]
// --running: so many pods without GPUs run as well; --waiting: so many that fit nowhere stand in
// front of the queue. --held N: no decisions, but the memory that N running pods take (one in three
// with a GPU), and the peak while all of it is told a second time, as after a cut watch.
// Files are openb's; a share of a GPU counts as a whole one. Without files nodes are equal and
// pods ask for 1, 2, 4 or 8 GPUs and 16 different amounts of CPU.
#include "base/arena.h"
#include "measure.h"
#include "sched/sched.h"
#include "sys/fs.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 32, FILE_MAX_BYTES = 16 << 20, FILL_PERMILLE = 950, PODS_MAX = 65536 };
static const int64_t MIB = 1 << 20;

struct ask {
	int64_t cpu_milli, memory_mib, gpus;
};
struct live {
	char uid[NAME_BYTES];
	int64_t gpus;
};
struct bench {
	struct sched *sched;
	struct arena *arena;
	struct ask *asks;
	size_t ask_count;
	const struct sched_spec **specs; // one an ask
	struct live *live;
	size_t live_count;
	int64_t gpu_total, gpu_used;
	uint64_t random, sequence, node_no;
	uint64_t cpu_ns, decisions, binds, waits;
	struct samples cpu, wall;
};

static uint64_t draw(struct bench *b)
{
	b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return b->random >> 33;
}

static int64_t column(struct str row, size_t index)
{
	struct str part = STR("");
	int64_t value = 0;
	for (size_t i = 0; i <= index; i++)
		if (!str_split_next(&row, ',', &part))
			return 0;
	return str_to_i64(part, &value) ? value : 0;
}

static struct str text_of(struct bench *b, const char *prefix, uint64_t number)
{
	char *text = arena_alloc(b->arena, NAME_BYTES);
	if (text == NULL)
		measure_fail("no memory");
	(void)snprintf(text, NAME_BYTES, "%s-%06llu", prefix, (unsigned long long)number);
	return str_of(text);
}

static void add_node(struct bench *b, struct ask size)
{
	static const struct str hostname = { "kubernetes.io/hostname", 22 };
	const uint64_t number = ++b->node_no;
	const struct str name = text_of(b, "node", number);
	struct sched_label label = { hostname, name };
	const struct sched_amount amounts[] = {
		{ STR("cpu"), size.cpu_milli },
		{ STR("memory"), size.memory_mib * MIB },
		{ STR("nvidia.com/gpu"), size.gpus },
		{ STR("pods"), 256 },
	};
	const struct sched_node_in node = { .name = name,
					    .labels = { &label, 1 },
					    .allocatable = amounts,
					    .allocatable_count = ARRAY_COUNT(amounts) };
	sched_node_set(b->sched, &node);
	struct sched_device_in devices[SCHED_DEVICES_MAX];
	for (int64_t i = 0; i < size.gpus; i++) {
		devices[i] = (struct sched_device_in){
			.uuid = text_of(b, "GPU", number * SCHED_DEVICES_MAX + (uint64_t)i),
			.model = STR("A100-SXM4-80GB"),
			.index = i,
			.memory_mib = 81920,
			.is_healthy = true,
		};
	}
	sched_devices_set(b->sched, name, devices, (size_t)size.gpus);
	b->gpu_total += size.gpus;
}

static void read_rows(const char *path, struct buf *text, struct str *ret_rest)
{
	struct err err = { 0 };
	struct str head;
	text->limit = FILE_MAX_BYTES;
	if (fs_read(path, FILE_MAX_BYTES, text, &err) != ERR_OK)
		measure_fail("%s", err.text);
	*ret_rest = buf_str(text);
	if (!str_split_next(ret_rest, '\n', &head))
		measure_fail("%s: empty", path);
}

static void read_nodes(struct bench *b, const char *path)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct str rest, row;
	read_rows(path, &text, &rest);
	while (str_split_next(&rest, '\n', &row))
		if (row.len > 0)
			add_node(b, (struct ask){ column(row, 1), column(row, 2), column(row, 3) });
}

static void add_ask(struct bench *b, struct ask ask)
{
	if (ask.gpus <= 0 || b->ask_count == PODS_MAX)
		return;
	struct sched_amount *amounts = arena_alloc(b->arena, 3 * sizeof *amounts);
	struct sched_gpu_ask *gpu = arena_alloc(b->arena, sizeof *gpu);
	struct sched_spec *spec = arena_alloc(b->arena, sizeof *spec);
	if (amounts == NULL || gpu == NULL || spec == NULL)
		measure_fail("no memory");
	amounts[0] = (struct sched_amount){ STR("cpu"), ask.cpu_milli };
	amounts[1] = (struct sched_amount){ STR("memory"), ask.memory_mib * MIB };
	amounts[2] = (struct sched_amount){ STR("nvidia.com/gpu"), ask.gpus };
	*gpu = (struct sched_gpu_ask){ STR("main"), SCHED_APP, ask.gpus };
	*spec = (struct sched_spec){ .amounts = amounts,
				     .amount_count = 3,
				     .gpu_asks = gpu,
				     .gpu_ask_count = 1,
				     .gpu_count = ask.gpus };
	b->asks[b->ask_count] = ask;
	b->specs[b->ask_count++] = spec;
}

static void read_asks(struct bench *b, const char *path)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct str rest, row;
	read_rows(path, &text, &rest);
	while (str_split_next(&rest, '\n', &row))
		add_ask(b, (struct ask){ column(row, 1), column(row, 2), column(row, 3) });
}

static void make_asks(struct bench *b)
{
	static const int64_t sizes[] = { 1, 2, 4, 8 };
	for (size_t i = 0; i < 64; i++) {
		const int64_t gpus = sizes[i % ARRAY_COUNT(sizes)];
		const int64_t cpu_milli = gpus * (4000 + 250 * (int64_t)(i / ARRAY_COUNT(sizes)));
		add_ask(b, (struct ask){ cpu_milli, gpus * 65536, gpus });
	}
}

static void confirm(struct bench *b, struct sched_pod_in *pod,
		    const struct sched_decision *decision)
{
	struct str uuids[SCHED_DEVICES_MAX];
	char node[NAME_BYTES];
	(void)snprintf(node, sizeof node, STR_FMT, STR_ARG(decision->node));
	for (size_t i = 0; i < decision->grant_count; i++)
		uuids[i] = decision->grants[i].uuid;
	pod->node = str_of(node);
	pod->device_uuids = uuids;
	pod->device_count = decision->grant_count;
	sched_pod_set(b->sched, pod);
}

static void end_pod(struct bench *b, size_t index)
{
	sched_pod_remove(b->sched, str_of(b->live[index].uid));
	b->gpu_used -= b->live[index].gpus;
	b->live[index] = b->live[--b->live_count];
}

// One pod comes; when it must wait, it goes again.
static void decide(struct bench *b, int64_t now_ms)
{
	const size_t which = (size_t)(draw(b) % b->ask_count);
	char uid[NAME_BYTES];
	(void)snprintf(uid, sizeof uid, "pod-%010llu", (unsigned long long)++b->sequence);
	struct sched_pod_in pod = { .uid = str_of(uid),
				    .namespace_ = STR("team"),
				    .name = str_of(uid),
				    .created_s = now_ms / 1000,
				    .is_ours = true,
				    .spec = b->specs[which] };
	struct sched_decision decision;
	const uint64_t wall_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns();
	sched_pod_set(b->sched, &pod);
	bool has_one;
	do // others may have to be told why they wait
		has_one = sched_next(b->sched, now_ms, &decision);
	while (has_one && !str_eq(decision.uid, pod.uid));
	const bool is_bind = has_one && decision.verb == SCHED_BIND;
	if (is_bind)
		confirm(b, &pod, &decision);
	const uint64_t spent_ns = clock_cpu_ns() - cpu_ns;
	samples_add(&b->cpu, spent_ns);
	samples_add(&b->wall, clock_mono_ns() - wall_ns);
	b->cpu_ns += spent_ns;
	b->decisions++;
	if (is_bind) {
		b->binds++;
		b->gpu_used += b->asks[which].gpus;
		memcpy(b->live[b->live_count].uid, uid, sizeof uid);
		b->live[b->live_count++].gpus = b->asks[which].gpus;
	} else {
		b->waits++;
		sched_pod_remove(b->sched, pod.uid);
	}
}

static void run(struct bench *b, int64_t decisions)
{
	for (int64_t i = 0; i < decisions; i++) {
		while (b->live_count > 0 && (b->gpu_used * 1000 > b->gpu_total * FILL_PERMILLE ||
					     b->live_count == PODS_MAX))
			end_pod(b, (size_t)(draw(b) % b->live_count));
		decide(b, i);
	}
}

// ---- pods that are only there

struct options {
	const char *nodes_file, *pods_file;
	int64_t nodes, gpus, decisions, running, waiting, held;
};

struct crowd {
	const char *name;
	int64_t gpus, priority;
	bool is_bound;
};

// Every pod has labels and a namespace as pods of a Job have.
static void add_pod(struct bench *b, const struct crowd *crowd, uint64_t number)
{
	char uid[NAME_BYTES], space[NAME_BYTES], job[NAME_BYTES], node[NAME_BYTES];
	(void)snprintf(uid, sizeof uid, "%s-%06llu", crowd->name, (unsigned long long)number);
	(void)snprintf(space, sizeof space, "team-%llu", (unsigned long long)number % 20);
	(void)snprintf(job, sizeof job, "job-%llu", (unsigned long long)number / 4);
	(void)snprintf(node, sizeof node, "node-%06llu",
		       (unsigned long long)(1 + number % b->node_no));
	struct sched_label labels[] = { { STR("app"), STR("train") }, { STR("job"), str_of(job) } };
	struct sched_amount amounts[] = {
		{ STR("cpu"), 1000 + 100 * (int64_t)(number % 8) },
		{ STR("memory"), MIB },
		{ STR("nvidia.com/gpu"), crowd->gpus },
	};
	struct sched_gpu_ask gpu = { STR("main"), SCHED_APP, crowd->gpus };
	const struct sched_spec spec = { .amounts = amounts,
					 .amount_count = crowd->gpus > 0 ? 3 : 2,
					 .gpu_asks = &gpu,
					 .gpu_ask_count = crowd->gpus > 0,
					 .gpu_count = crowd->gpus };
	const struct sched_pod_in pod = { .uid = str_of(uid),
					  .namespace_ = str_of(space),
					  .name = str_of(uid),
					  .node = str_of(crowd->is_bound ? node : ""),
					  .labels = { labels, ARRAY_COUNT(labels) },
					  .priority = crowd->priority,
					  .is_ours = true,
					  .spec = &spec };
	sched_pod_set(b->sched, &pod);
}

static void add_crowd(struct bench *b, const struct crowd *crowd, int64_t count)
{
	struct sched_decision decision;
	for (int64_t i = 0; i < count; i++)
		add_pod(b, crowd, (uint64_t)i);
	while (sched_next(b->sched, 0, &decision))
		if (decision.verb == SCHED_BIND)
			measure_fail("a pod of the crowd fits");
}

// ---- memory

static int64_t status_kib(const char *name)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err = { 0 };
	struct str rest, line;
	int64_t kib;
	text.limit = FILE_MAX_BYTES;
	if (fs_read("/proc/self/status", FILE_MAX_BYTES, &text, &err) != ERR_OK)
		measure_fail("%s", err.text);
	rest = buf_str(&text);
	while (str_split_next(&rest, '\n', &line)) {
		if (!str_starts(line, str_of(name)))
			continue;
		line = str_trim(str_slice(line, strlen(name), line.len));
		if (str_ends(line, STR(" kB")) &&
		    str_to_i64(str_slice(line, 0, line.len - 3), &kib))
			return kib;
	}
	measure_fail("/proc/self/status does not say %s", name);
}

static void tell_all(struct bench *b, const struct options *options)
{
	static const struct crowd PLAIN = { "plain", 0, 0, true }, WITH_GPU = { "gpu", 1, 0, true };
	b->node_no = 0;
	arena_reset(b->arena); // the core has copies
	for (int64_t i = 0; i < options->nodes; i++)
		add_node(b, (struct ask){ 96000, 1048576, options->gpus });
	add_crowd(b, &WITH_GPU, options->held / 3);
	add_crowd(b, &PLAIN, options->held - options->held / 3);
}

static void report_memory(struct bench *b, const struct options *options)
{
	AUTO(buf_done) struct buf out = { 0 };
	const int64_t before_kib = status_kib("VmRSS:");
	tell_all(b, options);
	const int64_t held_kib = status_kib("VmRSS:");
	tell_all(b, options);
	const char *broken = sched_check(b->sched);
	if (broken != NULL)
		measure_fail("invariant: %s", broken);
	buf_printf(&out, "{\"nodes\":%lld,\"pods\":%zu,\"before_kib\":%lld",
		   (long long)options->nodes, sched_counts_get(b->sched).bound,
		   (long long)before_kib);
	buf_printf(&out, ",\"held_kib\":%lld,\"peak_kib\":%lld}", (long long)held_kib,
		   (long long)status_kib("VmHWM:"));
	measure_print(&out);
}

static void report(struct bench *b)
{
	AUTO(buf_done) struct buf out = { 0 };
	const struct sched_counts counts = sched_counts_get(b->sched);
	const char *broken = sched_check(b->sched);
	if (broken != NULL)
		measure_fail("invariant: %s", broken);
	buf_printf(&out, "{\"nodes\":%zu,\"gpus\":%lld,\"pods\":%zu,\"decisions\":%llu",
		   counts.nodes, (long long)b->gpu_total, counts.bound,
		   (unsigned long long)b->decisions);
	buf_printf(&out, ",\"binds\":%llu,\"waits\":%llu,\"cpu_ns\":%llu",
		   (unsigned long long)b->binds, (unsigned long long)b->waits,
		   (unsigned long long)b->cpu_ns);
	samples_put(&b->cpu, "cpu", &out);
	samples_put(&b->wall, "wall", &out);
	buf_put_byte(&out, '}');
	measure_print(&out);
}

static void read_options(int argc, char **argv, struct options *options)
{
	const struct {
		const char *name;
		int64_t *value;
	} NUMBERS[] = {
		{ "--nodes", &options->nodes },         { "--gpus", &options->gpus },
		{ "--decisions", &options->decisions }, { "--running", &options->running },
		{ "--waiting", &options->waiting },     { "--held", &options->held },
	};
	for (int i = 1; i < argc; i++) {
		size_t k = 0;
		while (k < ARRAY_COUNT(NUMBERS) && strcmp(argv[i], NUMBERS[k].name) != 0)
			k++;
		if (k < ARRAY_COUNT(NUMBERS))
			*NUMBERS[k].value = measure_number(argc, argv, &i);
		else if (strcmp(argv[i], "--nodes-file") == 0)
			options->nodes_file = measure_value(argc, argv, &i);
		else if (strcmp(argv[i], "--pods-file") == 0)
			options->pods_file = measure_value(argc, argv, &i);
		else
			measure_fail("%s: no such option", argv[i]);
	}
	options->gpus = min_i64(options->gpus, SCHED_DEVICES_MAX);
}

static void measure_decisions(struct bench *b, const struct options *options)
{
	static const struct crowd RUNNING = { "plain", 0, 0, true };
	static const struct crowd WAITING = { "never", SCHED_DEVICES_MAX + 1, 1000, false };
	b->asks = measure_alloc(PODS_MAX, sizeof *b->asks);
	b->specs = measure_alloc(PODS_MAX, sizeof *b->specs);
	b->live = measure_alloc(PODS_MAX, sizeof *b->live);
	if (options->nodes_file != NULL)
		read_nodes(b, options->nodes_file);
	for (int64_t i = 0; options->nodes_file == NULL && i < options->nodes; i++)
		add_node(b, (struct ask){ 96000, 1048576, options->gpus });
	if (options->pods_file != NULL)
		read_asks(b, options->pods_file);
	else
		make_asks(b);
	add_crowd(b, &RUNNING, options->running);
	add_crowd(b, &WAITING, options->waiting);
	run(b, options->decisions);
	report(b);
	samples_done(&b->cpu);
	samples_done(&b->wall);
	free(b->asks);
	free(b->specs);
	free(b->live);
}

int main(int argc, char **argv)
{
	struct bench b = { .sched = sched_new(42, 0), .arena = arena_new(1 << 30), .random = 42 };
	struct options options = { .nodes = 5000, .gpus = 8, .decisions = 50000 };
	read_options(argc, argv, &options);
	if (options.held > 0)
		report_memory(&b, &options);
	else
		measure_decisions(&b, &options);
	sched_free(b.sched);
	arena_free(b.arena);
	return 0;
}
