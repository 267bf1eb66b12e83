"""A node's change of driver through gpuaas-server and the command line, against a real API server
alone: what the kubelet and the node's agent would do is done by hand."""
import json
import os
import pathlib
import subprocess

import pytest
from server_test import Cluster, install, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLI = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src" / "cli" / "gpuaas"
OLD, NEW = ("570.86.15", "12.8"), ("580.95.05", "13.0")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("api")) as made:
        install(made)
        # The agent's own guard is another test's; here its part is played by the administrator.
        made.kubectl("delete", "validatingadmissionpolicybinding", "gpuaas-gpunodes")
        yield made


@pytest.fixture(scope="module")
def server(cluster, tmp_path_factory):
    from serverkit import Server
    path, _ = cluster.config_of("gpuaas-server", "--duration=24h")
    made = Server(tmp_path_factory.mktemp("server"), kubernetes=str(path)).start()
    yield made
    assert made.stop() == 0


def gpuaas(server, *words, token=None):
    environment = {**os.environ, "GPUAAS_SERVER": f"https://localhost:{server.port}",
                   "GPUAAS_CA": str(server.folder / "tls.crt"), "GPUAAS_TOKEN": token or server.admin_token}
    return subprocess.run([CLI, *words], check=False, capture_output=True, text=True, env=environment, timeout=60)


def set_driver(cluster, node, version, registered=True, healthy=8, toolkit="1.17.8"):
    """What the node's agent would tell."""
    problems = [] if toolkit != "1.17.7" else [
        {"component": "container-toolkit", "level": "error", "code": "CVE-2025-23266", "version": toolkit,
         "message": "an image runs code as root", "source": "https://example.org"}]
    conditions = {"DriverReady": True, "DevicePluginRegistered": registered, "DevicesHealthy": healthy == 8,
                  "VersionsCompatible": not problems}
    status = {"driverVersion": version[0], "cudaVersion": version[1], "kubeletVersion": "v1.36.3",
              "containerRuntimeVersion": "containerd://2.2.9", "containerToolkitVersion": toolkit,
              "versionProblems": problems,
              "devices": [{"uuid": f"GPU-{node}-{i}", "index": i, "minor": i, "model": "NVIDIA A100-SXM4-80GB",
                           "memoryMiB": 81920, "healthy": i < healthy} for i in range(8)],
              "conditions": [{"type": kind, "status": str(is_true), "reason": "Told", "message": f"{kind} {is_true}",
                              "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind, is_true in conditions.items()]}
    cluster.kubectl("patch", "gpunode", node, "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": status}))


@pytest.fixture
def node(cluster, server, request):
    name = request.node.name.replace("_", "-").removeprefix("test-")[:40]
    cluster.kubectl("apply", "-f", "-", given=json.dumps(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true"}}}))
    cluster.kubectl("create", "-f", "-", given=json.dumps(
        {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": name}, "spec": {}}))
    set_driver(cluster, name, OLD)
    wait_for("the server sees it", lambda: "schedulable" in server.get(f"/v1/nodes/{name}").json)
    yield name
    cluster.kubectl("delete", "node", name)
    cluster.kubectl("delete", "gpunode", name)


def add_pod(cluster, node, name, owner="Job", **labels):
    meta = {"name": name, "namespace": "default", "labels": labels}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "batch/v1" if owner == "Job" else "apps/v1", "kind": owner,
                                    "name": "x", "uid": "00000000-0000-0000-0000-000000000001", "controller": True}]
    cluster.kubectl("create", "-f", "-", given=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
         "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30,
                  "containers": [{"name": "c", "image": "registry.example/x:1"}]}}))
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))


def is_leaving(cluster, name):
    return "deletionTimestamp" in cluster.json("get", "pod", name)["metadata"]


def end_pod(cluster, name):
    cluster.kubectl("delete", "pod", name, "--force", "--grace-period=0", "--wait=false")


def upgrade_of(server, node):
    return server.get(f"/v1/nodes/{node}").json.get("upgrade", {})


def is_closed(cluster, node):
    return cluster.json("get", "node", node)["spec"].get("unschedulable", False)


def test_whole_way(cluster, server, node):
    add_pod(cluster, node, "train")
    add_pod(cluster, node, "agent", owner="DaemonSet")
    cluster.kubectl("create", "-f", "-", given=json.dumps(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard", "namespace": "default"},
         "spec": {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}}}))
    add_pod(cluster, node, "serve", guarded="yes")
    environment = {**os.environ, "GPUAAS_SERVER": f"https://localhost:{server.port}",
                   "GPUAAS_CA": str(server.folder / "tls.crt"), "GPUAAS_TOKEN": server.admin_token}
    command = subprocess.Popen([CLI, "node", "upgrade", node, "--driver", NEW[0], "--cuda", NEW[1], "-o", "json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    wait_for("it is asked to leave", lambda: is_leaving(cluster, "train"))
    assert is_closed(cluster, node)
    wait_for("the budget is named", lambda: "serve" in upgrade_of(server, node)["reason"])
    assert not is_leaving(cluster, "serve") and not is_leaving(cluster, "agent")
    end_pod(cluster, "train")
    # Kill the server in the middle: the state is in the cluster.
    server.kill()
    server.start()
    cluster.kubectl("delete", "pdb", "guard")
    wait_for("it may leave now", lambda: is_leaving(cluster, "serve"))
    end_pod(cluster, "serve")
    wait_for("the driver is waited for", lambda: upgrade_of(server, node)["phase"] == "waiting")
    set_driver(cluster, node, NEW, registered=False)
    wait_for("the plugin is waited for", lambda: "plugin" in upgrade_of(server, node)["reason"])
    assert is_closed(cluster, node)
    set_driver(cluster, node, NEW)
    wait_for("it is done", lambda: upgrade_of(server, node)["phase"] == "done")
    assert not is_closed(cluster, node)
    out, err = command.communicate(timeout=30)
    # The command may have met the killed server; then it says so and can be given again.
    assert command.returncode in (0, 8), err
    assert "draining" in err
    if command.returncode == 0:
        assert json.loads(out)["upgrade"]["phase"] == "done"
    actions = [record for record in server.audit_records() if "upgrade" in json.dumps(record)]
    assert actions, "the audit log has it"
    end_pod(cluster, "agent")


def test_stops_and_goes_on(cluster, server, node):
    add_pod(cluster, node, "alone", owner=None)
    done = gpuaas(server, "node", "upgrade", node, "--driver", NEW[0], "-o", "json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["upgrade"]["phase"] == "stopped"
    assert "alone has no owner" in done.stderr
    assert is_closed(cluster, node) and not is_leaving(cluster, "alone")
    assert gpuaas(server, "doctor", node).returncode == 1
    done = gpuaas(server, "node", "upgrade", node, "--driver", NEW[0], "--force", "--no-wait")
    assert done.returncode == 0, done.stderr
    wait_for("it leaves now", lambda: is_leaving(cluster, "alone"))
    assert gpuaas(server, "node", "upgrade", node).returncode == 5
    end_pod(cluster, "alone")
    set_driver(cluster, node, ("580.65.06", "13.0"))
    wait_for("another driver", lambda: "580.65.06" in upgrade_of(server, node)["reason"])
    done = gpuaas(server, "node", "upgrade", node, "--end")
    assert done.returncode == 0, done.stderr
    assert not is_closed(cluster, node) and upgrade_of(server, node) == {}
    assert gpuaas(server, "node", "upgrade", node, "--end").returncode == 3


def test_time_is_up_and_cuda(cluster, server, node):
    done = gpuaas(server, "node", "upgrade", node, "--driver", NEW[0], "--phase-timeout", "2s")
    assert done.returncode == 1 and "time is up" in done.stderr, done.stderr
    set_driver(cluster, node, NEW)
    done = gpuaas(server, "node", "upgrade", node, "--cuda", "13.1")
    assert done.returncode == 1 and "CUDA 13.0, not 13.1" in done.stderr, done.stderr
    assert is_closed(cluster, node)
    done = gpuaas(server, "node", "upgrade", node, "--cuda", "13.0")
    assert done.returncode == 0, done.stderr
    assert not is_closed(cluster, node)
    assert gpuaas(server, "node", "upgrade", node, "--driver", "latest").returncode == 1


def test_only_admins(cluster, server, node):
    server.tenant("blue")
    token, _ = server.token("blue", "mia", role="tenant-admin")
    assert server.post(f"/v1/nodes/{node}/upgrade", {}, token=token).status == 403
    assert server.call("DELETE", f"/v1/nodes/{node}/upgrade", token=token).status == 403
    seen = server.get(f"/v1/nodes/{node}", token=token).json
    assert seen["driver"] == OLD[0] and not {"conditions", "version_problems", "upgrade"} & set(seen)
    assert gpuaas(server, "doctor", node, token=token).returncode == 1
    assert gpuaas(server, "node", "upgrade", "nowhere").returncode == 3


def test_doctor(cluster, server, node):
    done = gpuaas(server, "doctor", node, "-o", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["ok"], done.stdout
    results = {(row["check"], row["result"]) for row in told["checks"]}
    assert {("driver", "ok"), ("kubernetes", "ok"), ("container-toolkit", "ok"), ("DriverReady", "ok")} <= results
    set_driver(cluster, node, OLD, toolkit="1.17.7", healthy=7)
    wait_for("the server sees it", lambda: server.get(f"/v1/nodes/{node}").json["healthy_gpus"] == 7)
    done = gpuaas(server, "doctor")
    assert done.returncode == 1 and "CVE-2025-23266" in done.stdout and f"GPU-{node}-7" in done.stdout, done.stdout


def test_the_server_changes_nothing_else_of_a_node(cluster, server, node):
    path, _ = cluster.config_of("gpuaas-server")
    for patch in ({"metadata": {"labels": {"x": "y"}}}, {"metadata": {"annotations": {"x": "y"}}},
                  {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}):
        refused = cluster.refused("--kubeconfig", str(path), "patch", "node", node, "-p", json.dumps(patch))
        assert "nothing else" in refused, refused
