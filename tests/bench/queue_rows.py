"""Queueing on public traces: what jobs wait under the daemon's order, beside other orders on the same core."""
import csv
import os
import pathlib
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


GROUPS = [
    group("tiresias", "waiting of Tiresias' 60 jobs, 4 times as fast, on 2 nodes of 8 GPUs (TRACES)", tiresias),
    group("openb", "waiting of openb's jobs of whole GPUs, 30 times as fast, on 16 nodes of 8 GPUs (TRACES)", openb),
    group("philly", "waiting of a Philly cluster's jobs on 32 nodes of 8 GPUs, 10 steps a GPU second (TRACES)", philly),
]
