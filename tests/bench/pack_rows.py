"""Packing of openb's 17 pod lists, as published (TRACES): unallocated GPUs, seeds 42 to 51, mean."""
import csv
import json
import pathlib
import statistics
import tarfile

from harness import Figure, Group, input_file

SEEDS = range(42, 52)
LISTS = ["default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80", "gpushare100",
         "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30", "multigpu40", "multigpu50"]
POINTS = (30, 60, 90, 95, 100, 130)


class Runs:
    """Runs of gpuaas-sim pack on the given orders; a list and policy is run once."""

    def __init__(self, bench):
        self.nodes = input_file("TRACES", "openb", "openb_node_list_gpu_node.csv")
        self.lists = input_file("TRACES", "openb")
        self.program, self.folder, self.kept = bench.program("gpuaas-sim"), bench.data / "pack", {}
        self.bench = bench
        self.folder.mkdir(parents=True, exist_ok=True)
        self.orders = self.folder / "sequences"
        if not self.orders.exists():
            with tarfile.open(input_file("TRACES", "openb_sequences.tar.xz")) as file:
                file.extractall(self.folder, filter="data")
        with input_file("TRACES", "fgd", "published_summary.csv").open() as file:
            self.published = {(row["workload"], int(row["arrived_pct"])): float(row["mean"])
                              for row in csv.DictReader(file)
                              if row["policy"] == "FGD" and row["metric"] == "unallocated_gpu_pct"}

    def mean(self, name, policy, moves=0):
        """Means over the seeds: unallocated, awake nodes and watts by arrived %, failures, cost, moves."""
        if (name, policy, moves) not in self.kept:
            self.kept[name, policy, moves] = average([self.one(name, policy, moves, seed) for seed in SEEDS])
        return self.kept[name, policy, moves]

    def one(self, name, policy, moves, seed):
        order = self.orders / f"openb_pod_list_{name}.{seed}.txt"
        curve, summary = self.folder / "curve.csv", self.folder / "summary.json"
        self.bench.run([self.program, "pack", "--nodes", self.nodes, "--pods", self.lists / f"openb_pod_list_{name}.csv",
                        "--order", order, "--rank", order.with_suffix(".noderank.txt"), "--policy", policy, "--moves",
                        moves, "--curve", curve, "--summary", summary])
        with curve.open() as file:
            rows = {int(row["arrived_pct"]): row for row in csv.DictReader(file)}
        told = json.loads(pathlib.Path(summary).read_text())
        values = {"moved": 100 * told["moved"] / told["decisions"], "us": told["cpu_us_per_decision"]}
        values |= {f"failed_{key}": count for key, count in told["failures"].items()}
        for point in POINTS:
            values[point] = 100 - float(rows[point]["allocated_pct"])
            values[f"awake_{point}"] = float(rows[point]["awake_nodes"])
            values[f"watts_{point}"] = float(rows[point]["watts"])
        return values


def average(runs):
    return {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}


def failures(mean):
    return ", ".join(f"{key[7:]} {value:.1f}" for key, value in mean.items() if str(key).startswith("failed_"))


def rows_of_lists(bench):
    runs = Runs(bench)
    for name in LISTS:
        for policy in ("fgd", "default"):
            mean = runs.mean(name, policy)
            for point in (100, 130):
                yield Figure(f"pack_{name}_{policy}_{point}", mean[point], "% unallocated", peer="FGD, published",
                             peer_value=runs.published[name, point], note=f"failed up to 100 %: {failures(mean)}; "
                             f"@90 {mean[90]:.2f}, @95 {mean[95]:.2f}; {mean['us']:.1f} us CPU a decision")


def rows_of_moves(bench):
    runs = Runs(bench)
    mean = runs.mean("gpuspec33", "default", 1)
    yield Figure("pack_moves_gpuspec33_100", mean[100], "% unallocated", peer="FGD, published",
                 peer_value=runs.published["gpuspec33", 100])
    yield Figure("pack_moves_gpuspec33_moved", mean["moved"], "% of arrivals moved")


def rows_of_energy(bench):
    runs = Runs(bench)
    energy = runs.mean("default", "energy")
    for peer in ("fgd", "spread"):
        other = runs.mean("default", peer)
        for point in (30, 60, 90):
            yield Figure(f"pack_energy_awake_{point}_{peer}", energy[f"awake_{point}"], "nodes", peer=peer,
                         peer_value=other[f"awake_{point}"])
            yield Figure(f"pack_energy_kw_{point}_{peer}", energy[f"watts_{point}"] / 1e3, "kW", peer=peer,
                         peer_value=other[f"watts_{point}"] / 1e3)
    yield Figure("pack_energy_100", energy[100], "% unallocated", peer="default",
                 peer_value=runs.mean("default", "default")[100])


def targets_of_lists():
    rows = {}
    for name in LISTS:
        rows[f"pack_{name}_fgd_100"] = "+- 0.3 of FGD" if name == "gpuspec25" else "+- 0.15 of FGD"
        rows[f"pack_{name}_fgd_130"] = "+- 0.15 of FGD"
        rows[f"pack_{name}_default_100"] = "<= FGD" if name.startswith("gpuspec") else ""
        rows[f"pack_{name}_default_130"] = "<= FGD + 0.05"
    return rows | {"pack_default_default_100": "<= 4.35", "pack_default_default_130": "<= 4.25"}


GROUPS = [
    Group("pack_lists", "openb's 17 pod lists: fgd as published, default against it (TRACES)", targets_of_lists(),
          rows_of_lists),
    Group("pack_moves", "one running pod moved for one that fits nowhere (TRACES)",
          {"pack_moves_gpuspec33_100": "<= 6.5", "pack_moves_gpuspec33_moved": "<= 5"}, rows_of_moves),
    Group("pack_energy", "nodes awake and power of the policy energy (TRACES)",
          {f"pack_energy_{what}_{point}_{peer}": f"< {peer}" for peer in ("fgd", "spread") for point in (30, 60, 90)
           for what in ("awake", "kw")} | {"pack_energy_100": "<= default + 0.2"}, rows_of_energy),
]
