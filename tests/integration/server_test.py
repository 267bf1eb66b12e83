"""The gateway over TLS, without Kubernetes: bad input, rights, repetitions, limits, crashes."""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from serverkit import PROGRAM, Server, certificate, token_make

BODY = {"gpus": 1, "image": "registry.example/team/train:1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("server")).start()
    made.tenant("red", {"gpus": 4, "cpu": "8", "memory": "64Gi", "pods": 10})
    made.tenant("blue")
    yield made
    assert made.stop() == 0
    done = made.audit_verify()
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def member(server):
    return server.token("red", "mia")[0]


@pytest.fixture(scope="module")
def stranger(server):
    return server.token("blue", "bob", "tenant-admin")[0]


def refused(answer, status, code):
    assert (answer.status, answer.code) == (status, code), answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert len(answer.json["detail"]) > 10
    assert answer.json["request_id"] == answer.headers["X-Request-Id"]
    assert answer.json["type"] == f"urn:gpuaas:problem:{code}"
    return answer.json


# ---- tokens

def test_every_bad_token_gets_the_same_answer(server):
    text, made_id = server.token("red", "eve")
    brief, _ = server.token("red", "eve", expires_in=60)
    assert server.get("/v1/whoami", token=text).status == 200
    assert server.call("DELETE", f"/v1/tokens/{made_id}").status == 200
    expire(server, "eve")
    bad = [None, "x", "gpx_", "gpx_" + "a" * 36, token_make(), text, brief, text[:-1], text + "a",
           "eyJhbGciOiJub25lIn0.e30.", "gpx_" + "é" * 3]
    bodies = set()
    for token in bad:
        header = None if token is None else {"Authorization": f"Bearer {token}".encode("utf-8").decode("latin-1")}
        answer = server.call("GET", "/v1/whoami", token=None, headers=header)
        refused(answer, 401, "token_invalid")
        bodies.add(re.sub(rb'"request_id":"[^"]*"', b"", answer.body))
    assert len(bodies) == 1
    for value in ("Basic abc", "gpx_abc", "Bearer"):
        refused(server.call("GET", "/v1/whoami", token=None, headers={"Authorization": value}), 401, "token_invalid")


def expire(server, subject):
    """As if the time had passed: the shortest life of a token is a minute."""
    server.store.sql(f"UPDATE tokens SET expires_s = 1 WHERE subject = '{subject}'")


def test_a_token_is_shown_once_and_kept_as_a_hash(server):
    text, _ = server.token("red", "ida")
    listed = server.get("/v1/tokens").body
    assert text.encode() not in listed
    assert text.encode() not in server.store.content()
    for path in [*server.audit_files(), server.folder / "server.log"]:
        assert text.encode() not in path.read_bytes()


def test_revoking_acts_at_once(server):
    text, made_id = server.token("red", "leo")
    assert server.get("/v1/whoami", token=text).json["tenant"] == "red"
    assert server.call("DELETE", f"/v1/tokens/{made_id}").json["state"] == "revoked"
    assert server.get("/v1/whoami", token=text).status == 401


def test_a_member_who_leaves_loses_everything(server):
    text, _ = server.token("red", "kim", "tenant-admin")
    assert server.get("/v1/tokens", token=text).status == 200
    server.post("/v1/tenants/red/members", {"user": "kim", "role": "member"})
    assert server.get("/v1/whoami", token=text).json["role"] == "member"
    refused(server.get("/v1/tokens", token=text), 403, "forbidden")
    assert server.call("DELETE", "/v1/tenants/red/members/kim").status == 200
    assert server.get("/v1/whoami", token=text).status == 401


def test_a_later_tenant_of_the_name_is_another(tmp_path):
    """Deleted past the server, as kubectl does: what was given out for it opens nothing of a later one."""
    server = Server(tmp_path).start()
    server.tenant("red")
    old, _ = server.token("red", "mia", "tenant-admin")
    assert server.get("/v1/whoami", token=old).status == 200
    assert server.stop() == 0
    server.store.sql("DELETE FROM objects WHERE kind = 'Tenant'")
    server.start()
    refused(server.get("/v1/whoami", token=old), 401, "token_invalid")
    server.tenant("red")
    refused(server.get("/v1/whoami", token=old), 401, "token_invalid")
    assert server.get("/v1/tenants/red/members").json["items"] == []
    refused(server.post("/v1/tokens", {"user": "mia", "tenant": "red", "role": "member"}), 422, "not_a_member")
    fresh, fresh_id = server.token("red", "mia", "tenant-admin")
    refused(server.get("/v1/whoami", token=old), 401, "token_invalid")
    assert [row["id"] for row in server.get("/v1/tokens", token=fresh).json["items"]] == [fresh_id]
    assert server.stop() == 0


def test_nobody_gives_more_than_they_have(server, stranger):
    make = lambda **body: server.post("/v1/tokens", body, token=stranger)  # noqa: E731
    refused(make(role="platform-admin"), 403, "forbidden")
    refused(make(role="agent", user="node1"), 403, "forbidden")
    refused(make(role="member", user="mia", tenant="red"), 404, "not_found")
    refused(make(role="tenant-admin", user="nobody"), 422, "not_a_member")
    refused(make(role="root"), 400, "invalid_field")
    assert make(role="member", user="bob").status == 201


# ---- rights

def test_what_belongs_to_others_does_not_exist(server, member, stranger):
    made = server.post("/v1/tenants/red/requests", {**BODY, "name": "mine"}, token=member)
    assert made.status == 201, made
    ghost = server.get("/v1/requests/red.ghost", token=member)
    for method, path in (("GET", "/v1/tenants/red"), ("DELETE", "/v1/tenants/red"), ("PATCH", "/v1/tenants/red"),
                         ("GET", "/v1/tenants/red/members"), ("GET", "/v1/tenants/red/requests"),
                         ("GET", "/v1/requests/red.mine"), ("DELETE", "/v1/requests/red.mine"),
                         ("GET", "/v1/requests/red.mine/explain"), ("GET", "/v1/requests/red.mine/logs"),
                         ("GET", "/v1/requests?tenant=red"), ("GET", "/v1/tokens?tenant=red"),
                         ("GET", "/v1/events?tenant=red"), ("GET", "/v1/bills?tenant=red&from=2026-01-01T00:00:00Z"
                                                            "&to=2026-01-02T00:00:00Z")):
        body = {"display_name": "x"} if method == "PATCH" else None
        refused(server.call(method, path, body, token=stranger), 404, "not_found")
    refused(ghost, 404, "not_found")
    refused(server.post("/v1/tenants/red/requests", BODY, token=stranger), 404, "not_found")
    assert [r["id"] for r in server.get("/v1/requests", token=stranger).json["items"]] == []
    assert [t["name"] for t in server.get("/v1/tenants", token=stranger).json["items"]] == ["blue"]


def test_members_do_no_admin_work(server, member):
    for method, path, body in (("POST", "/v1/tenants", {"name": "green"}), ("DELETE", "/v1/tenants/red", None),
                               ("POST", "/v1/tenants/red/members", {"user": "x", "role": "member"}),
                               ("POST", "/v1/tokens", {"role": "member"}), ("GET", "/v1/tokens", None),
                               ("GET", "/v1/prices", None), ("POST", "/v1/assets", {}), ("GET", "/v1/events", None),
                               ("GET", "/v1/audit/export", None), ("GET", "/v1/audit/checkpoint", None)):
        refused(server.call(method, path, body, token=member), 403, "forbidden")
    assert server.get("/v1/audit/export").status == 200


def test_one_path_one_spelling(server, member):
    for path in ("/v1/../v1/audit/export", "/v1/audit%2fexport", "/v1//audit/export", "/healthz/../v1/audit/export",
                 "/v1/audit/export/", "/V1/audit/export", "/v1/audit/export;x"):
        assert server.get(path, token=member).status in (400, 404), path


# ---- bad input

def test_names_of_tenants(server):
    for name in ("Not-a-label", "a.b", "-a", "a-", "../x", "x" * 64, "x" * 31, "", "ü", 5, None, ["a"]):
        refused(server.post("/v1/tenants", {"name": name}), 400, "invalid_field")
    for name in ("default", "kube-system", "gpuaas-system", "kube-x"):
        assert "reserved" in refused(server.post("/v1/tenants", {"name": name}), 400, "invalid_field")["detail"]
    refused(server.post("/v1/tenants", {}), 400, "missing_field")
    refused(server.post("/v1/tenants", {"name": "red"}), 409, "already_exists")
    assert {t["name"] for t in server.get("/v1/tenants").json["items"]} == {"red", "blue"}


def test_unknown_fields_and_wrong_types(server, member):
    path = "/v1/tenants/red/requests"
    problem = refused(server.post(path, {**BODY, "gpu": 1}, token=member), 400, "unknown_field")
    assert problem["field"] == "gpu" and "gpus" in problem["detail"]
    assert refused(server.post("/v1/tenants", {"name": "x", "quota": {"gpu": 1}}), 400,
                   "unknown_field")["field"] == "quota.gpu"
    for changes in ({"gpus": 0}, {"gpus": "one"}, {"gpus": -1}, {"gpus": 1.5}, {"cpu": "lots"}, {"memory": "1 Gi"},
                    {"class": "urgent"}, {"image": ""}, {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
                    {"duration": 100, "max_duration": 10}):
        refused(server.post(path, {**BODY, **changes}, token=member), 400, "invalid_field")
    refused(server.post("/v1/tenants/red/requests", {"gpus": 1}, token=member), 400, "missing_field")
    refused(server.get("/v1/requests?colour=red", token=member), 400, "unknown_parameter")
    refused(server.get("/v1/requests?limit=0", token=member), 400, "invalid_parameter")
    assert "red.x" not in {r["id"] for r in server.get("/v1/requests").json["items"]}


def test_malformed_bodies(server):
    for body in (b"{", b"", b"[]", b"null", b'{"name":"a","name":"b"}', b"\xff\xfe", b'{"name":"\xff"}',
                 b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"name":"a\\u0000b"}'):
        answer = server.call("POST", "/v1/tenants", body, headers={"Content-Type": "application/json"})
        assert answer.status == 400, (body[:40], answer)
    refused(server.call("POST", "/v1/tenants", b"name=red", headers={"Content-Type": "text/plain"}), 415, "media_type")
    refused(server.call("DELETE", "/v1/requests/red.none", b"{}"), 400, "unexpected_body")
    refused(server.call("PUT", "/v1/tenants", b"{}"), 405, "method_not_allowed")
    refused(server.get("/v1/nothing"), 404, "not_found")


def test_a_body_that_is_too_large(server):
    """It is refused by its announced length; a client that sends on would see a reset."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain, \
            server.tls.wrap_socket(plain, server_hostname="localhost") as secure:
        secure.sendall(f"POST /v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.admin_token}\r\n"
                       f"Content-Length: {5 << 20}\r\n\r\n{{".encode())
        assert secure.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert server.get("/healthz", token=None).status == 200


def test_above_the_quota(server, member):
    detail = refused(server.post("/v1/tenants/red/requests", {**BODY, "gpus": 5}, token=member), 422,
                     "quota_exceeded")["detail"]
    assert "5" in detail and "4" in detail
    check = server.post("/v1/quota:check", {**BODY, "gpus": 5}, token=member).json
    assert check["state"] == "refused" and check["reasons"][0]["code"] == "QuotaTooSmall"
    assert server.post("/v1/quota:check", BODY, token=member).json["state"] in ("fits", "waits")
    gang = {**BODY, "gpus": 1, "gang": 5}  # all of it counts
    assert "5 GPUs" in refused(server.post("/v1/tenants/red/requests", gang, token=member), 422,
                               "quota_exceeded")["detail"]


def test_deadlines(server, member):
    """One that can be met is kept and shown, one that cannot even if it starts at once is refused."""
    path, late = "/v1/tenants/red/requests", {**BODY, "gpus": 1, "duration": "2h", "deadline": "2026-01-01T00:00:00Z"}
    detail = refused(server.post(path, late, token=member), 422, "deadline_unreachable")["detail"]
    assert "2026-01-01T00:00:00Z" in detail and "7200 s" in detail
    refused(server.post(path, {**late, "deadline": "tomorrow"}, token=member), 400, "invalid_field")
    made = server.post(path, {**late, "name": "in-time", "deadline": "2999-12-31T18:00:00Z"}, token=member)
    assert made.status == 201 and made.json["spec"]["deadline"] == "2999-12-31T18:00:00Z"


def test_the_longest_time_of_a_tenant(server, member):
    queue = {"limit": 4, "max_run": "24h"}
    assert server.call("PATCH", "/v1/tenants/red", {"queue": queue}).json["queue"]["max_run"] == 86400
    assert "max_run" not in server.call("PATCH", "/v1/tenants/red", {"queue": {"max_run": None}}).json["queue"]
    refused(server.call("PATCH", "/v1/tenants/red", {"queue": {"max_run": 0}}), 400, "invalid_field")
    server.call("PATCH", "/v1/tenants/red", {"queue": {"max_run": "1h"}})
    path, body = "/v1/tenants/red/requests", {**BODY, "gpus": 1}
    assert server.post(path, {**body, "name": "capped"}, token=member).json["spec"]["max_duration"] == 3600
    assert server.post("/v1/quota:check", body, token=member).json["state"] in ("fits", "waits")
    assert server.post("/v1/quota:check?tenant=red", body).json["state"] in ("fits", "waits")
    for more in ({"max_duration": "2h"}, {"duration": "2h"}, {"duration": "1h", "max_duration": "61m"}):
        assert "3600 s" in refused(server.post(path, {**body, **more}, token=member), 422, "too_long")["detail"]
    server.call("PATCH", "/v1/tenants/red", {"queue": None})


def test_above_the_limit_of_a_queue(server, member):
    """What could never run as things are set is refused with whose limit it is; what may have to wait is not."""
    server.call("PATCH", "/v1/tenants/blue", {"queue": {"limit": 3}})
    server.call("PATCH", "/v1/tenants/red", {"queue": {"parent": "blue", "user_limit": 4}})
    path = "/v1/tenants/red/requests"
    for body in ({**BODY, "gpus": 4}, {**BODY, "gpus": 1, "gang": 4}):
        detail = refused(server.post(path, body, token=member), 422, "queue_limit_exceeded")["detail"]
        assert "4 GPUs" in detail and '"blue" may hold 3' in detail and "raised" in detail
        check = server.post("/v1/quota:check", body, token=member).json
        assert check["state"] == "refused" and check["reasons"][0] == {"code": "QueueLimitTooSmall", "next": detail}
    assert server.post(path, {**BODY, "gpus": 3, "name": "just"}, token=member).status == 201
    assert server.post(path, {**BODY, "gpus": 3, "name": "after"}, token=member).status == 201
    server.call("PATCH", "/v1/tenants/red", {"queue": {"user_limit": 1}})
    detail = refused(server.post(path, {**BODY, "gpus": 2}, token=member), 422, "queue_limit_exceeded")["detail"]
    assert 'one person of tenant "red" may hold 1' in detail
    for tenant in ("red", "blue"):
        server.call("PATCH", f"/v1/tenants/{tenant}", {"queue": None})


# ---- repetitions

def test_the_same_key_does_it_once(server, member):
    path = "/v1/tenants/red/requests"
    first = server.post(path, {**BODY, "name": "once"}, token=member, key="k-1")
    again = server.post(path, {**BODY, "name": "once"}, token=member, key="k-1")
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body and again.headers["Idempotency-Replayed"] == "true"
    refused(server.post(path, {**BODY, "name": "twice"}, token=member, key="k-1"), 422, "idempotency_mismatch")
    refused(server.post(path, {**BODY, "name": "once"}, token=member), 409, "already_exists")
    refused(server.post(path, {**BODY, "name": "x"}, token=member, key="white space"), 400, "invalid_key")
    unnamed = [server.post(path, BODY, token=member, key="k-2").json["id"] for _ in range(2)]
    assert unnamed[0] == unnamed[1] != server.post(path, BODY, token=member, key="k-3").json["id"]


def test_a_secret_is_not_repeated(server):
    body = {"role": "member", "user": "mia", "tenant": "red"}
    assert server.post("/v1/tokens", body, key="t-1").status == 201
    refused(server.post("/v1/tokens", body, key="t-1"), 409, "secret_shown_once")


def test_a_failed_call_may_be_repeated_with_its_key(server, member):
    path = "/v1/tenants/red/requests"
    refused(server.post(path, {**BODY, "name": "big", "gpus": 6}, token=member, key="k-9"), 422, "quota_exceeded")
    assert server.call("PATCH", "/v1/tenants/red", {"quota": {"gpus": 6}}).json["quota"]["gpus"] == 6
    assert server.post(path, {**BODY, "name": "big", "gpus": 6}, token=member, key="k-9").status == 201
    server.call("PATCH", "/v1/tenants/red", {"quota": {"gpus": 4}})


def test_pages(server, member):
    for i in range(7):
        server.post("/v1/tenants/red/requests", {**BODY, "name": f"page-{i}"}, token=member)
    seen, token = [], ""
    while True:
        page = server.get(f"/v1/requests?limit=3{'&page_token=' + token if token else ''}", token=member).json
        seen += [r["id"] for r in page["items"]]
        token = page.get("next_page_token")
        if not token:
            break
    assert len(seen) == len(set(seen)) and seen == sorted(seen) and "red.page-6" in seen


def test_what_is_listed(server, member):
    for state in ("Bogus", "pending", "Pending,Running"):
        answer = server.get(f"/v1/requests?state={state}", token=member)
        assert (answer.status, answer.code) == (400, "invalid_parameter") and "Cancelled" in answer.json["detail"]
    assert server.get("/v1/requests?state=Pending", token=member).status == 200
    answer = server.get("/v1/requests?tenant=Vision")
    assert (answer.status, answer.code) == (400, "invalid_parameter") and "DNS label" in answer.json["detail"]


def test_cancel(server, member):
    server.post("/v1/tenants/red/requests", {**BODY, "name": "stop"}, token=member)
    assert server.call("DELETE", "/v1/requests/red.stop", token=member).status == 202
    assert server.get("/v1/requests/red.stop", token=member).json["state"] == "Cancelled"
    assert server.call("DELETE", "/v1/requests/red.stop", token=member).status == 202
    refused(server.call("DELETE", "/v1/requests/red.none", token=member), 404, "not_found")


def test_changes_that_met_another(server):
    tag = server.get("/v1/tenants/blue").headers["ETag"]
    assert server.call("PATCH", "/v1/tenants/blue", {"display_name": "B"}, headers={"If-Match": tag}).status == 200
    refused(server.call("PATCH", "/v1/tenants/blue", {"display_name": "C"}, headers={"If-Match": tag}), 412,
            "changed_meanwhile")


# ---- windows

def window(name, gpus, hours, **more):
    return {"name": name, "gpus": gpus, "start": f"2099-12-07T{hours[:2]}:00:00Z", "end": f"2099-12-07T{hours[3:]}:00:00Z", **more}


def test_windows_one_by_one(server, member, stranger):
    path, course = "/v1/tenants/red/windows", window("course", 16, "08-18", model="H100")
    made = server.post(path, course)
    assert (made.status, made.json) == (201, course)
    assert server.post(path, course).status == 201
    assert server.get(path, token=member).json["items"] == [course] == server.get("/v1/tenants/red").json["windows"]
    refused(server.post(path, {**course, "gpus": 8}), 409, "already_exists")
    for token, status, code in ((member, 403, "forbidden"), (stranger, 404, "not_found")):
        refused(server.post(path, window("mine", 1, "08-18"), token=token), status, code)
        refused(server.call("DELETE", path + "/course", token=token), status, code)
    refused(server.get(path, token=stranger), 404, "not_found")
    for wrong, code in (({"name": "A_"}, "invalid_field"), ({"gpus": 0}, "invalid_field"), ({"gpus": 100001}, "invalid_field"),
                        ({"gpus": "2"}, "invalid_field"), ({"start": "tomorrow"}, "invalid_field"), ({"owner": "x"}, "unknown_field"),
                        ({"end": "2099-12-07T08:00:00Z"}, "invalid_field"), ({"end": "2101-12-07T08:00:00Z"}, "invalid_field"),
                        ({"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}, "invalid_field")):
        refused(server.post(path, {**window("bad", 1, "08-18"), **wrong}), 400, code)
    refused(server.post("/v1/tenants/nobody/windows", course), 404, "not_found")
    refused(server.call("DELETE", path + "/bad"), 404, "not_found")
    for i in range(31):
        assert server.post(path, window(f"w{i}", 1, "08-18")).status == 201
    assert "32" in refused(server.post(path, window("w31", 1, "08-18")), 422, "limit_exceeded")["detail"]
    gone = server.call("DELETE", path + "/course")
    assert (gone.status, gone.json) == (200, course)
    ends = [r for r in server.audit_records() if r["request_id"] == gone.headers["X-Request-Id"] and r["stage"] == "end"]
    assert ends[0]["tenant"] == "red" and "window course: 16 GPUs of H100" in ends[0]["detail"]
    assert server.call("PATCH", "/v1/tenants/red", {"windows": []}).status == 200
    assert server.get(path).json["items"] == []


def test_windows_that_cannot_be_held(tmp_path):
    own = Server(tmp_path).start()
    own.tenant("red")
    own.tenant("blue")
    assert own.stop() == 0
    devices = [{"uuid": f"GPU-{i}", "model": "H100-80GB", "memoryMiB": 81559} for i in range(8)]
    node = {"apiVersion": "gpuaas.io/v1alpha1", "kind": "GPUNode", "status": {"devices": devices},
            "metadata": {"name": "node1", "uid": "u1", "resourceVersion": "1000"}}
    own.store.sql(f"INSERT INTO objects VALUES ('GPUNode', '', 'node1', '{json.dumps(node)}')")
    own.start()
    red, blue = "/v1/tenants/red/windows", "/v1/tenants/blue/windows"
    problem = refused(own.post(red, window("much", 9, "08-18", model="H100")), 422, "window_too_large")
    assert "reserve 9 GPUs of H100 (red/much 9), there are 8" in problem["detail"] and problem["field"] == "gpus"
    refused(own.post(red, window("other", 1, "08-18", model="A100")), 422, "window_too_large")
    assert own.post(red, window("half", 5, "08-12", model="H100")).status == 201
    problem = refused(own.post(blue, window("rest", 4, "06-10")), 422, "window_too_large")
    assert "at 2099-12-07T08:00:00Z windows reserve 9 GPUs (blue/rest 4, red/half 5), there are 8" in problem["detail"]
    assert own.post(blue, window("rest", 3, "06-10")).status == 201
    assert own.post(blue, window("after", 8, "12-18", model="H100")).status == 201
    assert own.call("DELETE", red + "/half").status == 200
    assert own.post(red, window("half", 5, "08-10")).status == 201
    assert own.stop() == 0


# ---- usage

EVENT = {"source": "node1", "boot": "b1", "seq": 1, "t": "2026-02-10T00:00:00Z", "type": "bound", "gpu": "g0",
         "share": {"num": 1, "den": 1}, "tenant": "red", "pod_uid": "p0"}


def lines(*events):
    return "".join(json.dumps(e) + "\n" for e in events).encode()


def test_usage_of_a_node(server, member, stranger):
    agent = server.post("/v1/tokens", {"role": "agent", "user": "node1"}).json["token"]
    push = lambda body: server.call("POST", "/v1/usage", body, token=agent)  # noqa: E731
    assert push(lines(EVENT)).json == {"cursor": {"boot": "b1", "seq": 1}}
    assert push(lines(EVENT)).json == {"cursor": {"boot": "b1", "seq": 1}}
    refused(push(lines({**EVENT, "source": "node2"})), 403, "foreign_source")
    refused(push(lines({**EVENT, "pod_uid": "p1"})), 409, "event_conflict")
    refused(push(lines({**EVENT, "seq": 2, "colour": 1})), 400, "invalid_event")
    refused(push(b"{"), 400, "invalid_event")
    refused(server.call("POST", "/v1/usage", lines(EVENT), token=member), 403, "forbidden")
    refused(server.call("POST", "/v1/usage", lines(EVENT)), 403, "forbidden")
    refused(server.get("/v1/events", token=agent), 403, "forbidden")
    export = server.get("/v1/events").body.splitlines()
    assert [json.loads(line) for line in export] == [EVENT]
    assert server.get("/v1/events", token=stranger).body == b""


def test_documents_are_checked_whole(server):
    refused(server.post("/v1/prices", {"colour": 1}), 400, "invalid_document")
    refused(server.get("/v1/prices"), 404, "not_found")


# ---- what the server says of itself

def test_description_has_every_answer(server):
    description = server.get("/openapi.json", token=None).json
    assert description["openapi"] == "3.1.0"
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            assert operation["operationId"] and "default" in operation["responses"], (method, path)


def test_metrics(server):
    text = server.get("/metrics", token=None).body.decode()
    assert re.search(r'^gpuaas_server_calls_total\{operation="createRequest",code="2xx"\} \d+$', text, re.MULTILINE)
    assert re.search(r"^gpuaas_server_audit_available 1$", text, re.MULTILINE)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False) \
        if pathlib.Path("/usr/bin/promtool").exists() else None
    assert done is None or done.returncode == 0, done.stderr


def test_every_change_is_recorded_before_its_answer(server, member):
    answer = server.post("/v1/tenants/red/requests", {**BODY, "name": "recorded"}, token=member)
    mine = [r for r in server.audit_records() if r["request_id"] == answer.headers["X-Request-Id"]]
    assert [(r["stage"], r.get("status")) for r in mine] == [("begin", None), ("end", 201)]
    assert mine[1]["actor"] == "mia" and mine[1]["tenant"] == "red" and mine[1]["verb"] == "create"
    denied = server.post("/v1/tenants", {"name": "green"}, token=member)
    assert [r["stage"] for r in server.audit_records()
            if r["request_id"] == denied.headers["X-Request-Id"]] == ["denied"]
    exported = server.get("/v1/audit/export").body.splitlines()
    assert [json.loads(line)["seq"] for line in exported] == list(range(1, len(exported) + 1))


# ---- limits, crashes, full disks: servers of their own

def test_rate_limit(tmp_path):
    server = Server(tmp_path, limits={"calls_per_second": 5, "burst": 10, "bad_tokens_per_second": 1}).start()
    try:
        answers = [server.get("/v1/whoami") for _ in range(14)]
        limited = [a for a in answers if a.status == 429]
        assert limited and answers[0].status == 200
        assert int(limited[0].headers["Retry-After"]) >= 1
        refused(limited[0], 429, "rate_limited")
        other = [server.get("/v1/whoami", token=token_make()).status for _ in range(14)]
        assert other[0] == 401 and 429 in other
        time.sleep(1.2)
        assert server.get("/v1/whoami").status == 200
    finally:
        server.stop()


def test_names_and_notes_deceive_nobody(server):
    members = "/v1/tenants/red/members"
    for user in ("admin", "Admin", "mia\n", "mi\u202ea", "\u001b[2J", "m\u0430\u0456a", ""):
        problem = refused(server.post(members, {"user": user, "role": "member"}), 400, "invalid_field")
        assert problem["field"] == "user"
    server.token("red", "noe")
    token = {"user": "noe", "tenant": "red", "role": "member"}
    for note in ("a\nb", "a\u202eb", "a\u2066b", "\u009b2J", "\u007f"):
        assert refused(server.post("/v1/tokens", {**token, "note": note}), 400, "invalid_field")["field"] == "note"
    assert server.post("/v1/tokens", {**token, "note": "für Läufe – nachts"}).status == 201


def test_more_tokens_are_no_more_calls(tmp_path):
    server = Server(tmp_path, limits={"calls_per_second": 1, "burst": 60}).start()
    try:
        server.tenant("red")
        tokens = [server.token("red", "mia")[0] for _ in range(3)]
        answers = [server.get("/v1/whoami", token=tokens[i % 3]).status for i in range(150)]
        assert answers[0] == 200 and 429 in answers
        assert answers.count(200) < 150
    finally:
        server.stop()


def test_refusals_do_not_fill_the_audit_log(tmp_path):
    """So many a minute have a record each; the rest is one record of their number."""
    server = Server(tmp_path).start()
    try:
        server.tenant("red")
        tokens = [server.token("red", "mia")[0] for _ in range(4)]
        before = len(server.audit_records())
        for i in range(150):
            assert server.get("/v1/tenants/blue", token=tokens[i % 4]).status == 404
            assert server.post("/v1/tenants", {"name": f"t{i}"}, token=tokens[i % 4]).status == 403
        for _ in range(100):
            assert server.get("/v1/whoami", token=token_make()).status in (401, 429)
    finally:
        server.stop()
    denied = [r for r in server.audit_records()[before:] if r["stage"] == "denied"]
    counts = [r for r in denied if r.get("detail", "").endswith(" more refused")]
    own = [r for r in denied if r.get("actor") == "mia" and r not in counts]
    # A slow machine may begin a second minute.
    assert 60 <= len(own) <= 120 and len(denied) <= 250
    told = [int(r["detail"].split()[0]) for r in counts if r.get("actor") == "mia"]
    assert len(own) + sum(told) == 300
    assert server.audit_verify().returncode == 0


def test_tokens_of_one_user_are_bounded(tmp_path):
    server = Server(tmp_path).start()
    try:
        server.tenant("red")
        made = [server.token("red", "mia")[1] for _ in range(50)]
        body = {"user": "mia", "tenant": "red", "role": "member"}
        problem = refused(server.post("/v1/tokens", body), 409, "limit_exceeded")
        assert "revoke" in problem["detail"]
        server.token("red", "leo")
        assert server.call("DELETE", f"/v1/tokens/{made[0]}").status == 200
        assert server.post("/v1/tokens", body).status == 201
    finally:
        server.stop()


def test_kill_in_the_middle_of_writes(tmp_path):
    """Every acknowledged change is there after kill -9, recorded, and nothing is half made."""
    server = Server(tmp_path).start()
    server.tenant("red", {"gpus": 1000, "pods": 1000, "cpu": "1000", "memory": "4000Gi"})
    done, stop = set(), threading.Event()

    def work(number):
        for i in range(1000):
            name = f"w{number}-{i}"
            while not stop.is_set():
                try:
                    answer = server.post("/v1/tenants/red/requests", {**BODY, "name": name}, key=name)
                except OSError:
                    time.sleep(0.05)
                    continue
                if answer.status == 201:
                    done.add(name)
                    break
                assert answer.status in (409, 429, 503), answer
                time.sleep(0.05)
            if stop.is_set():
                return

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work, n) for n in range(4)]
        for _ in range(3):
            time.sleep(0.7)
            server.kill()
            server.start()
        time.sleep(0.5)
        stop.set()
        for worker in workers:
            worker.result()
    names = {r["name"] for r in pages(server)}
    assert done <= names and len(done) > 10
    assert server.stop() == 0
    result = server.audit_verify()
    assert result.returncode == 0, result.stderr
    ended = {r["detail"].split()[1] for r in server.audit_records()
             if r["stage"] == "end" and r.get("status") == 201 and r["resource"] == "request"}
    assert done <= ended


def pages(server):
    token = ""
    while True:
        page = server.get(f"/v1/requests?limit=500{'&page_token=' + token if token else ''}").json
        yield from page["items"]
        token = page.get("next_page_token")
        if not token:
            return


def test_tampering_is_found(tmp_path):
    server = Server(tmp_path).start()
    for name in ("a", "b", "c", "d"):
        server.tenant(name)
    assert server.stop() == 0
    path = server.audit_files()[-1]
    good = path.read_bytes()
    rows = good.splitlines(keepends=True)
    damaged = {
        "edit": (b"".join(rows[:3] + [rows[3].replace(b'"admin"', b'"nobody"')] + rows[4:]), "4"),
        "remove": (b"".join(rows[:3] + rows[4:]), "4"),
        "swap": (b"".join(rows[:2] + [rows[3], rows[2]] + rows[4:]), "3"),
        "head": (b"".join(rows[1:]), "1"),
        "tail": (b"".join(rows[:-1]), str(len(rows))),
        "torn": (good[:-5], str(len(rows))),
    }
    for name, (content, record) in damaged.items():
        path.write_bytes(content)
        result = server.audit_verify()
        assert result.returncode == 9, (name, result.stdout, result.stderr)
        assert re.search(rf"\b{record}\b", result.stdout + result.stderr), (name, result.stdout, result.stderr)
    path.write_bytes(good)
    assert server.audit_verify().returncode == 0
    path.write_bytes(b"".join(rows[:3] + [rows[3].replace(b'"admin"', b'"nobody"')] + rows[4:]))
    started = subprocess.run([PROGRAM, "--config", server.folder / "server.json"], capture_output=True, text=True,
                             check=False, timeout=20)
    assert started.returncode != 0 and "audit" in started.stderr


@pytest.fixture
def small_disk(tmp_path):
    mount = tmp_path / "disk"
    mount.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("no right to mount a small disk")
    yield mount
    subprocess.run(["umount", mount], check=True)


def fill(path):
    """Takes what is free on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"x" * 4096) > 0:
            pass
    except OSError:
        pass
    finally:
        os.close(descriptor)


def test_full_disk_under_the_audit_log(tmp_path, small_disk):
    server = Server(tmp_path, audit_dir=small_disk / "audit").start()
    try:
        server.tenant("red")
        fill(small_disk / "filler")
        answers = [server.post("/v1/tenants", {"name": f"t{i}"}) for i in range(30)]
        assert answers[-1].status == 503
        refused(answers[-1], 503, "audit_unavailable")
        made = {f"t{i}" for i, a in enumerate(answers) if a.status == 201}
        assert {t["name"] for t in server.get("/v1/tenants").json["items"]} == made | {"red"}
        assert server.get("/readyz", token=None).status == 503
        assert server.get("/healthz", token=None).status == 200
        os.unlink(small_disk / "filler")
        assert server.post("/v1/tenants", {"name": "later"}).status == 201
        assert server.get("/readyz", token=None).status == 200
    finally:
        assert server.stop() == 0
    result = server.audit_verify()
    assert result.returncode == 0, result.stderr


def test_full_disk_under_the_ledger(tmp_path, small_disk):
    server = Server(tmp_path, store=f"sqlite:{small_disk / 'gpuaas.db'}").start()
    try:
        agent = server.post("/v1/tokens", {"role": "agent", "user": "node1"}).json["token"]
        push = lambda seq: server.call(  # noqa: E731
            "POST", "/v1/usage", lines(*({**EVENT, "type": "energy", "seq": seq * 100 + i, "epoch": "e", "energy_mj": "1",
                                          "share": None} for i in range(100))), token=agent)
        fill(small_disk / "filler")
        statuses = [push(seq) for seq in range(1, 6)]
        assert statuses[-1].status == 503, statuses[-1]
        refused(statuses[-1], 503, "storage_unavailable")
        taken = sum(a.status == 200 for a in statuses)
        os.unlink(small_disk / "filler")
        assert push(9).status == 200
        assert len(server.get("/v1/events").body.splitlines()) == 100 * (taken + 1)
    finally:
        server.stop()


def test_a_new_certificate_without_a_restart(tmp_path):
    server = Server(tmp_path).start()
    try:
        before = ssl.get_server_certificate(("127.0.0.1", server.port))
        certificate(tmp_path)
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while ssl.get_server_certificate(("127.0.0.1", server.port)) == before:
            assert time.monotonic() < deadline, "the old certificate is still served"
            time.sleep(0.05)
        server.tls = ssl.create_default_context(cafile=tmp_path / "tls.crt")
        assert server.get("/v1/whoami").status == 200
        (tmp_path / "tls.crt").write_text("broken")
        server.process.send_signal(signal.SIGHUP)
        assert server.get("/v1/whoami").status == 200
    finally:
        assert server.stop() == 0


def test_a_tenant_may_not_fill_the_store(tmp_path):
    server = Server(tmp_path, limits={"open_requests": 3}).start()
    try:
        server.tenant("red")
        answers = [server.post("/v1/tenants/red/requests", {**BODY, "name": f"n{i}"}) for i in range(4)]
        assert [a.status for a in answers] == [201, 201, 201, 422]
        refused(answers[3], 422, "limit_exceeded")
        server.call("DELETE", "/v1/requests/red.n0")
        assert server.post("/v1/tenants/red/requests", {**BODY, "name": "n4"}).status == 201
    finally:
        server.stop()


def test_files_are_nobody_elses(server):
    for path in [server.folder / "gpuaas.db", *server.audit_files(), server.audit_dir / "signing.key"]:
        assert path.stat().st_mode & 0o077 == 0, path


# ---- the program

def test_command_line(tmp_path):
    def run(*arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=20)
    assert run("--help").returncode == 0 and "--config" in run("--help").stdout
    assert run("--version").stdout.startswith("gpuaas-server ")
    assert run().returncode == 2
    assert run("--colour").returncode == 2
    (tmp_path / "bad.yaml").write_text("tls: {cert: a, key: b}\nstore: sqlite:x\naudit: {dir: d}\nport: 5\n")
    done = run("--config", str(tmp_path / "bad.yaml"), "--check-config")
    assert done.returncode == 2 and "port" in done.stderr
    (tmp_path / "good.yaml").write_text("tls: {cert: a, key: b}\nstore: sqlite:x\naudit: {dir: d}\n")
    done = run("--config", str(tmp_path / "good.yaml"), "--check-config")
    assert done.returncode == 0 and json.loads(done.stdout)["listen"] == "0.0.0.0:8443"
    assert run("--config", str(tmp_path / "absent.yaml")).returncode == 3
