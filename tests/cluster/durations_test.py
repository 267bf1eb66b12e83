"""How long pods run, may run and must have run: gpuaas-scheduler against a real API server, with nodes that run
nothing."""
import datetime
import itertools
import json
import subprocess

import pytest
from apiserver import PROGRAMS, ApiServer
from queues_test import Cluster, prepare
from scheduler_test import Scheduler, wait_for
from server_test import ROOT


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Durations(Cluster):
    def pod(self, name, namespace):
        return next(p for p in self.pods(namespace) if p["metadata"]["name"] == name)

    def is_bound(self, name, namespace):
        return bool(self.pod(name, namespace)["spec"].get("nodeName"))

    def finish(self, name, namespace, seconds):
        """What the kubelet says of a pod whose containers have ended so long after its bind."""
        scheduled = next(c for c in self.pod(name, namespace)["status"]["conditions"] if c["type"] == "PodScheduled")
        bound = datetime.datetime.strptime(scheduled["lastTransitionTime"], "%Y-%m-%dT%H:%M:%SZ")
        ended = text(bound + datetime.timedelta(seconds=seconds))
        self.call("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {
            "phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted",
                                                  "lastTransitionTime": ended}]}},
                  "application/strategic-merge-patch+json")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("durations")) as server:
        yield prepare(Durations(server), ("gpuaas-system", "vision", "guest"))


@pytest.fixture
def scheduler(cluster, tmp_path):
    replica = Scheduler(cluster.server, tmp_path, "one")
    wait_for("leading", replica.is_leading)
    yield replica
    replica.end()
    for name in ("vision", "guest"):
        cluster.delete_pods(name)


def patch_as_scheduler(cluster, patch):
    """What the API server says when the chart's account changes the pod."""
    return subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", cluster.server.kubeconfig, "--as",
                           "system:serviceaccount:gpuaas-system:gpuaas-scheduler", "--as-group", "system:masters", "-n",
                           "guest", "patch", "pod", "guarded", "-p", json.dumps(patch)], capture_output=True, text=True,
                          check=False)


def test_the_scheduler_may_change_nothing_else_of_a_pod(cluster):
    chart = subprocess.run([PROGRAMS / "helm", "template", "gpuaas", ROOT / "deploy/chart/gpuaas", "-n", "gpuaas-system",
                            "--show-only=templates/admission.yaml"], check=True, capture_output=True, text=True).stdout
    guards = "\n---\n".join(text for text in chart.split("\n---\n") if "name: gpuaas-lengths" in text)
    subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", cluster.server.kubeconfig, "apply", "-f", "-"], check=True,
                   input=guards, text=True, capture_output=True)
    cluster.add_pod("guarded", 1, "guest")
    try:
        values, refusal = itertools.count(), "how long it may run"

        def change(kind):
            return {"metadata": {kind: {"x": f"v{next(values)}"}}}
        wait_for("guarded", lambda: refusal in patch_as_scheduler(cluster, change("annotations")).stderr)
        for patch in (change("labels"), {"spec": {"containers": [{"name": "c", "image": "z"}]}}):
            assert refusal in patch_as_scheduler(cluster, patch).stderr
        done = patch_as_scheduler(cluster, {"spec": {"activeDeadlineSeconds": 60}})
        assert done.returncode == 0, done.stderr
    finally:
        cluster.delete_pod("guarded", "guest")


def expected(scheduler, pod):
    return json.loads(scheduler.get(f"/explain/{pod}")).get("duration")


def test_a_tenants_longest_time_is_its_pods(cluster, scheduler):
    cluster.set_queue("lab", {"maxRunSeconds": 600})
    cluster.set_queue("vision", {"parent": "lab"})
    for name, spec in (("none", {}), ("short", {"activeDeadlineSeconds": 100}), ("long", {"activeDeadlineSeconds": 5000})):
        cluster.add_pod(name, 1, "vision", **spec)
    cluster.add_pod("free", 1, "guest")

    def longest(name, namespace="vision"):
        return cluster.pod(name, namespace)["spec"].get("activeDeadlineSeconds")
    wait_for("set where absent or longer", lambda: longest("none") == longest("long") == 600)
    wait_for("bound", lambda: cluster.is_bound("short", "vision") and cluster.is_bound("free", "guest"))
    assert longest("short") == 100 and longest("free", "guest") is None
    assert expected(scheduler, "vision/none") == {"seconds": 600, "source": "tenant"}
    assert expected(scheduler, "vision/short") == {"seconds": 100, "source": "tenant"}
    assert expected(scheduler, "guest/free") is None


def test_a_deadline_that_cannot_be_met_is_told(cluster, scheduler):
    cluster.add_pod("all", 8, "guest")
    wait_for("bound", lambda: cluster.is_bound("all", "guest"))
    soon, later = text(now() + datetime.timedelta(seconds=65)), text(now() + datetime.timedelta(hours=2))
    for name, deadline in (("soon", soon), ("later", later)):
        cluster.add_pod(name, 8, "guest", annotations={"gpuaas.io/duration": "60", "gpuaas.io/deadline": deadline})
    wait_for("waits", lambda: "InsufficientResource" in cluster.told("soon", "guest"))
    wait_for("too late", lambda: "DeadlineUnreachable" in cluster.told("soon", "guest"), 60)
    assert "DeadlineUnreachable" not in cluster.told("later", "guest")
    codes = [r["code"] for r in json.loads(scheduler.get("/explain/guest/soon"))["reasons"]]
    assert codes == ["DeadlineUnreachable", "InsufficientResource"]
    cluster.call("PATCH", "/api/v1/namespaces/guest/pods/soon",
                 {"metadata": {"annotations": {"gpuaas.io/deadline": later}}}, "application/merge-patch+json")
    wait_for("moved", lambda: "DeadlineUnreachable" not in cluster.told("soon", "guest"), 60)


def test_a_window_is_kept_from_those_who_might_not_end_before(cluster, scheduler):
    begin, end = (text(now() + datetime.timedelta(hours=hours)) for hours in (1, 2))

    def set_windows(*windows):
        cluster.call("PATCH", "/apis/gpuaas.io/v1alpha1/tenants/vision", {"spec": {"windows": windows}},
                     "application/merge-patch+json")
    cluster.set_queue("vision", {})
    set_windows({"name": "course", "gpus": 6, "start": begin, "end": end})
    held = 'gpuaas_scheduler_window_gpus{tenant="vision",window="course",state="held"} 6'
    wait_for("held", lambda: held in scheduler.get("/metrics"))
    cluster.add_pod("beside", 2, "guest")
    wait_for("what it leaves is anybody's", lambda: cluster.is_bound("beside", "guest"))
    cluster.add_pod("open-ended", 1, "guest")
    wait_for("kept", lambda: "ReservedForWindow" in cluster.told("open-ended", "guest"))
    cluster.add_pod("brief", 1, "guest", annotations={"gpuaas.io/duration": "600"})
    wait_for("ends before", lambda: cluster.is_bound("brief", "guest"))
    cluster.add_pod("own", 5, "vision")
    wait_for("the tenant's own", lambda: cluster.is_bound("own", "vision"))
    have = json.loads(scheduler.get("/explain/guest/open-ended"))["reasons"]
    assert [r["code"] for r in have] == ["InsufficientResource"], have
    cluster.delete_pod("own", "vision")
    wait_for("kept again", lambda: "ReservedForWindow" in cluster.told("open-ended", "guest"))
    set_windows()
    wait_for("taken away", lambda: cluster.is_bound("open-ended", "guest"))


def test_what_ended_is_learned_and_read_again_by_the_next_leader(cluster, scheduler, tmp_path):
    for i in range(8):
        cluster.add_pod(f"t{i}", 1, "guest")
    wait_for("bound", lambda: len(cluster.running("guest")) == 8)
    for i in range(8):
        cluster.finish(f"t{i}", "guest", 1000)
    cluster.add_pod("next", 1, "guest")
    wait_for("room", lambda: cluster.is_bound("next", "guest"))
    learned = expected(scheduler, "guest/next")
    assert learned["source"] == "learned" and learned["seconds"] < 100, "by this leader's own clock they were short"
    scheduler.end()
    other = Scheduler(cluster.server, tmp_path, "two")
    try:
        wait_for("leading", other.is_leading, 60)
        cluster.add_pod("after", 1, "guest")
        wait_for("bound", lambda: cluster.is_bound("after", "guest"))

        def is_known():
            cluster.delete_pod("after", "guest")
            cluster.add_pod("after", 1, "guest")
            wait_for("seen", lambda: "error" not in json.loads(other.get("/explain/guest/after")))
            told = expected(other, "guest/after")
            return told and told["source"] == "learned" and 800 <= told["seconds"] <= 1250
        wait_for("read from the API server", is_known)
    finally:
        other.end()
