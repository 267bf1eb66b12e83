"""Bad input through the real gateway: a clear answer that says what to do, nothing half made."""
import json

import gateway
import pytest

from conftest import wait_for

TENANT = "gateway-test"
IMAGE = "testbed.local/gpuaas-workload:dev"


def refused(call, *arguments, status, code):
    """The call must be answered with this problem; returns its detail."""
    with pytest.raises(gateway.Problem) as caught:
        call(*arguments)
    assert caught.value.status == status, caught.value
    assert caught.value.problem["code"] == code, caught.value
    assert len(caught.value.problem["detail"]) > 10
    return caught.value.problem["detail"]


def body(**changes):
    return dict({"name": "job", "class": "training", "gpus": 1, "cpu": "100m", "memory": "64Mi",
                 "duration": 5, "image": IMAGE, "args": ["--seconds", "2", "--gpus", "1"]}, **changes)


@pytest.fixture(scope="module")
def admin(cluster):
    return cluster.admin()


@pytest.fixture(scope="module")
def member(cluster, admin):
    admin.post("/v1/tenants", {"name": TENANT, "quota": {"gpus": 4, "cpu": "4", "memory": "8Gi", "pods": 20}})
    wait_for("the tenant's namespace", lambda: cluster.kubectl(
        "get", "namespace", TENANT, "--ignore-not-found", "-o", "name"))
    admin.post(f"/v1/tenants/{TENANT}/members", {"user": "mia", "role": "member"})
    token = admin.post("/v1/tokens", {"user": "mia", "tenant": TENANT, "role": "member", "expires_in": "1h"})
    yield admin.as_user(token["token"])
    admin.call("DELETE", f"/v1/tenants/{TENANT}")


def test_names_of_tenants(admin, member):
    for name in ("Not-a-label", "a.b", "-a", "../x", "x" * 64, ""):
        with pytest.raises(gateway.Problem) as caught:
            admin.post("/v1/tenants", {"name": name})
        assert caught.value.status == 400, name
    for name in ("default", "kube-system", "gpuaas-system"):
        with pytest.raises(gateway.Problem):
            admin.post("/v1/tenants", {"name": name})
    refused(admin.post, "/v1/tenants", {"name": TENANT}, status=409, code="already_exists")


def test_what_no_node_can_run(admin, member):
    detail = refused(member.post, f"/v1/tenants/{TENANT}/requests", body(gpu_models=["V100"]),
                     status=422, code="impossible")
    assert "H100" in detail
    detail = refused(member.post, f"/v1/tenants/{TENANT}/requests", body(gpus=9), status=422, code="impossible")
    assert "8" in detail


def test_above_the_quota(member):
    detail = refused(member.post, f"/v1/tenants/{TENANT}/requests", body(gpus=5), status=422, code="quota_exceeded")
    assert "4" in detail and "5" in detail


def test_unknown_field_and_wrong_types(member):
    detail = refused(member.post, f"/v1/tenants/{TENANT}/requests", body(gpu=1), status=400, code="unknown_field")
    assert "gpu" in detail
    for changes in ({"gpus": 0}, {"gpus": "one"}, {"gpus": -1}, {"cpu": "lots"}, {"memory": "1 Gi"}, {"class": "urgent"}):
        with pytest.raises(gateway.Problem) as caught:
            member.post(f"/v1/tenants/{TENANT}/requests", body(**changes))
        assert caught.value.status == 400, changes


def test_tokens(admin, member):
    bad = ("", "gpx_", "gpx_" + "a" * 36, member.token[:-1] + ("a" if member.token[-1] != "a" else "b"))
    answers = set()
    for token in bad:
        with pytest.raises(gateway.Problem) as caught:
            admin.as_user(token).get("/v1/whoami")
        assert (caught.value.status, caught.value.problem["code"]) == (401, "token_invalid")
        answers.add(caught.value.problem["detail"])
    made = admin.post("/v1/tokens", {"user": "mia", "tenant": TENANT, "role": "member", "expires_in": "1h"})
    other = admin.as_user(made["token"])
    assert other.get("/v1/whoami")["tenant"] == TENANT
    admin.call("DELETE", f"/v1/tokens/{made['id']}")
    with pytest.raises(gateway.Problem) as caught:
        other.get("/v1/whoami")
    answers.add(caught.value.problem["detail"])
    assert len(answers) == 1


def test_what_belongs_to_others(admin, member):
    name = "gateway-other"
    admin.post("/v1/tenants", {"name": name, "quota": {"gpus": 1}})
    try:
        for method, path in (("GET", f"/v1/tenants/{name}"), ("GET", f"/v1/tenants/{name}/requests"),
                             ("DELETE", f"/v1/tenants/{name}"), ("GET", "/v1/audit/export"), ("GET", "/v1/prices")):
            with pytest.raises(gateway.Problem) as caught:
                member.call(method, path)
            assert caught.value.status in (403, 404), path
        with pytest.raises(gateway.Problem) as caught:
            member.post(f"/v1/tenants/{name}/requests", body())
        assert caught.value.status in (403, 404)
    finally:
        admin.call("DELETE", f"/v1/tenants/{name}")


def test_one_request_from_end_to_end(cluster, admin, member):
    path = f"/v1/tenants/{TENANT}/requests"
    first = member.post(path, body(), key="once")
    again = member.post(path, body(), key="once")
    assert again["id"] == first["id"] == f"{TENANT}.job"
    refused(member.post, path, body(), status=409, code="already_exists")
    done = wait_for("the request has ended", lambda: (
        lambda r: r["state"] in ("Succeeded", "Failed") and r)(member.get(f"/v1/requests/{first['id']}")), 90)
    assert done["state"] == "Succeeded", done
    pods = cluster.json("-n", TENANT, "get", "pods")["items"]
    assert len(pods) == 1
    log = member.call("GET", f"/v1/requests/{first['id']}/logs", accept="text/plain").decode()
    assert "GPU-" in log


def test_what_ends_by_itself_and_what_never_starts(cluster, admin, member):
    """A program that ends with 0 when its time is over is not run again; one that the node cannot
    start is tried again, twice."""
    path = f"/v1/tenants/{TENANT}/requests"
    slow = member.post(path, body(name="slow", duration=2, max_duration=4,
                                  args=["--seconds", "60", "--gpus", "1", "--term-code", "0"]))
    absent = member.post(path, body(name="absent", command=["/no/such/program"]))

    def ended(request, patience_s):
        return wait_for(f"{request['id']} has ended", lambda: (
            lambda r: r["state"] in ("Succeeded", "Failed") and r)(member.get(f"/v1/requests/{request['id']}")),
            patience_s)

    done = ended(slow, 60)
    assert (done["state"], done["reason"]) == ("Failed", "DeadlineExceeded"), done
    assert "GPU-" in member.call("GET", f"/v1/requests/{slow['id']}/logs", accept="text/plain").decode()
    done = ended(absent, 120)
    assert (done["state"], done["reason"], done["exit_code"]) == ("Failed", "StartError", 128), done
    assert "no such file" in done["message"] and "started" not in done
    names = [p["metadata"]["labels"]["gpuaas.io/request"] for p in cluster.json("-n", TENANT, "get", "pods")["items"]]
    assert (names.count(slow["id"]), names.count(absent["id"])) == (1, 3)


def test_tenants_cannot_lift_their_guards(cluster, member):
    """As a tenant's user would with kubectl: the plan annotation, privileged pods, host paths."""
    safe = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 65532,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    pods = {
        "good": {},
        "plan": {"metadata": {"annotations": {"gpuaas.io/devices": "[]"}}},
        "privileged": {"securityContext": {"privileged": True}},
        "host": {"spec": {"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]}},
        "node": {"spec": {"nodeName": "node1"}},
        "visible": {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
    }
    for name, change in pods.items():
        container = {"name": "main", "image": IMAGE, "securityContext": safe,
                     "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}, **{k: v for k, v in change.items() if k not in ("metadata", "spec")}}
        pod = {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": name, "namespace": TENANT, **change.get("metadata", {})},
               "spec": {"containers": [container], **change.get("spec", {})}}
        done = cluster.kubectl_try("apply", "--server-side", "--dry-run=server", "-f", "-", input=json.dumps(pod))
        # Without what is forbidden the same pod is let in: so it is that which is refused.
        assert (done.returncode == 0) == (name == "good"), (name, done.stderr)
        if name != "good":
            assert "ValidatingAdmissionPolicy 'gpuaas-" in done.stderr or "PodSecurity" in done.stderr, done.stderr


def test_an_agent_changes_labels_of_its_own_node_only(cluster):
    """With the identity of node1's agent."""
    cluster.kubectl("label", "node", "node2", "gpuaas.io/test-", "--overwrite")
    pod = next(p for p in cluster.json("-n", "gpuaas-system", "get", "pods", "-l", "app.kubernetes.io/name=gpuaas-agent")["items"]
               if p["spec"]["nodeName"] == "node1")
    token = cluster.kubectl("-n", "gpuaas-system", "create", "token", "gpuaas-agent", "--bound-object-kind", "Pod",
                            "--bound-object-name", pod["metadata"]["name"]).strip()
    as_agent = ("--kubeconfig", "/dev/null", "--server", cluster.api_url, "--insecure-skip-tls-verify",
                "--token", token)
    patches = {
        ("node1", '{"metadata":{"labels":{"gpuaas.io/test":"1"}}}'): True,
        ("node2", '{"metadata":{"labels":{"gpuaas.io/test":"1"}}}'): False,
        ("node1", '{"metadata":{"labels":{"kubernetes.io/hostname":"other"}}}'): False,
        ("node1", '{"spec":{"unschedulable":true}}'): False,
    }
    for (node, patch), allowed in patches.items():
        done = cluster.kubectl_try(*as_agent, "patch", "node", node, "-p", patch)
        assert (done.returncode == 0) == allowed, (node, patch, done.stderr)
        if not allowed:
            assert "gpuaas-node-labels" in done.stderr, done.stderr
    cluster.kubectl("label", "node", "node1", "gpuaas.io/test-")
