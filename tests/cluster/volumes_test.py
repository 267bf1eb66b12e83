"""Pods with volumes: gpuaas-scheduler, a real API server and the real volume controller of Kubernetes.

The test itself plays what is not there: the provisioner of a CSI driver.
"""
import subprocess

import pytest
from apiserver import PROGRAMS, free_port
from scheduler_test import api, condition, scheduler, wait_for  # noqa: F401 - fixtures

CLAIMS, VOLUMES = "/api/v1/namespaces/a/persistentvolumeclaims", "/api/v1/persistentvolumes"
PODS = "/api/v1/namespaces/a/pods"
SELECTED = "volume.kubernetes.io/selected-node"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def storage(api, tmp_path_factory):  # noqa: F811 - the fixture
    """Classes, and the controller that binds claims to volumes."""
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("fast", "x.example.com")):
        api.call("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    with open(tmp_path_factory.mktemp("controller") / "log", "wb") as log:
        process = subprocess.Popen(
            [PROGRAMS / "kube-controller-manager", "--kubeconfig", api.server.kubeconfig, "--leader-elect=false",
             "--controllers=persistentvolume-binder-controller", "--secure-port", str(free_port()),
             "--pvclaimbinder-sync-period", "2s"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    yield api
    process.kill()
    process.wait()


def add_claim(api, name, class_, modes=("ReadWriteOnce",)):  # noqa: F811
    return api.call("POST", CLAIMS, {"metadata": {"name": name}, "spec": {
        "accessModes": list(modes), "storageClassName": class_, "resources": {"requests": {"storage": "1Gi"}}}})


def add_volume(api, name, class_, node, claim=None):  # noqa: F811
    api.call("POST", VOLUMES, {"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class_,
        "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/x"},
        **({"claimRef": {"namespace": "a", "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"]}}
           if claim else {}),
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}})


def add_pod(api, name, claim):  # noqa: F811
    api.call("POST", PODS, {"metadata": {"name": name}, "spec": {
        "schedulerName": "gpuaas", "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})


def node_of(api, pod):  # noqa: F811
    return api.call("GET", f"{PODS}/{pod}")["spec"].get("nodeName")


def says(api, pod, code):  # noqa: F811
    return code in condition(api.call("GET", f"{PODS}/{pod}")).get("message", "")


def test_a_volume_that_waits_for_its_pod(storage, scheduler):  # noqa: F811
    add_claim(storage, "waits", "local")
    add_pod(storage, "p1", "waits")
    wait_for("a reason", lambda: says(storage, "p1", "NoVolumeForClaim"))
    add_volume(storage, "pv-n2", "local", "n2")
    assert wait_for("the bind", lambda: node_of(storage, "p1")) == "n2"
    claim = storage.call("GET", f"{CLAIMS}/waits")
    assert claim["spec"]["volumeName"] == "pv-n2" and claim["status"]["phase"] == "Bound"


def test_a_volume_is_made_for_the_node(storage, scheduler):  # noqa: F811
    """The pod is bound only when its volume is there; meanwhile others are not held up."""
    claim = add_claim(storage, "made", "fast")
    add_pod(storage, "p2", "made")
    node = wait_for("the node in the claim", lambda: storage.call(
        "GET", f"{CLAIMS}/made")["metadata"].get("annotations", {}).get(SELECTED))
    add_claim(storage, "other", "local")
    add_volume(storage, "pv-n1", "local", "n1")
    add_pod(storage, "p3", "other")
    assert wait_for("another pod", lambda: node_of(storage, "p3")) == "n1"
    assert node_of(storage, "p2") is None
    add_volume(storage, "pv-made", "fast", node, claim)
    assert wait_for("the bind", lambda: node_of(storage, "p2")) == node


def test_a_provisioner_that_gives_up(storage, scheduler):  # noqa: F811
    claim = add_claim(storage, "fails", "fast")
    add_pod(storage, "p4", "fails")
    wait_for("the node in the claim", lambda: SELECTED in storage.call(
        "GET", f"{CLAIMS}/fails")["metadata"].get("annotations", {}))
    failed = scheduler.metric("gpuaas_scheduler_binds_total")
    storage.call("PATCH", f"{CLAIMS}/fails", {"metadata": {"annotations": {SELECTED: None}}}, MERGE)
    node = wait_for("another try", lambda: storage.call(
        "GET", f"{CLAIMS}/fails")["metadata"].get("annotations", {}).get(SELECTED))
    assert node_of(storage, "p4") is None and scheduler.metric("gpuaas_scheduler_binds_total") > failed
    add_volume(storage, "pv-fails", "fast", node, claim)
    assert wait_for("the bind", lambda: node_of(storage, "p4")) == node


def test_one_pod_alone(storage, scheduler):  # noqa: F811
    claim = add_claim(storage, "alone", "local", ["ReadWriteOncePod"])
    storage.call("POST", VOLUMES, {"metadata": {"name": "pv-alone"}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOncePod"], "storageClassName": "local",
        "persistentVolumeReclaimPolicy": "Retain", "nfs": {"server": "10.0.0.1", "path": "/"},
        "claimRef": {"namespace": "a", "name": "alone", "uid": claim["metadata"]["uid"]}}})
    wait_for("bound", lambda: storage.call("GET", f"{CLAIMS}/alone")["status"].get("phase") == "Bound")
    add_pod(storage, "p5", "alone")
    wait_for("the first", lambda: node_of(storage, "p5"))
    add_pod(storage, "p6", "alone")
    wait_for("a reason", lambda: says(storage, "p6", "VolumeInUse"))
    storage.call("DELETE", f"{PODS}/p5")
    wait_for("the second", lambda: node_of(storage, "p6"))


def test_claims_that_cannot_be_used(storage, scheduler):  # noqa: F811
    add_pod(storage, "p7", "absent")
    wait_for("a reason", lambda: says(storage, "p7", "ClaimNotFound"))
    add_claim(storage, "absent", "no-such-class")
    wait_for("another reason", lambda: says(storage, "p7", "ClaimUnbound"))
