"""Layouts of MIG devices by node label: each pod gets exactly its slice, what a pod holds survives a change, a layout that
would take it is refused, and no label value leaves the node in between."""
import json
import re

import gateway
import pytest
from conftest import installed, wait_for

NAMESPACE = "mig"
NODE = "node1"  # eight A100-80
PREFIX = "nvidia.com/"
DEMO, GROWN, FULL, OFF = "demo", "grown", "full", "off"
LAYOUTS = {
    DEMO: {"3g.40gb": 1, "1g.10gb": 2},
    GROWN: {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1},
    FULL: {"7g.80gb": 1},
}
# Opens every capability that the container can name; 236 is the emulator's major number of nvidia-caps. ENXIO: the device
# cgroup let it through to the (absent) driver; EPERM: it did not.
PROBE = r"""
ls /run/gpuaas-emu
for i in $(seq 3 137); do
  mknod /tmp/cap$i c 236 $i || echo "$i cannot be made"
  e=$( (: < /tmp/cap$i) 2>&1 ) && echo "cap $i opened" || case $e in
    *"No such device"*) echo "cap $i granted";;
    *"not permitted"*) ;;
    *) echo "cap $i other: $e";;
  esac
done
ls -d /dev/nvidia-caps/*
sleep 600
"""


@pytest.fixture(scope="module")
def configured(cluster):
    """The chart with strategy mixed and managed layouts."""
    plugin = {"configs": {"mixed": "version: v1\nflags: {migStrategy: mixed}\n"}, "default": "mixed"}
    layouts = {name: [{"devices": [0], "mig-enabled": True, "mig-devices": devices}] for name, devices in LAYOUTS.items()}
    layouts[OFF] = [{"devices": "all", "mig-enabled": False, "mig-devices": {}}]
    # A fault of a device lasts long enough to be told, acted upon and seen.
    agent = {"mig": {"manage": True}, "devicePlugin": plugin, "config": {"health": {"holdOffS": 30}}}
    values = {"agent": agent, "server": {"deadGpus": {"evict": True, "after": "1s"}}}
    with installed(cluster, values, NAMESPACE) as undo:
        undo.callback(cluster.kubectl, "delete", "gpupolicy", "layouts")
        cluster.apply(json.dumps({"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "layouts"},
                                  "spec": {"layouts": layouts}}))
        undo.callback(cluster.kubectl, "label", "node", NODE, "nvidia.com/mig.config-")
        undo.callback(make_whole, cluster)
        yield cluster


def make_whole(cluster):
    choose(cluster, OFF)
    wait_for("whole again", lambda: amounts(cluster) == {"gpu": 8}, 120)


def choose(cluster, layout):
    cluster.kubectl("label", "--overwrite", "node", NODE, f"nvidia.com/mig.config={layout}")


def amounts(cluster):
    found = cluster.json("get", "node", NODE)["status"]["allocatable"]
    return {k[len(PREFIX):]: int(v) for k, v in found.items() if k.startswith(PREFIX) and int(v) > 0}


def state(cluster):
    return cluster.json("get", "node", NODE)["metadata"]["labels"].get("nvidia.com/mig.config.state")


def layout(cluster):
    return cluster.json("get", "gpunode", NODE)["status"]["layout"]


def devices(cluster):
    """MIG devices of the first GPU, by profile."""
    found = cluster.json("get", "gpunode", NODE)["status"]["devices"]
    migs = next(d for d in found if d["index"] == 0).get("mig", [])
    return {profile: [m["uuid"] for m in migs if m["profile"] == profile] for profile in {m["profile"] for m in migs}}


def start(cluster, name, profile):
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "schedulerName": "gpuaas", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "testbed.local/busybox:1", "command": ["sh", "-c", PROBE],
                        "resources": {"limits": {f"nvidia.com/mig-{profile}": "1"}},
                        "securityContext": {"capabilities": {"add": ["MKNOD"]}}}]}}))
    cluster.wait_phase(NAMESPACE, name, ("Running",))
    log = wait_for("the probe's end", lambda: "/dev/nvidia-caps" in (
        text := cluster.kubectl("-n", NAMESPACE, "logs", name)) and text)
    return {"sockets": set(re.findall(r"MIG-[0-9a-f-]{36}", log)), "whole": re.findall(r"gpu-\d+\.sock", log),
            "granted": set(re.findall(r"^cap (\d+) granted", log, re.M)), "other": re.findall(r"opened|other|cannot", log),
            "nodes": set(re.findall(r"^/dev/nvidia-caps/nvidia-cap(\d+)$", log, re.M))}


def test_layout_by_label_and_a_pod_with_each_slice(configured):
    cluster = configured
    choose(cluster, DEMO)
    wait_for("seven whole GPUs and three slices",
             lambda: amounts(cluster) == {"gpu": 7, "mig-3g.40gb": 1, "mig-1g.10gb": 2}, 90)
    wait_for("success", lambda: state(cluster) == "success")
    uuids = devices(cluster)
    three, one = start(cluster, "three", "3g.40gb"), start(cluster, "one", "1g.10gb")
    assert three["sockets"] == set(uuids["3g.40gb"]) and len(one["sockets"]) == 1 and one["sockets"] < set(uuids["1g.10gb"])
    for seen in (three, one):
        assert seen["granted"] == seen["nodes"] and len(seen["granted"]) == 2, seen
        assert not seen["whole"] and not seen["other"], seen
    assert not three["granted"] & one["granted"]
    parent = next(d["uuid"] for d in cluster.json("get", "gpunode", NODE)["status"]["devices"] if d["index"] == 0)
    wait_for("bound events by slices", lambda: {
        (e["gpu"], e["profile"], e["share"]["num"], e["share"]["den"]) for e in cluster.events(NAMESPACE, "bound")} ==
        {(parent, "3g.40gb", 3, 7), (parent, "1g.10gb", 1, 7)})


def test_what_is_held_stays(configured):
    cluster = configured
    before, had = devices(cluster), amounts(cluster)
    choose(cluster, FULL)
    wait_for("refused", lambda: layout(cluster).get("migConfig") == FULL and layout(cluster)["migConfigState"] == "failed")
    assert "in use" in layout(cluster)["migConfigReason"]
    wait_for("failed", lambda: state(cluster) == "failed")
    conditions = cluster.json("get", "gpunode", NODE)["status"]["conditions"]
    assert [c["status"] for c in conditions if c["type"] == "MIGLayoutApplied"] == ["False"]
    assert devices(cluster) == before and amounts(cluster) == had
    choose(cluster, GROWN)
    wait_for("a slice more while others run",
             lambda: amounts(cluster) == {"gpu": 7, "mig-3g.40gb": 1, "mig-2g.20gb": 1, "mig-1g.10gb": 1}, 90)
    assert devices(cluster)["3g.40gb"] == before["3g.40gb"] and devices(cluster)["1g.10gb"][0] in before["1g.10gb"]
    assert {cluster.phase(NAMESPACE, name) for name in ("three", "one")} == {"Running"}


def test_a_busy_refusal_ends_with_the_pods(configured):
    cluster = configured
    choose(cluster, FULL)
    wait_for("refused", lambda: layout(cluster).get("migConfig") == FULL and layout(cluster)["migConfigState"] == "failed")
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "--all")
    wait_for("the layout when its slices are free", lambda: amounts(cluster) == {"gpu": 7, "mig-7g.80gb": 1}, 120)


def job(name):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
        "template": {"spec": {
            "schedulerName": "gpuaas", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "testbed.local/busybox:1",
                            "command": ["sh", "-c", "ls /run/gpuaas-emu; exec sleep 600"],
                            "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]}}}}


def device_of(cluster, name):
    """The Job's running pod's uid and MIG device, or None."""
    pods = cluster.json("-n", NAMESPACE, "get", "pods", "-l", f"batch.kubernetes.io/job-name={name}")["items"]
    pod = next((p for p in pods if p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")), None)
    found = pod and re.search(r"MIG-[0-9a-f-]{36}", cluster.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"]))
    return found and (pod["metadata"]["uid"], found.group())


def parts(cluster):
    found = cluster.json("get", "gpunode", NODE)["status"]["devices"]
    return {m["uuid"]: m for d in found if d["index"] == 0 for m in d.get("mig", [])}


def test_pods_leave_one_dead_device_alone(configured):
    cluster = configured
    choose(cluster, DEMO)
    wait_for("the slices", lambda: amounts(cluster) == {"gpu": 7, "mig-3g.40gb": 1, "mig-1g.10gb": 2}, 120)
    for name in ("unlucky", "bystander"):
        cluster.apply(json.dumps(job(name)))
    uid, uuid = wait_for("unlucky runs", lambda: device_of(cluster, "unlucky"))
    calm = wait_for("bystander runs", lambda: device_of(cluster, "bystander"))
    part = parts(cluster)[uuid]
    try:
        cluster.control(NODE, f"xid 0 48 {part['gpuInstance']} {part['computeInstance']}")
        fault = wait_for("its fault is told", lambda: parts(cluster)[uuid].get("fault", {}).get("pods") and parts(cluster)[uuid]["fault"])
        assert fault["dead"] and [p["uid"] for p in fault["pods"]] == [uid], fault
        wait_for("its pod is sent away", lambda: not device_of(cluster, "unlucky"))
        events = cluster.json("-n", NAMESPACE, "get", "events.events.k8s.io")["items"]
        notes = [e["note"] for e in events if e.get("reason") == "GPUDead"]
        assert notes and all(f"MIG device {uuid} of GPU 0 (" in n for n in notes), events
        others = [m for u, m in parts(cluster).items() if u != uuid]
        assert all(m["healthy"] and "fault" not in m for m in others) and device_of(cluster, "bystander") == calm
    finally:
        cluster.control(NODE, "restore 0")
    wait_for("it goes on when the device is back", lambda: device_of(cluster, "unlucky"), 120)
    cluster.kubectl("-n", NAMESPACE, "delete", "jobs", "--all")
    wait_for("their pods have ended", lambda: not cluster.json("-n", NAMESPACE, "get", "pods")["items"])


def check_slice_of_a_tenant(cluster, admin):
    wait_for("the quota counts the profile", lambda: "requests.nvidia.com/mig-1g.10gb" in cluster.kubectl_try(
        "get", "resourcequota", "-n", "slices", "gpuaas", "-o", "json").stdout)
    path = "/v1/tenants/slices/requests"
    made = admin.post(path, {"name": "one", "mig_profile": "1g.10gb", "image": "testbed.local/busybox:1", "cpu": "10m",
                             "command": ["sh", "-c"], "args": ["ls /dev/nvidia-caps; ls /run/gpuaas-emu; sleep 5"]})
    assert made["spec"]["mig_profile"] == "1g.10gb" and "gpus" not in made["spec"]
    wait_for("it has ended", lambda: admin.get("/v1/requests/slices.one")["state"] == "Succeeded", 120)
    log = admin.call("GET", "/v1/requests/slices.one/logs", accept="text/plain").decode()
    assert len(set(re.findall(r"MIG-[0-9a-f-]{36}", log))) == 1 and not re.findall(r"gpu-\d+\.sock", log), log
    assert len(re.findall(r"^nvidia-cap\d+$", log, re.M)) == 2, log
    wait_for("its bound event", lambda: {(e["profile"], e["share"]["num"], e["share"]["den"])
                                        for e in cluster.events("slices", "bound")} == {("1g.10gb", 1, 7)})
    with pytest.raises(gateway.Problem, match="could have"):
        admin.post(path, {"mig_profile": "7g.80gb", "image": "x.y/z:1"})


def test_a_request_for_a_slice(configured):
    """From the service to the bound event: one device of the profile, told by its slices."""
    cluster, admin = configured, configured.admin()
    admin.post("/v1/tenants", {"name": "slices", "quota": {"gpus": 1, "cpu": "8", "memory": "8Gi", "pods": 5}})
    try:
        check_slice_of_a_tenant(cluster, admin)
    finally:
        admin.call("DELETE", "/v1/tenants/slices")


def waiter(name, namespace=NAMESPACE, **spec):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "schedulerName": "gpuaas", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec,
        "containers": [{"name": "main", "image": "testbed.local/busybox:1", "command": ["sleep", "600"],
                        "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]}})


def scheduled(cluster, name):
    found = cluster.json("-n", NAMESPACE, "get", "pod", name)["status"].get("conditions", [])
    return next((c for c in found if c["type"] == "PodScheduled"), {})


def test_what_is_reserved_goes_to_its_tenant_alone(configured):
    cluster = configured
    choose(cluster, DEMO)
    wait_for("the slices", lambda: amounts(cluster) == {"gpu": 7, "mig-3g.40gb": 1, "mig-1g.10gb": 2}, 120)
    cluster.apply(json.dumps({"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "kept"}, "spec": {
        "reservations": [{"tenant": "mig-owner", "node": NODE, "profile": "1g.10gb", "count": 2}]}}))
    cluster.kubectl("create", "namespace", "mig-owner")
    try:
        for name, spec in (("past", {"schedulerName": "default-scheduler"}), ("placed", {"nodeName": NODE})):
            said = wait_for("refused", lambda name=name, spec=spec: (d := cluster.kubectl_try(
                "create", "--dry-run=server", "-f", "-", input=waiter(name, **spec))).returncode and d.stderr)
            assert "reserved for tenants" in said, said
        cluster.apply(waiter("other"))
        wait_for("others are told", lambda: "SliceReserved" in json.dumps(scheduled(cluster, "other")))
        cluster.apply(waiter("own", "mig-owner"))
        cluster.wait_phase("mig-owner", "own", ("Running",))
        assert scheduled(cluster, "other")["status"] == "False"
        choose(cluster, FULL)
        wait_for("the layout is refused", lambda: layout(cluster).get("migConfig") == FULL and layout(cluster)["migConfigState"] == "failed")
        cluster.kubectl("-n", "mig-owner", "delete", "pod", "own")
        wait_for("still, without a holder", lambda: "reserved" in layout(cluster).get("migConfigReason", ""), 60)
        assert len(devices(cluster)["1g.10gb"]) == 2 and scheduled(cluster, "other")["status"] == "False"
        choose(cluster, DEMO)
    finally:
        cluster.kubectl("delete", "gpupolicy", "kept")
        cluster.kubectl("delete", "namespace", "mig-owner")
    wait_for("who waited runs when it is lifted", lambda: cluster.phase(NAMESPACE, "other") == "Running")
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "other")


def test_unknown_and_impossible_layouts_change_nothing(configured):
    cluster = configured
    had = amounts(cluster)
    choose(cluster, "nothing")
    wait_for("refused", lambda: "there is no layout" in layout(cluster).get("migConfigReason", "") or
             "there is no GPUPolicy" in layout(cluster).get("migConfigReason", ""))
    bad = cluster.kubectl_try("apply", "-f", "-", input=json.dumps({
        "apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "bad"},
        "spec": {"layouts": {"x": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 9}}]}}}))
    assert bad.returncode != 0 and "mig-devices" in bad.stderr
    assert amounts(cluster) == had
