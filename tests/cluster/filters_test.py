"""Random pods and nodes: our filters and those of the real kube-scheduler let the same nodes through.

The oracle is kube-scheduler itself, with all nodes scored, batching and preemption off and an HTTP
extender that records which nodes it is offered and rejects them all; ours is `gpuaas-sim feasible`.
SEED and PODS in the environment give other and longer runs.
"""
import http.server
import json
import os
import random
import subprocess
import threading
import time

import pytest
from apiserver import PROGRAMS, ApiServer, free_port
from scheduler_test import BUILD, Api

SEED, PODS = int(os.environ.get("SEED", "1")), int(os.environ.get("PODS", "300"))
NODES, RUNNING = 40, 80
KEYS = {"zone": ["a", "b", "c"], "disk": ["ssd", "hdd"], "rank": ["1", "5", "9", "x"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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


def chance(r, percent):
    return r.random() * 100 < percent


def requirement(r, label_only=False):
    key = r.choice([*KEYS, "missing"])
    op = r.choice(["In", "NotIn", "Exists", "DoesNotExist"] + ([] if label_only else ["Gt", "Lt"]))
    values = {"Exists": [], "DoesNotExist": [], "Gt": ["4"], "Lt": ["6"]}.get(
        op, r.sample(KEYS.get(key, ["v", "w"]), r.randint(1, 2)))
    return {"key": key, "operator": op, **({"values": values} if values else {})}


def node_term(r):
    term = {}
    if chance(r, 80):
        term["matchExpressions"] = [requirement(r) for _ in range(r.randint(1, 2))]
    if chance(r, 25):
        term["matchFields"] = [{"key": "metadata.name", "operator": r.choice(["In", "NotIn"]),
                                "values": [f"n{r.randrange(NODES)}"]}]
    return term


def selector(r):
    made = {}
    if chance(r, 70):
        made["matchLabels"] = {"app": r.choice("xyz")}
    if chance(r, 30):
        made["matchExpressions"] = [{"key": "tier", "operator": r.choice(["In", "NotIn"]),
                                     "values": r.sample(["1", "2", "3"], r.randint(1, 2))}]
    if chance(r, 10):
        made["matchExpressions"] = [{"key": r.choice(["tier", "no"]), "operator": r.choice(["Exists", "DoesNotExist"])}]
    return made


def pod_term(r):
    term = {"topologyKey": r.choice(["zone", "disk", "kubernetes.io/hostname", "rank"])}
    if chance(r, 95):
        term["labelSelector"] = selector(r)
    if chance(r, 20):
        term["namespaces"] = r.sample(["a", "b"], r.randint(1, 2))
    if chance(r, 20):
        term["namespaceSelector"] = r.choice([{}, {"matchLabels": {"team": "one"}},
                                              {"matchExpressions": [{"key": "team", "operator": "Exists"}]}])
    return term


def affinity(r):
    made = {}
    if chance(r, 45):
        made["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [node_term(r) for _ in range(r.randint(1, 2))]}}
    if chance(r, 30):
        made["podAffinity"] = {REQUIRED: [pod_term(r) for _ in range(r.randint(1, 2))]}
    if chance(r, 25):
        made["podAntiAffinity"] = {REQUIRED: [pod_term(r)]}
    return made


def spread(r):
    made = {"maxSkew": r.randint(1, 3), "topologyKey": r.choice(["zone", "disk", "kubernetes.io/hostname"]),
            "whenUnsatisfiable": r.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])}
    if chance(r, 95):
        made["labelSelector"] = selector(r)
    if made["whenUnsatisfiable"] == "DoNotSchedule" and chance(r, 25):
        made["minDomains"] = r.randint(1, 4)
    if chance(r, 25):
        made["nodeAffinityPolicy"] = r.choice(["Honor", "Ignore"])
    if chance(r, 25):
        made["nodeTaintsPolicy"] = r.choice(["Honor", "Ignore"])
    if chance(r, 15) and "labelSelector" in made:
        made["matchLabelKeys"] = ["rev"]
    return made


def toleration(r):
    made = {"operator": r.choice(["Exists", "Equal"])}
    if made["operator"] == "Equal" or chance(r, 80):
        made["key"] = r.choice(["team", "gpu", "node.kubernetes.io/unschedulable"])
    if made["operator"] == "Equal":
        made["value"] = r.choice(["one", "two", ""])
    if chance(r, 60):
        made["effect"] = r.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
    return made


def requests(r):
    made = {}
    if chance(r, 40):
        made["cpu"] = r.choice(["100m", "1", "2500m", "7"])
    if chance(r, 50):
        made["memory"] = r.choice(["1Gi", "10G", "30Gi", "1e9"])
    if chance(r, 20):
        made["nvidia.com/gpu"] = str(r.choice([1, 2, 4, 8]))
    if chance(r, 5):
        made[r.choice(["ephemeral-storage", "example.com/widget"])] = str(r.choice([1, 3]))
    return made


def container(r, name, sidecar=False):
    asked = requests(r)
    made = {"name": name, "image": "x", "resources": {"requests": asked, "limits": {
        k: v for k, v in asked.items() if "/" in k}}}
    if chance(r, 8):
        made["ports"] = [{"containerPort": 80, "hostPort": r.choice([80, 81]), "protocol": r.choice(["TCP", "UDP"]),
                          **({"hostIP": r.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])} if chance(r, 50) else {})}]
    if sidecar:
        made["restartPolicy"] = "Always"
    return made


def make_pod(r, name, namespace):
    spec = {"containers": [container(r, f"c{i}") for i in range(r.randint(1, 2))], "terminationGracePeriodSeconds": 0}
    for later in spec["containers"][1:]:
        later.pop("ports", None)  # two containers may not ask for the same port
    if chance(r, 25):
        spec["initContainers"] = [container(r, f"i{i}", chance(r, 50)) for i in range(r.randint(1, 2))]
    if chance(r, 12):
        key = r.choice(list(KEYS))
        spec["nodeSelector"] = {key: r.choice(KEYS[key])}
    if chance(r, 35):
        spec["affinity"] = affinity(r)
    if chance(r, 30):
        keys = set()
        spec["topologySpreadConstraints"] = [
            s for s in (spread(r) for _ in range(r.randint(1, 2)))
            if not ((s["topologyKey"], s["whenUnsatisfiable"]) in keys
                    or keys.add((s["topologyKey"], s["whenUnsatisfiable"])))]
    if chance(r, 50):
        spec["tolerations"] = [toleration(r) for _ in range(r.randint(1, 2))]
    if chance(r, 8):
        spec["resources"] = {"requests": {"cpu": "32"}}
    return {"metadata": {"name": name, "namespace": namespace,
                         "labels": {"app": r.choice("xyz"), "tier": r.choice("123"), "rev": r.choice("12")}},
            "spec": spec}


def make_node(r, name):
    labels = {k: r.choice(v) for k, v in KEYS.items() if chance(r, 85)}
    taints = [t for t in ({"key": "team", "value": r.choice(["one", "two"]), "effect": "NoSchedule"},
                          {"key": "gpu", "value": "", "effect": r.choice(["NoExecute", "PreferNoSchedule"])})
              if chance(r, 12)]
    node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"taints": taints, "unschedulable": chance(r, 6)}}
    amounts = {"cpu": str(r.choice([2, 8, 16, 32])), "memory": r.choice(["4Gi", "32Gi", "64Gi"]),
               "pods": str(r.choice([4, 20, 110])), "ephemeral-storage": "2"}
    if chance(r, 60):
        amounts["nvidia.com/gpu"] = str(r.choice([1, 2, 4, 8]))
    if chance(r, 20):
        amounts["example.com/widget"] = "2"
    return node, amounts


def fill(api, r):
    for name, labels in (("a", {"team": "one"}), ("b", {})):
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    for i in range(NODES):
        node, amounts = make_node(r, f"n{i}")
        api.call("POST", "/api/v1/nodes", node)
        api.call("PATCH", f"/api/v1/nodes/n{i}/status", {"status": {
            "allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}},
            "application/strategic-merge-patch+json")
        api.call("PATCH", f"/api/v1/nodes/n{i}", {"spec": {"taints": node["spec"]["taints"]}},
                 "application/merge-patch+json")
    for i in range(RUNNING):
        pod = make_pod(r, f"run{i}", r.choice("ab"))
        pod["spec"].update(nodeName=f"n{r.randrange(NODES)}")
        api.call("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)


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
        fill(api, random.Random(SEED))
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


def test_same_nodes_as_kube_scheduler(oracle, tmp_path):
    api, extender = oracle
    r = random.Random(SEED + 1000)
    for i in range(PODS):
        pod = make_pod(r, f"p{i}", r.choice("ab"))
        api.call("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
    pods = settle(api, PODS + RUNNING)
    scene = tmp_path / "scene.json"
    documents = [{"kind": kind, **item} for kind, path in (("Namespace", "namespaces"), ("Node", "nodes"))
                 for item in api.call("GET", f"/api/v1/{path}")["items"]]
    scene.write_text("\n---\n".join(map(json.dumps, documents + [{"kind": "Pod", **p} for p in pods])))
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "feasible", scene], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    ours = {o["pod"].split("/")[1]: o for o in map(json.loads, done.stdout.splitlines())}
    refused = [name for name, o in ours.items() if o["refused"]]
    different = {}
    for name, answer in ours.items():
        theirs = extender.offers.get(name, [[]])[-1]
        if answer["nodes"] != theirs and name not in refused:
            different[name] = {"only ours": sorted(set(answer["nodes"]) - set(theirs)),
                               "only theirs": sorted(set(theirs) - set(answer["nodes"]))}
    pairs = sum(len(o["nodes"]) for o in ours.values())
    print(f"{len(ours)} pods, {NODES} nodes, {pairs} pairs fit, {len(refused)} pods refused, {len(different)} differ")
    shown = {n: next(p["spec"] for p in pods if p["metadata"]["name"] == n) for n in list(different)[:3]}
    assert len(ours) == PODS and len(refused) == 0 and pairs > PODS
    assert not different, json.dumps({"differ": different, "specs": shown}, indent=1)[:6000]
