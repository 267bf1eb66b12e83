"""A node gets another driver on a real cluster: drained of a running pod, the emulated hardware
changes its driver, the node is verified and opened again."""
import json
import os
import subprocess

from conftest import BUILD, WORK, wait_for

NAMESPACE, NODE, NEW = "nodes", "node3", ("580.95.05", "13.0")


def gpuaas(cluster, *words):
    environment = {**os.environ, "GPUAAS_SERVER": cluster.url, "GPUAAS_CA": str(WORK / "ca.crt"),
                   "GPUAAS_TOKEN": (WORK / "admin.token").read_text().strip()}
    return subprocess.run([BUILD / "src" / "cli" / "gpuaas", *words], check=False, capture_output=True, text=True,
                          env=environment, timeout=300)


def test_doctor_finds_nothing(cluster):
    done = gpuaas(cluster, "doctor", "-o", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["ok"], done.stdout
    rows = {(row["node"], row["check"]): row for row in told["checks"]}
    assert rows["node1", "kubernetes"]["version"].startswith("v1.")
    assert rows["node2", "containerd"]["version"].startswith("containerd://")
    assert rows["node3", "container-toolkit"]["result"] == "unknown"


def restart_agent(cluster, node):
    """The agent reads its Node when it starts, and every five minutes."""
    cluster.kubectl("-n", "gpuaas-system", "delete", "pod", "-l", "app.kubernetes.io/name=gpuaas-agent",
                    "--field-selector", f"spec.nodeName={node}")


def test_doctor_knows_a_bad_toolkit(cluster):
    cluster.kubectl("annotate", "node", "node2", "gpuaas.io/container-toolkit-version=1.17.7")
    restart_agent(cluster, "node2")
    wait_for("the doctor sees it", lambda: "CVE-2025-23266" in gpuaas(cluster, "doctor", "node2").stdout, 90)
    assert gpuaas(cluster, "doctor", "node2").returncode == 1
    conditions = cluster.json("get", "gpunode", "node2")["status"]["conditions"]
    assert [c["status"] for c in conditions if c["type"] == "VersionsCompatible"] == ["False"]
    cluster.kubectl("annotate", "node", "node2", "gpuaas.io/container-toolkit-version-")
    restart_agent(cluster, "node2")
    wait_for("it is well again", lambda: gpuaas(cluster, "doctor", "node2").returncode == 0, 90)


def test_labels_of_a_real_node(cluster):
    labels = cluster.json("get", "node", "node2")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "8" and labels["nvidia.com/gpu.replicas"] == "1"


def test_upgrade(cluster):
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    container = {"name": "main", "image": "testbed.local/busybox:1", "command": ["sleep", "3600"],
                 "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    cluster.apply(json.dumps({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "long", "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"schedulerName": "gpuaas", "restartPolicy": "Never", "containers": [container],
                                       "terminationGracePeriodSeconds": 1,
                                       "nodeSelector": {"kubernetes.io/hostname": NODE}}}}}))

    def pods(phase):
        items = cluster.json("-n", NAMESPACE, "get", "pods")["items"]
        return [pod["metadata"]["name"] for pod in items if pod["status"].get("phase") == phase]

    wait_for("the pod runs", lambda: pods("Running"), 90)
    first = pods("Running")[0]
    assert gpuaas(cluster, "node", "upgrade", NODE, "--driver", NEW[0], "--cuda", NEW[1], "--no-wait").returncode == 0
    upgrade = lambda: cluster.admin().get(f"/v1/nodes/{NODE}")["upgrade"]  # noqa: E731
    wait_for("the node is empty", lambda: upgrade()["phase"] == "waiting", 120)
    assert first not in pods("Running"), "it was evicted"
    assert cluster.json("get", "node", NODE)["spec"]["unschedulable"]
    cluster.exec_node(NODE, "sh", "-c", f"echo driver {NEW[0]} {NEW[1]} >> /run/gpuaas-emu/control")
    wait_for("it is done", lambda: upgrade()["phase"] == "done", 120)
    node = cluster.json("get", "node", NODE)
    assert "unschedulable" not in node["spec"]
    assert node["metadata"]["labels"]["nvidia.com/cuda.driver-version.full"] == NEW[0]
    wait_for("work comes back", lambda: pods("Running"), 120)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
