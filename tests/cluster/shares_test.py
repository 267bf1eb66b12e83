"""Shares of GPUs on real kubelets and containerd: pods that race for one node get exactly the planned devices, whatever is
killed meanwhile; whole GPUs and shares never meet, also for pods of kube-scheduler; the bill knows the part."""
import json
import os
import random
import re
import time

import pytest
from conftest import installed, wait_for

NAMESPACE = "shares"
NODE = "node3"
MILLI, MEMORY = "gpuaas.io/gpu-milli", "gpuaas.io/gpu-memory"
CONFIGS = {"whole": "version: v1\n", "shares": "version: v1\nsharing: {shares: {devices: [4, 5, 6, 7]}}\n"}
ROUNDS = int(os.environ.get("SHARES_ROUNDS", "1"))


@pytest.fixture(scope="module")
def configured(cluster):
    values = {"agent": {"devicePlugin": {"configs": CONFIGS, "default": "whole"}, "attribution": True}}
    with installed(cluster, values, NAMESPACE) as undo:
        undo.callback(cluster.kubectl, "label", "node", NODE, "nvidia.com/device-plugin.config-")
        cluster.kubectl("label", "node", NODE, "nvidia.com/device-plugin.config=shares")
        wait_for("four whole GPUs and four in shares", lambda: amounts(cluster) == [4, 4000, 716], 90)
        wait_for("and the node's agent says so",
                 lambda: [d.get("milli") for d in devices_of(cluster)] == [None] * 4 + [1000] * 4)
        yield cluster


def amounts(cluster):
    found = cluster.json("get", "node", NODE)["status"]["allocatable"]
    return [int(found.get(name, "0").replace("k", "000")) for name in ("nvidia.com/gpu", MILLI, MEMORY)]


def devices_of(cluster):
    return sorted(cluster.json("get", "gpunode", NODE)["status"]["devices"], key=lambda d: d["index"])


def pod(name, limits, scheduler="gpuaas", restart="Never"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "schedulerName": scheduler, "restartPolicy": restart, "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "containers": [{"name": "main", "image": "testbed.local/gpuaas-workload:dev",
                        "args": ["--seconds", "900", "--memory-mib", "200", "--util-milli", "50", "--gpus", "1"],
                        "resources": {"limits": limits | {"cpu": "10m"}}}]}}


def apply_all(cluster, pods):
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))


def plan_of(found):
    return json.loads(found["metadata"]["annotations"]["gpuaas.io/devices"])


def pods_of(cluster):
    return {p["metadata"]["name"]: p for p in cluster.json("-n", NAMESPACE, "get", "pods")["items"]}


# Reasons of the kubelet's own refusal, before any container.
ADMISSION = ("UnexpectedAdmissionError", "OutOfgpuaas.io/gpu-milli", "OutOfgpuaas.io/gpu-memory")


def all_running(cluster, names):
    found = pods_of(cluster)
    return all(n in found and found[n]["status"].get("phase") == "Running" for n in names) and found


def check_devices(cluster, names):
    """Every pod has the planned GPU alone, and no GPU is given beyond what it is."""
    found = pods_of(cluster)
    milli, memory = {}, {}
    devices = {d["uuid"]: d for d in devices_of(cluster)}
    for name in names:
        plan = plan_of(found[name])
        planned = {line["uuid"] for line in plan}
        log = cluster.kubectl("-n", NAMESPACE, "logs", name)
        assert set(re.findall(r"GPU-[0-9a-f-]{36}", log)) == planned and len(planned) == 1, (name, plan, log)
        for line in plan:
            assert devices[line["uuid"]].get("milli") == 1000, "of a GPU that is set aside"
            milli[line["uuid"]] = milli.get(line["uuid"], 0) + line["milli"]
            memory[line["uuid"]] = memory.get(line["uuid"], 0) + line["memory_mib"]
    assert all(m <= 1000 for m in milli.values()), milli
    assert all(m <= devices[u]["memoryMiB"] for u, m in memory.items()), memory
    return found


def test_the_node_says_what_it_offers(configured):
    status = configured.json("get", "gpunode", NODE)["status"]
    condition = next(c for c in status["conditions"] if c["type"] == "SharesOffered")
    assert condition["status"] == "True" and status["layout"]["shareMemoryLimit"] == "none"


def test_twenty_pods_race_for_one_node(configured):
    cluster = configured
    for number in range(ROUNDS):
        rng = random.Random(number)
        wanted = {f"race-{number}-{i}": {MILLI: str(rng.randint(50, 190))} if i % 2 else {MEMORY: str(rng.randint(9, 34))}
                  for i in range(20)}
        apply_all(cluster, [pod(name, limits) for name, limits in wanted.items()])
        if number % 3 == 1:
            time.sleep(rng.uniform(0.5, 3))
            cluster.kill_agent(NODE)
        if number % 3 == 2:
            time.sleep(rng.uniform(0.5, 3))
            cluster.restart("kubelet", NODE)
        wait_for("twenty run", lambda: all_running(cluster, wanted), 240)
        found = check_devices(cluster, wanted)
        for name, limits in wanted.items():
            (resource, amount), = limits.items()
            line, = plan_of(found[name])
            assert line["resource"] == resource
            assert (line["milli"] if resource == MILLI else line["memory_mib"] / 256) == int(amount)
        if number + 1 < ROUNDS:
            cluster.kubectl("-n", NAMESPACE, "delete", "pod", "--all", "--wait")


def test_what_they_hold_is_billed_and_shown(configured):
    cluster = configured
    races = [n for n in pods_of(cluster) if n.startswith("race-")]

    def bound():
        return {e["pod"]: e for e in cluster.events(NAMESPACE, "bound") if e["pod"] in races}

    events = wait_for("bound events at the server", lambda: len(found := bound()) == len(races) and found, 90)
    found = pods_of(cluster)
    memory = {d["uuid"]: d["memoryMiB"] for d in devices_of(cluster)}
    for name, event in events.items():
        line, = plan_of(found[name])
        part = max(line["milli"], line["memory_mib"] * 1000 // memory[line["uuid"]])
        assert (event["gpu"], event["share"]["num"], event["share"]["den"]) == (line["uuid"], part, 1000)


def agent_restarts(cluster):
    return cluster.agent(NODE)["status"]["containerStatuses"][0]["restartCount"]


def test_killed_and_restarted_meanwhile(configured):
    cluster = configured
    restarts = agent_restarts(cluster)
    before = check_devices(cluster, [n for n in pods_of(cluster) if n.startswith("race-")])
    late = [f"late-{i}" for i in range(6)]
    apply_all(cluster, [pod(name, {MILLI: "40"}) for name in late[:3]])
    cluster.kill_agent(NODE)
    apply_all(cluster, [pod(name, {MEMORY: "4"}) for name in late[3:]])
    cluster.restart("kubelet", NODE)

    def again():
        """A kubelet that begins before the plugin has registered refuses pods for good; their owner makes
        them anew. Here that is the test."""
        for name, found in pods_of(cluster).items():
            if name in late and found["status"].get("phase") == "Failed":
                assert found["status"].get("reason") in ADMISSION, (name, found["status"])
                cluster.kubectl("-n", NAMESPACE, "delete", "pod", name)
                apply_all(cluster, [pod(name, {MILLI: "40"} if name in late[:3] else {MEMORY: "4"})])
        return all_running(cluster, late)

    wait_for("all run", again, 240)
    assert agent_restarts(cluster) > restarts, "it was this node's agent that died"
    after = check_devices(cluster, late + list(before))
    for name in before:
        assert plan_of(after[name]) == plan_of(before[name]) and after[name]["status"]["phase"] == "Running", name


def test_pods_of_kube_scheduler(configured):
    cluster = configured
    whole = [f"whole-{i}" for i in range(5)]
    apply_all(cluster, [pod(name, {"nvidia.com/gpu": "1"}, "default-scheduler") for name in whole])
    apply_all(cluster, [pod("stranger", {MILLI: "10"}, "default-scheduler")])
    wait_for("four run", lambda: sum(cluster.phase(NAMESPACE, n) == "Running" for n in whole) == 4, 120)
    set_aside = {d["uuid"] for d in devices_of(cluster) if d.get("milli")}
    for name in [n for n in whole if cluster.phase(NAMESPACE, n) == "Running"]:
        log = cluster.kubectl("-n", NAMESPACE, "logs", name)
        assert not set(re.findall(r"GPU-[0-9a-f-]{36}", log)) & set_aside, "no GPU that is given in shares"
    assert [cluster.phase(NAMESPACE, n) for n in whole].count("Pending") == 1

    def refusal():
        events = cluster.json("-n", NAMESPACE, "get", "events")["items"]
        return [e["message"] for e in events
                if e["reason"] == "GPUShareNotGiven" and e["involvedObject"]["name"] == "stranger"]

    assert "schedulerName: gpuaas" in wait_for("an Event", refusal, 60)[0]
    assert cluster.phase(NAMESPACE, "stranger") == "Pending"


def check_shares_of_a_tenant(cluster, admin):
    wait_for("the tenant's namespace", lambda: cluster.kubectl_try("get", "resourcequota", "-n", "parts", "gpuaas").returncode == 0)
    body = {"image": "testbed.local/gpuaas-workload:dev", "cpu": "10m", "memory": "64Mi", "duration": 60,
            "args": ["--seconds", "900", "--memory-mib", "100", "--util-milli", "50", "--gpus", "1"]}
    made = admin.post("/v1/tenants/parts/requests", {**body, "name": "half", "gpu_memory": "23034Mi"})
    assert made["spec"]["gpu_milli"] == 500 and "gpus" not in made["spec"]
    admin.post("/v1/tenants/parts/requests", {**body, "name": "rest", "gpu_milli": 400})
    third = admin.post("/v1/tenants/parts/requests", {**body, "name": "more", "gpu_milli": 101})
    wait_for("two run", lambda: all(admin.get(f"/v1/requests/parts.{n}")["state"] == "Running" for n in ("half", "rest")), 120)
    assert admin.get(f"/v1/requests/{third['id']}")["state"] == "Pending", "901 of 1000 thousandths are held"
    pods = cluster.json("-n", "parts", "get", "pods")["items"]
    half = next(p for p in pods if p["metadata"]["name"].startswith("half"))
    assert [(x["resource"], x["milli"], x["memory_mib"]) for x in plan_of(half)] == [(MILLI, 500, 0), (MEMORY, 0, 23040)]
    assert len({x["uuid"] for x in plan_of(half)}) == 1
    admin.call("DELETE", "/v1/requests/parts.half")
    wait_for("the third runs", lambda: admin.get("/v1/requests/parts.more")["state"] == "Running", 120)
    assert admin.get("/v1/tenants/parts")["usage"]["gpu_milli"] == 501
    for name in ("rest", "more"):
        admin.call("DELETE", f"/v1/requests/parts.{name}")
    wait_for("no pod is left", lambda: not cluster.json("-n", "parts", "get", "pods")["items"]
             or all(p["status"]["phase"] in ("Succeeded", "Failed") for p in cluster.json("-n", "parts", "get", "pods")["items"]), 90)


def test_a_request_for_a_share(configured):
    """By the service: memory alone gets its thousandths, the quota counts them, and the pod its part of one GPU."""
    cluster, admin = configured, configured.admin()
    admin.post("/v1/tenants", {"name": "parts", "quota": {"gpus": 1, "cpu": "8", "memory": "8Gi", "pods": 5}})
    try:
        check_shares_of_a_tenant(cluster, admin)
    finally:
        admin.call("DELETE", "/v1/tenants/parts")


def test_what_is_over_leaves_nothing(configured):
    cluster = configured
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "--all", "--wait")
    wait_for("no specification is left", lambda: "gpuaas.io-share-" not in cluster.exec_node(NODE, "ls", "/var/run/cdi").stdout, 120)
