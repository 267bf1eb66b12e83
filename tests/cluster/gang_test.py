"""Gangs on a real API server with the real Job controller: annotations, Indexed Jobs, PodGroups of Kubernetes and
of the coscheduling plugin; nodes run nothing."""
import collections
import json
import subprocess
import urllib.error

import pytest
from apiserver import PROGRAMS, ApiServer, free_port
from scheduler_test import Scheduler, check_no_double, condition, prepare, wait_for

COSCHED = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.x-k8s.io",
                 "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"}},
    "spec": {"group": "scheduling.x-k8s.io", "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {
                               "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apiserver")
    # What 1.36 has of the API: alpha, off unless asked for.
    gates = ("--feature-gates", "GenericWorkload=true", "--runtime-config", "scheduling.k8s.io/v1alpha2=true")
    with ApiServer(folder, gates) as server:
        api = prepare(server)
        api.call("POST", "/api/v1/namespaces/a/serviceaccounts", {"metadata": {"name": "default"}})
        with open(folder / "controllers.log", "wb") as log:
            controllers = subprocess.Popen(
                [PROGRAMS / "kube-controller-manager", "--kubeconfig", server.kubeconfig, "--leader-elect=false",
                 "--controllers=job-controller", "--bind-address", "127.0.0.1", "--secure-port", str(free_port()),
                 "--cert-dir", folder / "controller-certs"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield api
        finally:
            controllers.kill()
            controllers.wait()


@pytest.fixture(scope="module")
def scheduler(api, tmp_path_factory):
    scheduler = Scheduler(api.server, tmp_path_factory.mktemp("scheduler"), "one")
    wait_for("a leader", scheduler.is_leading)
    yield scheduler
    scheduler.end()


@pytest.fixture(autouse=True)
def clean(api):
    yield
    for job in api.call("GET", "/apis/batch/v1/namespaces/a/jobs")["items"]:
        api.call("DELETE", f"/apis/batch/v1/namespaces/a/jobs/{job['metadata']['name']}?propagationPolicy=Background")
    api.delete_pods()
    wait_for("no pods", lambda: not [api.delete_pods() for _ in api.pods()])


def on_nodes(api):
    return [p for p in api.pods() if p["spec"].get("nodeName")]


def codes(pod):
    return condition(pod).get("message", "")


def gang(least, **more):
    return {"gpuaas.io/gang": "g", "gpuaas.io/gang-min": str(least),
            **{f"gpuaas.io/{key.replace('_', '-')}": value for key, value in more.items()}}


def test_none_of_a_gang_runs_until_all_fit(api, scheduler):
    for i in range(5):  # there are four nodes
        api.add_pod(f"m{i}", 8, annotations=gang(5))
    for i in range(5):
        wait_for("a reason", lambda i=i: "GangDoesNotFit" in codes(api.pods()[i]))
    assert not on_nodes(api)
    assert scheduler.metric("gpuaas_scheduler_gang_held_pods") == 5
    told = json.loads(scheduler.get("/explain/a/m0"))
    reason = next(r for r in told["reasons"] if r["code"] == "GangDoesNotFit")
    assert (reason["need"], reason["have"]) == ("5 pods", "4 pods")
    api.add_pod("small", 8)  # a gang that could never be whole keeps no node from others
    wait_for("the small one", lambda: len(on_nodes(api)) == 1)
    api.delete_pod("small")
    api.add_node("n4", {"zone": "z0"})
    try:
        wait_for("all of the gang", lambda: len(on_nodes(api)) == 5)
        assert scheduler.metric("gpuaas_scheduler_gang_held_pods") == 0
    finally:
        api.delete_pods()
        api.call("DELETE", "/api/v1/nodes/n4")
        api.call("DELETE", "/apis/gpuaas.io/v1alpha1/gpunodes/n4")


def test_members_that_contradict_each_other_are_told_the_field(api, scheduler):
    api.add_pod("m0", 1, annotations=gang(2))
    wait_for("a reason", lambda: "GangIncomplete" in codes(api.pods()[0]))
    api.add_pod("m1", 1, annotations=gang(3))
    wait_for("a refusal", lambda: "GangContradiction" in codes(api.pods()[1]))
    assert "gpuaas.io/gang-min" in codes(api.pods()[1])
    api.add_pod("other", 1)
    wait_for("another pod", lambda: len(on_nodes(api)) == 1)
    api.call("PATCH", "/api/v1/namespaces/a/pods/m1", {"metadata": {"annotations": gang(2)}},
             "application/merge-patch+json")
    wait_for("both", lambda: len(on_nodes(api)) == 3)


def test_an_indexed_job_says_how_many(api, scheduler):
    blocker = [api.add_pod(f"x{i}", 8) for i in range(2)]
    wait_for("the others", lambda: len(on_nodes(api)) == len(blocker))
    api.call("POST", "/apis/batch/v1/namespaces/a/jobs", {
        "metadata": {"name": "train"},
        "spec": {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "template": {
            "metadata": {"annotations": {"gpuaas.io/gang": "train"}},
            "spec": {"schedulerName": "gpuaas", "restartPolicy": "Never", "containers": [{
                "name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}}})
    wait_for("the members", lambda: sum("GangDoesNotFit" in codes(p) for p in api.pods()) == 3)
    assert len(on_nodes(api)) == 2
    api.delete_pod("x0")
    wait_for("all three", lambda: len(on_nodes(api)) == 4)
    check_no_double(api.pods())
    # A member that is gone is replaced, and its gang takes it in without starting anew.
    first = next(p for p in api.pods() if p["metadata"]["name"].startswith("train-0"))
    api.delete_pod(first["metadata"]["name"])
    wait_for("its successor", lambda: len(on_nodes(api)) == 4 and all(
        p["metadata"]["uid"] != first["metadata"]["uid"] for p in api.pods()))


def test_a_pod_group_of_kubernetes(api, scheduler):
    api.call("POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups", {
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "pg"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    for i in range(2):
        api.add_pod(f"m{i}", 1, schedulingGroup={"podGroupName": "pg"})
    wait_for("reasons", lambda: all("GangIncomplete" in codes(p) for p in api.pods()))
    api.add_pod("m2", 1, schedulingGroup={"podGroupName": "pg"})
    wait_for("all three", lambda: len(on_nodes(api)) == 3)
    api.call("DELETE", "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups/pg")


def test_a_pod_group_of_the_plugin_that_is_installed_later(api, scheduler):
    def label_pod(name):
        api.call("POST", "/api/v1/namespaces/a/pods", {
            "metadata": {"name": name, "labels": {"scheduling.x-k8s.io/pod-group": "cg"}},
            "spec": {"schedulerName": "gpuaas", "containers": [{
                "name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})

    label_pod("m0")
    wait_for("a reason", lambda: "how many" in codes(api.pods()[0]))
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", COSCHED)

    def create():
        try:
            return api.call("POST", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/podgroups", {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "cg"},
                "spec": {"minMember": 2}})
        except urllib.error.HTTPError:
            return None

    wait_for("the definition", create)
    label_pod("m1")
    wait_for("both", lambda: len(on_nodes(api)) == 2, patience_s=90)


def test_a_burst_of_gangs_is_whole_at_every_instant(api, scheduler):
    """24 gangs of four on four nodes of eight GPUs, two GPUs a member: four gangs at a time, though their members come mixed."""
    for k in range(4):
        for i in range(24):
            api.add_pod(f"g{i:02}-{k}", 2, annotations={"gpuaas.io/gang": f"g{i:02}", "gpuaas.io/gang-min": "4"})
    finished, begun = 0, collections.Counter()

    def step():
        nonlocal finished, begun
        pods = on_nodes(api)
        check_no_double(pods)
        running = collections.Counter(p["metadata"]["name"][:3] for p in pods)
        # Members are bound one after the other, so a gang may be seen in part: then the rest has its place already.
        assert len(running) <= 4, running
        assert all(running[name] >= count for name, count in begun.items()), (begun, running)
        begun = collections.Counter({name: count for name, count in running.items() if count < 4})
        for name, count in running.items():
            if count == 4:
                finished += 1
                for k in range(4):
                    api.delete_pod(f"{name}-{k}")
        return finished == 24

    wait_for("all gangs", step, patience_s=120)
