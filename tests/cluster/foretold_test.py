"""quota check, explain and ps --wide with everything real but the nodes: gpuaas-server asks gpuaas-scheduler on one API
server; the pods that the Job controller would make are made by hand."""
import json
import subprocess
import types

import pytest
from apiserver import free_port
from scheduler_test import BUILD, Scheduler
from server_test import PLAN_KEY, Cluster, Server, helm, install, make_pod, wait_for

GPUS = 4
ASK = {"image": "registry.example/team/train:1", "class": "training", "duration": 60}


class Weighted(Scheduler):
    def __init__(self, kubeconfig, folder):
        self.port = free_port()
        (folder / "key").write_bytes(PLAN_KEY)
        with open(folder / "scheduler.log", "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "src/daemons/scheduler/gpuaas-scheduler", "--kubeconfig", kubeconfig, "--plan-key", folder / "key", "--listen",
                 f"127.0.0.1:{self.port}", "--priority-weights", "age=1000,size=-500"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stack")
    with Cluster(tmp_path_factory.mktemp("api")) as cluster:
        install(cluster)
        cluster.kubectl("apply", "-n", "gpuaas-system", "-f", "-", given=helm("scheduler").stdout)
        cluster.kubectl("apply", "-f", "-", given=json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}))
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
        cluster.kubectl("patch", "node", "n0", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}))
        cluster.kubectl("taint", "node", "n0", "node.kubernetes.io/not-ready-", check=False)
        scheduler = Weighted(cluster.config_of("gpuaas-scheduler")[0], folder)
        server = Server(folder, kubernetes=str(cluster.config_of("gpuaas-server", "--duration=24h")[0]), scheduler={
            "url": f"http://127.0.0.1:{scheduler.port}", "key_file": str(folder / "key")}).start()
        wait_for("a leader", scheduler.is_leading)
        server.tenant("red", {"gpus": 12, "cpu": "100", "memory": "640Gi", "pods": 100})
        wait_for("the tenant is ready", lambda: server.get("/v1/tenants/red").json["state"] == "Ready")
        yield types.SimpleNamespace(cluster=cluster, scheduler=scheduler, server=server,
                                    red=server.token("red", "mia")[0])
        server.stop()
        scheduler.end()


def request(stack, name, gpus):
    """Makes one with its pod; returns what was answered before about one like it."""
    check = stack.server.post("/v1/quota:check", {**ASK, "gpus": gpus}, token=stack.red).json
    assert stack.server.post("/v1/tenants/red/requests", {**ASK, "name": name, "gpus": gpus}, token=stack.red).status == 201
    if check["reasons"][:1] != [] and check["reasons"][0]["code"].startswith("Quota"):
        return check
    wait_for("its Job", lambda: stack.cluster.kubectl("-n", "red", "get", "job", name, check=False).returncode == 0)
    make_pod(stack.cluster, name)
    return check


def explain(stack, name):
    return stack.server.get(f"/v1/requests/red.{name}/explain", token=stack.red).json


def test_what_is_foretold_happens(stack):
    assert request(stack, "first", 3) == {"state": "fits", "node": "n0", "reasons": []}
    started = wait_for("it has its node", lambda: (lambda e: e if e.get("node") == "n0" else None)(explain(stack, "first")))
    assert started["why"] == {"term": "only"}, started
    foretold = request(stack, "second", 2)
    told = wait_for("told", lambda: (lambda e: e if e["reasons"][0]["code"] not in (
        "NotSeenYet", "WaitingForPod") else None)(explain(stack, "second")))
    assert (foretold["state"], foretold["reasons"]) == (told["state"], told["reasons"])
    assert foretold["position"] == told["position"] == 1
    assert foretold["reasons"][0]["code"] == "InsufficientResource"
    # It goes before the second: small ones do by these weights, and the node is not kept from them.
    assert request(stack, "third", 1) == {"state": "fits", "node": "n0", "reasons": []}
    wait_for("it has its node", lambda: explain(stack, "third").get("node") == "n0")
    over = request(stack, "fourth", 4)
    assert over["state"] == "waits" and over["reasons"][0]["code"] == "InsufficientResource", over
    over = request(stack, "fifth", 4)
    assert over["reasons"][0]["code"] == "QuotaExceeded" and over["reasons"][1]["code"] == "InsufficientResource"
    assert explain(stack, "fifth")["reasons"][0]["code"] == "QuotaExceeded"
    assert stack.server.post("/v1/quota:check", {**ASK, "gpus": 13}, token=stack.red).json["state"] == "refused"


def test_ps_shows_the_factors(stack):
    rows = {row["name"]: row for row in stack.server.get("/v1/requests?places=true", token=stack.red).json["items"]}
    assert "queue" not in rows["first"] and "position" not in rows["first"]
    for name in ("second", "fourth"):
        factors = {f["name"]: f for f in rows[name]["queue"]["factors"]}
        assert factors["age"]["weight"] == 1000 and factors["size"]["weight"] == -500
        assert factors["size"]["value"] > 0 and isinstance(rows[name]["queue"]["score"], int)
    assert rows["fourth"]["queue"]["score"] < rows["second"]["queue"]["score"]
    assert (rows["second"]["position"], rows["fourth"]["position"]) == (1, 2)
    plain = stack.server.get("/v1/requests", token=stack.red).json["items"]
    assert not any("queue" in row for row in plain)
