"""gpuaas-server without Kubernetes, and a client that says what came, for tests from outside."""
import http.client
import json
import os
import pathlib
import secrets
import signal
import socket
import sqlite3
import ssl
import string
import subprocess
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
PROGRAM = BUILD / "src" / "daemons" / "server" / "gpuaas-server"
CLI = BUILD / "src" / "cli" / "gpuaas"
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
PATIENCE_S = 20


def token_make():
    """A token of the right form that no server knows."""
    body = "".join(secrets.choice(DIGITS) for _ in range(30))
    crc, check = zlib.crc32(body.encode()), ""
    for _ in range(6):
        crc, digit = divmod(crc, 62)
        check = DIGITS[digit] + check
    return f"gpx_{body}{check}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", folder / "tls.key", "-out", folder / "tls.crt", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("code")

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class SqliteStore:
    """The store of one server, looked into and changed past it."""

    def __init__(self, folder):
        self.path = folder / "gpuaas.db"
        self.url = f"sqlite:{self.path}"

    def sql(self, text):
        with sqlite3.connect(self.path) as store:
            store.execute(text)

    def content(self):
        """All that is kept, as bytes to search in."""
        return b"".join(path.read_bytes() for path in self.path.parent.glob("gpuaas.db*"))


class Server:
    """One process on a port of its own; may be killed and started again."""

    store_class = SqliteStore  # tests on another database put theirs here

    def __init__(self, folder, audit_dir=None, **more):
        self.store = self.store_class(folder)
        self.folder, self.port = folder, free_port()
        self.audit_dir = audit_dir or folder / "audit"
        self.admin_token = token_make()
        self.process = None
        certificate(folder)
        (folder / "admin.token").write_text(self.admin_token + "\n")
        self.config = {
            "listen": f"127.0.0.1:{self.port}",
            "tls": {"cert": str(folder / "tls.crt"), "key": str(folder / "tls.key")},
            "kubernetes": "none",
            "store": self.store.url,
            "audit": {"dir": str(self.audit_dir)},
            "bootstrap_admin_token_file": str(folder / "admin.token"),
            **more,
        }
        self.tls = ssl.create_default_context(cafile=folder / "tls.crt")

    def start(self):
        (self.folder / "server.json").write_text(json.dumps(self.config))
        self.log = open(self.folder / "server.log", "ab")  # noqa: SIM115 - the process keeps it
        self.process = subprocess.Popen([PROGRAM, "--config", self.folder / "server.json"], stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            try:
                if self.call("GET", "/readyz", token=None).status == 200:
                    return self
            except OSError:
                pass
            assert time.monotonic() < deadline, "the server is not ready"
            time.sleep(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)

    def call(self, method, path, body=None, token="", key=None, headers=None):
        """token "": the first admin's; None: no header."""
        token = self.admin_token if token == "" else token
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        send = dict(headers or {})
        if token is not None:
            send["Authorization"] = f"Bearer {token}"
        if data is not None and not isinstance(body, bytes):
            send["Content-Type"] = "application/json"
        if key is not None:
            send["Idempotency-Key"] = key
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=self.tls)
        try:
            connection.request(method, path, body=data, headers=send)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body, **options):
        return self.call("POST", path, body, **options)

    def tenant(self, name, quota=None):
        answer = self.post("/v1/tenants", {"name": name, **({"quota": quota} if quota else {})})
        assert answer.status == 201, answer

    def token(self, tenant, user, role="member", **more):
        """A member of the tenant with a token; its text and id."""
        self.post(f"/v1/tenants/{tenant}/members", {"user": user, "role": role})
        answer = self.post("/v1/tokens", {"user": user, "tenant": tenant, "role": role, **more})
        assert answer.status == 201, answer
        return answer.json["token"], answer.json["id"]

    def audit_files(self):
        return sorted(self.audit_dir.glob("audit-*.jsonl"))

    def audit_records(self):
        return [json.loads(line) for path in self.audit_files() for line in path.read_text().splitlines()]

    def audit_verify(self, checkpoint=None):
        """The finished `gpuaas audit verify` over all files as one."""
        whole = self.folder / "whole.jsonl"
        whole.write_bytes(b"".join(path.read_bytes() for path in self.audit_files()))
        checkpoint = checkpoint or self.audit_dir / "checkpoint.json"
        return subprocess.run([CLI, "audit", "verify", "--file", whole, "--checkpoint", checkpoint], check=False,
                              capture_output=True, text=True)
