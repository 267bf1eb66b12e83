"""A pod gets exactly its GPUs; a pod without one sees none."""
import json

NAMESPACE = "isolation"

# Opens every GPU node it can name. ENXIO: the device cgroup let it through to the (absent) driver;
# EPERM: it did not.
PROBE = r"""
for i in 0 1 2 3 4 5 6 7; do
  f=/dev/nvidia$i
  [ -e $f ] || mknod /tmp/nvidia$i c 195 $i 2>/dev/null && [ -e $f ] || f=/tmp/nvidia$i
  [ -e $f ] || { echo "$i absent"; continue; }
  e=$( (: < $f) 2>&1 ) && echo "$i opened" || case $e in
    *"No such device"*) echo "$i granted";;
    *"not permitted"*) echo "$i refused";;
    *) echo "$i other: $e";;
  esac
done
"""


def pod(name, gpus, node=None):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": "gpuaas", "restartPolicy": "Never",
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
            "containers": [{
                "name": "main", "image": "testbed.local/busybox:1", "command": ["sh", "-c", PROBE],
                "resources": {"limits": limits},
                # mknod is what a hostile program would try.
                "securityContext": {"capabilities": {"add": ["MKNOD"]}},
            }],
        },
    }


def probe(cluster, name, gpus, node=None):
    cluster.apply(json.dumps(pod(name, gpus, node)))
    phase = cluster.wait_phase(NAMESPACE, name, ("Succeeded", "Failed"))
    log = cluster.kubectl("-n", NAMESPACE, "logs", name)
    assert phase == "Succeeded", log
    return dict(line.split(" ", 1) for line in log.splitlines())


def test_exactly_the_granted_gpus_open(cluster):
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    seen = probe(cluster, "three", 3, "node2")
    assert sorted(seen.values()) == ["granted"] * 3 + ["refused"] * 5, seen
    devices = json.loads(cluster.json("-n", NAMESPACE, "get", "pod", "three")["metadata"]["annotations"]["gpuaas.io/devices"])
    planned = {d["uuid"] for d in devices}
    node = cluster.json("get", "gpunode", "node2")
    minors = {str(d["minor"]) for d in node["status"]["devices"] if d["uuid"] in planned}
    assert {i for i, state in seen.items() if state == "granted"} == minors


def test_a_pod_without_a_gpu_sees_none(cluster):
    seen = probe(cluster, "none", 0, "node2")
    assert set(seen.values()) == {"refused"}, seen


def test_journal_shows_who_held_what(cluster):
    uid = cluster.json("-n", NAMESPACE, "get", "pod", "three")["metadata"]["uid"]

    def rows():
        return [e for e in cluster.events(NAMESPACE, "bound", "released") if e["pod_uid"] == uid]

    from conftest import wait_for
    found = wait_for("three bound and three released", lambda: len(rows()) >= 6 and rows())
    assert len(found) == 6
    assert len({e["gpu"] for e in found}) == 3
