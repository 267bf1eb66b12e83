"""Our gRPC against grpc-go with the kubelet's own stubs, in both roles."""
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", HERE.parents[1] / "build" / "gcc"))
OURS = BUILD / "tests" / "integration" / "grpcpeer" / "plugin_peer"


@pytest.fixture(scope="module")
def theirs():
    program = BUILD / "grpcpeer"
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "grpcpeer", check=True,
                   env=dict(os.environ, CGO_ENABLED="0"))
    return program


def meet(server, client, socket):
    """Starts one, runs the other, and checks what the latter counted."""
    with subprocess.Popen([*server, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout.readline() == "ready\n"
            done = subprocess.run([*client, socket], check=False, capture_output=True, text=True, timeout=120)
            print(done.stdout)
        finally:
            served.stdin.close()
        assert served.wait(20) == 0
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed, 0 failed$", done.stdout, re.MULTILINE)


def test_kubelet_calls_our_plugin(theirs, tmp_path):
    meet([OURS, "serve"], [theirs, "kubelet"], tmp_path / "plugin.sock")


def test_we_call_pod_resources(theirs, tmp_path):
    meet([theirs, "serve"], [OURS, "call"], tmp_path / "kubelet.sock")
