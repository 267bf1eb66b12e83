"""gpuaas-sim pack against a slow and exact one: the published algorithm in fractions, on random small clusters."""
import csv
import decimal
import fractions
import json
import os
import pathlib
import random
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src" / "sim" / "gpuaas-sim"
GOLDEN = ROOT / "tests" / "golden" / "sim"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\n")


def pack(folder, nodes, pods, *words):
    """Curve and summary of a run."""
    curve, summary = folder / "curve.csv", folder / "summary.json"
    done = subprocess.run([SIM, "pack", "--nodes", nodes, "--pods", pods, "--curve",
                           curve, "--summary", summary, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with curve.open() as file:
        return list(csv.DictReader(file)), json.loads(summary.read_text())


class Node:
    def __init__(self, row):
        self.cpu, self.memory, self.model = int(row[1]), int(row[2]), row[4]
        self.left = [1000] * int(row[3])

    def fits(self, pod, memory=True):
        usable = sum(left >= pod["milli"] for left in self.left)
        return (self.cpu >= pod["cpu"] and (not memory or self.memory >= pod["memory"]) and
                usable >= pod["count"] and (not pod["models"] or not pod["count"] or self.model in pod["models"]))

    def lost(self, kind):
        """Milli of the node's GPUs that a class of pods cannot use."""
        if not kind["count"] or not self.fits(kind, memory=False):
            return sum(self.left)
        return sum(left for left in self.left if left < kind["milli"])

    def choices(self, pod):
        """Lists of GPUs that the pod could take."""
        usable = [i for i, left in enumerate(self.left) if left >= pod["milli"]]
        if pod["count"] == 1:
            return [[i] for i in usable]
        return [usable[:pod["count"]]]


class Exact:
    """Fragmentation gradient descent as published, with the ties that its results hold for."""

    def __init__(self, nodes, pods, ranks):
        self.nodes, self.ranks = nodes, ranks
        counts = {}
        for pod in pods.values():
            key = (pod["cpu"], pod["milli"], pod["count"], "|".join(pod["models"]))
            counts[key] = counts.get(key, 0) + 1
        self.classes, covered = [], 0
        for key, count in sorted(counts.items(), key=lambda item: (item[1], *item[0]), reverse=True):
            if covered * 100 >= len(pods) * 95:
                break
            covered += count
            models = key[3].split("|") if key[3] else []
            self.classes.append(({"cpu": key[0], "milli": key[1], "count": key[2], "models": models}, count))
        self.covered = covered

    def frag(self, node):
        return sum(fractions.Fraction(count, self.covered) * node.lost(kind) for kind, count in self.classes)

    def score(self, node, pod, gpus):
        before = self.frag(node)
        kept, cpu = list(node.left), node.cpu
        node.cpu -= pod["cpu"]
        for i in gpus:
            node.left[i] -= pod["milli"]
        gain = (before - self.frag(node)) / 1000
        node.left, node.cpu = kept, cpu
        exponent = decimal.Decimal(-gain.numerator) / decimal.Decimal(gain.denominator)
        return int(100 / (1 + exponent.exp()))

    def place(self, pod):
        """GPU milli that the pod took, None: it fits nowhere."""
        best = None
        for i, node in enumerate(self.nodes):
            if not node.fits(pod):
                continue
            for gpus in node.choices(pod) if pod["count"] else [[]]:
                key = (-self.score(node, pod, gpus), self.ranks[i], gpus)
                best = min(best, (key, node, gpus), key=lambda item: item[0]) if best else (key, node, gpus)
        if best is None:
            return None
        _, node, gpus = best
        node.cpu -= pod["cpu"]
        node.memory -= pod["memory"]
        for i in gpus:
            node.left[i] -= pod["milli"]
        return pod["milli"] * len(gpus)


def draw(rng, folder):
    """A cluster and 20 pods in 10 classes of two, so that all weights are whole millionths."""
    nodes = [[f"n{i}", rng.choice([8000, 16000, 32000, 96000]), rng.choice([65536, 131072]), rng.choice([1, 2, 4, 8]),
              rng.choice(["A", "B", "C"])] for i in range(rng.randint(2, 6))]
    kinds = []
    while len(kinds) < 10:
        count = rng.choice([0, 1, 1, 1, 1, 2, 4])
        milli = 0 if count == 0 else 1000 if count > 1 else rng.choice([190, 250, 500, 810, 1000, 1000])
        kind = [rng.choice([1000, 3152, 4000, 8000, 11908]), rng.choice([2048, 16384]), count, milli,
                rng.choice(["", "", "", "A", "A|B", "C"]) if count else ""]
        if [kind[0], *kind[2:]] not in [[other[0], *other[2:]] for other in kinds]:
            kinds.append(kind)
    pods = [[f"p{i:02}", *kinds[i // 2]] for i in range(20)]
    (folder / "nodes.csv").write_text(NODES + "".join(",".join(map(str, node)) + "\n" for node in nodes))
    (folder / "pods.csv").write_text(PODS + "".join(",".join(map(str, pod)) + ",LS,Running,0,1,0\n" for pod in pods))
    order = [rng.choice(pods)[0] for _ in range(80)]
    ranks = rng.sample(range(len(nodes)), len(nodes))
    (folder / "order.txt").write_text("\n".join(order) + "\n")
    (folder / "ranks.txt").write_text("\n".join(map(str, ranks)) + "\n")
    table = {pod[0]: {"cpu": pod[1], "memory": pod[2], "count": pod[3], "milli": pod[4],
                      "models": pod[5].split("|") if pod[5] else []} for pod in pods}
    return nodes, table, order, ranks


@pytest.mark.parametrize("seed", range(40))
def test_fgd_is_exact(tmp_path, seed):
    nodes, pods, order, ranks = draw(random.Random(seed), tmp_path)
    exact = Exact([Node(node) for node in nodes], pods, ranks)
    total = 1000 * sum(node[3] for node in nodes)
    arrived = used = 0
    buckets = {}
    for name in order:
        arrived += pods[name]["count"] * pods[name]["milli"]
        used += exact.place(pods[name]) or 0
        frag = sum(exact.frag(node) for node in exact.nodes)
        buckets.setdefault(round(fractions.Fraction(100 * arrived, total)), []).append(
            (round(fractions.Fraction(10000 * used, total)) / 100, float(100 * frag / total)))
    got, summary = pack(tmp_path, tmp_path / "nodes.csv", tmp_path / "pods.csv", "--order",
                        tmp_path / "order.txt", "--rank", tmp_path / "ranks.txt", "--policy", "fgd")
    assert summary["decisions"] == len(order)
    for percent, values in buckets.items():
        if percent <= 130:
            mean = [sum(column) / len(values) for column in zip(*values)]
            row = got[percent]
            assert float(row["allocated_pct"]) == pytest.approx(mean[0], abs=1e-4), percent
            assert float(row["frag_pct"]) == pytest.approx(mean[1], abs=1e-3), percent


@pytest.mark.parametrize("policy", ["default", "fgd", "pack", "spread", "energy", "topology"])
def test_golden_curve(tmp_path, policy):
    curve, summary = pack(tmp_path, GOLDEN / "pack_nodes.csv", GOLDEN / "pack_pods.csv", "--policy", policy,
                          "--seed", 7)
    assert summary["moved"] == 0
    with (GOLDEN / "pack_curve.csv").open() as file:
        want = [row for row in csv.DictReader(file) if row["policy"] == policy]
    assert [row["arrived_pct"] for row in want] == ["30", "60", "90", "100", "130"]
    for row in want:
        got = curve[int(row["arrived_pct"])]
        assert {key: row[key] for key in got} == got


def test_moves_make_room(tmp_path):
    """Plain pods fill the only nodes that later ones may use; one move each makes room."""
    nodes = "".join(f"n{i},64000,262144,2,{'A' if i < 2 else 'B'}\n" for i in range(40))
    pods = "".join(f"p{i:02},1000,1024,1,1000,,LS,Running,0,1,0\n" for i in range(76))
    late = "".join(f"q{i},1000,1024,1,1000,A,LS,Running,0,1,0\n" for i in range(3))
    (tmp_path / "nodes.csv").write_text(NODES + nodes)
    (tmp_path / "pods.csv").write_text(PODS + pods + late)
    (tmp_path / "order.txt").write_text("".join(f"p{i:02}\n" for i in range(76)) + "q0\nq1\nq2\n")
    (tmp_path / "ranks.txt").write_text("".join(f"{i}\n" for i in range(40)))
    words = ["--order", tmp_path / "order.txt", "--rank", tmp_path / "ranks.txt", "--policy", "fgd"]
    files = [tmp_path, tmp_path / "nodes.csv", tmp_path / "pods.csv"]
    _, before = pack(*files, *words)
    _, after = pack(*files, *words, "--moves", 1)
    assert before["moved"] == 0 and after["moved"] == before["failures"]["one"] == 3
    assert after["failures"]["one"] == 0


@pytest.mark.parametrize("text, told", [
    ("sn,cpu\n", ":1: the first line must be sn,cpu_milli,memory_mib,gpu,model"),
    (NODES + "a,1,2,-3,T4\n", ":2: column 4 is \"-3\"; write a whole number from 0 to 64"),
    (NODES + "a,1,2,1,T4\na,1,2,1,T4\n", "this name is there twice"),
])
def test_refuses(tmp_path, text, told):
    (tmp_path / "nodes.csv").write_text(text)
    done = subprocess.run([SIM, "pack", "--nodes", tmp_path / "nodes.csv", "--pods",
                           GOLDEN / "pack_pods.csv", "--policy", "default", "--curve", tmp_path / "c", "--summary",
                           tmp_path / "s"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and told in done.stderr and not (tmp_path / "c").exists()
    assert done.stderr.startswith(f"gpuaas-sim: {tmp_path}/nodes.csv")
