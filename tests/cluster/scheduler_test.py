"""gpuaas-scheduler against a real API server, without nodes that run anything."""
import collections
import datetime
import hmac
import json
import os
import pathlib
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from apiserver import ApiServer, free_port

BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "gcc"))
GPUS = 8
PLAN_KEY = b"0123456789abcdef0123456789abcdef"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gpunodes.gpuaas.io"},
    "spec": {"group": "gpuaas.io", "scope": "Cluster", "names": {"kind": "GPUNode", "plural": "gpunodes"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {
                               "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


class Api:
    """Plain calls to the API server of the tests."""

    def __init__(self, server):
        self.server = server
        self.context = ssl._create_unverified_context()

    def call(self, method, path, body=None, content="application/json", accept="application/json"):
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.server.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer admin-token", "Content-Type": content, "Accept": accept})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                data = answer.read()
        except urllib.error.HTTPError as error:
            error.msg += f": {error.read().decode()}"
            raise
        return json.loads(data) if accept == "application/json" else data

    def add_node(self, name, labels=None):
        amounts = {"cpu": "96", "memory": "500Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
        self.call("POST", "/api/v1/nodes", {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}})
        self.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}},
            "application/strategic-merge-patch+json")
        self.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")
        gpus = "/apis/gpuaas.io/v1alpha1/gpunodes"
        self.call("POST", gpus, {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": name}})
        self.call("PATCH", f"{gpus}/{name}/status", {"status": {"devices": [
            {"uuid": f"GPU-{name}-{i}", "index": i, "model": "NVIDIA A100-SXM4-80GB", "memoryMiB": 81920,
             "healthy": True} for i in range(GPUS)]}}, "application/merge-patch+json")

    def add_pod(self, name, gpus, namespace="a", **spec):
        return self.call("POST", f"/api/v1/namespaces/{namespace}/pods", {
            "metadata": {"name": name, "annotations": spec.pop("annotations", {})},
            "spec": {"schedulerName": "gpuaas", **spec, "containers": [{
                "name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}})

    def pods(self, namespace="a"):
        return self.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]

    def delete_pods(self, namespace="a"):
        for pod in self.pods(namespace):
            self.delete_pod(pod["metadata"]["name"], namespace)

    def delete_pod(self, name, namespace="a"):
        self.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")


class Scheduler:
    """One replica as a process."""

    def __init__(self, server, folder, identity, *words):
        self.port = free_port()
        (folder / "key").write_bytes(PLAN_KEY)
        self.log = folder / f"{identity}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "src/daemons/scheduler/gpuaas-scheduler", "--kubeconfig", server.kubeconfig, "--plan-key",
                 folder / "key", "--listen", f"127.0.0.1:{self.port}", "--identity", identity, *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path, token=hmac.new(PLAN_KEY, b"explain", "sha256").hexdigest()):
        """token None: no header."""
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def metric(self, name):
        """Sum over all samples of that name."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.get("/metrics").splitlines()
                   if line.startswith((name + "{", name + " ")))

    def is_leading(self):
        try:
            return self.metric("gpuaas_scheduler_leader") == 1
        except OSError:
            return False

    def end(self, how=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=20)


def wait_for(what, probe, patience_s=30):
    deadline = time.monotonic() + patience_s
    while not (value := probe()):
        assert time.monotonic() < deadline, f"{what}: not within {patience_s} s"
        time.sleep(0.1)
    return value


def devices(pod):
    return [d["uuid"] for d in json.loads(pod["metadata"].get("annotations", {}).get("gpuaas.io/devices", "[]"))]


def condition(pod):
    return next((c for c in pod.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"), {})


def check_no_double(pods):
    """Every device is held once, on the node of its pod, and as many as were asked for."""
    holders = collections.Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node is None:
            continue
        wanted = int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        assert len(devices(pod)) == wanted, pod["metadata"]["name"]
        assert all(uuid.startswith(f"GPU-{node}-") for uuid in devices(pod))
        holders.update(devices(pod))
    assert not [uuid for uuid, count in holders.items() if count > 1]


def prepare(server):
    """GPUNodes, two namespaces and four nodes with GPUs."""
    api = Api(server)
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    for name in ("gpuaas-system", "a", "b"):
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def is_served():
        try:
            return api.call("GET", "/apis/gpuaas.io/v1alpha1/gpunodes")
        except urllib.error.HTTPError:
            return None

    wait_for("the definition", is_served)
    for i in range(4):
        api.add_node(f"n{i}", {"zone": f"z{i % 2}"})
    return api


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        yield prepare(server)


@pytest.fixture
def scheduler(api, tmp_path):
    one = Scheduler(api.server, tmp_path, "one")
    wait_for("leading", one.is_leading)
    yield one
    one.end()
    api.delete_pods()


def bound(api):
    return [pod for pod in api.pods() if pod["spec"].get("nodeName")]


def test_binds_and_says_why_not(api, scheduler):
    api.add_pod("one", 1)
    api.add_pod("two", 2)
    api.add_pod("nine", 9)
    api.add_pod("model", 1, annotations={"gpuaas.io/gpu-models": "H100"})
    api.add_pod("claim", 1, resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    wait_for("two pods on nodes", lambda: len(bound(api)) == 2)
    pods = {pod["metadata"]["name"]: pod for pod in api.pods()}
    check_no_double(pods.values())
    assert pods["one"]["spec"]["nodeName"] == pods["two"]["spec"]["nodeName"]
    assert devices(pods["two"]) == ["GPU-n0-2", "GPU-n0-3"], "an aligned pair"

    def reasons():
        pods = {pod["metadata"]["name"]: condition(pod) for pod in api.pods()}
        told = [pods[name] for name in ("nine", "model", "claim")]
        return told if all(told) else None

    nine, model, claim = wait_for("conditions", reasons)
    assert nine["reason"] == "Unschedulable" and "ResourceTooLarge on 4" in nine["message"]
    assert "GpuModelMismatch on 4" in model["message"]
    assert "ResourceClaimNotFound on 4" in claim["message"]
    answer = json.loads(scheduler.get("/explain/a/nine"))
    assert answer["state"] == "waits" and answer["position"] == 3, answer
    assert answer["reasons"] == [{"code": "ResourceTooLarge", "need": "9 nvidia.com/gpu", "have": "8 nvidia.com/gpu",
                                  "nodes": 4, "next": "ask for less or split the work over more pods"}]
    assert json.loads(scheduler.get("/explain/a/one"))["state"] == "running"
    assert "no such pod" in scheduler.get("/explain/a/nobody")
    for token in (None, "", "0" * 64, PLAN_KEY.decode()):
        for path in ("/explain/a/nine", "/explain?pod=a/nine", "/explain/a/nobody"):
            assert "ask it" in scheduler.get(path, token), (path, token)
    for path in ("/metrics", "/healthz", "/readyz"):
        assert "ask it" not in scheduler.get(path, None), path
    events = wait_for("Events", lambda: api.call("GET", "/apis/events.k8s.io/v1/namespaces/a/events")["items"])
    assert {e["reason"] for e in events} <= {"Scheduled", "FailedScheduling"}
    wait_for("metrics", lambda: scheduler.metric("gpuaas_scheduler_binds_total") == 2)
    assert scheduler.metric("gpuaas_scheduler_queue_wait_seconds_count") == 2


def test_a_reason_that_could_not_be_written_is_written_again(api, scheduler):
    """The API server takes no status of one pod for a while; later nothing changes but that it does."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    api.add_pod("mute-probe", 1, schedulerName="nobody")
    api.call("POST", policies, {"metadata": {"name": "mute"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                                                "resources": ["pods/status"]}]},
        "validations": [{"expression": "!object.metadata.name.startsWith('mute')"}]}})
    api.call("POST", bindings, {"metadata": {"name": "mute"},
                                "spec": {"policyName": "mute", "validationActions": ["Deny"]}})

    def is_mute():
        try:
            api.call("PATCH", "/api/v1/namespaces/a/pods/mute-probe/status", {"status": {"message": "x"}},
                     "application/strategic-merge-patch+json")
        except urllib.error.HTTPError:
            return True
        return False

    wait_for("the policy", is_mute)
    api.add_pod("mute", 1000)
    failed = "gpuaas_scheduler_condition_patch_failures_total"
    wait_for("a failure", lambda: scheduler.metric(failed) >= 1)
    assert not condition(api.call("GET", "/api/v1/namespaces/a/pods/mute"))
    for path in (bindings, policies):
        api.call("DELETE", f"{path}/mute")
    wait_for("the reason", lambda: condition(api.call("GET", "/api/v1/namespaces/a/pods/mute")).get("message"))


def test_waits_until_there_is_room(api, scheduler):
    for i in range(5):
        api.add_pod(f"whole{i}", 8)
    wait_for("four pods on nodes", lambda: len(bound(api)) == 4)
    late = next(pod["metadata"]["name"] for pod in wait_for(
        "a reason", lambda: [p for p in api.pods() if condition(p).get("status") == "False"]))
    api.delete_pod(bound(api)[0]["metadata"]["name"])
    wait_for("the fifth", lambda: late in [p["metadata"]["name"] for p in bound(api)])
    check_no_double(api.pods())


def test_priority_first(api, scheduler):
    api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    for i in range(4):
        api.add_pod(f"whole{i}", 8)
    wait_for("full", lambda: len(bound(api)) == 4)
    api.add_pod("low", 8)
    api.add_pod("urgent", 8, priorityClassName="high")
    wait_for("reasons", lambda: len([p for p in api.pods() if condition(p).get("status") == "False"]) == 2)
    assert json.loads(scheduler.get("/explain/a/urgent"))["position"] == 1
    api.delete_pod("whole0")
    wait_for("room is used", lambda: len(bound(api)) == 4)
    assert "urgent" in [pod["metadata"]["name"] for pod in bound(api)]


def test_a_node_is_reserved_for_the_head_also_after_a_restart(api, tmp_path):
    lasts = "gpuaas.io/duration"
    for i in range(3):
        api.add_pod(f"whole{i}", 8, annotations={lasts: "3000"})
    one = Scheduler(api.server, tmp_path, "one")
    wait_for("three pods on nodes", lambda: len(bound(api)) == 3)
    api.add_pod("five", 5, annotations={lasts: "600"})
    wait_for("five", lambda: len(bound(api)) == 4)
    node = next(p["spec"]["nodeName"] for p in api.pods() if p["metadata"]["name"] == "five")
    api.add_pod("head", 8)
    wait_for("the head waits", lambda: "reserved" in json.loads(one.get("/explain/a/head")))
    api.add_pod("long", 1, annotations={lasts: "3600"})
    api.add_pod("short", 1, annotations={lasts: "60"})
    wait_for("the short one passes", lambda: len(bound(api)) == 5)
    before = json.loads(one.get("/explain/a/head"))["reserved"]
    assert one.end(signal.SIGKILL) != 0
    two = Scheduler(api.server, tmp_path, "two")
    wait_for("a reservation", lambda: two.is_leading() and "reserved" in json.loads(two.get("/explain/a/head")))
    after = json.loads(two.get("/explain/a/head"))["reserved"]
    assert before["node"] == after["node"] == node
    ends = [datetime.datetime.fromisoformat(r["from"]).timestamp() for r in (before, after)]
    assert abs(ends[0] - ends[1]) <= 3 and 500 < ends[1] - time.time() <= 601
    told = wait_for("its reason", lambda: next(condition(p).get("message") for p in api.pods()
                                               if p["metadata"]["name"] == "long"))
    assert "ReservedForHead on 1 (needs 3600 s, at most" in told and "head" not in told.replace("ForHead", "")
    assert len(bound(api)) == 5
    assert two.end(signal.SIGTERM) == 0
    api.delete_pods()


@pytest.mark.parametrize("round_", [1, 2])
def test_killed_in_the_middle(api, tmp_path, round_):
    """kill -9 while pods are bound: the next one goes on, no device is given twice."""
    for i in range(28):
        api.add_pod(f"p{i}", 1)
    one = Scheduler(api.server, tmp_path, "one")
    wait_for("some are bound", lambda: 0 < len(bound(api)))
    one.end(signal.SIGKILL)
    two = Scheduler(api.server, tmp_path, "two")
    wait_for("all are bound", lambda: len(bound(api)) == 28)
    check_no_double(api.pods())
    assert two.end(signal.SIGTERM) == 0
    api.delete_pods()


def test_failover(api, tmp_path):
    """Of two replicas one decides; when it dies or freezes the other does within seconds."""
    one = Scheduler(api.server, tmp_path, "one")
    wait_for("one leads", one.is_leading)
    two = Scheduler(api.server, tmp_path, "two")
    time.sleep(2)
    assert not two.is_leading()
    one.process.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    for i in range(10):
        api.add_pod(f"p{i}", 2)
    wait_for("the other binds", lambda: len(bound(api)) == 10)
    took_s = time.monotonic() - start
    one.process.send_signal(signal.SIGCONT)
    for i in range(6):
        api.add_pod(f"q{i}", 2)
    wait_for("all are bound", lambda: len(bound(api)) == 16)
    check_no_double(api.pods())
    wait_for("one steps back", lambda: not one.is_leading() and two.is_leading())
    print(f"failover took {took_s:.1f} s")
    assert two.end(signal.SIGTERM) == 0
    wait_for("the lease is given up and taken", one.is_leading, 3)
    one.end()
    api.delete_pods()


def test_api_server_restarts(api, scheduler):
    for i in range(10):
        api.add_pod(f"p{i}", 1)
    api.server.stop()
    time.sleep(1)
    api.server.start()
    wait_for("all are bound", lambda: len(bound(api)) == 10)
    api.add_pod("after", 1)
    wait_for("a new pod too", lambda: len(bound(api)) == 11)
    check_no_double(api.pods())


def test_dump_is_a_scenario(api, scheduler, tmp_path):
    """A dump of the live cluster goes through the simulator, which decides as the scheduler did."""
    for i in range(5):
        api.add_pod(f"whole{i}", 8)
    wait_for("full", lambda: len(bound(api)) == 4)
    wait_for("a reason", lambda: [p for p in api.pods() if condition(p).get("status") == "False"])
    with open(tmp_path / "dump.yaml", "wb") as out:
        subprocess.run([BUILD / "src/daemons/scheduler/gpuaas-scheduler", "dump", "--kubeconfig",
                        api.server.kubeconfig], check=True, stdin=subprocess.DEVNULL, stdout=out)
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "run", tmp_path / "dump.yaml", "--seed", "1"], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["verb"] for line in lines] == ["wait"], lines
    assert [r["code"] for r in lines[0]["reasons"]] == ["InsufficientResource"]


def kitchen_sink():
    """A pod with something in every field of its spec that the API server takes."""
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}]}
    term = {"labelSelector": selector, "topologyKey": "zone", "namespaces": ["b"], "namespaceSelector": {},
            "matchLabelKeys": ["rev"], "mismatchLabelKeys": ["other"]}
    node_term = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}],
                 "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    probe = {"httpGet": {"path": "/", "port": 80}}
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    container = {
        "name": "c", "image": "x", "command": ["a"], "args": ["b"], "workingDir": "/", "tty": True, "stdin": True,
        "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "10.0.0.1", "name": "p"}],
        "env": [{"name": "A", "value": "b"}], "envFrom": [{"secretRef": {"name": "s"}}], "resizePolicy": [],
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1", "nvidia.com/gpu": "2"}},
        "volumeMounts": [{"name": "v0", "mountPath": "/v"}], "livenessProbe": probe, "readinessProbe": probe,
        "startupProbe": probe, "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
        "securityContext": {"runAsUser": 1}, "imagePullPolicy": "Always", "terminationMessagePath": "/x"}
    volumes = [{"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"secret": {"secretName": "s"}}, {"configMap": {"name": "m"}},
               {"downwardAPI": {}}, {"projected": {"sources": []}}, {"nfs": {"server": "s", "path": "/"}},
               {"persistentVolumeClaim": {"claimName": "c"}}, {"csi": {"driver": "d"}},
               {"image": {"reference": "i"}}, {"ephemeral": {"volumeClaimTemplate": {"spec": {
                   "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]
    return {
        "metadata": {"name": "sink", "labels": {"app": "x", "rev": "1", "other": "2"},
                     "annotations": {"gpuaas.io/gpu-models": "A100"}},
        "spec": {
            "schedulerName": "gpuaas", "containers": [container], "restartPolicy": "Never",
            "initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}],
            "volumes": [{"name": f"v{i}", **volume} for i, volume in enumerate(volumes)],
            "terminationGracePeriodSeconds": 1, "activeDeadlineSeconds": 9, "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["1.2.3.4"]}, "nodeSelector": {"a": "b"}, "serviceAccountName": "default",
            "automountServiceAccountToken": False, "hostPID": False, "shareProcessNamespace": True,
            "securityContext": {"fsGroup": 1}, "imagePullSecrets": [{"name": "s"}], "hostname": "h", "subdomain": "s",
            "affinity": {
                "nodeAffinity": {required: {"nodeSelectorTerms": [node_term]},
                                 preferred: [{"weight": 5, "preference": node_term}]},
                "podAffinity": {required: [term], preferred: [{"weight": 1, "podAffinityTerm": term}]},
                "podAntiAffinity": {required: [term]}},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
                            {"key": "b", "value": "c"}],
            "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["x"]}], "readinessGates": [{"conditionType": "x/y"}],
            "enableServiceLinks": False, "setHostnameAsFQDN": False,
            "topologySpreadConstraints": [{
                "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
                "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["rev"]}],
            "os": {"name": "linux"}, "hostUsers": True, "schedulingGates": [{"name": "x/gate"}],
            "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}}


def test_both_encodings_say_the_same(api, tmp_path):
    """JSON and protobuf of the same pods decode to the same, and nothing in them is unknown."""
    api.call("POST", "/api/v1/namespaces/b/pods", kitchen_sink())
    for i in range(5):
        api.add_pod(f"p{i}", i, namespace="b", resourceClaims=[{"name": "c", "resourceClaimName": "x"}] if i == 3 else [])
    for name, accept in (("json", "application/json"), ("pb", "application/vnd.kubernetes.protobuf")):
        data = api.call("GET", "/api/v1/namespaces/b/pods", accept=accept)
        (tmp_path / name).write_bytes(json.dumps(data).encode() if name == "json" else data)
    done = subprocess.run([BUILD / "tests/cluster/kobj_check", tmp_path / "json", tmp_path / "pb"], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout
    api.delete_pods("b")
