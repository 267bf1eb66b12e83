"""Preemption on a real API server, without nodes that run anything: what ends is deleted by the test."""
import datetime
import json
import time
import urllib.error

import pytest
from apiserver import ApiServer
from scheduler_test import Scheduler, check_no_double, condition, prepare, wait_for

GPUS = 8


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        api = prepare(server)
        for name, value in (("high", 1000), ("low", 10)):
            api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
                "metadata": {"name": name}, "value": value})
        yield api


@pytest.fixture
def scheduler(api, tmp_path):
    one = Scheduler(api.server, tmp_path, "one")
    wait_for("leading", one.is_leading)
    yield one
    one.end()
    api.delete_pods()


def add_pod(api, name, priority, gpus=GPUS, annotations=None, grace_s=30, owner=None):
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}] if owner else []
    api.call("POST", "/api/v1/namespaces/a/pods", {
        "metadata": {"name": name, "labels": {"app": priority}, "annotations": annotations or {},
                     "ownerReferences": owners},
        "spec": {"schedulerName": "gpuaas", "priorityClassName": priority, "terminationGracePeriodSeconds": grace_s,
                 "containers": [{"name": "c", "image": "x",
                                 "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})


def pod(api, name):
    try:
        return api.call("GET", f"/api/v1/namespaces/a/pods/{name}")
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return None


def run(api, name):
    """As its kubelet would say; a budget does not count pods that have not started."""
    wait_for(f"{name} on a node", lambda: pod(api, name)["spec"].get("nodeName"))
    api.call("PATCH", f"/api/v1/namespaces/a/pods/{name}/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        "application/strategic-merge-patch+json")


def leaving(api):
    return [p["metadata"]["name"] for p in api.pods() if p["metadata"].get("deletionTimestamp")]


def fill(api, prefix):
    """Four whole nodes of low pods; the work of number 2 is safe up to now."""
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    for i in range(4):
        safe = {"gpuaas.io/checkpointed-at": now.isoformat(timespec="seconds")} if i == 2 else {}
        add_pod(api, f"{prefix}{i}", "low", annotations=safe)
        run(api, f"{prefix}{i}")


def save_after(api, name, seconds):
    """What ran a while has something to lose; then its work is safe."""
    since = time.monotonic()
    wait_for("some work", lambda: time.monotonic() > since + seconds)
    api.call("PATCH", f"/api/v1/namespaces/a/pods/{name}", {"metadata": {"annotations": {
        "gpuaas.io/checkpointed-at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}}},
        "application/merge-patch+json")


def test_the_cheapest_leaves_and_its_node_is_kept(api, scheduler):
    fill(api, "low")
    node = pod(api, "low2")["spec"]["nodeName"]
    save_after(api, "low2", 3)
    add_pod(api, "high", "high", 4)
    wait_for("an eviction", lambda: leaving(api))
    assert leaving(api) == ["low2"]

    def disrupted():
        conditions = pod(api, "low2")["status"]["conditions"]
        return next((c for c in conditions if c["type"] == "DisruptionTarget"
                     and c["reason"] == "PreemptionByScheduler"), None)

    told = wait_for("by whom and why", disrupted)
    assert "a/high of higher priority" in told["message"] and node in told["message"], told
    wait_for("nominated", lambda: pod(api, "high")["status"].get("nominatedNodeName") == node)
    why = json.loads(scheduler.get("/explain/a/high"))
    assert why["preemption"] == {"node": node, "leaving": 1}, why
    assert "WaitsForEvicted" in [r["code"] for r in why["reasons"]], why
    assert json.loads(scheduler.get("/explain/a/low2"))["preemption"]["evictedBy"] == "a/high"
    wait_for("told", lambda: "WaitsForEvicted" in condition(pod(api, "high"))["message"])
    # Nobody else gets the node, and nobody else has to leave.
    add_pod(api, "other", "low")
    wait_for("a reason", lambda: condition(pod(api, "other")).get("message"))
    api.delete_pod("low2")
    wait_for("the preemptor on it", lambda: pod(api, "high")["spec"].get("nodeName") == node)
    check_no_double(api.pods())
    assert leaving(api) == [] and not pod(api, "other")["spec"].get("nodeName")
    assert scheduler.metric("gpuaas_scheduler_evictions_total") == 1
    events = api.call("GET", "/apis/events.k8s.io/v1/namespaces/a/events")["items"]
    told = {(e["reason"], e["regarding"]["name"]) for e in events}
    assert {("Preempted", "low2"), ("Preempting", "high")} <= told, told


def test_room_for_a_whole_gang(api, scheduler):
    """Two nodes at once, kept for both members until both are empty; nobody leaves for three of two."""
    fill(api, "low")
    for i in range(2):
        api.delete_pod(f"low{i}")
        add_pod(api, f"equal{i}", "high")
        run(api, f"equal{i}")
    for i in range(3):
        add_pod(api, f"three{i}", "high", annotations={"gpuaas.io/gang": "three", "gpuaas.io/gang-min": "3"})
    wait_for("the reason", lambda: all("GangDoesNotFit" in condition(pod(api, f"three{i}")).get("message", "")
                                       for i in range(3)))
    assert leaving(api) == []
    for i in range(3):
        api.delete_pod(f"three{i}")
    for i in range(2):
        add_pod(api, f"two{i}", "high", annotations={"gpuaas.io/gang": "two", "gpuaas.io/gang-min": "2"})
    wait_for("both evictions", lambda: len(leaving(api)) == 2)
    nodes = {pod(api, name)["spec"]["nodeName"] for name in leaving(api)}
    kept = wait_for("both nominations", lambda: (lambda names: None not in names and names)(
        {pod(api, f"two{i}")["status"].get("nominatedNodeName") for i in range(2)}))
    assert kept == nodes and sorted(leaving(api)) == ["low2", "low3"]
    wait_for("told", lambda: "WaitsForEvicted" in condition(pod(api, "two1"))["message"])
    add_pod(api, "other", "high")  # comes later, and must not take what gets free first
    wait_for("a reason", lambda: condition(pod(api, "other")).get("message"))
    api.delete_pod("low2")
    wait_for("still both", lambda: "leaving\":0" in scheduler.get("/explain/a/two0").replace(" ", "") or
             "leaving\":0" in scheduler.get("/explain/a/two1").replace(" ", ""))
    assert not any(pod(api, name)["spec"].get("nodeName") for name in ("two0", "two1", "other"))
    api.delete_pod("low3")
    wait_for("both run", lambda: {pod(api, f"two{i}")["spec"].get("nodeName") for i in range(2)} == nodes)
    check_no_double(api.pods())
    assert not pod(api, "other")["spec"].get("nodeName")


def test_a_budget_keeps_them(api, scheduler):
    fill(api, "low")
    budget = "/apis/policy/v1/namespaces/a/poddisruptionbudgets"
    made = api.call("POST", budget, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                                     "metadata": {"name": "all"},
                                     "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "low"}}}})

    def allow(count):
        api.call("PATCH", f"{budget}/all/status", {"status": {
            "observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": count, "currentHealthy": 4,
            "desiredHealthy": 4 - count, "expectedPods": 4}}, "application/merge-patch+json")

    allow(0)
    add_pod(api, "high", "high")
    wait_for("the reason", lambda: "LowerPriorityProtected on 4" in condition(pod(api, "high")).get("message", ""))
    assert leaving(api) == []
    allow(1)
    wait_for("an eviction", lambda: leaving(api))
    assert len(leaving(api)) == 1
    assert api.call("GET", f"{budget}/all")["status"]["disruptionsAllowed"] == 0
    victim = leaving(api)[0]
    node = pod(api, victim)["spec"]["nodeName"]
    add_pod(api, "second", "high")
    wait_for("told", lambda: condition(pod(api, "second")).get("message"))
    api.delete_pod(victim)
    wait_for("the first on the node", lambda: pod(api, "high")["spec"].get("nodeName") == node)
    assert leaving(api) == []
    api.call("DELETE", f"{budget}/all")
    wait_for("without a budget", lambda: leaving(api))


def test_a_refused_eviction_is_given_up(api, scheduler):
    """Two budgets for one pod: the API server never evicts it, and the core does not ask."""
    add_pod(api, "low0", "low")
    run(api, "low0")
    budgets = "/apis/policy/v1/namespaces/a/poddisruptionbudgets"
    for name in ("one", "two"):
        made = api.call("POST", budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                                          "metadata": {"name": name}, "spec": {
                                              "minAvailable": 0, "selector": {"matchLabels": {"app": "low"}}}})
        api.call("PATCH", f"{budgets}/{name}/status", {"status": {
            "observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 1, "currentHealthy": 1,
            "desiredHealthy": 0, "expectedPods": 1}}, "application/merge-patch+json")
    for i in range(3):
        add_pod(api, f"high{i}", "high")
        run(api, f"high{i}")
    add_pod(api, "high3", "high")
    wait_for("told", lambda: "LowerPriorityProtected" in condition(pod(api, "high3")).get("message", ""))
    assert leaving(api) == []
    for name in ("one", "two"):
        api.call("DELETE", f"{budgets}/{name}")
    wait_for("it leaves now", lambda: leaving(api) == ["low0"])


def test_one_goes_on_elsewhere(api, tmp_path):
    """An equal that keeps checkpoints makes room for a whole node; its own room elsewhere is kept until it comes."""
    one = Scheduler(api.server, tmp_path, "one", "--preemption", "priority,moves=4,move-min-run=0s,move-lost=1h")
    try:
        wait_for("leading", one.is_leading)
        for name, gpus in (("full0", 8), ("full1", 8), ("six", 6), ("five", 5)):
            add_pod(api, name, "low", gpus)
            run(api, name)
        add_pod(api, "moved", "low", 2, owner="job")
        run(api, "moved")
        save_after(api, "moved", 2)
        node, home = pod(api, "moved")["spec"]["nodeName"], pod(api, "five")["spec"]["nodeName"]
        assert node == pod(api, "six")["spec"]["nodeName"] != home
        api.delete_pod("six")
        add_pod(api, "wide", "low")
        wait_for("an eviction", lambda: leaving(api) == ["moved"])
        why = f"moved for defragmentation: makes room for a/wide on {node}, and room is kept for it on {home};"
        wait_for("by whom and why", lambda: any(
            c.get("reason") == "PreemptionByScheduler" and c["message"].startswith(why)
            for c in pod(api, "moved")["status"]["conditions"]))
        wait_for("nominated", lambda: pod(api, "wide")["status"].get("nominatedNodeName") == node)
        told = json.loads(one.get("/explain/a/moved"))["preemption"]
        assert (told["evictedBy"], told["goesOnAt"]) == ("a/wide", home), told
        assert 'evictions_total{reason="move"} 1' in one.get("/metrics")
        add_pod(api, "other", "low", 2)  # equal, and gets neither room
        wait_for("a reason", lambda: condition(pod(api, "other")).get("message"))
        api.delete_pod("moved")
        wait_for("it runs", lambda: pod(api, "wide")["spec"].get("nodeName") == node)
        assert not pod(api, "other")["spec"].get("nodeName")
        add_pod(api, "again", "low", 2, owner="job")
        wait_for("it goes on", lambda: pod(api, "again")["spec"].get("nodeName") == home)
        check_no_double(api.pods())
        assert leaving(api) == [] and not pod(api, "other")["spec"].get("nodeName")
    finally:
        one.end()
        api.delete_pods()
