"""gpuaas-sim as a command: what it writes, byte for byte, and how it refuses bad input."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
SCENARIO = ROOT / "tests" / "scenario" / "whole_node.yaml"
GOLDEN = ROOT / "tests" / "golden" / "sim"


def sim(*words):
    return subprocess.run([BUILD / "src" / "sim" / "gpuaas-sim", *map(str, words)], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)


def test_feasible_nodes():
    done = sim("feasible", SCENARIO)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (GOLDEN / "whole_node.feasible.jsonl").read_text()


def test_a_whole_node_waits_with_its_reason_and_then_runs(tmp_path):
    out = tmp_path / "decisions.jsonl"
    done = sim("run", SCENARIO, "--seed", 7, "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    told = [(d["verb"], d["pod"]) for d in lines]
    assert told == [("bind", "default/small-a"), ("bind", "default/small-b"), ("wait", "default/whole"),
                    ("refuse", "default/future"), ("bind", "default/whole")]
    wait, refuse, last = lines[2:]
    assert [(r["code"], r["nodes"]) for r in wait["reasons"]] == [("InsufficientResource", 2)]
    assert [r["code"] for r in refuse["reasons"]] == ["UnknownField"]
    assert len(set(last["devices"])) == 8 and last["t_ms"] > 50000


def placed(tmp_path, policy):
    """Where each of four pods with a GPU goes, of two nodes with eight."""
    objects = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"},
                           "conditions": [{"type": "Ready", "status": "True"}]}} for name in "ab"]
    objects += [{"apiVersion": "v1", "kind": "Pod",
                 "metadata": {"name": f"p{i}", "namespace": "t", "annotations": {"sim.gpuaas.io/at": str(i)}},
                 "spec": {"schedulerName": "gpuaas", "containers": [
                     {"name": "m", "image": "x", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}]}}
                for i in range(4)]
    scenario = tmp_path / "policy.yaml"
    scenario.write_text("\n---\n".join(json.dumps(o) for o in objects))
    done = sim("run", scenario, "--policy", policy)
    assert done.returncode == 0, done.stderr
    return [d["node"] for d in map(json.loads, done.stdout.splitlines()) if d["verb"] == "bind"]


def test_the_policy_chooses_the_node(tmp_path):
    assert placed(tmp_path, "default") == placed(tmp_path, "energy") == list("aaaa")
    assert placed(tmp_path, "spread") == list("abab")
    weights = tmp_path / "weights.yaml"
    weights.write_text("base: default\nweights: {one: {gpu_left: -1000000}}\n")  # most GPUs left, before all
    assert placed(tmp_path, weights) == list("abab")
    weights.write_text("base: fgd\nweights: {one: {frag: 5}}\n")
    for policy, why in ((weights, "fgd has none"), ("/no/such/file", "does not exist")):
        done = sim("run", SCENARIO, "--policy", policy)
        assert done.returncode in (1, 2, 3) and why in done.stderr


def test_the_head_of_the_queue_gets_a_node(tmp_path):
    out = tmp_path / "decisions.jsonl"
    done = sim("run", ROOT / "tests" / "scenario" / "reserved_head.yaml", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    starts = {d["pod"].split("/")[1]: d["t_ms"] // 1000 for d in lines if d["verb"] == "bind"}
    assert starts == {"long": 0, "medium": 0, "passes": 30, "no-gpu": 41, "whole": 100, "endless": 120,
                      "too-long": 120}
    for name, need in (("endless", "an unknown time"), ("too-long", "90 s")):
        first = next(d for d in lines if d["verb"] == "wait" and d["pod"] == f"default/{name}")
        reserved = next(r for r in first["reasons"] if r["code"] == "ReservedForHead")
        assert reserved["need"] == need and reserved["nodes"] == 1
        assert reserved["have"] == f"{100 - first['t_ms'] // 1000} s" and "whole" not in json.dumps(first)


def test_gangs_start_whole_at_the_reserved_instant(tmp_path):
    out = tmp_path / "decisions.jsonl"
    done = sim("run", ROOT / "tests" / "scenario" / "gangs.yaml", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    starts = {d["pod"].split("/")[1]: d["t_ms"] // 1000 for d in lines if d["verb"] == "bind"}
    assert starts == {"x1": 0, "x2": 0, "passes": 20, "train-0": 100, "train-1": 100, "train-2": 100, "too-long": 160,
                      "short-0": 320, "short-1": 320, "nobody-waits": 501}

    def first(pod, code):
        return next(r for d in lines if d["pod"] == f"default/{pod}" for r in d["reasons"] if r["code"] == code)
    assert (first("train-0", "GangDoesNotFit")["need"], first("train-0", "GangDoesNotFit")["have"]) == ("3 pods", "1 pod")
    assert first("too-long", "ReservedForHead")["have"] == "50 s"
    assert first("short-0", "GangIncomplete")["need"] == "2 pods"
    assert first("says-3", "GangContradiction")["need"] == "gpuaas.io/gang-min 2"
    assert first("rack-0", "GangDoesNotFit")["need"] == "3 pods with one rack"


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    outs = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for out, seed in zip(outs, (3, 3, 4)):
        assert sim("run", SCENARIO, "--seed", seed, "--bind-failures", 500, "--out", out).returncode == 0
    assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()


@pytest.mark.parametrize("text, code, told", [
    ("a: [", 1, "line"),
    ("kind: Pod\n", 1, ""),
    ("kind: Pod\nmetadata: {name: a, annotations: {sim.gpuaas.io/at: soon}}\n", 1, "sim.gpuaas.io/at must be seconds"),
])
def test_bad_files_are_refused(tmp_path, text, code, told):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    done = sim("run", file)
    assert done.returncode == code and told in done.stderr and done.stderr.startswith("gpuaas-sim: ")


def test_usage():
    assert sim("run", "/nowhere/f.yaml").returncode == 3
    for words in ((), ("run",), ("dance",), ("run", SCENARIO, "--seed", "x")):
        assert sim(*words).returncode == 2, words
    assert sim("--help").returncode == 0


def test_windows(tmp_path):
    """Others start on a window's GPUs only if they end before it; its tenant's pods go first while it lasts."""
    scenario, out = ROOT / "tests" / "scenario" / "windows.yaml", tmp_path / "decisions.jsonl"
    done = sim("run", scenario, "--seed", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == (GOLDEN / "windows.run.jsonl").read_text()
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    binds = {d["pod"]: d["t_ms"] for d in lines if d["verb"] == "bind"}
    assert binds["bio/short"] < 100_000 <= binds["lab/own"] < binds["lab/second"] < 200_000 < binds["bio/too-long"]
    kept = [r for d in lines for r in d["reasons"] if r["code"] == "ReservedForWindow"]
    assert kept[0]["need"] == "98 s" and kept[0]["have"] == "97 s until window course of lab, which is 100 s long"


def test_deadlines(tmp_path):
    """One can no longer be met and says so at that second; one is met because it is urgent."""
    scenario, out = ROOT / "tests" / "scenario" / "deadline.yaml", tmp_path / "decisions.jsonl"
    done = sim("run", scenario, "--seed", 1, "--out", out, "--priority-weights", "deadline=1000,deadline-within=60")
    assert done.returncode == 0, done.stderr
    assert out.read_text() == (GOLDEN / "deadline.run.jsonl").read_text()
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    binds = {d["pod"]: d["t_ms"] for d in lines if d["verb"] == "bind"}
    assert 100_000 <= binds["lab/urgent"] - binds["lab/long"] < 100_100 < binds["lab/first"]
    lost = [d for d in lines if any(r["code"] == "DeadlineUnreachable" for r in d["reasons"])]
    assert lost and lost[0]["pod"] == "lab/hopeless" and 60_000 < lost[0]["t_ms"] <= 61_000
    assert not any(d["pod"] == "lab/urgent" for d in lost)
