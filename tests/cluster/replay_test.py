"""The public trace as real pods while parts are killed: every task ends once, and an observer who
knows only the pods' times arrives at the same bill to the nano."""
import json
import threading
import time
from fractions import Fraction

import observer
import run as replay
import setup
import summary
import tasks as trace

from conftest import PROGRAMS, PROMETHEUS

# Seconds after the begin of the replay; the arrivals are dense from second 100 on.
FAULTS = (
    (20, "agent", 0), (35, "scheduler", 0), (50, "server", 0),
    (104, "scheduler", 0), (110, "agent", 1), (116, "server", 0),
    (124, "apiserver", 0), (136, "kubelet", 1),
)


KILLED_KUBELET, ITS_GPUS = "node2", 8


def start_errors(cluster):
    """uid -> (node, message) of the pods whose container containerd did not start."""
    found = {}
    for pod in cluster.json("get", "pods", "-A", "-l", "gpuaas.io/request")["items"]:
        for status in pod["status"].get("containerStatuses", []):
            end = status.get("state", {}).get("terminated") or {}
            if end.get("exitCode") == 128 and end.get("reason") == "StartError":
                found[pod["metadata"]["uid"]] = (pod["spec"]["nodeName"], end.get("message", ""))
    return found


def inject(cluster, done, log):
    """Does what FAULTS says at its time; stops early when the replay has ended."""
    start = time.monotonic()
    for at, what, which in FAULTS:
        while time.monotonic() < start + at:
            if done.wait(0.2):
                return
        try:
            if what == "apiserver":
                cluster.restart("apiserver")
            elif what == "kubelet":
                cluster.restart("kubelet", f"node{which + 1}")
            else:
                cluster.kill(f"gpuaas-{what}", which)
            log.append(what)
        except Exception as error:  # the test reads it below
            log.append(f"{what}: {error}")


def test_every_task_ends_once_and_the_bill_agrees(cluster, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    admin = cluster.admin()
    admin.patience_s = 120
    todo = trace.load()
    assert len(todo) >= 200
    _, tokens = setup.prepare(admin, 3)
    users = {tenant: admin.as_user(token) for tenant, token in tokens.items()}
    start, done, log = replay.now(), threading.Event(), []
    faults = threading.Thread(target=inject, args=(cluster, done, log))
    faults.start()
    rows = replay.replay(admin, users, todo, "testbed.local/gpuaas-workload:dev", limit_s=300)
    done.set()
    faults.join()
    assert log == [what for _, what, _ in FAULTS]
    missing, _ = replay.drained(admin, rows, start, patience_s=120)
    end = replay.text_of(replay.now())
    assert missing == []
    assert {r["id"] for r in rows.values()} == {f"{t.tenant}.{t.name}" for t in todo}
    other = [{k: r.get(k) for k in ("id", "state", "reason", "message", "exit_code", "node", "created", "ended")}
             for r in rows.values() if r["state"] != "Succeeded"]
    assert other == []
    # A kubelet that is killed while containerd starts a container cancels that start: such a pod has
    # held its GPU, is billed, and is made anew. Nothing else makes a second pod, and no more can be
    # in their start there than the node has GPUs.
    pods = cluster.json("get", "pods", "-A", "-l", "gpuaas.io/request")["items"]
    first = start_errors(cluster)
    last = [p["metadata"]["labels"]["gpuaas.io/request"] for p in pods if p["metadata"]["uid"] not in first]
    assert sorted(last) == sorted(r["id"] for r in rows.values())
    assert len(first) <= ITS_GPUS
    assert [f for f in first.values() if f[0] != KILLED_KUBELET or "context canceled" not in f[1]] == []
    # The end of a pod that was made anew may be a moment behind that of the first, which drained saw.
    for _ in range(10):
        bill = summary.bill_of(admin, replay.text_of(start), end)
        wrong, held_s = observer.observe(admin, str(PROGRAMS / "kubectl"), replay.text_of(start), end, bill)
        if not wrong:
            break
        time.sleep(3)
    assert wrong == []
    assert held_s > 0


def test_prometheus_scrapes_all_parts(cluster):
    cluster.shell("prometheus_start")
    try:
        assert summary.scraped(PROMETHEUS, patience_s=60) == []
    finally:
        cluster.shell("process_stop prometheus")


def test_no_gpu_was_held_by_two_at_once(cluster):
    """Over the whole ledger, from the events alone: what is held of a GPU, parts of it by slices or
    shares, is never more than the GPU."""
    lines = cluster.admin().call("GET", "/v1/events", accept="application/jsonl").splitlines()
    changes, shares = {}, {}
    for event in map(json.loads, lines):
        if event["type"] not in ("bound", "released"):
            continue
        key = (event["gpu"], event["pod_uid"], event["container"])
        if event["type"] == "bound":
            part = event.get("share", {"num": 1, "den": 1})
            shares[key] = Fraction(int(part["num"]), int(part["den"]))
        change = shares.get(key, Fraction(0)) * (1 if event["type"] == "bound" else -1)
        steps = changes.setdefault(event["gpu"], {})
        at = observer.seconds_of(event["t"])
        steps[at] = steps.get(at, Fraction(0)) + change  # what ends in a second makes room for what begins in it
    assert shares
    for gpu, steps in changes.items():
        held = Fraction(0)
        for at in sorted(steps):
            held += steps[at]
            assert 0 <= held <= 1, (gpu, at, held)