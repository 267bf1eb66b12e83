"""Why a pod waits, would wait, or is where it is: gpuaas-scheduler on a real API server. What a dry run answers is
what then happens; reasons are the same in the condition, by /explain and in the dry run, and go with their cause."""
import hashlib
import hmac
import json
import re
import urllib.error
import urllib.request

import pytest
from apiserver import ApiServer
from scheduler_test import GPUS, PLAN_KEY, Scheduler, condition, prepare, wait_for
from server_test import ROOT


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        yield prepare(server)


@pytest.fixture(scope="module")
def scheduler(api, tmp_path_factory):
    scheduler = Scheduler(api.server, tmp_path_factory.mktemp("scheduler"), "one")
    wait_for("a leader", scheduler.is_leading)
    yield scheduler
    scheduler.end()


def dry_run(scheduler, gpus, token=hmac.new(PLAN_KEY, b"explain", hashlib.sha256).hexdigest(), name="asked", **spec):
    pod = {"metadata": {"name": name, "namespace": "a", "annotations": spec.pop("annotations", {})},
           "spec": {"schedulerName": "gpuaas", **spec, "containers": [
               {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}
    request = urllib.request.Request(f"http://127.0.0.1:{scheduler.port}/dry-run", json.dumps(pod).encode(),
                                     {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def pod_of(api, name):
    return next(p for p in api.pods() if p["metadata"]["name"] == name)


def node_of(api, name):
    return wait_for(f"{name} runs", lambda: pod_of(api, name)["spec"].get("nodeName"))


def test_what_is_foretold_happens(api, scheduler):
    code, told = dry_run(scheduler, 2, priorityClassName="system-cluster-critical")
    assert code == 200 and told["state"] == "fits" and told["reasons"] == []
    api.add_pod("two", 2)
    assert node_of(api, "two") == told["node"], "asking changed nothing"
    why = json.loads(pod_of(api, "two")["metadata"]["annotations"]["gpuaas.io/why"])
    assert why["term"] == "name" and why["next"] != told["node"], "four equal nodes"
    api.add_pod("next", 1)
    assert node_of(api, "next") == told["node"]
    why = json.loads(pod_of(api, "next")["metadata"]["annotations"]["gpuaas.io/why"])
    assert why["term"] in ("asleep", "cost") and why["own"] < why["other"]

    for name, gpus, annotations in (("w0", GPUS + 1, {}), ("w1", 1, {"gpuaas.io/gpu-models": "H100"}),
                                    ("w2", 1, {"gpuaas.io/min-driver": "1"})):
        code, told = dry_run(scheduler, gpus, name=name, annotations=dict(annotations))
        assert code == 200 and told["state"] == "waits" and told["reasons"], told
        api.add_pod(name, gpus, annotations=annotations)
        message = wait_for("told", lambda n=name: condition(pod_of(api, n)) or None)["message"]
        asked = json.loads(scheduler.get(f"/explain/a/{name}"))
        assert (asked["reasons"], asked["position"]) == (told["reasons"], told["position"])
        assert all(f"{r['code']} on {r['nodes']}" in message for r in told["reasons"]), message
        assert all(r["next"] for r in told["reasons"])

    assert dry_run(scheduler, 1, priorityClassName="nobody-made-it")[0] == 400
    assert dry_run(scheduler, 1, annotations={"gpuaas.io/gang": "g", "gpuaas.io/gang-min": "2"})[0] == 422
    assert dry_run(scheduler, 1, token="0" * 64)[0] == 401
    assert dry_run(scheduler, "much")[1]["reasons"][0]["code"] == "InvalidQuantity"


def test_reasons_go_with_their_cause(api, scheduler):
    for i in range(3):
        api.add_pod(f"full{i}", GPUS)
        node_of(api, f"full{i}")
    told = dry_run(scheduler, GPUS)[1]
    api.add_pod("late", GPUS)
    wait_for("told", lambda: condition(pod_of(api, "late")))
    asked = json.loads(scheduler.get("/explain/a/late"))
    assert asked["reasons"] == told["reasons"] == [{
        "code": "InsufficientResource", "need": f"{GPUS} nvidia.com/gpu", "have": f"{GPUS - 3} nvidia.com/gpu",
        "nodes": 4, "next": "wait until enough is released, or ask for less"}]
    api.delete_pod("full0")
    node_of(api, "late")
    assert json.loads(scheduler.get("/explain/a/late"))["reasons"] == []
    assert condition(pod_of(api, "late"))["status"] == "True"
    pods = api.pods()
    running = [p for p in pods if p["spec"].get("nodeName")]
    wait_for("metrics", lambda: scheduler.metric('gpuaas_scheduler_pods{state="bound"}') == len(running))
    assert scheduler.metric('gpuaas_scheduler_pods{state="waiting"}') == len(pods) - len(running) == 3
    pool = '{tenant="a",pool="NVIDIA A100-SXM4-80GB",class=""}'
    assert scheduler.metric(f"gpuaas_scheduler_queue_wait_seconds_count{pool}") == len(running) + 1, "one has ended"
    assert scheduler.metric('gpuaas_scheduler_pending_pods{reason="GpuModelMismatch"}') == 1
    assert scheduler.metric("gpuaas_scheduler_gang_held_pods") == 0
    assert scheduler.metric('gpuaas_scheduler_cache_age_seconds{resource="pods"}') < 60
    assert scheduler.metric("gpuaas_scheduler_decision_seconds_count") == scheduler.metric(
        "gpuaas_scheduler_decisions_total")


def test_every_metric_is_documented(scheduler):
    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    names = re.findall(r"^# TYPE (gpuaas_scheduler_\w+)", scheduler.get("/metrics"), re.MULTILINE)
    assert len(names) > 20 and not [n for n in names if n not in text and f"`{n[17:]}" not in text]
