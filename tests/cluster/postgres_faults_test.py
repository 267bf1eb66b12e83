"""gpuaas-server when its PostgreSQL is killed, full, frozen, locked, taken by another, or asks for TLS: what was
acknowledged is there once, everything else is refused with its reason, and the loop goes on."""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from postgres import Postgres, eventually, store_class

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from serverkit import BUILD, PROGRAM, Server, certificate  # noqa: E402

SQL_CHECK = BUILD / "tests" / "cluster" / "sql-check"
PASSWORD = "s3cr3tw0rd"
BATCH = 20


@pytest.fixture(scope="module")
def postgres():
    made = Postgres(log_statement="none").start()
    yield made
    made.remove()


@pytest.fixture
def server(postgres, tmp_path):
    made = make_server(postgres, tmp_path).start()
    yield made
    made.stop()


def make_server(postgres, folder, **parameters):
    made = Server(folder, store=postgres.fresh(**parameters))
    made.store = store_class(postgres)
    return made


def said(server):
    return (server.folder / "server.log").read_text(encoding="utf-8")


def ready(server):
    try:
        return server.get("/readyz", token=None).status == 200
    except OSError:
        return False


def lines(batch):
    """Energy readings as an agent's journal has them; their identities tell them apart."""
    return "".join(json.dumps({"source": "node1", "boot": "b1", "seq": batch * BATCH + i, "t": "2026-02-10T00:00:00Z",
                               "type": "energy", "gpu": "g0", "epoch": "e", "energy_mj": "1"}) + "\n"
                   for i in range(BATCH)).encode()


class Agent:
    """Pushes batch after batch and repeats each until it is acknowledged, as the agent does."""

    def __init__(self, server):
        self.server = server
        self.token = server.post("/v1/tokens", {"role": "agent", "user": "node1"}).json["token"]
        self.acknowledged, self.refusals, self.stopped = 0, [], threading.Event()
        self.thread = threading.Thread(target=self._work)

    def push(self, batch):
        return self.server.call("POST", "/v1/usage", lines(batch), token=self.token)

    def _work(self):
        while not self.stopped.is_set():
            try:
                answer = self.push(self.acknowledged)
            except OSError:
                answer = None
            if answer is not None and answer.status == 200:
                assert answer.json["cursor"]["seq"] == (self.acknowledged + 1) * BATCH - 1
                self.acknowledged += 1
            else:
                self.refusals.append(answer)
                time.sleep(0.02)

    def check_ledger(self):
        got = [json.loads(line)["seq"] for line in self.server.get("/v1/events").body.splitlines()]
        assert got == list(range(len(got))), "lost or doubled"
        # One batch may be there whose acknowledgement was lost.
        assert self.acknowledged * BATCH <= len(got) <= (self.acknowledged + 1) * BATCH
        assert len(got) % BATCH == 0, "a batch is there in part"


def test_kill_of_the_database_in_the_middle_of_intake(postgres, server):
    agent = Agent(server)
    agent.thread.start()
    for kills in range(3):
        before = agent.acknowledged
        eventually("some batches", lambda: agent.acknowledged > before + 5)  # noqa: B023
        time.sleep(0.037 * kills)
        postgres.kill()
        eventually("not ready", lambda: not ready(server))
        assert server.get("/healthz", token=None).status == 200
        postgres.start()
        eventually("ready again", lambda: ready(server))
    agent.stopped.set()
    agent.thread.join()
    agent.check_ledger()
    # On a quiet machine this agent, which never pauses, also meets its rate limit.
    refused = [a for a in agent.refusals if a is not None and a.status != 429]
    assert refused and {(a.status, a.code) for a in refused} <= {(503, "storage_unavailable"), (503, "unavailable")}
    assert any("database" in a.json["detail"] for a in refused)
    assert "the database is connected again" in said(server)


def test_kill_in_the_middle_of_changes(postgres, server):
    """Tenants made with idempotency keys, each call repeated until it is acknowledged: each once."""
    made, unexpected, stopped = [], [], threading.Event()

    def work():
        while not stopped.is_set():
            name = f"t{len(made)}"
            answer = server.post("/v1/tenants", {"name": name}, key=name)
            if answer.status == 201:
                made.append(name)
            elif answer.status != 503 and answer.code != "still_running":
                unexpected.append(answer)
                return

    worker = threading.Thread(target=work)
    worker.start()
    for kills in range(2):
        before = len(made)
        eventually("some tenants", lambda: unexpected or len(made) > before + 3)  # noqa: B023
        time.sleep(0.013 * kills)
        postgres.kill()
        postgres.start()
    before = len(made)
    eventually("some tenants", lambda: unexpected or len(made) > before + 3)
    stopped.set()
    worker.join()
    assert not unexpected
    for _ in range(2):
        assert {t["name"] for t in server.get("/v1/tenants?limit=500").json["items"]} == set(made)
        assert postgres.sql("SELECT count(*) FROM answers WHERE status = 0") == "0"
        assert server.stop() == 0
        server.start()


def test_full_disk(tmp_path):
    small = Postgres(disk_mib=80, log_statement="none", autovacuum="off").start()
    server = make_server(small, tmp_path).start()
    filler = small.path(small.data.parent / "filler")
    try:
        agent = Agent(server)
        while agent.push(agent.acknowledged).status == 200 and agent.acknowledged < 5:
            agent.acknowledged += 1
        fill(filler)
        answer = agent.push(agent.acknowledged)
        while answer.status == 200 and agent.acknowledged < 2000:
            agent.acknowledged += 1
            answer = agent.push(agent.acknowledged)
        assert (answer.status, answer.code) == (503, "storage_unavailable"), answer
        assert "disk of the database is full" in answer.json["detail"]
        assert server.get("/v1/whoami").status == 200
        filler.unlink()
        agent.check_ledger()
        assert agent.push(agent.acknowledged).status == 200
        agent.acknowledged += 1
        agent.check_ledger()
    finally:
        server.stop()
        small.remove()


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096) > 0:
                pass
        except OSError:
            pass


def test_a_frozen_database_costs_the_loop_one_time_limit(postgres, tmp_path):
    server = make_server(postgres, tmp_path, options="-c%20statement_timeout%3D1000").start()
    try:
        postgres.freeze(True)
        start = time.monotonic()
        answer = server.get("/v1/whoami")
        assert (answer.status, answer.code) == (503, "unavailable"), answer
        assert time.monotonic() - start < 10
        eventually("given up", lambda: server.get("/readyz", token=None).status == 503)
        start = time.monotonic()
        for _ in range(20):
            assert server.get("/healthz", token=None).status == 200
            assert server.get("/v1/whoami").status == 503
        assert b"\ngpuaas_server_database_available 0\n" in server.get("/metrics", token=None).body
        assert time.monotonic() - start < 5, "each use waits"
        postgres.freeze(False)
        # The session before still holds the lock at the other end; it is ended.
        eventually("ready again", lambda: ready(server))
        assert server.get("/v1/whoami").status == 200
        assert b"\ngpuaas_server_database_available 1\n" in server.get("/metrics", token=None).body
    finally:
        postgres.freeze(False)
        server.stop()


def test_a_lock_of_somebody_else(postgres, server):
    agent = Agent(server)
    held = subprocess.Popen(postgres.client("psql", "gpuaas", "-Xq"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    held.stdin.write("BEGIN; LOCK TABLE usage_events IN ACCESS EXCLUSIVE MODE; SELECT 'held';\n")
    held.stdin.flush()
    while "held" not in held.stdout.readline():
        pass
    answer = agent.push(0)
    assert answer.status == 503 and "lock" in answer.json["detail"], answer
    held.communicate("ROLLBACK;\n")
    assert agent.push(0).status == 200
    agent.acknowledged = 1
    agent.check_ledger()


def test_a_session_that_was_ended_while_idle(postgres, server):
    for _ in range(5):
        postgres.end_sessions()
        assert server.get("/v1/whoami").status == 200


# ---- two servers

def test_a_second_server_says_so_and_waits(postgres, server, tmp_path):
    (tmp_path / "second").mkdir()
    second = Server(tmp_path / "second", store=server.config["store"])
    starting = threading.Thread(target=second.start)
    starting.start()
    try:
        eventually("the reason", lambda: "another program owns the database since" in
                   (tmp_path / "second" / "server.log").read_text() if (tmp_path / "second" / "server.log").exists() else False)
        assert server.get("/v1/whoami").status == 200
        assert server.stop() == 0
        starting.join()
        assert ready(second)
    finally:
        second.stop()


def test_a_waiting_server_can_be_stopped(postgres, server, tmp_path):
    second = Server(make_folder(tmp_path), store=server.config["store"])
    starting = threading.Thread(target=lambda: pytest.raises(AssertionError, second.start))
    starting.start()
    eventually("waiting", lambda: second.process is not None and "waiting for the database" in said(second))
    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait(timeout=10) != 0
    starting.join()


def make_folder(path):
    (path / "second").mkdir()
    return path / "second"


def test_who_was_replaced_ends(postgres, server, tmp_path):
    """Stopped by a signal it knows of nothing; its session dies, a second takes over; then it wakes up."""
    second = Server(make_folder(tmp_path), store=server.config["store"])
    server.process.send_signal(signal.SIGSTOP)
    postgres.end_sessions()
    second.start()
    second.tenant("made-by-the-second")
    assert second.stop() == 0
    server.process.send_signal(signal.SIGCONT)
    assert server.process.wait(timeout=20) == 1
    assert "owned the database meanwhile" in said(server)
    server.start()
    assert [t["name"] for t in server.get("/v1/tenants").json["items"]] == ["made-by-the-second"]


# ---- what must not be said, and TLS

def attempt(folder, url, from_file=False):
    """A server that cannot start; its exit code and all it said."""
    certificate(folder)
    (folder / "url").write_text(url + "\n")
    where = {"store_file": str(folder / "url")} if from_file else {"store": url}
    (folder / "c.json").write_text(json.dumps({
        "tls": {"cert": str(folder / "tls.crt"), "key": str(folder / "tls.key")}, "kubernetes": "none",
        "audit": {"dir": str(folder / "audit")}, **where}))
    check = subprocess.run([PROGRAM, "--config", folder / "c.json", "--check-config"], capture_output=True, text=True, check=False)
    done = subprocess.run(["timeout", "3", PROGRAM, "--config", folder / "c.json"], capture_output=True, text=True, check=False)
    everything = check.stdout + check.stderr + done.stdout + done.stderr
    assert PASSWORD not in everything and PASSWORD[:5] not in everything, everything
    return done.returncode, everything


def test_no_password_is_ever_said(postgres, tmp_path):
    postgres.fresh()
    postgres.sql(f"DROP ROLE IF EXISTS someone; CREATE ROLE someone LOGIN PASSWORD '{PASSWORD}'")
    hba = postgres.data / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text("local all someone scram-sha-256\n" + before)
    postgres.sql("SELECT pg_reload_conf()")
    host = str(postgres.folder).replace("/", "%2F")
    try:
        code, text = attempt(tmp_path, f"postgres://someone:{PASSWORD}x@{host}/gpuaas")
        assert code == 4 and "password authentication failed" in text, text
        code, text = attempt(tmp_path, f"postgres://someone:{PASSWORD}@{host}/none", from_file=True)
        assert code == 3 and "does not exist" in text, text
        code, text = attempt(tmp_path, f"postgres://someone:{PASSWORD}@{host}/gpuaas")
        assert code == 1 and "permission denied for schema" in text, text
        code, text = attempt(tmp_path, f"postgres://someone:{PASSWORD[:6]}/{PASSWORD}@{host}/gpuaas")
        assert code == 1 and "%2F" in text, text
        postgres.sql("GRANT CREATE ON SCHEMA public TO someone")
        code, text = attempt(tmp_path, f"postgres://someone:{PASSWORD}@{host}/gpuaas", from_file=True)
        assert code == 124 and '"serving"' in text, text
    finally:
        hba.write_text(before)
        postgres.sql("SELECT pg_reload_conf()")


class PlainPeer:
    """Takes one connection, answers that it has no TLS, and notes what is sent after that."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.requests, self.rest = self.listener.getsockname()[1], 0, b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                head = peer.recv(8)
                if len(head) == 8 and struct.unpack("!II", head) == (8, 80877103):
                    self.requests += 1
                    peer.sendall(b"N")
                self.rest += head + peer.recv(4096)


@pytest.mark.parametrize("more, asks, sends", [("", True, False), ("?sslmode=verify-full&sslrootcert=/dev/null", True, False),
                                               ("?sslmode=prefer", True, True), ("?sslmode=disable", False, True)])
def test_nothing_goes_out_in_plain_unless_asked_for(more, asks, sends):
    peer = PlainPeer()
    done = subprocess.run([SQL_CHECK, f"postgres://mia:{PASSWORD}@127.0.0.1:{peer.port}/d{more}"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=20)
    peer.listener.close()
    assert done.returncode == 1 and PASSWORD not in done.stdout
    assert ("SSL" in done.stdout) == (not sends), done.stdout
    assert (peer.requests > 0, b"mia" in peer.rest) == (asks, sends)


def test_a_peer_that_says_nothing_costs_the_connect_limit():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        done = subprocess.run([SQL_CHECK, f"postgres://u@127.0.0.1:{silent.getsockname()[1]}/d"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1 and "does not answer" in done.stdout
        assert time.monotonic() - start < 30


def test_tls(tmp_path):
    """The real server with a certificate, in a network of its own: known by its name and issuer, or refused."""
    certificate(tmp_path)
    (tmp_path / "other").mkdir()
    certificate(tmp_path / "other")
    secure = Postgres(disk_mib=100, listen_addresses="'127.0.0.1'", ssl="on", ssl_cert_file="'tls.crt'",
                      ssl_key_file="'tls.key'")
    try:
        for name in ("tls.crt", "tls.key"):
            path = secure.path(secure.data / name)
            path.write_bytes((tmp_path / name).read_bytes())
            path.chmod(0o600)
            os.chown(path, secure.data.parent.stat().st_uid, -1)
        with open(secure.path(secure.data / "pg_hba.conf"), "w", encoding="utf-8") as hba:
            hba.write("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
        secure.start()
        secure.sql("CREATE DATABASE gpuaas", "postgres")
        for mode, issuer, host, good in (("verify-full", tmp_path, "localhost", True), ("require", None, "127.0.0.1", True),
                                         ("verify-full", tmp_path / "other", "localhost", False),
                                         ("disable", None, "127.0.0.1", False)):
            root = f"&sslrootcert={issuer / 'tls.crt'}" if issuer else ""
            done = subprocess.run([*secure.namespace.enter, SQL_CHECK,
                                   f"postgres://postgres@{host}/gpuaas?sslmode={mode}{root}"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)
            assert (done.returncode == 0) == good, (mode, done.stdout, done.stderr)
    finally:
        secure.remove()
