"""The server's CPU a request over TLS beside nginx, one kept-alive connection, no Kubernetes."""
import os
import pathlib
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import tempfile
import time

from harness import Figure, Group, Process, free_port, ms

TOKEN = "gpx_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"  # the example of the token's format, valid by its check digits
BATCH, BATCHES, WARM_UP = 400, 61, 500


class Client:
    """Sends the same request again and again; small, so that the servers are what is busy."""

    def __init__(self, folder, port):
        context = ssl.create_default_context(cafile=folder / "tls.crt")
        plain = socket.create_connection(("127.0.0.1", port), timeout=20)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(self, request):
        """Status and body of the answer."""
        self.socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive()
        head, body = data.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
        while len(body) < length:
            body += self.receive()
        return int(head.split(b" ", 2)[1]), body

    def receive(self):
        part = self.socket.recv(65536)
        if not part:
            raise RuntimeError("the server closed the connection")
        return part


def request_of(path):
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


class Subject:
    """One server, its connection and what was measured of it, batch by batch."""

    def __init__(self, process, folder, port, path):
        self.process, self.request = process, request_of(path)
        self.client = connect(process, folder, port)
        self.walls, self.batches = [], []
        self.body_bytes = len(self.drive(WARM_UP))

    def drive(self, count):
        for _ in range(count):
            start = time.perf_counter_ns()
            status, body = self.client.ask(self.request)
            self.walls.append(time.perf_counter_ns() - start)
            if status != 200:
                raise RuntimeError(f"{self.process.name}: {status} {body[:300]!r}")
        return body

    def measure_batch(self):
        before = self.process.cpu_s()
        self.drive(BATCH)
        self.batches.append(self.process.cpu_s() - before)

    def result(self):
        walls = sorted(self.walls[WARM_UP:])
        return {"cpu_s": sum(self.batches), "us": statistics.median(self.batches) / BATCH * 1e6,
                "p50": walls[len(walls) // 2], "p99": walls[len(walls) * 99 // 100],
                "rss_kib": self.process.rss_kib()}


def connect(process, folder, port):
    def probe():
        try:
            return Client(folder, port)
        except OSError:
            return None
    return process.require("answers", probe)


def make_key(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", "tls.key", "-out", "tls.crt"], cwd=folder, check=True, capture_output=True)


def start_ours(bench, folder):
    port = free_port()
    (folder / "token").write_text(TOKEN)
    (folder / "server.yaml").write_text(f"""listen: 127.0.0.1:{port}
tls: {{cert: {folder}/tls.crt, key: {folder}/tls.key}}
kubernetes: none
store: sqlite:{folder}/store.db
audit: {{dir: {folder}/audit}}
bootstrap_admin_token_file: {folder}/token
limits: {{calls_per_second: 1000000, burst: 10000000}}
""")
    server = Process(folder / "server.log", [bench.program("gpuaas-server"), "--config", folder / "server.yaml",
                                             "--log-level=warn"])
    return server, port


def nginx_program():
    path = os.environ.get("PEER_NGINX") or shutil.which("nginx")
    return path if path and pathlib.Path(path).exists() else None


def start_nginx(program, folder, body_bytes):
    port = free_port()
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (folder / f"nginx-{name}").mkdir()
    temporary = "".join(f"{directive} {folder}/nginx-{name};\n" for directive, name in [
        ("client_body_temp_path", "body"), ("proxy_temp_path", "proxy"), ("fastcgi_temp_path", "fastcgi"),
        ("uwsgi_temp_path", "uwsgi"), ("scgi_temp_path", "scgi")])
    (folder / "nginx.conf").write_text(f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
{temporary}access_log {folder}/access.log; keepalive_requests 1000000;
server {{
listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/tls.crt; ssl_certificate_key {folder}/tls.key;
location / {{ default_type application/json; return 200 "{'x' * body_bytes}"; }}
}} }}
""")
    server = Process(folder / "nginx.log", [program, "-c", folder / "nginx.conf", "-p", folder, "-e", "stderr"])
    return server, port


def measure(bench, folder, processes):
    """Ours and nginx in turn, so that what else the machine does meets both."""
    server, port = start_ours(bench, folder)
    processes.append(server)
    subjects = [Subject(server, folder, port, "/v1/whoami")]
    program = nginx_program()
    if program:
        server, port = start_nginx(program, folder, subjects[0].body_bytes)
        processes.append(server)
        subjects.append(Subject(server, folder, port, "/"))
    for _ in range(BATCHES):
        for subject in subjects:
            subject.measure_batch()
    return subjects[0].body_bytes, *[subject.result() for subject in subjects]


def gateway(bench):
    bench.program("gpuaas-server")
    folder, processes = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-bench-")), []
    os.chmod(folder, 0o755)  # a worker of nginx is not root
    try:
        make_key(folder)
        body_bytes, ours, *theirs = measure(bench, folder, processes)
    finally:
        for process in processes:
            process.stop()
        shutil.rmtree(folder)
    note = f"GET /v1/whoami with a token, {body_bytes} bytes, {BATCHES} x {BATCH} requests on one connection"
    note += "; nginx: a constant of that length, access log on" if theirs else "; nginx is not installed: no peer"
    for row, unit, of in [("gateway_cpu", "us CPU/request", lambda got: got["us"]),
                          ("gateway_wall_p50", "ms wall", lambda got: ms(got["p50"])),
                          ("gateway_wall_p99", "ms wall", lambda got: ms(got["p99"])),
                          ("gateway_rss", "MiB", lambda got: got["rss_kib"] / 1024)]:
        yield Figure(row, of(ours), unit, peer="nginx" if theirs else "", peer_value=of(theirs[0]) if theirs else None,
                     cpu_s=ours["cpu_s"], note=note)


GROUPS = [Group("gateway", "a request with token on the server beside nginx HTTPS (PEER_NGINX)", {
    "gateway_cpu": "ratio <= 2", "gateway_wall_p50": "", "gateway_wall_p99": "", "gateway_rss": ""}, gateway)]
