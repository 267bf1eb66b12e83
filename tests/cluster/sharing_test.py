"""One GPU in four pods by time-slicing, chosen for a node by its label: each pod sees the GPU, the bill and the metrics
know whose part is whose."""
import json
import re

import pytest
from conftest import installed, wait_for

NAMESPACE = "sharing"
NODE = "node3"
SHARED = "nvidia.com/gpu.shared"
CONFIGS = {
    "whole": "version: v1\n",
    "sliced": "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    failRequestsGreaterThanOne: true\n"
              "    resources:\n    - {name: nvidia.com/gpu, devices: [5], replicas: 4}\n",
}


@pytest.fixture(scope="module")
def configured(cluster):
    """The chart with two named configurations and attribution by processes."""
    values = {"agent": {"devicePlugin": {"configs": CONFIGS, "default": "whole"}, "attribution": True}}
    with installed(cluster, values, NAMESPACE) as undo:
        undo.callback(cluster.kubectl, "label", "node", NODE, "nvidia.com/device-plugin.config-")
        yield cluster


def amounts(cluster):
    found = cluster.json("get", "node", NODE)["status"]["allocatable"]
    return found.get("nvidia.com/gpu"), found.get(SHARED, "0")


def metrics(cluster):
    name = cluster.agent(NODE)["metadata"]["name"]
    return cluster.kubectl("get", "--raw", f"/api/v1/namespaces/gpuaas-system/pods/{name}:9400/proxy/metrics")


def pod(name, memory_mib, scheduler="gpuaas"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "schedulerName": scheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "testbed.local/gpuaas-workload:dev",
                        "args": ["--seconds", "600", "--memory-mib", str(memory_mib), "--util-milli", "200", "--gpus", "1"],
                        "resources": {"limits": {SHARED: "1"}}}]}}


def rows(page, name):
    return {m.group(1): float(m.group(2)) for m in
            re.finditer(rf'^{name}\{{[^}}]*namespace="{NAMESPACE}",pod="([^"]+)"[^}}]*\}} (\S+)$', page, re.M)}


def may_watch_nodes(cluster):
    done = cluster.kubectl_try("auth", "can-i", "watch", "nodes", "--as=system:serviceaccount:gpuaas-system:gpuaas-agent")
    return done.stdout.strip() == "yes"


def volumes(cluster):
    return {v["name"] for v in cluster.agent(NODE)["spec"]["volumes"]}


def test_rights_come_with_what_needs_them(cluster):
    assert not may_watch_nodes(cluster)
    assert "device-plugin" not in volumes(cluster) and not cluster.agent(NODE)["spec"].get("hostPID")


def test_four_pods_on_one_gpu(configured):
    cluster = configured
    assert may_watch_nodes(cluster) and "device-plugin" in volumes(cluster) and cluster.agent(NODE)["spec"]["hostPID"]
    before = cluster.agent(NODE)["metadata"]["name"]
    wait_for("eight whole GPUs", lambda: amounts(cluster) == ("8", "0"))
    cluster.kubectl("label", "node", NODE, "nvidia.com/device-plugin.config=sliced")
    wait_for("seven whole GPUs and four shares", lambda: amounts(cluster) == ("7", "4"))
    assert cluster.agent(NODE)["metadata"]["name"] == before, "without a restart"
    wanted = {f"p{i}": 1000 * (i + 1) for i in range(4)}
    for name, memory_mib in wanted.items():
        cluster.apply(json.dumps(pod(name, memory_mib)))
    for name in wanted:
        cluster.wait_phase(NAMESPACE, name, ("Running",))
    cluster.apply(json.dumps(pod("fifth", 1000)))

    uuid = next(d["uuid"] for d in cluster.json("get", "gpunode", NODE)["status"]["devices"] if d["index"] == 5)
    # Memory of the device and of its processes are read one after the other: in between the parts are smaller.
    wait_for("memory by pod", lambda: {n: int(b) >> 20 for n, b in rows(
        metrics(cluster), "gpuaas_agent_allocation_memory_bytes").items()} == wanted, 90)
    page = metrics(cluster)
    assert set(rows(page, "gpuaas_agent_allocation_share_ratio").values()) == {0.25}
    busy = rows(page, "gpuaas_agent_allocation_utilization_ratio")
    device = float(re.search(rf'^DCGM_FI_DEV_GPU_UTIL\{{[^}}]*{uuid}[^}}]*\}} (\S+)$', page, re.M).group(1))
    assert len(busy) == 4 and sum(busy.values()) <= 1 and device > 0
    line = re.search(rf'^DCGM_FI_DEV_FB_USED\{{[^}}]*{uuid}.*$', page, re.M).group(0)
    assert "pod=" not in line, "what four hold is nobody's alone"
    assert cluster.phase(NAMESPACE, "fifth") == "Pending"

    for name in wanted:
        log = cluster.kubectl("-n", NAMESPACE, "logs", name)
        assert re.findall(r"GPU-[0-9a-f-]{36}", log) == [uuid], log
        assert cluster.json("-n", NAMESPACE, "get", "pod", name)["spec"]["nodeName"] == NODE
    events = wait_for("four bound events at the server", lambda: len(found := cluster.events(NAMESPACE, "bound")) == 4 and found)
    assert {(e["gpu"], e["share"]["num"], e["share"]["den"]) for e in events} == {(uuid, 1, 4)}

    # The GPU becomes whole again only when its last pod has gone.
    cluster.kubectl("label", "--overwrite", "node", NODE, "nvidia.com/device-plugin.config=whole")
    wait_for("shares are withdrawn, the held GPU is not offered whole", lambda: amounts(cluster) == ("7", "0"))
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "--all")
    wait_for("whole again", lambda: amounts(cluster) == ("8", "0"), 90)
    assert cluster.agent(NODE)["metadata"]["name"] == before
