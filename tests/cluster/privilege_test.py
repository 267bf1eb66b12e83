"""What the agent may do on its node, and that each right serves the one thing it is there for: with the right gone, that
thing is gone and says so, and nothing else is."""
import json
import pathlib

import pytest
from conftest import installed, wait_for

SYSTEM = "gpuaas-system"
ACCESS = "gpuaas.io/driver-access"
# The emulator's library wants the device nodes, as the true one does.
ENV = [{"name": "GPUAAS_EMU", "value": "/run/gpuaas-emu"}, {"name": "GPUAAS_EMU_NODES", "value": "1"}]
STRICT = {"agent": {"driverAccess": "resource", "env": ENV}}


def metrics(cluster, node):
    name = cluster.agent(node)["metadata"]["name"]
    page = cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{name}:9400/proxy/metrics")
    rows = (line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    return {key: float(value) for key, value in rows}


def metrics_try(cluster, node):
    try:
        return metrics(cluster, node)
    except AssertionError:
        return None


def healthy(cluster, node):
    return sum(value for key, value in metrics(cluster, node).items() if key.startswith("gpuaas_agent_gpu_up{"))


@pytest.fixture(scope="module")
def strict(cluster):
    with installed(cluster, STRICT):
        yield cluster


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_the_agent_opens_the_driver_without_being_privileged(strict):
    for node in ("node1", "node2", "node3"):
        wait_for(f"eight GPUs on {node}", lambda: healthy(strict, node) == 8)
        assert strict.json("get", "node", node)["status"]["allocatable"][ACCESS] == "1"
    found = {**strict.processes("gpuaas-agent"), **strict.processes("gpuaas-driver-access")}
    assert len(found) >= 3
    for pid in found.values():
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *children):
            status = status_of(one)
            assert {status[k] for k in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {"0" * 16}, status
            assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_its_devices_are_the_drivers_alone(strict):
    process = strict.processes("gpuaas-agent")[strict.agent("node1")["metadata"]["name"]]
    root = pathlib.Path("/proc", str(process), "root", "dev")
    nodes = {p.name for p in root.iterdir() if p.is_char_device() and not p.is_symlink()}
    assert nodes - {"null", "zero", "full", "tty", "urandom", "random", "ptmx", "console"} == \
        {"nvidiactl", *(f"nvidia{i}" for i in range(8))}


def test_sockets_are_roots(strict):
    names = strict.exec_node("node1", "find", "/var/lib/kubelet/device-plugins", "-name", "nvidia-*.sock",
                             "-printf", "%m %U %f\\n").stdout.split("\n")
    mine = [n for n in names if n]
    assert mine and all(n.startswith("700 0 ") for n in mine), mine


def test_the_grant_comes_back_with_a_new_pod(strict):
    """The old pod's grant is free when the new one asks."""
    old = strict.agent("node2")["metadata"]["name"]
    strict.kubectl("-n", SYSTEM, "delete", "pod", old)
    wait_for("another agent", lambda: strict.agents().get("node2", {}).get("metadata", {}).get("name") not in (None, old))
    strict.shell("parts_ready")
    wait_for("eight GPUs again", lambda: healthy(strict, "node2") == 8)


def test_the_granter_may_restart(strict):
    before = {n: p["metadata"]["uid"] for n, p in strict.agents().items()}
    strict.kubectl("-n", SYSTEM, "delete", "pod", "-l", "app.kubernetes.io/name=gpuaas-driver-access")
    strict.kubectl("-n", SYSTEM, "rollout", "status", "ds/gpuaas-driver-access", "--timeout=60s")
    wait_for("the resource is back", lambda: strict.json("get", "node", "node1")["status"]["allocatable"].get(ACCESS) == "1")
    assert {n: p["metadata"]["uid"] for n, p in strict.agents().items()} == before
    assert healthy(strict, "node1") == 8


def pod(name, namespace, **container):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
                       "spec": {"containers": [{"name": "main", "image": "testbed.local/busybox:1", **container}]}})


@pytest.mark.parametrize("namespace, container, why", [
    ("default", {"resources": {"limits": {ACCESS: "1"}}}, "is the agent's"),
    (SYSTEM, {"resources": {"limits": {ACCESS: "1"}}}, "is the agent's"),
    (SYSTEM, {"securityContext": {"privileged": True}}, "privileged"),
])
def test_nobody_else_gets_it(strict, namespace, container, why):
    done = strict.kubectl_try("create", "-f", "-", input=pod("thief", namespace, **container))
    assert done.returncode != 0 and why in done.stderr, done.stderr


@pytest.mark.parametrize("mount, change, gone", [
    ("pod-resources", "remove", lambda m: m["gpuaas_agent_pod_resources_failures_total"] > 0 and m["gpuaas_agent_kubelet_registered"] == 1),
    ("device-plugins", "read-only", lambda m: m["gpuaas_agent_kubelet_registered"] == 0),
])
def test_each_folder_serves_one_thing(strict, mount, change, gone):
    mounts = strict.json("-n", SYSTEM, "get", "ds", "gpuaas-agent")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    path = f"/spec/template/spec/containers/0/volumeMounts/{next(i for i, m in enumerate(mounts) if m['name'] == mount)}"
    patch = {"op": "remove", "path": path} if change == "remove" else {"op": "add", "path": path + "/readOnly", "value": True}
    before = {n: p["metadata"]["uid"] for n, p in strict.agents().items()}
    strict.kubectl("-n", SYSTEM, "patch", "ds", "gpuaas-agent", "--type=json", "-p", json.dumps([patch]))
    try:
        node = wait_for("a new agent", lambda: next((n for n, p in strict.agents().items() if p["metadata"]["uid"] != before.get(n)), None))
        page = wait_for("what is gone", lambda: (m := metrics_try(strict, node)) and gone(m) and m)
        # The driver, and health of all GPUs, as before.
        assert page["gpuaas_agent_nvml_up"] == 1
        wait_for("eight GPUs", lambda: healthy(strict, node) == 8)
    finally:
        strict.kubectl("-n", SYSTEM, "rollout", "undo", "ds/gpuaas-agent")
        strict.shell("parts_ready")


def test_without_the_grant_there_is_no_driver_and_all_else_works(strict):
    def bereft():
        """The first node whose agent is a new one; the others wait for it to get ready."""
        return next((n for n, p in strict.agents().items()
                     if ACCESS not in p["spec"]["containers"][0]["resources"]["limits"] and
                     all(s.get("running") for s in (c["state"] for c in p["status"].get("containerStatuses", [{"state": {}}])))), None)

    try:
        strict.install({"agent": {"driverAccess": "none", "env": ENV}}, is_ready=False)
        node = wait_for("an agent without the grant", bereft)
        page = wait_for("its page", lambda: metrics_try(strict, node))
        assert page["gpuaas_agent_nvml_up"] == 0 and not any(key.startswith("DCGM_FI_DEV_POWER_USAGE") for key in page)
        log = strict.kubectl("-n", SYSTEM, "logs", strict.agent(node)["metadata"]["name"])
        assert "driver does not answer" in log
        # What does not need the driver goes on: the API server is asked and told, usage is pushed.
        name = strict.agent(node)["metadata"]["name"]
        assert strict.kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{name}:9400/proxy/healthz")
    finally:
        strict.install(STRICT)
    wait_for("eight GPUs again", lambda: healthy(strict, node) == 8)


def test_a_runtime_class_does_as_well(strict):
    strict.apply(json.dumps({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
                             "handler": "runc"}))
    try:
        strict.install({"agent": {"driverAccess": "runtimeClass"}})
        spec = strict.agent("node1")["spec"]
        assert spec["runtimeClassName"] == "nvidia" and ACCESS not in spec["containers"][0]["resources"]["limits"]
        assert {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}.items() <= \
            {e["name"]: e.get("value") for e in spec["containers"][0]["env"]}.items()
        wait_for("eight GPUs", lambda: healthy(strict, "node1") == 8)
    finally:
        strict.kubectl("delete", "runtimeclass", "nvidia")
