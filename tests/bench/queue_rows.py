"""Queueing on public traces: what jobs wait under the daemon's order, beside other orders on the same core."""
import csv
import json
import os
import pathlib
import random
import subprocess

from harness import Figure, Group, Skip, input_file

POLICIES = ("fifo", "priority", "easy", "default")
NAMES = {"fifo": "FIFO", "priority": "priority without reservation", "easy": "EASY backfill"}
MEASURES = ("wait_mean", "wait_p95", "completion_mean", "completion_p95")
# Gavel's file tells steps, and the table of its steps a second is not published with it.
PHILLY_STEPS_PER_GPU_SECOND = 10


def measures(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    waits = sorted(float(r["start_s"]) - float(r["submit_s"]) for r in rows)
    ends = sorted(float(r["end_s"]) - float(r["submit_s"]) for r in rows)
    late = sum(float(r["start_s"]) > float(r["reserved_start_s"]) for r in rows if r["reserved_start_s"])
    p95 = len(rows) * 95 // 100
    return dict(zip(MEASURES, (sum(waits) / len(rows), waits[p95], sum(ends) / len(rows), ends[p95]))), len(rows), late


def play(bench, name, words):
    """Figures of one trace: our order, and the best of the others as the peer."""
    got, cpu_s, jobs, late = {}, 0.0, 0, 0
    for policy in POLICIES:
        out = bench.data / f"queue-{name}-{policy}.csv"
        before = os.times().children_user
        subprocess.run([bench.program("gpuaas-sim"), "queue", *map(str, words), "--policy", policy, "--out", out],
                       check=True, capture_output=True)
        got[policy], jobs, late = measures(out)
        if policy == "default":
            cpu_s = os.times().children_user - before
    for measure in MEASURES:
        best = min(NAMES, key=lambda p: got[p][measure])
        others = ", ".join(f"{NAMES[p]} {got[p][measure]:.0f}" for p in NAMES)
        yield Figure(f"queue_{name}_{measure}", got["default"][measure], "s", NAMES[best], got[best][measure], cpu_s,
                     f"{others}; {jobs} jobs, {late} started after what was reserved first")


def tiresias(bench):
    jobs = input_file("TRACES", "tiresias", "60_job.csv")
    yield from play(bench, "tiresias", ("--format", "tiresias", "--jobs", jobs, "--nodes", "2x8", "--speed", 4))


def openb(bench):
    jobs = input_file("TRACES", "openb", "openb_pod_list_default.csv")
    yield from play(bench, "openb", ("--format", "openb", "--jobs", jobs, "--nodes", "16x8", "--speed", 30))


def throughput(bench):
    """A table with the rate above, or the one that PHILLY_THROUGHPUT names."""
    if "PHILLY_THROUGHPUT" in os.environ:
        path = pathlib.Path(os.environ["PHILLY_THROUGHPUT"])
        if not path.exists():
            raise Skip(f"PHILLY_THROUGHPUT={path} is not there")
        return path
    jobs = input_file("TRACES", "gavel_msr_philly", "ee9e8c.trace")
    with open(jobs, encoding="utf-8") as file:
        kinds = {(row[0], int(row[6])) for row in (line.rstrip("\n").split("\t") for line in file)}
    path = bench.data / "philly-throughput.csv"
    path.write_text("".join(f"{kind},{gpus},{PHILLY_STEPS_PER_GPU_SECOND * gpus}\n" for kind, gpus in sorted(kinds)))
    return path


def philly(bench):
    jobs = input_file("TRACES", "gavel_msr_philly", "ee9e8c.trace")
    yield from play(bench, "philly", ("--format", "philly", "--jobs", jobs, "--throughput", throughput(bench),
                                      "--nodes", "32x8"))


def group(name, about, run):
    return Group(f"queue_{name}", about, {f"queue_{name}_{measure}": "" for measure in MEASURES}, run)


LOADS, MOVE_SEEDS = (70, 80, 90), 4
MOVE = ("--moves", "4", "--move-period", "3600", "--move-min-run", "1800", "--move-lost", "3600")


def fragmenting(load, seed, nodes=16, count=400):
    """Jobs of 1 to 8 GPUs, two hours long in the mean, that keep a checkpoint each ten minutes; and when each comes."""
    rng, at, came = random.Random(seed), 0.0, {}
    sizes = rng.choices((1, 2, 4, 8), (40, 25, 20, 15), k=count)
    gap_s = sum(sizes) / count * 7200 / (nodes * 8 * load / 100)
    objects = [{"kind": "Node", "metadata": {"name": f"n{i:02}"}, "status": {
        "allocatable": {"cpu": "64", "pods": "110", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}]}} for i in range(nodes)]
    for i, gpus in enumerate(sizes):
        at += rng.expovariate(1 / gap_s)
        came[f"t/j{i}"] = (int(at), gpus)
        notes = {"at": int(at), "runs-for": max(600, int(rng.expovariate(1 / 7200))), "checkpoint-every": 600,
                 "recreate-after": 0, "ends-after": 20}
        objects.append({"kind": "Pod", "metadata": {
            "name": f"j{i}", "namespace": "t", "ownerReferences": [{"uid": f"job-{i}", "controller": True}],
            "annotations": {f"sim.gpuaas.io/{name}": str(value) for name, value in notes.items()}}, "spec": {
                "schedulerName": "gpuaas",
                "containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})
    return objects, came


def waits(bench, load, seed, words):
    """Means over jobs of whole nodes and over all, in seconds, and how many pods were moved."""
    objects, came = fragmenting(load, seed)
    scenario, jobs, started = bench.data / "moves.yaml", bench.data / "moves.csv", {}
    scenario.write_text("\n---\n".join(map(json.dumps, objects)))
    done = subprocess.run([bench.program("gpuaas-sim"), "run", scenario, "--out", bench.data / "moves.jsonl", "--jobs",
                           jobs, *words], check=True, capture_output=True, text=True)
    with open(jobs, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, start = row["job"].rstrip("+"), float(row["start_s"])
            started[name] = min(start, started.get(name, start))
    whole = [started[name] - at for name, (at, gpus) in came.items() if gpus == 8]
    all_s = sum(started[name] - at for name, (at, _) in came.items()) / len(came)
    return sum(whole) / len(whole), all_s, json.loads(done.stdout)["moved"]


def moves(bench):
    for load in LOADS:
        runs = [[waits(bench, load, seed, words) for seed in range(MOVE_SEEDS)] for words in ((), MOVE)]
        got = [[sum(values) / MOVE_SEEDS for values in zip(*each)] for each in runs]
        yield Figure(f"moves_whole_node_wait_{load}", got[1][0], "s", "without moves", got[0][0], None,
                     f"of all jobs {got[1][1]:.0f}, without {got[0][1]:.0f}; {got[1][2]:.0f} moves of 400 jobs")


GROUPS = [
    Group("moves", "waiting of jobs of whole nodes, others with checkpoints moved for them, at 70, 80 and 90 % load",
          {f"moves_whole_node_wait_{load}": "" for load in LOADS}, moves),
    group("tiresias", "waiting of Tiresias' 60 jobs, 4 times as fast, on 2 nodes of 8 GPUs (TRACES)", tiresias),
    group("openb", "waiting of openb's jobs of whole GPUs, 30 times as fast, on 16 nodes of 8 GPUs (TRACES)", openb),
    group("philly", "waiting of a Philly cluster's jobs on 32 nodes of 8 GPUs, 10 steps a GPU second (TRACES)", philly),
]
