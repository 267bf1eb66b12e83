"""Queues of tenants through the server and the command line, with a scheduler that is played here."""
import http.server
import json
import subprocess
import threading

import pytest
from serverkit import CLI, Server

ROWS = [
    {"tenant": "lab", "parent": "", "depth": 1, "weight": 1, "guaranteed": 6, "limit": 8, "allocated": 7, "deserved": 6.5,
     "borrowed": 1, "waiting": 2, "used_gpu_hours": 154.723, "share": 1.5, "waiting_pods": 0, "half_life_s": 604800,
     "problem": ""},
    {"tenant": "vision", "parent": "lab", "depth": 2, "weight": 1, "guaranteed": 4, "limit": None, "allocated": 5,
     "deserved": 4, "borrowed": 1, "waiting": 2, "used_gpu_hours": 8, "share": 1.2, "waiting_pods": 2,
     "half_life_s": 604800, "problem": ""},
    {"tenant": "guest", "parent": "", "depth": 1, "weight": 1, "guaranteed": 0, "limit": None, "allocated": 0,
     "deserved": 1, "borrowed": 0, "waiting": 1, "used_gpu_hours": 0, "share": 0, "waiting_pods": 1,
     "half_life_s": 604800, "problem": ""},
]


class Scheduler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"items": ROWS}).encode()
        self.send_response(200 if self.path == "/queues" and self.headers["authorization"] else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queues")
    played = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scheduler)
    threading.Thread(target=played.serve_forever, daemon=True).start()
    (folder / "plan.key").write_text("k" * 64)
    server = Server(folder, scheduler={"url": f"http://127.0.0.1:{played.server_port}",
                                       "key_file": str(folder / "plan.key")}).start()
    for name in ("lab", "vision", "guest"):
        server.tenant(name)
    yield server
    assert server.stop() == 0
    played.shutdown()


def change(server, tenant, queue):
    return server.call("PATCH", f"/v1/tenants/{tenant}", {"queue": queue})


def test_settings_come_and_go(server):
    assert change(server, "lab", {"limit": 8}).json["queue"] == {"limit": 8}
    answer = change(server, "vision", {"parent": "lab", "guaranteed": 4, "half_life": "12h", "user_limit": 2})
    assert answer.json["queue"] == {"parent": "lab", "guaranteed": 4, "half_life": 43200, "user_limit": 2}
    answer = change(server, "vision", {"user_limit": None, "half_life": None, "weight": 3})
    assert answer.json["queue"] == {"parent": "lab", "guaranteed": 4, "weight": 3}
    assert server.get("/v1/tenants/vision").json["queue"] == answer.json["queue"]
    made = server.post("/v1/tenants", {"name": "speech", "queue": {"parent": "lab", "limit": None, "guaranteed": 1}})
    assert made.json["queue"] == {"parent": "lab", "guaranteed": 1}
    assert "queue" not in change(server, "speech", None).json
    assert "queue" not in server.get("/v1/tenants/guest").json


def test_models_of_a_queue(server):
    """What is set of single models comes back, is replaced as a whole, and bounds requests that name them."""
    models = [{"model": "H100", "guaranteed": 1, "limit": 2}, {"model": "A100"}]
    assert change(server, "guest", {"by_model": models}).json["queue"] == {"by_model": models}
    path, body = "/v1/tenants/guest/requests", {"image": "x.y/z:1", "gpus": 3, "gpu_models": ["H100"]}
    answer = server.post(path, body)
    assert (answer.status, answer.code) == (422, "queue_limit_exceeded") and "may hold 0 of them" in answer.json["detail"]
    check = server.post("/v1/quota:check?tenant=guest", body).json
    assert (check["state"], check["reasons"][0]["code"]) == ("refused", "QueueLimitTooSmall")
    assert server.post(path, {**body, "gpus": 2}).status == 201
    assert server.post(path, {**body, "gpu_models": ["H100", "L40S"]}).status == 201
    answer = change(server, "guest", {"by_model": [{"model": "H100", "limit": 4}]})
    assert answer.json["queue"] == {"by_model": [{"model": "H100", "limit": 4}]}
    assert "by_model" not in change(server, "guest", {"by_model": None, "limit": 9}).json["queue"]
    change(server, "guest", None)


@pytest.mark.parametrize("tenant,queue,field", [
    ("vision", {"by_model": [{"model": "H100", "limit": -1}]}, "queue.by_model.limit"),
    ("vision", {"by_model": [{"model": "H100", "guaranteed": 5}]}, "queue.by_model"),
    ("vision", {"by_model": [{"model": "H100"}, {"model": "H100"}]}, "queue.by_model"),
    ("vision", {"by_model": [{"model": "M" + str(i)} for i in range(17)]}, "queue.by_model"),
    ("lab", {"parent": "vision"}, "queue.parent"), ("lab", {"parent": "lab"}, "queue.parent"),
    ("vision", {"parent": "nobody"}, "queue.parent"), ("vision", {"parent": "guest"}, "queue.parent"),
    ("vision", {"limit": 3}, "queue.guaranteed"), ("vision", {"limit": -1}, "queue.limit"),
    ("vision", {"weight": 1.5}, "queue.weight"), ("vision", {"guaranteed": 10**30}, None),
    ("vision", {"luck": 1}, "queue.luck"), ("vision", {"half_life": "400d"}, "queue.half_life"),
])
def test_what_cannot_hold_is_refused_with_its_field(server, tenant, queue, field):
    change(server, "lab", {"limit": 8})
    change(server, "vision", {"parent": "lab", "guaranteed": 4})
    before = server.get(f"/v1/tenants/{tenant}").json["queue"]
    answer = change(server, tenant, queue)
    assert answer.status == 400 and answer.json.get("field") == field, answer
    assert server.get(f"/v1/tenants/{tenant}").json["queue"] == before


def test_who_sees_which_queues(server):
    token, _ = server.token("lab", "ada", "member")
    assert [row["tenant"] for row in server.get("/v1/queues").json["items"]] == ["guest", "lab", "vision"]
    assert [row["tenant"] for row in server.get("/v1/queues", token=token).json["items"]] == ["lab", "vision"]
    page = server.get("/v1/queues?limit=2").json
    rest = server.get(f"/v1/queues?limit=2&page_token={page['next_page_token']}").json
    assert [row["tenant"] for row in page["items"] + rest["items"]] == ["guest", "lab", "vision"]
    assert "next_page_token" not in rest
    assert change(server, "lab", {"limit": 8}).status == 200
    answer = server.call("PATCH", "/v1/tenants/lab", {"queue": {"limit": 99}}, token=token)
    assert answer.status == 403


def test_no_page_drops_a_queue_because_another_has_gone(server, monkeypatch):
    def rows(*names):
        return [{**ROWS[0], "tenant": name, "parent": parent} for name, parent in names]

    before = rows(("b-1", ""), ("b", ""), ("x", "b"), ("a", "b"), ("c", ""), ("~others", ""))
    monkeypatch.setitem(globals(), "ROWS", before)
    order = ["b", "a", "x", "b-1", "c", "~others"]
    assert [row["tenant"] for row in server.get("/v1/queues").json["items"]] == order
    for limit in (1, 2, 3, 5):
        monkeypatch.setitem(globals(), "ROWS", before)
        page = server.get(f"/v1/queues?limit={limit}").json
        last, rest = page["items"][-1]["tenant"], order[limit:]
        # The one with which the page ended is gone; those below it hang elsewhere now.
        left = [{**row, "parent": "" if row["parent"] == last else row["parent"]} for row in before if row["tenant"] != last]
        monkeypatch.setitem(globals(), "ROWS", left)
        seen = []
        while "next_page_token" in page:
            page = server.get(f"/v1/queues?limit={limit}&page_token={page['next_page_token']}").json
            seen += [row["tenant"] for row in page["items"]]
        assert set(rest) - {"a", "x"} <= set(seen) and len(seen) == len(set(seen)), (limit, seen)


def test_command_line(server, tmp_path):
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def run(*words, **more):
        return subprocess.run([CLI, *words], env=env, capture_output=True, text=True, check=False, **more)

    login = run("login", "--server", f"https://localhost:{server.port}", "--ca", str(server.folder / "tls.crt"),
                input=server.admin_token + "\n")
    assert login.returncode == 0, login.stderr
    assert run("tenant", "set", "guest", "--limit", "3", "--weight", "2", "--half-life", "1d").returncode == 0
    assert server.get("/v1/tenants/guest").json["queue"] == {"limit": 3, "weight": 2, "half_life": 86400}
    assert run("tenant", "set", "guest", "--by-model", "H100=1:8,A100=:2,L40S=1").returncode == 0
    assert server.get("/v1/tenants/guest").json["queue"]["by_model"] == [
        {"model": "H100", "guaranteed": 1, "limit": 8}, {"model": "A100", "limit": 2}, {"model": "L40S", "guaranteed": 1}]
    wrong = run("tenant", "set", "guest", "--by-model", "H100=four")
    assert wrong.returncode == 1 and "guaranteed" in wrong.stderr, wrong
    assert run("tenant", "set", "guest", "--by-model", "none").returncode == 0
    assert run("tenant", "set", "guest", "--limit", "none").returncode == 0
    assert server.get("/v1/tenants/guest").json["queue"] == {"weight": 2, "half_life": 86400}
    wrong = run("tenant", "set", "guest", "--parent", "guest")
    assert wrong.returncode == 1 and "below itself" in wrong.stderr, wrong
    assert run("tenant", "set", "guest", "--no-queue").returncode == 0
    assert "queue" not in server.get("/v1/tenants/guest").json
    done = run("queue")
    assert done.returncode == 0, done.stderr
    table = done.stdout.splitlines()
    assert table[0].split() == ["TENANT", "PARENT", "GUARANTEED", "LIMIT", "HELD", "DESERVED", "BORROWED", "WAITING",
                                "PODS", "SHARE", "GPU-HOURS", "PROBLEM"]
    assert table[2].split()[:1] == ["lab"] and "6.5" in table[2] and "154.723" in table[2], table
