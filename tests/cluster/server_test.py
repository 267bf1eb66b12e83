"""gpuaas-server against a real API server alone: no node, no controller of Kubernetes, so that what
happens is the server's own doing. Pods and Jobs are moved on by hand."""
import hmac
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import pytest
from apiserver import PROGRAMS, ApiServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from serverkit import Server  # noqa: E402

BODY = {"gpus": 2, "image": "registry.example/team/train:1", "class": "training", "duration": 60}
PLAN_KEY = b"0123456789abcdef0123456789abcdef"
TEMPLATES = ("crds/tenant", "crds/gpurequest", "crds/gpunode", "crds/gpupolicy", "admission", "server-rbac", "priorityclasses")


def wait_for(what, probe, patience_s=20):
    deadline = time.monotonic() + patience_s
    while True:
        value = probe()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {patience_s} s"
        time.sleep(0.1)


class Cluster(ApiServer):
    def kubectl(self, *arguments, check=True, given=None):
        done = subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", self.kubeconfig, *arguments], check=False,
                              capture_output=True, text=True, input=given)
        assert not check or done.returncode == 0, f"{arguments}: {done.stderr}"
        return done

    def json(self, *arguments):
        return json.loads(self.kubectl(*arguments, "-o", "json").stdout)

    def refused(self, *arguments, given=None):
        """What the API server says to a call that it must refuse."""
        done = self.kubectl(*arguments, check=False, given=given)
        assert done.returncode != 0, arguments
        return done.stderr

    def config_of(self, account, *options):
        """A kubeconfig with a token of a service account."""
        token = self.kubectl("-n", "gpuaas-system", "create", "token", account, *options).stdout.strip()
        config = json.loads(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.folder / f"{account}.conf"
        path.write_text(json.dumps(config))
        return path, token


def helm(template, *options):
    return subprocess.run([PROGRAMS / "helm", "template", "gpuaas", ROOT / "deploy/chart/gpuaas", "-n", "gpuaas-system",
                           f"--show-only=templates/{template}.yaml", *options], check=False, capture_output=True, text=True)


def install(cluster):
    cluster.kubectl("create", "namespace", "gpuaas-system")
    for account in ("gpuaas-server", "gpuaas-agent", "gpuaas-scheduler"):
        cluster.kubectl("-n", "gpuaas-system", "create", "serviceaccount", account)
    show = [f"--show-only=templates/{name}.yaml" for name in TEMPLATES
            if (ROOT / "deploy/chart/gpuaas/templates" / f"{name}.yaml").exists()]
    chart = subprocess.run([PROGRAMS / "helm", "template", "gpuaas", ROOT / "deploy/chart/gpuaas", "-n", "gpuaas-system",
                            "--set", "server.deadGpus.evict=true,server.deadGpus.taint=all", *show], check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "-n", "gpuaas-system", "-f", "-", given=chart)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("api")) as made:
        install(made)
        yield made


class Explainer(http.server.BaseHTTPRequestHandler):
    """Explains like the scheduler, to who has the token of the plan's key."""

    def do_GET(self):
        good = self.headers["Authorization"] == "Bearer " + hmac.new(PLAN_KEY, b"explain", "sha256").hexdigest()
        reason = {"code": "Told", "need": self.path, "have": "", "nodes": 1, "next": "wait"}
        body = json.dumps({"state": "waits", "reasons": [reason]} if good else {"error": "no"}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def scheduler_url():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Explainer) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@pytest.fixture(scope="module")
def server(cluster, scheduler_url, tmp_path_factory):
    path, _ = cluster.config_of("gpuaas-server", "--duration=24h")
    folder = tmp_path_factory.mktemp("server")
    (folder / "plan.key").write_bytes(PLAN_KEY)
    scheduler = {"url": scheduler_url, "key_file": str(folder / "plan.key")}
    made = Server(folder, kubernetes=str(path), scheduler=scheduler,
                  dead_gpus={"evict": True, "after": "1s", "taint": "all"}).start()
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def red(cluster, server):
    server.tenant("red", {"gpus": 4, "cpu": "100", "memory": "640Gi", "pods": 100})
    wait_for("the tenant is ready", lambda: server.get("/v1/tenants/red").json["state"] == "Ready")
    return server.token("red", "mia")[0]


def request_state(server, name):
    return server.get(f"/v1/requests/red.{name}").json


def make_pod(cluster, name, node=None):
    """The pod that Kubernetes would make of the Job, bound if a node is named."""
    job = cluster.json("-n", "red", "get", "job", name)
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": f"{name}-x", "namespace": "red", **job["spec"]["template"]["metadata"],
                        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True,
                                             "uid": job["metadata"]["uid"]}]},
           "spec": job["spec"]["template"]["spec"]}
    for label in ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"):
        pod["metadata"]["labels"].pop(label, None)
    cluster.kubectl("apply", "-f", "-", given=json.dumps(pod))
    if node:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"{name}-x"},
                   "target": {"kind": "Node", "name": node}}
        cluster.kubectl("create", "--raw", f"/api/v1/namespaces/red/pods/{name}-x/binding", "-f", "-",
                        given=json.dumps(binding))


def patch_status(cluster, kind, name, status):
    cluster.kubectl("-n", "red", "patch", kind, name, "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": status}))


def test_a_tenant_gets_its_namespace_with_all_guards(cluster, red):
    labels = cluster.json("get", "namespace", "red")["metadata"]["labels"]
    assert labels["gpuaas.io/tenant"] == "red"
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    hard = cluster.json("-n", "red", "get", "resourcequota", "gpuaas")["spec"]["hard"]
    assert hard["requests.nvidia.com/gpu"] == "4" and hard["pods"] == "100"
    assert "limits.cpu" not in hard and hard["limits.memory"] == hard["requests.memory"]
    assert hard["services.nodeports"] == hard["services.loadbalancers"] == "0"
    assert cluster.json("-n", "red", "get", "limitrange", "gpuaas")["spec"]["limits"]
    assert cluster.json("-n", "red", "get", "networkpolicy", "gpuaas")["spec"]["policyTypes"] == ["Ingress"]
    roles = {b["roleRef"]["name"] for b in cluster.json("-n", "red", "get", "rolebindings")["items"]}
    assert roles == {"gpuaas-tenant-admin", "gpuaas-tenant-member"}
    condition = cluster.json("get", "tenant", "red")["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "Provisioned")


def test_what_somebody_changes_comes_back(cluster, red):
    cluster.kubectl("-n", "red", "delete", "networkpolicy", "gpuaas")
    cluster.kubectl("-n", "red", "patch", "resourcequota", "gpuaas", "--type=merge", "-p",
                    '{"spec":{"hard":{"requests.nvidia.com/gpu":"100"}}}')
    wait_for("the policy is back", lambda: cluster.kubectl("-n", "red", "get", "networkpolicy", "gpuaas",
                                                           check=False).returncode == 0)
    wait_for("the quota is back", lambda: cluster.json("-n", "red", "get", "resourcequota", "gpuaas")["spec"]["hard"][
        "requests.nvidia.com/gpu"] == "4")


def test_a_namespace_that_was_there_is_not_taken(cluster, server):
    cluster.kubectl("create", "namespace", "monitoring")
    server.tenant("monitoring")
    condition = wait_for("the reason", lambda: cluster.json("get", "tenant", "monitoring").get("status", {}).get(
        "conditions"))[0]
    assert condition["reason"] == "NamespaceTaken"
    assert "gpuaas.io/tenant" not in cluster.json("get", "namespace", "monitoring")["metadata"]["labels"]
    assert server.get("/v1/tenants/monitoring").json["state"] == "Pending"


def test_guards_hold_for_administrators_too(cluster, red):
    for arguments in (("label", "namespace", "red", "gpuaas.io/tenant-"),
                      ("label", "--overwrite", "namespace", "red", "pod-security.kubernetes.io/enforce=privileged"),
                      ("label", "namespace", "default", "gpuaas.io/tenant=red"),
                      ("patch", "namespace", "red", "--type=json", "-p",
                       '[{"op":"remove","path":"/metadata/ownerReferences"}]')):
        assert "denied" in cluster.refused(*arguments)
    cluster.kubectl("label", "namespace", "red", "color=blue")


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "red"},
       "spec": {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "m", "image": "x.y/z:1",
                                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}


def pod_with(change):
    pod = json.loads(json.dumps(POD))
    change(pod["metadata"], pod["spec"], pod["spec"]["containers"][0])
    return json.dumps(pod)


def test_pods_of_tenants(cluster, red):
    bad = {
        "plan": lambda meta, spec, one: meta.update(annotations={"gpuaas.io/devices": "[]"}),
        "mac": lambda meta, spec, one: meta.update(annotations={"gpuaas.io/devices-mac": "x"}),
        "visible": lambda meta, spec, one: one.update(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
        "init": lambda meta, spec, one: spec.update(initContainers=[
            {**one, "name": "i", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]),
        "host": lambda meta, spec, one: spec.update(volumes=[{"name": "v", "hostPath": {"path": "/dev"}}]),
        "node": lambda meta, spec, one: spec.update(nodeName="n1"),
        "scheduler": lambda meta, spec, one: one.update(resources={"limits": {"nvidia.com/gpu": "1"}}),
        "class": lambda meta, spec, one: spec.update(priorityClassName="system-node-critical"),
        "privileged": lambda meta, spec, one: one["securityContext"].update(privileged=True),
        "network": lambda meta, spec, one: spec.update(hostNetwork=True),
        "other's request": lambda meta, spec, one: meta.update(labels={"gpuaas.io/request": "blue.first"}),
        "namespace alone": lambda meta, spec, one: meta.update(labels={"gpuaas.io/request": "red"}),
        "longer namespace": lambda meta, spec, one: meta.update(labels={"gpuaas.io/request": "red-2.first"}),
    }
    good = lambda meta, spec, one: (spec.update(schedulerName="gpuaas", priorityClassName="gpuaas-training"),  # noqa: E731
                                    one.update(resources={"limits": {"nvidia.com/gpu": "1"}}))
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=pod_with(good))
    for name, change in bad.items():
        said = cluster.refused("apply", "--dry-run=server", "-f", "-", given=pod_with(change))
        assert re.search("denied|forbidden|Forbidden", said), (name, said)
    own = lambda meta, spec, one: meta.update(labels={"gpuaas.io/request": "red.first"})  # noqa: E731
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=pod_with(own))


def asks(resource, amount="1", scheduler="gpuaas"):
    return lambda meta, spec, one: (spec.update(schedulerName=scheduler), one.update(resources={"limits": {resource: amount}}))


def test_tenants_ask_only_for_what_their_quota_counts(cluster, red):
    dry = ("apply", "--dry-run=server", "-f", "-")
    for resource in ("nvidia.com/gpu", "gpuaas.io/gpu-milli", "gpuaas.io/gpu-memory", "memory", "ephemeral-storage"):
        cluster.kubectl(*dry, given=pod_with(asks(resource)))
    for resource in ("nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "nvidia.com/mig-3g.40gb.shared", "gpuaas.io/other",
                     "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu.gpuaas.io"):
        for scheduler in ("gpuaas", "default-scheduler"):
            asked = pod_with(asks(resource, scheduler=scheduler))
            said = cluster.refused(*dry, given=asked)
            wanted = "gpuaas.io/gpu-memory and nvidia.com/mig-PROFILE" if scheduler == "gpuaas" else "need schedulerName|which quotas count"
            assert re.search(wanted, said), (resource, said)
            init = json.loads(asked)
            init["spec"]["initContainers"] = [{**init["spec"]["containers"][0], "name": "i"}]
            del init["spec"]["containers"][0]["resources"]
            assert re.search(wanted, cluster.refused(*dry, given=json.dumps(init))), resource
            init["metadata"]["namespace"] = "default"
            cluster.kubectl(*dry, given=json.dumps(init))


OWN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": "gpuaas-system"},
       "spec": {"containers": [{"name": "m", "image": "x.y/z:1"}]}}


def own_pod(pod=None, container=None):
    made = json.loads(json.dumps(OWN))
    made["spec"].update(pod or {})
    made["spec"]["containers"][0].update(container or {})
    return json.dumps(made)


def test_what_pods_of_our_own_namespace_may_not(cluster):
    dry = ("apply", "--dry-run=server", "-f", "-")
    agent = {"serviceAccountName": "gpuaas-agent"}

    def folder(path):
        return {**agent, "volumes": [{"name": "v", "hostPath": {"path": path}}]}

    for good in (own_pod(), own_pod(folder("/var/lib/gpuaas")), own_pod(folder("/run/nvidia/driver/dev")),
                 own_pod(container={"securityContext": {"capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}})):
        cluster.kubectl(*dry, given=good)
    contexts = ({"privileged": True}, {"capabilities": {"add": ["NET_BIND_SERVICE"]}}, {"capabilities": {"add": ["SYS_ADMIN"]}},
                {"seccompProfile": {"type": "Unconfined"}}, {"appArmorProfile": {"type": "Unconfined"}},
                {"seLinuxOptions": {"level": "s0"}})
    pods = ({"hostNetwork": True}, {"hostIPC": True}, {"hostPID": True}, folder("/"), folder("/var/lib/kubelet"),
            folder("/var/lib/gpuaas/../../.."), {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
            {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}})
    bad = [own_pod(agent, {"securityContext": c}) for c in contexts] + [own_pod({**agent, **p}) for p in pods]
    bad.append(own_pod(agent, {"ports": [{"containerPort": 80, "hostPort": 80}]}))
    bad += [json.dumps({**json.loads(b), "spec": {**json.loads(b)["spec"], "containers": OWN["spec"]["containers"],
                                                 "initContainers": [{**json.loads(b)["spec"]["containers"][0], "name": "i"}]}})
            for b in bad[:len(contexts)]]
    for given in bad:
        assert re.search("of GPUaaS|must not contain|disallowed by cluster policy", cluster.refused(*dry, given=given)), given


def test_what_the_operator_names_may_be_asked_for_too(cluster):
    def rules(*names):
        return helm("admission", "--set", "tenants.extendedResources={" + ",".join(names) + "}")

    assert "['nvidia.com/gpu', 'gpuaas.io/gpu-milli', 'gpuaas.io/gpu-memory', 'nvidia.com/mig-1g.10gb', 'a.b/nic']" \
        in rules("nvidia.com/mig-1g.10gb", "a.b/nic").stdout
    for name in ("nvidia.com/a'", "gpu", "a.b/"):
        assert "tenants.extendedResources" in rules(name).stderr.replace("/extendedResources", ".extendedResources"), name


def test_gpus_of_claims_are_counted(cluster, red):
    devices = "gpu.gpuaas.io.deviceclass.resource.k8s.io/devices"
    hard = cluster.json("-n", "red", "get", "resourcequota", "gpuaas")["spec"]["hard"]
    assert hard[devices] == hard["mig." + devices.removeprefix("gpu.")] == "4"
    # What Kubernetes' controller of quotas would write, which does not run here.
    patch_status(cluster, "resourcequota", "gpuaas", {"hard": {devices: "4"}, "used": {devices: "0"}})

    def claim(count):
        return json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "red"},
                           "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.gpuaas.io",
                                                                                     "count": count}}]}}})

    assert "exceeded quota" in cluster.refused("create", "-f", "-", given=claim(5))
    cluster.kubectl("create", "-f", "-", given=claim(4))
    cluster.kubectl("-n", "red", "delete", "resourceclaim", "c")


def test_services_of_tenants(cluster, red):
    def service(namespace, **spec):
        return json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": namespace},
                           "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}})

    bad = {"node port": {"type": "NodePort"}, "balancer": {"type": "LoadBalancer"},
           "other name": {"type": "ExternalName", "externalName": "a.b"},
           "addresses": {"externalIPs": ["10.1.2.3"]}, "name with addresses": {"externalName": "a.b"}}
    for name, spec in bad.items():
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=service("default", **spec))
        said = cluster.refused("apply", "--dry-run=server", "-f", "-", given=service("red", **spec))
        assert "gpuaas-tenant-services" in said, (name, said)
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=service("red", clusterIP="None"))
    cluster.kubectl("apply", "-f", "-", given=service("red"))
    for name, spec in bad.items():
        said = cluster.refused("-n", "red", "patch", "service", "s", "--type=merge", "-p", json.dumps({"spec": spec}))
        assert "gpuaas-tenant-services" in said, (name, said)


def node_token(cluster, node, audience="gpuaas"):
    uid = cluster.json("get", "node", node)["metadata"]["uid"]
    return cluster.config_of("gpuaas-agent", f"--audience={audience}" if audience else "--duration=1h",
                             "--bound-object-kind=Node", f"--bound-object-name={node}", f"--bound-object-uid={uid}")


def usage_line(**change):
    event = {"source": "node1", "boot": "b", "seq": 1, "t": "2026-02-10T00:00:00Z", "type": "bound", "gpu": "GPU-0",
             "share": {"num": 1, "den": 1}, "tenant": "red", "pod_uid": "p", **change}
    return (json.dumps(event) + "\n").encode()


def test_usage_comes_from_the_node_of_the_token(cluster, server):
    cluster.kubectl("apply", "-f", "-", given='{"apiVersion":"v1","kind":"Node","metadata":{"name":"node1"}}')
    line = usage_line()
    push = lambda token, body=line: server.call("POST", "/v1/usage", body, token=token)  # noqa: E731
    _, good = node_token(cluster, "node1")
    answer = push(good)
    assert (answer.status, answer.code) == (503, "node_unknown"), answer
    assert push(good, line.replace(b"node1", b"node2")).code == "foreign_source"
    for token in (node_token(cluster, "node1", None)[1], cluster.config_of("gpuaas-agent", "--audience=gpuaas")[1],
                  cluster.config_of("gpuaas-scheduler", "--audience=gpuaas")[1], good[:-3] + "abc"):
        answer = push(token)
        assert (answer.status, answer.code) == (401, "token_invalid"), answer
    assert server.get("/v1/whoami", token=good).status == 401


def test_only_the_agent_of_a_node_writes_its_gpunode(cluster, red):
    node = '{"apiVersion":"gpuaas.io/v1alpha1","kind":"GPUNode","metadata":{"name":"%s"},"spec":{}}'
    cluster.kubectl("create", "clusterrole", "gpunodes", "--verb=*", "--resource=gpunodes.gpuaas.io,gpunodes.gpuaas.io/status")
    cluster.kubectl("create", "clusterrolebinding", "gpunodes", "--clusterrole=gpunodes",
                    "--serviceaccount=gpuaas-system:gpuaas-agent")
    assert "only by the agent" in cluster.refused("apply", "-f", "-", given=node % "node1")
    path, _ = node_token(cluster, "node1", None)
    agent = ("--kubeconfig", str(path))
    cluster.kubectl(*agent, "create", "-f", "-", given=node % "node1")
    assert "only by the agent" in cluster.refused(*agent, "create", "-f", "-", given=node % "node2")
    devices = [{"uuid": f"GPU-{i}", "index": i, "minor": i, "model": "NVIDIA A100-SXM4-80GB", "memoryMiB": 81920,
                "healthy": True} for i in range(8)]
    cluster.kubectl(*agent, "patch", "gpunode", "node1", "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": {"devices": devices}}))


def test_usage_is_of_the_gpus_of_the_node(cluster, server):
    _, token = node_token(cluster, "node1")
    push = lambda **change: server.call("POST", "/v1/usage", usage_line(**change), token=token)  # noqa: E731
    wait_for("the node's GPUs are known", lambda: push().status == 200)
    assert push().json == {"cursor": {"boot": "b", "seq": 1}}
    for gpu in ("GPU-8", "GPU-", "gpu-0"):
        answer = push(seq=2, gpu=gpu)
        assert (answer.status, answer.code) == (403, "foreign_gpu"), answer
    answer = push(seq=2, t="2999-01-01T00:00:00Z")
    assert (answer.status, answer.code) == (400, "invalid_event") and "line 1" in answer.json["detail"]
    assert push(seq=2, pod_uid="q", gpu="GPU-7").json == {"cursor": {"boot": "b", "seq": 2}}


def test_what_no_node_can_run_is_refused(server, red):
    wait_for("the node is known", lambda: server.get("/v1/nodes").json["items"])
    node = server.get("/v1/nodes", token=red).json["items"][0]
    assert (node["name"], node["gpus"], node["healthy_gpus"]) == ("node1", 8, 8)
    path = "/v1/tenants/red/requests"
    answer = server.post(path, {**BODY, "gpu_models": ["V100"]}, token=red)
    assert (answer.status, answer.code) == (422, "impossible") and "A100" in answer.json["detail"]
    answer = server.post(path, {**BODY, "gpus": 9}, token=red)
    assert answer.code == "impossible" and "at most 8" in answer.json["detail"]
    assert server.post("/v1/quota:check", {**BODY, "gpu_models": ["A100"]}, token=red).json["state"] == "fits"


def gpu_node(cluster, name, devices):
    """A GPUNode as its agent writes it; made and deleted with its node."""
    cluster.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
    path, _ = node_token(cluster, name, None)
    agent = ("--kubeconfig", str(path))
    cluster.kubectl(*agent, "create", "-f", "-", given=json.dumps(
        {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": name}, "spec": {}}))
    cluster.kubectl(*agent, "patch", "gpunode", name, "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": {"devices": devices}}))


def a100(index, mig=()):
    device = {"uuid": f"GPU-{index}", "index": index, "minor": index, "model": "A100-SXM4-80GB", "memoryMiB": 81920,
              "migCapable": True, "migProfiles": ["1g.10gb", "1g.10gb+me", "2g.20gb", "3g.40gb", "7g.80gb"], "healthy": True}
    if not mig:
        return {**device, "resource": "nvidia.com/gpu"}
    return {**device, "migEnabled": True, "mig": [
        {"uuid": f"MIG-{index}-{i}", "profile": p, "resource": f"nvidia.com/mig-{p}", "healthy": True} for i, p in enumerate(mig)]}


def test_mig_devices_by_request_and_by_quota(cluster, server, red):
    gpu_node(cluster, "m1", [a100(0), a100(1, ("1g.10gb", "1g.10gb", "2g.20gb"))])
    hard = wait_for("the quota counts profiles", lambda: (
        h := cluster.json("-n", "red", "get", "resourcequota", "gpuaas")["spec"]["hard"]).get("requests.nvidia.com/mig-1g.10gb") and h)
    assert hard["requests.nvidia.com/mig-1g.10gb"] == "28" and hard["requests.nvidia.com/mig-7g.80gb"] == "4"
    assert hard["requests.nvidia.com/mig-1g.10gb.me"] == "28" and "requests.nvidia.com/mig-1g.5gb" not in hard
    dry = ("apply", "--dry-run=server", "-f", "-")
    mine = pod_with(asks("nvidia.com/mig-1g.10gb"))
    wait_for("what is counted may be asked for", lambda: cluster.kubectl(*dry, given=mine, check=False).returncode == 0)
    assert "which quotas count" in cluster.refused(*dry, given=pod_with(asks("nvidia.com/mig-1g.5gb")))
    assert "need schedulerName" in cluster.refused(*dry, given=pod_with(asks("nvidia.com/mig-1g.10gb", scheduler="default-scheduler")))

    def ask(profile, **more):
        return server.post("/v1/tenants/red/requests", {"mig_profile": profile, "image": "x.y/z:1", **more})

    node = {"id": "m1", "gpus": [{"id": f"GPU-{i}", "model": "A100-SXM4-80GB"} for i in (0, 1)], "cost": "200600", "salvage": "18000",
            "in_service": "2025-01-01T00:00:00Z", "life_years": 50, "amortization": "straight-line", "node_to_gpu": "equal"}
    assert server.post("/v1/assets", {"currency": "EUR", "assets": [node]}).status in (200, 201)
    made = ask("2g.20gb", name="slice", duration="1h")
    whole = server.post("/v1/tenants/red/requests", {"gpus": 1, "name": "whole", "image": "x.y/z:1", "duration": "1h"}).json
    assert server.call("DELETE", "/v1/requests/red.whole").status == 202
    assert abs(float(made.json["estimate"]["cost"]) * 7 / 2 / float(whole["estimate"]["cost"]) - 1) < 1e-3
    assert made.status == 201 and made.json["spec"]["mig_profile"] == "2g.20gb", made
    job = wait_for("a Job", lambda: cluster.kubectl("-n", "red", "get", "job", "slice", "-o", "json", check=False).stdout)
    limits = json.loads(job)["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/mig-2g.20gb"] == "1" and "nvidia.com/gpu" not in limits and "gpuaas.io/gpu-milli" not in limits
    assert server.get("/v1/tenants/red").json["usage"]["gpu_milli"] == 285
    for profile, said in (("3g.40gb", "could have"), ("4g.24gb", "no such GPU has a MIG profile"), ("9g.1gb", "such as")):
        answer = ask(profile)
        assert answer.status in (400, 422) and said in answer.json["detail"], answer
    assert "1g.10gb, 2g.20gb" in ask("3g.40gb").json["detail"]
    for wrong in ({"gpus": 1}, {"gpu_milli": 5}, {"gpu_memory": "1Gi"}):
        assert ask("1g.10gb", **wrong).status == 400, wrong
    assert ask("1g.10gb", gpu_models=["H100"]).status == 422
    check = server.post("/v1/quota:check?tenant=red", {"mig_profile": "7g.80gb", "image": "x.y/z:1"}).json
    assert check["state"] == "refused" and check["reasons"][0]["code"] == "Impossible"
    assert server.post("/v1/quota:check?tenant=red", {"mig_profile": "1g.10gb", "image": "x.y/z:1"}).json["state"] == "fits"
    assert server.post("/v1/quota:check?tenant=red", {"gpus": 4, "image": "x.y/z:1"}).json["state"] == "waits"
    both = {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPURequest", "metadata": {"name": "both", "namespace": "red"},
            "spec": {"image": "x.y/z:1", "gpuMilli": 5, "migProfile": "1g.10gb"}}
    assert "only one" in cluster.refused(*dry, given=json.dumps(both))
    assert server.call("DELETE", "/v1/requests/red.slice").status == 202
    wait_for("it is cancelled", lambda: request_state(server, "slice")["state"] == "Cancelled")
    cluster.kubectl("delete", "gpunode/m1", "node/m1")
    wait_for("its node has gone", lambda: len(server.get("/v1/nodes").json["items"]) == 1)


def test_a_gang_is_one_request(cluster, server, red):
    path = "/v1/tenants/red/requests"
    answer = server.post(path, {**BODY, "gpus": 4, "gang": 3}, token=red)
    assert (answer.status, answer.code) == (422, "impossible") and "hold 2 such pods" in answer.json["detail"]
    assert server.post("/v1/quota:check", {**BODY, "gpus": 1, "gang": 5}, token=red).json["state"] == "refused"
    made = server.post(path, {**BODY, "gpus": 1, "gang": 2, "name": "pair"}, token=red)
    assert made.status == 201 and made.json["spec"]["gang"] == 2
    job = wait_for("its Job", lambda: cluster.kubectl("-n", "red", "get", "job", "pair", "-o", "json",
                                                      check=False).stdout)
    spec = json.loads(job)["spec"]
    assert (spec["parallelism"], spec["completions"], spec["completionMode"]) == (2, 2, "Indexed")
    assert spec["template"]["metadata"]["annotations"]["gpuaas.io/gang"] == "pair"
    assert "only cancel" in cluster.refused("-n", "red", "patch", "gpurequest", "pair", "--type=merge", "-p",
                                            '{"spec":{"gang":3}}')
    assert server.call("DELETE", "/v1/requests/red.pair", token=red).status == 202
    wait_for("it is cancelled", lambda: request_state(server, "pair")["state"] == "Cancelled")
    wait_for("its Job is gone", lambda: cluster.kubectl("-n", "red", "get", "job", "pair", check=False).returncode)


def test_a_request_from_its_job_to_its_end(cluster, server, red):
    path = "/v1/tenants/red/requests"
    made = server.post(path, {**BODY, "name": "first", "gpu_models": ["A100-80"]}, token=red)
    assert made.status == 201 and made.json["id"] == "red.first"
    job = wait_for("its Job", lambda: cluster.kubectl("-n", "red", "get", "job", "first", "-o", "json",
                                                      check=False).stdout)
    job = json.loads(job)
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"]["gpuaas.io/request"] == "red.first"
    assert pod["metadata"]["annotations"]["gpuaas.io/gpu-models"] == "A100-80"
    assert pod["spec"]["schedulerName"] == "gpuaas" and pod["spec"]["priorityClassName"] == "gpuaas-training"
    assert job["metadata"]["ownerReferences"][0]["kind"] == "GPURequest"
    assert cluster.json("-n", "red", "get", "gpurequest", "first")["metadata"]["annotations"]["gpuaas.io/user"] == "mia"
    make_pod(cluster, "first", "node1")
    wait_for("it starts", lambda: request_state(server, "first")["reason"] == "Starting")
    explain = server.get("/v1/requests/red.first/explain", token=red).json
    assert (explain["state"], explain["node"], explain["reasons"][0]["code"]) == ("starting", "node1", "Starting")
    patch_status(cluster, "pod", "first-x", {"containerStatuses": [
        {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0,
         "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]})
    reason = wait_for("the kubelet's reason", lambda: (lambda r: r["code"] == "ImagePullBackOff" and r)(
        server.get("/v1/requests/red.first/explain", token=red).json["reasons"][0]))
    assert reason["next"] == "no such image"
    patch_status(cluster, "pod", "first-x", {"phase": "Running", "containerStatuses": [
        {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0,
         "state": {"running": {"startedAt": "2026-02-10T00:00:00Z"}}}]})
    running = wait_for("it runs", lambda: (lambda r: r["state"] == "Running" and r)(request_state(server, "first")))
    explain = server.get("/v1/requests/red.first/explain", token=red).json
    assert (explain["state"], explain["node"], explain["reasons"]) == ("running", "node1", [])
    assert running["node"] == "node1" and running["scheduled"] and running["started"] == "2026-02-10T00:00:00Z"
    patch_status(cluster, "job", "first", {"startTime": "2026-02-10T00:00:00Z", "failed": 1, "conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"},
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]})
    failed = wait_for("it failed", lambda: (lambda r: r["state"] == "Failed" and r)(request_state(server, "first")))
    assert failed["reason"] and failed["message"] and failed["ended"]


def test_the_scheduler_explains_to_the_server(cluster, server, red):
    assert server.post("/v1/tenants/red/requests", {**BODY, "name": "ask"}, token=red).status == 201
    wait_for("its Job", lambda: cluster.kubectl("-n", "red", "get", "job", "ask", check=False).returncode == 0)
    make_pod(cluster, "ask")
    told = wait_for("its reason", lambda: (lambda r: r["code"] == "Told" and r)(
        server.get("/v1/requests/red.ask/explain", token=red).json["reasons"][0]))
    assert told["need"] == "/explain/red/ask-x"
    assert server.call("DELETE", "/v1/requests/red.ask", token=red).status == 202
    wait_for("it is cancelled", lambda: request_state(server, "ask")["state"] == "Cancelled")
    cluster.kubectl("-n", "red", "delete", "pod", "ask-x", "--wait=false")


def test_what_does_not_fit_the_quota_waits_and_follows(cluster, server, red):
    path = "/v1/tenants/red/requests"
    for name in ("w1", "w2", "w3", "w4"):
        assert server.post(path, {**BODY, "name": name}, token=red).status == 201
    wait_for("two Jobs", lambda: len([j for j in cluster.json("-n", "red", "get", "jobs")["items"]
                                      if j["metadata"]["name"].startswith("w")]) == 2)
    waiting = wait_for("the reason", lambda: (lambda r: r.get("reason") == "QuotaExceeded" and r)(
        request_state(server, "w4")))
    assert waiting["position"] == 2 and waiting["state"] == "Pending"
    listed = {r["name"]: r.get("position") for r in server.get("/v1/requests?tenant=red").json["items"]}
    assert [listed[name] for name in ("w1", "w2", "w3", "w4")] == [None, None, 1, 2]
    explain = server.get("/v1/requests/red.w3/explain", token=red).json
    assert explain["state"] == "waits" and explain["position"] == 1
    assert explain["reasons"][0]["code"] == "QuotaExceeded" and explain["reasons"][0]["next"]
    usage = server.get("/v1/tenants/red", token=red).json["usage"]
    assert (usage["gpus"], usage["waiting_gpus"]) == (4, 4)
    assert server.call("DELETE", "/v1/requests/red.w1", token=red).status == 202
    wait_for("w1 is cancelled", lambda: request_state(server, "w1")["state"] == "Cancelled")
    wait_for("w3 follows", lambda: cluster.kubectl("-n", "red", "get", "job", "w3", check=False).returncode == 0)
    assert cluster.kubectl("-n", "red", "get", "job", "w4", check=False).returncode != 0
    assert server.call("PATCH", "/v1/tenants/red", {"quota": {"gpus": 64}}).status == 200
    wait_for("w4 follows", lambda: cluster.kubectl("-n", "red", "get", "job", "w4", check=False).returncode == 0)


def test_what_no_longer_fits_the_quota_at_all_blocks_nobody(cluster, server):
    server.tenant("lime", {"gpus": 2, "cpu": "100", "memory": "640Gi", "pods": 100})
    token = server.token("lime", "lea", "tenant-admin")[0]
    wait_for("ready", lambda: server.get("/v1/tenants/lime").json["state"] == "Ready")
    for name, gpus in (("holds", 2), ("large", 2), ("small", 1)):
        assert server.post("/v1/tenants/lime/requests", {**BODY, "gpus": gpus, "name": name}, token=token).status == 201
        wait_for(name, lambda name=name: server.get(f"/v1/requests/lime.{name}").json.get("reason"))
    assert server.get("/v1/requests/lime.large").json["position"] == 1
    assert server.call("PATCH", "/v1/tenants/lime", {"quota": {"gpus": 1}}).status == 200
    large = wait_for("the reason", lambda: (lambda r: r["reason"] == "QuotaTooSmall" and r)(
        server.get("/v1/requests/lime.large").json))
    assert large["state"] == "Pending" and "position" not in large and "quota is 1" in large["message"]
    reason = server.get("/v1/requests/lime.large/explain", token=token).json["reasons"][0]
    assert (reason["code"], reason["need"], reason["have"]) == ("QuotaTooSmall", 2, 1)
    assert server.get("/v1/requests/lime.small").json["position"] == 1
    assert server.call("DELETE", "/v1/requests/lime.holds", token=token).status == 202
    wait_for("the small one passes", lambda: cluster.kubectl("-n", "lime", "get", "job", "small",
                                                             check=False).returncode == 0)
    assert server.call("PATCH", "/v1/tenants/lime", {"quota": {"gpus": 3}}).status == 200
    wait_for("the large one follows", lambda: cluster.kubectl("-n", "lime", "get", "job", "large",
                                                              check=False).returncode == 0)
    assert server.call("DELETE", "/v1/tenants/lime").status == 202


def test_a_request_does_not_change(cluster, red):
    said = cluster.refused("-n", "red", "patch", "gpurequest", "w4", "--type=merge", "-p", '{"spec":{"gpus":8}}')
    assert "only cancel" in said
    assert "leave them out" in cluster.refused("-n", "red", "annotate", "--overwrite", "gpurequest", "w4", "gpuaas.io/user=eve")


def test_requests_by_kubectl_are_requests(cluster, server, red):
    cluster.kubectl("apply", "-f", "-", given=json.dumps(
        {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPURequest", "metadata": {"name": "gitops", "namespace": "red"},
         "spec": {"gpus": 1, "image": "x.y/z:1"}}))
    wait_for("its Job", lambda: cluster.kubectl("-n", "red", "get", "job", "gitops", check=False).returncode == 0)
    assert request_state(server, "gitops")["spec"]["class"] == "experiment"
    for spec in ({"gpus": 0, "image": "x"}, {"gpus": 1}, {"gpus": 1, "image": "x", "cpu": "lots"},
                 {"gpus": 1, "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}):
        assert cluster.refused("apply", "-f", "-", given=json.dumps(
            {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPURequest", "metadata": {"name": "bad", "namespace": "red"},
             "spec": spec}))


def test_what_kubectl_asks_for_beyond_all_bounds(cluster, server, red):
    """Nothing unreadable becomes a default: the API server refuses it, or the request fails and says why."""
    def given(kind, name, **spec):
        meta = {"name": name, **({"namespace": "red"} if kind == "GPURequest" else {})}
        return json.dumps({"apiVersion": "gpuaas.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec})

    for field, value in (("memory", "100Ei"), ("memory", "1"), ("memory", "-1Gi"), ("cpu", "5k"), ("cpu", "0"),
                         ("gpuMemory", "2Pi"), ("gpuMemory", "much"), ("gpus", 1025), ("durationSeconds", 0)):
        spec = {"gpus": 1, "image": "x.y/z:1", field: value}
        said = cluster.refused("create", "-f", "-", given=given("GPURequest", "odd", **spec))
        assert field in said, said
    for quota in ({"cpu": "-1"}, {"cpu": "2M"}, {"memory": "33Pi"}, {"gpus": -1}):
        assert f"quota.{next(iter(quota))}" in cluster.refused("create", "-f", "-", given=given("Tenant", "odd", quota=quota))
    cluster.kubectl("create", "-f", "-", given=given("GPURequest", "odd", gpus=1, image="x y"))
    wait_for("it has failed", lambda: request_state(server, "odd")["state"] == "Failed")
    assert request_state(server, "odd")["reason"] == "InvalidSpec"
    assert request_state(server, "odd")["message"].startswith("image")
    assert cluster.kubectl("-n", "red", "get", "job", "odd", check=False).returncode != 0


def test_why_there_is_no_job(cluster, server, red):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "taken", "namespace": "red"},
           "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [
               {"name": "m", "image": "x.y/z:1"}]}}}}
    # A Job of the request's name with our own label, and a running pod with the request's, are still somebody else's.
    job["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "gpuaas-server"}
    cluster.kubectl("apply", "-f", "-", given=json.dumps(job))
    pod = pod_with(lambda meta, spec, one: meta.update(name="fake", labels={"gpuaas.io/request": "red.taken"}))
    cluster.kubectl("create", "-f", "-", given=pod)
    patch_status(cluster, "pod", "fake", {"phase": "Running"})
    assert server.post("/v1/tenants/red/requests", {**BODY, "name": "taken"}, token=red).status == 201
    wait_for("the reason", lambda: request_state(server, "taken").get("reason") == "NameTaken")
    explain = server.get("/v1/requests/red.taken/explain", token=red).json
    assert explain["state"] == "waits" and explain["reasons"][0]["code"] == "NameTaken"
    assert "jobUID" not in cluster.json("-n", "red", "get", "gpurequest", "taken")["status"]
    assert server.get("/v1/requests/red.taken/logs", token=red).code == "not_started"
    cluster.kubectl("-n", "red", "delete", "pod", "fake", "--force", "--grace-period=0")
    # Nobody collects orphans here, so its finalizer is taken off by hand.
    cluster.kubectl("-n", "red", "delete", "job", "taken", "--wait=false", "--cascade=orphan")
    cluster.kubectl("-n", "red", "patch", "job", "taken", "--type=merge", "-p", '{"metadata":{"finalizers":null}}',
                    check=False)
    wait_for("it follows", lambda: request_state(server, "taken")["reason"] == "WaitingForPod", 40)
    assert server.call("DELETE", "/v1/requests/red.taken", token=red).status == 202


def test_why_a_job_has_no_pod(cluster, server, red):
    """The word of Kubernetes' Job controller, which is not here: its Event is made by hand."""
    assert server.post("/v1/tenants/red/requests", {**BODY, "gpus": 1, "name": "nopod"}, token=red).status == 201
    wait_for("its Job", lambda: cluster.kubectl("-n", "red", "get", "job", "nopod", check=False).returncode == 0)
    uid = cluster.json("-n", "red", "get", "job", "nopod")["metadata"]["uid"]

    def refuse(name, message, of=uid):
        cluster.kubectl("create", "-f", "-", given=json.dumps({
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreate", "message": message,
            "metadata": {"name": name, "namespace": "red"}, "lastTimestamp": f"2026-02-10T00:00:0{name[-1]}Z",
            "involvedObject": {"apiVersion": "batch/v1", "kind": "Job", "name": "nopod", "namespace": "red", "uid": of}}))

    refuse("nopod.0", "another Job's", of="11111111-1111-1111-1111-111111111111")
    refuse("nopod.1", "Error creating: pods is forbidden: exceeded quota: gpuaas, used: pods=100, limited: pods=100")
    wait_for("the reason", lambda: request_state(server, "nopod")["reason"] == "QuotaUsedByOthers")
    assert "used: pods=100" in request_state(server, "nopod")["message"]
    refuse("nopod.2", "Error creating: pods is forbidden: denied by a webhook")
    wait_for("the newer reason", lambda: request_state(server, "nopod")["reason"] == "PodRefused")
    reason = server.get("/v1/requests/red.nopod/explain", token=red).json["reasons"][0]
    assert reason["code"] == "PodRefused" and "denied by a webhook" in reason["next"]
    assert server.call("DELETE", "/v1/requests/red.nopod", token=red).status == 202


def test_kill_and_away(cluster, server, red):
    """kill -9 of the server and of the API server while requests are made: each has one Job."""
    names = [f"k{i}" for i in range(30)]
    for i, name in enumerate(names):
        if i in (7, 19):
            server.kill()
            server.start()
        if i == 13:
            cluster.stop()
            cluster.start()
        wait_for(f"{name} is made", lambda n=name: made(server, n, red), 60)
    wait_for("all Jobs", lambda: set(names) <= {j["metadata"]["name"] for j in
                                                cluster.json("-n", "red", "get", "jobs")["items"]}, 60)
    jobs = [j for j in cluster.json("-n", "red", "get", "jobs")["items"] if j["metadata"]["name"] in names]
    requests = {r["metadata"]["name"]: r for r in cluster.json("-n", "red", "get", "gpurequests")["items"]}
    assert len(jobs) == len(names)
    for job in jobs:
        assert job["metadata"]["ownerReferences"][0]["uid"] == requests[job["metadata"]["name"]]["metadata"]["uid"]
    wait_for("every status names its Job", lambda: all(
        r.get("status", {}).get("jobUID") for n, r in {
            r["metadata"]["name"]: r for r in cluster.json("-n", "red", "get", "gpurequests")["items"]}.items() if n in names))
    for name in names:
        server.call("DELETE", f"/v1/requests/red.{name}", token=red)
    assert server.get("/v1/audit/checkpoint").status == 200
    assert server.audit_verify().returncode == 0


def made(server, name, token):
    try:
        answer = server.post("/v1/tenants/red/requests", {**BODY, "gpus": 1, "name": name}, token=token, key=name)
    except OSError:
        return False
    assert answer.status in (201, 409, 429, 503), answer
    return answer.status == 201


def test_a_tenant_deleted_by_kubectl_leaves_no_key_to_its_successor(cluster, server):
    server.tenant("teal")
    old = server.token("teal", "tom", "tenant-admin")[0]
    cluster.kubectl("delete", "tenant", "teal")
    wait_for("it is gone", lambda: server.get("/v1/tenants/teal").status == 404)
    assert server.get("/v1/whoami", token=old).status == 401
    server.tenant("teal")
    assert server.get("/v1/whoami", token=old).status == 401
    assert server.get("/v1/tenants/teal/members").json["items"] == []
    fresh = server.token("teal", "tom")[0]
    assert server.get("/v1/whoami", token=fresh).status == 200
    assert server.get("/v1/whoami", token=old).status == 401


def test_finalizers_keep_no_tenant(cluster, server, red):
    for kind, spec in (("GPURequest", {"gpus": 1, "image": "x.y/z:1"}), ("Tenant", {})):
        meta = {"name": "stays", "finalizers": ["example.com/never"], **({"namespace": "red"} if spec else {})}
        given = json.dumps({"apiVersion": "gpuaas.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec})
        assert "finalizers are not set" in cluster.refused("create", "-f", "-", given=given)
    patch = '{"metadata":{"finalizers":["example.com/never"]}}'
    assert "finalizers are not set" in cluster.refused("patch", "tenant", "red", "--type=merge", "-p", patch)
    assert server.post("/v1/tenants/red/requests", {**BODY, "name": "kept"}, token=red).status == 201
    assert "finalizers are not set" in cluster.refused("-n", "red", "patch", "gpurequest", "kept", "--type=merge", "-p", patch)
    assert server.call("DELETE", "/v1/requests/red.kept", token=red).status == 202


def test_a_namespace_that_does_not_end_says_why(cluster, server):
    server.tenant("plum")
    wait_for("ready", lambda: server.get("/v1/tenants/plum").json["state"] == "Ready")
    cluster.kubectl("delete", "namespace", "plum", "--wait=false")
    cluster.kubectl("patch", "namespace", "plum", "--subresource=status", "--type=merge", "-p", json.dumps(
        {"status": {"conditions": [{"type": "NamespaceFinalizersRemaining", "status": "True", "reason": "SomeFinalizersRemain",
                                    "message": "example.com/never in 1 resource instances"}]}}))

    def ready():
        found = [c for c in server.get("/v1/tenants/plum").json.get("conditions", []) if c["type"] == "Ready"]
        return found and found[0]["reason"] == "NamespaceTerminating" and found[0]

    wait_for("what blocks it", lambda: "example.com/never" in (ready() or {}).get("message", ""))
    assert server.get("/v1/tenants/plum").json["state"] == "Pending"
    assert server.call("DELETE", "/v1/tenants/plum").status == 202


def test_a_pod_that_may_not_leave_a_dead_gpu_keeps_no_other(cluster, server, red):
    """Two nodes at once, each with one that nobody would make anew before one that may go."""
    places = [(node, f"{node}-{name}") for node in ("dead1", "dead2") for name in ("kept", "last")]
    for node in ("dead1", "dead2"):
        cluster.kubectl("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}))
    for node, name in places:
        pod = json.loads(pod_with(lambda meta, spec, one, node=node: spec.update(nodeName=node)))
        pod["metadata"] = {"name": name, "namespace": "default"}
        if not name.endswith("kept"):
            pod["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
                                                   "controller": True}]
        cluster.kubectl("create", "-f", "-", given=json.dumps(pod))

    def tell(node):
        path, _ = node_token(cluster, node, None)
        agent = ("--kubeconfig", str(path))
        pods = [{"namespace": "default", "name": name, "uid": cluster.json("get", "pod", name)["metadata"]["uid"]}
                for at, name in places if at == node]
        device = {"uuid": f"GPU-{node}", "index": 0, "minor": 0, "model": "NVIDIA A100-SXM4-80GB", "memoryMiB": 81920,
                  "healthy": False, "reason": "XID 79", "fault": {
                      "kind": "xid", "state": "unhealthy", "dead": True, "since": "2026-01-01T00:00:00Z", "pods": pods}}
        cluster.kubectl(*agent, "create", "-f", "-", given=json.dumps(
            {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": node}, "spec": {}}))
        cluster.kubectl(*agent, "patch", "gpunode", node, "--subresource=status", "--type=merge", "-p",
                        json.dumps({"status": {"devices": [device]}}))

    def gone():
        left = {p["metadata"]["name"]: p["metadata"].get("deletionTimestamp") for p in cluster.json("get", "pods")["items"]}
        assert all(left[name] is None for _, name in places if name.endswith("kept")), left
        return {name for _, name in places if left.get(name, "gone")}

    for node in ("dead1", "dead2"):
        tell(node)
    wait_for("all that may go have gone", lambda: len(gone()) == 2, 30)
    for node in ("dead1", "dead2"):
        cluster.kubectl("delete", "gpunode", node)
    cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def test_a_node_whose_gpus_are_all_dead_is_closed_until_they_are_well(cluster, server):
    other = {"key": "example.com/own", "effect": "NoSchedule"}
    ours = {"key": "gpuaas.io/dead-gpus", "value": "true", "effect": "NoSchedule"}
    cluster.kubectl("create", "-f", "-", given=json.dumps({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "sick", "labels": {"nvidia.com/gpu.present": "true"}},
        "spec": {"taints": [other]}}))
    path, _ = node_token(cluster, "sick", None)

    def taints():
        found = cluster.json("get", "node", "sick")["spec"].get("taints", [])
        return [t for t in found if not t["key"].startswith("node.kubernetes.io/")]  # which Kubernetes puts there

    def tell(*dead):
        fault = {"kind": "xid", "state": "unhealthy", "dead": True, "since": "2026-01-01T00:00:00Z"}
        devices = [{"uuid": f"GPU-sick{i}", "index": i, "minor": i, "healthy": not d, **({"fault": fault} if d else {})}
                   for i, d in enumerate(dead)]
        cluster.kubectl("--kubeconfig", str(path), "patch", "gpunode", "sick", "--subresource=status", "--type=merge", "-p",
                        json.dumps({"status": {"devices": devices}}))

    cluster.kubectl("--kubeconfig", str(path), "create", "-f", "-", given=json.dumps(
        {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": "sick"}, "spec": {}}))
    tell(True, True)
    wait_for("the node is closed", lambda: taints() == [other, ours])
    tell(True, False)
    wait_for("one GPU is well: it is open", lambda: taints() == [other])
    tell(True, True)
    wait_for("closed again", lambda: taints() == [other, ours])
    cluster.kubectl("delete", "gpunode", "sick")
    wait_for("nobody says so any more", lambda: taints() == [other])
    mine = cluster.config_of("gpuaas-server", "--duration=1h")[0]
    for change in ({"taints": [{"key": "x", "effect": "NoExecute"}, other]}, {"taints": []},
                   {"taints": [other, {**ours, "effect": "NoExecute"}]}):
        said = cluster.refused("--kubeconfig", str(mine), "patch", "node", "sick", "--type=merge", "-p", json.dumps({"spec": change}))
        assert "the taint gpuaas.io/dead-gpus, nothing else" in said, (change, said)


def test_delete(cluster, server, red):
    assert server.call("DELETE", "/v1/tenants/red").json["state"] == "Deleting"
    assert server.get("/v1/whoami", token=red).status == 401
    wait_for("it is gone", lambda: server.get("/v1/tenants/red").status == 404)
    assert server.get("/v1/requests/red.first").json["state"] == "Failed"
