"""A whole node changes hands: the pod of a Job of lower priority leaves for one of higher priority, comes back when that
has ended, and every GPU-second is told once."""
import collections
import json

import pytest
from conftest import installed, wait_for

NODE, NAMESPACE, GPUS = "node1", "evict", 8


@pytest.fixture(scope="module")
def preempting(cluster):
    """The demo's chart, where preemption is off, with it on."""
    with installed(cluster, {"scheduler": {"preemption": {"mode": "priority"}}}, NAMESPACE):
        yield cluster


def spec(priority):
    return {"schedulerName": "gpuaas", "priorityClassName": f"gpuaas-{priority}", "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5, "nodeSelector": {"kubernetes.io/hostname": NODE},
            "containers": [{"name": "c", "image": "testbed.local/busybox:1", "imagePullPolicy": "Never",
                            "command": ["/bin/sh", "-c", "trap 'exit 1' TERM; sleep 600 & wait"],
                            "resources": {"limits": {"nvidia.com/gpu": str(GPUS)}}}]}


def job(name):
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "backoffLimit": 0, "podFailurePolicy": {"rules": [rule]}, "template": {"spec": spec("experiment")}}}


def pods_of(cluster, name):
    found = cluster.json("-n", NAMESPACE, "get", "pods", "-l", f"job-name={name}")["items"]
    return {p["metadata"]["name"]: p["status"]["phase"] for p in found}


def holders(cluster):
    """GPU -> [(from, to, pod)] of what the agents told the server, in order."""
    held = collections.defaultdict(list)
    for event in cluster.events(NAMESPACE, "bound", "released"):
        if event["type"] == "bound":
            held[event["gpu"]].append([event["t"], None, event["pod"]])
        else:
            next(h for h in held[event["gpu"]] if h[2] == event["pod"])[1] = event["t"]
    return held


def test_a_node_changes_hands_and_back(preempting):
    cluster = preempting
    cluster.apply(json.dumps(job("low")))
    first = wait_for("the job runs", lambda: next((n for n, p in pods_of(cluster, "low").items() if p == "Running"), None))
    high = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high", "namespace": NAMESPACE},
            "spec": spec("inference")}
    cluster.apply(json.dumps(high))
    cluster.wait_phase(NAMESPACE, "high", ("Running",))
    bound = cluster.json("-n", NAMESPACE, "get", "pod", "high")
    assert bound["spec"]["nodeName"] == NODE
    assert len(json.loads(bound["metadata"]["annotations"]["gpuaas.io/devices"])) == GPUS
    second = wait_for("a new pod of the job", lambda: next((n for n in pods_of(cluster, "low") if n != first), None))
    assert cluster.phase(NAMESPACE, second) == "Pending"
    status = cluster.json("-n", NAMESPACE, "get", "job", "low")["status"]
    assert not status.get("failed") and not status.get("conditions"), status
    told = cluster.json("-n", NAMESPACE, "get", "events.events.k8s.io")["items"]
    assert {("Preempted", first), ("Preempting", "high")} <= {(e["reason"], e["regarding"]["name"]) for e in told}
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "high")
    cluster.wait_phase(NAMESPACE, second, ("Running",))
    cluster.kubectl("-n", NAMESPACE, "delete", "job", "low")

    def complete():
        held = holders(cluster)
        return held if len(held) == GPUS and all(len(h) == 3 and h[-1][1] for h in held.values()) else None

    for gpu, spans in wait_for("all is told", complete, 120).items():
        spans.sort()
        assert [pod for _, _, pod in spans] == [first, "high", second], gpu
        assert all(earlier[1] <= later[0] for earlier, later in zip(spans, spans[1:])), (gpu, spans)
