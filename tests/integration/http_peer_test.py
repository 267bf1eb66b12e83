"""Our HTTP parser beside nginx: thousands of requests that are a byte off, sent to both.

What we accept nginx must accept too, and understand alike: it passes the request on to the same
application, so method, path, a header and body must arrive the same. Where we are stricter is no
difference. Two readers that disagree are what request smuggling lives on.
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "tests" / "integration" / "net"

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream app {{ server 127.0.0.1:{port}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{listen};
    location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_ignore_client_abort on; }}
  }}
}}
"""

SEEDS = {
    "get": b"GET /echo/a?b=c HTTP/1.1\r\nHost: a\r\nX-Test: t\r\n\r\n",
    "length": b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "trailer": b"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
               b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\n\r\n",
}
BYTES = b"\x00\x01\t\n\r \"#%,./0;:?aZ\\\x7f\x80\xff"
LINES = [b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 05", b"Content-Length: +5",
         b"Content-Length : 5", b"Content-Length: 5, 5", b"content-length:5", b"Transfer-Encoding: chunked",
         b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding:\tchunked",
         b"Transfer-Encoding: \x0bchunked", b"Transfer_Encoding: chunked", b"Host: b", b"Host:", b"X-Test: u",
         b" folded", b"\tfolded", b"no colon", b": no name", b"X\x00: y", b"Expect: 100-continue", b"Expect: x",
         b"Connection: close", b"Connection: upgrade", b"Upgrade: websocket"]
TARGETS = [b"/", b"*", b"//echo", b"/echo/../x", b"/echo/%2e%2e/x", b"/echo/%00", b"/echo/%", b"/echo/%zz", b"/echo#x",
           b"http://a/echo", b"/echo/\\..\\x", b"echo", b"/echo?a b", b"/echo/./x", b"/%65cho", b"/echo/%2f"]
VERSIONS = [b"HTTP/1.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/1.10", b"http/1.1", b"HTTP/1.1 ", b"HTTP/01.1",
            b"", b"HTTP/1,1", b"HTTPS/1.1"]


def variants():
    for name, seed in SEEDS.items():
        yield name, seed
        for at in range(len(seed)):
            yield f"{name}: without byte {at}", seed[:at] + seed[at + 1:]
            for byte in BYTES:
                yield f"{name}: {byte:#x} before {at}", seed[:at] + bytes([byte]) + seed[at:]
                yield f"{name}: {byte:#x} instead of {at}", seed[:at] + bytes([byte]) + seed[at + 1:]
        for line in LINES:
            yield f"{name}: with {line!r}", seed.replace(b"Host: a\r\n", b"Host: a\r\n" + line + b"\r\n")
        for target in TARGETS:
            words = seed.split(b" ", 2)
            yield f"{name}: target {target!r}", b" ".join([words[0], target, words[2]])
        for version in VERSIONS:
            yield f"{name}: version {version!r}", seed.replace(b"HTTP/1.1", version)


@contextlib.contextmanager
def started(command, **options):
    process = subprocess.Popen([str(c) for c in command], **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        listen = s.getsockname()[1]
    with started([BUILD / "net_serve", "127.0.0.1:0", 1000], stdout=subprocess.PIPE, text=True) as ours:
        port = int(ours.stdout.readline().split()[1])
        config = folder / "nginx.conf"
        config.write_text(NGINX.format(folder=folder, port=port, listen=listen))
        with started(["nginx", "-e", folder / "error.log", "-c", config]):
            for _ in range(100):
                with socket.socket() as s:
                    if s.connect_ex(("127.0.0.1", listen)) == 0:
                        break
                time.sleep(0.05)
            yield port, listen


def ask(port, request):
    """(accepted, body of the first answer); a connection that just ends is a refusal."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        with contextlib.suppress(OSError):
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while piece := s.recv(65536):
                answer += piece
    while answer.startswith(b"HTTP/1.1 100 "):
        answer = answer.split(b"\r\n\r\n", 1)[1]
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1:2]
    accepted = status == [b"200"] or (status == [b"404"] and b"no such path" in body)
    return accepted, body.split(b"HTTP/1.1", 1)[0]


def test_no_request_is_understood_differently(ports):
    ours, nginx = ports
    count = both = stricter = 0
    wrong = []
    for name, request in variants():
        count += 1
        mine = ask(ours, request)
        if not mine[0]:
            stricter += 1
            continue
        theirs = ask(nginx, request)
        both += theirs[0]
        if theirs != mine:
            wrong.append((name, request, mine, theirs))
    print(f"{count} requests: both accept {both}, we refuse {stricter}")
    for row in wrong[:40]:
        print(row)
    assert not wrong and count > 5000 and both > 500
