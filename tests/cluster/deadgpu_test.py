"""A GPU dies under a Job's pod: the pod is sent away with a reason and its Job goes on on another GPU; nobody else notices."""
import json

import pytest
from conftest import installed, wait_for

NAMESPACE = "deadgpu"
SYSTEM = "gpuaas-system"


@pytest.fixture(scope="module")
def evicting(cluster):
    # Long enough for a test to see the pod on its dead GPU.
    with installed(cluster, {"server": {"deadGpus": {"evict": True, "after": "20s"}}}, NAMESPACE):
        yield cluster


def job(name):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
        "template": {"spec": {
            "schedulerName": "gpuaas", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "testbed.local/gpuaas-workload:dev",
                            "args": ["--seconds", "600", "--memory-mib", "512", "--util-milli", "300", "--gpus", "1"],
                            "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}


def running(cluster, name):
    """The Job's running pod, or None."""
    pods = cluster.json("-n", NAMESPACE, "get", "pods", "-l", f"batch.kubernetes.io/job-name={name}")["items"]
    return next((p for p in pods if p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")), None)


def place(pod):
    planned = json.loads(pod["metadata"]["annotations"]["gpuaas.io/devices"])
    return pod["spec"]["nodeName"], planned[0]["uuid"]


def device(cluster, node, uuid):
    return next(d for d in cluster.json("get", "gpunode", node)["status"]["devices"] if d["uuid"] == uuid)


def test_the_pod_on_a_dead_gpu_goes_on_elsewhere(evicting):
    cluster = evicting
    for name in ("unlucky", "bystander"):
        cluster.apply(json.dumps(job(name)))
    before = {name: wait_for(f"{name} runs", lambda name=name: running(cluster, name)) for name in ("unlucky", "bystander")}
    node, uuid = place(before["unlucky"])
    index = device(cluster, node, uuid)["index"]
    with cluster.dead_gpu(node, index):
        told = wait_for("the GPU is told dead with who is on it", lambda: (
            d := device(cluster, node, uuid)).get("fault", {}).get("dead") and d["fault"].get("pods") and d)
        assert told["fault"]["kind"] in ("xid", "recovery") and not told["healthy"]
        assert [p["uid"] for p in told["fault"]["pods"]] == [before["unlucky"]["metadata"]["uid"]]
        after = wait_for("the Job runs again", lambda: (
            p := running(cluster, "unlucky")) and p["metadata"]["uid"] != before["unlucky"]["metadata"]["uid"] and p, 120)
        assert place(after)[1] != uuid
        events = cluster.json("-n", NAMESPACE, "get", "events.events.k8s.io")["items"]
        notes = [e["note"] for e in events if e.get("reason") == "GPUDead"]
        assert notes and all(f"GPU {index} ({uuid}) of {node} is dead: " in n for n in notes), events
        assert {e["regarding"]["uid"] for e in events if e.get("reason") == "GPUDead"} == {before["unlucky"]["metadata"]["uid"]}

        same = running(cluster, "bystander")
        assert same["metadata"]["uid"] == before["bystander"]["metadata"]["uid"]
        assert not same["status"]["containerStatuses"][0]["restartCount"]
        others = [d for d in cluster.json("get", "gpunode", node)["status"]["devices"] if d["uuid"] != uuid]
        assert len(others) == 7 and all(d["healthy"] for d in others)
    wait_for("the GPU is back", lambda: device(cluster, node, uuid)["healthy"], 90)


def test_switched_off_nobody_is_sent_away(evicting):
    cluster = evicting
    cluster.install({"server": {"deadGpus": {"evict": False, "after": "1s"}}})
    rights = cluster.kubectl_try("auth", "can-i", "create", "events.events.k8s.io",
                                 f"--as=system:serviceaccount:{SYSTEM}:gpuaas-server").stdout
    assert rights.strip() == "no"
    cluster.apply(json.dumps(job("left")))
    pod = wait_for("a pod runs", lambda: running(cluster, "left"))
    node, uuid = place(pod)
    with cluster.dead_gpu(node, device(cluster, node, uuid)["index"]):
        wait_for("the GPU is told dead", lambda: device(cluster, node, uuid).get("fault", {}).get("dead"))
        # Longer than the server takes with the switch on: it looks every two seconds.
        with pytest.raises(AssertionError, match="not within"):
            wait_for("an eviction that must not come", lambda: running(cluster, "left") is None, 8)
        assert running(cluster, "left")["metadata"]["uid"] == pod["metadata"]["uid"]
    wait_for("the GPU is back", lambda: device(cluster, node, uuid)["healthy"], 90)
