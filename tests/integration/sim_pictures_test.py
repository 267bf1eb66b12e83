"""gpuaas-sim whatif and plot: the answers to a change of a cluster, and pictures byte for byte."""
import csv
import json
import os
import pathlib
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
GOLDEN = ROOT / "tests" / "golden" / "sim"
DUMP = ROOT / "tests" / "scenario" / "dump.json"


def sim(*words):
    return subprocess.run([BUILD / "src" / "sim" / "gpuaas-sim", *map(str, words)], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)


def whatif(*words):
    done = sim("whatif", DUMP, "--duration", 1200, "-o", "json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def nearly(value):
    return pytest.approx(value, abs=1)  # binds take some milliseconds


def test_a_dump_as_it_is():
    """At 10:00, the youngest instant in the file; the running pod has 20 minutes left. Then the namespace
    without a tenant goes first, for it has used less."""
    got = whatif()
    for measure in got.values():
        assert measure["now"] == measure["changed"]
    now = {name: measure["now"] for name, measure in got.items()}
    assert (now["nodes"], now["gpus"], now["pods_to_start"], now["pods_started"]) == (1, 8, 2, 2)
    assert now["wait_mean_s"] == nearly((1200 + 2400) / 2) and now["hours"] * 3600 == nearly(3000)
    assert now["gpus_in_use_pct"] == pytest.approx(100 * (4 * 1200 + 8 * 1800) / (8 * 3000), abs=0.1)


def test_a_node_more():
    got = whatif("--add-nodes", 2, "--like", "n1", "--node-hour-price", "9.50")
    assert got["gpus"] == {"now": 8, "changed": 24}
    # The running pod's tenant may have 8 GPUs, so the first still waits for it; the other one does not.
    assert got["wait_mean_s"] == {"now": nearly(1800), "changed": nearly(600)}
    cost, hours = got["cost_of_nodes"], got["hours"]
    assert cost == {"now": pytest.approx(9.5 * hours["now"]), "changed": pytest.approx(9.5 * 3 * hours["changed"])}


def test_a_limit_lifted_and_a_node_removed():
    got = whatif("--add-nodes", 2, "--like", "n1", "--limit", "vision=16")
    assert got["wait_mean_s"]["changed"] == nearly(0)
    got = whatif("--remove-node", "n1")
    assert (got["nodes"]["changed"], got["pods_to_start"]["changed"], got["pods_waiting_at_end"]["changed"]) == (0, 3, 3)


def test_forms_and_who_runs_for_ever():
    done = sim("whatif", DUMP)
    assert done.returncode == 0 and "1 pods say no gpuaas.io/duration" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(whatif())
    done = sim("whatif", DUMP, "-o", "csv")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert rows[0] == {"measure": "nodes", "now": "1", "changed": "1"} and len(rows) == len(whatif())


@pytest.mark.parametrize("words, code, told", [
    (("--remove-node", "n9"), 3, "no node n9"), (("--limit", "vision"), 1, "TENANT=GPUS"),
    (("--limit", "nobody=1"), 3, "no tenant nobody"), (("--add-nodes", 1), 2, "go together"),
    (("--add-nodes", 1, "--like", "n9"), 3, "no node n9"), (("-o", "xml"), 2, "-o is"), (("--policy", "best"), 3, "policy"),
])
def test_changes_that_cannot_be(words, code, told):
    done = sim("whatif", DUMP, *words)
    assert done.returncode == code and told in done.stderr, done.stderr


def jobs_of_queues(tmp_path):
    jobs = tmp_path / "jobs.csv"
    done = sim("run", ROOT / "tests" / "scenario" / "queues.yaml", "--out", tmp_path / "d.jsonl", "--jobs", jobs)
    assert done.returncode == 0, done.stderr
    return jobs


def test_what_became_of_the_pods(tmp_path):
    jobs = {row["job"]: row for row in csv.DictReader(jobs_of_queues(tmp_path).read_text().splitlines())}
    decisions = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    bound = {d["pod"]: d["t_ms"] for d in decisions if d["verb"] == "bind"}
    assert bound and {name for name, row in jobs.items() if row["start_s"]} == set(bound)
    for name, at_ms in bound.items():
        assert at_ms <= 1000 * float(jobs[name]["start_s"]) + 0.5 <= at_ms + 21.5
    victims = {victim for d in decisions for victim in d["victims"]}
    assert {name for name, row in jobs.items() if row["preemptions"] == "1"} == victims


def test_pictures(tmp_path):
    jobs = jobs_of_queues(tmp_path)
    for name, words in (("unallocated", [f"pack={GOLDEN / 'pack_curve.csv'}"]), ("waits", [f"a<b={jobs}"]),
                        ("utilization", ["--gpus", 8, f"queues={jobs}"])):
        out, table = tmp_path / f"{name}.svg", tmp_path / f"{name}.csv"
        done = sim("plot", name, "--out", out, "--csv", table, *words)
        assert done.returncode == 0, done.stderr
        ElementTree.fromstring(out.read_text())
        assert out.read_text() == (GOLDEN / f"{name}.svg").read_text(), name
        points = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(table.read_text().splitlines())]
        assert 1 < len(points) <= 400 and all(0 <= y <= 100 for _, y in points)
    # The mean over time is what the jobs used.
    rows = [row for row in csv.DictReader(jobs.read_text().splitlines()) if row["start_s"]]
    used = sum(float(row["gpus"]) * (float(row["end_s"]) - float(row["start_s"])) for row in rows)
    span = max(float(row["end_s"]) for row in rows) - min(float(row["start_s"]) for row in rows)
    assert sum(y for _, y in points) / len(points) == pytest.approx(100 * used / span / 8, rel=1e-6)


@pytest.mark.parametrize("text, words, code, told", [
    ("a,b\n1,2\n", (), 1, "no column submit_s"), ("submit_s,start_s\n1,x\n", (), 1, "line 2"),
    ("submit_s,start_s\n", (), 1, "no lines"), ("", (), 1, "no column"), ("submit_s,start_s\n1,2\n", ("--gpus", "0"), 2, "above 0"),
])
def test_files_that_are_none(tmp_path, text, words, code, told):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    done = sim("plot", "waits", "--out", tmp_path / "o.svg", *words, file)
    assert done.returncode == code and told in done.stderr, done.stderr
    assert not (tmp_path / "o.svg").exists()


def test_usage():
    for words in (("plot",), ("plot", "pie"), ("plot", "waits", "x.csv"), ("plot", "utilization", "--out", "x", "y"),
                  ("whatif",), ("whatif", DUMP, "--dance", 1), ("whatif", DUMP, "--like")):
        assert sim(*words).returncode == 2, words
