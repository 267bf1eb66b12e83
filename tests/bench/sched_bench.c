// SPDX-License-Identifier: Apache-2.0
// Decisions of the scheduling core: nodes are filled with pods to the wanted share of their GPUs,
// then pods end and others come. A decision is the pod's arrival, the choice, and the event that
// confirms the bind.
//   sched-bench [--nodes N --gpus G | --nodes-file CSV] [--pods-file CSV] --decisions D
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
	uint64_t random, sequence;
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
	static uint64_t number = 0;
	const struct str name = text_of(b, "node", ++number);
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
	const bool has_one = sched_next(b->sched, now_ms, &decision);
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

int main(int argc, char **argv)
{
	struct bench b = { .sched = sched_new(42), .arena = arena_new(1 << 30), .random = 42 };
	const char *nodes_file = NULL, *pods_file = NULL;
	int64_t nodes = 5000, gpus = 8, decisions = 50000;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--nodes-file") == 0)
			nodes_file = measure_value(argc, argv, &i);
		else if (strcmp(argv[i], "--pods-file") == 0)
			pods_file = measure_value(argc, argv, &i);
		else if (strcmp(argv[i], "--nodes") == 0)
			nodes = measure_number(argc, argv, &i);
		else if (strcmp(argv[i], "--gpus") == 0)
			gpus = min_i64(measure_number(argc, argv, &i), SCHED_DEVICES_MAX);
		else if (strcmp(argv[i], "--decisions") == 0)
			decisions = measure_number(argc, argv, &i);
		else
			measure_fail("%s: no such option", argv[i]);
	}
	b.asks = measure_alloc(PODS_MAX, sizeof *b.asks);
	b.specs = measure_alloc(PODS_MAX, sizeof *b.specs);
	b.live = measure_alloc(PODS_MAX, sizeof *b.live);
	if (nodes_file != NULL)
		read_nodes(&b, nodes_file);
	for (int64_t i = 0; nodes_file == NULL && i < nodes; i++)
		add_node(&b, (struct ask){ 96000, 1048576, gpus });
	if (pods_file != NULL)
		read_asks(&b, pods_file);
	else
		make_asks(&b);
	run(&b, decisions);
	report(&b);
	samples_done(&b.cpu);
	samples_done(&b.wall);
	free(b.asks);
	free(b.specs);
	free(b.live);
	sched_free(b.sched);
	arena_free(b.arena);
	return 0;
}
