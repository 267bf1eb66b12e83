"""A cache of our watches behind whatever can happen between it and a real API server: afterwards it
equals a fresh list. Prints how long that took after the fault; no time is asserted."""
import http.client
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time

import pytest
from apiserver import ApiServer
from scheduler_test import Api, wait_for

BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "gcc"))
PODS, CONFIGS = "/api/v1/namespaces/faults/pods", "/api/v1/namespaces/faults/configmaps"
PATIENCE_S = 60
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410, "message": "old"}


class Faulty(http.server.BaseHTTPRequestHandler):
    """Speaks plain HTTP/1.1, so that answers and their bytes can be changed."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        proxy = self.server
        with proxy.lock:
            proxy.sockets.add(self.connection)
        answer = proxy.answer(self.path)
        if answer is not None:
            proxy.hits += 1
            self.send_response(answer[0])
            for name, value in (*answer[1], ("Content-Length", len(answer[2]))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer[2])
            return
        upstream = http.client.HTTPSConnection("127.0.0.1", proxy.port_behind, context=proxy.context)
        upstream.request("GET", self.path, headers={name: self.headers[name] for name in ("Accept", "Authorization")})
        response = upstream.getresponse()
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers["Content-Type"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := response.read1(65536):
            data, is_end = proxy.spoil(data)
            if data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            if is_end:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port_behind):
        super().__init__(("127.0.0.1", 0), Faulty)
        self.port_behind, self.context = port_behind, ssl._create_unverified_context()
        self.lock, self.sockets = threading.Lock(), set()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.heal()

    def heal(self):
        self.hits, self.answer, self.spoil = 0, lambda path: None, lambda data: (data, False)

    def hit(self, value):
        self.hits += 1
        return value

    def cut(self):
        with self.lock:
            for one in self.sockets:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sockets.clear()

    def handle_error(self, *_):
        """Connections that are cut are what this is for."""


class Wire:
    """Bytes as they are; those of connections before `stall` stay on their way, and nothing is closed."""

    def __init__(self, port):
        self.target, self.age, self.kept = port, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.kept.append((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(*pair, self.age), daemon=True).start()

    def _carry(self, source, sink, age):
        try:
            while data := source.recv(65536):
                if age < self.age:
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stall(self):
        self.age += 1

    def close(self):
        self.listener.close()


class Cache:
    """watch_check as a process."""

    def __init__(self, server, folder, address):
        config = json.loads(server.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = address
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config))
        self.log = open(folder / "watch_check.log", "wb")  # noqa: SIM115 - the process keeps it
        self.process = subprocess.Popen([BUILD / "tests" / "cluster" / "watch_check", file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def ask(self):
        """What it holds, as {kind: {name: version}}, and how many failures it has seen."""
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        held = {"pods": {}, "streamed": {}, "paged": {}}
        for line in self.process.stdout:
            kind, name, *version = line.split()
            if kind == ".":
                return held, int(name)
            held[kind][name] = version[0]
        raise AssertionError("watch_check has ended")

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=PATIENCE_S) == 0
        self.log.close()


def listed(api):
    def versions(path):
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in api.call("GET", path)["items"]}
    configs = versions(CONFIGS)
    return {"pods": versions(PODS), "streamed": configs, "paged": configs}


def change(api, turn):
    """One of each is made, one changed, one deleted."""
    def made(kind, name):
        if kind == PODS:
            return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        return {"metadata": {"name": name}}
    for kind in (PODS, CONFIGS):
        for word in ("bad", "stays", "goes"):
            api.call("POST", kind, made(kind, f"{word}-{turn:02d}"))
        api.call("PATCH", f"{kind}/stays-{turn:02d}", {"metadata": {"labels": {"turn": str(turn)}}},
                 "application/merge-patch+json")
        api.call("DELETE", f"{kind}/goes-{turn:02d}?gracePeriodSeconds=0")


def equals(api, cache, what, since):
    wait_for(f"{what}: the cache equals a fresh list", lambda: cache.ask()[0] == listed(api), PATIENCE_S)
    print(f"{what}: {time.monotonic() - since:.1f} s")


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with ApiServer(tmp_path_factory.mktemp("api")) as server:
        made = Api(server)
        made.call("POST", "/api/v1/namespaces", {"metadata": {"name": "faults"}})
        yield made


def answers(proxy, code, *headers):
    body = json.dumps(GONE | {"code": code, "reason": "Because"}).encode()

    def answer(path):
        return (code, headers, body) if "watch=true" in path or "limit=" in path else None
    proxy.answer = answer
    proxy.cut()


def expired(proxy):
    proxy.answer = lambda path: (410, (), json.dumps(GONE).encode()) if "resourceVersion=" in path else None
    proxy.cut()


def expired_event(proxy):
    event = json.dumps({"type": "ERROR", "object": GONE}).encode() + b"\n"
    proxy.spoil = lambda data: proxy.hit((data + event, False)) if data.startswith(b'{"type"') else (data, False)


def cut_inside(proxy):
    proxy.spoil = lambda data: proxy.hit((data[:len(data) // 2], True))


def replaces(pairs):
    def fault(proxy):
        def spoil(data):
            for old, new in pairs:
                if old in data:
                    data = proxy.hit(data.replace(old, new))
            return data, False
        proxy.spoil = spoil
    return fault


FAULTS = {
    "429": lambda proxy: answers(proxy, 429, ("Retry-After", "1")),
    "409": lambda proxy: answers(proxy, 409),
    "503": lambda proxy: answers(proxy, 503),
    "410": expired,
    "410 as an event": expired_event,
    "cut": lambda proxy: (answers(proxy, 500), proxy.cut()),
    "cut inside an event": cut_inside,
    "events that are no JSON": replaces([(b'{"type":"ADDED"', b'{"type:"ADDED"')]),
    "objects without their names": replaces([(b'"name":"bad-', b'"n":"bad-'), (b"\x0a\x06bad-", b"\x0f\x06bad-")]),
}


def test_faults_of_answers(api, tmp_path):
    proxy = Proxy(api.server.port)
    cache = Cache(api.server, tmp_path, f"http://127.0.0.1:{proxy.server_address[1]}")
    change(api, 0)
    equals(api, cache, "start", time.monotonic())
    for turn, (name, fault) in enumerate(FAULTS.items(), 1):
        before = cache.ask()[1]
        fault(proxy)
        change(api, turn)
        wait_for(f"{name} happens", lambda: proxy.hits > 0, PATIENCE_S)
        if "without" not in name:  # an object that cannot be read is no failure of the watch
            wait_for(f"{name} is told", lambda: cache.ask()[1] > before, PATIENCE_S)  # noqa: B023
        proxy.heal()
        equals(api, cache, name, time.monotonic())
    cache.close()
    proxy.shutdown()


def test_connections_that_die_unseen_and_a_restart(api, tmp_path):
    wire = Wire(api.server.port)
    cache = Cache(api.server, tmp_path, f"https://127.0.0.1:{wire.port}")
    equals(api, cache, "start", time.monotonic())
    before = cache.ask()[1]
    wire.stall()
    since = time.monotonic()
    change(api, 90)
    equals(api, cache, "half open, from its begin", since)
    assert cache.ask()[1] > before
    api.server.stop()
    wait_for("the end of the API server is told", lambda: cache.ask()[1] > before + 1, PATIENCE_S)
    api.server.start()
    since = time.monotonic()
    change(api, 91)
    equals(api, cache, "restart of the API server", since)
    cache.close()
    wire.close()
