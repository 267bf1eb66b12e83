"""Tenants as queues: gpuaas-scheduler against a real API server with the chart's own resources."""
import json
import subprocess
import urllib.error

import pytest
from apiserver import PROGRAMS, ApiServer
from scheduler_test import DEFINITION, Api, Scheduler, condition, wait_for
from server_test import ROOT

TENANTS = "/apis/gpuaas.io/v1alpha1/tenants"


class Cluster(Api):
    def set_queue(self, name, queue):
        body = {"apiVersion": "gpuaas.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, "spec": {"queue": queue}}
        try:
            return self.call("POST", TENANTS, body)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
        return self.call("PATCH", f"{TENANTS}/{name}", {"spec": {"queue": queue}}, "application/merge-patch+json")

    def running(self, namespace):
        return sorted(p["metadata"]["name"] for p in self.pods(namespace) if p["spec"].get("nodeName"))

    def told(self, name, namespace):
        pod = next(p for p in self.pods(namespace) if p["metadata"]["name"] == name)
        return condition(pod).get("message", "")

    def user_pod(self, name, namespace, gpus=1, user=""):
        return self.add_pod(name, gpus, namespace, annotations={"gpuaas.io/user": user} if user else {})


def prepare(cluster, namespaces):
    """Serves tenants by the chart's own definition and what the scheduler's tests define; makes namespaces and a node."""
    crd = subprocess.run([PROGRAMS / "helm", "template", "x", ROOT / "deploy/chart/gpuaas", "--show-only",
                          "templates/crds/tenant.yaml"], check=True, capture_output=True, text=True).stdout
    subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", cluster.server.kubeconfig, "apply", "-f", "-"], check=True,
                   input=crd, text=True, capture_output=True)
    cluster.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    for plural in ("tenants", "gpunodes"):
        wait_for(plural, lambda path=f"/apis/gpuaas.io/v1alpha1/{plural}": served(cluster, path))
    for name in namespaces:
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    cluster.add_node("n1")
    return cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("queues")) as server:
        yield prepare(Cluster(server), ("gpuaas-system", "vision", "speech", "guest", "lost"))


def served(cluster, path):
    try:
        return cluster.call("GET", path)
    except urllib.error.HTTPError:
        return None


@pytest.fixture
def scheduler(cluster, tmp_path):
    replica = Scheduler(cluster.server, tmp_path, "one")
    wait_for("leading", replica.is_leading)
    yield replica
    replica.end()
    for name in ("vision", "speech", "guest", "lost"):
        cluster.delete_pods(name)


@pytest.mark.parametrize("queue,field", [
    ({"limit": -1}, "limit"), ({"guaranteed": 100001}, "guaranteed"), ({"weight": 1.5}, "weight"),
    ({"guaranteed": 5, "limit": 4}, "guaranteed is above limit"), ({"halfLifeSeconds": 10**12}, "halfLifeSeconds"),
    ({"byModel": [{"model": "H100"}, {"model": "H100"}]}, "Duplicate"), ({"byModel": [{"limit": 1}]}, "model"),
    ({"byModel": [{"model": "H100", "guaranteed": 2, "limit": 1}]}, "guaranteed is above limit"),
    ({"userLimit": "many"}, "userLimit"), ({"priorityCeiling": 2**31}, "priorityCeiling")])
def test_the_api_server_refuses_what_no_queue_can_be(cluster, queue, field):
    with pytest.raises(urllib.error.HTTPError, match="422") as refused:
        cluster.set_queue("bad", queue)
    assert field in str(refused.value)


def test_guarantees_limits_and_persons(cluster, scheduler):
    cluster.set_queue("lab", {"limit": 6})
    cluster.set_queue("vision", {"parent": "lab", "guaranteed": 4})
    cluster.set_queue("speech", {"parent": "lab", "userLimit": 1})
    cluster.set_queue("guest", {})
    cluster.set_queue("lost", {"parent": "nobody"})
    for i in range(10):
        cluster.user_pod(f"g{i}", "guest")
    wait_for("the guest borrows all", lambda: len(cluster.running("guest")) == 8)
    for i in range(2):
        cluster.user_pod(f"v{i}", "vision", 2)
    cluster.user_pod("l0", "lost")
    wait_for("told", lambda: "InsufficientResource" in cluster.told("v1", "vision"))
    for name in cluster.running("guest")[:4]:
        cluster.delete_pod(name, "guest")
    wait_for("what is guaranteed goes first", lambda: cluster.running("vision") == ["v0", "v1"])
    assert len(cluster.running("guest")) == 4
    for i, user in enumerate(("ada", "ada", "bob")):
        cluster.user_pod(f"s{i}", "speech", 1, user)
    for name in cluster.running("guest"):
        cluster.delete_pod(name, "guest")
    wait_for("one of each person", lambda: cluster.running("speech") == ["s0", "s2"])
    wait_for("told of the person", lambda: "UserLimitReached" in cluster.told("s1", "speech"))
    wait_for("told of the lab", lambda: "QueueLimitReached (needs 1 GPUs, at most 0 GPUs for lab)"
             in cluster.told("s1", "speech"))
    assert "spec.queue.parent: tenant nobody has no queue" in cluster.told("l0", "lost")
    wait_for("the rest of the guest", lambda: len(cluster.running("guest")) == 2)
    rows = {row["tenant"]: row for row in json.loads(scheduler.get("/queues"))["items"]}
    assert rows["lab"]["allocated"] == 6 and rows["lab"]["guaranteed"] == 4 and rows["lab"]["borrowed"] == 2
    assert rows["speech"]["borrowed"] == 2 and rows["speech"]["waiting"] == 1 and rows["vision"]["depth"] == 2
    assert rows["lost"]["problem"].startswith("spec.queue.parent")
    assert scheduler.metric('gpuaas_scheduler_queue_allocated_gpus{tenant="lab"}') == 6
    place = json.loads(scheduler.get("/explain/speech/s1"))["queue"]
    assert place == {"tenant": "speech", "below_guarantee": False, "priority": 0, "user": "ada"}
    cluster.set_queue("lost", {"parent": None})
    wait_for("the fault is mended", lambda: not cluster.told("l0", "lost") or cluster.running("lost") == ["l0"]
             or "QueueInvalid" not in cluster.told("l0", "lost"))
    assert "only gpuaas-server" in scheduler.get("/queues", token=None)


def test_models(cluster, scheduler):
    """A limit of one GPU model closes the nodes of that model alone, says so, and opens when it is raised."""
    cluster.set_queue("vision", {"byModel": [{"model": "A100", "limit": 2}, {"model": "B200"}]})
    for i in range(2):
        cluster.user_pod(f"m{i}", "vision", 2)
    wait_for("one of two", lambda: len(cluster.running("vision")) == 1)
    waits = "m1" if cluster.running("vision") == ["m0"] else "m0"
    wait_for("told", lambda: "QueueLimitReached" in cluster.told(waits, "vision"))
    assert "of A100 for vision" in cluster.told(waits, "vision")
    row = next(row for row in json.loads(scheduler.get("/queues"))["items"] if row["tenant"] == "vision")
    assert {"model": "A100", "guaranteed": 0, "limit": 2, "allocated": 2, "offered": 8} in row["by_model"]
    assert row["problem"] == "spec.queue.byModel: no node has GPUs B200"
    cluster.set_queue("vision", {"byModel": [{"model": "A100", "limit": 4}]})
    wait_for("raised", lambda: cluster.running("vision") == ["m0", "m1"])
    cluster.set_queue("vision", {"byModel": None})


def test_what_was_had_outlives_the_scheduler(cluster, scheduler, tmp_path):
    cluster.set_queue("guest", {})
    cluster.user_pod("g", "guest", 8)
    wait_for("running", lambda: cluster.running("guest") == ["g"])

    def used():
        usage = cluster.call("GET", f"{TENANTS}/guest").get("status", {}).get("usage", {})
        return int(usage.get("gpuMilliSeconds", 0))
    wait_for("written down", lambda: used() > 0, 100)
    written = used()
    scheduler.end()
    cluster.delete_pods("guest")
    other = Scheduler(cluster.server, tmp_path, "two")
    try:
        wait_for("leading", other.is_leading, 60)
        wait_for("remembered", lambda: 0.9 * written < 1000 * other.metric(
            'gpuaas_scheduler_queue_used_gpu_seconds{tenant="guest"}') <= written)
    finally:
        other.end()
