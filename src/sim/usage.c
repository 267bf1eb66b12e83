// SPDX-License-Identifier: Apache-2.0
// What the program can do, and numbers in its options.
#include "sim/usage.h"

#include <stdio.h>

static const char USAGE[] =
	"usage: gpuaas-sim run FILE.yaml [--seed N] [--out FILE.jsonl] [--jobs J.csv]\n"
	"           [--bind-failures PERMILLE]\n"
	"           [--policy default|pack|spread|energy|topology|fgd|FILE]\n"
	"           [--preemption off|priority] [--min-run S] [--preemptor-delay S]\n"
	"           [--evictions-per-minute N] [--evict-failures PERMILLE]\n"
	"           [--moves N] [--move-period S] [--move-min-run S] [--move-lost GPU-S]\n"
	"           [--priority-weights age=N,size=N,...] [--fair-share-half-life 7d]\n"
	"           [--reclaim guaranteed|deserved]\n"
	"       gpuaas-sim feasible FILE.yaml\n"
	"       gpuaas-sim pack --nodes N.csv --pods P.csv [--order O.txt] [--rank R.txt]\n"
	"           [--seed S] --policy fgd|default|pack|spread|energy|topology|FILE [--moves K]\n"
	"           --curve C.csv --summary S.json\n"
	"       gpuaas-sim tune --nodes N.csv --pods P.csv ... --out POLICY.yaml [--policy START]\n"
	"           [--seeds 100-103] [--rounds 1000] [--seed S]\n"
	"       gpuaas-sim queue --format openb|tiresias|philly --jobs FILE\n"
	"           [--throughput T.csv] [--speed F] --nodes NxG\n"
	"           --policy fifo|priority|easy|default|FILE --out J.csv [--estimates E.csv]\n"
	"       gpuaas-sim durations --format openb|tiresias|philly --jobs FILE\n"
	"           [--throughput T.csv] [--speed F]\n"
	"       gpuaas-sim whatif FILE.yaml [--add-nodes N --like NODE] [--remove-node NODE]\n"
	"           [--limit TENANT=GPUS] [--policy NAME|FILE] [--duration S]\n"
	"           [--node-hour-price P] [-o table|csv|json]\n"
	"       gpuaas-sim plot unallocated|waits|utilization --out F.svg [--csv F.csv]\n"
	"           [--gpus N] [--from X] [NAME=]FILE.csv...\n"
	"       gpuaas-sim --version | --help\n"
	"run plays a file of Kubernetes objects on a virtual clock through the scheduler's own "
	"core\n"
	"and writes one decision a line; it exits 9 when an invariant breaks. Annotations of the\n"
	"objects: sim.gpuaas.io/at (seconds), sim.gpuaas.io/runs-for (seconds) and\n"
	"sim.gpuaas.io/action (create, update, delete); of pods that are evicted\n"
	"sim.gpuaas.io/ends-after, sim.gpuaas.io/recreate-after and\n"
	"sim.gpuaas.io/checkpoint-every (seconds). feasible prints for "
	"every pod without a\n"
	"node the nodes it may run on. pack places the pods of a list in openb's form one after\n"
	"the other, as the published packing experiments do, and writes the curve of what is\n"
	"allocated over what has arrived. Without --order and --rank they are drawn for the seed. "
	"tune searches\n"
	"for better weights on lists and orders drawn from those given. queue plays the jobs of\n"
	"a trace on N nodes of G GPUs, submissions F times as fast, and writes when each was\n"
	"started and what start was reserved for it first; T.csv: type,GPUs,steps a second, for\n"
	"philly; with --estimates also what start each that waited was told, and how many came\n"
	"true. durations guesses how long each job runs from those alone that ended before it\n"
	"came, and prints how true that was.\n";

enum { EXIT_USAGE = 2 };

int usage_fail(const char *text)
{
	(void)fprintf(stderr, "gpuaas-sim: %s\n%s", text, USAGE);
	return EXIT_USAGE;
}

bool usage_number(const char *text, int64_t max, int64_t *ret_value)
{
	return str_to_i64(str_of(text), ret_value) && *ret_value >= 0 && *ret_value <= max;
}

void usage_print(void) { printf("%s", USAGE); }
