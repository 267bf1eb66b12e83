"""Our scheduler and kube-scheduler, one after the other on the same real API server with fresh data."""
import collections
import dataclasses
import http.client
import json
import os
import random
import secrets
import threading
import time

from apiserver import ApiServer, install_gpu_nodes
from harness import Figure, Group, Process, free_port, program_of, wait_until

GPUS_A_NODE = 8
PATIENCE_S = 120
SIZES = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)  # drawn from; 2.2 GPUs in the mean
NAMESPACE = "team"
FIRST = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "first"}, "value": 1000}


@dataclasses.dataclass(frozen=True)
class Size:
    nodes: int
    pods: int
    front: int = 0  # pods before all others that no node has room for


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


def pod_object(name, scheduler, gpus, annotations=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {**spec, "schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [{
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


def ours(bench, server, *more):
    key = server.folder / "plan.key"
    key.write_text(secrets.token_hex(32))
    listen = f"127.0.0.1:{free_port()}"
    command = [bench.program("gpuaas-scheduler"), "--kubeconfig", server.folder / "kubeconfig", "--plan-key", key,
               "--listen", listen, "--identity", "bench", "--log-level", "warn", *more]
    return "gpuaas", command


def theirs(server):
    config = server.folder / "kube-scheduler.yaml"
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
        "type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}}}
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False}, "enableProfiling": False,
        "clientConnection": {"kubeconfig": str(server.folder / "kubeconfig"), "qps": 10000, "burst": 10000},
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
        if "nodeName" not in pod["spec"]:
            continue
        used[pod["spec"]["nodeName"]] += int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        plan = pod["metadata"].get("annotations", {}).get("gpuaas.io/devices", "[]")
        devices.update(device["uuid"] for device in json.loads(plan))
    if max(used.values()) > GPUS_A_NODE or max(devices.values(), default=0) > 1:
        raise RuntimeError("a node or a device was given twice")
    return len(used)


class Cluster:
    """Nodes on a fresh API server, one scheduler; make(server) gives its name and command."""

    def __init__(self, make, size):
        self.server, self.scheduler, self.count, self.size = ApiServer(), None, 0, size
        self.asked = {}
        self.rng = random.Random(42)
        try:
            for name in ("gpuaas-system", NAMESPACE):
                self.server.connect().ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            install_gpu_nodes(self.server)
            self.server.connect().ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", FIRST)
            pairs = [node_objects(index) for index in range(size.nodes)]
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
        self.create([pod_object(f"pod-{self.count + index:05d}", self.name, self.rng.choice(SIZES)) for index in range(count)])
        self.count += count

    def create(self, pods):
        self.asked.update(self.server.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pods))

    def p99_s(self):
        """From the request that creates a pod to the bind that is seen."""
        took = sorted(at - self.asked[name] for name, at in self.binds.at.items())
        return took[len(took) * 99 // 100]

    def cpu(self):
        parts = {"scheduler": self.scheduler, "API server": self.server.api, "etcd": self.server.etcd}
        return {part: process.cpu_s() for part, process in parts.items()}

    def wait_bound(self, count, pause_s=0.05):
        def is_bound():
            if not self.scheduler.is_running():
                raise RuntimeError(f"{self.name} ended: {self.scheduler.tail()}")
            return len(self.binds.at) >= count
        wait_until(f"{count} pods bound by {self.name}", is_bound, 60 + self.size.pods / 5, pause_s)

    def close(self):
        if self.scheduler is not None:
            self.scheduler.stop()
        self.server.close()


def stream(cluster):
    """CPU a pod while pods come, with the scheduler's lists already read."""
    cluster.start()
    cluster.create([pod_object(f"front-{index:05d}", cluster.name, GPUS_A_NODE + 1, priorityClassName="first")
                    for index in range(cluster.size.front)])
    cluster.scheduler.require("calm", lambda: cluster.scheduler.cpu_s() > 0 and is_calm(cluster.scheduler), PATIENCE_S)
    pods, before, writes = cluster.size.pods, cluster.cpu(), cluster.server.writes()
    cluster.create_pods(pods)
    cluster.wait_bound(pods)
    wait_until("calm", lambda: is_calm(cluster.scheduler))  # its Events are written too
    cpu = {part: value - before[part] for part, value in cluster.cpu().items()}
    return {"scheduler_cpu_s": cpu["scheduler"], "api_cpu_s": cpu["API server"] + cpu["etcd"], "p99_s": cluster.p99_s(),
            "writes": (cluster.server.writes() - writes - pods) / pods, "rss_kib": cluster.scheduler.rss_kib()}


def backlog(cluster):
    """Rate and CPU from the first to the last bind of pods that were there before the scheduler."""
    pods = cluster.size.pods
    cluster.scheduler.stop()
    cluster.create_pods(pods)
    cluster.start()
    cluster.wait_bound(pods + 1, 0.005)
    before, start, first = cluster.cpu(), time.monotonic(), len(cluster.binds.at)
    cluster.wait_bound(2 * pods, 0.005)
    cpu = {part: value - before[part] for part, value in cluster.cpu().items()}
    wall_s = time.monotonic() - start
    return {"cpu": cpu, "wall_s": wall_s, "rate": (2 * pods - first) / wall_s}


def measure(make, size):
    cluster = Cluster(make, size)
    try:
        return {**stream(cluster), **backlog(cluster), "nodes": check(cluster.server)}
    finally:
        cluster.close()


def bottleneck(got):
    cores = {part: cpu_s / got["wall_s"] for part, cpu_s in got["cpu"].items()}
    spent = ", ".join(f"{part} {share:.2f}" for part, share in cores.items())
    return f"bottleneck {max(cores, key=cores.get)} (of {os.cpu_count()} cores: {spent})"


def beside(bench, name, size):
    program_of("PEER_KUBE_SCHEDULER", "kube-scheduler")
    bench.program("gpuaas-scheduler")
    peer = measure(theirs, size)
    mine = measure(lambda server: ours(bench, server), size)

    def figure(row, unit, of, **more):
        return Figure(f"{name}_{row}", of(mine), unit, peer="kube-scheduler", peer_value=of(peer), **more)
    mine_cpu = mine["scheduler_cpu_s"]
    front = f", {size.front} that fit nowhere in front" if size.front else ""
    yield figure("scheduler_cpu", "ms CPU/pod", lambda got: got["scheduler_cpu_s"] * 1e3 / size.pods, cpu_s=mine_cpu,
                 note=f"{size.nodes} nodes of {GPUS_A_NODE} GPUs, twice {size.pods} pods of 1, 2, 4, 8{front}; nodes used: "
                      f"{mine['nodes']}, peer {peer['nodes']}")
    yield figure("api_cpu", "ms CPU/pod", lambda got: got["api_cpu_s"] * 1e3 / size.pods, cpu_s=mine["api_cpu_s"],
                 note="creation of the pods included")
    yield figure("api_writes", "writes/pod", lambda got: got["writes"])
    yield figure("bind_p99", "s wall", lambda got: got["p99_s"], note="from the request that creates the pod")
    yield figure("bound_rate", "pods/s", lambda got: got["rate"],
                 note=f"backlog, first to last bind; ours: {bottleneck(mine)}; peer: {bottleneck(peer)}")
    yield figure("rss", "MiB", lambda got: got["rss_kib"] / 1024)


# ---- nodes change hands, and gangs

TAKEN = Size(nodes=100, pods=100)
GANGS, MEMBERS = 40, 8


def take_over(make):
    """Every node is full with pods that end at once when they are asked to; half of them have to leave."""
    cluster = Cluster(make, TAKEN)
    try:
        cluster.start()
        cluster.create([pod_object(f"low-{index:03d}", cluster.name, GPUS_A_NODE) for index in range(TAKEN.pods)])
        cluster.wait_bound(TAKEN.pods)
        wait_until("calm", lambda: is_calm(cluster.scheduler), PATIENCE_S)
        before, writes, start = cluster.cpu(), cluster.server.writes(), time.monotonic()
        count = TAKEN.pods // 2
        cluster.create([pod_object(f"first-{index:03d}", cluster.name, GPUS_A_NODE, priorityClassName="first")
                        for index in range(count)])
        cluster.wait_bound(TAKEN.pods + count)
        wall_s = time.monotonic() - start
        wait_until("calm", lambda: is_calm(cluster.scheduler), PATIENCE_S)
        cpu = cluster.cpu()["scheduler"] - before["scheduler"]
        check(cluster.server)
        return {"cpu_s": cpu / count, "wall_s": wall_s, "writes": (cluster.server.writes() - writes - count) / count}
    finally:
        cluster.close()


def preemption(bench):
    program_of("PEER_KUBE_SCHEDULER", "kube-scheduler")
    bench.program("gpuaas-scheduler")
    peer = take_over(theirs)
    mine = take_over(lambda server: ours(bench, server, "--preemption", "priority,per-minute=10000"))

    def figure(row, unit, of, **more):
        return Figure(f"preempt_{row}", of(mine), unit, peer="kube-scheduler", peer_value=of(peer), **more)
    yield figure("cpu", "ms CPU/pod", lambda got: got["cpu_s"] * 1e3,
                 note=f"{TAKEN.nodes} full nodes, {TAKEN.pods // 2} pods of higher priority come")
    yield figure("wall", "s until all run", lambda got: got["wall_s"])
    yield figure("writes", "writes/pod", lambda got: got["writes"], note="evictions, nominations, binds, Events")


def gangs(bench):
    size = Size(nodes=200, pods=GANGS * MEMBERS)
    cluster = Cluster(lambda server: ours(bench, server), size)
    try:
        cluster.start()
        cluster.scheduler.require("calm", lambda: cluster.scheduler.cpu_s() > 0 and is_calm(cluster.scheduler), PATIENCE_S)
        before, start = cluster.cpu(), time.monotonic()
        cluster.create([pod_object(f"gang-{index % GANGS:03d}-{index // GANGS}", cluster.name, 4, {
            "gpuaas.io/gang": f"g{index % GANGS}", "gpuaas.io/gang-min": str(MEMBERS)}) for index in range(size.pods)])
        cluster.wait_bound(size.pods)
        wall_s = time.monotonic() - start
        wait_until("calm", lambda: is_calm(cluster.scheduler), PATIENCE_S)
        check(cluster.server)
        cpu_s = cluster.cpu()["scheduler"] - before["scheduler"]
    finally:
        cluster.close()
    yield Figure("gang_cpu", cpu_s * 1e3 / size.pods, "ms CPU/pod", cpu_s=cpu_s,
                 note=f"{GANGS} gangs of {MEMBERS} pods of 4 GPUs, members mixed, {size.nodes} nodes; kube-scheduler has no gangs")
    yield Figure("gang_wall", wall_s, "s until all run", note="creation included")


def group(name, about, size):
    reach = {"scheduler_cpu": "ratio <= 0.1", "api_cpu": "ratio <= 1", "api_writes": "", "bind_p99": "ratio < 1",
             "bound_rate": "ratio >= 1.3", "rss": "ratio <= 0.2"}
    return Group(name, f"{about} (PEER_KUBE_SCHEDULER)", {f"{name}_{row}": target for row, target in reach.items()},
                 lambda bench: beside(bench, name, size))


GROUPS = [
    group("pods", "scheduler beside kube-scheduler on one API server and etcd, 500 nodes", Size(500, 600)),
    group("pods_1000", "the same with 1,000 nodes and twice 1,500 pods", Size(1000, 1500)),
    group("pods_5000", "the same with 5,000 nodes and twice 5,000 pods", Size(5000, 5000)),
    group("pods_front", "the same with 1,000 nodes and 1,000 pods in front that fit nowhere", Size(1000, 1000, 1000)),
    Group("preempt", "half of 100 full nodes change hands by priority, beside kube-scheduler (PEER_KUBE_SCHEDULER)",
          {"preempt_cpu": "", "preempt_wall": "", "preempt_writes": ""}, preemption),
    Group("gang", "gangs on a real API server", {"gang_cpu": "", "gang_wall": ""}, gangs),
]
