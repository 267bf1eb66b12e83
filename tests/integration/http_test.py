"""Our HTTP server with curl and h2load, our HTTP client with nghttpd and Python's http.server."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "tests" / "integration" / "net"
BODY_MAX = 3_000_000


def openssl(folder, *arguments):
    subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)


def issue(folder, name, *, host="IP:127.0.0.1,DNS:localhost"):
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / "ext").write_text(f"subjectAltName={host}\n")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", f"{name}.pem")


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA")
    for name in ("server", "second", "alice"):
        issue(folder, name)
    return folder


@contextlib.contextmanager
def started(command, **options):
    process = subprocess.Popen([str(c) for c in command], **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


@contextlib.contextmanager
def our_server(*arguments, **options):
    with started([BUILD / "net_serve", "127.0.0.1:0", BODY_MAX, *arguments],
                 stdout=subprocess.PIPE, text=True, **options) as process:
        process.port = int(process.stdout.readline().split()[1])
        yield process


@pytest.fixture(scope="module")
def server(certs):
    with our_server(certs / "server.pem", certs / "server.key", certs / "ca.pem") as process:
        process.url = f"https://localhost:{process.port}"
        process.ca = certs / "ca.pem"
        yield process


def curl(server, path, *arguments, stdin=None):
    return subprocess.run(
        ["curl", "-sS", "--max-time", "20", "--cacert", str(server.ca), f"{server.url}{path}",
         *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


# ---- our server

def test_methods(server):
    assert curl(server, "/echo?a=b", "-H", "X-Test: t").stdout == "GET /echo?a=b |t|"
    assert curl(server, "/echo", "-d", "hello").stdout == "POST /echo? hello||"
    assert curl(server, "/echo", "-X", "DELETE").stdout == "DELETE /echo? ||"
    head = curl(server, "/echo", "-I").stdout
    assert head.startswith("HTTP/1.1 200 OK\n") and "Content-Length: 14\n" in head
    assert curl(server, "/none", "-w", "%{http_code}").stdout == "no such path404"
    assert curl(server, "/empty", "-w", "%{http_code}").stdout == "204"


def test_http_versions(server):
    assert curl(server, "/echo", "--http1.0").stdout == "GET /echo? ||"
    assert curl(server, "/echo", "--http2", "-w", " %{http_version}").stdout == "GET /echo? || 1.1"


def test_chunked_upload_and_continue(server):
    body = "x" * 100_000
    chunked = curl(server, "/echo", "-T", "-", "-H", "Transfer-Encoding: chunked", stdin=body)
    assert chunked.stdout == f"PUT /echo? {body}||"
    large = "y" * 2_000_000  # curl waits for 100 Continue from 1 MB on
    done = curl(server, "/echo", "-d", "@-", "-w", " %{http_code}", "-v", stdin=large)
    assert done.stdout == f"POST /echo? {large}|| 200"
    assert "HTTP/1.1 100 Continue" in done.stderr
    over = curl(server, "/echo", "-d", "@-", "-o", "/dev/null", "-w", "%{http_code}", stdin="z" * (BODY_MAX + 1))
    assert over.stdout == "413"
    unasked = curl(server, "/echo", "-d", "@-", "-H", "Expect:", "-o", "/dev/null", "-w", "%{http_code}",
                   stdin="z" * (BODY_MAX + 1))
    assert unasked.stdout == "413"


def test_streams(server):
    assert curl(server, "/stream", "-N").stdout == "tick tick tick "
    assert curl(server, "/stream", "-N", "--http1.0").stdout == "tick tick tick "
    assert curl(server, "/endless", "-N", "-m", "0.3").returncode == 28


def test_connection_is_kept(server):
    done = subprocess.run(
        ["curl", "-sS", "--cacert", str(server.ca), "-w", "%{num_connects} ", *["-o", "/dev/null"] * 3,
         *[f"{server.url}/size?n={n}" for n in (10, 1_000_000, 0)]], capture_output=True, text=True, check=True)
    assert done.stdout == "1 0 0 "


def test_client_certificate(server, certs):
    done = curl(server, "/echo", "--cert", certs / "alice.pem", "--key", certs / "alice.key")
    assert done.stdout == "GET /echo? ||alice"


def test_tls_versions(server):
    assert curl(server, "/echo", "--tls-max", "1.2").stdout == "GET /echo? ||"
    old = curl(server, "/echo", "--tls-max", "1.1", "--ciphers", "ALL:@SECLEVEL=0")
    assert old.returncode == 35


def test_reload_on_hup(certs, tmp_path):
    for suffix in ("pem", "key"):
        (tmp_path / f"live.{suffix}").write_bytes((certs / f"server.{suffix}").read_bytes())
    with our_server(tmp_path / "live.pem", tmp_path / "live.key", stderr=subprocess.PIPE) as process:
        def subject():
            shown = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{process.port}"],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            return next(line for line in shown.stdout.splitlines() if line.startswith("subject="))
        assert "server" in subject()
        for suffix in ("pem", "key"):
            (tmp_path / f"live.{suffix}").write_bytes((certs / f"second.{suffix}").read_bytes())
        process.send_signal(signal.SIGHUP)
        assert "certificate reloaded" in process.stderr.readline()
        assert "second" in subject()


def test_load(server):
    done = subprocess.run(["h2load", "--h1", "-n", "5000", "-c", "50", f"{server.url}/echo"],
                          capture_output=True, text=True, check=True)
    assert "5000 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout
    before = resident_kib(server.pid)
    subprocess.run(["h2load", "--h1", "-n", "10000", "-c", "50", f"{server.url}/echo"],
                   capture_output=True, text=True, check=True)
    assert resident_kib(server.pid) - before < 1024


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


# ---- our client

def fetch(base, ca="-", *, method="GET", path="/", count=1, body="", timeout_ms=20000, ping_ms=0):
    return [str(c) for c in (BUILD / "net_fetch", base, ca, method, path, count, body, timeout_ms, ping_ms)]


def fetched(*arguments, **options):
    done = subprocess.run(fetch(*arguments, **options), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture
def nghttpd(certs, tmp_path):
    (tmp_path / "small").write_text("small file")
    (tmp_path / "large").write_bytes(b"l" * 20_000_000)
    port = free_port()
    with started(["nghttpd", "-d", tmp_path, "--echo-upload", "-a", "127.0.0.1", port,
                  certs / "server.key", certs / "server.pem"], stdout=subprocess.DEVNULL) as process:
        process.base = f"https://127.0.0.1:{port}"
        wait_for(port)
        yield process


def test_http2(nghttpd, certs):
    ca = certs / "ca.pem"
    assert fetched(nghttpd.base, ca, path="/small") == ["ok 200 10 small file"]
    assert fetched(nghttpd.base, ca, method="POST", path="/x", body="sent") == ["ok 200 4 sent"]
    assert fetched(nghttpd.base, ca, path="/large")[0].startswith("ok 200 20000000 lll")
    assert fetched(nghttpd.base, ca, path="/none")[0].startswith("ok 404 ")
    many = fetched(nghttpd.base, ca, path="/small", count=2000)
    assert many == ["ok 200 10 small file"] * 2000


def test_http2_server_killed(nghttpd, certs):
    with started(fetch(nghttpd.base, certs / "ca.pem", path="/large", count=20), stdout=subprocess.PIPE,
                 text=True) as client:
        nghttpd.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        nghttpd.kill()
        lines = client.stdout.read().splitlines()
    assert len(lines) == 20
    assert all(line.startswith(("unavailable 0 0 GET https://", "ok 200 20000000")) for line in lines)


def test_http2_silent_server(nghttpd, certs):
    assert fetched(nghttpd.base, certs / "ca.pem", path="/small")[0].startswith("ok")
    nghttpd.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    lines = fetched(nghttpd.base, certs / "ca.pem", path="/small", timeout_ms=1500)
    assert lines[0].startswith("timeout 0 0 ") and time.monotonic() - start < 10
    nghttpd.send_signal(signal.SIGCONT)
    with started(fetch(nghttpd.base, certs / "ca.pem", path="/large", count=100, ping_ms=200),
                 stdout=subprocess.PIPE, text=True) as client:
        time.sleep(0.1)
        nghttpd.send_signal(signal.SIGSTOP)
        lines = client.stdout.read().splitlines()
    assert len(lines) == 100 and any("does not answer a ping" in line for line in lines)


def test_http2_wrong_ca(nghttpd, certs, tmp_path):
    openssl(tmp_path, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "o.key", "-out", "o.pem", "-days", "1", "-subj", "/CN=other")
    line = fetched(nghttpd.base, tmp_path / "o.pem", path="/small")[0]
    assert line.startswith("protocol 0 0 ") and "certificate of 127.0.0.1" in line
    assert certs.exists()


def test_http_1_0_server(tmp_path):
    (tmp_path / "file").write_text("from python")
    port = free_port()
    with started([sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "-d", tmp_path],
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_for(port)
        assert fetched(f"http://127.0.0.1:{port}", path="/file", count=9) == ["ok 200 11 from python"] * 9
        assert fetched(f"http://127.0.0.1:{port}", method="HEAD", path="/file") == ["ok 200 0 "]


def test_our_client_with_our_server(server):
    lines = fetched(f"https://127.0.0.1:{server.port}", server.ca, method="POST", path="/echo", body="b", count=200)
    assert lines == ["ok 200 15 POST /echo? b||"] * 200
