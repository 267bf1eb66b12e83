"""Our scheduler and kube-scheduler, one after the other on the same real API server with fresh data."""
import collections
import http.client
import json
import os
import random
import secrets
import threading
import time

from apiserver import ApiServer, install_gpu_nodes
from harness import Figure, Group, Process, free_port, program_of, wait_until

NODES, GPUS_A_NODE, PODS = 500, 8, 600
SIZES = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)  # drawn from; 2.2 GPUs in the mean
NAMESPACE = "team"


def node_objects(index):
    name = f"node-{index:04d}"
    node = {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS_A_NODE)},
                       "capacity": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS_A_NODE)},
                       "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}]}}
    devices = [{"uuid": f"GPU-{index:04d}-{gpu}", "model": "A100-SXM4-80GB", "index": gpu, "memoryMiB": 81920,
                "healthy": True} for gpu in range(GPUS_A_NODE)]
    return node, {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": name},
                  "status": {"devices": devices}}


def pod_object(index, scheduler, gpus):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{index:05d}"},
            "spec": {"schedulerName": scheduler, "containers": [{
                "name": "main", "image": "testbed.local/workload:1",
                "resources": {"requests": {"cpu": str(4 * gpus), "memory": f"{32 * gpus}Gi"},
                              "limits": {"nvidia.com/gpu": str(gpus)}}}]}}


class Binds:
    """Sees by a watch when each pod got its node. The server ends the watch of a slow reader; then anew."""

    def __init__(self, server):
        self.server, self.at = server, {}
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?watch=1&fieldSelector=spec.nodeName%21%3D"
        while self.server.api.is_running():
            try:
                for event in self.server.connect().watch(path):
                    self.at.setdefault(event["object"]["metadata"]["name"], time.monotonic())
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.1)


def ours(bench, server):
    key = server.folder / "plan.key"
    key.write_text(secrets.token_hex(32))
    listen = f"127.0.0.1:{free_port()}"
    command = [bench.program("gpuaas-scheduler"), "--kubeconfig", server.folder / "kubeconfig", "--plan-key", key,
               "--listen", listen, "--identity", "bench", "--log-level", "warn"]
    return "gpuaas", command


def theirs(server):
    config = server.folder / "kube-scheduler.yaml"
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
        "type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}}}
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False}, "enableProfiling": False,
        "clientConnection": {"kubeconfig": str(server.folder / "kubeconfig"), "qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [fit]}]}))
    command = [program_of("PEER_KUBE_SCHEDULER", "kube-scheduler"), "--config", config, "--bind-address", "127.0.0.1",
               "--secure-port", free_port(), "--authentication-skip-lookup", "--v", "1"]
    return "default-scheduler", command


def is_calm(process):
    """Its lists are read when it has used nearly nothing for a second."""
    before = process.cpu_s()
    time.sleep(1)
    return process.cpu_s() - before <= 0.02


def check(server):
    """No node has more than it has: neither GPUs nor the same device twice."""
    used, devices = collections.Counter(), collections.Counter()
    for pod in server.connect().ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        used[pod["spec"]["nodeName"]] += int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        plan = pod["metadata"].get("annotations", {}).get("gpuaas.io/devices", "[]")
        devices.update(device["uuid"] for device in json.loads(plan))
    if max(used.values()) > GPUS_A_NODE or max(devices.values(), default=0) > 1:
        raise RuntimeError("a node or a device was given twice")
    return len(used)


class Cluster:
    """Nodes on a fresh API server, one scheduler; make(server) gives its name and command."""

    def __init__(self, make):
        self.server, self.scheduler, self.count = ApiServer(), None, 0
        self.rng = random.Random(42)
        try:
            for name in ("gpuaas-system", NAMESPACE):
                self.server.connect().ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            install_gpu_nodes(self.server)
            pairs = [node_objects(index) for index in range(NODES)]
            self.server.create("/api/v1/nodes", [node for node, _ in pairs])
            self.server.create("/apis/gpuaas.io/v1alpha1/gpunodes", [gpu_node for _, gpu_node in pairs])
            self.name, self.command = make(self.server)
            self.binds = Binds(self.server)
        except BaseException:
            self.close()
            raise

    def start(self):
        self.scheduler = Process(self.server.folder / "scheduler.log", self.command)

    def create_pods(self, count):
        pods = [pod_object(self.count + index, self.name, self.rng.choice(SIZES)) for index in range(count)]
        self.count += count
        self.server.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pods)

    def cpu(self):
        parts = {"scheduler": self.scheduler, "API server": self.server.api, "etcd": self.server.etcd}
        return {part: process.cpu_s() for part, process in parts.items()}

    def wait_bound(self, count, pause_s=0.05):
        def is_bound():
            if not self.scheduler.is_running():
                raise RuntimeError(f"{self.name} ended: {self.scheduler.tail()}")
            return len(self.binds.at) >= count
        wait_until(f"{count} pods bound by {self.name}", is_bound, 60, pause_s)

    def close(self):
        if self.scheduler is not None:
            self.scheduler.stop()
        self.server.close()


def stream(cluster):
    """CPU a pod while pods come, with the scheduler's lists already read."""
    cluster.start()
    cluster.scheduler.require("calm", lambda: cluster.scheduler.cpu_s() > 0 and is_calm(cluster.scheduler))
    before, writes = cluster.cpu(), cluster.server.writes()
    cluster.create_pods(PODS)
    cluster.wait_bound(PODS)
    wait_until("calm", lambda: is_calm(cluster.scheduler))  # its Events are written too
    cpu = {part: value - before[part] for part, value in cluster.cpu().items()}
    return {"scheduler_cpu_s": cpu["scheduler"], "api_cpu_s": cpu["API server"] + cpu["etcd"],
            "writes": (cluster.server.writes() - writes - PODS) / PODS, "rss_kib": cluster.scheduler.rss_kib()}


def backlog(cluster):
    """Rate and CPU from the first to the last bind of pods that were there before the scheduler."""
    cluster.scheduler.stop()
    cluster.create_pods(PODS)
    cluster.start()
    cluster.wait_bound(PODS + 1, 0.005)
    before, start, first = cluster.cpu(), time.monotonic(), len(cluster.binds.at)
    cluster.wait_bound(2 * PODS, 0.005)
    cpu = {part: value - before[part] for part, value in cluster.cpu().items()}
    wall_s = time.monotonic() - start
    return {"cpu": cpu, "wall_s": wall_s, "rate": (2 * PODS - first) / wall_s}


def measure(make):
    cluster = Cluster(make)
    try:
        return {**stream(cluster), **backlog(cluster), "nodes": check(cluster.server)}
    finally:
        cluster.close()


def bottleneck(got):
    cores = {part: cpu_s / got["wall_s"] for part, cpu_s in got["cpu"].items()}
    spent = ", ".join(f"{part} {share:.2f}" for part, share in cores.items())
    return f"bottleneck {max(cores, key=cores.get)} (of {os.cpu_count()} cores: {spent})"


def beside(bench):
    program_of("PEER_KUBE_SCHEDULER", "kube-scheduler")
    bench.program("gpuaas-scheduler")
    peer = measure(theirs)
    mine = measure(lambda server: ours(bench, server))
    name = "kube-scheduler"

    def figure(row, unit, of, **more):
        return Figure(row, of(mine), unit, peer=name, peer_value=of(peer), **more)
    mine_cpu = mine["scheduler_cpu_s"]
    yield figure("pod_scheduler_cpu", "ms CPU/pod", lambda got: got["scheduler_cpu_s"] * 1e3 / PODS, cpu_s=mine_cpu,
                 note=f"{NODES} nodes of {GPUS_A_NODE} GPUs, twice {PODS} pods of 1, 2, 4, 8; nodes used: {mine['nodes']}, "
                      f"peer {peer['nodes']}; API writes a pod: {mine['writes']:.1f}, peer {peer['writes']:.1f}")
    yield figure("pod_api_cpu", "ms CPU/pod", lambda got: got["api_cpu_s"] * 1e3 / PODS, cpu_s=mine["api_cpu_s"],
                 note="creation of the pods included")
    yield figure("pods_bound_rate", "pods/s", lambda got: got["rate"],
                 note=f"backlog, first to last bind; ours: {bottleneck(mine)}; peer: {bottleneck(peer)}")
    yield figure("scheduler_rss", "MiB", lambda got: got["rss_kib"] / 1024)


GROUPS = [Group("pods", "scheduler beside kube-scheduler on one API server and etcd (PEER_KUBE_SCHEDULER)", {
    "pod_scheduler_cpu": "ratio <= 0.1", "pod_api_cpu": "ratio <= 1", "pods_bound_rate": "ratio >= 1.3",
    "scheduler_rss": ""}, beside)]
