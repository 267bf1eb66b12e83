"""Random pods and nodes: our filters and those of the real kube-scheduler let the same nodes through.

The oracle is kube-scheduler itself, with all nodes scored, batching and preemption off and an HTTP
extender that records which nodes it is offered and rejects them all; ours is `gpuaas-sim feasible`.
SEED and PODS in the environment give other and longer runs.
"""
import collections
import http.server
import json
import os
import pathlib
import random
import subprocess
import threading
import time
import urllib.error

import pytest
import filters_objects as objects
from apiserver import PROGRAMS, ApiServer, free_port
from scheduler_test import BUILD, Api

SEED, PODS = int(os.environ.get("SEED", "1")), int(os.environ.get("PODS", "300"))
NODES, RUNNING = objects.NODES, objects.RUNNING
KINDS = {"Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes", "Pod": "/api/v1/pods",
         "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims", "PersistentVolume": "/api/v1/persistentvolumes",
         **{kind: f"/apis/storage.k8s.io/v1/{kind.lower()}{'es' if kind.endswith('s') else 's'}"
            for kind in ("StorageClass", "CSINode", "CSIDriver", "VolumeAttachment")},
         "CSIStorageCapacity": "/apis/storage.k8s.io/v1/csistoragecapacities"}
MERGE = "application/merge-patch+json"
KEPT = pathlib.Path(__file__).resolve().parents[2] / "build" / "filters"


class Extender(http.server.ThreadingHTTPServer):
    """Records what kube-scheduler would let through."""

    def __init__(self):
        self.offers = {}
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802 - the name is the library's
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = ask["NodeNames"] or []
        self.server.offers.setdefault(ask["Pod"]["metadata"]["name"], []).append(sorted(names))
        body = json.dumps({"NodeNames": [], "FailedNodes": {n: "recorded" for n in names}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def fill_nodes(api, r):
    for i in range(NODES):
        node, amounts = objects.make_node(r, f"n{i}")
        api.call("POST", KINDS["Node"], node)
        api.call("PATCH", f"/api/v1/nodes/n{i}/status", {"status": {
            "allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}},
            "application/strategic-merge-patch+json")
        api.call("PATCH", f"/api/v1/nodes/n{i}", {"spec": {"taints": node["spec"]["taints"]}}, MERGE)


def fill_volumes(api, r):
    for i in range(objects.VOLUMES):
        api.call("POST", KINDS["PersistentVolume"], objects.make_volume(r, i))
        phase = "Available" if objects.chance(r, 90) else "Released"
        api.call("PATCH", f"/api/v1/persistentvolumes/pv{i}/status", {"status": {"phase": phase}}, MERGE)


def fill_claims(api, r, namespace, volumes):
    """Half of the claims have a volume, some are not quite there, lost or being deleted."""
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    for i in range(objects.CLAIMS):
        claim, volume = objects.make_claim(r, f"c{i}"), None
        if volumes and objects.chance(r, 55):
            volume = volumes.pop() if objects.chance(r, 97) else "pv-gone"
            claim["spec"]["volumeName"] = volume
            claim["spec"].pop("selector", None)
            if objects.chance(r, 95):
                claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        uid = api.call("POST", path, claim)["metadata"]["uid"]
        if volume is None and volumes and objects.chance(r, 10):  # bound from the volume's side only
            volume = volumes.pop()
        if volume in (None, "pv-gone"):
            if objects.chance(r, 5):
                api.call("PATCH", f"{path}/c{i}/status", {"status": {"phase": "Lost"}}, MERGE)
            continue
        reference = {"namespace": namespace, "name": f"c{i}", **({"uid": uid} if objects.chance(r, 80) else {})}
        api.call("PATCH", f"/api/v1/persistentvolumes/{volume}", {"spec": {"claimRef": reference}}, MERGE)
        if objects.chance(r, 3):
            api.call("DELETE", f"{path}/c{i}")


def fill_storage(api, r):
    for made in objects.make_classes():
        api.call("POST", KINDS["StorageClass"], made)
    for name, tracked in zip(objects.DRIVERS, (False, True)):
        api.call("POST", KINDS["CSIDriver"], {"metadata": {"name": name}, "spec": {"storageCapacity": tracked}})
    for made in objects.make_capacities(r):
        api.call("POST", "/apis/storage.k8s.io/v1/namespaces/a/csistoragecapacities", made)
    for i in range(NODES):
        if objects.chance(r, 60):
            api.call("POST", KINDS["CSINode"], objects.make_csi_node(r, f"n{i}"))
    fill_volumes(api, r)
    volumes = [f"pv{i}" for i in range(objects.VOLUMES)]
    r.shuffle(volumes)
    for namespace in objects.NAMESPACES:
        fill_claims(api, r, namespace, volumes)
    for i in range(15):
        api.call("POST", KINDS["VolumeAttachment"], objects.make_attachment(r, i))


def put_pod(api, r, make):
    """What the API server calls invalid by chance is made anew."""
    while True:
        pod = make()
        namespace = pod["metadata"]["namespace"]
        try:
            made = api.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
            break
        except urllib.error.HTTPError as error:
            assert error.code == 422, error
    for volume in made["spec"].get("volumes", []):
        template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
        if template is None or objects.chance(r, 10):  # its claim is not there yet
            continue
        # One running pod with the claim of another makes kube-scheduler give up all pods with volumes.
        is_own = "nodeName" in made["spec"] or objects.chance(r, 90)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": made["metadata"]["name"], "controller": True,
                 "uid": made["metadata"]["uid"] if is_own else "00000000-0000-0000-0000-000000000000"}
        api.call("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {
            "metadata": {"name": f"{made['metadata']['name']}-{volume['name']}", "ownerReferences": [owner]},
            "spec": template["spec"]})
    return made


def fill(api):
    """Everything is there before kube-scheduler starts, so that it tries each pod on the same cluster."""
    r = random.Random(SEED)
    for name, labels in objects.NAMESPACES.items():
        api.call("POST", KINDS["Namespace"], {"metadata": {"name": name, "labels": labels}})
    api.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
        "metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}})
    fill_nodes(api, r)
    fill_storage(api, r)

    def make_running():
        pod = objects.make_pod(r, f"run{i}", r.choice("ab"))
        pod["spec"].update(nodeName=f"n{r.randrange(NODES)}")
        pod["spec"].pop("schedulingGates", None)
        if objects.chance(r, 15):  # keeps it when it is deleted
            pod["metadata"]["finalizers"] = ["example.com/slow"]
        return pod

    for i in range(RUNNING):
        made = put_pod(api, r, make_running)
        if "finalizers" in made["metadata"]:
            api.call("DELETE", f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/{made['metadata']['name']}")
    for i in range(PODS):
        put_pod(api, r, lambda: objects.make_pod(r, f"p{i}", r.choice("ab")))  # noqa: B023 - called at once


def write_config(path, server, port):
    path.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100, "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(server.kubeconfig), "qps": 1000, "burst": 1000},
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {
            "postFilter": {"disabled": [{"name": "*"}]}}, "pluginConfig": [{
                "name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}}]}],
        "extenders": [{"urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "nodeCacheCapable": True,
                       "httpTimeout": "10s"}]}))


@pytest.fixture
def oracle(tmp_path):
    extender = Extender()
    with ApiServer(tmp_path) as server:
        write_config(tmp_path / "config.json", server, extender.server_port)
        api = Api(server)
        fill(api)
        with open(tmp_path / "kube-scheduler.log", "wb") as log:
            process = subprocess.Popen(
                [PROGRAMS / "kube-scheduler", "--config", tmp_path / "config.json", "--secure-port",
                 str(free_port()), "--feature-gates", "OpportunisticBatching=false"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        yield api, extender
        process.kill()
        process.wait()
    extender.shutdown()


def is_tried(pod):
    reasons = [c["reason"] for c in pod.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"]
    assert "SchedulerError" not in reasons, pod["status"]
    return bool(reasons)


def all_pods(api):
    return api.call("GET", "/api/v1/pods")["items"]


def settle(api, count):
    deadline = time.monotonic() + 240
    while True:
        pods = all_pods(api)
        if sum(is_tried(p) or "nodeName" in p["spec"] for p in pods) >= count:
            return pods
        assert time.monotonic() < deadline, "kube-scheduler has not tried every pod"
        time.sleep(0.5)


def write_scene(api, pods, path):
    """The cluster as gpuaas-sim reads it, one object a line; pods last, as claims are there before them."""
    documents = [{"kind": kind, **item} for kind, list_path in KINDS.items() if kind != "Pod"
                 for item in api.call("GET", list_path)["items"]]
    for document in documents + [{"kind": "Pod", **pod} for pod in pods]:
        document["metadata"].pop("managedFields", None)
        path.open("a").write(f"---\n{json.dumps(document)}\n")


def keep(api, pods, name, difference):
    """A case to look at and to keep: the cluster with this one pod waiting, and what kube-scheduler says."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"filters-{SEED}-{name}.yaml"
    path.write_text(f"# {json.dumps(difference)}\n")
    write_scene(api, [p for p in pods if p["metadata"]["name"] == name or "nodeName" in p["spec"]], path)
    return str(path)


def check_encodings(api, folder):
    """The scheduler watches storage as protobuf, gpuaas-sim reads it as JSON."""
    for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
                 "VolumeAttachment"):
        (folder / "json").write_text(json.dumps(api.call("GET", KINDS[kind])))
        (folder / "pb").write_bytes(api.call("GET", KINDS[kind], accept="application/vnd.kubernetes.protobuf"))
        done = subprocess.run([BUILD / "tests/cluster/storage_check", kind, folder / "json", folder / "pb"],
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, f"{kind}: {done.stdout}"


def test_same_nodes_as_kube_scheduler(oracle, tmp_path):
    api, extender = oracle
    pods = settle(api, PODS + RUNNING)
    check_encodings(api, tmp_path)
    scene = tmp_path / "scene.yaml"
    write_scene(api, pods, scene)
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "feasible", scene], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    ours = {o["pod"].split("/")[1]: o for o in map(json.loads, done.stdout.splitlines())}
    refused = {name: o["refused"] for name, o in ours.items() if o["refused"]}
    different = {}
    for name, answer in ours.items():
        theirs = extender.offers.get(name, [[]])[-1]
        if answer["nodes"] != theirs and name not in refused:
            different[name] = {"only ours": sorted(set(answer["nodes"]) - set(theirs)),
                               "only theirs": sorted(set(theirs) - set(answer["nodes"]))}
    pairs = sum(len(o["nodes"]) for o in ours.values())
    mounting = [p["metadata"]["name"] for p in pods if "volumes" in p["spec"] and "nodeName" not in p["spec"]]
    fit = sum(bool(ours[name]["nodes"]) for name in mounting)
    print(f"SEED={SEED}: {len(ours)} pods x {NODES} nodes = {len(ours) * NODES} pairs, {pairs} fit, "
          f"{len(mounting)} pods with volumes ({fit} fit somewhere), {len(different)} differ, "
          f"not tried: {collections.Counter(code for codes in refused.values() for code in set(codes))}")
    kept = {name: keep(api, pods, name, difference) for name, difference in different.items()}
    assert len(ours) == PODS and pairs > PODS and fit > PODS / 60
    assert {code for codes in refused.values() for code in codes} <= {"UnsupportedVolume", "SchedulingGated"}
    assert not different, json.dumps({"SEED": SEED, "differ": different, "kept": kept}, indent=1)[:6000]
