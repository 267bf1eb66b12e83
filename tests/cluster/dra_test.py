"""GPUs and MIG devices by dynamic resource allocation on one node, with the cluster's own scheduler, ours, and a real kubelet:
a pod gets exactly the devices of its claim, also over kill -9 of the agent and restarts of the kubelet, and all of it is billed."""
import json
import re

import pytest
from conftest import installed, wait_for

NAMESPACE, NODE, DRIVER, SLICE = "dra", "node1", "gpu.gpuaas.io", "node1-gpu.gpuaas.io"
AGENT = "system:serviceaccount:gpuaas-system:gpuaas-agent"


@pytest.fixture(scope="module")
def dra(cluster):
    """node1 gives its GPUs to claims, the others as before."""
    with installed(cluster, {"agent": {"dra": {"nodes": [NODE], "extendedResourceName": "example.com/gpu"}}}, NAMESPACE):
        attributes = f"device.attributes['{DRIVER}']"
        for name, count in (("one", 1), ("rest", 6), ("five", 5), ("foreign", 1), ("3g.40gb", 1), ("1g.10gb", 1)):
            expression = {"foreign": "device.driver.matches('nic')", "3g.40gb": f"{attributes}.profile == '3g.40gb'",
                          "1g.10gb": f"{attributes}.profile == '1g.10gb'"}.get(name, f"{attributes}.architecture == 'ampere'")
            request = {"deviceClassName": "mig.gpuaas.io" if name[0].isdigit() else DRIVER, "count": count,
                       "selectors": [{"cel": {"expression": expression}}]}
            cluster.apply(json.dumps({
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}}))
        yield cluster


def pod(cluster, name, template="one", gpus=1, ours=False, **resources):
    container = {"name": "main", "image": "testbed.local/gpuaas-workload:dev",
                 "args": ["--seconds", "3600", "--memory-mib", "512", "--util-milli", "300", "--gpus", str(gpus)],
                 "resources": resources or {"claims": [{"name": "gpu"}]}}
    if template[0].isdigit():  # the workload runs on whole GPUs
        container.update(image="testbed.local/busybox:1", args=["sh", "-c", "ls /dev/nvidia-caps /run/gpuaas-emu; exec sleep 3600"])
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    if ours:
        spec["schedulerName"] = "gpuaas"
    if not resources:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}))


def the_slice(cluster):
    items = cluster.json("get", "resourceslices", "--field-selector", f"spec.driver={DRIVER}")["items"]
    return next((s for s in items if s["metadata"]["name"] == SLICE), None)


def full_slice(cluster):
    found = the_slice(cluster)
    return found and len(found["spec"]["devices"]) == 8 and found


def granted(cluster, name):
    """UUIDs that the container itself sees; a kubelet that has just begun does not know it yet."""
    return wait_for(f"{name} tells its devices", lambda: set(re.findall(
        r"(?:GPU|MIG)-[0-9a-f-]{36}", cluster.kubectl("-n", NAMESPACE, "logs", name, check=False))))


def allocated(cluster, name):
    claims = cluster.json("-n", NAMESPACE, "get", "resourceclaims")["items"]
    mine = next(c for c in claims if any(r["name"] == name for r in c["status"].get("reservedFor", [])))
    return {r["device"][:3].upper() + r["device"][3:] for r in mine["status"]["allocation"]["devices"]["results"]}


def files(cluster):
    return set(re.findall(r"gpuaas\.io-claim-\S+\.json", cluster.exec_node(NODE, "ls", "/var/run/cdi").stdout))


def test_the_pool_of_the_node(dra):
    found = wait_for("the slice", lambda: full_slice(dra))
    gpu_node = dra.json("get", "gpunode", NODE)["status"]["devices"]
    assert {d["attributes"]["uuid"]["string"] for d in found["spec"]["devices"]} == {d["uuid"] for d in gpu_node}
    one = found["spec"]["devices"][0]
    assert one["attributes"]["cudaComputeCapability"] == {"version": "8.0.0"} and one["capacity"]["memory"]["value"] == "80Gi"
    assert found["metadata"]["ownerReferences"][0]["name"] == NODE
    # The kubelet forgets what the plugin of before offered when it has seen its socket go.
    wait_for("never both ways", lambda: dra.json("get", "node", NODE)["status"]["allocatable"].get(
        "nvidia.com/gpu", "0") == "0", 90)
    wait_for("the plugin on the other node", lambda: dra.json("get", "node", "node2")["status"]["allocatable"].get(
        "nvidia.com/gpu", "0") == "8", 90)


def test_nobody_writes_the_slices_of_another_node(dra):
    body = the_slice(dra)
    body["metadata"] = {"name": "forged"}
    for node, is_good in ((None, False), ("node2", False), (NODE, True)):
        extra = [f"--as-user-extra=authentication.kubernetes.io/node-name={node}"] if node else []
        done = dra.kubectl_try("create", "--dry-run=server", "-f", "-", f"--as={AGENT}", *extra, input=json.dumps(body))
        assert (done.returncode == 0) == is_good, (node, done.stderr)


def test_a_slice_of_before_goes(dra):
    body = the_slice(dra)
    body["metadata"] = {"name": "node1-of-an-older-version"}
    body["spec"]["pool"]["generation"] = 1
    dra.apply(json.dumps(body))
    wait_for("the old slice has gone", lambda: "older" not in dra.kubectl("get", "resourceslices"))
    dra.kubectl("delete", "resourceslice", SLICE)
    wait_for("the slice is there again", lambda: full_slice(dra))


def test_each_pod_gets_its_devices_and_one_waits(dra):
    for name in ("a", "b"):
        pod(dra, name)
    pod(dra, "six", "rest", 6)
    for name in ("a", "b", "six"):
        dra.wait_phase(NAMESPACE, name, ("Running",))
    seen = [granted(dra, name) for name in ("a", "b", "six")]
    assert [len(s) for s in seen] == [1, 1, 6] and len(set.union(*seen)) == 8
    assert seen == [allocated(dra, name) for name in ("a", "b", "six")]
    assert len(files(dra)) == 3
    pod(dra, "late")
    wait_for("it waits", lambda: any("cannot allocate all claims" in c.get("message", "") for c in dra.json(
        "-n", NAMESPACE, "get", "pod", "late")["status"].get("conditions", [])))
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "a")
    dra.wait_phase(NAMESPACE, "late", ("Running",))
    assert granted(dra, "late") == seen[0]


def test_kill_between_prepare_and_unprepare(dra):
    before = granted(dra, "b")
    dra.kill_agent(NODE)
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "b")
    pod(dra, "after-kill")
    dra.wait_phase(NAMESPACE, "after-kill", ("Running",))
    assert granted(dra, "after-kill") == before == allocated(dra, "after-kill")
    wait_for("files of three claims", lambda: len(files(dra)) == 3)


def test_restarted_kubelet(dra):
    first = the_slice(dra)["metadata"]["uid"]
    dra.restart("kubelet", NODE)
    wait_for("the slice is made anew", lambda: (s := full_slice(dra)) and s["metadata"]["uid"] != first, 120)
    assert dra.phase(NAMESPACE, "six") == "Running"
    held = granted(dra, "late")
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "late")
    pod(dra, "after-restart")
    dra.wait_phase(NAMESPACE, "after-restart", ("Running",), 120)
    assert granted(dra, "after-restart") == held


def test_unhealthy_device(dra):
    uuid = next(iter(granted(dra, "after-restart")))
    index = next(d["index"] for d in dra.json("get", "gpunode", NODE)["status"]["devices"] if d["uuid"] == uuid)

    def taints():
        device = next(d for d in the_slice(dra)["spec"]["devices"] if d["attributes"]["uuid"]["string"] == uuid)
        return {(t["key"], t.get("value"), t["effect"]) for t in device.get("taints", [])}

    def health():
        container = dra.json("-n", NAMESPACE, "get", "pod", "after-restart")["status"]["containerStatuses"][0]
        return [r["health"] for s in container.get("allocatedResourcesStatus", []) for r in s["resources"]]

    with dra.dead_gpu(NODE, index):
        wait_for("a taint", lambda: {(k, e) for k, _, e in taints()} == {(f"{DRIVER}/unhealthy", "NoSchedule")})
        assert {v for _, v, _ in taints()} <= {"xid", "recovery"}
        wait_for("the pod knows", lambda: health() == ["Unhealthy"], 90)
        dra.kubectl("-n", NAMESPACE, "delete", "pod", "after-restart")
        pod(dra, "waits-for-health")
        wait_for("it waits", lambda: any("cannot allocate all claims" in c.get("message", "") for c in dra.json(
            "-n", NAMESPACE, "get", "pod", "waits-for-health")["status"].get("conditions", [])))
    dra.wait_phase(NAMESPACE, "waits-for-health", ("Running",), 120)
    assert granted(dra, "waits-for-health") == {uuid} and not taints()


def test_a_resource_backed_by_a_claim(dra):
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "six")
    pod(dra, "by-resource", limits={"example.com/gpu": "2"}, gpus=2)
    dra.wait_phase(NAMESPACE, "by-resource", ("Running",), 120)
    assert len(granted(dra, "by-resource")) == 2


def test_all_of_it_is_billed(dra):
    uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in dra.json("-n", NAMESPACE, "get", "pods")["items"]}
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "--all")
    # a, b, late, after-kill, after-restart, waits-for-health: one each; six: six; by-resource: two.
    wanted = {"a": 1, "b": 1, "six": 6, "late": 1, "after-kill": 1, "after-restart": 1, "waits-for-health": 1, "by-resource": 2}

    def counts(kind):
        found = {}
        for event in dra.events(NAMESPACE, kind):
            assert (event["share"]["num"], event["share"]["den"]) == (1, 1) if kind == "bound" else True
            assert event.get("container") == "main", event
            found[event["pod"]] = found.get(event["pod"], 0) + 1
        return found

    wait_for("every grant is told bound", lambda: counts("bound") == wanted, 90)
    wait_for("and released", lambda: counts("released") == wanted, 90)
    assert {e["pod_uid"] for e in dra.events(NAMESPACE, "bound")} >= set(uids.values())
    wait_for("no file is left", lambda: not files(dra))
    overlaps = {}
    for event in sorted(dra.events(NAMESPACE, "bound", "released"), key=lambda e: (e["t"], e["type"] == "bound")):
        overlaps[event["gpu"]] = overlaps.get(event["gpu"], 0) + (1 if event["type"] == "bound" else -1)
        assert 0 <= overlaps[event["gpu"]] <= 1, event


def reason(cluster, name):
    conditions = cluster.json("-n", NAMESPACE, "get", "pod", name)["status"].get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def test_our_scheduler_allocates(dra):
    """The same claims by gpuaas, beside pods of kube-scheduler: each gets its own devices, who waits says why."""
    pod(dra, "theirs")
    for name in ("our-a", "our-b"):
        pod(dra, name, ours=True)
    pod(dra, "our-five", "five", 5, ours=True)
    names = ("theirs", "our-a", "our-b", "our-five")
    for name in names:
        dra.wait_phase(NAMESPACE, name, ("Running",))
    seen = [granted(dra, name) for name in names]
    assert [len(s) for s in seen] == [1, 1, 1, 5] and len(set.union(*seen)) == 8
    assert seen == [allocated(dra, name) for name in names]
    pod(dra, "our-late", ours=True)
    pod(dra, "foreign", "foreign", ours=True)
    wait_for("it says why", lambda: "ResourceClaimUnsatisfied" in reason(dra, "our-late"))
    wait_for("so does the other", lambda: "UnsupportedResourceClaim" in reason(dra, "foreign"))
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "our-b")
    dra.wait_phase(NAMESPACE, "our-late", ("Running",))
    assert granted(dra, "our-late") == seen[2] == allocated(dra, "our-late")
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "--all")
    wait_for("no file is left", lambda: not files(dra))
    wait_for("all is billed", lambda: sum(e["pod"].startswith("our-") for e in dra.events(NAMESPACE, "released")) == 8, 90)


def test_a_refused_bind_takes_the_allocation_back(dra):
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "refuse-binds"}}
    dra.apply(json.dumps({**policy, "kind": "ValidatingAdmissionPolicy", "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}]},
        "validations": [{"expression": "object.metadata.name != 'our-refused'", "message": "not now"}]}}))
    dra.apply(json.dumps({**policy, "kind": "ValidatingAdmissionPolicyBinding", "spec": {
        "policyName": "refuse-binds", "validationActions": ["Deny"]}}))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "our-refused", "namespace": NAMESPACE},
               "target": {"kind": "Node", "name": "none"}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/our-refused/binding?dryRun=All"

    def is_in_force():
        return "not now" in dra.kubectl_try("create", "--raw", path, "-f", "-", input=json.dumps(binding)).stderr

    def claim():
        claims = dra.json("-n", NAMESPACE, "get", "resourceclaims")["items"]
        return next((c for c in claims if c["metadata"]["name"].startswith("our-refused-")), None)

    try:
        wait_for("binds are refused", is_in_force)
        pod(dra, "our-refused", ours=True)
        wait_for("it is tried", lambda: "BindFailed" in reason(dra, "our-refused"))
        wait_for("the claim is as before", lambda: claim() and not claim().get("status"))
    finally:
        dra.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "refuse-binds")
    dra.wait_phase(NAMESPACE, "our-refused", ("Running",), 90)
    assert granted(dra, "our-refused") == allocated(dra, "our-refused")
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "our-refused")


@pytest.fixture
def parts(dra):
    """GPU 0 in parts: profile -> what the slice says of the device."""
    for line in ("on", "create 3g.40gb 0", "create 1g.10gb 4"):
        dra.control(NODE, f"mig 0 {line}")

    def found():
        devices = [d for d in the_slice(dra)["spec"]["devices"] if d["attributes"]["type"]["string"] == "mig"]
        by_profile = {d["attributes"]["profile"]["string"]: d for d in devices}
        return len(the_slice(dra)["spec"]["devices"]) == 9 and set(by_profile) == {"3g.40gb", "1g.10gb"} and by_profile

    yield wait_for("its parts in the slice", found)
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "--all")
    wait_for("no file is left", lambda: not files(dra))
    dra.control(NODE, "restore 0")
    dra.control(NODE, "mig 0 destroy all")
    dra.control(NODE, "mig 0 off")
    wait_for("whole again", lambda: full_slice(dra))


def test_mig_devices(dra, parts):
    """By both schedulers: each pod gets its instance with its capabilities, and pays its slices."""
    uuid = {profile: d["attributes"]["uuid"]["string"] for profile, d in parts.items()}
    parent = {d["attributes"]["parentUUID"]["string"] for d in parts.values()}
    assert parts["1g.10gb"]["capacity"]["memory"]["value"].endswith("Mi") and len(parent) == 1
    pod(dra, "their-slice", "1g.10gb")
    pod(dra, "our-slice", "3g.40gb", ours=True)
    for name, profile in (("their-slice", "1g.10gb"), ("our-slice", "3g.40gb")):
        dra.wait_phase(NAMESPACE, name, ("Running",))
        assert granted(dra, name) == allocated(dra, name) == {uuid[profile]}
        assert len(re.findall(r"nvidia-cap\d+", dra.kubectl("-n", NAMESPACE, "logs", name))) == 2
    pod(dra, "our-late-slice", "1g.10gb", ours=True)
    wait_for("it says why", lambda: "ResourceClaimUnsatisfied" in reason(dra, "our-late-slice"))
    dra.kill_agent(NODE)
    dra.kubectl("-n", NAMESPACE, "delete", "pod", "their-slice")
    dra.wait_phase(NAMESPACE, "our-late-slice", ("Running",))
    assert granted(dra, "our-late-slice") == {uuid["1g.10gb"]}
    part = next(m for d in dra.json("get", "gpunode", NODE)["status"]["devices"] for m in d.get("mig", []) if m["profile"] == "3g.40gb")
    dra.control(NODE, f"xid 0 48 {part['gpuInstance']} {part['computeInstance']}")
    wait_for("its taint alone", lambda: [d["attributes"]["uuid"]["string"] for d in the_slice(dra)["spec"]["devices"]
                                         if d.get("taints")] == [uuid["3g.40gb"]])
    wanted = {("their-slice", "1g.10gb", 1, 7), ("our-slice", "3g.40gb", 3, 7), ("our-late-slice", "1g.10gb", 1, 7)}
    wait_for("all is billed by slices", lambda: {
        (e["pod"], e["profile"], e["share"]["num"], e["share"]["den"]) for e in dra.events(NAMESPACE, "bound")
        if e.get("profile") and {e["gpu"]} == parent} == wanted, 90)
