"""The scheduling core by itself: no API server, one thread."""
from harness import Figure, Group, input_file, ms


def figures(name, got, note):
    cpu_s = got["cpu_ns"] / 1e9
    yield Figure(f"{name}_us", got["cpu_ns"] / got["decisions"] / 1e3, "us CPU/decision", cpu_s=cpu_s,
                 note=f"{note}: {got['nodes']} nodes, {got['gpus']} GPUs, {got['pods']} pods at the end, "
                      f"{got['binds']} binds, {got['waits']} waits")
    yield Figure(f"{name}_rate", got["decisions"] / cpu_s, "decisions/CPU s", cpu_s=cpu_s)
    yield Figure(f"{name}_cpu_p99", ms(got["cpu_p99"]), "ms CPU", cpu_s=cpu_s)
    yield Figure(f"{name}_wall_p50", ms(got["wall_p50"]), "ms wall", cpu_s=cpu_s)
    yield Figure(f"{name}_wall_p99", ms(got["wall_p99"]), "ms wall", cpu_s=cpu_s)


def large(bench):
    got = bench.measure("sched-bench", "--nodes", 5000, "--gpus", 8, "--decisions", 30000)
    yield from figures("sched_5000", got, "pods of 1, 2, 4, 8 GPUs, 64 shapes")


def openb(bench):
    nodes = input_file("TRACES", "openb", "openb_node_list_gpu_node.csv")
    pods = input_file("TRACES", "openb", "openb_pod_list_default.csv")
    got = bench.measure("sched-bench", "--nodes-file", nodes, "--pods-file", pods, "--decisions", 30000)
    yield from figures("sched_openb", got, "openb's nodes and GPU pods, a share counted as a whole GPU")


def memory(bench):
    got = bench.measure("sched-bench", "--nodes", 2000, "--gpus", 8, "--held", 50000)
    held = got["held_kib"] - got["before_kib"]
    yield Figure("sched_memory", held / 1024, "MiB", note=f"{got['nodes']} nodes of 8 GPUs, {got['pods']} running pods, "
                 "one in three with a GPU; what the core adds to its process")
    yield Figure("sched_memory_again", (got["peak_kib"] - got["before_kib"]) / held, "of that",
                 note="the peak while all nodes, devices and pods are told a second time")


CROWDS = {"running": 50000, "waiting": 10000}


def flat(bench):
    def measure(*more):
        got = bench.measure("sched-bench", "--nodes", 5000, "--gpus", 8, "--decisions", 20000, *more)
        return got["cpu_ns"] / got["decisions"] / 1e3
    alone = measure()
    for crowd, count in CROWDS.items():
        yield Figure(f"sched_flat_{crowd}", measure(f"--{crowd}", count), "us CPU/decision", peer="without them",
                     peer_value=alone, note=f"{count} more pods {'run' if crowd == 'running' else 'wait in front for what no node has'}")


def rows(name, reach):
    return {f"{name}_us": reach["us"], f"{name}_rate": reach["rate"], f"{name}_cpu_p99": reach["p99"],
            f"{name}_wall_p50": "", f"{name}_wall_p99": reach["p99"]}


GROUPS = [
    Group("sched_5000", "decisions at 5,000 nodes of 8 GPUs, 95 % full",
          rows("sched_5000", {"us": "<= 50", "rate": ">= 20,000", "p99": "<= 1"}), large),
    Group("sched_openb", "decisions at openb's 1,213 nodes, 95 % full (TRACES)",
          rows("sched_openb", {"us": "<= 30", "rate": "", "p99": "<= 1"}), openb),
    Group("sched_memory", "memory of the core at 2,000 nodes and 50,000 pods",
          {"sched_memory": "<= 50", "sched_memory_again": "<= 1.3"}, memory),
    Group("sched_flat", "decisions at 5,000 nodes with many more pods running, or waiting in vain",
          {f"sched_flat_{crowd}": "ratio 1" for crowd in CROWDS}, flat),
]
