"""Who leaves for whom, as `gpuaas-sim run` decides it: published failures of other schedulers, and reclaim."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))


def node(name, gpus=8):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, gpus, priority, at=0, namespace="t", annotations=None, owner=None, **spec):
    meta = {"name": name, "namespace": namespace,
            "annotations": {"sim.gpuaas.io/at": str(at), **(annotations or {})}}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {
        "schedulerName": "gpuaas", "priority": priority, **spec, "containers": [
            {"name": "m", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


def tenant(name, **queue):
    return {"apiVersion": "gpuaas.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, "spec": {"queue": queue}}


def decisions(tmp_path, objects, *words):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("\n---\n".join(json.dumps(o) for o in objects))
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "run", scenario, "--seed", "1", *words], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def evicted(lines):
    return [victim for d in lines if d["verb"] == "evict" for victim in d["victims"]]


def starts(lines):
    return {d["pod"]: (d["node"], d["t_ms"]) for d in lines if d["verb"] == "bind"}


def test_nobody_leaves_where_it_does_not_suffice(tmp_path):
    """Two low pods on each of four nodes do not make one whole node; for a small pod one of them does."""
    objects = [node(f"n{i}") for i in range(4)]
    objects += [pod(f"r{n}-{i}", 1, 10 if i < 6 else 0, nodeName=f"n{n}") for n in range(4) for i in range(8)]
    objects += [pod("big", 8, 10, at=5), pod("small", 1, 10, at=6)]
    lines = decisions(tmp_path, objects)
    assert len(evicted(lines)) == 1 and "t/small" in starts(lines) and "t/big" not in starts(lines)
    why = [d for d in lines if d["pod"] == "t/big" and d["verb"] == "wait"][0]["reasons"]
    assert [(r["code"], r["have"]) for r in why if r["code"] == "PreemptionNotEnough"] == [
        ("PreemptionNotEnough", "2 nvidia.com/gpu")]


def test_what_leaves_already_is_used_first(tmp_path):
    """The victims of the first make room for the second, too."""
    objects = [node("a"), node("b"), pod("wide", 8, 0, nodeName="a", annotations={"sim.gpuaas.io/ends-after": "20"}),
               pod("other", 8, 5, nodeName="b"), pod("p", 4, 10, at=5), pod("q", 4, 10, at=6)]
    lines = decisions(tmp_path, objects)
    assert evicted(lines) == ["t/wide"]
    assert [d["node"] for d in lines if d["verb"] == "nominate"] == ["a"]
    assert {starts(lines)[name][0] for name in ("t/p", "t/q")} == {"a"}


def test_who_comes_back_does_not_take_the_room(tmp_path):
    """A victim that its controller makes anew at once waits, and is evicted once."""
    back = {"sim.gpuaas.io/recreate-after": "0", "sim.gpuaas.io/ends-after": "5"}
    objects = [node("n"), *[pod(f"v{i}", 4, 0, annotations=back, owner=f"job-{i}") for i in range(2)],
               pod("p", 6, 10, at=10, annotations={"sim.gpuaas.io/runs-for": "100"})]
    lines = decisions(tmp_path, objects)
    assert sorted(evicted(lines)) == ["t/v0", "t/v1"]
    began = starts(lines)
    assert began["t/p"][1] < 20000
    assert all(began[f"t/v{i}+"][1] >= began["t/p"][1] + 100000 for i in range(2)), began


def test_the_replacement_stands_where_the_evicted_one_stood(tmp_path):
    back = {"sim.gpuaas.io/recreate-after": "1"}
    objects = [node("n"), pod("old", 8, 0, annotations=back, owner="job"),
               pod("p", 8, 10, at=10, annotations={"sim.gpuaas.io/runs-for": "100"}), pod("between", 8, 0, at=11)]
    began = starts(decisions(tmp_path, objects))
    assert "t/old+" in began and "t/between" not in began


def test_a_hundred_pods_take_a_hundred(tmp_path):
    """Exactly as many leave as are needed, within the limit a minute."""
    objects = [node(f"n{i}") for i in range(20)]
    objects += [pod(f"b{i}", 1, 0, nodeName=f"n{i // 8}") for i in range(160)]
    objects += [pod(f"a{i}", 1, 10, at=10) for i in range(100)]
    lines = decisions(tmp_path, objects)
    assert len(evicted(lines)) == len(set(evicted(lines))) == 100
    assert len(starts(lines)) == 100
    slow = decisions(tmp_path, objects, "--evictions-per-minute", "30")
    first = [d["t_ms"] for d in slow if d["verb"] == "evict"]
    assert len(first) == 100 and sum(t < 70000 for t in first) <= 61 and first[-1] > 120000


def test_a_tenant_takes_back_what_is_its_own(tmp_path):
    """A guest has all; the owner's pods take exactly what is guaranteed to them, whatever the priorities."""
    objects = [node("n"), tenant("owner", guaranteed=4), tenant("guest"),
               *[pod(f"g{i}", 1, 100, namespace="guest") for i in range(8)],
               *[pod(f"o{i}", 1, 0, at=10, namespace="owner") for i in range(6)]]
    lines = decisions(tmp_path, objects)
    assert len(evicted(lines)) == 4 and all(v.startswith("guest/") for v in evicted(lines))
    assert sum(name.startswith("owner/") for name in starts(lines)) == 4


def test_no_guarantee_no_claim(tmp_path):
    objects = [node("n"), tenant("owner", guaranteed=8), tenant("guest"),
               *[pod(f"o{i}", 1, 0, namespace="owner") for i in range(8)], pod("g", 1, 100, at=10, namespace="guest")]
    lines = decisions(tmp_path, objects)
    assert evicted(lines) == [] and "guest/g" not in starts(lines)


def test_one_of_a_wide_gang_is_enough(tmp_path):
    """Eleven members of which one suffices: one pod of another tenant takes one place."""
    gang = {"gpuaas.io/gang": "g", "gpuaas.io/gang-min": "1"}
    objects = [node("n", 11), tenant("qa"), tenant("qb", guaranteed=1),
               *[pod(f"a{i}", 1, 0, namespace="qa", annotations=gang) for i in range(11)],
               pod("b", 1, 0, at=10, namespace="qb")]
    lines = decisions(tmp_path, objects)
    assert len(evicted(lines)) == 1 and "qb/b" in starts(lines)
