"""Who leaves for whom, as `gpuaas-sim run` decides it: published failures of other schedulers, and reclaim."""
import json
import os
import pathlib
import random
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


def member(name, gpus, gang, size, priority, **more):
    notes = {"gpuaas.io/gang": gang, "gpuaas.io/gang-min": str(size), "sim.gpuaas.io/runs-for": "60"}
    return pod(name, gpus, priority, annotations=notes, **more)


def test_room_for_a_whole_gang_or_for_none_of_it(tmp_path):
    """The cheapest nodes of four, all of them at once; a gang that they do not hold evicts nobody."""
    slow = {"sim.gpuaas.io/ends-after": "20"}
    objects = [node(f"n{i}") for i in range(4)]
    objects += [pod(f"r{i}", 8, (0, 5, 5, 1)[i], nodeName=f"n{i}", annotations=slow if i == 3 else {}) for i in range(4)]
    objects += [member(f"five-{i}", 8, "five", 5, 10, at=5) for i in range(5)]
    objects += [member(f"two-{i}", 8, "two", 2, 10, at=10) for i in range(2)]
    objects += [pod("equal", 4, 10, at=14)]  # does not get what is kept, and has one more evicted for itself
    lines = decisions(tmp_path, objects)
    first = next(d for d in lines if d["verb"] == "evict")
    assert first["pod"].startswith("t/two-") and sorted(first["victims"]) == ["t/r0", "t/r3"]
    began = starts(lines)
    assert {began[f"t/two-{i}"][0] for i in range(2)} == {"n0", "n3"}
    assert all(30000 <= began[f"t/two-{i}"][1] < 32000 for i in range(2)), began  # not before the slower has ended
    assert not any(name.startswith("t/five") for name in began)
    assert began["t/equal"][0] in ("n1", "n2") and len(evicted(lines)) == 3


def test_a_gang_takes_back_what_is_its_tenants(tmp_path):
    """Below its guarantee a tenant gets two whole nodes back for a gang, whatever the priorities; three are too many."""
    objects = [tenant("own", guaranteed=16), tenant("guest", guaranteed=0), *[node(f"n{i}") for i in range(3)],
               *[pod(f"g{i}", 8, 50, namespace="guest", nodeName=f"n{i}") for i in range(3)]]
    objects += [member(f"fair-{i}", 8, "fair", 2, 0, namespace="own", at=10) for i in range(2)]
    objects += [member(f"big-{i}", 8, "big", 3, 0, namespace="own", at=20) for i in range(3)]
    lines = decisions(tmp_path, objects)
    assert len(evicted(lines)) == 2 and all(name.startswith("guest/") for name in evicted(lines))
    assert {name for name in starts(lines) if name.startswith("own/")} == {"own/fair-0", "own/fair-1"}


def draw(rng):
    """A small busy cluster: pods and gangs of all priorities that come, end, leave slowly and come back."""
    objects = [node(f"n{i}", rng.choice((4, 8))) for i in range(rng.randint(2, 5))]
    for i in range(rng.randint(10, 25)):
        notes = {"sim.gpuaas.io/runs-for": str(rng.randint(20, 300)), "sim.gpuaas.io/ends-after": str(rng.randint(0, 15))}
        if rng.random() < 0.3:
            notes["sim.gpuaas.io/recreate-after"] = "1"
        if rng.random() < 0.5:
            notes["gpuaas.io/duration"] = notes["sim.gpuaas.io/runs-for"]
        size = rng.choice((1, 1, 2, 3, 4))
        if size > 1:
            notes.update({"gpuaas.io/gang": f"g{i}", "gpuaas.io/gang-min": str(size - (rng.random() < 0.2))})
            notes.pop("sim.gpuaas.io/recreate-after", None)
        priority, gpus, at = rng.randint(0, 3), rng.choice((1, 1, 2, 4, 8)), rng.randint(0, 120)
        objects += [pod(f"p{i}-{k}", gpus, priority, at=at, annotations=notes, owner=f"job-{i}") for k in range(size)]
    return objects


def test_gangs_and_pods_at_random(tmp_path):
    """The simulator's own books hold in each: nobody evicted in vain or in part, no gang in part, nothing given twice."""
    evictions = for_gangs = 0
    for seed in range(40):
        lines = decisions(tmp_path, draw(random.Random(seed)), *(("--evict-failures", "200") if seed % 4 == 0 else ()))
        evictions += len(evicted(lines))
        gangs = {d["pod"] for d in lines if d["verb"] == "nominate" and d["node"]}
        for_gangs += any(d["verb"] == "evict" and d["node"] and len(gangs) > 0 for d in lines)
    assert evictions > 100 and for_gangs > 5


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


MOVE = ("--moves", "4", "--move-period", "3600", "--move-min-run", "1800", "--move-lost", "3600")


def test_one_goes_on_elsewhere(tmp_path):
    """The scenario of docs/preemption.md: the moved pod starts where room was kept for it."""
    out = tmp_path / "moves.jsonl"
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "run", ROOT / "tests/scenario/moves.yaml", "--seed", "1", "--out",
                           out, "--moves", "2", "--move-period", "3600", "--move-min-run", "60", "--move-lost", "120"],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and json.loads(done.stdout)["moved"] == 1, done.stderr
    assert out.read_text() == (ROOT / "tests/golden/sim/moves.run.jsonl").read_text()


def fragmenting(seed, count=120):
    """Jobs of 1 to 8 GPUs on eight nodes that keep a checkpoint each ten minutes."""
    rng = random.Random(seed)
    objects, at = [node(f"n{i}") for i in range(8)], 0.0
    for i in range(count):
        gpus, runs = rng.choices((1, 2, 4, 8), (40, 25, 20, 15))[0], max(600, int(rng.expovariate(1 / 7200)))
        at += rng.expovariate(1 / 400)
        objects.append(pod(f"j{i}", gpus, 5, at=int(at), owner=f"job-{i}", annotations={
            "sim.gpuaas.io/runs-for": str(runs), "sim.gpuaas.io/checkpoint-every": "600",
            "sim.gpuaas.io/recreate-after": "0", "sim.gpuaas.io/ends-after": "20"}))
    return objects


def waited(objects, lines):
    first = {}
    for d in lines:
        if d["verb"] == "bind":
            first.setdefault(d["pod"].rstrip("+"), d["t_ms"])
    came = {f"t/{o['metadata']['name']}": 1000 * int(o["metadata"]["annotations"]["sim.gpuaas.io/at"])
            for o in objects if o["kind"] == "Pod"}
    return sum(first[name] - came[name] for name in came)


def test_moves_are_paced_and_shorten_waits(tmp_path):
    """At most four in any hour, each to where it was said, nobody twice within half an hour; and less is waited."""
    without = with_moves = moved = 0
    for seed in range(3):
        objects = fragmenting(seed)
        plain, lines = decisions(tmp_path, objects), decisions(tmp_path, objects, *MOVE)
        assert evicted(plain) == []
        without, with_moves = without + waited(objects, plain), with_moves + waited(objects, lines)
        moves = [(d["t_ms"], v, h) for d in lines for v, h in zip(d["victims"], d.get("homes", []))]
        assert len(moves) == len(evicted(lines))  # equals evict nobody otherwise
        for t_ms, victim, home in moves:
            assert sum(t_ms - 3600000 < t <= t_ms for t, _, _ in moves) <= 4
            (_, began), (node_name, again) = starts(lines)[victim], starts(lines)[victim + "+"]
            assert t_ms - began >= 1800000 and node_name == home and again - t_ms < 25000
        moved += len(moves)
    assert moved > 10 and with_moves < 0.8 * without, (moved, with_moves, without)
